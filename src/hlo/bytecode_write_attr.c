// hlo/bytecode: writes attributes.
#include <string.h>

#include "hlo/bytecode_writer.h"
#include "hlo/number.h"
#include "hlo/print.h"

static size_t take(cx_hlo_bytecode_writer *w, bool vhlo, size_t mark)
{
  return cx_hlo_write_entry(
      w, &w->attrs, vhlo ? CX_HLO_WRITES_VHLO : CX_HLO_WRITES_BUILTIN, mark);
}

static void put_code(cx_hlo_bytecode_writer *w, bool vhlo, uint64_t vhlo_code,
                     uint64_t builtin_code)
{
  cx_hlo_write_number(w, vhlo ? vhlo_code : builtin_code);
}

// ---- texts and locations ----

static size_t write_string(cx_hlo_bytecode_writer *w, cx_hlo_str s, bool vhlo)
{
  const size_t mark = w->out.size;
  put_code(w, vhlo, CX_HLO_VHLO_STRING, CX_HLO_BUILTIN_STRING);
  cx_hlo_write_number(w, cx_hlo_write_string(w, s));
  return take(w, vhlo, mark);
}

size_t cx_hlo_write_text(cx_hlo_bytecode_writer *w, cx_hlo_str s)
{
  return write_string(w, s, true);
}

size_t cx_hlo_write_loc(cx_hlo_bytecode_writer *w, const cx_hlo_loc *loc)
{
  const size_t mark = w->out.size;
  const bool known = loc != NULL && loc->line > 0 && loc->line <= INT32_MAX &&
                     loc->column >= 0 && loc->column <= INT32_MAX;
  if (!known) {
    cx_hlo_write_number(w, CX_HLO_BUILTIN_LOC_UNKNOWN);
    return take(w, false, mark);
  }
  cx_hlo_write_number(w, CX_HLO_BUILTIN_LOC_FILE);
  cx_hlo_write_number(w, write_string(w, loc->file, false));
  cx_hlo_write_number(w, (uint64_t)loc->line);
  cx_hlo_write_number(w, (uint64_t)loc->column);
  return take(w, false, mark);
}

// ---- numbers ----

// A number of up to 8 bits is a byte, a longer one a number with a sign, whose
// upper bits are zero.
static void put_bits(cx_hlo_bytecode_writer *w, cx_hlo_elem elem, uint64_t bits)
{
  const unsigned width = elem == CX_HLO_INDEX ? 64 : cx_hlo_elem_bits(elem);
  if (width < 64) bits &= (UINT64_C(1) << width) - 1;
  if (width <= 8) {
    cx_text_char(&w->out, (char)bits);
  } else {
    cx_hlo_write_signed(w, (int64_t)bits);
  }
}

static void put_integer(cx_hlo_bytecode_writer *w, cx_hlo_elem elem, int64_t v,
                        bool vhlo)
{
  put_code(w, vhlo, CX_HLO_VHLO_INTEGER, CX_HLO_BUILTIN_INTEGER);
  cx_hlo_write_number(w, cx_hlo_write_elem(w, elem, vhlo));
  put_bits(w, elem, (uint64_t)v);
}

size_t cx_hlo_write_int(cx_hlo_bytecode_writer *w, cx_hlo_elem elem, int64_t v)
{
  const size_t mark = w->out.size;
  put_integer(w, elem, v, true);
  return take(w, true, mark);
}

static void put_float(cx_hlo_bytecode_writer *w, const cx_hlo_attr *attr,
                      bool vhlo)
{
  put_code(w, vhlo, CX_HLO_VHLO_FLOAT, CX_HLO_BUILTIN_FLOAT);
  cx_hlo_write_number(w, cx_hlo_write_elem(w, attr->elem, vhlo));
  put_bits(w, attr->elem, attr->as.bits);
}

size_t cx_hlo_write_enum(cx_hlo_bytecode_writer *w, uint64_t code, uint64_t v)
{
  const size_t mark = w->out.size;
  cx_hlo_write_number(w, code);
  cx_hlo_write_number(w, v);
  return take(w, true, mark);
}

size_t cx_hlo_write_bool(cx_hlo_bytecode_writer *w, bool v)
{
  return cx_hlo_write_enum(w, CX_HLO_VHLO_BOOL, v);
}

size_t cx_hlo_write_type_attr(cx_hlo_bytecode_writer *w, const cx_hlo_any *type)
{
  const size_t mark = w->out.size;
  cx_hlo_write_number(w, CX_HLO_VHLO_TYPE);
  cx_hlo_write_number(w, cx_hlo_write_type(w, type, true));
  return take(w, true, mark);
}

// ---- literals ----

// i1 has eight elements a byte, the first in the lowest bit; one for all is
// 0x00 or 0xff.
static void put_bools(cx_hlo_bytecode_writer *w, const unsigned char *v,
                      size_t n)
{
  if (n == 1) {
    cx_hlo_write_number(w, 1);
    cx_text_char(&w->out, (char)(v[0] != 0 ? 0xff : 0));
    return;
  }
  cx_hlo_write_number(w, (n + 7) / 8);
  for (size_t i = 0; i < n; i += 8) {
    unsigned byte = 0;
    for (size_t k = i; k < n && k < i + 8; k++) {
      byte |= (unsigned)(v[k] != 0) << (k - i);
    }
    cx_text_char(&w->out, (char)byte);
  }
}

// size bytes. Elements of less than 8 bits have a byte each, with zeros above.
static void put_blob(cx_hlo_bytecode_writer *w, cx_hlo_elem elem,
                     const unsigned char *v, size_t size)
{
  if (elem == CX_HLO_I1 && size != 0) {
    put_bools(w, v, size);
    return;
  }
  const unsigned bits = elem == CX_HLO_INDEX ? 64 : cx_hlo_elem_bits(elem);
  cx_hlo_write_number(w, size);
  if (bits >= 8) {
    cx_text_append_n(&w->out, (const char *)v, size);
    return;
  }
  for (size_t i = 0; i < size; i++) {
    cx_text_char(&w->out, (char)(v[i] & ((1u << bits) - 1)));
  }
}

static bool put_elements(cx_hlo_bytecode_writer *w, const cx_hlo_elements *e,
                         bool vhlo)
{
  if (e->type.non_tensor != NULL) return false;
  const size_t type = cx_hlo_write_type(w, &e->type, vhlo);
  put_code(w, vhlo, CX_HLO_VHLO_TENSOR, CX_HLO_BUILTIN_DENSE);
  cx_hlo_write_number(w, type);
  put_blob(w, e->type.tensor.elem, e->data, e->size);
  return true;
}

size_t cx_hlo_write_ints(cx_hlo_bytecode_writer *w, cx_hlo_elem elem,
                         const int64_t *v, const int64_t *dims, size_t rank,
                         bool each)
{
  const size_t mark = w->out.size;
  const cx_hlo_any type = { .tensor = { elem, rank, dims } };
  size_t n = 1;
  for (size_t i = 0; i < rank; i++) n *= (size_t)dims[i];
  bool equal = n > 1;
  for (size_t i = 1; !each && equal && i < n; i++) equal = v[i] == v[0];
  if (equal) n = 1;
  cx_hlo_write_number(w, CX_HLO_VHLO_TENSOR);
  cx_hlo_write_number(w, cx_hlo_write_type(w, &type, true));
  if (elem == CX_HLO_I1) {
    unsigned char bytes[4096] = { 0 };
    if (n > sizeof bytes) {
      CX_HLO_WRITE_FAIL(w, CALX_UNIMPLEMENTED,
                        "bytecode: a list of %zu booleans, at most %zu are "
                        "written",
                        n, sizeof bytes);
      n = 0;
    }
    for (size_t i = 0; i < n; i++) bytes[i] = v[i] != 0;
    put_blob(w, elem, bytes, n);
  } else {
    put_blob(w, elem, (const unsigned char *)v, n * sizeof *v);
  }
  return take(w, true, mark);
}

// array<i64: …>
static void put_array(cx_hlo_bytecode_writer *w, const cx_hlo_attr *attr)
{
  const cx_hlo_ints list = attr->as.ints;
  const size_t each = cx_hlo_elem_bytes(attr->elem);
  unsigned char bytes[8];
  cx_hlo_write_number(w, CX_HLO_BUILTIN_DENSE_ARRAY);
  cx_hlo_write_number(w, cx_hlo_write_elem(w, attr->elem, false));
  cx_hlo_write_number(w, list.n);
  cx_hlo_write_number(w, list.n * each);
  for (size_t i = 0; i < list.n; i++) {
    cx_hlo_store_int(attr->elem, bytes, list.v[i]);
    cx_text_append_n(&w->out, (const char *)bytes, each);
  }
}

// ---- lists and structs ----

static void put_list(cx_hlo_bytecode_writer *w, const cx_hlo_attr *attr,
                     bool vhlo)
{
  put_code(w, vhlo, CX_HLO_VHLO_ARRAY, CX_HLO_BUILTIN_ARRAY);
  cx_hlo_write_number(w, attr->as.list.n);
  for (size_t i = 0; i < attr->as.list.n; i++) {
    cx_hlo_write_number(w, cx_hlo_write_attr(w, attr->as.list.items[i], vhlo));
  }
}

size_t cx_hlo_write_repeated(cx_hlo_bytecode_writer *w, size_t item, size_t n)
{
  const size_t mark = w->out.size;
  cx_hlo_write_number(w, CX_HLO_VHLO_ARRAY);
  cx_hlo_write_number(w, n);
  for (size_t i = 0; i < n; i++) cx_hlo_write_number(w, item);
  return take(w, true, mark);
}

size_t cx_hlo_write_dict(cx_hlo_bytecode_writer *w, const cx_hlo_named *items,
                         size_t n, bool vhlo, bool vhlo_values)
{
  const size_t mark = w->out.size;
  put_code(w, vhlo, CX_HLO_VHLO_DICT, CX_HLO_BUILTIN_DICT);
  cx_hlo_write_number(w, n);
  for (size_t i = 0; i < n; i++) {
    cx_hlo_write_number(w, write_string(w, items[i].name, vhlo));
    cx_hlo_write_number(w, cx_hlo_write_attr(w, items[i].attr, vhlo_values));
  }
  return take(w, vhlo, mark);
}

static void put_ints(cx_hlo_bytecode_writer *w, cx_hlo_ints list)
{
  cx_hlo_write_number(w, list.n);
  for (size_t i = 0; i < list.n; i++) cx_hlo_write_signed(w, list.v[i]);
}

static bool put_struct(cx_hlo_bytecode_writer *w, const cx_hlo_attr *attr)
{
  if (attr->which == CX_HLO_STRUCT_OUTPUT_ALIAS) {
    const cx_hlo_output_alias *alias = attr->as.fields;
    cx_hlo_write_number(w, CX_HLO_VHLO_ALIAS);
    put_ints(w, alias->output);
    cx_hlo_write_signed(w, alias->operand);
    put_ints(w, alias->operand_tuple);
    return true;
  }
  if (attr->which != CX_HLO_STRUCT_ACCURACY) return false;
  const cx_hlo_accuracy *a = attr->as.fields;
  cx_hlo_write_number(w, CX_HLO_VHLO_ACCURACY);
  cx_hlo_write_double(w, a->atol);
  cx_hlo_write_double(w, a->rtol);
  cx_hlo_write_signed(w, a->ulps);
  cx_hlo_write_number(
      w, cx_hlo_write_enum(w, CX_HLO_VHLO_ACCURACY_MODE, (uint64_t)a->mode));
  return true;
}

static bool put_choice(cx_hlo_bytecode_writer *w, const cx_hlo_attr *attr)
{
  cx_hlo_write_number(w, cx_hlo_vhlo_choice_code((cx_hlo_choice)attr->which));
  cx_hlo_write_number(w, (uint64_t)attr->as.integer);
  return true;
}

// ---- any attribute ----

// What VHLO lacks is written as the builtin dialect's; false: neither has it.
static bool put_plain(cx_hlo_bytecode_writer *w, const cx_hlo_attr *attr)
{
  switch (attr->kind) {
    case CX_HLO_ATTR_UNIT: cx_hlo_write_number(w, CX_HLO_BUILTIN_UNIT); break;
    case CX_HLO_ATTR_ARRAY: put_array(w, attr); break;
    case CX_HLO_ATTR_SYMBOL:
      cx_hlo_write_number(w, CX_HLO_BUILTIN_FLAT_SYMBOL);
      cx_hlo_write_number(w, write_string(w, attr->as.text, false));
      break;
    default: return false;
  }
  return true;
}

static void put_bool(cx_hlo_bytecode_writer *w, bool v, bool vhlo)
{
  put_code(w, vhlo, CX_HLO_VHLO_BOOL, CX_HLO_BUILTIN_INTEGER);
  if (!vhlo) cx_hlo_write_number(w, cx_hlo_write_elem(w, CX_HLO_I1, false));
  cx_text_char(&w->out, (char)(vhlo ? v << 1 | 1 : v));
}

static bool put_attr(cx_hlo_bytecode_writer *w, const cx_hlo_attr *attr,
                     bool vhlo)
{
  switch (attr->kind) {
    case CX_HLO_ATTR_BOOL: put_bool(w, attr->as.flag, vhlo); return true;
    case CX_HLO_ATTR_INT:
      if (!cx_hlo_elem_is_int(attr->elem) && attr->elem != CX_HLO_INDEX) {
        return false;
      }
      put_integer(w, attr->elem, attr->as.integer, vhlo);
      return true;
    case CX_HLO_ATTR_FLOAT:
      if (!cx_hlo_elem_is_float(attr->elem)) return false;
      put_float(w, attr, vhlo);
      return true;
    case CX_HLO_ATTR_STRING:
      put_code(w, vhlo, CX_HLO_VHLO_STRING, CX_HLO_BUILTIN_STRING);
      cx_hlo_write_number(w, cx_hlo_write_string(w, attr->as.text));
      return true;
    case CX_HLO_ATTR_TYPE:
      put_code(w, vhlo, CX_HLO_VHLO_TYPE, CX_HLO_BUILTIN_TYPE);
      cx_hlo_write_number(w, cx_hlo_write_type(w, &attr->as.type, vhlo));
      return true;
    case CX_HLO_ATTR_ELEMENTS: return put_elements(w, &attr->as.elements, vhlo);
    case CX_HLO_ATTR_LIST: put_list(w, attr, vhlo); return true;
    case CX_HLO_ATTR_CHOICE: return vhlo && put_choice(w, attr);
    case CX_HLO_ATTR_STRUCT: return vhlo && put_struct(w, attr);
    default: return false;
  }
}

size_t cx_hlo_write_attr(cx_hlo_bytecode_writer *w, const cx_hlo_attr *attr,
                         bool vhlo)
{
  const size_t mark = w->out.size;
  if (attr->kind == CX_HLO_ATTR_DICT) {
    return cx_hlo_write_dict(w, attr->as.dict.items, attr->as.dict.n, vhlo,
                             vhlo);
  }
  if (put_attr(w, attr, vhlo)) return take(w, vhlo, mark);
  if (put_plain(w, attr)) return take(w, false, mark);
  if (attr->kind == CX_HLO_ATTR_CHOICE && w->in_chlo) {
    cx_text_format(
        &w->out, "#chlo<%s %s>", cx_hlo_choice_name((cx_hlo_choice)attr->which),
        cx_hlo_choice_value((cx_hlo_choice)attr->which, attr->as.integer));
  } else {
    cx_hlo_attr_print(&w->out, attr);
  }
  return cx_hlo_write_text_entry(w, &w->attrs, mark);
}
