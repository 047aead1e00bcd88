// hlo/parse: the pretty forms of dot_general and convolution.
#include <string.h>

#include "hlo/pretty.h"

// ---- dot_general ----

// sides ::= ints 'x' ints
static calx_status *read_sides(cx_hlo_reader *r, cx_hlo_ints *lhs,
                               cx_hlo_ints *rhs)
{
  CALX_TRY(cx_hlo_scan_need(&r->scan, "="));
  CALX_TRY(cx_hlo_read_ints(r, lhs));
  CALX_TRY(cx_hlo_scan_need(&r->scan, "x"));
  return cx_hlo_read_ints(r, rhs);
}

// dot_general ::= use ',' use (',' 'batching_dims' '=' sides)?
//                 (',' 'contracting_dims' '=' sides)? (',' keyword)*
calx_status *cx_hlo_head_dot_general(cx_hlo_reader *r, cx_hlo_parts *p)
{
  cx_hlo_scan *s = &r->scan;
  cx_hlo_dot_numbers n = { 0 };
  CALX_TRY(cx_hlo_read_use(r));
  CALX_TRY(cx_hlo_scan_need(s, ","));
  CALX_TRY(cx_hlo_read_use(r));
  while (cx_hlo_scan_accept(s, ",")) {
    if (cx_hlo_scan_accept_word(s, "batching_dims")) {
      CALX_TRY(read_sides(r, &n.lhs_batch, &n.rhs_batch));
    } else if (cx_hlo_scan_accept_word(s, "contracting_dims")) {
      CALX_TRY(read_sides(r, &n.lhs_contract, &n.rhs_contract));
    } else {
      CALX_TRY(cx_hlo_pretty_keywords(r, p));
    }
  }
  return cx_hlo_push_attr(r, CX_HLO_A_DOT_DIMENSION_NUMBERS,
                          cx_hlo_attr_struct(r->module, CX_HLO_STRUCT_DOT, &n));
}

// ---- convolution ----

static calx_status *push_pair(cx_hlo_reader *r)
{
  cx_hlo_ints pair = { NULL, 0 };
  CALX_TRY(cx_hlo_read_ints(r, &pair));
  if (pair.n != 2) return CX_HLO_FAIL(r, r->scan.at, "expected two numbers");
  CALX_TRY(CX_HLO_PUSH(r->int_stack, pair.v[0]));
  return CX_HLO_PUSH(r->int_stack, pair.v[1]);
}

// pad ::= '[' ('[' low ',' high ']' (',' …)*)? ']'
static calx_status *push_padding(cx_hlo_reader *r)
{
  const size_t mark = r->int_stack.n;
  CALX_TRY(cx_hlo_read_items(r, "[", ']', push_pair));
  const size_t rows = (r->int_stack.n - mark) / 2;
  const int64_t *v = rows == 0 ? NULL : r->int_stack.v + mark;
  r->int_stack.n = mark;
  return cx_hlo_push_attr(r, CX_HLO_A_PADDING,
                          cx_hlo_attr_matrix(r->module, v, rows, 2));
}

static calx_status *push_flag(cx_hlo_reader *r)
{
  int64_t v = 0;
  CALX_TRY(cx_hlo_scan_int_or_bool(&r->scan, &v));
  return CX_HLO_PUSH(r->int_stack, v != 0);
}

// reverse ::= '[' (('true' | 'false' | integer) (',' …)*)? ']'
static calx_status *push_reversal(cx_hlo_reader *r)
{
  const size_t mark = r->int_stack.n;
  CALX_TRY(cx_hlo_read_items(r, "[", ']', push_flag));
  const size_t n = r->int_stack.n - mark;
  const int64_t *v = n == 0 ? NULL : r->int_stack.v + mark;
  r->int_stack.n = mark;
  return cx_hlo_push_attr(r, CX_HLO_A_WINDOW_REVERSAL,
                          cx_hlo_attr_ints(r->module, CX_HLO_I1, v, n));
}

// name '=' value
static calx_status *read_window_field(cx_hlo_reader *r)
{
  static const cx_hlo_keyword lists[] = {
    { "stride", CX_HLO_A_WINDOW_STRIDES },
    { "lhs_dilate", CX_HLO_A_LHS_DILATION },
    { "rhs_dilate", CX_HLO_A_RHS_DILATION },
  };
  cx_hlo_scan *s = &r->scan;
  cx_hlo_str word = { NULL, 0 };
  const char *at = cx_hlo_scan_here(s);
  if (!cx_hlo_scan_word(s, &word)) return cx_hlo_scan_expected(s, "a word");
  CALX_TRY(cx_hlo_scan_need(s, "="));
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    if (cx_hlo_str_equal(word, lists[i].word)) {
      return cx_hlo_pretty_value(r, lists[i].id);
    }
  }
  if (cx_hlo_str_equal(word, "pad")) return push_padding(r);
  if (cx_hlo_str_equal(word, "reverse")) return push_reversal(r);
  return CX_HLO_FAIL(r, at, "a window has no '%.*s'", (int)word.n, word.s);
}

// convolution ::= uses 'dim_numbers' '=' sides ',' 'window' '=' '{' fields '}'
calx_status *cx_hlo_head_convolution(cx_hlo_reader *r, cx_hlo_parts *p)
{
  const cx_hlo_attr *sides = NULL;
  (void)p;
  CALX_TRY(cx_hlo_read_uses(r));
  CALX_TRY(cx_hlo_pretty_word(r, "dim_numbers"));
  CALX_TRY(cx_hlo_read_conv_sides(r, &sides));
  CALX_TRY(cx_hlo_push_attr(r, CX_HLO_A_CONV_DIMENSION_NUMBERS, sides));
  CALX_TRY(cx_hlo_scan_need(&r->scan, ","));
  CALX_TRY(cx_hlo_pretty_word(r, "window"));
  return cx_hlo_read_items(r, "{", '}', read_window_field);
}
