// hlo/parse: the operands and keywords of pretty forms with a syntax of their
// own.
#include <string.h>

#include "hlo/pretty.h"

// constant ::= dict? literal | '(' ')' ('<' dict '>')? dict?
calx_status *cx_hlo_head_constant(cx_hlo_reader *r, cx_hlo_parts *p)
{
  cx_hlo_scan *s = &r->scan;
  (void)p;
  if (cx_hlo_scan_accept(s, "(")) {
    CALX_TRY(cx_hlo_scan_need(s, ")"));
    if (!cx_hlo_scan_accept(s, "<")) return NULL;
    CALX_TRY(cx_hlo_read_dict(r));
    return cx_hlo_scan_need(s, ">");
  }
  CALX_TRY(cx_hlo_read_optional_dict(r));
  const cx_hlo_attr *value = NULL;
  const char *at = cx_hlo_scan_here(s);
  CALX_TRY(cx_hlo_read_attr(r, &value));
  if (value->kind != CX_HLO_ATTR_ELEMENTS) {
    return CX_HLO_FAIL(r, at, "a constant must be a dense literal");
  }
  return cx_hlo_push_attr(r, CX_HLO_A_VALUE, value);
}

// compare ::= direction ',' use ',' use (',' type)?
calx_status *cx_hlo_head_compare(cx_hlo_reader *r, cx_hlo_parts *p)
{
  (void)p;
  CALX_TRY(cx_hlo_pretty_value(r, CX_HLO_A_COMPARISON_DIRECTION));
  CALX_TRY(cx_hlo_scan_need(&r->scan, ","));
  CALX_TRY(cx_hlo_read_use(r));
  CALX_TRY(cx_hlo_scan_need(&r->scan, ","));
  CALX_TRY(cx_hlo_read_use(r));
  if (!cx_hlo_scan_accept(&r->scan, ",")) return NULL;
  return cx_hlo_pretty_value(r, CX_HLO_A_COMPARE_TYPE);
}

// ---- brackets ----

// The i-th of every three integers pushed since `mark`.
static calx_status *push_third(cx_hlo_reader *r, size_t mark, size_t i,
                               cx_hlo_attr_id id)
{
  const size_t n = (r->int_stack.n - mark) / 3;
  int64_t *v = CX_ARENA_ARRAY(&r->module->arena, int64_t, n + 1);
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, CX_HLO_ATTR_ARRAY);
  if (v == NULL || attr == NULL) return cx_out_of_memory();
  for (size_t k = 0; k < n; k++) v[k] = r->int_stack.v[mark + 3 * k + i];
  attr->elem = CX_HLO_I64;
  attr->as.ints = (cx_hlo_ints){ v, n };
  return cx_hlo_push_attr(r, id, attr);
}

// range ::= start ':' limit (':' stride)?, pushed as three integers
static calx_status *read_range(cx_hlo_reader *r)
{
  int64_t v[3] = { 0, 0, 1 };
  CALX_TRY(cx_hlo_scan_int(&r->scan, &v[0]));
  CALX_TRY(cx_hlo_scan_need(&r->scan, ":"));
  CALX_TRY(cx_hlo_scan_int(&r->scan, &v[1]));
  if (cx_hlo_scan_accept(&r->scan, ":")) {
    CALX_TRY(cx_hlo_scan_int(&r->scan, &v[2]));
  }
  for (size_t i = 0; i < 3; i++) {
    CALX_TRY(CX_HLO_PUSH(r->int_stack, v[i]));
  }
  return NULL;
}

// slice ::= use '[' (range (',' range)*)? ']'
calx_status *cx_hlo_head_slice(cx_hlo_reader *r, cx_hlo_parts *p)
{
  const size_t mark = r->int_stack.n;
  (void)p;
  CALX_TRY(cx_hlo_read_use(r));
  CALX_TRY(cx_hlo_read_items(r, "[", ']', read_range));
  CALX_TRY(push_third(r, mark, 0, CX_HLO_A_START_INDICES));
  CALX_TRY(push_third(r, mark, 1, CX_HLO_A_LIMIT_INDICES));
  CALX_TRY(push_third(r, mark, 2, CX_HLO_A_STRIDES));
  r->int_stack.n = mark;
  return NULL;
}

// get_tuple_element ::= use '[' integer ']'
calx_status *cx_hlo_head_element(cx_hlo_reader *r, cx_hlo_parts *p)
{
  (void)p;
  CALX_TRY(cx_hlo_read_use(r));
  CALX_TRY(cx_hlo_scan_need(&r->scan, "["));
  CALX_TRY(cx_hlo_pretty_value(r, CX_HLO_A_INDEX));
  return cx_hlo_scan_need(&r->scan, "]");
}

// reduce_precision ::= use ',' 'format' '=' 'e' digits 'm' digits
calx_status *cx_hlo_head_precision(cx_hlo_reader *r, cx_hlo_parts *p)
{
  cx_hlo_scan *s = &r->scan;
  (void)p;
  CALX_TRY(cx_hlo_read_use(r));
  CALX_TRY(cx_hlo_scan_need(s, ","));
  CALX_TRY(cx_hlo_pretty_word(r, "format"));
  cx_hlo_scan_space(s);
  for (size_t i = 0; i < 2; i++) {
    if (s->at == s->end || *s->at != "em"[i]) {
      return cx_hlo_scan_expected(s, "a format like e5m10");
    }
    s->at++;
    CALX_TRY(cx_hlo_pretty_value(
        r, i == 0 ? CX_HLO_A_EXPONENT_BITS : CX_HLO_A_MANTISSA_BITS));
  }
  return NULL;
}

// ---- calls ----

// symbol uses; the symbol is pushed as an attribute of this kind
static calx_status *read_called(cx_hlo_reader *r, cx_hlo_attr_id id,
                                cx_hlo_attr_kind kind)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, kind);
  if (attr == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_read_symbol_name(r, &attr->as.text));
  CALX_TRY(cx_hlo_push_attr(r, id, attr));
  return cx_hlo_read_uses(r);
}

// custom_call ::= '@' target uses
calx_status *cx_hlo_head_custom_call(cx_hlo_reader *r, cx_hlo_parts *p)
{
  (void)p;
  return read_called(r, CX_HLO_A_CALL_TARGET_NAME, CX_HLO_ATTR_STRING);
}

// call ::= '@' callee uses
calx_status *cx_hlo_head_call(cx_hlo_reader *r, cx_hlo_parts *p)
{
  (void)p;
  return read_called(r, CX_HLO_A_CALLEE, CX_HLO_ATTR_SYMBOL);
}

// composite ::= string (use (',' use)*)? regions?
calx_status *cx_hlo_head_composite(cx_hlo_reader *r, cx_hlo_parts *p)
{
  CALX_TRY(cx_hlo_pretty_value(r, CX_HLO_A_NAME));
  CALX_TRY(cx_hlo_read_bare_uses(r));
  return cx_hlo_scan_peek(&r->scan) == '(' ? cx_hlo_read_regions(r, p) : NULL;
}
