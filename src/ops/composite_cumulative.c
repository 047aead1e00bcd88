// ops/composite_cumulative: sums, products and extremes of all elements up to
// each, along a dimension.
//
// Sums of real numbers are a window_sum, whose windows reach back to the first
// element: compilers know that form. Of all else each element takes in, in
// log2(n) steps, the one at twice the distance (W. Hillis and G. Steele, Data
// Parallel Algorithms, 1986): these are elementwise ops of the whole tensor on
// every backend, and have gradients that are exact also at zeros.
#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"
#include "ops/window_sum.h"

// The sums along dimension d, of an x that has elements.
static calx_tensor *window_sums(calx_tensor *x, uint32_t d)
{
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  const int64_t n = s.dims[d];
  cx_graph_shape four = { .rank = 4, .dims = { 1, 1, n, 1 } };
  for (uint32_t i = 0; i < s.rank; i++) {
    if (i != d) four.dims[i < d ? 0 : 3] *= s.dims[i];
  }
  const cx_ops_windows w = { .n = 2,
                             .window = { n, 1 },
                             .stride = { 1, 1 },
                             .dilation = { 1, 1 },
                             .low = { n - 1, 0 } };
  x = cx_ops_reshape_to(x, &four);
  return cx_ops_reshape_to(cx_ops_record(&cx_ops_window_sum, &x, 1, &w), &s);
}

// Checks the arguments; integers become i64. NULL: `x` and `out_dim` are good;
// else what the op returns.
static calx_tensor *begin(const char *op, calx_tensor **x, int dim,
                          uint32_t *out_dim)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op, x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(*x);
  if (!cx_ops_dim(dim, s->rank, out_dim)) {
    return cx_ops_no_dim(op, "dim", dim, s->rank, s);
  }
  if (!cx_dtype_is_inexact(s->dtype)) *x = calx_to_dtype(*x, CALX_I64);
  return s->rank == 0 ? *x : NULL;
}

static calx_tensor *combine_all(calx_tensor *x, uint32_t d, double neutral,
                                calx_tensor *(*combine)(calx_tensor *,
                                                        calx_tensor *))
{
  const int64_t n = cx_lazy_tensor_shape(x)->dims[d];
  for (int64_t by = 1; by < n; by = by < n - by ? 2 * by : n) {
    x = combine(x, cx_ops_pad_dim(x, d, by, -by, neutral));
  }
  return x;
}

static calx_tensor *scan(const char *op, calx_tensor *x, int dim,
                         double neutral,
                         calx_tensor *(*combine)(calx_tensor *, calx_tensor *))
{
  uint32_t d;
  calx_tensor *done = begin(op, &x, dim, &d);
  return done != NULL ? done : combine_all(x, d, neutral, combine);
}

calx_tensor *calx_cumsum(calx_tensor *x, int dim)
{
  CX_OPS_COMPOSITE_COMPLEX("cumsum");
  uint32_t d;
  calx_tensor *done = begin("cumsum", &x, dim, &d);
  if (done != NULL) return done;
  if (cx_dtype_is_complex(calx_tensor_dtype(x)) || calx_tensor_numel(x) == 0) {
    return combine_all(x, d, 0, cx_ops_plus);
  }
  return window_sums(x, d);
}

calx_tensor *calx_cumprod(calx_tensor *x, int dim)
{
  CX_OPS_COMPOSITE_COMPLEX("cumprod");
  return scan("cumprod", x, dim, 1, calx_mul);
}

calx_tensor *calx_logcumsumexp(calx_tensor *x, int dim)
{
  CX_OPS_COMPOSITE("logcumsumexp");
  if (!cx_ops_floating("logcumsumexp", &x, 1, &x)) return x;
  return scan("logcumsumexp", x, dim, -(double)INFINITY, calx_logaddexp);
}

// The extreme so far and where it is; the gradient goes to that element.
static calx_tensor *extreme(const char *op, calx_tensor *x, int dim,
                            calx_tensor *(*wins)(calx_tensor *, calx_tensor *),
                            calx_tensor **out_indices)
{
  calx_tensor *bad;
  uint32_t d;
  if (out_indices != NULL) *out_indices = NULL;
  if (cx_ops_unfit(op, &x, 1, &bad)) return bad;
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  if (!cx_ops_dim(dim, s.rank, &d)) {
    return cx_ops_no_dim(op, "dim", dim, s.rank, &s);
  }
  calx_tensor *at = calx_to_dtype(cx_ops_zeros_like(x), CALX_I64);
  int64_t n = s.rank == 0 ? 1 : s.dims[d];
  if (s.rank != 0) {
    calx_create_options o = { .size = sizeof o,
                              .dtype = CALX_I64,
                              .device = calx_tensor_device(x) };
    cx_graph_shape along = { .rank = s.rank - d };
    for (uint32_t i = 0; i < along.rank; i++) along.dims[i] = i == 0 ? n : 1;
    calx_tensor *count = calx_arange_with(0, (double)n, 1, &o);
    at = cx_ops_plus(at, cx_ops_reshape_to(count, &along));
  }
  for (int64_t by = 1; by < n; by = by < n - by ? 2 * by : n) {
    calx_tensor *before = cx_ops_pad_dim(x, d, by, -by, 0);
    calx_tensor *from = cx_ops_pad_dim(at, d, by, -by, -1);
    // Of NaN the last one, and nothing where there is no element before.
    calx_tensor *keep = calx_logical_or(wins(x, before), calx_isnan(x));
    keep = calx_logical_or(keep, calx_lt(from, calx_scalar_int(0)));
    x = calx_where(keep, x, before);
    at = calx_where(keep, at, from);
  }
  if (out_indices != NULL) *out_indices = at;
  return x;
}

calx_tensor *calx_cummax(calx_tensor *x, int dim, calx_tensor **out_indices)
{
  CX_OPS_COMPOSITE("cummax");
  return extreme("cummax", x, dim, calx_ge, out_indices);
}

calx_tensor *calx_cummin(calx_tensor *x, int dim, calx_tensor **out_indices)
{
  CX_OPS_COMPOSITE("cummin");
  return extreme("cummin", x, dim, calx_le, out_indices);
}
