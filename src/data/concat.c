// data/concat: the samples of several datasets, one after the other, without a
// copy of them.
#include "base/alloc.h"
#include "data/dataset.h"

typedef struct concatenation {
  size_t count;
  const calx_dataset **datasets;  // outlive the concatenation
  int64_t ends[];                 // samples up to and with each dataset
} concatenation;

static void free_concatenation(void *user)
{
  concatenation *c = user;
  cx_free(c->datasets);
  cx_free(c);
}

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  const concatenation *c = user;
  size_t low = 0, high = c->count - 1;  // of the first end above the index
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (c->ends[middle] > index) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  int64_t begin = low > 0 ? c->ends[low - 1] : 0;
  return calx_dataset_get(c->datasets[low], index - begin, fields);
}

static calx_status *join(calx_dataset *const *datasets, concatenation *c)
{
  int64_t end = 0;
  for (size_t i = 0; i < c->count; i++) {
    c->datasets[i] = datasets[i];
    if (__builtin_add_overflow(end, datasets[i]->size, &end)) {
      return cx_invalid("dataset concat: there are too many samples");
    }
    c->ends[i] = end;
  }
  return NULL;
}

calx_dataset *calx_dataset_concat(calx_dataset *const *datasets, size_t count)
{
  calx_status *status = cx_data_same_fields("dataset concat", datasets, count);
  for (size_t i = 0; i < count && status == NULL; i++) {
    status = cx_data_not_iterable("dataset concat", datasets[i]);
  }
  if (status != NULL) return cx_data_failed(status);
  concatenation *c = cx_calloc(1, sizeof *c + count * sizeof c->ends[0]);
  if (c == NULL) return cx_data_failed(cx_out_of_memory());
  c->count = count;
  c->datasets = cx_calloc(count, sizeof *c->datasets);
  status = c->datasets != NULL ? join(datasets, c) : cx_out_of_memory();
  if (status != NULL) {
    free_concatenation(c);
    return cx_data_failed(status);
  }
  return calx_dataset_new(c->ends[count - 1], datasets[0]->fields,
                          datasets[0]->n_fields, get, c, free_concatenation);
}
