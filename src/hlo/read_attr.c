// hlo/reader: attributes.
#include <string.h>

#include "hlo/number.h"
#include "hlo/reader.h"

// ---- numbers ----

// The type of a number: (':' elem)?; `otherwise` where it is not written.
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

// The digits of a number, and where they begin.
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
calx_status *cx_hlo_read_number(cx_hlo_reader *r, bool typed,
                                const cx_hlo_attr **out)
{
  cx_hlo_scan *s = &r->scan;
  const char *from = cx_hlo_scan_here(s);
  numeral n = { from, { from, 0 } };
  if (s->end - from > 2 && from[0] == '0' && from[1] == 'x') {
    int64_t ignored = 0;
    CALX_TRY(cx_hlo_scan_int(s, &ignored));
  } else {
    n.text = cx_hlo_scan_number(s);
    if (n.text.n == 0) return cx_hlo_scan_expected(s, "a number");
  }
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, CX_HLO_ATTR_INT);
  CALX_TRY(cx_hlo_reader_attr(attr, out));
  attr->elem = has_point(n.text) ? CX_HLO_F64 : CX_HLO_I64;
  if (typed) CALX_TRY(read_number_type(r, attr->elem, &attr->elem));
  // The type, which comes last, decides how the digits are read.
  const char *after = s->at;
  s->at = from;
  CALX_TRY(cx_hlo_elem_is_float(attr->elem) ? make_float(r, &n, attr)
                                            : make_int(r, &n, attr));
  s->at = after;
  return NULL;
}

// ---- strings, symbols, arrays ----

calx_status *cx_hlo_read_string(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, CX_HLO_ATTR_STRING);
  CALX_TRY(cx_hlo_reader_attr(attr, out));
  return cx_hlo_scan_string(&r->scan, &r->module->arena, &attr->as.text);
}

// string (':' type)?; with a type it is kept as text
static calx_status *read_typed_string(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  const char *from = r->scan.at;
  cx_hlo_any type;
  CALX_TRY(cx_hlo_read_string(r, out));
  if (!cx_hlo_scan_accept(&r->scan, ":")) return NULL;
  CALX_TRY(cx_hlo_read_type(r, &type));
  return cx_hlo_read_text(r, from, out);
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
  return cx_hlo_reader_str(r, name.s, name.n, out);
}

// symbol ::= '@' (suffix | string) ('::' symbol)?; a nested one is kept as text
static calx_status *read_symbol(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, CX_HLO_ATTR_SYMBOL);
  const char *from = r->scan.at;
  CALX_TRY(cx_hlo_reader_attr(attr, out));
  CALX_TRY(cx_hlo_read_symbol_name(r, &attr->as.text));
  if (!cx_hlo_scan_sees(&r->scan, "::")) return NULL;
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
      int64_t v = 0;
      const char *at = s->at;
      CALX_TRY(cx_hlo_scan_int_or_bool(s, &v));
      if (!cx_hlo_int_fits(e, v)) {
        return CX_HLO_FAIL(r, at, "the number does not fit into %s",
                           cx_hlo_elem_name(e));
      }
      CALX_TRY(CX_HLO_PUSH(r->int_stack, v));
    } while (cx_hlo_scan_accept(s, ","));
  }
  const size_t n = r->int_stack.n - mark;
  const int64_t *first = n == 0 ? NULL : r->int_stack.v + mark;
  r->int_stack.n = mark;
  CALX_TRY(cx_hlo_reader_attr(cx_hlo_attr_ints(r->module, e, first, n), out));
  return cx_hlo_scan_need(s, ">");
}

// ---- lists and dictionaries ----

calx_status *cx_hlo_read_list(cx_hlo_reader *r, cx_hlo_item_fn *item,
                              const cx_hlo_attr **out)
{
  const size_t mark = r->attr_stack.n;
  CALX_TRY(cx_hlo_read_items(r, "[", ']', item));
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, CX_HLO_ATTR_LIST);
  CALX_TRY(cx_hlo_reader_attr(attr, out));
  attr->as.list.n = r->attr_stack.n - mark;
  return CX_HLO_TAKE(r, r->attr_stack, mark, &attr->as.list.items);
}

static calx_status *push_attr(cx_hlo_reader *r)
{
  const cx_hlo_attr *item = NULL;
  CALX_TRY(cx_hlo_read_attr(r, &item));
  return CX_HLO_PUSH(r->attr_stack, item);
}

// entry ::= (bare-id | string) ('=' attribute)?
static calx_status *read_entry(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  cx_hlo_named entry;
  cx_hlo_str word;
  if (cx_hlo_scan_peek(s) == '"') {
    CALX_TRY(cx_hlo_scan_string(s, &r->module->arena, &entry.name));
  } else if (cx_hlo_scan_word(s, &word)) {
    CALX_TRY(cx_hlo_reader_str(r, word.s, word.n, &entry.name));
  } else {
    return cx_hlo_scan_expected(s, "an attribute's name");
  }
  CALX_TRY(cx_hlo_scan_accept(s, "=")
               ? cx_hlo_read_attr(r, &entry.attr)
               : cx_hlo_reader_attr(cx_hlo_attr_unit(r->module), &entry.attr));
  return CX_HLO_PUSH(r->named_stack, entry);
}

// dict ::= '{' (entry (',' entry)*)? '}'
calx_status *cx_hlo_read_dict(cx_hlo_reader *r)
{
  return cx_hlo_read_items(r, "{", '}', read_entry);
}

calx_status *cx_hlo_read_optional_dict(cx_hlo_reader *r)
{
  return cx_hlo_scan_peek(&r->scan) == '{' ? cx_hlo_read_dict(r) : NULL;
}

calx_status *cx_hlo_read_dict_attr(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  const size_t mark = r->named_stack.n;
  CALX_TRY(cx_hlo_read_dict(r));
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, CX_HLO_ATTR_DICT);
  CALX_TRY(cx_hlo_reader_attr(attr, out));
  attr->as.dict.n = r->named_stack.n - mark;
  return CX_HLO_TAKE(r, r->named_stack, mark, &attr->as.dict.items);
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
  if (alias != NULL) return cx_hlo_reader_attr(alias->attr, out);
  if (dotted) return cx_hlo_read_text(r, from, out);
  return CX_HLO_FAIL(r, from, "there is no attribute alias '#%.*s'",
                     (int)name.n, name.s);
}

static calx_status *read_type_attr(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, CX_HLO_ATTR_TYPE);
  CALX_TRY(cx_hlo_reader_attr(attr, out));
  return cx_hlo_read_type(r, &attr->as.type);
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
    return cx_hlo_reader_attr(cx_hlo_attr_bool(r->module, yes), out);
  }
  if (cx_hlo_str_equal(word, "unit")) {
    return cx_hlo_reader_attr(cx_hlo_attr_unit(r->module), out);
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
    case '"': return read_typed_string(r, out);
    case '@': return read_symbol(r, out);
    case '[': return cx_hlo_read_list(r, push_attr, out);
    case '{': return cx_hlo_read_dict_attr(r, out);
    case '#': return read_hash(r, out);
    case '(':
    case '!': return read_type_attr(r, out);
    default: break;
  }
  if (c == '-' || (c >= '0' && c <= '9'))
    return cx_hlo_read_number(r, true, out);
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
