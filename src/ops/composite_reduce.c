// ops/composite_reduce: statistics and norms over a set of dimensions, composed
// of public ops.
#include <math.h>

#include "base/dtype.h"
#include "calx/complex.h"
#include "ops/composite.h"

static calx_tensor *number(double value)
{
  return cx_ops_number(value);
}

// The same dimensions, kept with size 1.
static calx_reduce_options kept(const calx_reduce_options *o)
{
  calx_reduce_options k = { .size = sizeof k, .keepdim = true };
  if (o != NULL) k.dims = o->dims;
  return k;
}

// How many elements of x are reduced to one. What does not fit is reported by
// the reduction.
static int64_t count_of(const calx_tensor *x, calx_dims dims)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (dims.count == 0) return cx_graph_shape_numel(s);
  int64_t n = 1;
  for (size_t i = 0; i < dims.count && i < s->rank; i++) {
    uint32_t d;
    if (cx_ops_dim(dims.values[i], s->rank, &d)) n *= s->dims[d];
  }
  return n;
}

// ---- variance ---------------------------------------------------------------

static calx_tensor *variance(const char *op, calx_tensor *x,
                             const calx_var_options *o)
{
  static const calx_var_options none = { .size = sizeof none };
  calx_tensor *bad;
  if (cx_ops_unfit(op, &x, 1, &bad)) return bad;
  if (o == NULL) o = &none;
  if (!cx_ops_options_fit(op, o->size, sizeof *o, &bad)) return bad;
  double correction = cx_is_default(o->correction) ? 1 : o->correction;
  calx_reduce_options r = { .size = sizeof r,
                            .dims = o->dims,
                            .keepdim = o->keepdim };
  calx_reduce_options k = kept(&r);
  calx_tensor *apart = cx_ops_minus(x, calx_mean_with(x, &k));
  calx_tensor *square = cx_dtype_is_complex(cx_lazy_tensor_shape(x)->dtype)
                            ? calx_real(calx_mul(apart, calx_conj(apart)))
                            : calx_square(apart);
  double n = (double)count_of(x, o->dims) - correction;
  return calx_div(calx_sum_with(square, &r), number(n > 0 ? n : 0));
}

calx_tensor *calx_var_with(calx_tensor *x, const calx_var_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("var");
  return variance("var", x, o);
}

// The square root, with gradient 0 at 0.
static calx_tensor *root(calx_tensor *x)
{
  calx_tensor *zero = calx_eq(x, number(0));
  return calx_where(zero, number(0), calx_sqrt(calx_where(zero, number(1), x)));
}

calx_tensor *calx_std_with(calx_tensor *x, const calx_var_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("std");
  return root(variance("std", x, o));
}

// ---- norms ------------------------------------------------------------------

// (sum |x|^2)^(1/2), with gradient 0 where all are 0.
static calx_tensor *euclidean(calx_tensor *x, const calx_reduce_options *o)
{
  return root(calx_sum_with(calx_square(x), o));
}

calx_tensor *calx_norm_with(calx_tensor *x, const calx_norm_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("norm");
  calx_tensor *bad;
  if (cx_ops_unfit("norm", &x, 1, &bad)) return bad;
  if (cx_dtype_is_complex(cx_lazy_tensor_shape(x)->dtype)) x = calx_abs(x);
  if (!cx_dtype_is_float(cx_lazy_tensor_shape(x)->dtype)) {
    return cx_ops_invalid(
        "norm: %s, a floating type is wanted; convert it with calx_to_dtype",
        cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  CX_OPS_TAKE_OPTIONS(norm, o, bad);
  double p = cx_is_default(o->p) ? 2 : o->p;
  calx_reduce_options r = { .size = sizeof r,
                            .dims = o->dims,
                            .keepdim = o->keepdim };
  if (p == 2) return euclidean(x, &r);
  calx_tensor *size = calx_abs(x);
  if (isinf(p))
    return p > 0 ? calx_amax_with(size, &r) : calx_amin_with(size, &r);
  if (p == 1) return calx_sum_with(size, &r);
  if (p == 0) {
    calx_tensor *some =
        calx_to_dtype(calx_ne(x, number(0)), cx_lazy_tensor_shape(x)->dtype);
    return calx_sum_with(some, &r);
  }
  calx_tensor *sum = calx_sum_with(calx_pow(size, number(p)), &r);
  return calx_pow(sum, number(1 / p));
}

calx_tensor *calx_normalize_with(calx_tensor *x,
                                 const calx_normalize_options *o)
{
  CX_OPS_COMPOSITE("normalize");
  calx_tensor *bad;
  if (!cx_ops_floating("normalize", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(normalize, o, bad);
  int64_t dim = o->dim == 0 ? 1 : o->dim == CALX_ZERO_INT ? 0 : o->dim;
  calx_norm_options n = {
    .size = sizeof n, .p = o->p, .dims = calx_dims_of(&dim, 1), .keepdim = true
  };
  calx_tensor *norm = calx_norm_with(x, &n);
  return calx_div(x, calx_clamp_min(norm, cx_ops_given(o->eps, 1e-12)));
}

calx_tensor *calx_cosine_similarity_with(
    calx_tensor *x, calx_tensor *y, const calx_cosine_similarity_options *o)
{
  CX_OPS_COMPOSITE("cosine_similarity");
  calx_tensor *in[2] = { x, y }, *bad;
  if (!cx_ops_floating("cosine_similarity", in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(cosine_similarity, o, bad);
  int64_t dim = o->dim == 0 ? 1 : o->dim == CALX_ZERO_INT ? 0 : o->dim;
  calx_reduce_options r = { .size = sizeof r, .dims = calx_dims_of(&dim, 1) };
  calx_reduce_options k = kept(&r);
  for (int i = 0; i < 2; i++) {
    calx_tensor *norm = euclidean(in[i], &k);
    in[i] = calx_div(in[i], calx_clamp_min(norm, cx_ops_given(o->eps, 1e-8)));
  }
  return calx_sum_with(calx_mul(in[0], in[1]), &r);
}

// ---- others -----------------------------------------------------------------

calx_tensor *calx_logsumexp_with(calx_tensor *x, const calx_reduce_options *o)
{
  CX_OPS_COMPOSITE("logsumexp");
  calx_tensor *bad;
  if (!cx_ops_floating("logsumexp", &x, 1, &bad)) return bad;
  if (count_of(x, o != NULL ? o->dims : CALX_SCALAR) == 0) {
    return calx_log(calx_sum_with(calx_exp(x), o));
  }
  calx_reduce_options k = kept(o);
  calx_tensor *most = calx_detach(calx_amax_with(x, &k));
  most = calx_where(calx_isinf(most), number(0), most);
  calx_tensor *log =
      calx_log(calx_sum_with(calx_exp(cx_ops_minus(x, most)), &k));
  log = cx_ops_plus(log, most);
  return o != NULL && o->keepdim ? log : calx_sum_with(log, o);
}

calx_tensor *calx_count_nonzero_with(calx_tensor *x,
                                     const calx_reduce_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("count_nonzero");
  calx_tensor *bad;
  if (cx_ops_unfit("count_nonzero", &x, 1, &bad)) return bad;
  return calx_sum_with(calx_to_dtype(x, CALX_BOOL), o);
}

calx_tensor *calx_nansum_with(calx_tensor *x, const calx_reduce_options *o)
{
  CX_OPS_COMPOSITE("nansum");
  return calx_sum_with(calx_where(calx_isnan(x), number(0), x), o);
}

calx_tensor *calx_nanmean_with(calx_tensor *x, const calx_reduce_options *o)
{
  CX_OPS_COMPOSITE("nanmean");
  calx_tensor *bad;
  if (cx_ops_unfit("nanmean", &x, 1, &bad)) return bad;
  calx_tensor *there = calx_logical_not(calx_isnan(x));
  return calx_div(calx_nansum_with(x, o), calx_sum_with(there, o));
}

// ---- two results ------------------------------------------------------------

calx_tensor *calx_aminmax_with(calx_tensor *x, calx_tensor **out_max,
                               const calx_reduce_options *o)
{
  CX_OPS_COMPOSITE("aminmax");
  if (out_max != NULL) *out_max = NULL;
  if (o != NULL && o->dims.count > 1) {
    return cx_ops_invalid("aminmax: %zu dims, one at most is wanted",
                          o->dims.count);
  }
  if (out_max != NULL) *out_max = calx_amax_with(x, o);
  return calx_amin_with(x, o);
}

// The mean over the dimensions of a variance.
static void mean_too(calx_tensor *x, const calx_var_options *o,
                     calx_tensor **out_mean)
{
  calx_reduce_options r = { .size = sizeof r };
  if (out_mean == NULL) return;
  if (o != NULL) r.dims = o->dims;
  if (o != NULL) r.keepdim = o->keepdim;
  *out_mean = calx_mean_with(x, &r);
}

calx_tensor *calx_var_mean_with(calx_tensor *x, calx_tensor **out_mean,
                                const calx_var_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("var_mean");
  calx_tensor *var = variance("var_mean", x, o);
  mean_too(x, o, out_mean);
  return var;
}

calx_tensor *calx_std_mean_with(calx_tensor *x, calx_tensor **out_mean,
                                const calx_var_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("std_mean");
  calx_tensor *var = variance("std_mean", x, o);
  mean_too(x, o, out_mean);
  return root(var);
}
