// ops/composite_histogram: histograms of points in several dimensions.
#include <math.h>

#include "calx/creation.h"

#include "base/dtype.h"
#include "ops/gather.h"
#include "ops/histogram.h"

enum { MOST_DIMS = CALX_MAX_RANK };

typedef struct points {
  calx_tensor *x;  // (N, D)
  uint32_t d;
  int64_t bins[MOST_DIMS];
  calx_tensor *edges[MOST_DIMS];
} points;

static bool edges_fit(points *p, calx_tensor *const *edges, calx_dtype dtype,
                      calx_tensor **out)
{
  if (cx_ops_unfit("histogramdd", edges, p->d, out)) return false;
  for (uint32_t i = 0; i < p->d; i++) {
    const cx_graph_shape *e = cx_lazy_tensor_shape(edges[i]);
    if (e->rank != 1 || e->dims[0] < 2 || e->dtype != dtype) {
      *out = cx_ops_invalid(
          "histogramdd: .edges[%u] is %s, a vector of 2 or more of the type of "
          "x is wanted",
          i, cx_graph_shape_str(e));
      return false;
    }
    p->edges[i] = edges[i];
    p->bins[i] = e->dims[0] - 1;
  }
  return true;
}

static bool bins_fit(points *p, const calx_histogramdd_options *o,
                     calx_tensor **out)
{
  const size_t n = o->bins.count;
  bool fits = n == 1 || n == p->d;
  for (uint32_t i = 0; fits && i < p->d; i++) {
    p->bins[i] = o->bins.values[n == 1 ? 0 : i];
    fits = p->bins[i] > 0 && p->bins[i] < INT32_MAX;
  }
  for (uint32_t i = 0; fits && o->range != NULL && i < p->d; i++) {
    const double low = o->range[2 * i], high = o->range[2 * i + 1];
    fits = isfinite(low) && isfinite(high) && low <= high;
  }
  if (fits) return true;
  *out = cx_ops_invalid(
      "histogramdd: %zu numbers of bins for %u dimensions: 1 or %u positive "
      "ones are wanted, and a .range of finite pairs in order",
      n, p->d, p->d);
  return false;
}

// False: *out is what the function returns.
static bool points_fit(points *p, calx_tensor *x,
                       const calx_histogramdd_options *o, calx_tensor **out)
{
  calx_tensor *in[2] = { x, o->weight };
  if (cx_ops_unfit("histogramdd", in, o->weight != NULL ? 2 : 1, out)) {
    return false;
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  bool fits = cx_dtype_is_float(s->dtype) && s->rank >= 2 &&
              s->dims[s->rank - 1] >= 1 && s->dims[s->rank - 1] <= MOST_DIMS;
  if (fits && o->weight != NULL) {
    cx_graph_shape of_weight = *s;
    of_weight.rank--;
    fits = cx_graph_shape_equal(cx_lazy_tensor_shape(o->weight), &of_weight);
  }
  if (!fits) {
    *out = cx_ops_invalid(
        "histogramdd: %s: floats (…, D) with D from 1 to %d are wanted, and "
        "weights (…) of their type",
        cx_graph_shape_str(s), MOST_DIMS);
    return false;
  }
  p->d = (uint32_t)s->dims[s->rank - 1];
  fits = o->edges != NULL ? edges_fit(p, o->edges, s->dtype, out)
                          : bins_fit(p, o, out);
  double total = 1;
  for (uint32_t i = 0; fits && i < p->d; i++) total *= (double)p->bins[i];
  if (!fits || total < (double)INT32_MAX) return fits;
  *out = cx_ops_invalid("histogramdd: %g bins, below 2^31 are possible", total);
  return false;
}

static void find_edges(points *p, const calx_histogramdd_options *o)
{
  for (uint32_t i = 0; i < p->d; i++) {
    calx_histogram_options one = { .size = sizeof one };
    if (o->range != NULL) {
      one.min = o->range[2 * i];
      one.max = o->range[2 * i + 1];
      // Both 0 stand for no range there.
      if (one.min == 0 && one.max == 0) one.max = 0.5, one.min = -0.5;
    }
    p->edges[i] =
        cx_ops_histogram_edges(calx_select(p->x, 1, i), p->bins[i], &one);
  }
}

// The number of each point's box, -1 of none.
static calx_tensor *boxes(const points *p)
{
  calx_tensor *box = NULL, *inside = NULL;
  for (uint32_t i = 0; i < p->d; i++) {
    calx_tensor *at =
        cx_ops_histogram_bins(calx_select(p->x, 1, i), p->edges[i], p->bins[i]);
    calx_tensor *in = calx_ge(at, calx_scalar_int(0));
    inside = inside == NULL ? in : calx_logical_and(inside, in);
    if (box != NULL) {
      at = cx_ops_plus(calx_mul(box, calx_scalar_int(p->bins[i])), at);
    }
    box = at;
  }
  return calx_where(inside, box, calx_scalar_int(-1));
}

// Divided by the sum and by the boxes' sizes.
static calx_tensor *density_of(const points *p, calx_tensor *sums)
{
  sums = calx_div(sums, calx_sum_with(sums, NULL));
  for (uint32_t i = 0; i < p->d; i++) {
    int64_t dims[MOST_DIMS];
    for (uint32_t k = 0; k < p->d; k++) dims[k] = k == i ? -1 : 1;
    calx_tensor *wide = calx_diff_with(p->edges[i], NULL);
    sums = calx_div(sums, calx_reshape(wide, calx_dims_of(dims, p->d)));
  }
  return sums;
}

calx_tensor *calx_histogramdd_with(calx_tensor *x, calx_tensor **out_edges,
                                   const calx_histogramdd_options *o)
{
  CX_OPS_COMPOSITE("histogramdd");
  calx_tensor *bad;
  points p = { 0 };
  CX_OPS_TAKE_OPTIONS(histogramdd, o, bad);
  if (!points_fit(&p, x, o, &bad)) return bad;
  const calx_create_options like = { .size = sizeof like,
                                     .dtype = cx_lazy_tensor_shape(x)->dtype,
                                     .device = calx_tensor_device(x) };
  p.x = calx_reshape(calx_detach(x), CALX_SHAPE(-1, p.d));
  if (calx_tensor_numel(x) == 0) {
    p.x = calx_zeros_with(CALX_SHAPE(0, p.d), &like);
  }
  if (o->edges == NULL) find_edges(&p, o);
  int64_t total = 1;
  for (uint32_t i = 0; i < p.d; i++) total *= p.bins[i];
  const int64_t n = calx_tensor_numel(x) / p.d;
  calx_tensor *each = o->weight != NULL ? calx_reshape(o->weight, CALX_SHAPE(n))
                                        : calx_ones_with(CALX_SHAPE(n), &like);
  calx_tensor *sums =
      cx_ops_combine_rows(calx_zeros_with(CALX_SHAPE(total), &like), boxes(&p),
                          each, CX_OPS_SCATTER_ADD);
  sums = calx_reshape(sums, calx_dims_of(p.bins, p.d));
  for (uint32_t i = 0; out_edges != NULL && i < p.d; i++) {
    out_edges[i] = p.edges[i];
  }
  return o->density ? density_of(&p, sums) : sums;
}
