/**
 * calx/data.h: datasets, samplers and loaders.
 *
 * A dataset answers "how many" and "give me sample i", where a sample is a
 * fixed list of host arrays. A loader draws indices, lets worker threads fill
 * batches, uploads them ahead of use, and hands them out as tensors.
 *
 * One that is NULL is a failed one: its error says so, and it is empty.
 */
#ifndef CALX_DATA_H
#define CALX_DATA_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A sample has at most this many fields. */
#define CALX_MAX_FIELDS 8

// ---- datasets ---------------------------------------------------------------

/** One field of every sample of a dataset: image f32 (1, 28, 28), label i64 ().
 */
typedef struct calx_field {
  const char *name; /* "data", "target"; for messages */
  calx_dtype dtype;
  size_t rank;
  int64_t dims[CALX_MAX_RANK]; /* of one sample, without the batch */
} calx_field;

/**
 * Fills sample `index` into fields[k], each of that field's bytes. One that
 * makes tensors does so in a scope of its own.
 * @threads called from several worker threads at a time
 * @return  NULL, or a status that reaches the loader's consumer with the index
 */
typedef calx_status *calx_dataset_get_fn(void *user, int64_t index,
                                         void *const *fields);

typedef struct calx_dataset calx_dataset;

/**
 * A dataset of the caller's. Never NULL: calx_dataset_error() tells what is
 * wrong.
 * @param fields  copied, names too; a NULL name is "data", "target", "field 2"…
 * @param free    gets `user` once, at the end or when making it fails; may be
 *                NULL
 * @errors INVALID_ARGUMENT a negative size, no field or more than
 *         CALX_MAX_FIELDS, a bad dtype or size, a field's rank above
 *         CALX_MAX_RANK - 1 (a batch has one more), no `get`
 */
CALX_API calx_dataset *calx_dataset_new(int64_t size, const calx_field *fields,
                                        size_t n_fields,
                                        calx_dataset_get_fn *get, void *user,
                                        void (*free)(void *user));
/** NULL is accepted. Loaders and ranges over it must be gone. */
CALX_API void calx_dataset_free(calx_dataset *dataset);
/** Why the dataset is of no use; NULL: it is. Owned by the dataset. */
CALX_API const calx_status *calx_dataset_error(const calx_dataset *dataset);
/** Samples; 0 for a failed one. */
CALX_API int64_t calx_dataset_size(const calx_dataset *dataset);
/** Fields of a sample; 0 for a failed one. */
CALX_API size_t calx_dataset_field_count(const calx_dataset *dataset);
/** Field k; NULL when there is none. Lives as long as the dataset. */
CALX_API const calx_field *calx_dataset_field(const calx_dataset *dataset,
                                              size_t k);
/**
 * One sample, as the loader gets it.
 * @param fields  where each field's bytes go
 * @errors OUT_OF_RANGE no such sample; the dataset's own
 * @threads thread-safe as far as the dataset's callback is
 */
CALX_API calx_status *calx_dataset_get(const calx_dataset *dataset,
                                       int64_t index,
                                       void *const *fields) CALX_MUST_USE;

/**
 * Samples are rows: row i of each host tensor. The tensors are copied.
 * @shape  each (N, …), the same N
 * @errors INVALID_ARGUMENT no tensor or more than CALX_MAX_FIELDS, not on the
 *         host, rank 0, numbers of rows differ; a poisoned tensor's own
 * @source torch.utils.data.TensorDataset
 */
CALX_API calx_dataset *calx_dataset_tensors(calx_tensor *const *tensors,
                                            size_t count);

/** Of calx_dataset_idx(). Zero means default in every field. */
typedef struct CALX_OPTIONS calx_idx_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t classes; /* labels must be below it; 0 = 10 */
  /* in units of 255; both 0: MNIST's 0.1307 and 0.3081 */
  CALX_NAMED float mean;
  CALX_NAMED float std;
} calx_idx_options;

/**
 * MNIST-style IDX files, plain or gzip (told by their content, and ".gz" is
 * tried when the path is absent): images u8 (N, H, W) become f32 (1, H, W) as
 * (x/255 - mean)/std, labels u8 (N) become i64 (). Both are read whole, here.
 * @errors NOT_FOUND, PERMISSION_DENIED the file  DATA_LOSS wrong magic,
 *         truncated or too long, bad gzip data, counts differ, label out of
 *         range: with the file and the byte  INVALID_ARGUMENT bad options,
 *         or no regular file
 * @source Y. LeCun, the MNIST database: IDX file format
 */
CALX_API calx_dataset *calx_dataset_idx_with(const char *images,
                                             const char *labels,
                                             const calx_idx_options *options);

/**
 * Samples [begin, end) of another dataset, which must outlive it.
 * @errors OUT_OF_RANGE not 0 <= begin <= end <= size; those of the dataset
 * @source torch.utils.data.Subset
 */
CALX_API calx_dataset *calx_dataset_range(calx_dataset *dataset, int64_t begin,
                                          int64_t end);

/**
 * Digits drawn for the purpose: outlines of the ten glyphs with random shift,
 * rotation, scale, stroke width and noise. f32 (1, 28, 28), normalised as
 * MNIST is, and an i64 label. Sample i of a seed is always the same, on every
 * machine.
 * @param size  number of samples; a larger one begins with the same ones
 * @param seed  another seed gives other samples
 * @errors INVALID_ARGUMENT a negative size
 */
CALX_API calx_dataset *calx_dataset_digits(int64_t size, uint64_t seed);

/**
 * The MNIST digits of a folder, as a training and a test set: train-*-ubyte and
 * t10k-*-ubyte, plain or .gz. Where train-* is absent, the first 8,000 samples
 * of t10k train and the others test. A NULL folder: drawn digits, 8,000 and
 * 2,000 of them. The caller frees both.
 * @errors as calx_dataset_idx; both are NULL then
 */
CALX_API calx_status *calx_dataset_mnist(const char *folder,
                                         calx_dataset **out_train,
                                         calx_dataset **out_test) CALX_MUST_USE;

// ---- samplers ---------------------------------------------------------------

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

// ---- loaders ----------------------------------------------------------------

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_loader_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t batch_size; /* 0 = 1 */
  /* a new order each epoch, from `seed` and the epoch */
  CALX_NAMED bool shuffle;
  /* outlives the loader; not with `shuffle`; NULL: all samples */
  CALX_NAMED calx_sampler *sampler;
  /* threads that fill batches, at least one; 0 = 2 */
  CALX_NAMED int num_workers;
  CALX_NAMED bool drop_last; /* leave out a last short batch */
  CALX_NAMED int prefetch;   /* batches uploaded ahead, at least one; 0 = 2 */
  /* NULL: the current device of the thread that takes the first batch */
  CALX_NAMED calx_device *device;
  CALX_NAMED uint64_t seed; /* of the shuffle */
} calx_loader_options;

/** A batch: tensors on the loader's device, owned by the loader until the next
 *  call of calx_loader_next(). */
typedef struct calx_batch {
  calx_tensor *data;   /* field 0 */
  calx_tensor *target; /* field 1; NULL where there is none */
  calx_tensor *fields[CALX_MAX_FIELDS];
  size_t n_fields;
  int64_t size;  /* samples in it */
  int64_t index; /* of the batch in its epoch */
} calx_batch;

typedef struct calx_loader calx_loader;

/** Batches of a dataset, which must outlive the loader. Never NULL:
 *  calx_loader_error() tells what is wrong. Neither a device nor a thread is
 *  touched before the first batch is asked for.
 *  @errors INVALID_ARGUMENT a negative batch size, number of workers or of
 *          batches ahead, a sampler of more samples than the dataset has, or
 *          with `shuffle`; a failed dataset's or sampler's own
 *  @threads one thread at a time calls it */
CALX_API calx_loader *calx_loader_new_with(calx_dataset *dataset,
                                           const calx_loader_options *options);
/** Joins the workers. NULL is accepted. */
CALX_API void calx_loader_free(calx_loader *loader);
/** Why the loader is of no use; NULL: it is. Owned by the loader. */
CALX_API const calx_status *calx_loader_error(const calx_loader *loader);
/** Batches in an epoch; 0 for a failed one. */
CALX_API int64_t calx_loader_size(const calx_loader *loader);
/** Makes the next epoch the one of this number, which decides its order; they
 *  count from 0 by themselves. What is left of a running epoch is dropped. The
 *  sampler's epoch and the loader's are one. */
CALX_API void calx_loader_set_epoch(calx_loader *loader, int64_t epoch);
/** Drops what is left of the running epoch, after leaving a loop early: the
 *  next batch is the first of the next epoch. No worker is inside the dataset
 *  when it returns. Nothing where no epoch runs. */
CALX_API void calx_loader_end_epoch(calx_loader *loader);

/**
 * The next batch. Syncs first what is pending, so a loop over a loader needs no
 * other sync. False at the end of an epoch and on failure, which ends the epoch
 * too; the scope tells the failure, a dataset's with its sample: "sample 5 of
 * 10: …". The call after that begins the next epoch.
 * @shape out_batch->fields[k] (batch, …sample)
 * @errors those of the dataset, of the pending step and of uploads; an error
 *         that the scope holds already
 */
CALX_API bool calx_loader_next(calx_loader *loader, calx_batch *out_batch);

/** How far a loader came: what a checkpoint keeps of it. */
typedef struct calx_loader_position {
  int64_t epoch;   /* that runs, or begins next */
  int64_t samples; /* of it, that were handed out */
} calx_loader_position;

/** Where the loader is, after the batch that was handed out last. */
CALX_API calx_loader_position calx_loader_state(const calx_loader *loader);
/**
 * Goes to a place that a loader over the same samples was at: the next batch is
 * the one that would have come next there. What is left of a running epoch is
 * dropped. Another batch size goes on at the same sample.
 * @errors INVALID_ARGUMENT a negative number, more samples than an epoch has; a
 *         failed loader's own
 */
CALX_API calx_status *calx_loader_load_state(
    calx_loader *loader, calx_loader_position position) CALX_MUST_USE;

/**
 * A loader that hands out the same batch `count` times, without work.
 * @param data,target host or device tensors with the batch dimension, which are
 *        uploaded once or retained; NULL target: none
 * @param count  batches in an epoch
 * @shape data (B, …), target (B, …)
 * @errors INVALID_ARGUMENT a negative count, rank 0, sizes of the batch differ;
 *         those of the tensors and of uploads
 * @source torch_xla.utils.utils.SampleGenerator
 */
CALX_API calx_loader *calx_sample_generator(calx_tensor *data,
                                            calx_tensor *target, int64_t count);

// ---- loaders for devices ----------------------------------------------------

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_device_loader_options {
  CALX_NAMED size_t size;
  /* batches between two syncs; 0 = 1 */
  CALX_NAMED int64_t batches_per_execution;
  CALX_NAMED int loader_prefetch_size; /* batches filled ahead; 0 = 16 */
  CALX_NAMED int device_prefetch_size; /* batches uploaded ahead; 0 = 8 */
  CALX_NAMED int host_to_device_transfer_threads; /* uploads at a time; 0 = 1 */
} calx_device_loader_options;

/**
 * A loader's batches on a device. The loader given is only described by this:
 * it stays as it is, and may be one that ranks share; its dataset and sampler
 * must outlive the new one. It is a loader like any other: syncs at each
 * `batches_per_execution`-th next and where the epoch ends, begins again after
 * that, has a size and a place. calx_dist_step() leaves its sync to it where
 * batches_per_execution is above 1.
 * @param device  NULL: the current device of the thread that takes the first
 *                batch
 * @errors INVALID_ARGUMENT a negative number or one too large, no loader, one
 *         of a parallel loader's; a failed loader's own; of a generator, those
 *         of its transfer
 * @source torch_xla.distributed.parallel_loader.MpDeviceLoader
 */
CALX_API calx_loader *calx_mp_device_loader_with(
    const calx_loader *loader, calx_device *device,
    const calx_device_loader_options *options);

/** One reader for several devices of a process, each consumed by a thread. */
typedef struct calx_parallel_loader calx_parallel_loader;

/**
 * Spreads a loader's batches over devices: batch i goes to device i modulo
 * their number, and what is left over at the end of an epoch is dropped, so
 * that all get equally many. Never NULL: calx_parallel_loader_error() tells
 * what is wrong. The numbers of batches ahead are each device's.
 * @param loader   as for calx_mp_device_loader()
 * @param devices  copied
 * @errors INVALID_ARGUMENT no device, a NULL one, one given twice; as
 *         calx_mp_device_loader()
 * @source torch_xla.distributed.parallel_loader.ParallelLoader
 */
CALX_API calx_parallel_loader *calx_parallel_loader_new_with(
    const calx_loader *loader, calx_device *const *devices, size_t n_devices,
    const calx_device_loader_options *options);
/** Ends all its loaders: whoever waits in one, or asks one, gets that the epoch
 *  is over.  @threads thread-safe */
CALX_API void calx_parallel_loader_close(calx_parallel_loader *loader);
/** Closes it and joins the workers. No thread may be in its loaders, which go
 *  with it. NULL is accepted. */
CALX_API void calx_parallel_loader_free(calx_parallel_loader *loader);
/** Why it is of no use; NULL: it is. Owned by it. */
CALX_API const calx_status *calx_parallel_loader_error(
    const calx_parallel_loader *loader);
/** Batches that each device gets in an epoch; 0 for a failed one. */
CALX_API int64_t calx_parallel_loader_size(const calx_parallel_loader *loader);
/**
 * The loader of one device, owned by the parallel loader and consumed by one
 * thread; NULL: of the calling thread's device. A failure of the dataset
 * reaches all of them, after equally many batches, with its sample. They share
 * epochs: one that begins the next epoch waits until all have ended theirs, and
 * one that is far ahead waits for the others: not for a rank that has ended,
 * where ABORTED names it. The place to go on from is set in
 * the loader that the parallel one is made of. NULL only for NULL:
 * calx_loader_error() tells what is wrong.
 * @errors INVALID_ARGUMENT none of its devices; the parallel loader's own
 * @threads thread-safe
 */
CALX_API calx_loader *calx_per_device_loader(calx_parallel_loader *loader,
                                             calx_device *device);

#ifdef __cplusplus
}
#else
#ifdef CALX_NO_SITES
#define CALX_DATA_SITE_
#else
#define CALX_DATA_SITE_ calx_at_(CALX_HERE),
#define calx_dataset_new(size, ...) \
  (CALX_DATA_SITE_ calx_dataset_new(size, __VA_ARGS__))
#define calx_dataset_get(dataset, index, ...) \
  (CALX_DATA_SITE_ calx_dataset_get(dataset, index, __VA_ARGS__))
#define calx_dataset_tensors(...) \
  (CALX_DATA_SITE_ calx_dataset_tensors(__VA_ARGS__))
#define calx_dataset_range(dataset, begin, end) \
  (CALX_DATA_SITE_ calx_dataset_range(dataset, begin, end))
#define calx_dataset_digits(size, seed) \
  (CALX_DATA_SITE_ calx_dataset_digits(size, seed))
#define calx_dataset_mnist(folder, out_train, out_test) \
  (CALX_DATA_SITE_ calx_dataset_mnist(folder, out_train, out_test))
#define calx_sequential_sampler(dataset) \
  (CALX_DATA_SITE_ calx_sequential_sampler(dataset))
#define calx_sampler_order(sampler, out_order) \
  (CALX_DATA_SITE_ calx_sampler_order(sampler, out_order))
#define calx_loader_load_state(loader, ...) \
  (CALX_DATA_SITE_ calx_loader_load_state(loader, __VA_ARGS__))
#define calx_loader_next(loader, out_batch) \
  (CALX_DATA_SITE_ calx_loader_next(loader, out_batch))
#define calx_sample_generator(data, target, count) \
  (CALX_DATA_SITE_ calx_sample_generator(data, target, count))
#endif
#define CALX_DATASET_IDX_(images, ...) \
  (CALX_DATA_SITE_ calx_dataset_idx_with(images, CALX_IDX_REST_(__VA_ARGS__)))
#define CALX_IDX_REST_(labels, ...) \
  labels, &(calx_idx_options)       \
  {                                 \
    __VA_ARGS__                     \
  }
#define calx_dataset_idx(images, ...) \
  CALX_DATASET_IDX_(images, __VA_ARGS__, .size = sizeof(calx_idx_options))
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
#define CALX_MP_DEVICE_LOADER_(loader, ...)           \
  (CALX_DATA_SITE_ calx_mp_device_loader_with(loader, \
                                              CALX_DEVICE_REST_(__VA_ARGS__)))
#define CALX_DEVICE_REST_(device, ...)  \
  device, &(calx_device_loader_options) \
  {                                     \
    __VA_ARGS__                         \
  }
#define calx_mp_device_loader(loader, ...)    \
  CALX_MP_DEVICE_LOADER_(loader, __VA_ARGS__, \
                         .size = sizeof(calx_device_loader_options))
#define CALX_PARALLEL_LOADER_(loader, devices, ...) \
  (CALX_DATA_SITE_ calx_parallel_loader_new_with(   \
      loader, devices, CALX_DEVICE_REST_(__VA_ARGS__)))
#define calx_parallel_loader_new(loader, devices, ...) \
  CALX_PARALLEL_LOADER_(loader, devices, __VA_ARGS__,  \
                        .size = sizeof(calx_device_loader_options))
#define CALX_LOADER_NEW_(dataset, ...)   \
  (CALX_DATA_SITE_ calx_loader_new_with( \
      dataset, &(calx_loader_options){ __VA_ARGS__ }))
#define calx_loader_new(...) \
  CALX_LOADER_NEW_(__VA_ARGS__, .size = sizeof(calx_loader_options))
#endif
#endif
