// hlo/bytecode: the types of the builtin dialect and of VHLO.
#include "hlo/bytecode_codes.h"
#include "hlo/bytecode_reader.h"
#include "hlo/print.h"

// ---- making types ----

static calx_status *make_other(cx_hlo_bytecode *b, cx_hlo_non_tensor value,
                               cx_hlo_any *out)
{
  cx_hlo_non_tensor *copy =
      CX_ARENA_NEW(&b->r->module->arena, cx_hlo_non_tensor);
  if (copy == NULL) return cx_out_of_memory();
  *copy = value;
  out->non_tensor = copy;
  return NULL;
}

static calx_status *make_elem(cx_hlo_bytecode *b, cx_hlo_elem elem,
                              cx_hlo_any *out)
{
  return make_other(
      b, (cx_hlo_non_tensor){ .kind = CX_HLO_NON_TENSOR_ELEMENT, .elem = elem },
      out);
}

calx_status *cx_hlo_bytes_elem(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               cx_hlo_elem *out)
{
  const char *at = in->at;
  cx_hlo_any type;
  CALX_TRY(cx_hlo_bytes_type(b, in, &type));
  if (type.non_tensor == NULL ||
      type.non_tensor->kind != CX_HLO_NON_TENSOR_ELEMENT) {
    return CX_HLO_BYTES_UNKNOWN(b, at,
                                "numbers of another than an element type");
  }
  *out = type.non_tensor->elem;
  return NULL;
}

static calx_status *read_complex(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 cx_hlo_any *out)
{
  const char *at = in->at;
  cx_hlo_elem part = CX_HLO_INVALID;
  CALX_TRY(cx_hlo_bytes_elem(b, in, &part));
  if (part == CX_HLO_F32) return make_elem(b, CX_HLO_C64, out);
  if (part == CX_HLO_F64) return make_elem(b, CX_HLO_C128, out);
  return CX_HLO_BYTES_FAIL(b, at,
                           "complex numbers have parts f32 or f64, not %s",
                           cx_hlo_elem_name(part));
}

// integer ::= width << 2 | (0 signless, 1 signed, 2 unsigned)
static calx_status *read_integer(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 cx_hlo_any *out)
{
  static const char *const prefixes[] = { "i", "si", "ui", "?" };
  const char *at = in->at;
  uint64_t v = 0;
  char name[32];
  CALX_TRY(cx_hlo_bytes_number(b, in, &v));
  const int n = snprintf(name, sizeof name, "%s%llu", prefixes[v & 3],
                         (unsigned long long)(v >> 2));
  const cx_hlo_elem elem = cx_hlo_elem_parse(name, (size_t)n);
  if (elem == CX_HLO_INVALID) {
    return CX_HLO_BYTES_UNKNOWN(b, at, "the type %s", name);
  }
  return make_elem(b, elem, out);
}

static calx_status *make_text(cx_hlo_bytecode *b, cx_hlo_str text,
                              cx_hlo_any *out)
{
  return make_other(
      b, (cx_hlo_non_tensor){ .kind = CX_HLO_NON_TENSOR_TEXT, .text = text },
      out);
}

static bool is_element(const cx_hlo_non_tensor *t)
{
  return t != NULL && (t->kind == CX_HLO_NON_TENSOR_ELEMENT ||
                       (t->kind == CX_HLO_NON_TENSOR_TEXT && t->text.n != 0 &&
                        t->text.s[0] == '!'));
}

// What is kept as text: a buffer (`word` is memref), and a tensor of quantized
// elements, or without a rank, for which `dims` is NULL.
static calx_status *make_text_tensor(cx_hlo_bytecode *b, const char *at,
                                     const char *word, const int64_t *dims,
                                     size_t rank, const cx_hlo_any *elem,
                                     cx_hlo_any *out)
{
  cx_text text = { 0 };
  cx_hlo_str taken;
  if (!is_element(elem->non_tensor)) {
    return CX_HLO_BYTES_FAIL(b, at, "a tensor has elements of a simple type");
  }
  cx_text_format(&text, "%s<%s", word, dims == NULL ? "*x" : "");
  for (size_t i = 0; i < rank; i++) {
    if (dims[i] < 0) cx_text_append(&text, "?x");
    if (dims[i] >= 0) cx_text_format(&text, "%lldx", (long long)dims[i]);
  }
  cx_hlo_any_print(&text, elem);
  cx_text_char(&text, '>');
  CALX_TRY(cx_hlo_bytes_take_text(b, at, &text, &taken));
  return make_text(b, taken, out);
}

static calx_status *read_unranked(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                  cx_hlo_any *out)
{
  const char *at = in->at;
  cx_hlo_any elem;
  CALX_TRY(cx_hlo_bytes_type(b, in, &elem));
  return make_text_tensor(b, at, "tensor", NULL, 0, &elem, out);
}

static calx_status *read_quantized(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                   bool per_axis, cx_hlo_any *out)
{
  cx_hlo_str text;
  CALX_TRY(cx_hlo_bytes_read_quantized(b, in, per_axis, &text));
  return make_text(b, text, out);
}

// tensor ::= rank size* element; a size of INT64_MIN is dynamic.
// A buffer (memref) is written alike, and is kept as text.
static calx_status *read_shaped(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                bool is_buffer, cx_hlo_any *out)
{
  const char *at = in->at;
  size_t rank = 0;
  CALX_TRY(cx_hlo_bytes_count(b, in, &rank));
  int64_t *dims = CX_ARENA_ARRAY(&b->r->module->arena, int64_t, rank + 1);
  if (dims == NULL) return cx_out_of_memory();
  if (rank > CX_HLO_MOST_DIMS) {
    return CX_HLO_BYTES_FAIL(b, at, "a tensor has at most %d dimensions",
                             CX_HLO_MOST_DIMS);
  }
  for (size_t i = 0; i < rank; i++) {
    CALX_TRY(cx_hlo_bytes_signed(b, in, &dims[i]));
    if (dims[i] == INT64_MIN) {
      dims[i] = -1;
    } else if (dims[i] < 0) {
      return CX_HLO_BYTES_FAIL(b, at, "dimension %zu has size %lld", i,
                               (long long)dims[i]);
    }
  }
  cx_hlo_any elem;
  CALX_TRY(cx_hlo_bytes_type(b, in, &elem));
  if (is_buffer || elem.non_tensor == NULL ||
      elem.non_tensor->kind != CX_HLO_NON_TENSOR_ELEMENT) {
    return make_text_tensor(b, at, is_buffer ? "memref" : "tensor", dims, rank,
                            &elem, out);
  }
  out->tensor = (cx_hlo_type){ elem.non_tensor->elem, rank, dims };
  if (cx_hlo_elem_class(out->tensor.elem) != 0) return NULL;
  return CX_HLO_BYTES_FAIL(b, at, "no tensor has elements of %s",
                           cx_hlo_elem_name(out->tensor.elem));
}

static calx_status *read_tensor(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                cx_hlo_any *out)
{
  return read_shaped(b, in, false, out);
}

static calx_status *read_encoded(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 cx_hlo_any *out)
{
  const char *at = in->at;
  const cx_hlo_attr *encoding = NULL;
  CALX_TRY(cx_hlo_bytes_attr(b, in, &encoding));
  if (encoding->kind != CX_HLO_ATTR_TEXT) {
    return CX_HLO_BYTES_UNKNOWN(b, at, "this encoding of a tensor");
  }
  CALX_TRY(read_tensor(b, in, out));
  if (out->non_tensor != NULL) {
    return CX_HLO_BYTES_UNKNOWN(b, at, "an encoding of a quantized tensor");
  }
  return make_other(b,
                    (cx_hlo_non_tensor){ .kind = CX_HLO_NON_TENSOR_ENCODED,
                                         .text = encoding->as.text },
                    out);
}

// types ::= count type*, pushed onto any_stack
static calx_status *push_types(cx_hlo_bytecode *b, cx_hlo_bytes *in)
{
  size_t n = 0;
  CALX_TRY(cx_hlo_bytes_count(b, in, &n));
  for (size_t i = 0; i < n; i++) {
    cx_hlo_any type;
    CALX_TRY(cx_hlo_bytes_type(b, in, &type));
    CALX_TRY(cx_hlo_push_type(b->r, &type));
  }
  return NULL;
}

// A tuple or a future; a function has its results behind the inputs.
static calx_status *read_parts(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               cx_hlo_non_tensor_kind kind, cx_hlo_any *out)
{
  cx_hlo_reader *r = b->r;
  const size_t mark = r->any_stack.n;
  cx_hlo_non_tensor value = { .kind = kind };
  CALX_TRY(push_types(b, in));
  if (kind == CX_HLO_NON_TENSOR_FUNCTION) {
    value.n_inputs = r->any_stack.n - mark;
    CALX_TRY(push_types(b, in));
  }
  value.n_parts = r->any_stack.n - mark;
  CALX_TRY(CX_HLO_TAKE(r, r->any_stack, mark, &value.parts));
  return make_other(b, value, out);
}

static calx_status *make_none(cx_hlo_bytecode *b, cx_hlo_any *out)
{
  return make_text(b, (cx_hlo_str){ "none", 4 }, out);
}

// ---- reading ----

static calx_status *read_builtin(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 uint64_t code, cx_hlo_any *out)
{
  const char *at = in->at;
  const cx_hlo_elem elem = cx_hlo_builtin_elem(code);
  if (elem != CX_HLO_INVALID) return make_elem(b, elem, out);
  switch (code) {
    case CX_HLO_BUILTIN_T_INTEGER: return read_integer(b, in, out);
    case CX_HLO_BUILTIN_T_COMPLEX: return read_complex(b, in, out);
    case CX_HLO_BUILTIN_T_NONE: return make_none(b, out);
    case CX_HLO_BUILTIN_T_TENSOR: return read_tensor(b, in, out);
    case CX_HLO_BUILTIN_T_ENCODED: return read_encoded(b, in, out);
    case CX_HLO_BUILTIN_T_FUNCTION:
      return read_parts(b, in, CX_HLO_NON_TENSOR_FUNCTION, out);
    case CX_HLO_BUILTIN_T_TUPLE:
      return read_parts(b, in, CX_HLO_NON_TENSOR_TUPLE, out);
    default:
      return CX_HLO_BYTES_UNKNOWN(b, at, "type %llu of the builtin dialect",
                                  (unsigned long long)code);
  }
}

static calx_status *read_vhlo(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              uint64_t code, cx_hlo_any *out)
{
  const char *at = in->at;
  const cx_hlo_elem elem = cx_hlo_vhlo_elem(code);
  if (elem != CX_HLO_INVALID) return make_elem(b, elem, out);
  switch (code) {
    case CX_HLO_VHLO_T_COMPLEX: return read_complex(b, in, out);
    case CX_HLO_VHLO_T_NONE: return make_none(b, out);
    case CX_HLO_VHLO_T_TENSOR: return read_tensor(b, in, out);
    case CX_HLO_VHLO_T_ENCODED: return read_encoded(b, in, out);
    case CX_HLO_VHLO_T_TOKEN: out->tensor.elem = CX_HLO_TOKEN; return NULL;
    case CX_HLO_VHLO_T_FUNCTION:
      return read_parts(b, in, CX_HLO_NON_TENSOR_FUNCTION, out);
    case CX_HLO_VHLO_T_TUPLE:
      return read_parts(b, in, CX_HLO_NON_TENSOR_TUPLE, out);
    case CX_HLO_VHLO_T_QUANTIZED: return read_quantized(b, in, false, out);
    case CX_HLO_VHLO_T_QUANTIZED_AXIS: return read_quantized(b, in, true, out);
    case CX_HLO_VHLO_T_BUFFER: return read_shaped(b, in, true, out);
    case CX_HLO_VHLO_T_UNRANKED: return read_unranked(b, in, out);
    case CX_HLO_VHLO_T_FUTURE:
      return read_parts(b, in, CX_HLO_NON_TENSOR_FUTURE, out);
    default:
      return CX_HLO_BYTES_UNKNOWN(b, at, "type %llu of VHLO",
                                  (unsigned long long)code);
  }
}

calx_status *cx_hlo_bytes_read_type(cx_hlo_bytecode *b, cx_hlo_bytes_entry *e,
                                    cx_hlo_any *out)
{
  cx_hlo_bytes in = e->bytes;
  uint64_t code = 0;
  *out = (cx_hlo_any){ .non_tensor = NULL };
  CALX_TRY(cx_hlo_bytes_number(b, &in, &code));
  switch (e->dialect) {
    case CX_HLO_DIALECT_BUILTIN: return read_builtin(b, &in, code, out);
    case CX_HLO_DIALECT_VHLO: return read_vhlo(b, &in, code, out);
    case CX_HLO_DIALECT_STABLEHLO:
      // Its only type; stablehlo/dialect/StablehloBytecode.cpp.
      if (code != 0) break;
      out->tensor.elem = CX_HLO_TOKEN;
      return NULL;
    case CX_HLO_DIALECT_SDY:
    case CX_HLO_DIALECT_OTHER: break;
  }
  return CX_HLO_BYTES_UNKNOWN(b, e->bytes.at,
                              "a type of another dialect than VHLO");
}
