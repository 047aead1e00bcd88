/**
 * calx/indexing.h: reading and writing at indices, and sorting. Part of
 * calx/ops.h, whose conventions hold here.
 *
 * Indices are integers of 0 or more. One out of range reads NaN, or the least
 * number of a type without NaN, and is dropped where it writes;
 * CALX_DEBUG=indices makes it an error that names it.
 *
 * @errors  as calx/ops.h says for all ops
 */
#ifndef CALX_INDEXING_H
#define CALX_INDEXING_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Rows of x, which are its slices along a dimension, at the indices.
 *  @shape index (k); result has k along dim @source torch.index_select */
CALX_API calx_tensor *calx_index_select(calx_tensor *x, int dim,
                                        calx_tensor *index);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_embedding_options {
  CALX_NAMED size_t size;
  /* the row whose gradient is 0; 0 = none, CALX_ZERO_INT = 0; negative counts
   * from the end */
  CALX_NAMED int64_t padding_idx;
} calx_embedding_options;
/** Rows of the weight at the indices. @shape index any, weight (n, d) ->
 *  (…, d) @grad weight @source torch.nn.functional.embedding */
CALX_API calx_tensor *calx_embedding_with(
    calx_tensor *index, calx_tensor *weight,
    const calx_embedding_options *options);
/** How calx_embedding_bag joins the rows of a bag. */
typedef enum calx_embedding_bag_mode {
  CALX_BAG_MEAN = 0,
  CALX_BAG_SUM,
  CALX_BAG_MAX
} calx_embedding_bag_mode;
/** Zero means default. */
typedef struct CALX_OPTIONS calx_embedding_bag_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_embedding_bag_mode mode;
  /* where each bag begins in an index of rank 1: ascending integers, 0 first */
  CALX_NAMED calx_tensor *offsets;
  CALX_NAMED bool include_last_offset; /* the last offset ends the last bag */
  /* a factor for each index, of its shape; for CALX_BAG_SUM */
  CALX_NAMED calx_tensor *per_sample_weights;
  CALX_NAMED int64_t padding_idx; /* does not count; CALX_ZERO_INT for row 0 */
} calx_embedding_bag_options;
/** Joins the rows of the weight at the indices of each bag; an empty bag is 0.
 *  Without .offsets each row of the index is a bag.
 *  @shape index (bags, indices), or (n) with .offsets; weight (rows, d) ->
 *  (bags, d) @grad weight, per_sample_weights
 *  @source torch.nn.functional.embedding_bag */
CALX_API calx_tensor *calx_embedding_bag_with(
    calx_tensor *index, calx_tensor *weight,
    const calx_embedding_bag_options *options);
/** 1 at the class of each element, else 0. @shape (…) -> (…, num_classes)
 *  @dtype i64 @source torch.nn.functional.one_hot */
CALX_API calx_tensor *calx_one_hot(calx_tensor *index, int64_t num_classes);
/** x at the index along a dimension, and at the element's own place along all
 *  others. @shape index of x's rank; result as index @grad x
 *  @source torch.gather */
CALX_API calx_tensor *calx_gather(calx_tensor *x, int dim, calx_tensor *index);
/** calx_gather with both broadcast together but along dim.
 *  @shape equal ranks @source torch.take_along_dim */
CALX_API calx_tensor *calx_take_along_dim(calx_tensor *x, calx_tensor *index,
                                          int dim);
/** x with source's elements at the places that calx_gather reads. Which of two
 *  at one place is kept, is not defined. @shape index of x's rank; source of at
 *  least its sizes, or a number @grad x, source @source torch.scatter */
CALX_API calx_tensor *calx_scatter(calx_tensor *x, int dim, calx_tensor *index,
                                   calx_tensor *source);
/** The same, added to what is there. @shape as calx_scatter
 *  @source torch.scatter_add */
CALX_API calx_tensor *calx_scatter_add(calx_tensor *x, int dim,
                                       calx_tensor *index, calx_tensor *source);
/** How calx_scatter_reduce combines. */
typedef enum calx_scatter_reduction {
  CALX_SCATTER_SUM,
  CALX_SCATTER_PROD, /* without a gradient */
  CALX_SCATTER_AMAX,
  CALX_SCATTER_AMIN
} calx_scatter_reduction;
/** The same, combined with what is there. @shape as calx_scatter
 *  @source torch.scatter_reduce */
CALX_API calx_tensor *calx_scatter_reduce(calx_tensor *x, int dim,
                                          calx_tensor *index,
                                          calx_tensor *source,
                                          calx_scatter_reduction reduce);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_index_add_options {
  CALX_NAMED size_t size;
  CALX_NAMED double alpha; /* factor of source; 0 = 1, CALX_ZERO = 0 */
} calx_index_add_options;
/** x with rows of source added at the indices. @shape index (k); source as x
 *  but k along dim @grad x, source @source torch.index_add */
CALX_API calx_tensor *calx_index_add_with(
    calx_tensor *x, int dim, calx_tensor *index, calx_tensor *source,
    const calx_index_add_options *options);
/** x with rows of source at the indices. @shape as calx_index_add
 *  @grad x, source @source torch.index_copy */
CALX_API calx_tensor *calx_index_copy(calx_tensor *x, int dim,
                                      calx_tensor *index, calx_tensor *source);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_sort_options {
  CALX_NAMED size_t size;
  CALX_NAMED int dim; /* 0 = the last, INT32_MIN = 0 */
  CALX_NAMED bool descending;
  CALX_NAMED calx_tensor **out_indices; /* NULL: none; i64 */
} calx_sort_options;
/** Sorted along a dimension, stably; NaN is the greatest. @shape x any
 *  @source torch.sort */
CALX_API calx_tensor *calx_sort_with(calx_tensor *x,
                                     const calx_sort_options *options);
/** The indices that sort x. @shape x any @dtype i64 @source torch.argsort */
CALX_API calx_tensor *calx_argsort_with(calx_tensor *x,
                                        const calx_sort_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_topk_options {
  CALX_NAMED size_t size;
  CALX_NAMED int dim; /* 0 = the last, INT32_MIN = 0 */
  CALX_NAMED bool smallest;
  CALX_NAMED calx_tensor **out_indices; /* NULL: none; i64 */
} calx_topk_options;
/** The k greatest elements along a dimension, in order. @shape k along dim
 *  @source torch.topk */
CALX_API calx_tensor *calx_topk_with(calx_tensor *x, int64_t k,
                                     const calx_topk_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_searchsorted_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool right; /* behind equal elements instead of before them */
} calx_searchsorted_options;
/** Where each value would be inserted into a sorted sequence.
 *  @shape sequence (n), or as values but n at the end @dtype i64 @grad none
 *  @source torch.searchsorted */
CALX_API calx_tensor *calx_searchsorted_with(
    calx_tensor *sequence, calx_tensor *values,
    const calx_searchsorted_options *options);
/** calx_searchsorted with the operands exchanged. @shape x any, boundaries (n)
 *  @dtype i64 @grad none @source torch.bucketize */
CALX_API calx_tensor *calx_bucketize_with(
    calx_tensor *x, calx_tensor *boundaries,
    const calx_searchsorted_options *options);
/** x with `value`, a number or a tensor of rank 0, in the rows at the indices,
 *  of which negative ones count from the end. @shape index (k) or ()
 *  @grad x, value @source torch.index_fill */
CALX_API calx_tensor *calx_index_fill(calx_tensor *x, int dim,
                                      calx_tensor *index, calx_tensor *value);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_index_put_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool accumulate; /* added to what is there */
} calx_index_put_options;
/** x with the values at places of its first dimensions, of which each has an
 *  index; negative ones count from the end. Without .accumulate, which of two
 *  at one place is kept, is not defined. Masks: calx_masked_fill and
 *  calx_masked_scatter. @shape indices broadcast together; values broadcast to
 *  that and the dimensions left @grad x, values @source torch.index_put */
CALX_API calx_tensor *calx_index_put_with(
    calx_tensor *x, calx_tensor *const *indices, size_t count,
    calx_tensor *values, const calx_index_put_options *options);
/** x with the elements of source, in order, where the mask is true; NaN, or the
 *  least number of a type without NaN, where source has too few.
 *  @shape mask broadcasts to x; source any @grad x, source
 *  @source torch.masked_scatter */
CALX_API calx_tensor *calx_masked_scatter(calx_tensor *x, calx_tensor *mask,
                                          calx_tensor *source);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_isin_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool invert;
} calx_isin_options;
/** Whether each element is one of the test elements. @shape elements any;
 *  result the same @dtype result bool @grad none @source torch.isin */
CALX_API calx_tensor *calx_isin_with(calx_tensor *elements,
                                     calx_tensor *test_elements,
                                     const calx_isin_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_histc_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t bins; /* 0 = 100 */
  CALX_NAMED double min;   /* both 0: the least and the greatest element */
  CALX_NAMED double max;
} calx_histc_options;
/** How many elements lie in each of equal intervals from min to max; those
 *  outside and NaN do not count. @shape x any -> (bins) @dtype floating
 *  @grad none @source torch.histc */
CALX_API calx_tensor *calx_histc_with(calx_tensor *x,
                                      const calx_histc_options *options);
/** How calx_index_reduce combines. */
typedef enum calx_index_reduction {
  CALX_INDEX_PROD, /* without a gradient */
  CALX_INDEX_MEAN, /* of integers, rounded down */
  CALX_INDEX_AMAX,
  CALX_INDEX_AMIN
} calx_index_reduction;
/** Zero means default. */
typedef struct CALX_OPTIONS calx_index_reduce_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool exclude_self; /* rows of x that take some do not count */
} calx_index_reduce_options;
/** x with rows of source combined into the rows at the indices.
 *  @shape as calx_index_add @dtype source as x @grad x, source
 *  @source torch.index_reduce */
CALX_API calx_tensor *calx_index_reduce_with(
    calx_tensor *x, int dim, calx_tensor *index, calx_tensor *source,
    calx_index_reduction reduce, const calx_index_reduce_options *options);
/** Sorted along dimension 0. @shape x any @source torch.msort */
CALX_API calx_tensor *calx_msort(calx_tensor *x);

// ---- results of a size that the data say ------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_select_options {
  CALX_NAMED size_t size;
  /* the result has this many elements; 0: as many as there are, which is read
   * and runs what is pending */
  CALX_NAMED int64_t limit;
  CALX_NAMED calx_tensor **out_count; /* NULL: none; i64 () */
} calx_select_options;
/** The indices of the elements other than 0, in order; -1 behind them.
 *  @shape (elements, rank of x) @dtype i64 @grad none @source torch.nonzero */
CALX_API calx_tensor *calx_nonzero_with(calx_tensor *x,
                                        const calx_select_options *options);
/** The elements where the mask is true, in order; behind them NaN, or the least
 *  number of a type without NaN. @shape x, mask broadcast together; rank 1
 *  @grad x @source torch.masked_select */
CALX_API calx_tensor *calx_masked_select_with(
    calx_tensor *x, calx_tensor *mask, const calx_select_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_unique_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t limit;             /* as in calx_select_options */
  CALX_NAMED calx_tensor **out_count;   /* NULL: none; i64 () */
  CALX_NAMED calx_tensor **out_inverse; /* NULL: none; i64, as x */
  CALX_NAMED calx_tensor **out_counts;  /* NULL: none; i64, as the result */
} calx_unique_options;
/** The different elements, sorted; 0 behind them. @shape x any; rank 1
 *  @grad none @source torch.unique */
CALX_API calx_tensor *calx_unique_with(calx_tensor *x,
                                       const calx_unique_options *options);
/** One of each run of equal elements, in order; 0 behind them. @shape x any;
 *  rank 1 @grad none @source torch.unique_consecutive */
CALX_API calx_tensor *calx_unique_consecutive_with(
    calx_tensor *x, const calx_unique_options *options);
/** calx_nonzero. @shape (elements, rank of x) @dtype i64 @grad none
 *  @source torch.argwhere */
CALX_API calx_tensor *calx_argwhere_with(calx_tensor *x,
                                         const calx_select_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_bincount_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *weights; /* NULL: 1 */
  CALX_NAMED int64_t minlength;
  CALX_NAMED int64_t
      limit; /* bins; 0: to the greatest element, which is read */
} calx_bincount_options;
/** How often each number from 0 on occurs, or the sum of its weights.
 *  @shape x (n) @grad weights @source torch.bincount */
CALX_API calx_tensor *calx_bincount_with(calx_tensor *x,
                                         const calx_bincount_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_embedding_options_ \
  .padding_idx = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_embedding_options, calx_written_int_(&o->padding_idx);)
#define CALX_UNWRITTEN_calx_embedding_bag_options_ \
  .padding_idx = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_embedding_bag_options, calx_written_int_(&o->padding_idx);)
#define CALX_UNWRITTEN_calx_index_add_options_ .alpha = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_index_add_options, calx_written_(&o->alpha);)
#define CALX_UNWRITTEN_calx_sort_options_ .dim = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_sort_options, calx_written_dim_(&o->dim);)
#define CALX_UNWRITTEN_calx_topk_options_ .dim = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_topk_options, calx_written_dim_(&o->dim);)
#endif
#ifdef __cplusplus
}
#endif
#endif
