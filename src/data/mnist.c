// data/mnist: the folder of four IDX files, or what stands in for it.
//
// The two parts of one dataset share it; it is freed with the last of them.
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/file.h"
#include "base/options.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/download.h"

// The mirror that torchvision asks first.
#define MIRROR "https://ossci-datasets.s3.amazonaws.com/mnist"

enum { TRAIN_PART = 8000, DIGITS = 10000 };

typedef struct shared {
  atomic_int refs;
  calx_dataset *whole;
} shared;

typedef struct mnist_part {
  shared *of;
  int64_t begin;
} mnist_part;

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  const mnist_part *p = user;
  return calx_dataset_get(p->of->whole, p->begin + index, fields);
}

static void unshare(shared *s)
{
  if (atomic_fetch_sub(&s->refs, 1) != 1) return;
  calx_dataset_free(s->whole);
  cx_free(s);
}

static void free_part(void *user)
{
  mnist_part *p = user;
  unshare(p->of);
  cx_free(p);
}

static calx_dataset *new_part(shared *s, int64_t begin, int64_t end)
{
  mnist_part *p = cx_alloc(sizeof *p);
  if (p == NULL) return cx_data_failed(cx_out_of_memory());
  *p = (mnist_part){ s, begin };
  atomic_fetch_add(&s->refs, 1);
  return calx_dataset_new(end - begin, s->whole->fields, s->whole->n_fields,
                          get, p, free_part);
}

// Returns both datasets, or frees them and returns the error of one.
static calx_status *give(calx_dataset *train, calx_dataset *test,
                         calx_dataset **out_train, calx_dataset **out_test)
{
  const calx_status *bad = calx_dataset_error(train);
  if (bad == NULL) bad = calx_dataset_error(test);
  if (bad == NULL) {
    *out_train = train;
    *out_test = test;
    return NULL;
  }
  calx_status *status = cx_status_copy(bad);
  calx_dataset_free(train);
  calx_dataset_free(test);
  return status;
}

// Splits the dataset, which it owns from here on.
static calx_status *split(calx_dataset *whole, calx_dataset **out_train,
                          calx_dataset **out_test)
{
  calx_status *status = cx_status_copy(calx_dataset_error(whole));
  int64_t n = calx_dataset_size(whole);
  if (status == NULL && n <= TRAIN_PART) {
    status = cx_invalid(
        "mnist: %lld images; more than %d are wanted, to train and to test",
        (long long)n, TRAIN_PART);
  }
  shared *s = status == NULL ? cx_alloc(sizeof *s) : NULL;
  if (s == NULL) {
    calx_dataset_free(whole);
    return status != NULL ? status : cx_out_of_memory();
  }
  *s = (shared){ .refs = 1, .whole = whole };
  status = give(new_part(s, 0, TRAIN_PART), new_part(s, TRAIN_PART, n),
                out_train, out_test);
  unshare(s);
  return status;
}

// Whether a folder has the file, plain or packed.
static calx_status *find(const char *folder, const char *name, bool *out_found)
{
  cx_text path = { 0 };
  cx_text_format(&path, "%s/%s", folder, name);
  *out_found = cx_file_exists(cx_text_str(&path));
  cx_text_append(&path, ".gz");
  *out_found = *out_found || cx_file_exists(cx_text_str(&path));
  bool failed = cx_text_failed(&path);
  cx_text_free(&path);
  return failed ? cx_out_of_memory() : NULL;
}

static calx_dataset *open_set(const char *folder, const char *set)
{
  cx_text images = { 0 }, labels = { 0 };
  cx_text_format(&images, "%s/%s-images-idx3-ubyte", folder, set);
  cx_text_format(&labels, "%s/%s-labels-idx1-ubyte", folder, set);
  calx_dataset *d = cx_text_failed(&images) || cx_text_failed(&labels)
                        ? cx_data_failed(cx_out_of_memory())
                        : calx_dataset_idx_with(images.data, labels.data, NULL);
  cx_text_free(&images);
  cx_text_free(&labels);
  return d;
}

static calx_status *fetch(const char *folder, const calx_mnist_options *given)
{
  calx_mnist_options o;
  CALX_TRY(cx_options_take("mnist", given, &o, sizeof o));
  if (!o.download) return NULL;
  if (folder == NULL) {
    return cx_invalid("mnist: a download needs a folder, it is NULL");
  }
  const char *mirror = o.mirror;
  if (mirror == NULL) mirror = cx_env_text("CALX_MNIST_MIRROR");
  if (mirror == NULL) mirror = MIRROR;
  return cx_data_download_all(folder, mirror, cx_data_mnist_files, 4);
}

calx_status *calx_dataset_mnist_with(const char *folder,
                                     calx_dataset **out_train,
                                     calx_dataset **out_test,
                                     const calx_mnist_options *options)
{
  *out_train = *out_test = NULL;
  CALX_TRY(fetch(folder, options));
  if (folder == NULL) {
    return split(calx_dataset_digits(DIGITS, 1), out_train, out_test);
  }
  bool whole_mnist;
  CALX_TRY(find(folder, "train-images-idx3-ubyte", &whole_mnist));
  if (!whole_mnist) return split(open_set(folder, "t10k"), out_train, out_test);
  return give(open_set(folder, "train"), open_set(folder, "t10k"), out_train,
              out_test);
}
