// io/safetensors_write: the header from the shapes alone, then one tensor after
// the other.
//
// The elements are in the order of their types' sizes, largest first, and the
// header is padded to 64 bytes: so each tensor is aligned for its type, and a
// reader can use the file's memory as it is. The header keeps the dict's order.
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"
#include "base/text.h"
#include "io/fetch.h"
#include "io/safetensors.h"
#include "lazy/lazy.h"

enum { ALIGNED = 64 };

// Prints s as a JSON string. False: s is not UTF-8.
static bool print_string(cx_text *out, const char *s)
{
  json_t *text = json_string(s);
  char *quoted = text != NULL ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
  if (quoted != NULL) cx_text_append(out, quoted);
  free(quoted);
  json_decref(text);
  return quoted != NULL;
}

static calx_status *no_text(const char *s)
{
  return cx_invalid("save: the name '%.100s' is no text in UTF-8", s);
}

static calx_status *check(const calx_value *dict)
{
  for (size_t i = 0; i < calx_value_count(dict); i++) {
    const char *key = calx_value_key(dict, i);
    const calx_value *v = calx_value_item(dict, i);
    if (key == NULL || strcmp(key, "__metadata__") == 0) {
      return cx_invalid(
          "save: safetensors has texts as keys, other than __metadata__; item "
          "%zu has %s",
          i, key == NULL ? "a number" : "that");
    }
    if (calx_value_kind(v) != CALX_KIND_TENSOR) {
      return cx_invalid(
          "save: safetensors holds one dict of tensors, '%s' is %s; PyTorch's "
          "format (.pt) takes it",
          key, calx_kind_name(calx_value_kind(v)));
    }
    const calx_dtype dtype = calx_tensor_dtype(calx_value_as_tensor(v));
    if (cx_io_safetensors_name(dtype) == NULL) {
      return cx_invalid(
          "save: safetensors has no %s; convert '%s' with calx_to_dtype, or "
          "save its calx_view_as_real",
          calx_dtype_name(dtype), key);
    }
    CALX_TRY(cx_annotate(cx_io_fetchable(calx_value_as_tensor(v)),
                         "while saving '%s'", key));
  }
  return NULL;
}

// Sets each tensor's offset in the data and the order of writing.
static void arrange(const calx_value *dict, size_t *order, uint64_t *begins)
{
  static const size_t sizes[] = { 8, 4, 2, 1 };
  size_t n = 0;
  uint64_t at = 0;
  for (size_t k = 0; k < 4; k++) {
    for (size_t i = 0; i < calx_value_count(dict); i++) {
      const calx_tensor *t = calx_value_as_tensor(calx_value_item(dict, i));
      if (calx_dtype_size(calx_tensor_dtype(t)) != sizes[k]) continue;
      order[n++] = i;
      begins[i] = at;
      at += cx_io_bytes(t);
    }
  }
}

static calx_status *print_tensor(cx_text *out, const char *name,
                                 const calx_tensor *t, uint64_t begin)
{
  calx_dims shape = calx_tensor_shape(t);
  if (!print_string(out, name)) return no_text(name);
  cx_text_format(out, ":{\"dtype\":\"%s\",\"shape\":[",
                 cx_io_safetensors_name(calx_tensor_dtype(t)));
  for (size_t d = 0; d < shape.count; d++) {
    cx_text_format(out, "%s%" PRId64, d == 0 ? "" : ",", shape.values[d]);
  }
  cx_text_format(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin,
                 begin + cx_io_bytes(t));
  return NULL;
}

static calx_status *print_metadata(cx_text *out, const calx_value *metadata)
{
  if (calx_value_count(metadata) == 0) return NULL;
  cx_text_append(out, "\"__metadata__\":{");
  for (size_t i = 0; i < calx_value_count(metadata); i++) {
    const char *key = calx_value_key(metadata, i);
    const calx_value *v = calx_value_item(metadata, i);
    if (key == NULL || calx_value_kind(v) != CALX_KIND_STRING) {
      return cx_invalid("save: metadata has texts by texts, item %zu is %s", i,
                        calx_kind_name(calx_value_kind(v)));
    }
    if (i != 0) cx_text_char(out, ',');
    if (!print_string(out, key)) return no_text(key);
    cx_text_char(out, ':');
    if (!print_string(out, calx_value_as_string(v))) return no_text(key);
  }
  cx_text_char(out, '}');
  return NULL;
}

static calx_status *put_header(cx_writer *w, const calx_value *dict,
                               const calx_value *metadata,
                               const uint64_t *begins)
{
  cx_text text = { 0 };
  cx_text_char(&text, '{');
  calx_status *status = print_metadata(&text, metadata);
  for (size_t i = 0; i < calx_value_count(dict) && status == NULL; i++) {
    if (text.size > 1) cx_text_char(&text, ',');
    status =
        print_tensor(&text, calx_value_key(dict, i),
                     calx_value_as_tensor(calx_value_item(dict, i)), begins[i]);
  }
  cx_text_char(&text, '}');
  while ((text.size + 8) % ALIGNED != 0 && !cx_text_failed(&text)) {
    cx_text_char(&text, ' ');
  }
  if (status == NULL && cx_text_failed(&text)) status = cx_out_of_memory();
  if (status == NULL && text.size > CX_IO_SAFETENSORS_HEADER) {
    status = cx_invalid("save: a safetensors header of %zu bytes, %" PRIu64
                        " are allowed",
                        text.size, CX_IO_SAFETENSORS_HEADER);
  }
  unsigned char size[8];
  for (int i = 0; i < 8; i++) {
    size[i] = (unsigned char)((uint64_t)text.size >> (8 * i));
  }
  if (status == NULL) status = cx_writer_put(w, size, sizeof size);
  if (status == NULL) status = cx_writer_put(w, text.data, text.size);
  cx_text_free(&text);
  return status;
}

static calx_status *put_tensors(cx_writer *w, const calx_value *dict,
                                const size_t *order)
{
  for (size_t i = 0; i < calx_value_count(dict); i++) {
    calx_tensor *t = calx_value_as_tensor(calx_value_item(dict, order[i]));
    cx_io_elements e;
    calx_status *status = cx_io_fetch(t, &e);
    if (status == NULL) status = cx_writer_put(w, e.data, e.bytes);
    cx_io_fetched(&e);
    if (status != NULL) {
      return cx_annotate(status, "while saving '%s'",
                         calx_value_key(dict, order[i]));
    }
  }
  return NULL;
}

calx_status *cx_io_safetensors_write(cx_writer *w, const calx_value *dict,
                                     const calx_value *metadata)
{
  if (calx_value_kind(dict) != CALX_KIND_DICT) {
    return cx_invalid("save: safetensors holds a dict of tensors, not %s",
                      calx_kind_name(calx_value_kind(dict)));
  }
  CALX_TRY(check(dict));
  size_t n = calx_value_count(dict);
  size_t *order = cx_alloc((n + 1) * sizeof *order);
  uint64_t *begins = cx_alloc((n + 1) * sizeof *begins);
  calx_status *status =
      order == NULL || begins == NULL ? cx_out_of_memory() : NULL;
  if (status == NULL) {
    arrange(dict, order, begins);
    status = put_header(w, dict, metadata, begins);
  }
  if (status == NULL) status = put_tensors(w, dict, order);
  cx_free(order);
  cx_free(begins);
  return status;
}
