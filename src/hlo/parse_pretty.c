// hlo/parse: the parts that the pretty forms share.
//
//   name operands and keywords {attributes} : types
//
// Types that are not written are known: values are defined before they are
// used, so the type of an operand is that of its value.
#include <string.h>

#include "hlo/pretty.h"

// ---- words ----

calx_status *cx_hlo_need_word(cx_hlo_reader *r, const char *word)
{
  if (cx_hlo_scan_accept_word(&r->scan, word)) return NULL;
  return cx_hlo_scan_expected(&r->scan, word);
}

calx_status *cx_hlo_pretty_word(cx_hlo_reader *r, const char *word)
{
  CALX_TRY(cx_hlo_need_word(r, word));
  return cx_hlo_scan_need(&r->scan, "=");
}

// ---- keywords ----

static calx_status *read_int_value(cx_hlo_reader *r, cx_hlo_elem elem,
                                   const cx_hlo_attr **out)
{
  int64_t v = 0;
  CALX_TRY(cx_hlo_scan_int(&r->scan, &v));
  *out = cx_hlo_attr_int(r->module, elem, v);
  return NULL;
}

static calx_status *read_ints_value(cx_hlo_reader *r, cx_hlo_elem elem,
                                    const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, CX_HLO_ATTR_ARRAY);
  CALX_TRY(cx_hlo_reader_attr(attr, out));
  attr->elem = elem;
  return cx_hlo_read_ints(r, &attr->as.ints);
}

static calx_status *read_bool_value(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  int64_t v = 0;
  CALX_TRY(cx_hlo_scan_bool(&r->scan, &v));
  *out = cx_hlo_attr_bool(r->module, v != 0);
  return NULL;
}

// The only lists in pretty forms are precisions.
static calx_status *push_precision(cx_hlo_reader *r)
{
  const cx_hlo_attr *item = NULL;
  CALX_TRY(cx_hlo_read_choice(r, CX_HLO_PRECISION, &item));
  return CX_HLO_PUSH(r->attr_stack, item);
}

// A value in the short spelling of its kind, or in full.
static calx_status *read_value(cx_hlo_reader *r, cx_hlo_attr_id id,
                               const cx_hlo_attr **out)
{
  const cx_hlo_name_info *info = cx_hlo_name_info_of(id);
  *out = NULL;
  if (cx_hlo_scan_peek(&r->scan) == '#') return cx_hlo_read_attr(r, out);
  switch (info->kind) {
    case CX_HLO_ATTR_INT:
      return read_int_value(r, (cx_hlo_elem)info->detail, out);
    case CX_HLO_ATTR_ARRAY:
      return read_ints_value(r, (cx_hlo_elem)info->detail, out);
    case CX_HLO_ATTR_BOOL: return read_bool_value(r, out);
    case CX_HLO_ATTR_STRING: return cx_hlo_read_string(r, out);
    case CX_HLO_ATTR_CHOICE:
      return cx_hlo_read_choice(r, (cx_hlo_choice)info->detail, out);
    case CX_HLO_ATTR_LIST: return cx_hlo_read_list(r, push_precision, out);
    case CX_HLO_ATTR_STRUCT:
      CALX_TRY(cx_hlo_scan_need(&r->scan, "<"));
      return cx_hlo_read_struct(r, (cx_hlo_struct)info->detail, out);
    default: return cx_hlo_read_attr(r, out);
  }
}

calx_status *cx_hlo_pretty_value(cx_hlo_reader *r, cx_hlo_attr_id id)
{
  const cx_hlo_attr *attr = NULL;
  CALX_TRY(read_value(r, id, &attr));
  return cx_hlo_push_attr(r, id, attr);
}

static calx_status *read_keyword(cx_hlo_reader *r, cx_hlo_parts *p)
{
  const cx_hlo_pretty *form = cx_hlo_pretty_of(p->kind);
  for (size_t i = 0; i < 4 && form->keywords[i].word != NULL; i++) {
    const cx_hlo_keyword *k = &form->keywords[i];
    if (!cx_hlo_scan_accept_word(&r->scan, k->word)) continue;
    CALX_TRY(cx_hlo_scan_need(&r->scan, "="));
    return cx_hlo_pretty_value(r, k->id);
  }
  return cx_hlo_scan_expected(&r->scan, form->keywords[0].word == NULL
                                            ? "a value"
                                            : form->keywords[0].word);
}

calx_status *cx_hlo_pretty_keywords(cx_hlo_reader *r, cx_hlo_parts *p)
{
  do {
    CALX_TRY(read_keyword(r, p));
  } while (cx_hlo_scan_accept(&r->scan, ","));
  return NULL;
}

calx_status *cx_hlo_pretty_items(cx_hlo_reader *r, cx_hlo_parts *p)
{
  cx_hlo_scan *s = &r->scan;
  const bool words = cx_hlo_pretty_of(p->kind)->keywords[0].word != NULL;
  const bool bracket = cx_hlo_scan_accept(s, "(");
  const char c = cx_hlo_scan_peek(s);
  if (c == '%' || (words && c >= 'a' && c <= 'z')) {
    do {
      CALX_TRY(cx_hlo_scan_peek(s) == '%' ? cx_hlo_read_use(r)
                                          : read_keyword(r, p));
    } while (cx_hlo_scan_accept(s, ","));
  }
  return bracket ? cx_hlo_scan_need(s, ")") : NULL;
}

// ---- types ----

// The functions below expand the types that are written to the types of all
// operands, followed by those of the results.

calx_status *cx_hlo_pretty_known_types(cx_hlo_reader *r, cx_hlo_parts *p)
{
  for (size_t i = p->uses; i < r->use_stack.n; i++) {
    CALX_TRY(cx_hlo_push_type(r, &r->use_stack.v[i].value->type));
  }
  p->n_inputs = r->use_stack.n - p->uses;
  return NULL;
}

// One type stands for those of n operands and the result. It counts as a use of
// an alias does.
static calx_status *spread_same(cx_hlo_reader *r, cx_hlo_parts *p, size_t n,
                                const char *from)
{
  p->n_inputs = n;
  if (n > 3) r->expanded += n * (size_t)(r->scan.at - from);
  if (r->expanded > CX_HLO_EXPANSION) {
    return CX_HLO_FAIL(r, from, "types stand for more than %d bytes",
                       CX_HLO_EXPANSION);
  }
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(cx_hlo_push_type(r, &r->any_stack.v[p->types]));
  }
  return NULL;
}

// The type is that of the result; those of the operands are inserted before it.
static calx_status *spread_result(cx_hlo_reader *r, cx_hlo_parts *p)
{
  const cx_hlo_any result = r->any_stack.v[p->types];
  r->any_stack.n = p->types;
  CALX_TRY(cx_hlo_pretty_known_types(r, p));
  return cx_hlo_push_type(r, &result);
}

static calx_status *spread_complex(cx_hlo_reader *r, cx_hlo_parts *p, size_t n)
{
  const cx_hlo_any result = r->any_stack.v[p->types];
  cx_hlo_any part = result;
  part.tensor.elem = cx_hlo_elem_part(result.tensor.elem);
  r->any_stack.n = p->types;
  for (size_t i = 0; i < n; i++) CALX_TRY(cx_hlo_push_type(r, &part));
  p->n_inputs = n;
  return cx_hlo_push_type(r, &result);
}

// Expands the written types by the form. `from` is where they begin in the
// text.
static calx_status *spread(cx_hlo_reader *r, cx_hlo_parts *p,
                           cx_hlo_types_form form, const char *from)
{
  const size_t n = r->any_stack.n - p->types;
  const size_t n_uses = r->use_stack.n - p->uses;
  const bool list =
      form == CX_HLO_TYPES_PAIRWISE || form == CX_HLO_TYPES_OPERANDS;
  const size_t wanted = list ? n_uses : form == CX_HLO_TYPES_SELECT ? 2 : 1;
  if (n != wanted) {
    return CX_HLO_FAIL(r, r->scan.at, "expected %zu types, found %zu", wanted,
                       n);
  }
  switch (form) {
    case CX_HLO_TYPES_SAME: return spread_same(r, p, n_uses, from);
    case CX_HLO_TYPES_RESULT: return spread_result(r, p);
    case CX_HLO_TYPES_COMPLEX: return spread_complex(r, p, n_uses);
    case CX_HLO_TYPES_SELECT:
      p->n_inputs = 3;
      CALX_TRY(cx_hlo_push_type(r, &r->any_stack.v[p->types + 1]));
      return cx_hlo_push_type(r, &r->any_stack.v[p->types + 1]);
    case CX_HLO_TYPES_PAIRWISE:
      p->n_inputs = n;
      for (size_t i = 0; i < n; i++) {
        CALX_TRY(cx_hlo_push_type(r, &r->any_stack.v[p->types + i]));
      }
      return NULL;
    case CX_HLO_TYPES_OPERANDS: p->n_inputs = n; return NULL;
    default: return cx_hlo_scan_expected(&r->scan, "'->'");
  }
}

// ':' (function | type (',' type)* ('->' (type | '(' types ')'))?)
calx_status *cx_hlo_pretty_types(cx_hlo_reader *r, cx_hlo_parts *p,
                                 cx_hlo_types_form form)
{
  cx_hlo_scan *s = &r->scan;
  const bool optional =
      r->use_stack.n == p->uses &&
      (form == CX_HLO_TYPES_PAIRWISE || form == CX_HLO_TYPES_OPERANDS);
  if (form == CX_HLO_TYPES_VALUE && cx_hlo_scan_peek(s) != ':' &&
      r->named_stack.n > p->named) {
    const cx_hlo_attr *value = r->named_stack.v[r->named_stack.n - 1].attr;
    if (value->kind == CX_HLO_ATTR_ELEMENTS) {
      return cx_hlo_push_type(r, &value->as.elements.type);
    }
  }
  if (optional && cx_hlo_scan_peek(s) != ':') return NULL;
  CALX_TRY(cx_hlo_scan_need(s, ":"));
  if (cx_hlo_scan_peek(s) == '(') {
    return cx_hlo_read_function_types(r, &p->n_inputs);
  }
  const char *from = s->at;
  do {
    CALX_TRY(cx_hlo_read_pushed_type(r));
  } while (cx_hlo_scan_accept(s, ","));
  if (!cx_hlo_scan_accept(s, "->")) return spread(r, p, form, from);
  p->n_inputs = r->any_stack.n - p->types;
  return cx_hlo_read_result_types(r);
}

// ---- the whole ----

calx_status *cx_hlo_read_pretty(cx_hlo_reader *r, cx_hlo_parts *p)
{
  const cx_hlo_pretty *form = cx_hlo_pretty_of(p->kind);
  if (form->types == CX_HLO_TYPES_NONE) {
    return CX_HLO_FAIL(r, p->at,
                       "'%.*s' has only the generic form: \"%.*s\"(…)",
                       (int)p->name.n, p->name.s, (int)p->name.n, p->name.s);
  }
  CALX_TRY(form->head != NULL ? form->head(r, p) : cx_hlo_pretty_items(r, p));
  CALX_TRY(cx_hlo_read_optional_dict(r));
  CALX_TRY(cx_hlo_pretty_types(r, p, form->types));
  return form->tail == NULL ? NULL : form->tail(r, p);
}
