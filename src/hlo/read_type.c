// hlo/reader: types.
#include <string.h>

#include "hlo/reader.h"

static bool is_digit(char c)
{
  return c >= '0' && c <= '9';
}

static cx_hlo_non_tensor *new_non_tensor(cx_hlo_reader *r,
                                         cx_hlo_non_tensor_kind kind)
{
  cx_hlo_non_tensor *non_tensor =
      CX_ARENA_NEW(&r->module->arena, cx_hlo_non_tensor);
  if (non_tensor != NULL) non_tensor->kind = kind;
  return non_tensor;
}

// The type from `from` to the cursor, as it was written.
static calx_status *text_type(cx_hlo_reader *r, const char *from,
                              cx_hlo_any *out)
{
  cx_hlo_non_tensor *non_tensor = new_non_tensor(r, CX_HLO_NON_TENSOR_TEXT);
  if (non_tensor == NULL) return cx_out_of_memory();
  *out = (cx_hlo_any){ .non_tensor = non_tensor };
  return cx_hlo_reader_str(r, from, (size_t)(r->scan.at - from),
                           &non_tensor->text);
}

// ---- tensors ----

// size 'x', without white space between them; pushed
static calx_status *read_dim(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  int64_t size = -1;
  if (*s->at == '?') {
    s->at++;
  } else {
    const char *from = s->at;
    bool overflow = false;
    // Not cx_hlo_scan_int(): 0x3 is two dimensions here.
    for (size = 0; s->at < s->end && is_digit(*s->at); s->at++) {
      overflow |= __builtin_mul_overflow(size, 10, &size);
      overflow |= __builtin_add_overflow(size, *s->at - '0', &size);
    }
    if (overflow) return CX_HLO_FAIL(r, from, "the size is too large");
  }
  if (s->at == s->end || *s->at != 'x') {
    return cx_hlo_scan_expected(s, "'x' behind the size");
  }
  s->at++;
  return CX_HLO_PUSH(r->int_stack, size);
}

// elem ::= word | 'complex' '<' word '>'. INVALID: the cursor is at no element
// type that calx knows, and does not move.
static cx_hlo_elem read_elem(cx_hlo_scan *s)
{
  const char *before = s->at;
  cx_hlo_str word;
  if (!cx_hlo_scan_word(s, &word)) return CX_HLO_INVALID;
  if (cx_hlo_str_equal(word, "complex")) {
    cx_hlo_str part;
    if (cx_hlo_scan_accept(s, "<") && cx_hlo_scan_word(s, &part) &&
        cx_hlo_scan_accept(s, ">")) {
      if (cx_hlo_str_equal(part, "f32")) return CX_HLO_C64;
      if (cx_hlo_str_equal(part, "f64")) return CX_HLO_C128;
    }
    s->at = before;
    return CX_HLO_INVALID;
  }
  const cx_hlo_elem e = cx_hlo_elem_parse(word.s, word.n);
  if (e == CX_HLO_INVALID) s->at = before;
  return e;
}

// encoding ::= attribute, kept as it was written
static calx_status *read_encoding(cx_hlo_reader *r, cx_hlo_any *out)
{
  cx_hlo_non_tensor *non_tensor = new_non_tensor(r, CX_HLO_NON_TENSOR_ENCODED);
  const cx_hlo_attr *attr = NULL;
  if (non_tensor == NULL) return cx_out_of_memory();
  const char *from = cx_hlo_scan_here(&r->scan);
  CALX_TRY(cx_hlo_read_attr(r, &attr));
  out->non_tensor = non_tensor;
  return cx_hlo_reader_str(r, from, (size_t)(r->scan.at - from),
                           &non_tensor->text);
}

// tensor ::= 'tensor' '<' (dim 'x')* elem (',' encoding)? '>', dim = digits | ?
// From behind the word; `from` is before it. Quantized and unranked tensors are
// kept as text.
static calx_status *read_tensor(cx_hlo_reader *r, const char *from,
                                cx_hlo_any *out)
{
  cx_hlo_scan *s = &r->scan;
  const size_t mark = r->int_stack.n;
  const char *bracket = s->at;
  CALX_TRY(cx_hlo_scan_need(s, "<"));
  cx_hlo_scan_space(s);
  while (s->at < s->end && (is_digit(*s->at) || *s->at == '?')) {
    CALX_TRY(read_dim(r));
  }
  const cx_hlo_elem elem = read_elem(s);
  if (elem == CX_HLO_INVALID) {
    const char c = cx_hlo_scan_peek(s);
    if (c != '*' && c != '!') {
      return cx_hlo_scan_expected(s, "an element type");
    }
    r->int_stack.n = mark;
    s->at = bracket;
    CALX_TRY(cx_hlo_scan_balanced(s));
    return text_type(r, from, out);
  }
  const size_t rank = r->int_stack.n - mark;
  if (rank > CX_HLO_MOST_DIMS) {
    return CX_HLO_FAIL(r, from, "more than %d dimensions", CX_HLO_MOST_DIMS);
  }
  out->non_tensor = NULL;
  out->tensor = (cx_hlo_type){ elem, rank, NULL };
  CALX_TRY(CX_HLO_TAKE(r, r->int_stack, mark, &out->tensor.dims));
  if (cx_hlo_scan_accept(s, ",")) CALX_TRY(read_encoding(r, out));
  return cx_hlo_scan_need(s, ">");
}

// ---- lists of types ----

calx_status *cx_hlo_read_pushed_type(cx_hlo_reader *r)
{
  cx_hlo_any type;
  CALX_TRY(cx_hlo_read_type(r, &type));
  return CX_HLO_PUSH(r->any_stack, type);
}

// types ::= '(' (type (',' type)*)? ')', pushed
static calx_status *read_types(cx_hlo_reader *r)
{
  return cx_hlo_read_items(r, "(", ')', cx_hlo_read_pushed_type);
}

calx_status *cx_hlo_read_result_types(cx_hlo_reader *r)
{
  return cx_hlo_scan_peek(&r->scan) == '(' ? read_types(r)
                                           : cx_hlo_read_pushed_type(r);
}

calx_status *cx_hlo_read_function_types(cx_hlo_reader *r, size_t *out_inputs)
{
  const size_t mark = r->any_stack.n;
  CALX_TRY(read_types(r));
  *out_inputs = r->any_stack.n - mark;
  CALX_TRY(cx_hlo_scan_need(&r->scan, "->"));
  return cx_hlo_read_result_types(r);
}

static calx_status *with_parts(cx_hlo_reader *r, cx_hlo_non_tensor_kind kind,
                               size_t mark, size_t n_inputs, cx_hlo_any *out)
{
  cx_hlo_non_tensor *non_tensor = new_non_tensor(r, kind);
  if (non_tensor == NULL) return cx_out_of_memory();
  non_tensor->n_parts = r->any_stack.n - mark;
  non_tensor->n_inputs = n_inputs;
  *out = (cx_hlo_any){ .non_tensor = non_tensor };
  return CX_HLO_TAKE(r, r->any_stack, mark, &non_tensor->parts);
}

// '<' types '>'
static calx_status *read_parts(cx_hlo_reader *r, cx_hlo_non_tensor_kind kind,
                               cx_hlo_any *out)
{
  const size_t mark = r->any_stack.n;
  CALX_TRY(cx_hlo_read_items(r, "<", '>', cx_hlo_read_pushed_type));
  return with_parts(r, kind, mark, 0, out);
}

// ---- any type ----

// dialect-type ::= '!' name ('<' … '>')?, from behind the '!'
static calx_status *read_dialect_type(cx_hlo_reader *r, const char *from,
                                      cx_hlo_any *out)
{
  cx_hlo_scan *s = &r->scan;
  const cx_hlo_str name = cx_hlo_scan_suffix(s);
  if (cx_hlo_str_equal(name, "stablehlo.token")) {
    *out = (cx_hlo_any){ .tensor.elem = CX_HLO_TOKEN };
    return NULL;
  }
  if (cx_hlo_str_equal(name, "stablehlo.future")) {
    return read_parts(r, CX_HLO_NON_TENSOR_FUTURE, out);
  }
  const cx_hlo_alias *alias = NULL;
  CALX_TRY(cx_hlo_use_alias(r, &r->types, name, from, &alias));
  if (alias != NULL) {
    *out = alias->type;
    return NULL;
  }
  if (name.n == 0 || memchr(name.s, '.', name.n) == NULL) {
    return CX_HLO_FAIL(r, from, "there is no type alias '!%.*s'", (int)name.n,
                       name.s);
  }
  if (s->at < s->end && *s->at == '<') CALX_TRY(cx_hlo_scan_balanced(s));
  return text_type(r, from, out);
}

// Types that begin with a word.
static calx_status *read_word_type(cx_hlo_reader *r, const char *from,
                                   cx_hlo_any *out)
{
  cx_hlo_scan *s = &r->scan;
  const cx_hlo_elem elem = read_elem(s);
  cx_hlo_str word;
  if (elem != CX_HLO_INVALID) {
    cx_hlo_non_tensor *non_tensor =
        new_non_tensor(r, CX_HLO_NON_TENSOR_ELEMENT);
    if (non_tensor == NULL) return cx_out_of_memory();
    non_tensor->elem = elem;
    *out = (cx_hlo_any){ .non_tensor = non_tensor };
    return NULL;
  }
  if (!cx_hlo_scan_word(s, &word)) return cx_hlo_scan_expected(s, "a type");
  if (cx_hlo_str_equal(word, "tensor")) return read_tensor(r, from, out);
  if (cx_hlo_str_equal(word, "tuple")) {
    return read_parts(r, CX_HLO_NON_TENSOR_TUPLE, out);
  }
  const bool bare = cx_hlo_str_equal(word, "none");
  if (!bare && !cx_hlo_str_equal(word, "memref") &&
      !cx_hlo_str_equal(word, "vector") && !cx_hlo_str_equal(word, "complex")) {
    return CX_HLO_FAIL(r, from, "there is no type '%.*s'", (int)word.n, word.s);
  }
  if (!bare) CALX_TRY(cx_hlo_scan_balanced(s));
  return text_type(r, from, out);
}

// type ::= tensor | 'tuple' '<' types '>' | '!stablehlo.token'
//        | '!stablehlo.future' '<' types '>' | function | elem | '!' alias
//        | other dialects' types, 'memref', 'vector', 'none': kept as text
static calx_status *read_type(cx_hlo_reader *r, cx_hlo_any *out)
{
  const char c = cx_hlo_scan_peek(&r->scan);
  const char *from = r->scan.at;
  if (c == '(') {
    const size_t mark = r->any_stack.n;
    size_t n_inputs = 0;
    CALX_TRY(cx_hlo_read_function_types(r, &n_inputs));
    return with_parts(r, CX_HLO_NON_TENSOR_FUNCTION, mark, n_inputs, out);
  }
  if (c != '!') return read_word_type(r, from, out);
  r->scan.at++;
  return read_dialect_type(r, from, out);
}

calx_status *cx_hlo_read_type(cx_hlo_reader *r, cx_hlo_any *out)
{
  CALX_TRY(cx_hlo_reader_deeper(r));
  CALX_TRY(read_type(r, out));
  cx_hlo_reader_higher(r);
  return NULL;
}
