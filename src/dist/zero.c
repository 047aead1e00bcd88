// dist/zero: an optimiser's state, spread over the ranks (S. Rajbhandari et
// al., ZeRO: memory optimizations toward training trillion parameter models,
// 2019, stage 1; torch_xla ZeroRedundancyOptimizer).
//
// All parameters of a group and type, joined and padded, are cut into as many
// equal shards as there are ranks; each parameter alone, where the rule needs
// its norm. A step scatters the sum of the gradients, lets an
// ordinary optimiser step on the rank's own shard, and gathers the shards:
//
//   g = reduce_scatter(cat(grads)) / ranks
//   shard = own part of cat(params)
//   shard = inner step(shard, g)
//   params = split(all_gather(shard))
//
// Each rank selects its own part by a mask that it uploads: a rank's number in
// the graph would make the programs of the ranks differ.
#include "dist/zero.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "dist/dist.h"
#include "lazy/lazy.h"
#include "ops/ops.h"

// ---- joining and splitting --------------------------------------------------

calx_tensor *cx_dist_zero_zeros(const cx_dist_zero *z, calx_dtype dtype,
                                int64_t n)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = dtype,
                            .device = z->base.device };
  return calx_zeros_with(calx_dims_of(&n, 1), &o);
}

// A value that failed leaves the tensor as it is.
static void assign(calx_tensor *t, calx_tensor *value)
{
  if (!cx_lazy_tensor_poisoned(value)) cx_lazy_tensor_set_value(t, value);
}

static calx_tensor *flat(calx_tensor *t)
{
  int64_t n = calx_tensor_numel(t);
  return calx_reshape(t, calx_dims_of(&n, 1));
}

static calx_tensor *gradient_of(const cx_optim_param *p)
{
  calx_tensor *grad = cx_lazy_tensor_grad(p->tensor);
  return grad != NULL && !cx_lazy_tensor_poisoned(grad) ? grad : NULL;
}

// calx_cat takes CX_OPS_CAT_MOST operands; a longer list is joined in several
// calls, whose results are joined in turn. Overwrites the list.
static calx_tensor *cat(calx_tensor **parts, size_t n)
{
  while (n > CX_OPS_CAT_MOST) {
    size_t pieces = 0;
    for (size_t i = 0; i < n; i += CX_OPS_CAT_MOST) {
      size_t left = n - i;
      parts[pieces++] = calx_cat(
          parts + i, left < CX_OPS_CAT_MOST ? left : CX_OPS_CAT_MOST, 0);
    }
    n = pieces;
  }
  return calx_cat(parts, n, 0);
}

// The parameters of the shard's type or their gradients, joined and padded.
static calx_tensor *join(const cx_dist_zero *z, const cx_dist_shard *s,
                         bool gradients)
{
  size_t n = 0;
  for (size_t i = 0; i < z->base.n; i++) {
    const cx_optim_param *p = &z->base.params[i];
    if (z->positions[i].inner != (size_t)(s - z->list)) continue;
    z->parts[n++] = flat(gradients ? gradient_of(p) : p->tensor);
  }
  int64_t rest = s->size * calx_world_size() - s->total;
  if (rest != 0) z->parts[n++] = cx_dist_zero_zeros(z, s->dtype, rest);
  return cat(z->parts, n);
}

static calx_tensor *own_part(const cx_dist_zero *z, const cx_dist_shard *s)
{
  calx_tensor *all = join(z, s, false);
  int64_t dims[2] = { calx_world_size(), s->size }, first = 0;
  if (dims[0] == 1) return all;
  all = calx_reshape(all, calx_dims_of(dims, 2));
  calx_reduce_options o = { .size = sizeof o, .dims = calx_dims_of(&first, 1) };
  return calx_sum_with(calx_where(z->mask, all, cx_ops_zeros_like(all)), &o);
}

// Gathers the shards, (size) of each rank, and assigns the parameters.
static void split(const cx_dist_zero *z, const cx_dist_shard *s)
{
  calx_tensor *all = calx_all_gather_with(s->own, 0, NULL);
  for (size_t i = 0; i < z->base.n && calx_scope_error() == NULL; i++) {
    calx_tensor *t = z->base.params[i].tensor;
    if (z->positions[i].inner != (size_t)(s - z->list)) continue;
    int64_t at = z->positions[i].first, n = calx_tensor_numel(t);
    calx_tensor *value = calx_slice(all, 0, at, at + n, 1);
    assign(t, calx_reshape(value, calx_tensor_shape(t)));
  }
}

// ---- gradients --------------------------------------------------------------

// *out_any is false where no parameter has a gradient.
static calx_status *check_gradients(const cx_dist_zero *z, bool *out_any)
{
  size_t n = 0;
  const cx_optim_param *without = NULL;
  for (size_t i = 0; i < z->base.n; i++) {
    const cx_optim_param *p = &z->base.params[i];
    calx_tensor *grad = gradient_of(p);
    if (grad == NULL) {
      without = p;
      continue;
    }
    n++;
    calx_status *status = cx_lazy_tensor_usable(grad, "optimizer_step", 0);
    if (status != NULL) return cx_optim_name_gradient(status, p);
  }
  *out_any = n != 0;
  if (n == 0 || without == NULL) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "optimizer_step: '%s' has no gradient, the others have; an "
                  "optimiser on shards steps all of its parameters",
                  without->path);
}

static void scatter(const cx_dist_zero *z, const cx_dist_shard *s)
{
  calx_collective_options o = { .size = sizeof o,
                                .scale = 1.0 / calx_world_size() };
  calx_tensor *grad =
      calx_reduce_scatter_with(join(z, s, true), CALX_REDUCE_SUM, 0, &o);
  if (cx_lazy_tensor_poisoned(grad)) return;
  cx_lazy_tensor_set_grad(s->own, calx_retain(cx_lazy_tensor_detached(grad)));
}

// ---- gradients that are reduced before the step -----------------------------

void cx_dist_zero_forget(cx_dist_zero *z)
{
  for (size_t i = 0; z->seen != NULL && i < z->n_seen; i++) {
    calx_release(z->seen[i]);
  }
  cx_free(z->seen);
  z->seen = NULL;
}

// Whether the shards' gradients were reduced from the parameters' present ones.
static bool has_them(const cx_dist_zero *z)
{
  bool same = z->seen != NULL && z->n_seen == z->base.n;
  for (size_t i = 0; i < z->n && same; i++) {
    const calx_tensor *grad = cx_lazy_tensor_grad(z->list[i].own);
    same = grad != NULL && !cx_lazy_tensor_poisoned(grad);
  }
  for (size_t i = 0; i < z->base.n && same; i++) {
    const calx_tensor *grad = gradient_of(&z->base.params[i]);
    same = grad != NULL && !cx_lazy_tensor_poisoned(z->seen[i]) &&
           cx_lazy_tensor_value(grad).node ==
               cx_lazy_tensor_value(z->seen[i]).node;
  }
  return same;
}

calx_status *cx_dist_zero_reduce(calx_optimizer *opt)
{
  cx_dist_zero *z = (cx_dist_zero *)opt;
  bool any;
  cx_dist_zero_forget(z);
  calx_optimizer_zero_grad(opt->inner);
  CALX_TRY(check_gradients(z, &any));
  if (!any) return NULL;
  z->seen = cx_calloc(opt->n, sizeof *z->seen);
  if (z->seen == NULL) return cx_out_of_memory();
  z->n_seen = opt->n;
  for (size_t i = 0; i < opt->n; i++) {
    calx_tensor *grad = gradient_of(&opt->params[i]);
    z->seen[i] = calx_retain(cx_lazy_tensor_detached(grad));
  }
  for (size_t i = 0; i < z->n; i++) scatter(z, &z->list[i]);
  return NULL;
}

// ---- a step -----------------------------------------------------------------

calx_status *cx_dist_zero_step(calx_optimizer *opt)
{
  cx_dist_zero *z = (cx_dist_zero *)opt;
  bool any, reduced = has_them(z);
  cx_dist_zero_forget(z);
  CALX_TRY(check_gradients(z, &any));
  if (!any) return NULL;
  calx_scope *scope = calx_scope_begin();
  cx_lazy_no_grad_begin();
  for (size_t i = 0; i < z->n; i++) {
    if (!reduced) scatter(z, &z->list[i]);
    assign(z->list[i].own, own_part(z, &z->list[i]));
  }
  calx_optimizer_step(opt->inner);
  for (size_t i = 0; i < z->n && calx_scope_error() == NULL; i++) {
    split(z, &z->list[i]);
  }
  bool consume = !opt->keep_gradients && calx_scope_error() == NULL;
  for (size_t i = 0; i < opt->n && consume; i++) {
    cx_lazy_tensor_mark(cx_lazy_tensor_grad(opt->params[i].tensor),
                        CX_LAZY_T_CONSUMED);
  }
  cx_lazy_no_grad_end();
  return calx_scope_end(scope);
}
