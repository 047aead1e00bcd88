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

static calx_status *push_ints(cx_hlo_reader *r, cx_hlo_attr_id id)
{
  cx_hlo_ints v = { NULL, 0 };
  CALX_TRY(cx_hlo_read_ints(r, &v));
  return cx_hlo_push_attr(r, id,
                          cx_hlo_attr_ints(r->module, CX_HLO_I64, v.v, v.n));
}

// pad ::= '[' ('[' low ',' high ']' (',' …)*)? ']'
static calx_status *push_padding(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  const size_t mark = r->int_stack.n;
  CALX_TRY(cx_hlo_scan_need(s, "["));
  while (!cx_hlo_scan_accept(s, "]")) {
    cx_hlo_ints pair = { NULL, 0 };
    if (r->int_stack.n > mark) CALX_TRY(cx_hlo_scan_need(s, ","));
    CALX_TRY(cx_hlo_read_ints(r, &pair));
    if (pair.n != 2) return CX_HLO_FAIL(r, s->at, "expected two numbers");
    for (size_t i = 0; i < 2; i++) {
      if (!CX_HLO_ROOM(r->int_stack)) return cx_out_of_memory();
      r->int_stack.v[r->int_stack.n++] = pair.v[i];
    }
  }
  const size_t rows = (r->int_stack.n - mark) / 2;
  const int64_t *v = rows == 0 ? NULL : r->int_stack.v + mark;
  r->int_stack.n = mark;
  return cx_hlo_push_attr(r, CX_HLO_A_PADDING,
                          cx_hlo_attr_matrix(r->module, v, rows, 2));
}

// reverse ::= '[' (('true' | 'false' | integer) (',' …)*)? ']'
static calx_status *push_reversal(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  const size_t mark = r->int_stack.n;
  CALX_TRY(cx_hlo_scan_need(s, "["));
  while (!cx_hlo_scan_accept(s, "]")) {
    if (r->int_stack.n > mark) CALX_TRY(cx_hlo_scan_need(s, ","));
    int64_t v = cx_hlo_scan_accept_word(s, "true");
    if (!v && !cx_hlo_scan_accept_word(s, "false")) {
      CALX_TRY(cx_hlo_scan_int(s, &v));
    }
    if (!CX_HLO_ROOM(r->int_stack)) return cx_out_of_memory();
    r->int_stack.v[r->int_stack.n++] = v != 0;
  }
  const size_t n = r->int_stack.n - mark;
  const int64_t *v = n == 0 ? NULL : r->int_stack.v + mark;
  r->int_stack.n = mark;
  return cx_hlo_push_attr(r, CX_HLO_A_WINDOW_REVERSAL,
                          cx_hlo_attr_ints(r->module, CX_HLO_I1, v, n));
}

// window ::= '{' (name '=' value (',' …)*)? '}'
static calx_status *read_window(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  bool first = true;
  CALX_TRY(cx_hlo_scan_need(s, "{"));
  while (!cx_hlo_scan_accept(s, "}")) {
    cx_hlo_str word = { NULL, 0 };
    if (!first) CALX_TRY(cx_hlo_scan_need(s, ","));
    first = false;
    cx_hlo_scan_space(s);
    const char *at = s->at;
    if (!cx_hlo_scan_word(s, &word)) return cx_hlo_scan_expected(s, "a word");
    CALX_TRY(cx_hlo_scan_need(s, "="));
    if (cx_hlo_str_equal(word, "stride")) {
      CALX_TRY(push_ints(r, CX_HLO_A_WINDOW_STRIDES));
    } else if (cx_hlo_str_equal(word, "pad")) {
      CALX_TRY(push_padding(r));
    } else if (cx_hlo_str_equal(word, "lhs_dilate")) {
      CALX_TRY(push_ints(r, CX_HLO_A_LHS_DILATION));
    } else if (cx_hlo_str_equal(word, "rhs_dilate")) {
      CALX_TRY(push_ints(r, CX_HLO_A_RHS_DILATION));
    } else if (cx_hlo_str_equal(word, "reverse")) {
      CALX_TRY(push_reversal(r));
    } else {
      return CX_HLO_FAIL(r, at, "a window has no '%.*s'", (int)word.n, word.s);
    }
  }
  return NULL;
}

// convolution ::= uses 'dim_numbers' '=' sides ',' 'window' '=' window
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
  return read_window(r);
}
