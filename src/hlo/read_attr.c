// hlo/reader: attributes.
#include <string.h>

#include "hlo/number.h"
#include "hlo/reader.h"

static calx_status *given(const cx_hlo_attr *attr, const cx_hlo_attr **out)
{
  *out = attr;
  return attr == NULL ? cx_out_of_memory() : NULL;
}

static cx_hlo_attr *new_attr(cx_hlo_reader *r, cx_hlo_attr_kind kind)
{
  cx_hlo_attr *attr = CX_ARENA_NEW(&r->module->arena, cx_hlo_attr);
  if (attr != NULL) attr->kind = kind;
  return attr;
}

// ---- numbers ----

// A number's type: ':' elem, else what the spelling says.
static calx_status *read_number_type(cx_hlo_reader *r, cx_hlo_elem otherwise,
                                     cx_hlo_elem *out)
{
  cx_hlo_any type;
  *out = otherwise;
  if (!cx_hlo_scan_accept(&r->scan, ":")) return NULL;
  cx_hlo_scan_space(&r->scan);
  const char *from = r->scan.at;
  CALX_TRY(cx_hlo_read_type(r, &type));
  if (type.non_tensor == NULL ||
      type.non_tensor->kind != CX_HLO_NON_TENSOR_ELEMENT) {
    return CX_HLO_FAIL(r, from, "a number's type must be an element type");
  }
  *out = type.non_tensor->elem;
  return NULL;
}

static bool has_point(cx_hlo_str text)
{
  for (size_t i = 0; i < text.n; i++) {
    if (strchr(".eE", text.s[i]) != NULL) return true;
  }
  return false;
}

// A number as it stands in the text, between its place and its type.
typedef struct numeral {
  const char *at;
  cx_hlo_str text;  // empty: hexadecimal
} numeral;

static calx_status *make_float(cx_hlo_reader *r, const numeral *n,
                               cx_hlo_attr *attr)
{
  const unsigned width = cx_hlo_elem_bits(attr->elem);
  attr->kind = CX_HLO_ATTR_FLOAT;
  if (n->text.n == 0) {
    int64_t v = 0;
    CALX_TRY(cx_hlo_scan_int(&r->scan, &v));
    attr->as.bits = (uint64_t)v;
  } else if (!cx_hlo_read_bits(attr->elem, n->text.s, n->text.n,
                               &attr->as.bits)) {
    return CX_HLO_FAIL(r, n->at, "expected a number");
  }
  if (width >= 64 || attr->as.bits >> width == 0) return NULL;
  return CX_HLO_FAIL(r, n->at, "%s has only %u bits",
                     cx_hlo_elem_name(attr->elem), width);
}

static calx_status *make_int(cx_hlo_reader *r, const numeral *n,
                             cx_hlo_attr *attr)
{
  const cx_hlo_elem e = attr->elem;
  const bool integer =
      cx_hlo_elem_is_int(e) || e == CX_HLO_INDEX || e == CX_HLO_I1;
  int64_t v = 0;
  CALX_TRY(cx_hlo_scan_int(&r->scan, &v));
  if (has_point(n->text) || !integer || !cx_hlo_int_fits(e, v)) {
    return CX_HLO_FAIL(r, n->at, "the number does not fit into %s",
                       cx_hlo_elem_name(e));
  }
  if (e == CX_HLO_I1) {
    attr->kind = CX_HLO_ATTR_BOOL;
    attr->as.flag = v != 0;
  } else {
    attr->kind = CX_HLO_ATTR_INT;
    attr->as.integer = v;
  }
  return NULL;
}

// number ::= (integer | decimal | '0x' hex+) (':' elem)?
static calx_status *read_number(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_scan *s = &r->scan;
  cx_hlo_scan_space(s);
  const char *from = s->at;
  numeral n = { from, { from, 0 } };
  if (s->end - from > 2 && from[0] == '0' && from[1] == 'x') {
    int64_t ignored = 0;
    CALX_TRY(cx_hlo_scan_int(s, &ignored));
  } else {
    n.text = cx_hlo_scan_number(s);
    if (n.text.n == 0) return cx_hlo_scan_expected(s, "a number");
  }
  cx_hlo_attr *attr = new_attr(r, CX_HLO_ATTR_INT);
  if (attr == NULL) return cx_out_of_memory();
  const cx_hlo_elem plain = has_point(n.text) ? CX_HLO_F64 : CX_HLO_I64;
  CALX_TRY(read_number_type(r, plain, &attr->elem));
  // The digits mean something once their type is known.
  const char *after = s->at;
  s->at = from;
  CALX_TRY(cx_hlo_elem_is_float(attr->elem) ? make_float(r, &n, attr)
                                            : make_int(r, &n, attr));
  s->at = after;
  return given(attr, out);
}

// ---- strings, symbols, arrays ----

// string (':' type)?; with a type it is kept as text
static calx_status *read_string(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = new_attr(r, CX_HLO_ATTR_STRING);
  if (attr == NULL) return cx_out_of_memory();
  const char *from = r->scan.at;
  CALX_TRY(cx_hlo_scan_string(&r->scan, &r->module->arena, &attr->as.text));
  if (cx_hlo_scan_accept(&r->scan, ":")) {
    cx_hlo_any type;
    CALX_TRY(cx_hlo_read_type(r, &type));
    return cx_hlo_read_text(r, from, out);
  }
  return given(attr, out);
}

calx_status *cx_hlo_read_symbol_name(cx_hlo_reader *r, cx_hlo_str *out)
{
  cx_hlo_scan *s = &r->scan;
  CALX_TRY(cx_hlo_scan_need(s, "@"));
  if (s->at < s->end && *s->at == '"') {
    return cx_hlo_scan_string(s, &r->module->arena, out);
  }
  const cx_hlo_str name = cx_hlo_scan_suffix(s);
  if (name.n == 0) return cx_hlo_scan_expected(s, "a symbol's name");
  *out = cx_hlo_str_copy(r->module, name.s, name.n);
  return out->s == NULL ? cx_out_of_memory() : NULL;
}

// symbol ::= '@' (suffix | string) ('::' symbol)?; a nested one is kept as text
static calx_status *read_symbol(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = new_attr(r, CX_HLO_ATTR_SYMBOL);
  const char *from = r->scan.at;
  if (attr == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_read_symbol_name(r, &attr->as.text));
  if (!cx_hlo_scan_sees(&r->scan, "::")) return given(attr, out);
  while (cx_hlo_scan_accept(&r->scan, "::")) {
    cx_hlo_str ignored;
    CALX_TRY(cx_hlo_read_symbol_name(r, &ignored));
  }
  return cx_hlo_read_text(r, from, out);
}

// array ::= 'array' '<' elem (':' number (',' number)*)? '>'; of floats it is
// kept as text
static calx_status *read_array(cx_hlo_reader *r, const char *from,
                               const cx_hlo_attr **out)
{
  cx_hlo_scan *s = &r->scan;
  cx_hlo_str word = { NULL, 0 };
  const char *bracket = s->at;
  CALX_TRY(cx_hlo_scan_need(s, "<"));
  if (!cx_hlo_scan_word(s, &word)) return cx_hlo_scan_expected(s, "a type");
  const cx_hlo_elem e = cx_hlo_elem_parse(word.s, word.n);
  if (e != CX_HLO_I1 && !cx_hlo_elem_is_int(e)) {
    s->at = bracket;
    CALX_TRY(cx_hlo_scan_balanced(s));
    return cx_hlo_read_text(r, from, out);
  }
  const size_t mark = r->int_stack.n;
  if (cx_hlo_scan_accept(s, ":")) {
    do {
      if (!CX_HLO_ROOM(r->int_stack)) return cx_out_of_memory();
      int64_t *v = &r->int_stack.v[r->int_stack.n++];
      const char *at = s->at;
      *v = 0;
      if (cx_hlo_scan_accept_word(s, "true")) {
        *v = 1;
      } else if (!cx_hlo_scan_accept_word(s, "false")) {
        CALX_TRY(cx_hlo_scan_int(s, v));
      }
      if (!cx_hlo_int_fits(e, *v)) {
        return CX_HLO_FAIL(r, at, "the number does not fit into %s",
                           cx_hlo_elem_name(e));
      }
    } while (cx_hlo_scan_accept(s, ","));
  }
  const size_t n = r->int_stack.n - mark;
  const int64_t *first = n == 0 ? NULL : r->int_stack.v + mark;
  r->int_stack.n = mark;
  CALX_TRY(given(cx_hlo_attr_ints(r->module, e, first, n), out));
  return cx_hlo_scan_need(s, ">");
}

// ---- lists and dictionaries ----

// list ::= '[' (attribute (',' attribute)*)? ']'
static calx_status *read_list(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_scan *s = &r->scan;
  const size_t mark = r->attr_stack.n;
  CALX_TRY(cx_hlo_scan_need(s, "["));
  while (cx_hlo_scan_peek(s) != ']') {
    const cx_hlo_attr *item = NULL;
    if (r->attr_stack.n > mark) CALX_TRY(cx_hlo_scan_need(s, ","));
    CALX_TRY(cx_hlo_read_attr(r, &item));
    if (!CX_HLO_ROOM(r->attr_stack)) return cx_out_of_memory();
    r->attr_stack.v[r->attr_stack.n++] = item;
  }
  s->at++;
  cx_hlo_attr *attr = new_attr(r, CX_HLO_ATTR_LIST);
  if (attr == NULL) return cx_out_of_memory();
  attr->as.list.n = r->attr_stack.n - mark;
  if (!CX_HLO_COPY(r, r->attr_stack, mark, &attr->as.list.items)) {
    return cx_out_of_memory();
  }
  return given(attr, out);
}

// entry ::= (bare-id | string) ('=' attribute)?
static calx_status *read_entry(cx_hlo_reader *r, cx_hlo_named *out)
{
  cx_hlo_scan *s = &r->scan;
  if (cx_hlo_scan_peek(s) == '"') {
    CALX_TRY(cx_hlo_scan_string(s, &r->module->arena, &out->name));
  } else {
    cx_hlo_str word;
    if (!cx_hlo_scan_word(s, &word)) {
      return cx_hlo_scan_expected(s, "an attribute's name");
    }
    out->name = cx_hlo_str_copy(r->module, word.s, word.n);
    if (out->name.s == NULL) return cx_out_of_memory();
  }
  if (cx_hlo_scan_accept(s, "=")) return cx_hlo_read_attr(r, &out->attr);
  return given(cx_hlo_attr_unit(r->module), &out->attr);
}

// dict ::= '{' (entry (',' entry)*)? '}'
calx_status *cx_hlo_read_dict(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  bool first = true;
  CALX_TRY(cx_hlo_scan_need(s, "{"));
  while (cx_hlo_scan_peek(s) != '}') {
    cx_hlo_named entry;
    if (!first) CALX_TRY(cx_hlo_scan_need(s, ","));
    first = false;
    CALX_TRY(read_entry(r, &entry));
    if (!CX_HLO_ROOM(r->named_stack)) return cx_out_of_memory();
    r->named_stack.v[r->named_stack.n++] = entry;
  }
  s->at++;
  return NULL;
}

static calx_status *read_dict_attr(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  const size_t mark = r->named_stack.n;
  CALX_TRY(cx_hlo_read_dict(r));
  cx_hlo_attr *attr = new_attr(r, CX_HLO_ATTR_DICT);
  if (attr == NULL) return cx_out_of_memory();
  attr->as.dict.n = r->named_stack.n - mark;
  if (!CX_HLO_COPY(r, r->named_stack, mark, &attr->as.dict.items)) {
    return cx_out_of_memory();
  }
  return given(attr, out);
}

// ---- everything else ----

// '#' alias | '#' dialect '.' name ('<' … '>')? | '#' dialect '<' … '>'
static calx_status *read_hash(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_scan *s = &r->scan;
  const char *from = s->at++;
  const char *name_at = s->at;
  const cx_hlo_str name = cx_hlo_scan_suffix(s);
  const bool bracket = s->at < s->end && *s->at == '<';
  const bool dotted = memchr(name.s, '.', name.n) != NULL;
  const bool own = name.n >= 9 && memcmp(name.s, "stablehlo", 9) == 0;
  if ((own && (bracket || dotted)) ||
      (bracket && cx_hlo_str_equal(name, "chlo"))) {
    s->at = name_at;
    return cx_hlo_read_stablehlo(r, from, out);
  }
  if (bracket) {
    CALX_TRY(cx_hlo_scan_balanced(s));
    return cx_hlo_read_text(r, from, out);
  }
  const cx_hlo_alias *alias = NULL;
  CALX_TRY(cx_hlo_use_alias(r, &r->attrs, name, from, &alias));
  if (alias != NULL) return given(alias->attr, out);
  if (dotted) return cx_hlo_read_text(r, from, out);
  return CX_HLO_FAIL(r, from, "there is no attribute alias '#%.*s'",
                     (int)name.n, name.s);
}

static calx_status *read_type_attr(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = new_attr(r, CX_HLO_ATTR_TYPE);
  if (attr == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_read_type(r, &attr->as.type));
  return given(attr, out);
}

// Words whose attribute is kept as it was written, with its brackets.
static bool is_kept(cx_hlo_str word)
{
  static const char *const kept[] = { "affine_map", "affine_set", "strided",
                                      "sparse", "distinct" };
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    if (cx_hlo_str_equal(word, kept[i])) return true;
  }
  return false;
}

// Attributes that begin with a word.
static calx_status *read_word(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_scan *s = &r->scan;
  const char *from = s->at;
  cx_hlo_str word;
  if (!cx_hlo_scan_word(s, &word)) {
    return cx_hlo_scan_expected(s, "an attribute");
  }
  const bool yes = cx_hlo_str_equal(word, "true");
  if (yes || cx_hlo_str_equal(word, "false")) {
    return given(cx_hlo_attr_bool(r->module, yes), out);
  }
  if (cx_hlo_str_equal(word, "unit")) {
    return given(cx_hlo_attr_unit(r->module), out);
  }
  if (cx_hlo_str_equal(word, "dense")) return cx_hlo_read_dense(r, out);
  if (cx_hlo_str_equal(word, "array")) return read_array(r, from, out);
  if (cx_hlo_str_equal(word, "dense_resource")) {
    return cx_hlo_read_dense_resource(r, out);
  }
  if (is_kept(word)) {
    CALX_TRY(cx_hlo_scan_balanced(s));
    // distinct[0]<…>
    if (s->at < s->end && *s->at == '<') CALX_TRY(cx_hlo_scan_balanced(s));
    return cx_hlo_read_text(r, from, out);
  }
  if (cx_hlo_str_equal(word, "loc")) {
    const cx_hlo_loc *loc = NULL;
    CALX_TRY(cx_hlo_read_loc(r, &loc));
    return cx_hlo_read_text(r, from, out);
  }
  s->at = from;
  return read_type_attr(r, out);
}

static calx_status *read_any(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  const char c = cx_hlo_scan_peek(&r->scan);
  switch (c) {
    case '"': return read_string(r, out);
    case '@': return read_symbol(r, out);
    case '[': return read_list(r, out);
    case '{': return read_dict_attr(r, out);
    case '#': return read_hash(r, out);
    case '(':
    case '!': return read_type_attr(r, out);
    default: break;
  }
  if (c == '-' || (c >= '0' && c <= '9')) return read_number(r, out);
  return read_word(r, out);
}

// attribute ::= string | symbol | list | dict | number | '#' … | 'true'
//             | 'false' | 'unit' | 'dense' … | 'array' … | type | 'loc' '(' …
//             ')' | 'affine_map' '<' … '>' and others that are kept as text
calx_status *cx_hlo_read_attr(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  CALX_TRY(cx_hlo_reader_deeper(r));
  CALX_TRY(read_any(r, out));
  cx_hlo_reader_higher(r);
  return NULL;
}
