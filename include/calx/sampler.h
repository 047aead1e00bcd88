/**
 * calx/sampler.h: in which order an epoch visits the samples of a dataset.
 *
 * One that is NULL is a failed one: its error says so, and it is empty.
 */
#ifndef CALX_SAMPLER_H
#define CALX_SAMPLER_H

#include "calx/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Which samples an epoch visits, in which order: a function of the epoch's
 *  number. One sampler serves one loader, which counts its epochs. */
typedef struct calx_sampler calx_sampler;

/** All samples, in their order. As for all samplers: never NULL,
 *  calx_sampler_error() tells what is wrong; the dataset's size is read here.
 *  @errors INVALID_ARGUMENT no dataset; a failed one's own
 *  @source torch.utils.data.SequentialSampler */
CALX_API calx_sampler *calx_sequential_sampler(const calx_dataset *dataset);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_random_sampler_options {
  CALX_NAMED size_t size;
  CALX_NAMED uint64_t seed;
} calx_random_sampler_options;

/** All samples, in another order each epoch: what a loader's `shuffle` does.
 *  @errors as calx_sequential_sampler  @source torch.utils.data.RandomSampler
 */
CALX_API calx_sampler *calx_random_sampler_with(
    const calx_dataset *dataset, const calx_random_sampler_options *options);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_distributed_sampler_options {
  CALX_NAMED size_t size;
  CALX_NAMED int num_replicas; /* 0 = the world's ranks */
  CALX_NAMED int rank; /* of num_replicas; where that is 0, 0 = this rank */
  CALX_NAMED bool no_shuffle; /* in their order, every epoch */
  CALX_NAMED uint64_t seed;   /* the same on all ranks */
  /* leave out what does not divide; else the first samples come twice, so that
   * all ranks get equally many */
  CALX_NAMED bool drop_last;
} calx_distributed_sampler_options;

/**
 * This rank's share of the samples: rank, rank + num_replicas, … of the order
 * that all ranks have in common. The lists are PyTorch's, number by number.
 * @errors INVALID_ARGUMENT a negative num_replicas, a rank that is not 0 …
 *         num_replicas - 1; as calx_sequential_sampler
 * @source torch.utils.data.distributed.DistributedSampler
 */
CALX_API calx_sampler *calx_distributed_sampler_with(
    const calx_dataset *dataset,
    const calx_distributed_sampler_options *options);

/** NULL is accepted. Loaders that use it must be gone. */
CALX_API void calx_sampler_free(calx_sampler *sampler);
/** Why the sampler is of no use; NULL: it is. Owned by the sampler. */
CALX_API const calx_status *calx_sampler_error(const calx_sampler *sampler);
/** Samples in an epoch; 0 for a failed one. */
CALX_API int64_t calx_sampler_size(const calx_sampler *sampler);
/** The epoch that begins next, or runs. A loader adds one at its end, so the
 *  order changes without calx_sampler_set_epoch(), unlike PyTorch's. */
CALX_API int64_t calx_sampler_epoch(const calx_sampler *sampler);
/** Decides the order of the next epoch that begins.
 *  @threads thread-safe */
CALX_API void calx_sampler_set_epoch(calx_sampler *sampler, int64_t epoch);
/**
 * The samples of the sampler's epoch.
 * @param out_order  calx_sampler_size() many
 * @errors the sampler's own
 */
CALX_API calx_status *calx_sampler_order(const calx_sampler *sampler,
                                         int64_t *out_order) CALX_MUST_USE;

#ifdef __cplusplus
}
#else
#ifndef CALX_NO_SITES
#define calx_sequential_sampler(dataset) \
  (CALX_DATA_SITE_ calx_sequential_sampler(dataset))
#define calx_sampler_order(sampler, out_order) \
  (CALX_DATA_SITE_ calx_sampler_order(sampler, out_order))
#endif
#define CALX_RANDOM_SAMPLER_(dataset, ...)   \
  (CALX_DATA_SITE_ calx_random_sampler_with( \
      dataset, &(calx_random_sampler_options){ __VA_ARGS__ }))
#define calx_random_sampler(...) \
  CALX_RANDOM_SAMPLER_(__VA_ARGS__, .size = sizeof(calx_random_sampler_options))
#define CALX_DISTRIBUTED_SAMPLER_(dataset, ...)   \
  (CALX_DATA_SITE_ calx_distributed_sampler_with( \
      dataset, &(calx_distributed_sampler_options){ __VA_ARGS__ }))
#define calx_distributed_sampler(...)    \
  CALX_DISTRIBUTED_SAMPLER_(__VA_ARGS__, \
                            .size = sizeof(calx_distributed_sampler_options))
#endif
#endif
