// io/safetensors_read: a bounded reader.
//
// The header's size is compared with the file before it is parsed, each shape
// is multiplied with care and compared with its offsets, and the tensors must
// cover the data exactly: no hole, no overlap, nothing behind the last.
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"
#include "io/safetensors.h"
#include "lazy/lazy.h"

static const struct {
  calx_dtype dtype;
  const char *name;
} types[] = {
  { CALX_BOOL, "BOOL" }, { CALX_I8, "I8" },   { CALX_I16, "I16" },
  { CALX_I32, "I32" },   { CALX_I64, "I64" }, { CALX_U8, "U8" },
  { CALX_U16, "U16" },   { CALX_U32, "U32" }, { CALX_U64, "U64" },
  { CALX_BF16, "BF16" }, { CALX_F16, "F16" }, { CALX_F32, "F32" },
  { CALX_F64, "F64" },   { CALX_C64, "C64" },
};
enum { TYPES = sizeof types / sizeof *types };

const char *cx_io_safetensors_name(calx_dtype dtype)
{
  for (size_t i = 0; i < TYPES; i++) {
    if (types[i].dtype == dtype) return types[i].name;
  }
  return NULL;
}

calx_dtype cx_io_safetensors_dtype(const char *name)
{
  for (size_t i = 0; i < TYPES; i++) {
    if (strcmp(types[i].name, name) == 0) return types[i].dtype;
  }
  return CALX_DTYPE_DEFAULT;
}

typedef struct entry {
  const char *name;
  cx_graph_shape shape;
  uint64_t begin, end;
} entry;

typedef struct header_reading {
  cx_io_map *map;
  size_t header;  // bytes
  json_t *json;
  entry *entries;  // in the header's order
  size_t n;
} header_reading;

static calx_status *bad(const header_reading *r, const char *name,
                        const char *what)
{
  return cx_error(CALX_DATA_LOSS, "'%s': tensor '%.100s': %s", r->map->name,
                  name, what);
}

// ---- the header -------------------------------------------------------------

static calx_status *parse_header(header_reading *r)
{
  const cx_io_map *m = r->map;
  if (m->size < 8) {
    return cx_error(CALX_DATA_LOSS,
                    "'%s': %zu bytes, a safetensors file begins with 8 of its "
                    "header's size",
                    m->name, m->size);
  }
  uint64_t n = 0;
  for (int i = 7; i >= 0; i--) n = n << 8 | m->data[i];
  if (n > CX_IO_SAFETENSORS_HEADER || n > m->size - 8) {
    return cx_error(CALX_DATA_LOSS,
                    "'%s': a header of %" PRIu64
                    " bytes, the file has %zu "
                    "and %" PRIu64 " are allowed",
                    m->name, n, m->size - 8, CX_IO_SAFETENSORS_HEADER);
  }
  if (n == 0 || m->data[8] != '{') {
    return cx_error(CALX_DATA_LOSS, "'%s': the header does not begin with '{'",
                    m->name);
  }
  json_error_t error;
  r->header = (size_t)n;
  r->json = json_loadb((const char *)m->data + 8, r->header,
                       JSON_REJECT_DUPLICATES, &error);
  if (r->json == NULL && json_error_code(&error) == json_error_out_of_memory) {
    return cx_out_of_memory();
  }
  if (json_is_object(r->json)) return NULL;
  return cx_error(CALX_DATA_LOSS, "'%s': byte %d of the header: %s", m->name,
                  r->json == NULL ? error.position : 0,
                  r->json == NULL ? error.text : "it is no object");
}

static calx_status *take_shape(const header_reading *r, const json_t *shape,
                               entry *out)
{
  size_t rank = json_array_size(shape);
  if (!json_is_array(shape)) return bad(r, out->name, "its shape is no list");
  if (rank > CALX_MAX_RANK) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': tensor '%.100s' has rank %zu, at most %d are "
                    "possible",
                    r->map->name, out->name, rank, CALX_MAX_RANK);
  }
  out->shape.rank = (uint32_t)rank;
  for (size_t d = 0; d < rank; d++) {
    const json_t *size = json_array_get(shape, d);
    if (!json_is_integer(size) || json_integer_value(size) < 0) {
      return bad(r, out->name, "a size of its shape is no natural number");
    }
    out->shape.dims[d] = json_integer_value(size);
  }
  return NULL;
}

static calx_status *take_offsets(const header_reading *r, const json_t *offsets,
                                 entry *out)
{
  int64_t elements;
  size_t bytes;
  const json_t *begin = json_array_get(offsets, 0);
  const json_t *end = json_array_get(offsets, 1);
  if (json_array_size(offsets) != 2 || !json_is_integer(begin) ||
      !json_is_integer(end) || json_integer_value(begin) < 0 ||
      json_integer_value(end) < json_integer_value(begin)) {
    return bad(r, out->name, "its data_offsets are no two rising numbers");
  }
  out->begin = (uint64_t)json_integer_value(begin);
  out->end = (uint64_t)json_integer_value(end);
  if (!cx_dims_bytes(out->shape.dtype, out->shape.dims, out->shape.rank,
                     &elements, &bytes)) {
    return bad(r, out->name, "its shape is too large");
  }
  if (bytes == out->end - out->begin) return NULL;
  return cx_error(CALX_DATA_LOSS,
                  "'%s': tensor '%.100s': %s has %zu bytes, its data_offsets "
                  "[%" PRIu64 ", %" PRIu64 "] have %" PRIu64,
                  r->map->name, out->name, cx_graph_shape_str(&out->shape),
                  bytes, out->begin, out->end, out->end - out->begin);
}

static calx_status *take_entry(const header_reading *r, const json_t *info,
                               entry *out)
{
  const char *type = json_string_value(json_object_get(info, "dtype"));
  if (type == NULL) return bad(r, out->name, "it has no dtype");
  out->shape.dtype = cx_io_safetensors_dtype(type);
  if (out->shape.dtype == CALX_DTYPE_DEFAULT) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': tensor '%.100s' has elements of type '%.20s', which "
                    "calx does not have",
                    r->map->name, out->name, type);
  }
  if (json_object_size(info) != 3) {
    return bad(r, out->name, "it must have dtype, shape and data_offsets");
  }
  CALX_TRY(take_shape(r, json_object_get(info, "shape"), out));
  return take_offsets(r, json_object_get(info, "data_offsets"), out);
}

// ---- what the entries cover -------------------------------------------------

static int by_offset(const void *a, const void *b)
{
  const entry *x = *(const entry *const *)a, *y = *(const entry *const *)b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return (x->end > y->end) - (x->end < y->end);
}

static calx_status *check_cover(const header_reading *r)
{
  uint64_t data = r->map->size - 8 - r->header, at = 0;
  const entry **sorted = cx_alloc(r->n * sizeof *sorted);
  if (sorted == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < r->n; i++) sorted[i] = &r->entries[i];
  qsort(sorted, r->n, sizeof *sorted, by_offset);
  calx_status *status = NULL;
  for (size_t i = 0; i < r->n && status == NULL; i++) {
    if (sorted[i]->begin != at) {
      status = cx_error(CALX_DATA_LOSS,
                        "'%s': tensor '%.100s' begins at %" PRIu64
                        ", what is before it ends at %" PRIu64,
                        r->map->name, sorted[i]->name, sorted[i]->begin, at);
    }
    at = sorted[i]->end;
  }
  cx_free(sorted);
  if (status == NULL && at != data) {
    status = cx_error(CALX_DATA_LOSS,
                      "'%s': the tensors end at %" PRIu64
                      ", the file has "
                      "%" PRIu64 " bytes for them",
                      r->map->name, at, data);
  }
  return status;
}

static calx_status *take_entries(header_reading *r)
{
  const char *name;
  json_t *info;
  r->entries = cx_calloc(json_object_size(r->json) + 1, sizeof *r->entries);
  if (r->entries == NULL) return cx_out_of_memory();
  json_object_foreach(r->json, name, info)
  {
    if (strcmp(name, "__metadata__") == 0) continue;
    entry *e = &r->entries[r->n++];
    e->name = name;
    CALX_TRY(take_entry(r, info, e));
  }
  return check_cover(r);
}

// ---- values -----------------------------------------------------------------

static calx_status *make_metadata(const header_reading *r, calx_value *out)
{
  const char *key;
  json_t *text;
  json_t *all = json_object_get(r->json, "__metadata__");
  if (all != NULL && !json_is_object(all)) {
    return bad(r, "__metadata__", "it is no object");
  }
  json_object_foreach(all, key, text)
  {
    if (!json_is_string(text)) {
      return bad(r, "__metadata__", "what it has is not all text");
    }
    calx_value *v = calx_value_string(json_string_value(text));
    CALX_TRY(calx_value_set(out, key, v));
  }
  return NULL;
}

static calx_status *make_tensors(const header_reading *r, calx_value *out)
{
  for (size_t i = 0; i < r->n; i++) {
    const entry *e = &r->entries[i];
    calx_tensor *t;
    CALX_TRY(cx_io_map_tensor(r->map, 8 + r->header + (size_t)e->begin,
                              &e->shape, &t));
    calx_value *v = calx_value_tensor(t);
    calx_release(t);
    CALX_TRY(calx_value_set(out, e->name, v));
  }
  return NULL;
}

calx_status *cx_io_safetensors_read(cx_io_map *map, calx_value **out_dict,
                                    calx_value **out_metadata)
{
  header_reading r = { .map = map };
  calx_value *dict = calx_value_container(CALX_KIND_DICT);
  calx_value *metadata = calx_value_container(CALX_KIND_DICT);
  calx_status *status =
      dict == NULL || metadata == NULL ? cx_out_of_memory() : NULL;
  if (status == NULL) status = parse_header(&r);
  if (status == NULL) status = take_entries(&r);
  if (status == NULL) status = make_metadata(&r, metadata);
  if (status == NULL) status = make_tensors(&r, dict);
  json_decref(r.json);
  cx_free(r.entries);
  if (status != NULL || out_metadata == NULL) {
    calx_value_free(metadata);
    metadata = NULL;
  }
  if (status != NULL) {
    calx_value_free(dict);
    dict = NULL;
  }
  *out_dict = dict;
  if (out_metadata != NULL) *out_metadata = metadata;
  return status;
}
