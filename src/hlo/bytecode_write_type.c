// hlo/bytecode: writes types.
#include <string.h>

#include "hlo/bytecode_writer.h"
#include "hlo/print.h"

static size_t dialect_of(bool vhlo)
{
  return vhlo ? CX_HLO_WRITES_VHLO : CX_HLO_WRITES_BUILTIN;
}

// ---- element types ----

// Integers of the builtin dialect have a width and a sign.
static bool put_builtin_integer(cx_hlo_bytecode_writer *w, cx_hlo_elem elem)
{
  if (elem != CX_HLO_I1 && !cx_hlo_elem_is_int(elem)) return false;
  const unsigned sign =
      elem != CX_HLO_I1 && cx_hlo_elem_is_unsigned(elem) ? 2 : 0;
  cx_hlo_write_number(w, CX_HLO_BUILTIN_T_INTEGER);
  cx_hlo_write_number(w, cx_hlo_elem_bits(elem) << 2 | sign);
  return true;
}

static bool put_elem(cx_hlo_bytecode_writer *w, cx_hlo_elem elem, bool vhlo)
{
  const uint64_t code =
      vhlo ? cx_hlo_vhlo_elem_code(elem) : cx_hlo_builtin_elem_code(elem);
  if (code != CX_HLO_NO_CODE) {
    cx_hlo_write_number(w, code);
    return true;
  }
  if (!cx_hlo_elem_is_complex(elem)) {
    return !vhlo && put_builtin_integer(w, elem);
  }
  const size_t part = cx_hlo_write_elem(w, cx_hlo_elem_part(elem), vhlo);
  cx_hlo_write_number(w,
                      vhlo ? CX_HLO_VHLO_T_COMPLEX : CX_HLO_BUILTIN_T_COMPLEX);
  cx_hlo_write_number(w, part);
  return true;
}

size_t cx_hlo_write_elem(cx_hlo_bytecode_writer *w, cx_hlo_elem elem, bool vhlo)
{
  const size_t mark = w->out.size;
  if (put_elem(w, elem, vhlo)) {
    return cx_hlo_write_entry(w, &w->types, dialect_of(vhlo), mark);
  }
  cx_text_append(&w->out, cx_hlo_elem_name(elem));
  return cx_hlo_write_text_entry(w, &w->types, mark);
}

// ---- tensors ----

// rank size* element, from behind the code
static void put_shape(cx_hlo_bytecode_writer *w, const cx_hlo_type *t,
                      size_t elem)
{
  cx_hlo_write_number(w, t->rank);
  for (size_t i = 0; i < t->rank; i++) {
    cx_hlo_write_signed(w, t->dims[i] < 0 ? INT64_MIN : t->dims[i]);
  }
  cx_hlo_write_number(w, elem);
}

static bool put_tensor(cx_hlo_bytecode_writer *w, const cx_hlo_type *t,
                       bool vhlo)
{
  if (t->elem == CX_HLO_TOKEN) {
    if (vhlo) cx_hlo_write_number(w, CX_HLO_VHLO_T_TOKEN);
    return vhlo;
  }
  const size_t elem = cx_hlo_write_elem(w, t->elem, vhlo);
  cx_hlo_write_number(w, vhlo ? CX_HLO_VHLO_T_TENSOR : CX_HLO_BUILTIN_T_TENSOR);
  put_shape(w, t, elem);
  return true;
}

// #stablehlo.bounds<4, ?>, as the reader writes it: the largest sizes of a
// tensor's dynamic dimensions. false: it is another encoding.
static bool put_bounds(cx_hlo_bytecode_writer *w, cx_hlo_str s)
{
  static const char head[] = "#stablehlo.bounds<";
  const size_t from = sizeof head - 1;
  const size_t mark = w->out.size;
  int64_t v[CX_HLO_MOST_DIMS];
  size_t n = 0;
  if (s.n <= from || memcmp(s.s, head, from) != 0) return false;
  for (size_t i = from; i < s.n; i += 2) {  // behind a number stands ", " or >
    if (n == CX_HLO_MOST_DIMS) return false;
    int64_t size = 0;
    const size_t first = i;
    while (i < s.n && s.s[i] >= '0' && s.s[i] <= '9' && i - first < 18) {
      size = 10 * size + (s.s[i++] - '0');
    }
    const bool dynamic = i == first && i < s.n && s.s[i] == '?';
    i += dynamic;
    v[n++] = dynamic ? INT64_MIN : size;
    const bool more = i + 1 < s.n && s.s[i] == ',' && s.s[i + 1] == ' ';
    const bool plain = i - first == 1 || s.s[first] != '0';
    if (i == first || !plain || (!more && (i + 1 != s.n || s.s[i] != '>'))) {
      return false;
    }
  }
  cx_hlo_write_number(w, CX_HLO_VHLO_BOUNDS);
  cx_hlo_write_number(w, n);
  for (size_t i = 0; i < n; i++) cx_hlo_write_signed(w, v[i]);
  const size_t bounds =
      cx_hlo_write_entry(w, &w->attrs, CX_HLO_WRITES_VHLO, mark);
  cx_hlo_write_number(w, CX_HLO_VHLO_T_ENCODED);
  cx_hlo_write_number(w, bounds);
  return true;
}

static bool put_encoded(cx_hlo_bytecode_writer *w, const cx_hlo_any *type,
                        bool vhlo)
{
  if (!vhlo || type->tensor.elem == CX_HLO_TOKEN) return false;
  const size_t elem = cx_hlo_write_elem(w, type->tensor.elem, vhlo);
  if (!put_bounds(w, type->non_tensor->text)) return false;
  put_shape(w, &type->tensor, elem);
  return true;
}

// ---- types of types ----

// count type*; the numbers come first, because their entries are written where
// these are.
static bool put_parts(cx_hlo_bytecode_writer *w, const cx_hlo_non_tensor *t,
                      uint64_t code, bool vhlo)
{
  const bool is_function = t->kind == CX_HLO_NON_TENSOR_FUNCTION;
  const size_t inputs = is_function ? t->n_inputs : t->n_parts;
  cx_hlo_write_number(w, code);
  cx_hlo_write_number(w, inputs);
  for (size_t i = 0; i < t->n_parts; i++) {
    if (is_function && i == inputs) cx_hlo_write_number(w, t->n_parts - inputs);
    cx_hlo_write_number(w, cx_hlo_write_type(w, &t->parts[i], vhlo));
  }
  if (is_function && inputs == t->n_parts) cx_hlo_write_number(w, 0);
  return true;
}

static bool put_other(cx_hlo_bytecode_writer *w, const cx_hlo_any *type,
                      bool vhlo)
{
  const cx_hlo_non_tensor *t = type->non_tensor;
  switch (t->kind) {
    case CX_HLO_NON_TENSOR_TUPLE:
      return put_parts(
          w, t, vhlo ? CX_HLO_VHLO_T_TUPLE : CX_HLO_BUILTIN_T_TUPLE, vhlo);
    case CX_HLO_NON_TENSOR_FUNCTION:
      return put_parts(
          w, t, vhlo ? CX_HLO_VHLO_T_FUNCTION : CX_HLO_BUILTIN_T_FUNCTION,
          vhlo);
    case CX_HLO_NON_TENSOR_FUTURE:
      return vhlo && put_parts(w, t, CX_HLO_VHLO_T_FUTURE, vhlo);
    case CX_HLO_NON_TENSOR_ELEMENT: return put_elem(w, t->elem, vhlo);
    case CX_HLO_NON_TENSOR_ENCODED: return put_encoded(w, type, vhlo);
    case CX_HLO_NON_TENSOR_TEXT:
      if (!cx_hlo_str_equal(t->text, "none")) return false;
      cx_hlo_write_number(w, vhlo ? CX_HLO_VHLO_T_NONE : CX_HLO_BUILTIN_T_NONE);
      return true;
  }
  return false;
}

size_t cx_hlo_write_type(cx_hlo_bytecode_writer *w, const cx_hlo_any *type,
                         bool vhlo)
{
  const size_t mark = w->out.size;
  const bool done = type->non_tensor == NULL
                        ? put_tensor(w, &type->tensor, vhlo)
                        : put_other(w, type, vhlo);
  if (done) return cx_hlo_write_entry(w, &w->types, dialect_of(vhlo), mark);
  cx_hlo_any_print(&w->out, type);
  return cx_hlo_write_text_entry(w, &w->types, mark);
}
