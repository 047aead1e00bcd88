/**
 * calx/data.h: datasets, samplers and loaders.
 *
 * A dataset answers "how many" and "give me sample i", where a sample is a
 * fixed list of host arrays. A loader draws indices, lets worker threads fill
 * batches, uploads them ahead of use, and hands them out as tensors.
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
 * Fills sample `index` into fields[k], each of that field's bytes.
 * @threads called from several worker threads at a time
 * @return  NULL, or a status that reaches the loader's consumer with the index
 */
typedef calx_status *calx_dataset_get_fn(void *user, int64_t index,
                                         void *const *fields);

typedef struct calx_dataset calx_dataset;

/** A dataset of the caller's. `free` (may be NULL) gets `user` at the end.
 * Never NULL: calx_dataset_error() tells what is wrong. */
CALX_API calx_dataset *calx_dataset_new(int64_t size, const calx_field *fields,
                                        size_t n_fields,
                                        calx_dataset_get_fn *get, void *user,
                                        void (*free)(void *user));
/** NULL is accepted. Loaders over it must be gone. */
CALX_API void calx_dataset_free(calx_dataset *dataset);
CALX_API const calx_status *calx_dataset_error(const calx_dataset *dataset);
/** Samples; 0 for a failed one. */
CALX_API int64_t calx_dataset_size(const calx_dataset *dataset);
CALX_API size_t calx_dataset_field_count(const calx_dataset *dataset);
CALX_API const calx_field *calx_dataset_field(const calx_dataset *dataset,
                                              size_t k);

/**
 * Samples are rows: row i of each host tensor. The tensors are copied.
 * @shape  each (N, …), the same N
 * @errors INVALID_ARGUMENT no tensor, not on the host, sizes differ
 * @source torch.utils.data.TensorDataset
 */
CALX_API calx_dataset *calx_dataset_tensors(calx_tensor *const *tensors,
                                            size_t count);

/**
 * MNIST-style IDX files, plain or gzip (told by their content, and ".gz" is
 * tried when the path is absent): images u8 (N, H, W) become f32 (1, H, W) as
 * (x/255 - mean)/std, labels u8 (N) become i64 ().
 * @param classes  labels must be below it; 0 = 10
 * @param mean,std both 0: MNIST's 0.1307 and 0.3081
 * @errors DATA_LOSS wrong magic, truncated, counts differ, label out of range
 * @source Y. LeCun, the MNIST database: IDX file format
 */
typedef struct calx_idx_options {
  size_t size;
  int64_t classes;
  float mean, std;
} calx_idx_options;
CALX_API calx_dataset *calx_dataset_idx_with(const char *images,
                                             const char *labels,
                                             const calx_idx_options *options);

/**
 * Rows [begin, end) of another dataset, which must outlive it.
 * @errors OUT_OF_RANGE
 * @source torch.utils.data.Subset
 */
CALX_API calx_dataset *calx_dataset_range(calx_dataset *dataset, int64_t begin,
                                          int64_t end);

/**
 * Digits drawn for the purpose: outlines of the ten glyphs with random shift,
 * rotation, scale, stroke width and noise. f32 (1, 28, 28), normalised as
 * MNIST is, and an i64 label. Sample i of a seed is always the same.
 * @param size  number of samples
 * @param seed  another seed gives other samples
 */
CALX_API calx_dataset *calx_dataset_digits(int64_t size, uint64_t seed);

// ---- loaders ----------------------------------------------------------------

/** Zero means default in every field. */
typedef struct calx_loader_options {
  size_t size;
  int64_t batch_size;  /* 0 = 1 */
  bool shuffle;        /* a new order each epoch, from `seed` and the epoch */
  bool drop_last;      /* leave out a last short batch */
  uint64_t seed;       /* of the shuffle */
  int num_workers;     /* threads that fill batches; 0 = 2, CALX_ZERO_INT is not
                          needed: at least one */
  int prefetch;        /* batches uploaded ahead; 0 = 2 */
  calx_device *device; /* NULL: the current device of the thread that makes the
                          loader */
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

/** Never NULL: calx_loader_error() tells what is wrong.
 *  @errors INVALID_ARGUMENT a failed dataset, a batch size below 1 */
CALX_API calx_loader *calx_loader_new_with(calx_dataset *dataset,
                                           const calx_loader_options *options);
/** Joins the workers. NULL is accepted. */
CALX_API void calx_loader_free(calx_loader *loader);
CALX_API const calx_status *calx_loader_error(const calx_loader *loader);
/** Batches in an epoch. */
CALX_API int64_t calx_loader_size(const calx_loader *loader);
/** The number of the epoch that runs or comes next, from 0. Setting it decides
 *  the shuffle. */
CALX_API void calx_loader_set_epoch(calx_loader *loader, int64_t epoch);

/**
 * The next batch. Syncs first what is pending, so a loop over a loader needs no
 * other sync. False at the end of an epoch (the next call begins another) and
 * on failure, which the scope reports: a dataset's error with its index.
 * @shape out_batch->fields[k] (batch, …sample)
 * @errors those of the dataset, of the pending step and of uploads
 */
CALX_API bool calx_loader_next(calx_loader *loader, calx_batch *out_batch);

/**
 * The seeds' generator: the same batch, `count` times, without work.
 * @param data,target host or device tensors with the batch dimension; NULL
 *        target: none
 * @param count  batches in an epoch
 * @shape data (B, …), target (B, …)
 * @errors INVALID_ARGUMENT a negative count, poisoned tensors
 * @source torch_xla.utils.utils.SampleGenerator
 */
CALX_API calx_loader *calx_sample_generator(calx_tensor *data,
                                            calx_tensor *target, int64_t count);

#ifdef __cplusplus
}
#else
#define CALX_DATASET_IDX_(images, ...) \
  calx_dataset_idx_with(images, CALX_IDX_REST_(__VA_ARGS__))
#define CALX_IDX_REST_(labels, ...) \
  labels, &(calx_idx_options)       \
  {                                 \
    __VA_ARGS__                     \
  }
#define calx_dataset_idx(images, ...) \
  CALX_DATASET_IDX_(images, __VA_ARGS__, .size = sizeof(calx_idx_options))
#define CALX_LOADER_NEW_(dataset, ...) \
  calx_loader_new_with(dataset, &(calx_loader_options){ __VA_ARGS__ })
#define calx_loader_new(...) \
  CALX_LOADER_NEW_(__VA_ARGS__, .size = sizeof(calx_loader_options))
#ifndef CALX_NO_SITES
#define calx_loader_next(loader, out_batch) \
  (calx_at_(CALX_HERE), calx_loader_next(loader, out_batch))
#endif
#endif
#endif
