// io/npy_write: arrays as numpy writes them: version 1.0, row-major,
// little-endian, elements at a multiple of 64 bytes.
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "io/fetch.h"
#include "io/npy.h"
#include "io/zip.h"

enum { ALIGNED = 64, BEFORE = 10 };

static calx_status *check(const calx_value *v, const char *what)
{
  if (calx_value_kind(v) != CALX_KIND_TENSOR) {
    return cx_invalid(
        "save: %s holds %s, and the value is %s", what,
        strcmp(what, ".npy") == 0 ? "a tensor" : "a dict of tensors",
        calx_kind_name(calx_value_kind(v)));
  }
  const calx_tensor *t = calx_value_as_tensor(v);
  if (cx_io_npy_code(calx_tensor_dtype(t)) == NULL) {
    return cx_invalid("save: numpy has no %s; convert the tensor to f32",
                      calx_dtype_name(calx_tensor_dtype(t)));
  }
  return cx_io_fetchable(t);
}

// Appends all that is before the elements.
static calx_status *print_header(cx_text *out, const calx_tensor *t)
{
  calx_dtype dtype = calx_tensor_dtype(t);
  calx_dims shape = calx_tensor_shape(t);
  cx_text_append_n(out, "\x93NUMPY\x01\0\0\0", BEFORE);
  cx_text_format(out, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                 calx_dtype_size(dtype) == 1 ? '|' : '<',
                 cx_io_npy_code(dtype));
  for (size_t d = 0; d < shape.count; d++) {
    cx_text_format(out, "%s%lld", d == 0 ? "" : ", ",
                   (long long)shape.values[d]);
  }
  cx_text_append(out, shape.count == 1 ? ",), }" : "), }");
  while ((out->size + 1) % ALIGNED != 0 && !cx_text_failed(out)) {
    cx_text_char(out, ' ');
  }
  cx_text_char(out, '\n');
  if (cx_text_failed(out)) return cx_out_of_memory();
  size_t n = out->size - BEFORE;
  out->data[8] = (char)(n & 0xff);
  out->data[9] = (char)(n >> 8);
  return NULL;
}

calx_status *cx_io_npy_write(cx_writer *w, const calx_value *value)
{
  CALX_TRY(check(value, ".npy"));
  cx_text header = { 0 };
  cx_io_elements e = { 0 };
  calx_tensor *t = calx_value_as_tensor(value);
  calx_status *status = print_header(&header, t);
  if (status == NULL) status = cx_writer_put(w, header.data, header.size);
  if (status == NULL) status = cx_io_fetch(t, &e);
  if (status == NULL) status = cx_writer_put(w, e.data, e.bytes);
  cx_io_fetched(&e);
  cx_text_free(&header);
  return status;
}

// An entry's checksum stands before it, so it is whole in memory.
static calx_status *add_array(cx_io_zip *zip, const char *key, calx_tensor *t)
{
  cx_text name = { 0 }, entry = { 0 };
  cx_io_elements e = { 0 };
  cx_text_format(&name, "%s.npy", key);
  calx_status *status = print_header(&entry, t);
  if (status == NULL) status = cx_io_fetch(t, &e);
  if (status == NULL && e.bytes > 0) cx_text_append_n(&entry, e.data, e.bytes);
  if (status == NULL && (cx_text_failed(&name) || cx_text_failed(&entry))) {
    status = cx_out_of_memory();
  }
  if (status == NULL) {
    status = cx_io_zip_add(zip, cx_text_str(&name), entry.data, entry.size);
  }
  cx_io_fetched(&e);
  cx_text_free(&entry);
  cx_text_free(&name);
  return status;
}

calx_status *cx_io_npz_write(cx_writer *w, const calx_value *dict)
{
  if (calx_value_kind(dict) != CALX_KIND_DICT) {
    return cx_invalid("save: .npz holds a dict of tensors, not %s",
                      calx_kind_name(calx_value_kind(dict)));
  }
  for (size_t i = 0; i < calx_value_count(dict); i++) {
    const char *key = calx_value_key(dict, i);
    if (key == NULL || key[0] == '\0' || strlen(key) > 255) {
      return cx_invalid(
          "save: .npz has texts of 1 to 255 bytes as keys, item %zu has none",
          i);
    }
    CALX_TRY(cx_annotate(check(calx_value_item(dict, i), ".npz"),
                         "while saving '%s'", key));
  }
  cx_io_zip zip = { .w = w };
  calx_status *status = NULL;
  for (size_t i = 0; i < calx_value_count(dict) && status == NULL; i++) {
    const char *key = calx_value_key(dict, i);
    status = cx_annotate(
        add_array(&zip, key, calx_value_as_tensor(calx_value_item(dict, i))),
        "while saving '%s'", key);
  }
  return cx_io_zip_end(&zip, status);
}
