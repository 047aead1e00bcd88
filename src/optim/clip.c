// optim/clip: gradients whose norm is at most a given one.
//
//   n = (sum of |g|^p over all elements)^(1/p), p = 2 or infinity
//   g = g * min(1, max_norm / (n + 1e-6))
//
// as torch.nn.utils.clip_grad_norm_ has it. Of types narrower than f32 both are
// computed in f32. max_norm is an operand: another one compiles nothing. Of
// an optimiser on shards, the rank's shards of the reduced gradients are
// clipped, by the norm over the shards of all ranks.
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "ops/ops.h"
#include "optim/optimizer.h"
#include "world/world.h"

typedef struct clipping {
  const char *call;        // for messages
  calx_optimizer *opt;     // that has the gradients
  bool sharded, greatest;  // p is infinity
  calx_dtype dtype;        // of the norm
  calx_tensor **grads;
  size_t n;
} clipping;

// "clip_grad_norm: max_norm -1, a number of 0 or more is wanted"
static calx_status *check_most(const char *call, const char *name, double most)
{
  if (most >= 0) return NULL;
  return cx_invalid("%s: %s %g, a number of 0 or more is wanted", call, name,
                    most);
}

static calx_status *check(const calx_clip_grad_norm_options *o,
                          const char *call)
{
  if (o->norm_type == 0 || o->norm_type == 2 || o->norm_type == HUGE_VAL) {
    return NULL;
  }
  return cx_invalid(
      "%s: the norm of order %g, those of order 2 and infinity are there", call,
      o->norm_type);
}

// ---- the gradients ----------------------------------------------------------

static calx_status *find_gradients(clipping *c)
{
  c->dtype = CALX_F32;
  for (size_t i = 0; i < c->opt->n; i++) {
    const cx_optim_param *p = &c->opt->params[i];
    calx_tensor *grad = cx_lazy_tensor_grad(p->tensor);
    if (grad == NULL || cx_lazy_tensor_poisoned(grad)) continue;
    calx_status *status = cx_lazy_tensor_usable(grad, c->call, 0);
    if (status != NULL) {
      return cx_annotate(status, "it is the gradient of '%s'", p->path);
    }
    if (calx_tensor_numel(grad) == 0) continue;
    if (cx_dtype_part(calx_tensor_dtype(grad)) == CALX_F64) c->dtype = CALX_F64;
    c->grads[c->n++] = grad;
  }
  return NULL;
}

// ---- the norm ---------------------------------------------------------------

static calx_tensor *part_of(const clipping *c, calx_tensor *grad)
{
  bool is_complex = cx_dtype_is_complex(calx_tensor_dtype(grad));
  calx_tensor *x = calx_to_dtype(is_complex ? calx_abs(grad) : grad, c->dtype);
  return c->greatest ? calx_max(calx_abs(x))
                     : calx_sum_with(calx_square(x), NULL);
}

static calx_tensor *total(const clipping *c)
{
  calx_tensor *all = NULL;
  for (size_t i = 0; i < c->n; i++) {
    calx_tensor *one = part_of(c, c->grads[i]);
    if (all == NULL) {
      all = one;
    } else {
      all =
          c->greatest ? calx_maximum(all, one) : calx_add_with(all, one, NULL);
    }
  }
  if (all == NULL) all = cx_optim_number(c->opt, c->dtype, 0);
  if (c->sharded && cx_world_size(cx_world_self()) > 1) {
    all = calx_all_reduce_with(
        all, c->greatest ? CALX_REDUCE_MAX : CALX_REDUCE_SUM, NULL);
  }
  return c->greatest ? all : calx_sqrt(all);
}

// The message is PyTorch's.
static calx_status *check_finite(calx_tensor *norm, bool greatest)
{
  double value = calx_item(norm);
  if (isfinite(value) || calx_scope_error() != NULL) return NULL;
  return cx_error(CALX_OUT_OF_RANGE,
                  "clip_grad_norm: The total norm of order %s for gradients "
                  "from `parameters` is non-finite, so it cannot be clipped: "
                  "it is %g",
                  greatest ? "inf" : "2", value);
}

static void scale(const clipping *c, calx_tensor *norm, double max_norm)
{
  calx_tensor *most = cx_optim_number(c->opt, c->dtype, max_norm);
  calx_tensor *little = cx_optim_number(c->opt, c->dtype, 1e-6);
  calx_tensor *one = cx_optim_number(c->opt, c->dtype, 1);
  calx_tensor *by = calx_div(most, calx_add_with(norm, little, NULL));
  by = calx_minimum(by, one);
  calx_tensor **scaled = cx_calloc(c->n + 1, sizeof *scaled);
  if (scaled == NULL) {
    cx_lazy_scope_pin(cx_out_of_memory());
    return;
  }
  for (size_t i = 0; i < c->n; i++) {
    calx_dtype d = calx_tensor_dtype(c->grads[i]);
    if (cx_dtype_is_complex(d)) {
      calx_tensor *part = calx_to_dtype(by, cx_dtype_part(d));
      scaled[i] = calx_mul(c->grads[i], part);
    } else {
      calx_tensor *x = calx_mul(calx_to_dtype(c->grads[i], c->dtype), by);
      scaled[i] = calx_to_dtype(x, d);
    }
  }
  for (size_t i = 0; i < c->n && calx_scope_error() == NULL; i++) {
    cx_lazy_tensor_set_value(c->grads[i], scaled[i]);
  }
  cx_free(scaled);
}

// ---- the calls --------------------------------------------------------------

static calx_status *begin(calx_optimizer *opt, clipping *c)
{
  CALX_TRY(cx_annotate(calx_optimizer_error(opt), "so %s has no gradients",
                       c->call));
  c->opt = opt;
  if (opt->rule->reduce != NULL) {
    CALX_TRY(opt->rule->reduce(opt));
    c->sharded = true;
    c->opt = opt->inner;
  }
  c->grads = cx_calloc(c->opt->n + 1, sizeof *c->grads);
  return c->grads != NULL ? find_gradients(c) : cx_out_of_memory();
}

static calx_status *norm_of(calx_optimizer *opt,
                            const calx_clip_grad_norm_options *options,
                            clipping *c, calx_tensor **out_norm)
{
  calx_clip_grad_norm_options o;
  CALX_TRY(cx_options_take(c->call, options, &o, sizeof o));
  CALX_TRY(check(&o, c->call));
  c->greatest = o.norm_type == HUGE_VAL;
  CALX_TRY(begin(opt, c));
  *out_norm = total(c);
  if (o.error_if_nonfinite) {
    cx_lazy_scope_pin(check_finite(*out_norm, c->greatest));
  }
  return NULL;
}

calx_tensor *calx_clip_grad_norm_with(
    calx_optimizer *opt, double max_norm,
    const calx_clip_grad_norm_options *options)
{
  clipping c = { .call = "clip_grad_norm" };
  calx_tensor *norm = NULL;
  cx_lazy_no_grad_begin();
  calx_status *status = check_most(c.call, "max_norm", max_norm);
  if (status == NULL) status = norm_of(opt, options, &c, &norm);
  if (status != NULL) {
    norm = cx_lazy_tensor_poison(status);
  } else if (calx_scope_error() == NULL) {
    scale(&c, norm, max_norm);
  }
  cx_lazy_no_grad_end();
  cx_free(c.grads);
  return norm;
}

calx_tensor *calx_get_total_norm_with(
    calx_optimizer *opt, const calx_clip_grad_norm_options *options)
{
  clipping c = { .call = "get_total_norm" };
  calx_tensor *norm = NULL;
  cx_lazy_no_grad_begin();
  calx_status *status = norm_of(opt, options, &c, &norm);
  if (status != NULL) norm = cx_lazy_tensor_poison(status);
  cx_lazy_no_grad_end();
  cx_free(c.grads);
  return norm;
}

static calx_status *clamp(clipping *c, double most)
{
  calx_tensor **clamped = cx_calloc(c->n + 1, sizeof *clamped);
  if (clamped == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < c->n; i++) {
    calx_dtype d = calx_tensor_dtype(c->grads[i]);
    if (cx_dtype_is_complex(d)) {
      cx_free(clamped);
      return cx_invalid(
          "%s: a gradient is %s, and complex numbers have no order: clip the "
          "norm with calx_clip_grad_norm",
          c->call, cx_graph_shape_str(cx_lazy_tensor_shape(c->grads[i])));
    }
    calx_tensor *high = cx_optim_number(c->opt, d, most);
    calx_tensor *low = cx_optim_number(c->opt, d, -most);
    clamped[i] = calx_minimum(calx_maximum(c->grads[i], low), high);
  }
  for (size_t i = 0; i < c->n && calx_scope_error() == NULL; i++) {
    cx_lazy_tensor_set_value(c->grads[i], clamped[i]);
  }
  cx_free(clamped);
  return NULL;
}

void calx_clip_grad_value(calx_optimizer *opt, double clip_value)
{
  clipping c = { .call = "clip_grad_value" };
  cx_lazy_no_grad_begin();
  calx_status *status = check_most(c.call, "clip_value", clip_value);
  if (status == NULL) status = begin(opt, &c);
  if (status == NULL) status = clamp(&c, clip_value);
  cx_lazy_scope_pin(status);
  cx_lazy_no_grad_end();
  cx_free(c.grads);
}
