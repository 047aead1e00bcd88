// data/collate: batches of other shapes than stacked samples have.
#include "data/collate.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"

void cx_data_collated_clear(calx_collated *batch)
{
  for (size_t k = 0; k < batch->n_fields; k++) {
    cx_data_block_release(batch->parts[k]);
  }
  *batch = (calx_collated){ 0 };
}

calx_status *calx_collated_add(calx_collated *batch, calx_dtype dtype,
                               calx_dims shape, void **out_elements)
{
  int64_t elements;
  size_t bytes;
  size_t k = batch->n_fields;
  *out_elements = NULL;
  if (k == CALX_MAX_FIELDS) {
    return cx_invalid("collate: more than %d fields", CALX_MAX_FIELDS);
  }
  if (!cx_dtype_valid(dtype) || shape.count > CALX_MAX_RANK ||
      shape.count == 0) {
    return cx_invalid("collate: field %zu has dtype %d and rank %zu", k,
                      (int)dtype, shape.count);
  }
  if (!cx_dims_bytes(dtype, shape.values, shape.count, &elements, &bytes)) {
    return cx_invalid(
        "collate: field %zu has a negative size, or too many bytes", k);
  }
  cx_data_block *part = cx_data_block_single(bytes);
  if (part == NULL) return cx_out_of_memory();
  calx_field *f = &batch->fields[k];
  *f = (calx_field){ .dtype = dtype, .rank = shape.count };
  memcpy(f->dims, shape.values, sizeof f->dims);
  batch->parts[k] = part;
  batch->n_fields = k + 1;
  *out_elements = part->fields[0];
  return NULL;
}

// The shape of field f of n samples, the second size replaced where rows >= 0.
static calx_dims shape_of(const calx_field *f, int64_t n, int64_t rows)
{
  calx_dims shape = calx_dims_of(f->dims, 0);
  shape.count = f->rank + 1;
  shape.values[0] = n;
  for (size_t d = 0; d < f->rank; d++) shape.values[d + 1] = f->dims[d];
  if (rows >= 0) shape.values[1] = rows;
  return shape;
}

static size_t bytes_of(const calx_field *f)
{
  int64_t elements;
  size_t bytes;
  return cx_dims_bytes(f->dtype, f->dims, f->rank, &elements, &bytes) ? bytes
                                                                      : 0;
}

calx_status *calx_collated_stack(calx_collated *batch,
                                 const calx_samples *samples, size_t k)
{
  if (k >= samples->n_fields) {
    return cx_error(CALX_OUT_OF_RANGE,
                    "collate: field %zu was asked for, there are %zu", k,
                    samples->n_fields);
  }
  const calx_field *f = &samples->fields[k];
  void *out;
  CALX_TRY(calx_collated_add(batch, f->dtype, shape_of(f, samples->count, -1),
                             &out));
  size_t bytes = bytes_of(f) * (size_t)samples->count;
  if (bytes > 0) memcpy(out, samples->data[k], bytes);
  return NULL;
}

calx_status *calx_default_collate(void *user, const calx_samples *samples,
                                  calx_collated *batch)
{
  (void)user;
  for (size_t k = 0; k < samples->n_fields; k++) {
    CALX_TRY(calx_collated_stack(batch, samples, k));
  }
  return NULL;
}

// ---- padding ----------------------------------------------------------------

static calx_status *check_padding(const calx_padding *p, const calx_samples *s)
{
  if (p == NULL) return cx_invalid("pad collate: user is NULL, no padding");
  if (p->field >= s->n_fields || p->length >= s->n_fields) {
    return cx_invalid(
        "pad collate: field %zu with length %zu, the samples have %zu fields",
        p->field, p->length, s->n_fields);
  }
  const calx_field *f = &s->fields[p->field], *l = &s->fields[p->length];
  if (f->rank == 0 || l->rank != 0 || !cx_dtype_is_int(l->dtype)) {
    return cx_invalid(
        "pad collate: '%s' must have a rank above 0, and '%s', its length, "
        "must be one integer",
        f->name, l->name);
  }
  if (p->multiple < 0) {
    return cx_invalid("pad collate: multiple is %lld", (long long)p->multiple);
  }
  return NULL;
}

static int64_t length_of(const calx_padding *p, const calx_samples *s,
                         int64_t i)
{
  calx_dtype dtype = s->fields[p->length].dtype;
  return cx_load_int(dtype, (const char *)s->data[p->length] +
                                (size_t)i * calx_dtype_size(dtype));
}

static calx_status *longest(const calx_padding *p, const calx_samples *s,
                            int64_t *out)
{
  int64_t most = s->fields[p->field].dims[0];
  int64_t multiple = p->multiple > 0 ? p->multiple : 1;
  *out = 0;
  for (int64_t i = 0; i < s->count; i++) {
    int64_t n = length_of(p, s, i);
    if (n < 0 || n > most) {
      return cx_error(CALX_OUT_OF_RANGE,
                      "pad collate: sample %lld of the batch has length %lld "
                      "in '%s', which has at most %lld",
                      (long long)i, (long long)n, s->fields[p->field].name,
                      (long long)most);
    }
    if (n > *out) *out = n;
  }
  int64_t over = *out % multiple;
  bool fits = over == 0 || *out <= most - (multiple - over);
  if (over != 0) *out = fits ? *out + multiple - over : most;
  return NULL;
}

static calx_status *pad(const calx_padding *p, const calx_samples *s,
                        calx_collated *batch)
{
  const calx_field *f = &s->fields[p->field];
  int64_t rows;
  void *out;
  CALX_TRY(longest(p, s, &rows));
  CALX_TRY(
      calx_collated_add(batch, f->dtype, shape_of(f, s->count, rows), &out));
  size_t sample = bytes_of(f), size = calx_dtype_size(f->dtype);
  if (sample == 0 || rows == 0) return NULL;
  size_t row = sample / (size_t)f->dims[0];
  const char *from = s->data[p->field];
  char *to = out;
  for (int64_t i = 0; i < s->count; i++, from += sample) {
    size_t used = (size_t)length_of(p, s, i) * row;
    memcpy(to, from, used);
    for (size_t at = used; at < (size_t)rows * row; at += size) {
      cx_store_double(f->dtype, to + at, p->value);
    }
    to += (size_t)rows * row;
  }
  return NULL;
}

calx_status *calx_pad_collate(void *user, const calx_samples *samples,
                              calx_collated *batch)
{
  const calx_padding *p = user;
  CALX_TRY(check_padding(p, samples));
  for (size_t k = 0; k < samples->n_fields; k++) {
    CALX_TRY(k == p->field ? pad(p, samples, batch)
                           : calx_collated_stack(batch, samples, k));
  }
  return NULL;
}
