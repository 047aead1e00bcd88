/**
 * calx/dataset.h: datasets made of other datasets.
 */
#ifndef CALX_DATASET_H
#define CALX_DATASET_H

#include "calx/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The samples of another dataset that a list names, in the list's order. A
 * sample may be named more than once. The other dataset must outlive it.
 * @param indices  copied; NULL only where count is 0
 * @errors OUT_OF_RANGE an index that the dataset has not; a negative one is
 *         refused, where PyTorch counts from the end  INVALID_ARGUMENT a
 *         negative count, no indices; those of the dataset
 * @source torch.utils.data.Subset
 */
CALX_API calx_dataset *calx_dataset_subset(calx_dataset *dataset,
                                           const int64_t *indices,
                                           int64_t count);

#ifdef __cplusplus
}
#elif !defined(CALX_NO_SITES)
#define calx_dataset_subset(dataset, indices, count) \
  (CALX_DATA_SITE_ calx_dataset_subset(dataset, indices, count))
#endif
#endif
