// hlo/bytecode: literals and arrays of numbers.
#include "hlo/bytecode_reader.h"
#include "hlo/number.h"

// i1 has eight elements a byte, the first in the lowest bit, or one a byte, or
// is 0x00 or 0xff for all. Writes one byte each.
static void unpack_bits(cx_hlo_bytes blob, size_t n, unsigned char *out)
{
  const size_t size = (size_t)(blob.end - blob.at);
  const bool all = size == 1 && (*blob.at == 0 || *blob.at == '\xff');
  for (size_t i = 0; i < n; i++) {
    const unsigned char byte = (unsigned char)blob.at[all         ? 0
                                                      : size == n ? i
                                                                  : i / 8];
    out[i] = all || size == n ? byte != 0 : byte >> (i % 8) & 1;
  }
}

static calx_status *read_bools(cx_hlo_bytecode *b, const cx_hlo_type *type,
                               cx_hlo_bytes blob, const cx_hlo_attr **out)
{
  const size_t n = (size_t)cx_hlo_type_elements(type);
  const size_t size = (size_t)(blob.end - blob.at);
  const bool all = size == 1 && (*blob.at == 0 || *blob.at == '\xff');
  if (!all && size != n && size != (n + 7) / 8) {
    return CX_HLO_BYTES_FAIL(b, blob.at, "%zu bytes for %s", size,
                             cx_hlo_shape(type).s);
  }
  const size_t count = all && n > 1 ? 1 : n;
  unsigned char *bytes = cx_arena_alloc(&b->r->module->arena, count + 1);
  if (bytes == NULL) return cx_out_of_memory();
  unpack_bits(blob, count, bytes);
  return cx_hlo_reader_attr(
      cx_hlo_attr_elements(b->r->module, type, bytes, count), out);
}

// Elements of less than 8 bits have a byte each, whose upper bits count for
// nothing.
static calx_status *read_small(cx_hlo_bytecode *b, const cx_hlo_type *type,
                               cx_hlo_bytes blob, const cx_hlo_attr **out)
{
  const size_t n = (size_t)(blob.end - blob.at);
  unsigned char *bytes = cx_arena_alloc(&b->r->module->arena, n + 1);
  if (bytes == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    const unsigned char byte = (unsigned char)blob.at[i];
    if (cx_hlo_elem_is_int(type->elem)) {
      cx_hlo_store_int(type->elem, &bytes[i], byte);
    } else {
      cx_hlo_store_bits(type->elem, &bytes[i], byte);
    }
  }
  return cx_hlo_reader_attr(cx_hlo_attr_elements(b->r->module, type, bytes, n),
                            out);
}

// tensor ::= type size bytes: all elements, or one for all.
calx_status *cx_hlo_bytes_read_dense(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                     const cx_hlo_attr **out)
{
  const char *at = in->at;
  cx_hlo_any any;
  uint64_t size = 0;
  cx_hlo_bytes blob;
  CALX_TRY(cx_hlo_bytes_type(b, in, &any));
  CALX_TRY(cx_hlo_bytes_number(b, in, &size));
  CALX_TRY(cx_hlo_bytes_take(b, in, size, &blob));
  const cx_hlo_type *type = &any.tensor;
  const int64_t n = any.non_tensor == NULL ? cx_hlo_type_elements(type) : -1;
  const size_t each = cx_hlo_elem_bytes(type->elem);
  if (n < 0 || each == 0) {
    return CX_HLO_BYTES_FAIL(b, at, "a literal needs a static tensor's type");
  }
  if (type->elem == CX_HLO_I1 && n > 0) return read_bools(b, type, blob, out);
  const bool fits =
      size == each || (size % each == 0 && size / each == (uint64_t)n);
  if (!fits) {
    return CX_HLO_BYTES_FAIL(b, at, "%llu bytes for %s",
                             (unsigned long long)size, cx_hlo_shape(type).s);
  }
  if (cx_hlo_elem_bits(type->elem) < 8 && type->elem != CX_HLO_INDEX) {
    return read_small(b, type, blob, out);
  }
  return cx_hlo_reader_attr(
      cx_hlo_attr_elements(b->r->module, type, blob.at, (size_t)size), out);
}

// array ::= element type, count, size, bytes
calx_status *cx_hlo_bytes_read_array(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                     const cx_hlo_attr **out)
{
  const char *at = in->at;
  cx_hlo_elem elem = CX_HLO_INVALID;
  uint64_t n = 0, size = 0;
  cx_hlo_bytes blob;
  CALX_TRY(cx_hlo_bytes_elem(b, in, &elem));
  CALX_TRY(cx_hlo_bytes_number(b, in, &n));
  CALX_TRY(cx_hlo_bytes_number(b, in, &size));
  CALX_TRY(cx_hlo_bytes_take(b, in, size, &blob));
  const bool is_int = cx_hlo_elem_is_int(elem) || elem == CX_HLO_I1;
  if (!is_int || size / cx_hlo_elem_bytes(elem) != n ||
      size % cx_hlo_elem_bytes(elem) != 0) {
    return CX_HLO_BYTES_FAIL(b, at, "%llu bytes for an array of %llu %s",
                             (unsigned long long)size, (unsigned long long)n,
                             cx_hlo_elem_name(elem));
  }
  int64_t *v = CX_ARENA_ARRAY(&b->r->module->arena, int64_t, (size_t)n + 1);
  if (v == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    v[i] = cx_hlo_load_int(elem, blob.at + i * cx_hlo_elem_bytes(elem));
  }
  return cx_hlo_reader_attr(cx_hlo_attr_ints(b->r->module, elem, v, (size_t)n),
                            out);
}
