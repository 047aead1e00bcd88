// ops/composite_integral: integrals, slopes and histograms of samples, composed
// of public ops.
#include <math.h>

#include "calx/creation.h"

#include "base/dtype.h"
#include "ops/composite.h"
#include "ops/gather.h"
#include "ops/histogram.h"

static double given(double option, double or_else)
{
  return cx_is_default(option) ? or_else : option;
}

// A vector along dimension dim of `rank`.
static calx_tensor *along(calx_tensor *v, uint32_t dim, uint32_t rank)
{
  int64_t dims[CALX_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) dims[i] = i == dim ? -1 : 1;
  return calx_reshape(v, calx_dims_of(dims, rank));
}

// ---- integrals --------------------------------------------------------------

// The areas between neighbours along a dimension. False: *out is what the
// function returns.
static bool trapezoids(const char *op, calx_tensor *y,
                       const calx_trapezoid_options *o, uint32_t *dim,
                       calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(y);
  int d = o->dim == INT32_MIN ? 0 : o->dim == 0 ? -1 : o->dim;
  if (s->rank == 0 || !cx_ops_dim(d, s->rank, dim)) {
    *out = cx_ops_no_dim(op, "dim", d, s->rank, s);
    return false;
  }
  int64_t n = s->dims[*dim];
  calx_tensor *width = calx_scalar(given(o->dx, 1));
  if (o->x != NULL) {
    const cx_graph_shape *at = cx_lazy_tensor_shape(o->x);
    bool is_vector = at->rank == 1;
    calx_diff_options step = { .size = sizeof step };
    step.dim = is_vector || *dim == 0 ? INT32_MIN : (int)*dim;
    if (at->rank == 0 || (!is_vector && at->rank != s->rank) ||
        at->dims[is_vector ? 0 : *dim] != n) {
      *out = cx_ops_invalid(
          "%s: x is %s for %s: its sizes, or a vector of %lld, are wanted", op,
          cx_graph_shape_str(at), cx_graph_shape_str(s), (long long)n);
      return false;
    }
    width = calx_diff_with(o->x, &step);
    if (is_vector) width = along(width, *dim, s->rank);
  }
  calx_tensor *sum = cx_ops_plus(calx_slice(y, (int)*dim, 1, n, 1),
                                 calx_slice(y, (int)*dim, 0, n - 1, 1));
  *out = calx_mul(calx_mul(sum, width), cx_ops_number(0.5));
  return !cx_lazy_tensor_poisoned(*out);
}

calx_tensor *calx_trapezoid_with(calx_tensor *y,
                                 const calx_trapezoid_options *o)
{
  CX_OPS_COMPOSITE("trapezoid");
  calx_tensor *in[2] = { y, o != NULL ? o->x : NULL }, *out;
  uint32_t dim = 0;
  if (cx_ops_unfit("trapezoid", in, in[1] != NULL ? 2 : 1, &out)) return out;
  CX_OPS_TAKE_OPTIONS(trapezoid, o, out);
  if (!trapezoids("trapezoid", y, o, &dim, &out)) return out;
  int64_t along_it = dim;
  calx_reduce_options r = { .size = sizeof r,
                            .dims = calx_dims_of(&along_it, 1) };
  return calx_sum_with(out, &r);
}

calx_tensor *calx_cumulative_trapezoid_with(calx_tensor *y,
                                            const calx_trapezoid_options *o)
{
  CX_OPS_COMPOSITE("cumulative_trapezoid");
  calx_tensor *in[2] = { y, o != NULL ? o->x : NULL }, *out;
  uint32_t dim = 0;
  if (cx_ops_unfit("cumulative_trapezoid", in, in[1] != NULL ? 2 : 1, &out)) {
    return out;
  }
  CX_OPS_TAKE_OPTIONS(trapezoid, o, out);
  if (!trapezoids("cumulative_trapezoid", y, o, &dim, &out)) return out;
  return calx_cumsum(out, (int)dim);
}

// ---- slopes -----------------------------------------------------------------

// A difference quotient of three neighbours, whose distances are h and k, at
// the first (-1), the middle (0) or the last (1).
static calx_tensor *quotient(calx_tensor *const f[3], calx_tensor *h,
                             calx_tensor *k, int where)
{
  calx_tensor *whole = cx_ops_plus(h, k);
  calx_tensor *first = calx_div(cx_ops_minus(f[1], f[0]), h);
  calx_tensor *last = calx_div(cx_ops_minus(f[2], f[1]), k);
  calx_tensor *bend = calx_div(cx_ops_minus(last, first), whole);
  if (where < 0) return cx_ops_minus(first, calx_mul(h, bend));
  if (where > 0) return cx_ops_plus(last, calx_mul(k, bend));
  return cx_ops_plus(first, calx_mul(h, bend));
}

static calx_tensor *narrow(calx_tensor *x, uint32_t dim, int64_t start,
                           int64_t end)
{
  return calx_slice(x, (int)dim, start, end, 1);
}

// The slope along dimension dim. `steps` are the n - 1 distances.
static calx_tensor *slope(calx_tensor *x, uint32_t dim, calx_tensor *steps,
                          int order)
{
  int64_t n = calx_tensor_dim(x, (int)dim);
  calx_tensor *parts[3];
  calx_tensor *ends[2] = { narrow(steps, dim, 0, 1),
                           narrow(steps, dim, n - 2, n - 1) };
  for (int i = 0; i < 2; i++) {
    int64_t at = i == 0 ? 0 : n - 1 - order;
    calx_tensor *f[3];
    for (int j = 0; j <= order; j++) {
      f[j] = narrow(x, dim, at + j, at + j + 1);
    }
    parts[2 * i] =
        order == 1 ? calx_div(cx_ops_minus(f[1], f[0]), ends[i])
                   : quotient(f, narrow(steps, dim, at, at + 1),
                              narrow(steps, dim, at + 1, at + 2), 2 * i - 1);
  }
  calx_tensor *f[3] = { narrow(x, dim, 0, n - 2), narrow(x, dim, 1, n - 1),
                        narrow(x, dim, 2, n) };
  parts[1] = quotient(f, narrow(steps, dim, 0, n - 2),
                      narrow(steps, dim, 1, n - 1), 0);
  return calx_cat(parts, 3, (int)dim);
}

// The distances along dimension dim. False: *out is what the function returns.
static bool distances(calx_tensor *x, uint32_t dim, calx_tensor *coordinate,
                      double spacing, calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t n = s->dims[dim] - 1;
  calx_create_options like = { .size = sizeof like,
                               .dtype = s->dtype,
                               .device = calx_tensor_device(x) };
  if (coordinate == NULL) {
    *out = along(calx_full_with(calx_dims_of(&n, 1), spacing, &like), dim,
                 s->rank);
    return true;
  }
  if (cx_ops_unfit("gradient", &coordinate, 1, out)) return false;
  const cx_graph_shape *at = cx_lazy_tensor_shape(coordinate);
  if (at->rank == 1 && at->dims[0] == n + 1) {
    *out = along(calx_to_dtype(calx_diff_with(coordinate, NULL), s->dtype), dim,
                 s->rank);
    return true;
  }
  *out = cx_ops_invalid("gradient: coordinates %s along dimension %u of %s",
                        cx_graph_shape_str(at), dim, cx_graph_shape_str(s));
  return false;
}

static calx_tensor *gradient_along(calx_tensor *x, int64_t dim, size_t which,
                                   const calx_gradient_options *o)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  uint32_t d = 0;
  calx_tensor *steps;
  int order = o->edge_order == 0 ? 1 : o->edge_order;
  if (s->rank == 0 || !cx_ops_dim(dim, s->rank, &d)) {
    return cx_ops_no_dim("gradient", "dim", dim, s->rank, s);
  }
  if (order < 1 || order > 2 || s->dims[d] <= order) {
    return cx_ops_invalid(
        "gradient: edge_order %d of dimension %u of %s: 1 or 2, and more "
        "elements than it, are wanted",
        order, d, cx_graph_shape_str(s));
  }
  calx_tensor *at = o->coordinates != NULL ? o->coordinates[which] : NULL;
  if (o->coordinates != NULL && at == NULL) {
    return cx_ops_invalid("gradient: coordinates %zu are NULL", which);
  }
  if (!distances(x, d, at, given(o->spacing, 1), &steps)) return steps;
  return slope(x, d, steps, order);
}

size_t calx_gradient_with(calx_tensor *x, calx_tensor **out,
                          const calx_gradient_options *o)
{
  CX_OPS_COMPOSITE("gradient");
  calx_gradient_options all = { .size = sizeof all };
  calx_tensor *bad;
  bool fits =
      cx_ops_floating("gradient", &x, 1, &bad) &&
      (o == NULL || cx_ops_options_take("gradient", o, &all, sizeof all, &bad));
  size_t n = all.dims.count;
  if (fits && n == 0) {
    n = calx_tensor_rank(x);
    for (size_t i = 0; i < n; i++) all.dims.values[i] = (int64_t)i;
  }
  if (fits && n > CALX_MAX_RANK) {
    bad = cx_ops_invalid("gradient: %zu dims", n);
    fits = false;
  }
  if (!fits) {
    out[0] = bad;
    return 1;
  }
  for (size_t i = 0; i < n; i++) {
    out[i] = gradient_along(x, all.dims.values[i], i, &all);
  }
  return n;
}

// ---- histograms -------------------------------------------------------------

calx_tensor *cx_ops_histogram_edges(calx_tensor *x, int64_t bins,
                                    const calx_histogram_options *o)
{
  bool ranged = !(o->min == 0 && o->max == 0);
  double low = ranged ? o->min : 0, high = ranged ? o->max : 1;
  calx_create_options like = { .size = sizeof like,
                               .dtype = cx_lazy_tensor_shape(x)->dtype,
                               .device = calx_tensor_device(x) };
  if (ranged && low == high) {
    low -= 0.5;
    high += 0.5;
  }
  if (ranged || calx_tensor_numel(x) == 0) {
    return calx_linspace_with(low, high, bins + 1, &like);
  }
  calx_tensor *least = calx_min(x), *most = calx_max(x);
  calx_tensor *half = calx_mul(calx_eq(least, most), cx_ops_number(0.5));
  half = calx_to_dtype(half, like.dtype);
  least = cx_ops_minus(least, half);
  most = cx_ops_plus(most, half);
  calx_tensor *at = calx_linspace_with(0, 1, bins + 1, &like);
  calx_tensor *back = cx_ops_minus(calx_scalar_int(1), at);
  // Both ends are exact.
  return cx_ops_plus(calx_mul(least, back), calx_mul(most, at));
}

calx_tensor *cx_ops_histogram_bins(calx_tensor *x, calx_tensor *edges,
                                   int64_t bins)
{
  calx_searchsorted_options right = { .size = sizeof right, .right = true };
  calx_tensor *at = cx_ops_minus(calx_searchsorted_with(edges, x, &right),
                                 calx_scalar_int(1));
  calx_tensor *last = calx_select(edges, 0, bins);
  at = calx_where(calx_eq(x, last), calx_scalar_int(bins - 1), at);
  calx_tensor *inside =
      calx_logical_and(calx_ge(x, calx_select(edges, 0, 0)), calx_le(x, last));
  return calx_where(inside, at, calx_scalar_int(-1));
}

// Whether the operands fit. False: *out is what the function returns.
static bool histogram_fits(calx_tensor *x, const calx_histogram_options *o,
                           calx_tensor **out)
{
  calx_tensor *in[3] = { x, NULL, NULL };
  uint32_t n = 1;
  if (o->edges != NULL) in[n++] = o->edges;
  if (o->weight != NULL) in[n++] = o->weight;
  if (cx_ops_unfit("histogram", in, n, out)) return false;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  bool fits = cx_dtype_is_float(s->dtype) && o->bins >= 0 &&
              o->bins < INT32_MAX && o->min <= o->max && isfinite(o->min) &&
              isfinite(o->max);
  if (o->edges != NULL) {
    const cx_graph_shape *e = cx_lazy_tensor_shape(o->edges);
    fits = fits && e->rank == 1 && e->dims[0] >= 2 && e->dtype == s->dtype;
  }
  if (o->weight != NULL) {
    fits = fits && cx_graph_shape_equal(cx_lazy_tensor_shape(o->weight), s);
  }
  if (fits) return true;
  *out = cx_ops_invalid(
      "histogram: %s, %lld bins from %g to %g: floats, 1 bin or more, edges in "
      "a vector of 2 or more of x's type, and weights of its type and sizes "
      "are wanted",
      cx_graph_shape_str(s), (long long)o->bins, o->min, o->max);
  return false;
}

calx_tensor *calx_histogram_with(calx_tensor *x, calx_tensor **out_edges,
                                 const calx_histogram_options *o)
{
  CX_OPS_COMPOSITE("histogram");
  calx_tensor *bad;
  if (out_edges != NULL) *out_edges = NULL;
  if (cx_ops_unfit("histogram", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(histogram, o, bad);
  if (!histogram_fits(x, o, &bad)) return bad;
  int64_t all = -1, bins = o->bins == 0 ? 100 : o->bins;
  if (o->edges != NULL) bins = calx_tensor_dim(o->edges, 0) - 1;
  calx_tensor *edges =
      o->edges != NULL ? o->edges : cx_ops_histogram_edges(x, bins, o);
  calx_create_options like = { .size = sizeof like,
                               .dtype = cx_lazy_tensor_shape(x)->dtype,
                               .device = calx_tensor_device(x) };
  x = calx_reshape(calx_detach(x), calx_dims_of(&all, 1));
  calx_tensor *each =
      o->weight != NULL
          ? calx_reshape(o->weight, calx_dims_of(&all, 1))
          : calx_to_dtype(calx_logical_or(calx_eq(x, x), calx_isnan(x)),
                          like.dtype);
  calx_tensor *sums = cx_ops_combine_rows(
      calx_zeros_with(calx_dims_of(&bins, 1), &like),
      cx_ops_histogram_bins(x, edges, bins), each, CX_OPS_SCATTER_ADD);
  if (o->density) {
    sums = calx_div(calx_div(sums, calx_sum_with(sums, NULL)),
                    calx_diff_with(edges, NULL));
  }
  if (out_edges != NULL) *out_edges = edges;
  return sums;
}
