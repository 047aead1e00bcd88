// data/range: rows [begin, end) of another dataset, without a copy.
#include "base/alloc.h"
#include "data/dataset.h"

typedef struct row_range {
  const calx_dataset *dataset;  // outlives the range
  int64_t begin;
} row_range;

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  const row_range *r = user;
  return calx_dataset_get(r->dataset, r->begin + index, fields);
}

calx_dataset *calx_dataset_range(calx_dataset *dataset, int64_t begin,
                                 int64_t end)
{
  const calx_status *error = calx_dataset_error(dataset);
  if (error != NULL) return cx_data_failed(cx_status_copy(error));
  calx_status *iterable = cx_data_not_iterable("dataset range", dataset);
  if (iterable != NULL) return cx_data_failed(iterable);
  if (begin < 0 || end < begin || end > dataset->size) {
    return cx_data_failed(
        cx_error(CALX_OUT_OF_RANGE,
                 "dataset range: samples %lld to %lld of %lld were asked for",
                 (long long)begin, (long long)end, (long long)dataset->size));
  }
  row_range *r = cx_alloc(sizeof *r);
  if (r == NULL) return cx_data_failed(cx_out_of_memory());
  *r = (row_range){ dataset, begin };
  return calx_dataset_new(end - begin, dataset->fields, dataset->n_fields, get,
                          r, cx_free);
}
