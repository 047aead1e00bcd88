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
  CALX_NAMED bool replacement; /* each is drawn of all; one may come twice */
  /* of an epoch; 0 = the dataset's size. Without replacement all come before
   * one comes again */
  CALX_NAMED int64_t num_samples;
} calx_random_sampler_options;

/** All samples, in another order each epoch: what a loader's `shuffle` does.
 *  @errors INVALID_ARGUMENT a negative num_samples, or one of an empty dataset;
 *          as calx_sequential_sampler
 *  @source torch.utils.data.RandomSampler */
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

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_subset_random_sampler_options {
  CALX_NAMED size_t size;
  CALX_NAMED uint64_t seed;
} calx_subset_random_sampler_options;
/**
 * The samples of a list, in another order each epoch.
 * @param indices  copied
 * @errors INVALID_ARGUMENT a negative count or index, no indices
 * @source torch.utils.data.SubsetRandomSampler
 */
CALX_API calx_sampler *calx_subset_random_sampler_with(
    const int64_t *indices, int64_t count,
    const calx_subset_random_sampler_options *options);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_weighted_random_sampler_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool no_replacement; /* a sample comes once in an epoch at most */
  CALX_NAMED uint64_t seed;
} calx_weighted_random_sampler_options;
/**
 * Samples drawn by their weights: a rare class is seen as often as another one.
 * @param weights  of sample 0, 1, …: copied; their sum need not be 1
 * @param num_samples  of an epoch
 * @errors INVALID_ARGUMENT no weights, a negative one or one that is not
 *         finite, a sum that is 0 or infinite, a num_samples that is not
 *         positive, or without replacement more than there are weights above 0
 * @source torch.utils.data.WeightedRandomSampler
 */
CALX_API calx_sampler *calx_weighted_random_sampler_with(
    const double *weights, int64_t count, int64_t num_samples,
    const calx_weighted_random_sampler_options *options);

/**
 * Writes the samples of an epoch, as many as the sampler has.
 * @threads one at a time
 * @return  NULL, or a status that reaches the loader's consumer
 */
typedef calx_status *calx_sampler_order_fn(void *user, int64_t epoch,
                                           int64_t *out_order);
/**
 * A sampler of the caller's. Samples that the dataset has not fail when they
 * are asked for.
 * @param count  samples of an epoch
 * @param order  the same for the same epoch: a loader that resumes asks again
 * @param free   gets `user` once, at the end or when making it fails; may be
 *               NULL
 * @errors INVALID_ARGUMENT a negative count, no order
 * @source torch.utils.data.Sampler
 */
CALX_API calx_sampler *calx_sampler_new(int64_t count,
                                        calx_sampler_order_fn *order,
                                        void *user, void (*free)(void *user));

// ---- batch samplers ---------------------------------------------------------

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_batch_sampler_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool drop_last; /* leave out a last short batch */
} calx_batch_sampler_options;
/**
 * Another sampler's samples in batches: for a loader's `batch_sampler`.
 * @param sampler  outlives it; its epochs are counted here
 * @errors INVALID_ARGUMENT a batch size that is not positive, a batch sampler;
 *         a failed sampler's own
 * @source torch.utils.data.BatchSampler
 */
CALX_API calx_sampler *calx_batch_sampler_with(
    const calx_sampler *sampler, int64_t batch_size,
    const calx_batch_sampler_options *options);

/** Writes the samples of an epoch, and how many of them each batch takes. As
 *  calx_sampler_order_fn. */
typedef calx_status *calx_batch_order_fn(void *user, int64_t epoch,
                                         int64_t *out_order,
                                         int64_t *out_sizes);
/**
 * A batch sampler of the caller's: batches of samples that belong together. On
 * an XLA device each size of a batch is a program of its own.
 * @param count    samples of an epoch
 * @param batches  of an epoch
 * @param largest  samples of a batch, at most; memory is kept for so many
 * @param order,free  as calx_sampler_new; sizes are 1 to `largest`, their sum
 *                 is `count`, else the epoch fails
 * @errors INVALID_ARGUMENT a negative number, numbers that do not fit each
 *         other, no order
 * @source torch.utils.data.Sampler, of lists
 */
CALX_API calx_sampler *calx_batch_sampler_new(int64_t count, int64_t batches,
                                              int64_t largest,
                                              calx_batch_order_fn *order,
                                              void *user,
                                              void (*free)(void *user));

// ---- asking one -------------------------------------------------------------

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

/** Batches in an epoch of a batch sampler; 0 for any other. */
CALX_API int64_t calx_sampler_batches(const calx_sampler *sampler);
/**
 * The same with the sizes of the batches.
 * @param out_order  calx_sampler_size() many
 * @param out_sizes  calx_sampler_batches() many
 * @errors INVALID_ARGUMENT no batch sampler, sizes that cannot be; the
 *         sampler's own
 */
CALX_API calx_status *calx_sampler_batch_order(
    const calx_sampler *sampler, int64_t *out_order,
    int64_t *out_sizes) CALX_MUST_USE;

#ifdef __cplusplus
}
#else
#ifndef CALX_NO_SITES
#define calx_sampler_new(count, ...) \
  (CALX_DATA_SITE_ calx_sampler_new(count, __VA_ARGS__))
#define calx_batch_sampler_new(count, ...) \
  (CALX_DATA_SITE_ calx_batch_sampler_new(count, __VA_ARGS__))
#define calx_sampler_batch_order(sampler, ...) \
  (CALX_DATA_SITE_ calx_sampler_batch_order(sampler, __VA_ARGS__))
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
#define CALX_SUBSET_RANDOM_SAMPLER_(indices, count, ...) \
  (CALX_DATA_SITE_ calx_subset_random_sampler_with(      \
      indices, count, &(calx_subset_random_sampler_options){ __VA_ARGS__ }))
#define calx_subset_random_sampler(indices, ...) \
  CALX_SUBSET_RANDOM_SAMPLER_(                   \
      indices, __VA_ARGS__,                      \
      .size = sizeof(calx_subset_random_sampler_options))
#define CALX_WEIGHTED_RANDOM_SAMPLER_(weights, count, num_samples, ...) \
  (CALX_DATA_SITE_ calx_weighted_random_sampler_with(                   \
      weights, count, num_samples,                                      \
      &(calx_weighted_random_sampler_options){ __VA_ARGS__ }))
#define calx_weighted_random_sampler(weights, count, ...) \
  CALX_WEIGHTED_RANDOM_SAMPLER_(                          \
      weights, count, __VA_ARGS__,                        \
      .size = sizeof(calx_weighted_random_sampler_options))
#define CALX_BATCH_SAMPLER_(sampler, batch_size, ...) \
  (CALX_DATA_SITE_ calx_batch_sampler_with(           \
      sampler, batch_size, &(calx_batch_sampler_options){ __VA_ARGS__ }))
#define calx_batch_sampler(sampler, ...)    \
  CALX_BATCH_SAMPLER_(sampler, __VA_ARGS__, \
                      .size = sizeof(calx_batch_sampler_options))
#endif
#endif
