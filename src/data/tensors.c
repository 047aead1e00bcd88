// data/tensors: a dataset whose samples are the rows of host tensors.
//
// The elements are copied into one block, so the tensors may be freed at once.
// Those that a file's map holds stay there, and their tensors are kept. Worker
// threads use no tensor.
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "data/dataset.h"

typedef struct rows {
  size_t n_fields;
  size_t row_bytes[CALX_MAX_FIELDS];
  const char *data[CALX_MAX_FIELDS];   // (N, …) each
  calx_tensor *kept[CALX_MAX_FIELDS];  // whose memory that is; NULL: its own
} rows;

static void free_rows(void *user)
{
  rows *r = user;
  for (size_t k = 0; k < r->n_fields; k++) {
    if (r->kept[k] == NULL) cx_free((void *)r->data[k]);
    calx_release(r->kept[k]);
  }
  cx_free(r);
}

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  const rows *r = user;
  for (size_t k = 0; k < r->n_fields; k++) {
    memcpy(fields[k], r->data[k] + (size_t)index * r->row_bytes[k],
           r->row_bytes[k]);
  }
  return NULL;
}

static calx_status *check_tensor(size_t k, const calx_tensor *tensor, int64_t n)
{
  if (tensor == NULL) {
    return cx_invalid("tensor dataset: tensor %zu is NULL", k);
  }
  const calx_status *error = calx_tensor_error(tensor);
  if (error != NULL) {
    return cx_error(calx_status_code(error), "tensor dataset: tensor %zu: %s",
                    k, calx_status_message(error));
  }
  if (!calx_tensor_is_host(tensor)) {
    return cx_invalid(
        "tensor dataset: tensor %zu is on %s, the rows must be on the host: "
        "move it with calx_cpu",
        k, calx_device_name(calx_tensor_device(tensor)));
  }
  if (calx_tensor_rank(tensor) == 0) {
    return cx_invalid("tensor dataset: tensor %zu has no rows: its rank is 0",
                      k);
  }
  if (calx_tensor_dim(tensor, 0) != n) {
    return cx_invalid(
        "tensor dataset: tensor %zu has %lld rows, tensor 0 has %lld", k,
        (long long)calx_tensor_dim(tensor, 0), (long long)n);
  }
  return NULL;
}

// The field that tensor k describes, and a copy of its elements.
static calx_status *take_tensor(rows *r, size_t k, calx_tensor *tensor,
                                int64_t n, bool copied, calx_field *out_field)
{
  CALX_TRY(check_tensor(k, tensor, n));
  calx_dims shape = calx_tensor_shape(tensor);
  *out_field = (calx_field){ .dtype = calx_tensor_dtype(tensor),
                             .rank = shape.count - 1 };
  memcpy(out_field->dims, shape.values + 1, out_field->rank * sizeof(int64_t));
  int64_t elements;
  size_t bytes;
  if (!cx_dims_bytes(out_field->dtype, out_field->dims, out_field->rank,
                     &elements, &r->row_bytes[k]) ||
      !cx_mul_size(r->row_bytes[k], (size_t)n, &bytes)) {
    return cx_invalid("tensor dataset: tensor %zu has too many bytes", k);
  }
  r->n_fields = k + 1;
  r->data[k] = calx_host_data(tensor);
  if (!copied) {
    r->kept[k] = calx_retain(tensor);
    return NULL;
  }
  char *copy = cx_alloc(bytes);
  if (copy != NULL && bytes != 0) memcpy(copy, r->data[k], bytes);
  r->data[k] = copy;
  return copy != NULL ? NULL : cx_out_of_memory();
}

calx_dataset *cx_data_of_tensors(calx_tensor *const *tensors, size_t count,
                                 bool copied)
{
  if (tensors == NULL || count == 0 || count > CALX_MAX_FIELDS) {
    return cx_data_failed(
        cx_invalid("tensor dataset: %zu tensors, there must be 1 to %d",
                   tensors == NULL ? (size_t)0 : count, CALX_MAX_FIELDS));
  }
  rows *r = cx_calloc(1, sizeof *r);
  if (r == NULL) return cx_data_failed(cx_out_of_memory());
  calx_field fields[CALX_MAX_FIELDS];
  int64_t n = tensors[0] != NULL ? calx_tensor_dim(tensors[0], 0) : 0;
  calx_status *status = NULL;
  for (size_t k = 0; k < count && status == NULL; k++) {
    status = take_tensor(r, k, tensors[k], n, copied, &fields[k]);
  }
  if (status != NULL) {
    free_rows(r);
    return cx_data_failed(status);
  }
  return calx_dataset_new(n, fields, count, get, r, free_rows);
}

calx_dataset *calx_dataset_tensors(calx_tensor *const *tensors, size_t count)
{
  return cx_data_of_tensors(tensors, count, true);
}
