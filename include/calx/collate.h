/**
 * calx/collate.h: how samples become a batch.
 *
 * A loader stacks samples: field k of n samples becomes (n, …). A function of
 * the caller's does something else: other fields, other shapes, samples of
 * different lengths padded to what this batch needs.
 */
#ifndef CALX_COLLATE_H
#define CALX_COLLATE_H

#include "calx/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The samples of a batch, one after the other. */
typedef struct calx_samples {
  int64_t count;
  size_t n_fields;
  const calx_field *fields;          /* of the dataset */
  const void *data[CALX_MAX_FIELDS]; /* (count, …) of each field */
} calx_samples;

/** The batch in the making. */
typedef struct calx_collated calx_collated;

/**
 * Makes a batch of samples, with calx_collated_add() for each of its fields.
 * @threads called from several worker threads at a time
 * @return  NULL, or a status that reaches the loader's consumer
 */
typedef calx_status *calx_collate_fn(void *user, const calx_samples *samples,
                                     calx_collated *batch);

/**
 * Adds the batch's next field: the first is its data, the second its target.
 * @param shape  of the whole field, with the batch dimension
 * @param out_elements  memory for its elements, which the caller fills
 * @errors INVALID_ARGUMENT more than CALX_MAX_FIELDS, a bad dtype or shape
 *         RESOURCE_EXHAUSTED
 */
CALX_API calx_status *calx_collated_add(calx_collated *batch, calx_dtype dtype,
                                        calx_dims shape,
                                        void **out_elements) CALX_MUST_USE;
/**
 * Adds field k of the samples as the loader itself does, stacked.
 * @errors OUT_OF_RANGE no such field; as calx_collated_add()
 */
CALX_API calx_status *calx_collated_stack(calx_collated *batch,
                                          const calx_samples *samples,
                                          size_t k) CALX_MUST_USE;

/** A calx_collate_fn that stacks all fields; `user` is not looked at.
 *  @errors as calx_collated_add()
 *  @source torch.utils.data.default_collate */
CALX_API calx_status *calx_default_collate(void *user,
                                           const calx_samples *samples,
                                           calx_collated *batch);

/** What calx_pad_collate() pads. */
typedef struct calx_padding {
  size_t field;  /* samples of (longest, …), of which a part is used */
  size_t length; /* the field () that says how much: an integer */
  double value;  /* of the elements behind */
  /* the batch's length is a multiple of it; 0 = 1. On an XLA device each length
   * is a program of its own: 64 makes few of them */
  int64_t multiple;
} calx_padding;

/**
 * A calx_collate_fn for samples of different lengths. The padded field is as
 * long as the batch's longest sample (rounded up, and at most as long as the
 * dataset's field), the others are stacked.
 * @param user  a const calx_padding *
 * @errors INVALID_ARGUMENT fields that are not there or not so, a negative
 *         multiple  OUT_OF_RANGE a length that is negative or above the field's
 * @source torch.nn.utils.rnn.pad_sequence
 */
CALX_API calx_status *calx_pad_collate(void *user, const calx_samples *samples,
                                       calx_collated *batch);

#ifdef __cplusplus
}
#endif
#endif
