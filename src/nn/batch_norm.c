// nn/batch_norm: torch.nn.BatchNorm1d to 3d. The op updates the running
// statistics, the layer counts the batches.
#include "nn/batch_norm.h"

#include "nn/layer.h"

void cx_nn_count_batch(const cx_nn_batch_norm *b)
{
  calx_tensor *tracked = b->tracked;
  cx_lazy_no_grad_begin();
  calx_tensor *next = calx_add_with(tracked, calx_scalar_int(1), NULL);
  if (!cx_lazy_tensor_poisoned(next)) {
    cx_lazy_tensor_set_value(tracked, next);
  }
  cx_lazy_no_grad_end();
}

bool cx_nn_batch_norm_updates(const cx_nn_batch_norm *b)
{
  return b->tracked != NULL && !b->is_frozen && calx_module_is_training(b->m);
}

calx_batch_norm_options cx_nn_batch_norm_op(const cx_nn_batch_norm *b)
{
  const bool training = calx_module_is_training(b->m) || b->tracked == NULL;
  const bool has_running = !training || cx_nn_batch_norm_updates(b);
  return (calx_batch_norm_options){
    .size = sizeof(calx_batch_norm_options),
    .running_mean = has_running ? cx_nn_tensor(b->m, "running_mean") : NULL,
    .running_var = has_running ? cx_nn_tensor(b->m, "running_var") : NULL,
    .weight = cx_nn_tensor(b->m, "weight"),
    .bias = cx_nn_tensor(b->m, "bias"),
    .training = training,
    .eps = b->o.eps,
    .momentum = isnan(b->o.momentum) ? 1 : b->o.momentum,
  };
}

// running = before + (seen - before) / n, with `seen` in running and n of the
// batches with this one.
static void average(const cx_nn_batch_norm *b, const char *name,
                    calx_tensor *before)
{
  calx_tensor *running = cx_nn_tensor(b->m, name);
  calx_dtype dtype = calx_tensor_dtype(running);
  calx_tensor *w = calx_reciprocal(calx_to_dtype(b->tracked, dtype));
  calx_tensor *rest = calx_sub_with(calx_scalar(1), w, NULL);
  calx_tensor *seen = cx_lazy_tensor_detached(running);
  calx_tensor *next =
      calx_add_with(calx_mul(before, rest), calx_mul(seen, w), NULL);
  if (!cx_lazy_tensor_poisoned(next)) cx_lazy_tensor_set_value(running, next);
}

void cx_nn_batch_norm_before(const cx_nn_batch_norm *b, calx_tensor **before)
{
  before[0] = before[1] = NULL;
  if (!isnan(b->o.momentum) || !cx_nn_batch_norm_updates(b)) return;
  before[0] = cx_lazy_tensor_detached(cx_nn_tensor(b->m, "running_mean"));
  before[1] = cx_lazy_tensor_detached(cx_nn_tensor(b->m, "running_var"));
}

void cx_nn_batch_norm_after(const cx_nn_batch_norm *b, calx_tensor *y,
                            calx_tensor *const *before)
{
  if (!cx_nn_batch_norm_updates(b) || cx_lazy_tensor_poisoned(y)) return;
  cx_nn_count_batch(b);
  if (before[0] == NULL) return;
  cx_lazy_no_grad_begin();
  average(b, "running_mean", before[0]);
  average(b, "running_var", before[1]);
  cx_lazy_no_grad_end();
}

static calx_tensor *run(const cx_nn_batch_norm *b, calx_tensor *x, bool fits,
                        const char *sizes)
{
  if (cx_nn_has_shape(x) && (!fits || calx_tensor_dim(x, 1) != b->features)) {
    char wanted[80];
    snprintf(wanted, sizeof wanted, "(N, %lld%s", (long long)b->features,
             sizes);
    return cx_nn_module_refuse(b->m, x, wanted);
  }
  calx_batch_norm_options o = cx_nn_batch_norm_op(b);
  calx_tensor *before[2];
  cx_nn_batch_norm_before(b, before);
  calx_tensor *y = calx_batch_norm_with(x, &o);
  cx_nn_batch_norm_after(b, y, before);
  return y;
}

static size_t rank_of(const calx_tensor *x)
{
  return cx_nn_has_shape(x) ? calx_tensor_rank(x) : 0;
}

static calx_tensor *forward1(void *self, calx_tensor *x)
{
  size_t rank = rank_of(x);
  return run(self, x, rank == 2 || rank == 3, ") or with L behind");
}

static calx_tensor *forward2(void *self, calx_tensor *x)
{
  return run(self, x, rank_of(x) == 4, ", H, W)");
}

static calx_tensor *forward3(void *self, calx_tensor *x)
{
  return run(self, x, rank_of(x) == 5, ", D, H, W)");
}

void cx_nn_batch_norm_repr(const void *state, cx_text *out)
{
  const cx_nn_batch_norm *b = state;
  const char *affine = cx_nn_repr_bool(!b->o.no_affine);
  cx_text_format(out, "%lld, eps=", (long long)b->features);
  cx_nn_repr_real(out, cx_or_default(b->o.eps, 1e-5));
  cx_text_append(out, ", momentum=");
  if (isnan(b->o.momentum)) {
    cx_text_append(out, "None");
  } else {
    cx_nn_repr_real(out, cx_or_default(b->o.momentum, 0.1));
  }
  cx_text_format(out, ", affine=%s, bias=%s, track_running_stats=%s", affine,
                 affine, cx_nn_repr_bool(!b->o.no_track_running_stats));
}

static calx_status *check(const char *call, int64_t features,
                          const calx_nn_batch_norm_options *o)
{
  if (features <= 0) {
    return cx_invalid("%s: %lld features, a positive number is wanted", call,
                      (long long)features);
  }
  if (!(o->eps >= 0)) {
    return cx_invalid("%s: eps %g, a positive number is wanted", call, o->eps);
  }
  return cx_nn_check_dtype(call, o->dtype);
}

// In the order of PyTorch's state dict.
static void register_all(cx_nn_batch_norm *b)
{
  calx_dims shape = CALX_SHAPE(b->features);
  calx_dtype dtype = b->o.dtype;
  if (!b->o.no_affine) {
    cx_nn_filled_param(b->m, "weight", shape, true, dtype);
    cx_nn_filled_param(b->m, "bias", shape, false, dtype);
  }
  if (b->o.no_track_running_stats) return;
  calx_module_buffer(b->m, "running_mean", cx_nn_filled(shape, false, dtype));
  calx_module_buffer(b->m, "running_var", cx_nn_filled(shape, true, dtype));
  b->tracked = calx_module_buffer(b->m, "num_batches_tracked",
                                  cx_nn_filled(CALX_SCALAR, false, CALX_I64));
}

calx_module *cx_nn_batch_norm_make(const cx_nn_layer *layer,
                                   calx_module *parent, const char *name,
                                   int64_t features,
                                   const calx_nn_batch_norm_options *options)
{
  void *state;
  calx_module *m =
      cx_nn_make(layer, parent, name, sizeof(cx_nn_batch_norm), &state);
  cx_nn_batch_norm *b = state;
  if (b == NULL) return m;
  b->features = features;
  calx_status *status =
      cx_options_take(layer->call, options, &b->o, sizeof b->o);
  if (status == NULL) status = check(layer->call, features, &b->o);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  calx_scope *scope = calx_scope_begin();
  register_all(b);
  cx_nn_module_fail(m, calx_scope_end(scope));
  return m;
}

#define BATCH_NORM(n)                                                      \
  calx_module *calx_nn_batch_norm##n##d_with(                              \
      calx_module *parent, const char *name, int64_t features,             \
      const calx_nn_batch_norm_options *options)                           \
  {                                                                        \
    static const cx_nn_layer layer = { "BatchNorm" #n "d",                 \
                                       "batch_norm" #n "d", forward##n,    \
                                       cx_nn_batch_norm_repr, NULL };      \
    return cx_nn_batch_norm_make(&layer, parent, name, features, options); \
  }
BATCH_NORM(1)
BATCH_NORM(2)
BATCH_NORM(3)
