// autograd/functional: derivatives of functions of one tensor, by backward
// passes.
#include "base/alloc.h"
#include "base/dtype.h"
#include "base/options.h"
#include "calx/function.h"
#include "ops/ops.h"

static const calx_functional_options no_options = { .size = sizeof no_options };

typedef struct subject {
  const char *call;
  calx_tensor *x, *y;
  bool create_graph, strict;
} subject;

// Calls the function on x, or on a leaf with its value where the results need
// no history.
static calx_status *evaluate(subject *s, calx_tensor_fn *fn, void *user,
                             calx_tensor *x, const calx_functional_options *o)
{
  CALX_TRY(cx_options_check(s->call, o->size, sizeof *o));
  if (fn == NULL || x == NULL) {
    return cx_invalid("%s: the function or x is NULL", s->call);
  }
  CALX_TRY(cx_lazy_tensor_usable(x, s->call, 0));
  if (!cx_dtype_is_float(cx_lazy_tensor_shape(x)->dtype)) {
    return cx_invalid("%s: x is %s, only floating types have gradients",
                      s->call, cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  s->create_graph = o->create_graph;
  s->strict = o->strict;
  s->x = x;
  if (!o->create_graph || !cx_lazy_tensor_requires_grad(x)) {
    s->x = cx_lazy_tensor_detached(x);
    calx_requires_grad(s->x, true);
  }
  cx_lazy_grad_region_begin(true);
  s->y = fn(user, s->x);
  cx_lazy_grad_region_end(true);
  if (s->y == NULL) {
    return cx_invalid("%s: the function gave NULL", s->call);
  }
  CALX_TRY(cx_lazy_tensor_usable(s->y, s->call, 1));
  if (cx_lazy_tensor_requires_grad(s->y) || !s->strict) return NULL;
  return cx_invalid("%s: the output does not depend on x, and .strict is set",
                    s->call);
}

// d(sum(v y))/dx; zeros where y does not depend on x.
static calx_tensor *pull(const subject *s, calx_tensor *y, calx_tensor *x,
                         calx_tensor *v, bool create_graph)
{
  if (!cx_lazy_tensor_requires_grad(y)) return cx_ops_zeros_like(x);
  calx_tensor *g = NULL;
  calx_grad_of_options o = { .size = sizeof o,
                             .gradient = v,
                             .create_graph = create_graph,
                             .retain_graph = true,
                             .allow_unused = !s->strict,
                             .materialize_grads = !s->strict };
  calx_grad_of_with(y, &x, 1, &g, &o);
  return g != NULL ? g
                   : cx_lazy_tensor_poison(cx_status_copy(calx_scope_error()));
}

static calx_tensor *shaped(calx_tensor *t, const cx_graph_shape *first,
                           const cx_graph_shape *second)
{
  int64_t dims[2 * CALX_MAX_RANK];
  size_t n = 0;
  for (uint32_t i = 0; i < first->rank; i++) dims[n++] = first->dims[i];
  for (uint32_t i = 0; i < second->rank; i++) dims[n++] = second->dims[i];
  return calx_reshape(t, calx_dims_of(dims, n));
}

// ---- Jacobian and Hessian ---------------------------------------------------

static calx_tensor *jacobian(const subject *s)
{
  const cx_graph_shape ys = *cx_lazy_tensor_shape(s->y),
                       xs = *cx_lazy_tensor_shape(s->x);
  if (ys.rank + xs.rank > CALX_MAX_RANK) {
    return cx_lazy_tensor_poison(
        cx_invalid("%s: the output is %s and x is %s: together they have more "
                   "than %d dimensions",
                   s->call, cx_graph_shape_str(&ys), cx_graph_shape_str(&xs),
                   CALX_MAX_RANK));
  }
  int64_t n = cx_graph_shape_numel(&ys), one = 1;
  calx_tensor *flat = calx_reshape(s->y, calx_dims_of(&n, 1));
  if (n == 0) {
    calx_create_options o = { .size = sizeof o,
                              .dtype = xs.dtype,
                              .device = calx_tensor_device(s->x) };
    calx_tensor *none = calx_zeros_with(calx_dims_of(&n, 1), &o);
    return shaped(none, &ys, &xs);
  }
  calx_tensor **rows = cx_calloc((size_t)n, sizeof(calx_tensor *));
  if (rows == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  for (int64_t i = 0; i < n && calx_scope_error() == NULL; i++) {
    calx_tensor *y = calx_select(flat, 0, i);
    rows[i] = calx_reshape(pull(s, y, s->x, NULL, s->create_graph),
                           calx_dims_of((int64_t[]){ 1, -1 }, 2));
  }
  (void)one;
  calx_tensor *all =
      calx_scope_error() == NULL
          ? calx_cat(rows, (size_t)n, 0)
          : cx_lazy_tensor_poison(cx_status_copy(calx_scope_error()));
  cx_free(rows);
  return shaped(all, &ys, &xs);
}

calx_tensor *calx_jacobian_with(calx_tensor_fn *fn, void *user, calx_tensor *x,
                                const calx_functional_options *options)
{
  if (options == NULL) options = &no_options;
  subject s = { .call = "jacobian" };
  calx_status *status = evaluate(&s, fn, user, x, options);
  return status != NULL ? cx_lazy_tensor_poison(status) : jacobian(&s);
}

calx_tensor *calx_hessian_with(calx_tensor_fn *fn, void *user, calx_tensor *x,
                               const calx_functional_options *options)
{
  if (options == NULL) options = &no_options;
  subject s = { .call = "hessian" };
  calx_status *status = evaluate(&s, fn, user, x, options);
  if (status == NULL && cx_graph_shape_numel(cx_lazy_tensor_shape(s.y)) != 1) {
    status = cx_invalid("hessian: the output is %s, one element is wanted",
                        cx_graph_shape_str(cx_lazy_tensor_shape(s.y)));
  }
  if (status != NULL) return cx_lazy_tensor_poison(status);
  s.y = pull(&s, s.y, s.x, NULL, true);
  return jacobian(&s);
}

// ---- products ---------------------------------------------------------------

static calx_status *check_v(const subject *s, const calx_tensor *v,
                            const calx_tensor *like, const char *which)
{
  const cx_graph_shape *want = cx_lazy_tensor_shape(like);
  if (v == NULL) {
    if (cx_graph_shape_numel(want) == 1) return NULL;
    return cx_invalid(
        "%s: v may be NULL only where %s has one element, it is "
        "%s",
        s->call, which, cx_graph_shape_str(want));
  }
  CALX_TRY(cx_lazy_tensor_usable(v, s->call, 1));
  if (cx_graph_shape_equal(want, cx_lazy_tensor_shape(v))) return NULL;
  return cx_invalid("%s: v is %s, %s is %s", s->call,
                    cx_graph_shape_str(cx_lazy_tensor_shape(v)), which,
                    cx_graph_shape_str(want));
}

static calx_tensor *value(const subject *s)
{
  return s->create_graph ? s->y : cx_lazy_tensor_detached(s->y);
}

calx_tensor *calx_vjp_with(calx_tensor_fn *fn, void *user, calx_tensor *x,
                           calx_tensor *v, calx_tensor **out_value,
                           const calx_functional_options *options)
{
  if (options == NULL) options = &no_options;
  if (out_value != NULL) *out_value = NULL;
  subject s = { .call = "vjp" };
  calx_status *status = evaluate(&s, fn, user, x, options);
  if (status == NULL) status = check_v(&s, v, s.y, "the output");
  if (status != NULL) return cx_lazy_tensor_poison(status);
  if (out_value != NULL) *out_value = value(&s);
  return pull(&s, s.y, s.x, v, s.create_graph);
}

// u^T J is linear in u, so its own gradient along v is J v.
calx_tensor *calx_jvp_with(calx_tensor_fn *fn, void *user, calx_tensor *x,
                           calx_tensor *v, calx_tensor **out_value,
                           const calx_functional_options *options)
{
  if (options == NULL) options = &no_options;
  if (out_value != NULL) *out_value = NULL;
  subject s = { .call = "jvp" };
  calx_status *status = evaluate(&s, fn, user, x, options);
  if (status == NULL) status = check_v(&s, v, s.x, "x");
  if (status != NULL) return cx_lazy_tensor_poison(status);
  if (out_value != NULL) *out_value = value(&s);
  calx_tensor *u = cx_ops_zeros_like(s.y);
  calx_requires_grad(u, true);
  calx_tensor *g = pull(&s, s.y, s.x, u, true);
  return pull(&s, g, u, v, s.create_graph);
}
