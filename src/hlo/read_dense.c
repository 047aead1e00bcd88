// hlo/reader: dense literals.
//
// The type comes behind the literal. So the reader passes the literal, reads
// the type, and then reads the elements.
#include <string.h>

#include "hlo/number.h"
#include "hlo/reader.h"

typedef struct literal {
  const cx_hlo_type *type;
  int64_t n;     // elements of the type
  size_t bytes;  // of an element
} literal;

// Goes to the '>' that closes the literal. Only strings in it may contain one.
static calx_status *skip_literal(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  while (cx_hlo_scan_peek(s) != '>') {
    cx_hlo_str string;
    if (s->at == s->end) return cx_hlo_scan_expected(s, "'>'");
    if (*s->at == '"') {
      CALX_TRY(cx_hlo_scan_quoted(s, &string));
    } else {
      s->at++;
    }
  }
  return NULL;
}

// ---- single elements ----

static bool is_hex(const cx_hlo_scan *s)
{
  return s->end - s->at > 2 && s->at[0] == '0' && s->at[1] == 'x';
}

// real ::= number | '0x' hex+, the bits of the type
static calx_status *read_real(cx_hlo_reader *r, cx_hlo_elem e, void *out)
{
  cx_hlo_scan *s = &r->scan;
  const char *from = cx_hlo_scan_here(s);
  uint64_t bits = 0;
  if (is_hex(s)) {
    int64_t v = 0;
    CALX_TRY(cx_hlo_scan_int(s, &v));
    bits = (uint64_t)v;
    if (cx_hlo_elem_bits(e) < 64 && bits >> cx_hlo_elem_bits(e) != 0) {
      return CX_HLO_FAIL(r, from, "%s has only %u bits", cx_hlo_elem_name(e),
                         cx_hlo_elem_bits(e));
    }
  } else {
    const cx_hlo_str number = cx_hlo_scan_number(s);
    if (!cx_hlo_read_bits(e, number.s, number.n, &bits)) {
      return cx_hlo_scan_expected(s, "a number");
    }
  }
  cx_hlo_store_bits(e, out, bits);
  return NULL;
}

static calx_status *read_integer(cx_hlo_reader *r, cx_hlo_elem e, void *out)
{
  cx_hlo_scan *s = &r->scan;
  const char *from = cx_hlo_scan_here(s);
  int64_t v = 0;
  if (cx_hlo_scan_accept_word(s, "true")) {
    v = 1;
  } else if (!cx_hlo_scan_accept_word(s, "false")) {
    CALX_TRY(cx_hlo_scan_int(s, &v));
  } else if (e != CX_HLO_I1) {
    return CX_HLO_FAIL(r, from, "%s has no 'false'", cx_hlo_elem_name(e));
  }
  // In hexadecimal, 0xFF is -1 of i8.
  const bool hex = s->end - from > 1 && from[1] == 'x';
  const unsigned bits = cx_hlo_elem_bits(e);
  const bool low = hex && bits < 64 && (uint64_t)v >> bits == 0;
  if (!low && !cx_hlo_int_fits(e, v)) {
    return CX_HLO_FAIL(r, from, "the number does not fit into %s",
                       cx_hlo_elem_name(e));
  }
  cx_hlo_store_int(e, out, v);
  return NULL;
}

// element ::= 'true' | 'false' | integer | real | '(' real ',' real ')'
static calx_status *read_element(cx_hlo_reader *r, cx_hlo_elem e,
                                 unsigned char *out)
{
  if (cx_hlo_elem_is_float(e)) return read_real(r, e, out);
  if (!cx_hlo_elem_is_complex(e)) return read_integer(r, e, out);
  const cx_hlo_elem part = cx_hlo_elem_part(e);
  CALX_TRY(cx_hlo_scan_need(&r->scan, "("));
  CALX_TRY(read_real(r, part, out));
  CALX_TRY(cx_hlo_scan_need(&r->scan, ","));
  CALX_TRY(read_real(r, part, out + cx_hlo_elem_bytes(part)));
  return cx_hlo_scan_need(&r->scan, ")");
}

// ---- lists ----

// list ::= '[' (list | element) (',' (list | element))* ']', nested as the
// type's sizes say
static calx_status *read_list(cx_hlo_reader *r, const literal *l,
                              const char *end, const cx_hlo_attr **out)
{
  cx_hlo_scan *s = &r->scan;
  // An element has a character at least, so the text bounds the memory.
  if (l->n > end - s->at) {
    return CX_HLO_FAIL(r, s->at, "the list is too short for %s",
                       cx_hlo_shape(l->type).s);
  }
  cx_arena scratch = { 0 };
  unsigned char *data = cx_arena_alloc_array(&scratch, l->bytes, (size_t)l->n);
  calx_status *status = data == NULL ? cx_out_of_memory() : NULL;
  for (int64_t i = 0; i < l->n && status == NULL; i++) {
    if (i != 0) status = cx_hlo_scan_need(s, ",");
    for (size_t k = cx_hlo_type_edges(l->type, i); k > 0 && status == NULL;
         k--) {
      status = cx_hlo_scan_need(s, "[");
    }
    if (status != NULL) break;
    status = read_element(r, l->type->elem, data + (size_t)i * l->bytes);
    for (size_t k = cx_hlo_type_edges(l->type, i + 1); k > 0 && status == NULL;
         k--) {
      status = cx_hlo_scan_need(s, "]");
    }
  }
  if (status == NULL) {
    status = cx_hlo_reader_attr(
        cx_hlo_attr_elements(r->module, l->type, data, (size_t)l->n * l->bytes),
        out);
  }
  cx_arena_free(&scratch);
  return status;
}

// ---- bytes ----

// -1: no hexadecimal digit. A table, because most of the text of a large
// program are such digits.
static int hex_value(char c)
{
  static const signed char values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
    ['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
    ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
    ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
  };
  return values[(unsigned char)c] - 1;
}

// An i1 has a byte of its own. In older MLIR a byte has eight of them, the
// lowest bit first; these are unpacked.
static bool unpack_bits(const literal *l, unsigned char *data, size_t size)
{
  if (l->type->elem != CX_HLO_I1 || size == (size_t)l->n ||
      size != ((size_t)l->n + 7) / 8) {
    return false;
  }
  for (size_t i = (size_t)l->n; i > 0; i--) {
    data[i - 1] = data[(i - 1) / 8] >> ((i - 1) % 8) & 1;
  }
  return true;
}

static calx_status *bytes_to_attr(cx_hlo_reader *r, const literal *l,
                                  unsigned char *data, size_t size,
                                  const char *at, const cx_hlo_attr **out)
{
  const cx_hlo_elem e = l->type->elem;
  if (unpack_bits(l, data, size)) size = (size_t)l->n;
  if (size % l->bytes != 0 ||
      (size / l->bytes != (size_t)l->n && size != l->bytes)) {
    return CX_HLO_FAIL(r, at, "%zu bytes are not those of %s", size,
                       cx_hlo_shape(l->type).s);
  }
  // The upper bits of the byte of a narrow type may have any value.
  for (size_t i = 0; i < size && cx_hlo_elem_bits(e) < 8; i++) {
    if (cx_hlo_elem_is_float(e)) {
      data[i] &= (unsigned char)((1u << cx_hlo_elem_bits(e)) - 1);
    } else {
      cx_hlo_store_int(
          e, data + i,
          e == CX_HLO_I1 ? data[i] & 1 : cx_hlo_load_int(e, data + i));
    }
  }
  return cx_hlo_reader_attr(
      cx_hlo_attr_elements(r->module, l->type, data, size), out);
}

// The bytes of a quoted "0x…" without the first `skip`.
static calx_status *decode(cx_hlo_reader *r, const literal *l, cx_hlo_str q,
                           size_t skip, const cx_hlo_attr **out)
{
  const char *text = q.s + 3 + 2 * skip;
  if (q.n < 4 + 2 * skip || q.s[1] != '0' || q.s[2] != 'x' || q.n % 2 != 0) {
    return CX_HLO_FAIL(r, q.s, "the string is no list of bytes \"0x…\"");
  }
  const size_t size = (q.n - 4) / 2 - skip;
  // Eight elements of i1 may be packed into a byte.
  const size_t room = l->type->elem == CX_HLO_I1 ? 8 : 1;
  unsigned char *data = cx_alloc((size + 1) * room);
  if (data == NULL) return cx_out_of_memory();
  int wrong = 0;
  for (size_t i = 0; i < size; i++) {
    const int high = hex_value(text[2 * i]);
    const int low = hex_value(text[2 * i + 1]);
    wrong |= high | low;
    data[i] = (unsigned char)(high * 16 + low);
  }
  calx_status *status =
      wrong >= 0
          ? bytes_to_attr(r, l, data, size, q.s, out)
          : CX_HLO_FAIL(r, q.s, "the string is no list of bytes \"0x…\"");
  cx_free(data);
  return status;
}

// bytes ::= '"0x' hex* '"': the elements in little-endian order, or one of them
static calx_status *read_bytes(cx_hlo_reader *r, const literal *l,
                               const cx_hlo_attr **out)
{
  cx_hlo_str q = { NULL, 0 };
  CALX_TRY(cx_hlo_scan_quoted(&r->scan, &q));
  return decode(r, l, q, 0, out);
}

// ---- the literal ----

// A literal without elements: brackets only, or nothing.
static calx_status *read_empty(cx_hlo_reader *r, const literal *l,
                               const char *end, const cx_hlo_attr **out)
{
  for (const char *c = r->scan.at; c < end; c++) {
    if (strchr("[], \t\r\n", *c) != NULL) continue;
    return CX_HLO_FAIL(r, c, "%s has no elements", cx_hlo_shape(l->type).s);
  }
  r->scan.at = end;
  return cx_hlo_reader_attr(cx_hlo_attr_elements(r->module, l->type, NULL, 0),
                            out);
}

static calx_status *read_literal(cx_hlo_reader *r, const literal *l,
                                 const char *end, const cx_hlo_attr **out)
{
  const char c = cx_hlo_scan_peek(&r->scan);
  if (c == '"') return read_bytes(r, l, out);
  if (l->n == 0 && (c == '>' || c == '[')) return read_empty(r, l, end, out);
  if (c == '[') return read_list(r, l, end, out);
  unsigned char element[16] = { 0 };
  CALX_TRY(read_element(r, l->type->elem, element));
  return cx_hlo_reader_attr(
      cx_hlo_attr_elements(r->module, l->type, element, l->bytes), out);
}

// The type of a literal, from behind its ':'.
static calx_status *read_literal_type(cx_hlo_reader *r, cx_hlo_any *type,
                                      literal *out)
{
  CALX_TRY(cx_hlo_scan_need(&r->scan, ":"));
  const char *at = cx_hlo_scan_here(&r->scan);
  CALX_TRY(cx_hlo_read_type(r, type));
  const cx_hlo_type *t = &type->tensor;
  const int64_t n = cx_hlo_type_elements(t);
  if (type->non_tensor != NULL &&
      type->non_tensor->kind == CX_HLO_NON_TENSOR_TEXT) {
    return cx_hlo_scan_fail(&r->scan, at, CALX_UNIMPLEMENTED,
                            "literals of the type %.*s are not supported",
                            (int)type->non_tensor->text.n,
                            type->non_tensor->text.s);
  }
  if (type->non_tensor != NULL || cx_hlo_elem_class(t->elem) == 0 || n < 0) {
    return CX_HLO_FAIL(r, at, "a literal must be a tensor of known size");
  }
  *out = (literal){ t, n, cx_hlo_elem_bytes(t->elem) };
  return NULL;
}

// elements ::= 'dense' '<' (element | list | bytes)? '>' ':' type
calx_status *cx_hlo_read_dense(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_scan *s = &r->scan;
  cx_hlo_any type;
  literal l;
  CALX_TRY(cx_hlo_scan_need(s, "<"));
  const char *from = s->at;
  CALX_TRY(skip_literal(r));
  const char *end = s->at++;
  CALX_TRY(read_literal_type(r, &type, &l));
  const char *after = s->at;
  s->at = from;
  CALX_TRY(read_literal(r, &l, end, out));
  if (cx_hlo_scan_here(s) != end) return cx_hlo_scan_expected(s, "'>'");
  s->at = after;
  return NULL;
}

// elements ::= 'dense_resource' '<' key '>' ':' type
// The first four bytes of the blob are its alignment. Uses of equal types share
// one attribute. Further uses count as uses of aliases do.
calx_status *cx_hlo_read_dense_resource(cx_hlo_reader *r,
                                        const cx_hlo_attr **out)
{
  cx_hlo_scan *s = &r->scan;
  cx_hlo_any type;
  literal l;
  cx_hlo_str key = { NULL, 0 };
  cx_hlo_resource *found = NULL;
  CALX_TRY(cx_hlo_scan_need(s, "<"));
  const char *at = cx_hlo_scan_here(s);
  CALX_TRY(cx_hlo_read_key(r, &key));
  CALX_TRY(cx_hlo_scan_need(s, ">"));
  CALX_TRY(read_literal_type(r, &type, &l));
  CALX_TRY(cx_hlo_find_resource(r, key, at, &found));
  if (found->uses++ > 0) r->expanded += found->text.n;
  if (r->expanded > CX_HLO_EXPANSION) {
    return CX_HLO_FAIL(r, at, "aliases stand for more than %d bytes",
                       CX_HLO_EXPANSION);
  }
  if (found->attr == NULL ||
      !cx_hlo_any_equal(&found->attr->as.elements.type, &type)) {
    CALX_TRY(decode(r, &l, found->text, 4, &found->attr));
  }
  *out = found->attr;
  return NULL;
}
