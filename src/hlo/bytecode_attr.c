// hlo/bytecode: the attributes of the builtin dialect and of VHLO.
#include <string.h>

#include "hlo/bytecode_codes.h"
#include "hlo/bytecode_reader.h"
#include "hlo/number.h"

// ---- lists and texts ----

static cx_hlo_attr *new_attr(cx_hlo_bytecode *b, cx_hlo_attr_kind kind,
                             const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(b->r->module, kind);
  *out = attr;
  return attr;
}

static calx_status *read_array(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               const cx_hlo_attr **out)
{
  cx_hlo_reader *r = b->r;
  const size_t mark = r->attr_stack.n;
  cx_hlo_attr *list = new_attr(b, CX_HLO_ATTR_LIST, out);
  size_t n = 0;
  if (list == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_bytes_count(b, in, &n));
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_attr *item = NULL;
    CALX_TRY(cx_hlo_bytes_attr(b, in, &item));
    CALX_TRY(CX_HLO_PUSH(r->attr_stack, item));
  }
  list->as.list.n = n;
  return CX_HLO_TAKE(r, r->attr_stack, mark, &list->as.list.items);
}

static calx_status *read_text(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              cx_hlo_str *out)
{
  const char *at = in->at;
  const cx_hlo_attr *name = NULL;
  CALX_TRY(cx_hlo_bytes_attr(b, in, &name));
  if (name->kind != CX_HLO_ATTR_STRING) {
    return CX_HLO_BYTES_FAIL(b, at, "a name must be a string");
  }
  *out = name->as.text;
  return NULL;
}

// dictionary ::= count (name attribute)*
static calx_status *read_dict(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              const cx_hlo_attr **out)
{
  cx_hlo_reader *r = b->r;
  const size_t mark = r->named_stack.n;
  cx_hlo_attr *dict = new_attr(b, CX_HLO_ATTR_DICT, out);
  size_t n = 0;
  if (dict == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_bytes_count(b, in, &n));
  for (size_t i = 0; i < n; i++) {
    cx_hlo_named item;
    CALX_TRY(read_text(b, in, &item.name));
    CALX_TRY(cx_hlo_bytes_attr(b, in, &item.attr));
    CALX_TRY(CX_HLO_PUSH(r->named_stack, item));
  }
  dict->as.dict.n = n;
  return CX_HLO_TAKE(r, r->named_stack, mark, &dict->as.dict.items);
}

static calx_status *read_string(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = new_attr(b, CX_HLO_ATTR_STRING, out);
  if (attr == NULL) return cx_out_of_memory();
  return cx_hlo_bytes_string(b, in, &attr->as.text);
}

static calx_status *read_symbol(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = new_attr(b, CX_HLO_ATTR_SYMBOL, out);
  if (attr == NULL) return cx_out_of_memory();
  return read_text(b, in, &attr->as.text);
}

static calx_status *read_type(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = new_attr(b, CX_HLO_ATTR_TYPE, out);
  if (attr == NULL) return cx_out_of_memory();
  return cx_hlo_bytes_type(b, in, &attr->as.type);
}

// ---- numbers ----

// The bits of a number of up to 64 bits: a byte, or a number with a sign.
static calx_status *read_bits(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              cx_hlo_elem elem, int64_t *out)
{
  if (elem == CX_HLO_INDEX || cx_hlo_elem_bits(elem) > 8) {
    return cx_hlo_bytes_signed(b, in, out);
  }
  cx_hlo_bytes byte;
  CALX_TRY(cx_hlo_bytes_take(b, in, 1, &byte));
  *out = (unsigned char)*byte.at;
  return NULL;
}

static calx_status *read_integer(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 const cx_hlo_attr **out)
{
  const char *at = in->at;
  cx_hlo_elem elem = CX_HLO_INVALID;
  int64_t v = 0;
  unsigned char stored[8] = { 0 };
  CALX_TRY(cx_hlo_bytes_elem(b, in, &elem));
  if (!cx_hlo_elem_is_int(elem) && elem != CX_HLO_I1 && elem != CX_HLO_INDEX) {
    return CX_HLO_BYTES_FAIL(b, at, "an integer of type %s",
                             cx_hlo_elem_name(elem));
  }
  CALX_TRY(read_bits(b, in, elem, &v));
  if (elem == CX_HLO_I1) {
    return cx_hlo_reader_attr(cx_hlo_attr_bool(b->r->module, v & 1), out);
  }
  cx_hlo_store_int(elem, stored, v);
  v = cx_hlo_load_int(elem, stored);
  return cx_hlo_reader_attr(cx_hlo_attr_int(b->r->module, elem, v), out);
}

static calx_status *read_float(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               const cx_hlo_attr **out)
{
  const char *at = in->at;
  cx_hlo_attr *attr = new_attr(b, CX_HLO_ATTR_FLOAT, out);
  int64_t bits = 0;
  if (attr == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_bytes_elem(b, in, &attr->elem));
  if (!cx_hlo_elem_is_float(attr->elem)) {
    return CX_HLO_BYTES_FAIL(b, at, "a float of type %s",
                             cx_hlo_elem_name(attr->elem));
  }
  CALX_TRY(read_bits(b, in, attr->elem, &bits));
  const unsigned width = cx_hlo_elem_bits(attr->elem);
  attr->as.bits =
      (uint64_t)bits & (width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX);
  return NULL;
}

static calx_status *read_bool(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              const cx_hlo_attr **out)
{
  uint64_t v = 0;
  CALX_TRY(cx_hlo_bytes_number(b, in, &v));
  return cx_hlo_reader_attr(cx_hlo_attr_bool(b->r->module, v != 0), out);
}

static calx_status *read_choice(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                cx_hlo_choice family, const cx_hlo_attr **out)
{
  const char *at = in->at;
  uint64_t v = 0;
  CALX_TRY(cx_hlo_bytes_number(b, in, &v));
  if (v > 64 || cx_hlo_choice_value(family, (int64_t)v) == NULL) {
    return CX_HLO_BYTES_FAIL(b, at, "%s has no value %llu",
                             cx_hlo_choice_name(family), (unsigned long long)v);
  }
  return cx_hlo_reader_attr(
      cx_hlo_attr_choice(b->r->module, family, (int64_t)v), out);
}

// A version of custom_call's interface: an integer in StableHLO.
static calx_status *read_api_version(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                     const cx_hlo_attr **out)
{
  const char *at = in->at;
  uint64_t v = 0;
  CALX_TRY(cx_hlo_bytes_number(b, in, &v));
  if (v > INT32_MAX) {
    return CX_HLO_BYTES_FAIL(b, at, "there is no such api_version");
  }
  return cx_hlo_reader_attr(
      cx_hlo_attr_int(b->r->module, CX_HLO_I32, (int64_t)v), out);
}

// ---- structs ----

static calx_status *read_ints(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              cx_hlo_ints *out)
{
  cx_hlo_reader *r = b->r;
  const size_t mark = r->int_stack.n;
  CALX_TRY(cx_hlo_bytes_count(b, in, &out->n));
  for (size_t i = 0; i < out->n; i++) {
    int64_t v = 0;
    CALX_TRY(cx_hlo_bytes_signed(b, in, &v));
    CALX_TRY(CX_HLO_PUSH(r->int_stack, v));
  }
  return CX_HLO_TAKE(r, r->int_stack, mark, &out->v);
}

static calx_status *read_alias(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               const cx_hlo_attr **out)
{
  cx_hlo_output_alias alias;
  CALX_TRY(read_ints(b, in, &alias.output));
  CALX_TRY(cx_hlo_bytes_signed(b, in, &alias.operand));
  CALX_TRY(read_ints(b, in, &alias.operand_tuple));
  return cx_hlo_reader_attr(
      cx_hlo_attr_struct(b->r->module, CX_HLO_STRUCT_OUTPUT_ALIAS, &alias),
      out);
}

static calx_status *read_accuracy(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                  const cx_hlo_attr **out)
{
  const char *at = in->at;
  cx_hlo_accuracy v;
  const cx_hlo_attr *mode = NULL;
  CALX_TRY(cx_hlo_bytes_double(b, in, &v.atol));
  CALX_TRY(cx_hlo_bytes_double(b, in, &v.rtol));
  CALX_TRY(cx_hlo_bytes_signed(b, in, &v.ulps));
  CALX_TRY(cx_hlo_bytes_attr(b, in, &mode));
  if (mode->kind != CX_HLO_ATTR_CHOICE || mode->which != CX_HLO_ACCURACY_MODE) {
    return CX_HLO_BYTES_FAIL(b, at, "an accuracy needs its mode");
  }
  v.mode = mode->as.integer;
  return cx_hlo_reader_attr(
      cx_hlo_attr_struct(b->r->module, CX_HLO_STRUCT_ACCURACY, &v), out);
}

// The largest sizes of a tensor's dynamic dimensions, as its encoding's text.
static calx_status *read_bounds(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                const cx_hlo_attr **out)
{
  const char *at = in->at;
  cx_hlo_ints bounds;
  cx_text text = { 0 };
  CALX_TRY(read_ints(b, in, &bounds));
  cx_text_append(&text, "#stablehlo.bounds<");
  for (size_t i = 0; i < bounds.n; i++) {
    if (i != 0) cx_text_append(&text, ", ");
    if (bounds.v[i] == INT64_MIN) {
      cx_text_append(&text, "?");
    } else {
      cx_text_format(&text, "%lld", (long long)bounds.v[i]);
    }
  }
  cx_text_append(&text, ">");
  return cx_hlo_bytes_text_attr(b, at, &text, out);
}

// ---- reading ----

static calx_status *read_builtin(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 uint64_t code, const cx_hlo_attr **out)
{
  switch (code) {
    case CX_HLO_BUILTIN_ARRAY: return read_array(b, in, out);
    case CX_HLO_BUILTIN_DICT: return read_dict(b, in, out);
    case CX_HLO_BUILTIN_STRING:
    case CX_HLO_BUILTIN_TYPED_STRING: return read_string(b, in, out);
    case CX_HLO_BUILTIN_FLAT_SYMBOL: return read_symbol(b, in, out);
    case CX_HLO_BUILTIN_TYPE: return read_type(b, in, out);
    case CX_HLO_BUILTIN_UNIT:
      return cx_hlo_reader_attr(cx_hlo_attr_unit(b->r->module), out);
    case CX_HLO_BUILTIN_INTEGER: return read_integer(b, in, out);
    case CX_HLO_BUILTIN_FLOAT: return read_float(b, in, out);
    case CX_HLO_BUILTIN_DENSE_ARRAY: return cx_hlo_bytes_read_array(b, in, out);
    case CX_HLO_BUILTIN_DENSE: return cx_hlo_bytes_read_dense(b, in, out);
    default:
      return CX_HLO_BYTES_UNKNOWN(b, in->at,
                                  "attribute %llu of the builtin dialect",
                                  (unsigned long long)code);
  }
}

static calx_status *read_vhlo(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              uint64_t code, const cx_hlo_attr **out)
{
  const cx_hlo_choice family = cx_hlo_vhlo_choice(code);
  if (family != CX_HLO_CHOICE_COUNT) return read_choice(b, in, family, out);
  switch (code) {
    case CX_HLO_VHLO_ARRAY: return read_array(b, in, out);
    case CX_HLO_VHLO_BOOL: return read_bool(b, in, out);
    case CX_HLO_VHLO_API_VERSION: return read_api_version(b, in, out);
    case CX_HLO_VHLO_DICT: return read_dict(b, in, out);
    case CX_HLO_VHLO_FLOAT: return read_float(b, in, out);
    case CX_HLO_VHLO_INTEGER: return read_integer(b, in, out);
    case CX_HLO_VHLO_ALIAS: return read_alias(b, in, out);
    case CX_HLO_VHLO_STRING: return read_string(b, in, out);
    case CX_HLO_VHLO_TENSOR: return cx_hlo_bytes_read_dense(b, in, out);
    case CX_HLO_VHLO_TYPE: return read_type(b, in, out);
    case CX_HLO_VHLO_BOUNDS: return read_bounds(b, in, out);
    case CX_HLO_VHLO_ACCURACY: return read_accuracy(b, in, out);
    case CX_HLO_VHLO_SUB_AXIS:
    case CX_HLO_VHLO_AXIS_REF:
    case CX_HLO_VHLO_MESH_AXES:
    case CX_HLO_VHLO_MESH_AXIS:
    case CX_HLO_VHLO_MESH: return cx_hlo_bytes_read_mesh(b, in, code, out);
    default:
      return CX_HLO_BYTES_UNKNOWN(b, in->at, "attribute %llu of VHLO",
                                  (unsigned long long)code);
  }
}

calx_status *cx_hlo_bytes_read_attr(cx_hlo_bytecode *b, cx_hlo_bytes_entry *e,
                                    const cx_hlo_attr **out)
{
  cx_hlo_bytes in = e->bytes;
  uint64_t code = 0;
  CALX_TRY(cx_hlo_bytes_number(b, &in, &code));
  switch (e->dialect) {
    case CX_HLO_DIALECT_BUILTIN: return read_builtin(b, &in, code, out);
    case CX_HLO_DIALECT_VHLO: return read_vhlo(b, &in, code, out);
    case CX_HLO_DIALECT_SDY: return cx_hlo_bytes_read_sdy(b, &in, code, out);
    case CX_HLO_DIALECT_STABLEHLO:
    case CX_HLO_DIALECT_OTHER: break;
  }
  return CX_HLO_BYTES_UNKNOWN(
      b, e->bytes.at, "an attribute of another dialect than VHLO and sdy");
}
