/**
 * calx/statistics.h: order statistics, extremes so far, covariances. Part of
 * calx/ops.h, whose conventions hold here. NaN is the greatest where elements
 * are ordered.
 *
 * @errors  as calx/ops.h says for all ops
 */
#ifndef CALX_STATISTICS_H
#define CALX_STATISTICS_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The greatest of all elements up to each along a dimension; NaN stays.
 *  @param out_indices  where they are, the last of equals; may be NULL; i64
 *  @shape x any @source torch.cummax */
CALX_API calx_tensor *calx_cummax(calx_tensor *x, int dim,
                                  calx_tensor **out_indices);
/** The smallest; as calx_cummax. @shape x any @source torch.cummin */
CALX_API calx_tensor *calx_cummin(calx_tensor *x, int dim,
                                  calx_tensor **out_indices);
/** log(sum(exp(x))) of all elements up to each along a dimension, without
 *  overflow. @shape x any @source torch.logcumsumexp */
CALX_API calx_tensor *calx_logcumsumexp(calx_tensor *x, int dim);
/** The middle one of all elements in order, the lower one of two; NaN wins;
 *  empty: NaN. @shape x any -> () @source torch.median(x) */
CALX_API calx_tensor *calx_median(calx_tensor *x);
/** The same of what is no NaN. @shape x any -> () @source torch.nanmedian(x) */
CALX_API calx_tensor *calx_nanmedian(calx_tensor *x);
/** calx_median along one dimension. @param out_index  may be NULL; i64
 *  @shape as calx_max_dim @source torch.median(x, dim) */
CALX_API calx_tensor *calx_median_dim(calx_tensor *x, int dim, bool keepdim,
                                      calx_tensor **out_index);
/** The same of what is no NaN. @shape as calx_max_dim
 *  @source torch.nanmedian(x, dim) */
CALX_API calx_tensor *calx_nanmedian_dim(calx_tensor *x, int dim, bool keepdim,
                                         calx_tensor **out_index);
/** The most frequent element along a dimension, the smallest of several.
 *  @param out_index  of one such element; may be NULL; i64
 *  @shape as calx_max_dim @source torch.mode */
CALX_API calx_tensor *calx_mode(calx_tensor *x, int dim, bool keepdim,
                                calx_tensor **out_index);
/** The k-th smallest element along a dimension; k from 1 on.
 *  @param out_index  may be NULL; i64
 *  @shape as calx_max_dim @source torch.kthvalue */
CALX_API calx_tensor *calx_kthvalue(calx_tensor *x, int64_t k, int dim,
                                    bool keepdim, calx_tensor **out_index);
/** What a quantile between two elements is. */
typedef enum calx_quantile_interpolation {
  CALX_QUANTILE_LINEAR = 0,
  CALX_QUANTILE_LOWER,
  CALX_QUANTILE_HIGHER,
  CALX_QUANTILE_MIDPOINT,
  CALX_QUANTILE_NEAREST
} calx_quantile_interpolation;
/** Zero means default. */
typedef struct CALX_OPTIONS calx_quantile_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_dims dims; /* one dimension; absent: x flattened */
  CALX_NAMED bool keepdim;
  CALX_NAMED calx_quantile_interpolation interpolation;
} calx_quantile_options;
/** The q-th quantiles along a dimension; NaN wins.
 *  @param q  a number in [0, 1], or a tensor of them; NaN where one is outside
 *  @shape q () or (k); the result has k in front @dtype x f32 or f64
 *  @grad x @source torch.quantile */
CALX_API calx_tensor *calx_quantile_with(calx_tensor *x, calx_tensor *q,
                                         const calx_quantile_options *options);
/** The same of what is no NaN. @shape as calx_quantile
 *  @source torch.nanquantile */
CALX_API calx_tensor *calx_nanquantile_with(
    calx_tensor *x, calx_tensor *q, const calx_quantile_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_diff_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t n; /* times; 0 = 1, CALX_ZERO_INT = 0 */
  CALX_NAMED int dim;   /* 0 = the last, INT32_MIN = 0 */
  CALX_NAMED calx_tensor *prepend;
  CALX_NAMED calx_tensor *append;
} calx_diff_options;
/** Each element less the one before it along a dimension; bool: whether they
 *  differ. @shape x rank >= 1; one element less @source torch.diff */
CALX_API calx_tensor *calx_diff_with(calx_tensor *x,
                                     const calx_diff_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_cov_options {
  CALX_NAMED size_t size;
  /* the sums are divided by n - correction; 0 = 1, CALX_ZERO = 0 */
  CALX_NAMED double correction;
  CALX_NAMED calx_tensor *fweights; /* NULL: 1; how often each occurs; (n) */
  CALX_NAMED calx_tensor *aweights; /* NULL: 1; weight of each; (n) */
} calx_cov_options;
/** Covariances of variables, which are rows; columns are observations.
 *  @shape (k, n) -> (k, k); (n) -> () @source torch.cov */
CALX_API calx_tensor *calx_cov_with(calx_tensor *x,
                                    const calx_cov_options *options);
/** Correlation coefficients of variables, which are rows.
 *  @shape (k, n) -> (k, k); (n) -> () @source torch.corrcoef */
CALX_API calx_tensor *calx_corrcoef(calx_tensor *x);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_trapezoid_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *x; /* where the samples are: a vector, or as y */
  CALX_NAMED double dx;      /* their distance; 0 = 1, CALX_ZERO = 0 */
  CALX_NAMED int dim;        /* 0 = the last, INT32_MIN = 0 */
} calx_trapezoid_options;
/** The integral along a dimension, by the trapezoidal rule. @shape y rank >= 1;
 *  the result without the dimension @source torch.trapezoid */
CALX_API calx_tensor *calx_trapezoid_with(
    calx_tensor *y, const calx_trapezoid_options *options);
/** The integral up to each sample but the first. @shape y rank >= 1; the result
 *  with one element less @source torch.cumulative_trapezoid */
CALX_API calx_tensor *calx_cumulative_trapezoid_with(
    calx_tensor *y, const calx_trapezoid_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_gradient_options {
  CALX_NAMED size_t size;
  CALX_NAMED double spacing; /* of the samples; 0 = 1, CALX_ZERO = 0 */
  /* NULL: none; a vector for each dimension, of where the samples are */
  CALX_NAMED calx_tensor *const *coordinates;
  CALX_NAMED calx_dims dims; /* absent: all */
  CALX_NAMED int edge_order; /* of the error at both ends; 0 = 1; 1 or 2 */
} calx_gradient_options;
/** The slope along each dimension, by central differences.
 *  @param out  as many as there are dims, x's rank if none are named
 *  @return how many there are @shape x rank >= 1, more elements than edge_order
 *  along each @source torch.gradient */
CALX_API size_t calx_gradient_with(calx_tensor *x, calx_tensor **out,
                                   const calx_gradient_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_histogram_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t bins; /* 0 = 100 */
  CALX_NAMED double min;   /* both 0: the least and the greatest element */
  CALX_NAMED double max;
  /* NULL: equal intervals; else the intervals' ends, in order; (bins + 1) */
  CALX_NAMED calx_tensor *edges;
  CALX_NAMED calx_tensor *weight; /* NULL: 1; as x */
  CALX_NAMED bool density;        /* divided by the sum and by each width */
} calx_histogram_options;
/** How many elements lie in each interval, which has its lower end, and the
 *  last one both; those outside and NaN do not count.
 *  @param out_edges  (bins + 1); may be NULL @shape x any -> (bins)
 *  @dtype floating @grad weight @source torch.histogram */
CALX_API calx_tensor *calx_histogram_with(
    calx_tensor *x, calx_tensor **out_edges,
    const calx_histogram_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_histogramdd_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_dims bins; /* one for all or one for each; not with .edges */
  /* NULL: the least and the greatest element of each; 2 D numbers in pairs */
  CALX_NAMED const double *range;
  CALX_NAMED calx_tensor *const *edges; /* NULL, or D as calx_histogram's */
  CALX_NAMED calx_tensor *weight;       /* NULL: 1; (…) */
  CALX_NAMED bool density; /* divided by the sum and by each volume */
} calx_histogramdd_options;
/** calx_histogram of points in D dimensions. @param out_edges  D of them; may
 *  be NULL @shape x (…, D), D at most 8 -> (bins, …)
 *  @dtype floating @grad weight @source torch.histogramdd */
CALX_API calx_tensor *calx_histogramdd_with(
    calx_tensor *x, calx_tensor **out_edges,
    const calx_histogramdd_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_diff_options_ \
  .n = CALX_UNWRITTEN_INT_, .dim = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_diff_options, calx_written_int_(&o->n);
              calx_written_dim_(&o->dim);)
#define CALX_UNWRITTEN_calx_cov_options_ .correction = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_cov_options, calx_written_(&o->correction);)
#define CALX_UNWRITTEN_calx_trapezoid_options_ \
  .dx = CALX_UNWRITTEN_, .dim = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_trapezoid_options, calx_written_(&o->dx);
              calx_written_dim_(&o->dim);)
#define CALX_UNWRITTEN_calx_gradient_options_ .spacing = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_gradient_options, calx_written_(&o->spacing);)
#endif
#ifdef __cplusplus
}
#endif
#endif
