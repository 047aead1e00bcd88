// data/subset: listed rows of another dataset, without a copy of them.
#include <string.h>

#include "base/alloc.h"
#include "calx/dataset.h"
#include "data/dataset.h"

typedef struct subset {
  const calx_dataset *dataset;  // outlives the subset
  int64_t indices[];
} subset;

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  const subset *s = user;
  return calx_dataset_get(s->dataset, s->indices[index], fields);
}

static calx_status *check(const calx_dataset *dataset, const int64_t *indices,
                          int64_t count)
{
  if (count < 0) {
    return cx_invalid("dataset subset: a count of %lld", (long long)count);
  }
  if (indices == NULL && count > 0) {
    return cx_invalid(
        "dataset subset: the indices are NULL, and there are to "
        "be %lld",
        (long long)count);
  }
  for (int64_t i = 0; i < count; i++) {
    if (indices[i] >= 0 && indices[i] < dataset->size) continue;
    return cx_error(CALX_OUT_OF_RANGE,
                    "dataset subset: index %lld is %lld, and the dataset has "
                    "%lld samples",
                    (long long)i, (long long)indices[i],
                    (long long)dataset->size);
  }
  return NULL;
}

calx_dataset *calx_dataset_subset(calx_dataset *dataset, const int64_t *indices,
                                  int64_t count)
{
  const calx_status *error = calx_dataset_error(dataset);
  if (error != NULL) return cx_data_failed(cx_status_copy(error));
  calx_status *iterable = cx_data_not_iterable("dataset subset", dataset);
  if (iterable != NULL) return cx_data_failed(iterable);
  calx_status *status = check(dataset, indices, count);
  if (status != NULL) return cx_data_failed(status);
  if ((uint64_t)count > (SIZE_MAX - sizeof(subset)) / sizeof *indices) {
    return cx_data_failed(cx_out_of_memory());
  }
  size_t bytes = (size_t)count * sizeof *indices;
  subset *s = cx_alloc(sizeof *s + bytes);
  if (s == NULL) return cx_data_failed(cx_out_of_memory());
  s->dataset = dataset;
  if (bytes > 0) memcpy(s->indices, indices, bytes);
  return calx_dataset_new(count, dataset->fields, dataset->n_fields, get, s,
                          cx_free);
}
