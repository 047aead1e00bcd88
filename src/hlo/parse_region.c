// hlo/parse: values and the regions that they live in.
#include <string.h>

#include "hlo/reader.h"

// ---- values ----

// use ::= '%' name ('#' integer)?
calx_status *cx_hlo_read_use(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  if (!cx_hlo_scan_accept(s, "%")) return cx_hlo_scan_expected(s, "a value");
  const char *at = s->at - 1;
  const cx_hlo_str name = cx_hlo_scan_suffix(s);
  const cx_hlo_name *known = cx_hlo_names_find(&r->values, name);
  if (known == NULL) {
    return CX_HLO_FAIL(r, at, "'%%%.*s' is not defined here", (int)name.n,
                       name.s);
  }
  int64_t index = 0;
  if (cx_hlo_scan_accept(s, "#")) CALX_TRY(cx_hlo_scan_int(s, &index));
  if (index < 0 || (uint64_t)index >= known->count) {
    return CX_HLO_FAIL(r, at, "'%%%.*s' has %zu values", (int)name.n, name.s,
                       known->count);
  }
  cx_hlo_value *value = (cx_hlo_value *)known->item + index;
  return CX_HLO_PUSH(r->use_stack, (cx_hlo_use){ value, at });
}

// operands ::= '(' (use (',' use)*)? ')', pushed onto use_stack
calx_status *cx_hlo_read_uses(cx_hlo_reader *r)
{
  return cx_hlo_read_items(r, "(", ')', cx_hlo_read_use);
}

calx_status *cx_hlo_read_bare_uses(cx_hlo_reader *r)
{
  if (cx_hlo_scan_peek(&r->scan) != '%') return NULL;
  do {
    CALX_TRY(cx_hlo_read_use(r));
  } while (cx_hlo_scan_accept(&r->scan, ","));
  return NULL;
}

calx_status *cx_hlo_define(cx_hlo_reader *r, cx_hlo_str name, const char *at,
                           cx_hlo_value *values, size_t count)
{
  if (name.n == 0) return CX_HLO_FAIL(r, at, "a value needs a name");
  if (cx_hlo_names_find(&r->values, name) != NULL) {
    return CX_HLO_FAIL(r, at, "'%%%.*s' is defined already", (int)name.n,
                       name.s);
  }
  return cx_hlo_names_add(&r->values, name, values, count) ? NULL
                                                           : cx_out_of_memory();
}

calx_status *cx_hlo_read_name(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  if (!cx_hlo_scan_accept(s, "%")) return cx_hlo_scan_expected(s, "a value");
  const char *at = s->at - 1;
  const cx_hlo_group group = { cx_hlo_scan_suffix(s), 1, at };
  return CX_HLO_PUSH(r->group_stack, group);
}

// ---- regions ----

static calx_status *read_arg(cx_hlo_reader *r)
{
  const cx_hlo_loc *ignored = NULL;
  CALX_TRY(cx_hlo_read_name(r));
  CALX_TRY(cx_hlo_scan_need(&r->scan, ":"));
  CALX_TRY(cx_hlo_read_pushed_type(r));
  return cx_hlo_read_trailing_loc(r, &ignored);
}

calx_status *cx_hlo_read_args(cx_hlo_reader *r)
{
  return cx_hlo_read_items(r, "(", ')', read_arg);
}

// A block with these arguments at the region's end.
static calx_status *open_block(cx_hlo_reader *r, cx_hlo_region *region,
                               const cx_hlo_block_args *args,
                               cx_hlo_block **out)
{
  cx_hlo_block *block = cx_hlo_block_new(r->module, region, args->n);
  if (block == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < args->n; i++) {
    const cx_hlo_group *g = &r->group_stack.v[args->groups + i];
    block->args[i].type = r->any_stack.v[args->types + i];
    CALX_TRY(cx_hlo_define(r, g->name, g->at, &block->args[i], 1));
  }
  *out = block;
  return NULL;
}

// label ::= '^' name ('(' argument (',' argument)* ')')? ':', from behind '^'
static calx_status *read_label(cx_hlo_reader *r, cx_hlo_region *region,
                               cx_hlo_block **out)
{
  cx_hlo_scan *s = &r->scan;
  cx_hlo_block_args args = { r->group_stack.n, r->any_stack.n, 0 };
  if (cx_hlo_scan_suffix(s).n == 0) {
    return cx_hlo_scan_expected(s, "a block's name");
  }
  if (cx_hlo_scan_peek(s) == '(') CALX_TRY(cx_hlo_read_args(r));
  CALX_TRY(cx_hlo_scan_need(s, ":"));
  args.n = r->group_stack.n - args.groups;
  CALX_TRY(open_block(r, region, &args, out));
  r->group_stack.n = args.groups;
  r->any_stack.n = args.types;
  return NULL;
}

// '{' op* (label op*)* '}'. With `args`, the first block has no label.
static calx_status *read_blocks(cx_hlo_reader *r, cx_hlo_region *region,
                                const cx_hlo_block_args *args)
{
  cx_hlo_scan *s = &r->scan;
  cx_hlo_block *block = NULL;
  CALX_TRY(cx_hlo_scan_need(s, "{"));
  if (args != NULL) CALX_TRY(open_block(r, region, args, &block));
  while (!cx_hlo_scan_accept(s, "}")) {
    if (cx_hlo_scan_accept(s, "^")) {
      CALX_TRY(read_label(r, region, &block));
      continue;
    }
    if (block == NULL) block = cx_hlo_block_new(r->module, region, 0);
    if (block == NULL) return cx_out_of_memory();
    CALX_TRY(cx_hlo_read_op(r, block));
  }
  return NULL;
}

calx_status *cx_hlo_add_region(cx_hlo_reader *r, cx_hlo_parts *p,
                               cx_hlo_region **out)
{
  cx_hlo_region_list *one = CX_ARENA_NEW(&r->module->arena, cx_hlo_region_list);
  if (one == NULL) return cx_out_of_memory();
  if (p->last_region == NULL) {
    p->regions = one;
  } else {
    p->last_region->next = one;
  }
  p->last_region = one;
  p->n_regions++;
  *out = &one->region;
  return NULL;
}

calx_status *cx_hlo_read_region(cx_hlo_reader *r, cx_hlo_parts *p,
                                const cx_hlo_block_args *args)
{
  const size_t scope = r->values.n;
  cx_hlo_region *region = NULL;
  CALX_TRY(cx_hlo_add_region(r, p, &region));
  if (r->heads_only) return cx_hlo_scan_braces(&r->scan);
  CALX_TRY(cx_hlo_reader_deeper(r));
  CALX_TRY(read_blocks(r, region, args));
  cx_hlo_names_cut(&r->values, scope);
  cx_hlo_reader_higher(r);
  return NULL;
}

calx_status *cx_hlo_read_regions(cx_hlo_reader *r, cx_hlo_parts *p)
{
  CALX_TRY(cx_hlo_scan_need(&r->scan, "("));
  do {
    CALX_TRY(cx_hlo_read_region(r, p, NULL));
  } while (cx_hlo_scan_accept(&r->scan, ","));
  return cx_hlo_scan_need(&r->scan, ")");
}

void cx_hlo_move_region(cx_hlo_region *from, cx_hlo_region *to)
{
  to->first = from->first;
  to->last = from->last;
  for (cx_hlo_block *b = to->first; b != NULL; b = b->next) b->region = to;
}
