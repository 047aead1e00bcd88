// ops/composite_vector: products and distances of vectors and batches, composed
// of public ops.
#include "calx/creation.h"

#include "base/dtype.h"
#include "ops/composite.h"

static double given(double option, double or_else)
{
  return cx_is_default(option) ? or_else : option;
}

calx_tensor *calx_dist_with(calx_tensor *x, calx_tensor *y,
                            const calx_dist_options *o)
{
  CX_OPS_COMPOSITE("dist");
  calx_tensor *in[2] = { x, y }, *bad;
  if (!cx_ops_floating("dist", in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(dist, o, bad);
  calx_norm_options n = { .size = sizeof n, .p = o->p };
  return calx_norm_with(cx_ops_minus(in[0], in[1]), &n);
}

calx_tensor *calx_inner(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE_COMPLEX("inner");
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("inner", in, 2, &bad)) return bad;
  const cx_graph_shape *a = cx_lazy_tensor_shape(x);
  const cx_graph_shape *b = cx_lazy_tensor_shape(y);
  if (a->dtype != b->dtype) {
    return cx_ops_invalid(
        "inner: %s and %s: one type is wanted; convert with calx_to_dtype",
        cx_graph_shape_str(a), cx_graph_shape_str(b));
  }
  if (a->rank == 0 || b->rank == 0) return calx_mul(x, y);
  if (a->dims[a->rank - 1] != b->dims[b->rank - 1]) {
    return cx_ops_invalid("inner: the last dimensions of %s and %s differ",
                          cx_graph_shape_str(a), cx_graph_shape_str(b));
  }
  calx_tensordot_options last = { .size = sizeof last };
  last.x_dims = (calx_dims){ .count = 1, .values = { a->rank - 1 } };
  last.y_dims = (calx_dims){ .count = 1, .values = { b->rank - 1 } };
  return calx_tensordot_with(x, y, &last);
}

calx_tensor *calx_vdot(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE_COMPLEX("vdot");
  return calx_dot(calx_conj(x), y);
}

calx_tensor *calx_addbmm_with(calx_tensor *input, calx_tensor *x,
                              calx_tensor *y, const calx_addmm_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("addbmm");
  calx_tensor *in[3] = { input, x, y }, *bad;
  if (cx_ops_unfit("addbmm", in, 3, &bad)) return bad;
  const cx_graph_shape *a = cx_lazy_tensor_shape(x);
  const cx_graph_shape *b = cx_lazy_tensor_shape(y);
  if (a->rank != 3 || b->rank != 3 || a->dims[0] != b->dims[0] ||
      a->dims[2] != b->dims[1]) {
    return cx_ops_invalid(
        "addbmm: %s and %s: batches (b, n, k) and (b, k, m) are wanted",
        cx_graph_shape_str(a), cx_graph_shape_str(b));
  }
  // The sum of the products is one product over the joined b and k.
  int64_t k = a->dims[0] * a->dims[2];
  int64_t left[2] = { a->dims[1], k }, right[2] = { k, b->dims[2] };
  x = calx_reshape(calx_transpose(x, 0, 1), calx_dims_of(left, 2));
  y = calx_reshape(y, calx_dims_of(right, 2));
  return calx_addmm_with(input, x, y, o);
}

calx_tensor *calx_renorm(calx_tensor *x, double p, int dim, double maxnorm)
{
  CX_OPS_COMPOSITE("renorm");
  calx_tensor *bad;
  uint32_t d = 0;
  if (cx_ops_unfit("renorm", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank < 2 || !cx_dtype_is_float(s->dtype)) {
    return cx_ops_invalid("renorm: %s, floats of rank 2 or more are wanted",
                          cx_graph_shape_str(s));
  }
  if (!cx_ops_dim(dim, s->rank, &d)) {
    return cx_ops_no_dim("renorm", "dim", dim, s->rank, s);
  }
  if (!(p > 0) || !(maxnorm >= 0)) {
    return cx_ops_invalid(
        "renorm: p %g and maxnorm %g: a p above 0 and a norm of 0 or more are "
        "wanted",
        p, maxnorm);
  }
  calx_norm_options n = { .size = sizeof n, .keepdim = true, .p = p };
  for (uint32_t i = 0; i < s->rank; i++) {
    if (i != d) n.dims.values[n.dims.count++] = i;
  }
  calx_tensor *norm = calx_norm_with(x, &n);
  calx_tensor *most = calx_scalar(maxnorm);
  calx_tensor *by = calx_div(most, cx_ops_plus(norm, cx_ops_number(1e-7)));
  return calx_mul(x, calx_where(calx_gt(norm, most), by, cx_ops_number(1)));
}

calx_tensor *calx_pdist_with(calx_tensor *x, const calx_dist_options *o)
{
  CX_OPS_COMPOSITE("pdist");
  calx_tensor *bad;
  if (cx_ops_unfit("pdist", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(dist, o, bad);
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank != 2 || !cx_dtype_is_float(s->dtype) || !(given(o->p, 2) >= 0)) {
    return cx_ops_invalid(
        "pdist: %s and p %g: floats of rank 2 and a p of 0 or more are wanted",
        cx_graph_shape_str(s), given(o->p, 2));
  }
  calx_create_options here = { .size = sizeof here,
                               .device = calx_tensor_device(x) };
  calx_tensor *pairs = calx_triu_indices_with(s->dims[0], s->dims[0], 1, &here);
  calx_tensor *way =
      cx_ops_minus(calx_index_select(x, 0, calx_select(pairs, 0, 0)),
                   calx_index_select(x, 0, calx_select(pairs, 0, 1)));
  calx_norm_options n = { .size = sizeof n, .p = o->p };
  n.dims = (calx_dims){ .count = 1, .values = { 1 } };
  return calx_norm_with(way, &n);
}
