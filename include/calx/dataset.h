/**
 * calx/dataset.h: datasets: arrays, files, drawn samples, the caller's own, and
 * datasets made of others.
 *
 * A dataset answers "how many" and "give me sample i", where a sample is a
 * fixed list of host arrays.
 *
 * One that is NULL is a failed one: its error says so, and it is empty.
 */
#ifndef CALX_DATASET_H
#define CALX_DATASET_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A sample has at most this many fields. */
#define CALX_MAX_FIELDS 8

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
 * Samples are rows: row i of the array of each .npy file. The elements stay in
 * the files' maps until a sample is asked for: replace such a file, do not
 * change it in place.
 * @param paths  of each field's file
 * @errors NOT_FOUND, PERMISSION_DENIED, DATA_LOSS, UNIMPLEMENTED as calx_load()
 *         with CALX_FORMAT_NPY  INVALID_ARGUMENT no path or more than
 *         CALX_MAX_FIELDS; as calx_dataset_tensors()
 * @source numpy.load with mmap_mode
 */
CALX_API calx_dataset *calx_dataset_npy(const char *const *paths, size_t count);
/**
 * The same of arrays of one .npz file, which are unpacked here.
 * @param keys  of each field's array, "x_train"
 * @errors NOT_FOUND no such array, or no file; as calx_dataset_npy()
 * @source numpy.load
 */
CALX_API calx_dataset *calx_dataset_npz(const char *path,
                                        const char *const *keys, size_t count);

/** Of calx_dataset_csv(). Zero means default in every field. */
typedef struct CALX_OPTIONS calx_csv_options {
  CALX_NAMED size_t size;
  /* of "data", by their titles or numbers ("0" is the first); NULL: all but the
   * target */
  CALX_NAMED const char *const *columns;
  CALX_NAMED size_t n_columns;
  CALX_NAMED const char *target;      /* the column of "target"; NULL: none */
  CALX_NAMED calx_dtype dtype;        /* of "data"; default f32 */
  CALX_NAMED calx_dtype target_dtype; /* default: as dtype */
  CALX_NAMED char delimiter;          /* 0 = ',' */
  CALX_NAMED bool no_header;          /* the first line is a sample */
  /* in the place of a missing value: a number, NAN, CALX_ZERO; 0: an error */
  CALX_NAMED double missing;
} calx_csv_options;

/**
 * Rows of numbers of a CSV file (RFC 4180), which is read whole here: "data"
 * (columns), and "target" () where there is one. A value is missing where its
 * cell is empty, or NA, N/A, NaN, null or None.
 * @errors NOT_FOUND the file or a column  PERMISSION_DENIED the file  DATA_LOSS
 *         rows of different lengths, an open quote, a missing value, no number
 *         or one that the dtype has not: with line and column
 *         INVALID_ARGUMENT bad options, a title that two columns have, no
 *         regular file or one above 4 GiB
 */
CALX_API calx_dataset *calx_dataset_csv_with(const char *path,
                                             const calx_csv_options *options);

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

/** Of calx_dataset_fake(). Zero means default in every field. */
typedef struct CALX_OPTIONS calx_fake_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_dims image_size;  /* of "data"; none: 3, 224, 224 */
  CALX_NAMED int64_t num_classes;   /* labels are below it; 0 = 10 */
  CALX_NAMED int64_t random_offset; /* sample i is sample i + offset of 0 */
  CALX_NAMED calx_dtype dtype;      /* of "data"; default f32 */
  /* integers of "data" are below it; 0 = 128, 2 for bool */
  CALX_NAMED int64_t high;
} calx_fake_options;

/**
 * Samples drawn at random, always the same for the same number: "data" of any
 * shape, normal numbers or uniform integers, and an i64 label. The numbers are
 * not torchvision's.
 * @param size  number of samples
 * @errors INVALID_ARGUMENT a negative size or number of classes, a `high` that
 *         the dtype has not, a shape that is too large
 * @source torchvision.datasets.FakeData
 */
CALX_API calx_dataset *calx_dataset_fake_with(int64_t size,
                                              const calx_fake_options *options);

/** Of calx_dataset_mnist(). Zero means default in every field. */
typedef struct CALX_OPTIONS calx_mnist_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool download; /* the files that the folder lacks */
  /* a URL, http or https, below which the four files are; NULL:
   * CALX_MNIST_MIRROR of the environment, else torchvision's first */
  CALX_NAMED const char *mirror;
} calx_mnist_options;

/**
 * The MNIST digits of a folder, as a training and a test set: train-*-ubyte and
 * t10k-*-ubyte, plain or .gz. Where train-* is absent, the first 8,000 samples
 * of t10k train and the others test. A NULL folder: drawn digits, 8,000 and
 * 2,000 of them. The caller frees both.
 *
 * With .download the folder is made, and a .gz that is absent or damaged comes
 * from the mirror, is checked by its SHA-256 and gets its name at once. A
 * download that broke off goes on where it ended; ranks of a host may all ask.
 * @errors as calx_dataset_idx; both are NULL then. Of a download: NOT_FOUND,
 *         PERMISSION_DENIED, UNAVAILABLE the server's answer, or no connection
 *         DATA_LOSS another size or checksum  INVALID_ARGUMENT no folder, a URL
 *         of another kind  UNIMPLEMENTED no libcurl: with Debian's package
 * @source torchvision.datasets.MNIST
 */
CALX_API calx_status *calx_dataset_mnist_with(
    const char *folder, calx_dataset **out_train, calx_dataset **out_test,
    const calx_mnist_options *options) CALX_MUST_USE;

// ---- datasets of other datasets ---------------------------------------------

/**
 * Samples [begin, end) of another dataset, which must outlive it.
 * @errors OUT_OF_RANGE not 0 <= begin <= end <= size; those of the dataset
 * @source torch.utils.data.Subset
 */
CALX_API calx_dataset *calx_dataset_range(calx_dataset *dataset, int64_t begin,
                                          int64_t end);

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

/**
 * The samples of several datasets, one after the other. The datasets must
 * outlive it; fields are called as those of the first.
 * @param datasets  copied; one may be there twice
 * @errors INVALID_ARGUMENT no dataset, fields that differ in number, dtype or
 *         shape; those of the datasets
 * @source torch.utils.data.ConcatDataset
 */
CALX_API calx_dataset *calx_dataset_concat(calx_dataset *const *datasets,
                                           size_t count);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_random_split_options {
  CALX_NAMED size_t size;
  CALX_NAMED uint64_t seed; /* its low 32 bits count, as PyTorch's do */
} calx_random_split_options;

/**
 * A dataset in parts that have no sample in common. With the same lengths and
 * seed the parts are those of PyTorch, where the generator is
 * torch.Generator().manual_seed(seed). The dataset must outlive the parts.
 * @param lengths  numbers of samples, whose sum is the dataset's size; or
 *        fractions, whose sum is 1: they are rounded down, and what is left is
 *        spread over the first parts
 * @param out_parts  `n` datasets, which the caller frees; all NULL on failure
 * @errors INVALID_ARGUMENT no lengths, a negative one or one that is NaN, a
 *         sum that is neither the size nor 1; those of the dataset
 * @source torch.utils.data.random_split
 */
CALX_API calx_status *calx_random_split_with(
    calx_dataset *dataset, const double *lengths, size_t n,
    const calx_random_split_options *options,
    calx_dataset **out_parts) CALX_MUST_USE;

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_csv_options_ .missing = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_csv_options, calx_written_(&o->missing);)
#endif
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
#define calx_dataset_subset(dataset, ...) \
  (CALX_DATA_SITE_ calx_dataset_subset(dataset, __VA_ARGS__))
#define calx_dataset_npy(...) (CALX_DATA_SITE_ calx_dataset_npy(__VA_ARGS__))
#define calx_dataset_npz(path, ...) \
  (CALX_DATA_SITE_ calx_dataset_npz(path, __VA_ARGS__))
#define calx_dataset_concat(...) \
  (CALX_DATA_SITE_ calx_dataset_concat(__VA_ARGS__))
#endif
#define CALX_DATASET_CSV_(path, ...)      \
  (CALX_DATA_SITE_ calx_dataset_csv_with( \
      path, CALX_WRITE_(calx_csv_options, __VA_ARGS__)))
#define calx_dataset_csv(...) \
  CALX_DATASET_CSV_(__VA_ARGS__, .size = sizeof(calx_csv_options))
#define CALX_DATASET_FAKE_(count, ...)     \
  (CALX_DATA_SITE_ calx_dataset_fake_with( \
      count, &(calx_fake_options){ __VA_ARGS__ }))
#define calx_dataset_fake(...) \
  CALX_DATASET_FAKE_(__VA_ARGS__, .size = sizeof(calx_fake_options))
#define CALX_RANDOM_SPLIT_(dataset, lengths, n, out_parts, ...)         \
  (CALX_DATA_SITE_ calx_random_split_with(                              \
      dataset, lengths, n, &(calx_random_split_options){ __VA_ARGS__ }, \
      out_parts))
#define calx_random_split(dataset, lengths, n, ...)    \
  CALX_RANDOM_SPLIT_(dataset, lengths, n, __VA_ARGS__, \
                     .size = sizeof(calx_random_split_options))
#define CALX_DATASET_IDX_(images, ...) \
  (CALX_DATA_SITE_ calx_dataset_idx_with(images, CALX_IDX_REST_(__VA_ARGS__)))
#define CALX_IDX_REST_(labels, ...) \
  labels, &(calx_idx_options)       \
  {                                 \
    __VA_ARGS__                     \
  }
#define calx_dataset_idx(images, ...) \
  CALX_DATASET_IDX_(images, __VA_ARGS__, .size = sizeof(calx_idx_options))
#define CALX_DATASET_MNIST_(folder, out_train, out_test, ...) \
  (CALX_DATA_SITE_ calx_dataset_mnist_with(                   \
      folder, out_train, out_test, &(calx_mnist_options){ __VA_ARGS__ }))
#define calx_dataset_mnist(folder, out_train, ...)    \
  CALX_DATASET_MNIST_(folder, out_train, __VA_ARGS__, \
                      .size = sizeof(calx_mnist_options))
#endif
#endif
