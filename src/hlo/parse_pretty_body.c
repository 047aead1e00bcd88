// hlo/parse: the pretty forms of reduce and while. The arguments of their
// regions are written outside of the regions.
#include <string.h>

#include "hlo/pretty.h"

// ---- while ----

static calx_status *read_loop_value(cx_hlo_reader *r)
{
  CALX_TRY(cx_hlo_read_name(r));
  CALX_TRY(cx_hlo_scan_need(&r->scan, "="));
  return cx_hlo_read_use(r);
}

// while ::= '(' ('%' name '=' use (',' …)*)? ')'
// The names are those of the arguments of both regions.
calx_status *cx_hlo_head_while(cx_hlo_reader *r, cx_hlo_parts *p)
{
  (void)p;
  return cx_hlo_read_items(r, "(", ')', read_loop_value);
}

// ('attributes' dict)? 'cond' region 'do' region
calx_status *cx_hlo_tail_while(cx_hlo_reader *r, cx_hlo_parts *p)
{
  const size_t n = r->use_stack.n - p->uses;
  const cx_hlo_block_args args = { r->group_stack.n - n, p->types, n };
  if (p->n_inputs != n) {
    return CX_HLO_FAIL(r, p->at, "%zu values, but %zu types for them", n,
                       p->n_inputs);
  }
  if (cx_hlo_scan_accept_word(&r->scan, "attributes")) {
    CALX_TRY(cx_hlo_read_dict(r));
  }
  CALX_TRY(cx_hlo_need_word(r, "cond"));
  CALX_TRY(cx_hlo_read_region(r, p, &args));
  CALX_TRY(cx_hlo_need_word(r, "do"));
  CALX_TRY(cx_hlo_read_region(r, p, &args));
  r->group_stack.n -= n;
  return NULL;
}

// ---- reduce ----

// The region that `applies` abbreviates: one operation on two scalars of the
// element type of the first input.
static calx_status *make_body(cx_hlo_reader *r, cx_hlo_parts *p,
                              cx_hlo_op_kind kind)
{
  cx_hlo_module *m = r->module;
  cx_hlo_region_list *one = CX_ARENA_NEW(&m->arena, cx_hlo_region_list);
  if (one == NULL) return cx_out_of_memory();
  cx_hlo_block *block = cx_hlo_block_new(m, &one->region, 2);
  cx_hlo_op *op = cx_hlo_op_new(m, kind, 2, 1, 0);
  cx_hlo_op *end = cx_hlo_op_new(m, CX_HLO_OP_RETURN, 1, 0, 0);
  if (block == NULL || op == NULL || end == NULL) return cx_out_of_memory();
  const cx_hlo_value *input = r->use_stack.v[p->uses].value;
  const cx_hlo_any scalar = { .tensor.elem = input->type.tensor.elem };
  op->results[0].type = scalar;
  for (size_t i = 0; i < 2; i++) {
    block->args[i].type = scalar;
    op->operands[i] = &block->args[i];
  }
  end->operands[0] = &op->results[0];
  cx_hlo_op_append(block, op);
  cx_hlo_op_append(block, end);
  p->regions = p->last_region = one;
  p->n_regions = 1;
  return NULL;
}

// 'applies' word
static calx_status *read_applied(cx_hlo_reader *r, cx_hlo_parts *p)
{
  cx_hlo_str word = { NULL, 0 };
  const char *at = cx_hlo_scan_here(&r->scan);
  if (!cx_hlo_scan_word(&r->scan, &word)) {
    return cx_hlo_scan_expected(&r->scan, "an operation");
  }
  const cx_hlo_op_kind kind = cx_hlo_op_find(word.s, word.n);
  const cx_hlo_op_info *info = cx_hlo_op_info_of(kind);
  if (info->operands != 2 || info->results != 1 || info->regions != 0) {
    return CX_HLO_FAIL(r, at, "'%.*s' is no operation on two values",
                       (int)word.n, word.s);
  }
  return make_body(r, p, kind);
}

// reduce ::= ('(' use 'init' ':' use ')') (',' …)* ('applies' word)?
//            'across' 'dimensions' '=' ints
// The inputs come first in the operation, then the inits.
calx_status *cx_hlo_head_reduce(cx_hlo_reader *r, cx_hlo_parts *p)
{
  cx_hlo_scan *s = &r->scan;
  do {
    CALX_TRY(cx_hlo_scan_need(s, "("));
    CALX_TRY(cx_hlo_read_use(r));
    CALX_TRY(cx_hlo_need_word(r, "init"));
    CALX_TRY(cx_hlo_scan_need(s, ":"));
    CALX_TRY(cx_hlo_read_use(r));
    CALX_TRY(cx_hlo_scan_need(s, ")"));
  } while (cx_hlo_scan_accept(s, ","));
  const size_t n = r->use_stack.n - p->uses;
  const size_t bytes = n * sizeof(cx_hlo_use);
  cx_hlo_use *pairs = cx_alloc(bytes);
  if (pairs == NULL) return cx_out_of_memory();
  memcpy(pairs, r->use_stack.v + p->uses, bytes);
  for (size_t i = 0; i < n; i++) {
    r->use_stack.v[p->uses + i % 2 * (n / 2) + i / 2] = pairs[i];
  }
  cx_free(pairs);
  if (cx_hlo_scan_accept_word(s, "applies")) CALX_TRY(read_applied(r, p));
  CALX_TRY(cx_hlo_need_word(r, "across"));
  CALX_TRY(cx_hlo_pretty_word(r, "dimensions"));
  return cx_hlo_pretty_value(r, CX_HLO_A_DIMENSIONS);
}

// loc? 'reducer' ('(' argument ',' argument ')')+ region; nothing after
// `applies`. The arguments of the block are the first ones of all pairs, then
// the second.
calx_status *cx_hlo_tail_reduce(cx_hlo_reader *r, cx_hlo_parts *p)
{
  const size_t groups = r->group_stack.n;
  const size_t types = r->any_stack.n;
  if (p->n_regions != 0) return NULL;
  CALX_TRY(cx_hlo_read_trailing_loc(r, &p->loc));
  CALX_TRY(cx_hlo_need_word(r, "reducer"));
  while (cx_hlo_scan_peek(&r->scan) == '(') {
    const char *at = r->scan.at;
    const size_t before = r->group_stack.n;
    CALX_TRY(cx_hlo_read_args(r));
    if (r->group_stack.n - before != 2) {
      return CX_HLO_FAIL(r, at, "expected two arguments");
    }
  }
  const size_t n = r->group_stack.n - groups;
  for (size_t i = 0; i < n; i++) {
    const size_t from = i < n / 2 ? 2 * i : 2 * (i - n / 2) + 1;
    CALX_TRY(CX_HLO_PUSH(r->group_stack, r->group_stack.v[groups + from]));
    CALX_TRY(cx_hlo_push_type(r, &r->any_stack.v[types + from]));
  }
  const cx_hlo_block_args args = { groups + n, types + n, n };
  CALX_TRY(cx_hlo_read_region(r, p, &args));
  r->group_stack.n = groups;
  r->any_stack.n = types;
  return NULL;
}
