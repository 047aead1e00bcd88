// data/dataset: a size, a list of fields and a callback.
//
// Every kind of dataset (tensors, IDX files, ranges, digits, the caller's own)
// is this one struct with another callback, so the loader knows one kind. A
// constructor never gives NULL: calx_dataset_error() reports what went wrong;
// without memory the dataset is one static object with that error.
//
// The user pointer is owned from the call of calx_dataset_new() on: `free` is
// called exactly once, also when the dataset failed.
#include "data/dataset.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"

static calx_dataset no_memory;

calx_dataset *cx_data_failed(calx_status *error)
{
  calx_dataset *dataset = cx_calloc(1, sizeof *dataset);
  if (dataset == NULL) {
    calx_status_free(error);
    return &no_memory;
  }
  dataset->error = error;
  return dataset;
}

// ---- making one -------------------------------------------------------------

static calx_status *take_field(calx_dataset *dataset, size_t k,
                               const calx_field *field)
{
  static const char *const names[] = { "data",    "target",  "field 2",
                                       "field 3", "field 4", "field 5",
                                       "field 6", "field 7" };
  _Static_assert(sizeof names / sizeof *names == CALX_MAX_FIELDS,
                 "a name for each field");
  const char *name = field->name != NULL ? field->name : names[k];
  if (!cx_dtype_valid(field->dtype)) {
    return cx_invalid("dataset: field %zu, '%s', has no such dtype as %d", k,
                      name, (int)field->dtype);
  }
  if (field->rank >= CALX_MAX_RANK) {
    return cx_invalid(
        "dataset: field %zu, '%s', has rank %zu, and a batch one more: %d is "
        "the most",
        k, name, field->rank, CALX_MAX_RANK);
  }
  int64_t elements;
  if (!cx_dims_bytes(field->dtype, field->dims, field->rank, &elements,
                     &dataset->field_bytes[k])) {
    return cx_invalid(
        "dataset: field %zu, '%s', has a negative size, or too many bytes", k,
        name);
  }
  dataset->fields[k] = *field;
  dataset->fields[k].name = cx_strdup(name);
  dataset->n_fields = k + 1;
  return dataset->fields[k].name != NULL ? NULL : cx_out_of_memory();
}

static calx_status *take_fields(calx_dataset *dataset, int64_t size,
                                const calx_field *fields, size_t n_fields)
{
  if (size < 0) {
    return cx_invalid("dataset: a size of %lld", (long long)size);
  }
  if (dataset->get == NULL) {
    return cx_invalid("dataset: get is NULL");
  }
  if (n_fields == 0 || n_fields > CALX_MAX_FIELDS || fields == NULL) {
    return cx_invalid("dataset: %zu fields, there must be 1 to %d",
                      fields == NULL ? (size_t)0 : n_fields, CALX_MAX_FIELDS);
  }
  for (size_t k = 0; k < n_fields; k++) {
    CALX_TRY(take_field(dataset, k, &fields[k]));
  }
  return NULL;
}

calx_dataset *calx_dataset_new(int64_t size, const calx_field *fields,
                               size_t n_fields, calx_dataset_get_fn *get,
                               void *user, void (*free)(void *user))
{
  calx_dataset *dataset = cx_calloc(1, sizeof *dataset);
  if (dataset == NULL) {
    if (free != NULL) free(user);
    return &no_memory;
  }
  dataset->get = get;
  dataset->user = user;
  dataset->free = free;
  dataset->error = take_fields(dataset, size, fields, n_fields);
  if (dataset->error == NULL) dataset->size = size;
  return dataset;
}

void calx_dataset_free(calx_dataset *dataset)
{
  if (dataset == NULL || dataset == &no_memory) return;
  if (dataset->free != NULL) dataset->free(dataset->user);
  for (size_t k = 0; k < dataset->n_fields; k++) {
    cx_free((void *)dataset->fields[k].name);
  }
  calx_status_free(dataset->error);
  cx_free(dataset->iterable);
  cx_free(dataset);
}

// ---- asking it --------------------------------------------------------------

const calx_status *calx_dataset_error(const calx_dataset *dataset)
{
  if (dataset == NULL) return cx_absent(CX_ABSENT_DATASET);
  return dataset == &no_memory ? cx_out_of_memory() : dataset->error;
}

int64_t calx_dataset_size(const calx_dataset *dataset)
{
  return dataset != NULL ? dataset->size : 0;
}

size_t calx_dataset_field_count(const calx_dataset *dataset)
{
  return calx_dataset_error(dataset) == NULL ? dataset->n_fields : 0;
}

const calx_field *calx_dataset_field(const calx_dataset *dataset, size_t k)
{
  return k < calx_dataset_field_count(dataset) ? &dataset->fields[k] : NULL;
}

calx_status *calx_dataset_get(const calx_dataset *dataset, int64_t index,
                              void *const *fields)
{
  const calx_status *error = calx_dataset_error(dataset);
  if (error != NULL) return cx_status_copy(error);
  if (index < 0 || index >= dataset->size) {
    return cx_error(CALX_OUT_OF_RANGE,
                    "dataset: sample %lld was asked for, there are %lld",
                    (long long)index, (long long)dataset->size);
  }
  if (fields == NULL) {
    return cx_invalid(
        "dataset: there is no room for the fields: they are NULL");
  }
  return dataset->get(dataset->user, index, fields);
}

// ---- what others ask of it --------------------------------------------------

calx_status *cx_data_same_fields(const char *whose,
                                 calx_dataset *const *datasets, size_t count)
{
  if (datasets == NULL || count == 0) {
    return cx_invalid("%s: there are no datasets", whose);
  }
  for (size_t i = 0; i < count; i++) {
    const calx_dataset *d = datasets[i], *first = datasets[0];
    const calx_status *error = calx_dataset_error(d);
    if (error != NULL) {
      return cx_error(calx_status_code(error), "%s: dataset %zu: %s", whose, i,
                      calx_status_message(error));
    }
    if (d->n_fields != first->n_fields) {
      return cx_invalid("%s: dataset %zu has %zu fields, dataset 0 has %zu",
                        whose, i, d->n_fields, first->n_fields);
    }
    for (size_t k = 0; k < d->n_fields; k++) {
      const calx_field *f = &d->fields[k], *g = &first->fields[k];
      bool same = f->dtype == g->dtype && f->rank == g->rank;
      for (size_t x = 0; same && x < f->rank; x++) {
        same = f->dims[x] == g->dims[x];
      }
      if (same) continue;
      return cx_invalid(
          "%s: field %zu, '%s', has another dtype or shape in dataset %zu than "
          "in dataset 0",
          whose, k, f->name, i);
    }
  }
  return NULL;
}

calx_status *cx_data_not_iterable(const char *whose,
                                  const calx_dataset *dataset)
{
  if (dataset == NULL || dataset->iterable == NULL) return NULL;
  return cx_invalid(
      "%s: the dataset is iterable: it has no size, and no sample by number",
      whose);
}
