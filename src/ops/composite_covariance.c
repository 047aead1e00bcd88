// ops/composite_covariance: differences and covariances, composed of public
// ops.
#include "base/dtype.h"
#include "ops/composite.h"

// ---- differences ------------------------------------------------------------

// x between what is to stand in front of it and behind it.
static calx_tensor *extended(calx_tensor *x, const calx_diff_options *o,
                             uint32_t dim)
{
  calx_tensor *parts[3];
  size_t n = 0;
  if (o->prepend != NULL) parts[n++] = o->prepend;
  parts[n++] = x;
  if (o->append != NULL) parts[n++] = o->append;
  return n == 1 ? x : calx_cat(parts, n, (int)dim);
}

calx_tensor *calx_diff_with(calx_tensor *x, const calx_diff_options *o)
{
  CX_OPS_COMPOSITE("diff");
  calx_tensor *bad;
  uint32_t d = 0;
  if (cx_ops_unfit("diff", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(diff, o, bad);
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int dim = o->dim == 0 ? -1 : o->dim == INT32_MIN ? 0 : o->dim;
  int64_t n = o->n == 0 ? 1 : o->n == CALX_ZERO_INT ? 0 : o->n;
  if (s->rank == 0 || n < 0) {
    return cx_ops_invalid(
        "diff: n is %lld, of %s: n >= 0 and rank >= 1 are "
        "wanted",
        (long long)n, cx_graph_shape_str(s));
  }
  if (!cx_ops_dim(dim, s->rank, &d)) {
    return cx_ops_no_dim("diff", "dim", dim, s->rank, s);
  }
  if (n == 0) return x;
  x = extended(x, o, d);
  for (int64_t i = 0; i < n && !cx_lazy_tensor_poisoned(x); i++) {
    s = cx_lazy_tensor_shape(x);
    int64_t size = s->dims[d];
    if (size == 0) break;
    calx_tensor *after = calx_slice(x, (int)d, 1, size, 1);
    calx_tensor *before = calx_slice(x, (int)d, 0, size - 1, 1);
    x = s->dtype == CALX_BOOL ? calx_ne(after, before)
                              : cx_ops_minus(after, before);
  }
  return x;
}

// ---- covariances ------------------------------------------------------------

// The sum along the last dimension, which stays.
static calx_tensor *row_sums(calx_tensor *x)
{
  int64_t last = -1;
  calx_reduce_options r = { .size = sizeof r,
                            .dims = calx_dims_of(&last, 1),
                            .keepdim = true };
  return calx_sum_with(x, &r);
}

// The weight of each observation, NULL: 1. False: *out is what the function
// returns.
static bool weights_of(calx_tensor *x, const calx_cov_options *o,
                       calx_tensor **weights, calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  calx_tensor *given[2] = { o->fweights, o->aweights };
  *weights = NULL;
  for (int i = 0; i < 2; i++) {
    if (given[i] == NULL) continue;
    if (cx_ops_unfit("cov", &given[i], 1, out)) return false;
    const cx_graph_shape *w = cx_lazy_tensor_shape(given[i]);
    bool fits = w->rank == 1 && w->dims[0] == s->dims[1];
    if (!fits || cx_dtype_is_float(w->dtype) != (i == 1)) {
      *out = cx_ops_invalid(
          "cov: .%s is %s, %s of (%lld) are wanted",
          i == 0 ? "fweights" : "aweights", cx_graph_shape_str(w),
          i == 0 ? "integers" : "floats", (long long)s->dims[1]);
      return false;
    }
    calx_tensor *one = calx_to_dtype(given[i], s->dtype);
    *weights = *weights == NULL ? one : calx_mul(*weights, one);
  }
  return true;
}

// (k, n) of floats as (k, k).
static calx_tensor *covariance(calx_tensor *x, const calx_cov_options *o)
{
  calx_tensor *w, *out;
  if (!weights_of(x, o, &w, &out)) return out;
  double correction = cx_is_default(o->correction) ? 1 : o->correction;
  double n = (double)cx_lazy_tensor_shape(x)->dims[1];
  calx_tensor *mean, *by;
  if (w == NULL) {
    mean = calx_div(row_sums(x), cx_ops_number(n));
    by = cx_ops_number(n > correction ? n - correction : 0);
  } else {
    calx_tensor *sum = row_sums(w);
    mean = calx_div(row_sums(calx_mul(x, w)), sum);
    calx_tensor *less = calx_scalar(correction);
    if (o->aweights != NULL) {
      calx_tensor *a =
          calx_to_dtype(o->aweights, cx_lazy_tensor_shape(x)->dtype);
      less = calx_mul(less, calx_div(row_sums(calx_mul(w, a)), sum));
    }
    by = calx_clamp_min(cx_ops_minus(sum, less), cx_ops_number(0));
  }
  calx_tensor *apart = cx_ops_minus(x, mean);
  calx_tensor *weighted = w == NULL ? apart : calx_mul(apart, w);
  return calx_div(calx_matmul(apart, calx_t(weighted)), by);
}

// x as (k, n) of floats. False: *out is what the function returns.
static bool take_rows(const char *op, calx_tensor **x, calx_tensor **out)
{
  if (!cx_ops_floating(op, x, 1, out)) return false;
  if (cx_lazy_tensor_shape(*x)->rank > 2) {
    *out = cx_ops_invalid("%s: %s, rank 2 at most is wanted", op,
                          cx_graph_shape_str(cx_lazy_tensor_shape(*x)));
    return false;
  }
  *x = calx_atleast_2d(*x);
  return true;
}

calx_tensor *calx_cov_with(calx_tensor *x, const calx_cov_options *o)
{
  CX_OPS_COMPOSITE("cov");
  calx_tensor *bad;
  if (!take_rows("cov", &x, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(cov, o, bad);
  bool one = cx_lazy_tensor_shape(x)->dims[0] == 1;
  x = covariance(x, o);
  return one ? calx_reshape(x, CALX_SCALAR) : x;
}

calx_tensor *calx_corrcoef(calx_tensor *x)
{
  CX_OPS_COMPOSITE("corrcoef");
  static const calx_cov_options none = { .size = sizeof none };
  calx_tensor *bad;
  if (!take_rows("corrcoef", &x, &bad)) return bad;
  bool one = cx_lazy_tensor_shape(x)->dims[0] == 1;
  x = covariance(x, &none);
  calx_tensor *deviations = calx_sqrt(calx_diagonal_with(x, NULL));
  x = calx_div(calx_div(x, calx_unsqueeze(deviations, 1)), deviations);
  x = calx_clamp(x, cx_ops_number(-1), cx_ops_number(1));
  return one ? calx_reshape(x, CALX_SCALAR) : x;
}
