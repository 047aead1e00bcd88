// data/idx_dataset: a pair of IDX files, images and labels, as a dataset.
//
// Both files are read and checked whole when the dataset is made, so that a
// sample cannot fail later; pixels stay bytes until a sample is asked for.
#include <math.h>

#include "base/alloc.h"
#include "base/options.h"
#include "data/dataset.h"
#include "data/idx.h"
#include "data/images.h"

typedef struct idx_pair {
  cx_data_idx images;  // (N, H, W)
  cx_data_idx labels;  // (N)
  cx_data_levels levels;
} idx_pair;

static void free_digits(void *user)
{
  idx_pair *d = user;
  cx_free(d->images.data);
  cx_free(d->labels.data);
  cx_free(d);
}

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  const idx_pair *d = user;
  size_t pixels = (size_t)(d->images.dims[1] * d->images.dims[2]);
  cx_data_levels_apply(&d->levels, d->images.data + (size_t)index * pixels,
                       pixels, fields[0]);
  *(int64_t *)fields[1] = d->labels.data[index];
  return NULL;
}

static calx_status *take_options(const calx_idx_options *given,
                                 calx_idx_options *out)
{
  CALX_TRY(cx_options_take("idx dataset", given, out, sizeof *out));
  if (out->classes == 0) out->classes = 10;
  if (out->classes < 0) {
    return cx_invalid("idx dataset: %lld classes", (long long)out->classes);
  }
  if (out->mean == 0.0f && out->std == 0.0f) {
    out->mean = CX_DATA_MNIST_MEAN;
    out->std = CX_DATA_MNIST_STD;
  }
  if (!(out->std > 0.0f) || !isfinite(out->std) || !isfinite(out->mean)) {
    return cx_invalid(
        "idx dataset: mean %g and std %g: both must be finite, std positive",
        (double)out->mean, (double)out->std);
  }
  return NULL;
}

static calx_status *other_count(const char *images, const char *labels,
                                int64_t n_images, int64_t n_labels)
{
  return cx_error(CALX_DATA_LOSS,
                  "'%s': byte 4: %lld labels for the %lld images of '%s'",
                  labels, (long long)n_labels, (long long)n_images, images);
}

// Compares the counts in both headers before either file is unpacked.
static calx_status *check_counts(const char *images, const char *labels)
{
  int64_t n, m;
  CALX_TRY(cx_data_idx_peek(images, 3, &n));
  CALX_TRY(cx_data_idx_peek(labels, 1, &m));
  if (n < 0 || m < 0 || n == m) return NULL;  // reading reports the rest
  return other_count(images, labels, n, m);
}

static calx_status *check_pair(const char *images, const char *labels,
                               const idx_pair *d, int64_t classes)
{
  const int64_t *dims = d->images.dims;
  if (dims[1] == 0 || dims[2] == 0) {
    return cx_error(CALX_DATA_LOSS,
                    "'%s': byte 8: images of %lld x %lld pixels", images,
                    (long long)dims[1], (long long)dims[2]);
  }
  if (dims[0] != d->labels.dims[0]) {
    return other_count(images, labels, dims[0], d->labels.dims[0]);
  }
  for (int64_t i = 0; i < dims[0]; i++) {
    if (d->labels.data[i] < classes) continue;
    return cx_error(CALX_DATA_LOSS,
                    "'%s': byte %lld: sample %lld of %lld has label %d, there "
                    "are %lld classes",
                    labels, (long long)(8 + i), (long long)i,
                    (long long)dims[0], d->labels.data[i], (long long)classes);
  }
  return NULL;
}

static calx_status *read_pair(const char *images, const char *labels,
                              const calx_idx_options *given, idx_pair *d)
{
  if (images == NULL || labels == NULL) {
    return cx_invalid("idx dataset: the path of the %s is NULL",
                      images == NULL ? "images" : "labels");
  }
  calx_idx_options options;
  CALX_TRY(take_options(given, &options));
  CALX_TRY(check_counts(images, labels));
  CALX_TRY(cx_data_idx_read(images, 3, &d->images));
  CALX_TRY(cx_data_idx_read(labels, 1, &d->labels));
  CALX_TRY(check_pair(images, labels, d, options.classes));
  cx_data_levels_init(&d->levels, options.mean, options.std);
  return NULL;
}

calx_dataset *calx_dataset_idx_with(const char *images, const char *labels,
                                    const calx_idx_options *options)
{
  idx_pair *d = cx_calloc(1, sizeof *d);
  if (d == NULL) return cx_data_failed(cx_out_of_memory());
  calx_status *status = read_pair(images, labels, options, d);
  if (status != NULL) {
    free_digits(d);
    return cx_data_failed(status);
  }
  const calx_field fields[] = {
    { .name = "data",
      .dtype = CALX_F32,
      .rank = 3,
      .dims = { 1, d->images.dims[1], d->images.dims[2] } },
    { .name = "target", .dtype = CALX_I64 },
  };
  return calx_dataset_new(d->images.dims[0], fields, 2, get, d, free_digits);
}
