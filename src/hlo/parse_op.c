// hlo/parse: operations in generic form, and how one is made of its parts.
//
// Generic form: "dialect.op"(%a, %b) <{properties}> ({ regions }) {attributes}
// : (types) -> types loc(…). The pretty forms are parse_pretty.c's. Operations
// of ops.def get their attributes by name; those of other dialects are kept as
// they are.
#include <string.h>

#include "hlo/reader.h"

// ---- what pretty forms push ----

calx_status *cx_hlo_push_type(cx_hlo_reader *r, const cx_hlo_any *type)
{
  const cx_hlo_any copy = *type;  // it may be on the stack, which moves
  return CX_HLO_PUSH(r->any_stack, copy);
}

calx_status *cx_hlo_push_named(cx_hlo_reader *r, const char *name,
                               const cx_hlo_attr *attr)
{
  if (attr == NULL) return cx_out_of_memory();
  const cx_hlo_named named = { { name, strlen(name) }, attr };
  return CX_HLO_PUSH(r->named_stack, named);
}

calx_status *cx_hlo_push_attr(cx_hlo_reader *r, cx_hlo_attr_id id,
                              const cx_hlo_attr *attr)
{
  return cx_hlo_push_named(r, cx_hlo_name_info_of(id)->name, attr);
}

// ---- operations ----

// results ::= '%' name (':' integer)? (',' …)* '=', pushed onto group_stack
static calx_status *read_groups(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  do {
    CALX_TRY(cx_hlo_read_name(r));
    cx_hlo_group *g = &r->group_stack.v[r->group_stack.n - 1];
    int64_t count = 1;
    if (cx_hlo_scan_accept(s, ":")) CALX_TRY(cx_hlo_scan_int(s, &count));
    if (count < 1) return CX_HLO_FAIL(r, g->at, "a value has no results");
    g->count = (size_t)count;
  } while (cx_hlo_scan_accept(s, ","));
  return cx_hlo_scan_need(s, "=");
}

// generic ::= string operands ('<' dict '>')? regions? dict? ':' function
static calx_status *read_generic(cx_hlo_reader *r, cx_hlo_parts *p)
{
  cx_hlo_scan *s = &r->scan;
  CALX_TRY(cx_hlo_scan_string(s, &r->module->arena, &p->name));
  p->kind = cx_hlo_op_find(p->name.s, p->name.n);
  CALX_TRY(cx_hlo_read_uses(r));
  if (cx_hlo_scan_peek(s) == '[') {
    return cx_hlo_scan_fail(s, s->at, CALX_UNIMPLEMENTED,
                            "StableHLO has no branches to blocks");
  }
  if (cx_hlo_scan_accept(s, "<")) {
    CALX_TRY(cx_hlo_read_dict(r));
    CALX_TRY(cx_hlo_scan_need(s, ">"));
  }
  if (cx_hlo_scan_peek(s) == '(') CALX_TRY(cx_hlo_read_regions(r, p));
  CALX_TRY(cx_hlo_read_optional_dict(r));
  CALX_TRY(cx_hlo_scan_need(s, ":"));
  return cx_hlo_read_function_types(r, &p->n_inputs);
}

// In the body of a function, operations of func may be written without it.
static cx_hlo_str full_name(cx_hlo_str word)
{
  static const char *const names[] = { "func.return", "func.call",
                                       "func.constant" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (cx_hlo_str_equal(word, names[i] + sizeof "func." - 1)) {
      return (cx_hlo_str){ names[i], strlen(names[i]) };
    }
  }
  return word;
}

// op ::= results? (generic | word pretty) loc?
calx_status *cx_hlo_read_parts(cx_hlo_reader *r, cx_hlo_parts *p)
{
  cx_hlo_scan *s = &r->scan;
  *p = (cx_hlo_parts){ .groups = r->group_stack.n,
                       .uses = r->use_stack.n,
                       .named = r->named_stack.n,
                       .types = r->any_stack.n };
  if (cx_hlo_scan_peek(s) == '%') CALX_TRY(read_groups(r));
  const char next = cx_hlo_scan_peek(s);
  cx_hlo_str word = { NULL, 0 };
  p->at = s->at;
  if (next == '"') {
    CALX_TRY(read_generic(r, p));
  } else if (cx_hlo_scan_word(s, &word)) {
    p->name = full_name(word);
    p->kind = cx_hlo_op_find(p->name.s, p->name.n);
    CALX_TRY(p->kind == CX_HLO_OP_OTHER ? cx_hlo_read_other(r, p)
                                        : cx_hlo_read_pretty(r, p));
  } else {
    return cx_hlo_scan_expected(s, "an operation");
  }
  const cx_hlo_loc *loc = NULL;
  CALX_TRY(cx_hlo_read_trailing_loc(r, &loc));
  if (loc != NULL) p->loc = loc;
  return NULL;
}

// Older MLIR has literals tensor<Nxi64> where ops.def has lists of numbers.
// Turns them into lists.
static calx_status *modernise(cx_hlo_reader *r, const cx_hlo_name_info *info,
                              const cx_hlo_attr **attr)
{
  const cx_hlo_elements *e = &(*attr)->as.elements;
  if (info->kind != CX_HLO_ATTR_ARRAY ||
      (*attr)->kind != CX_HLO_ATTR_ELEMENTS || e->type.tensor.rank != 1 ||
      (int)e->type.tensor.elem != info->detail) {
    return NULL;
  }
  // A splat has any size, however short its text is. These lists have a number
  // for each dimension.
  const size_t n = (size_t)cx_hlo_type_elements(&e->type.tensor);
  if (n > CX_HLO_MOST_DIMS) return NULL;
  int64_t v[CX_HLO_MOST_DIMS];
  for (size_t i = 0; i < n; i++) v[i] = cx_hlo_elements_int(e, i);
  *attr = cx_hlo_attr_ints(r->module, e->type.tensor.elem, v, n);
  return *attr == NULL ? cx_out_of_memory() : NULL;
}

// The index of the attribute in ops.def; n_attrs: there is none. A name from
// ops.def itself is found without comparing its letters.
static size_t attr_index(const cx_hlo_op_info *info, cx_hlo_str name)
{
  size_t i = 0;
  while (i < info->n_attrs &&
         name.s != cx_hlo_name_info_of(info->attrs[i].id)->name) {
    i++;
  }
  if (i < info->n_attrs) return i;
  i = 0;
  while (
      i < info->n_attrs &&
      !cx_hlo_str_equal(name, cx_hlo_name_info_of(info->attrs[i].id)->name)) {
    i++;
  }
  return i;
}

calx_status *cx_hlo_set_attrs(cx_hlo_reader *r, const cx_hlo_parts *p,
                              cx_hlo_op *op)
{
  const cx_hlo_op_info *info = cx_hlo_op_info_of(op->kind);
  size_t left = p->named;
  for (size_t i = p->named; i < r->named_stack.n; i++) {
    cx_hlo_named *item = &r->named_stack.v[i];
    const size_t index = attr_index(info, item->name);
    if (index == info->n_attrs) {
      r->named_stack.v[left++] = *item;
      continue;
    }
    if (op->attrs[index] != NULL) {
      return CX_HLO_FAIL(r, p->at, "the attribute '%.*s' is there twice",
                         (int)item->name.n, item->name.s);
    }
    CALX_TRY(
        modernise(r, cx_hlo_name_info_of(info->attrs[index].id), &item->attr));
    op->attrs[index] = item->attr;
  }
  r->named_stack.n = left;
  op->n_extra = (uint32_t)(left - p->named);
  return CX_HLO_TAKE(r, r->named_stack, p->named, &op->extra);
}

static calx_status *set_operands(cx_hlo_reader *r, const cx_hlo_parts *p,
                                 cx_hlo_op *op)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const cx_hlo_use *use = &r->use_stack.v[p->uses + i];
    op->operands[i] = use->value;
    if (cx_hlo_any_equal(&use->value->type, &r->any_stack.v[p->types + i])) {
      continue;
    }
    return CX_HLO_FAIL(r, use->at, "the value is %s, its type here another",
                       cx_hlo_shape(&use->value->type.tensor).s);
  }
  return NULL;
}

static calx_status *name_results(cx_hlo_reader *r, const cx_hlo_parts *p,
                                 cx_hlo_op *op)
{
  size_t at = 0;
  const size_t n = r->group_stack.n;
  for (size_t i = p->groups; i < n; i++) {
    const cx_hlo_group g = r->group_stack.v[i];
    if (g.count > op->n_results - at) {
      return CX_HLO_FAIL(r, g.at, "more names than the %u results",
                         op->n_results);
    }
    CALX_TRY(cx_hlo_define(r, g.name, g.at, &op->results[at], g.count));
    at += g.count;
  }
  if (p->groups == n || at == op->n_results) return NULL;
  return CX_HLO_FAIL(r, p->at, "%zu names for %u results", at, op->n_results);
}

// Makes the operation from the items on the stacks, and removes them.
calx_status *cx_hlo_make_op(cx_hlo_reader *r, const cx_hlo_parts *p,
                            cx_hlo_block *block)
{
  const size_t n_operands = r->use_stack.n - p->uses;
  if (p->n_inputs != n_operands) {
    return CX_HLO_FAIL(r, p->at, "%zu operands, but %zu types for them",
                       n_operands, p->n_inputs);
  }
  const size_t n_results = r->any_stack.n - p->types - p->n_inputs;
  cx_hlo_op *op =
      cx_hlo_op_new(r->module, p->kind, n_operands, n_results, p->n_regions);
  if (op == NULL) return cx_out_of_memory();
  if (p->kind == CX_HLO_OP_OTHER) op->name = p->name;
  op->loc = p->loc;
  for (size_t i = 0; i < n_results; i++) {
    op->results[i].type = r->any_stack.v[p->types + p->n_inputs + i];
  }
  size_t i = 0;
  for (cx_hlo_region_list *one = p->regions; one != NULL; one = one->next) {
    cx_hlo_move_region(&one->region, &op->regions[i++]);
  }
  CALX_TRY(set_operands(r, p, op));
  CALX_TRY(cx_hlo_set_attrs(r, p, op));
  CALX_TRY(name_results(r, p, op));
  r->use_stack.n = p->uses;
  r->any_stack.n = p->types;
  r->group_stack.n = p->groups;
  cx_hlo_op_append(block, op);
  return NULL;
}

calx_status *cx_hlo_read_op(cx_hlo_reader *r, cx_hlo_block *block)
{
  cx_hlo_parts p;
  CALX_TRY(cx_hlo_read_parts(r, &p));
  if (cx_hlo_str_equal(p.name, "func.func") ||
      cx_hlo_str_equal(p.name, "builtin.module")) {
    return CX_HLO_FAIL(r, p.at, "%.*s stands inside of an operation",
                       (int)p.name.n, p.name.s);
  }
  return cx_hlo_make_op(r, &p, block);
}
