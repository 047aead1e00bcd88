/**
 * calx/data.h: loaders: batches of a dataset's samples.
 *
 * A loader draws indices, lets worker threads fill batches, uploads them ahead
 * of use, and hands them out as tensors.
 *
 * One that is NULL is a failed one: its error says so, and it is empty.
 */
#ifndef CALX_DATA_H
#define CALX_DATA_H

#include "calx/collate.h"
#include "calx/dataset.h"
#include "calx/iterable.h"
#include "calx/sampler.h"
#include "calx/spmd.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the tensors of batches are split among devices, which get their parts
 *  only. Each is marked as by calx_mark_sharding(). All zero: they are not.
 *  @source torch_xla.distributed.spmd.ShardingSpec */
typedef struct CALX_OPTIONS calx_input_sharding {
  CALX_NO_NUMBER
  CALX_NAMED const calx_mesh *mesh; /* copied */
  /* for the first dimensions of each field, the batch before all others, the
   * axis that splits it as for calx_mark_sharding(); those behind are whole */
  CALX_NAMED calx_axes partition_spec;
} calx_input_sharding;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_loader_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t batch_size; /* 0 = 1 */
  /* a new order each epoch, from `seed` and the epoch */
  CALX_NAMED bool shuffle;
  /* outlives the loader; not with `shuffle`; NULL: all samples */
  CALX_NAMED calx_sampler *sampler;
  /* threads that fill batches, at least one; 0 = 2, of an iterable dataset 1 */
  CALX_NAMED int num_workers;
  CALX_NAMED bool drop_last; /* leave out a last short batch */
  CALX_NAMED int prefetch;   /* batches uploaded ahead, at least one; 0 = 2 */
  /* NULL: the current device of the thread that takes the first batch */
  CALX_NAMED calx_device *device;
  CALX_NAMED uint64_t seed; /* of the shuffle, and of the workers */
  /* decides the batches too; outlives the loader; not with batch_size, shuffle,
   * sampler or drop_last */
  CALX_NAMED calx_sampler *batch_sampler;
  CALX_NAMED calx_collate_fn *collate_fn; /* NULL: samples are stacked */
  CALX_NAMED void *collate_user;          /* its `user` */
  /* processes that call the dataset, one for each worker; 0 = none: the threads
   * call it themselves */
  CALX_NAMED int num_processes;
  /* seconds that a process may take for a batch; 0 = any time */
  CALX_NAMED double timeout;
  /* not with `num_processes`, which need a process without devices: give it to
   * calx_mp_device_loader() of a loader that was made before the mesh */
  CALX_NAMED calx_input_sharding input_sharding;
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
 *
 *  Worker processes are for datasets whose functions must not run in several
 *  threads, or may crash: one that ends is an ABORTED of the sample that it
 *  made, and the program goes on. They are forked here, so make the loader
 *  first: before devices, calx_launch() and other threads. They see the
 *  dataset as it is now. Loaders made of this one share them.
 *  @errors INVALID_ARGUMENT a negative batch size, number of workers or of
 *          batches ahead, a sampler of more samples than the dataset has, or
 *          with `shuffle`, a batch sampler in the place of a sampler or the
 *          other way round, any of them or `shuffle` for an iterable dataset;
 *          a timeout without processes, another number of workers than of
 *          processes; an input_sharding without a mesh, with an axis that the
 *          mesh lacks or that comes twice, of more dimensions than a field has,
 *          or that does not divide a batch, also a last short one; a failed
 *          dataset's or sampler's own  FAILED_PRECONDITION processes, and this
 *          one has several threads already; an input_sharding without
 *          calx_use_spmd()
 *  @threads one thread at a time calls it */
CALX_API calx_loader *calx_loader_new_with(calx_dataset *dataset,
                                           const calx_loader_options *options);
/** Joins the workers. NULL is accepted. */
CALX_API void calx_loader_free(calx_loader *loader);
/** Why the loader is of no use; NULL: it is. Owned by the loader. */
CALX_API const calx_status *calx_loader_error(const calx_loader *loader);
/** Batches in an epoch; 0 for a failed one, -1 over an iterable dataset. */
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
 * @errors INVALID_ARGUMENT a negative number, more samples than an epoch has, a
 *         last batch that an input_sharding cannot split; a failed loader's own
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
  CALX_NAMED calx_input_sharding input_sharding;  /* all zero: the loader's */
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
 *         of a parallel loader's; those of an input_sharding; a failed loader's
 *         own; of a generator, those of its transfer  UNIMPLEMENTED an
 *         input_sharding of a generator
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
#ifndef CALX_NO_SITES
#define calx_loader_load_state(loader, ...) \
  (CALX_DATA_SITE_ calx_loader_load_state(loader, __VA_ARGS__))
#define calx_loader_next(loader, out_batch) \
  (CALX_DATA_SITE_ calx_loader_next(loader, out_batch))
#define calx_sample_generator(data, target, count) \
  (CALX_DATA_SITE_ calx_sample_generator(data, target, count))
#endif
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
