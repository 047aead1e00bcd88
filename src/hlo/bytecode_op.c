// hlo/bytecode: the parts of an operation, and how it is made of them.
//
// An operation of VHLO is made at once of what the file says. One of another
// dialect and a function are made of parts on the reader's stacks, as those of
// a text are. A cast is left out: its results are its operands.
#include "hlo/bytecode_codes.h"
#include "hlo/bytecode_reader.h"

// ---- values ----

// operands ::= count value*, pushed; into the operation at once, where it is
// one of VHLO without regions, which are read before it is made.
static calx_status *read_operands(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                  cx_hlo_draft *d, unsigned has)
{
  cx_hlo_reader *r = b->r;
  cx_hlo_parts *p = &d->p;
  CALX_TRY(cx_hlo_bytes_count(b, in, &p->n_inputs));
  if (d->name->is_vhlo && d->name->role == CX_HLO_ROLE_PLAIN &&
      !(has & CX_HLO_HAS_REGIONS)) {
    d->op = cx_hlo_op_new(r->module, p->kind, p->n_inputs, d->n_results, 0);
    if (d->op == NULL) return cx_out_of_memory();
  }
  for (size_t i = 0; i < p->n_inputs; i++) {
    const char *at = in->at;
    size_t id = 0;
    CALX_TRY(cx_hlo_bytes_index(b, in, b->values.n - b->scope, "value", &id));
    const cx_hlo_numbered *used = &b->values.v[b->scope + id];
    if (used->value == NULL) {
      return CX_HLO_BYTES_FAIL(b, at, "value %zu is used before it is defined",
                               id);
    }
    if (used->parts != 0) CALX_TRY(cx_hlo_bytes_expand(b, used->parts, at));
    if (d->op != NULL) {
      d->op->operands[i] = used->value;
    } else {
      CALX_TRY(CX_HLO_PUSH(r->use_stack, (cx_hlo_use){ used->value, at }));
    }
  }
  return NULL;
}

calx_status *cx_hlo_bytes_skip_orders(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                      size_t n)
{
  size_t count = 1;
  uint64_t head = 0, ignored = 0;
  if (n > 1) CALX_TRY(cx_hlo_bytes_count(b, in, &count));
  for (size_t i = 0; i < count; i++) {
    if (n > 1) CALX_TRY(cx_hlo_bytes_number(b, in, &ignored));
    CALX_TRY(cx_hlo_bytes_number(b, in, &head));
    if (head >> 1 > (size_t)(in->end - in->at)) {
      return CX_HLO_BYTES_FAIL(b, in->at, "the orders of uses are too long");
    }
    for (uint64_t k = 0; k < head >> 1; k++) {
      CALX_TRY(cx_hlo_bytes_number(b, in, &ignored));
    }
  }
  return NULL;
}

// The results stand before the operands; their types are read when the
// operation is made.
calx_status *cx_hlo_bytes_read_values(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                      unsigned has, cx_hlo_draft *d)
{
  uint64_t ignored = 0;
  if (has & CX_HLO_HAS_RESULTS) {
    CALX_TRY(cx_hlo_bytes_count(b, in, &d->n_results));
    d->results.at = in->at;
    for (size_t i = 0; i < d->n_results; i++) {
      CALX_TRY(cx_hlo_bytes_number(b, in, &ignored));
    }
  }
  if (has & CX_HLO_HAS_OPERANDS) CALX_TRY(read_operands(b, in, d, has));
  if (has & CX_HLO_HAS_SUCCESSORS) {
    return CX_HLO_BYTES_UNKNOWN(b, in->at,
                                "StableHLO has no branches to blocks");
  }
  return has & CX_HLO_HAS_USE_ORDERS
             ? cx_hlo_bytes_skip_orders(b, in, d->n_results)
             : NULL;
}

// The types of the operands and of the results, for what is made of parts.
static calx_status *push_types(cx_hlo_bytecode *b, cx_hlo_draft *d)
{
  cx_hlo_reader *r = b->r;
  for (size_t i = 0; i < d->p.n_inputs; i++) {
    const cx_hlo_value *value = r->use_stack.v[d->p.uses + i].value;
    CALX_TRY(cx_hlo_push_type(r, &value->type));
  }
  for (size_t i = 0; i < d->n_results; i++) {
    cx_hlo_any type;
    CALX_TRY(cx_hlo_bytes_type(b, &d->results, &type));
    CALX_TRY(cx_hlo_push_type(r, &type));
  }
  return NULL;
}

// ---- attributes ----

// An attribute that may be absent: number << 1 | is there
static calx_status *read_optional(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                  const cx_hlo_attr **out)
{
  const char *at = in->at;
  uint64_t v = 0;
  *out = NULL;
  CALX_TRY(cx_hlo_bytes_number(b, in, &v));
  return v & 1 ? cx_hlo_bytes_attr_at(b, (size_t)(v >> 1), at, out) : NULL;
}

// The name is the first property.
calx_status *cx_hlo_bytes_take_module(cx_hlo_bytecode *b,
                                      cx_hlo_bytes properties,
                                      const cx_hlo_attr *dict)
{
  cx_hlo_module *m = b->r->module;
  const cx_hlo_attr *name = NULL;
  if (dict != NULL) {
    m->attrs = (cx_hlo_named_list){ dict->as.dict.items, dict->as.dict.n };
  }
  if (properties.at == properties.end) return NULL;
  CALX_TRY(read_optional(b, &properties, &name));
  if (name != NULL && name->kind == CX_HLO_ATTR_STRING) m->name = name->as.text;
  return NULL;
}

static calx_status *push_other(cx_hlo_bytecode *b, const cx_hlo_draft *d)
{
  const cx_hlo_attr *dict = d->dict;
  const cx_hlo_bytes none = { d->p.at, d->p.at };
  CALX_TRY(cx_hlo_other_push(
      b, d->name->name, d->properties == NULL ? none : d->properties->bytes,
      d->p.at));
  for (size_t i = 0; dict != NULL && i < dict->as.dict.n; i++) {
    CALX_TRY(CX_HLO_PUSH(b->r->named_stack, dict->as.dict.items[i]));
  }
  return NULL;
}

// dictionary? properties?
calx_status *cx_hlo_bytes_read_attrs(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                     unsigned has, cx_hlo_draft *d)
{
  const char *at = in->at;
  size_t i = 0;
  if (has & CX_HLO_HAS_ATTRS) {
    CALX_TRY(cx_hlo_bytes_index(b, in, b->n_attrs, "attribute", &i));
    CALX_TRY(cx_hlo_bytes_attr_at(b, i, at, &d->dict));
    d->dict_entry = &b->attrs[i];
  }
  if (has & CX_HLO_HAS_PROPERTIES) {
    CALX_TRY(cx_hlo_bytes_index(b, in, b->n_properties, "properties", &i));
    d->properties = &b->properties[i];
  }
  if (d->dict == NULL || d->dict->kind == CX_HLO_ATTR_DICT) return NULL;
  return CX_HLO_BYTES_FAIL(b, at, "attributes are a dictionary");
}

// Operations with the same properties and dictionary have the same attributes.
static calx_status *share_attrs(cx_hlo_bytecode *b, const cx_hlo_draft *d,
                                const cx_hlo_made *made, cx_hlo_op *op)
{
  const cx_hlo_op *first = made->op;
  const size_t n = cx_hlo_op_info_of(op->kind)->n_attrs;
  CALX_TRY(cx_hlo_bytes_expand(b, made->expanded, d->p.at));
  for (size_t i = 0; i < n; i++) op->attrs[i] = first->attrs[i];
  op->extra = first->extra;
  op->n_extra = first->n_extra;
  return NULL;
}

// Where the last operation with these properties and dictionary is kept.
static calx_status *made_of(cx_hlo_bytecode *b, const cx_hlo_draft *d,
                            cx_hlo_made **out)
{
  *out = d->dict == NULL ? &d->properties->made : d->dict_entry->made;
  if (*out != NULL) return NULL;
  *out = CX_ARENA_NEW(&b->r->module->arena, cx_hlo_made);
  d->dict_entry->made = *out;
  return *out == NULL ? cx_out_of_memory() : NULL;
}

// VHLO has no absent list of layouts. StableHLO has those of the operands and
// of the results or none, so an empty list beside one that is not empty is
// kept.
static calx_status *keep_layouts(cx_hlo_module *m, cx_hlo_op *op)
{
  if (op->kind != CX_HLO_OP_CUSTOM_CALL) return NULL;
  const cx_hlo_op_info *info = cx_hlo_op_info_of(op->kind);
  const bool wanted = cx_hlo_op_attr(op, CX_HLO_A_OPERAND_LAYOUTS) != NULL ||
                      cx_hlo_op_attr(op, CX_HLO_A_RESULT_LAYOUTS) != NULL;
  for (size_t i = 0; i < info->n_attrs && wanted; i++) {
    const cx_hlo_attr_id id = info->attrs[i].id;
    if (op->attrs[i] != NULL ||
        (id != CX_HLO_A_OPERAND_LAYOUTS && id != CX_HLO_A_RESULT_LAYOUTS)) {
      continue;
    }
    op->attrs[i] = cx_hlo_attr_new(m, CX_HLO_ATTR_LIST);
    if (op->attrs[i] == NULL) return cx_out_of_memory();
  }
  return NULL;
}

static calx_status *set_attrs(cx_hlo_bytecode *b, const cx_hlo_draft *d,
                              cx_hlo_op *op)
{
  cx_hlo_reader *r = b->r;
  const size_t expanded = r->expanded;
  cx_hlo_made *made = NULL;
  if (d->dict == NULL && d->properties == NULL) return NULL;
  CALX_TRY(made_of(b, d, &made));
  if (made->name == d->name && made->properties == d->properties &&
      made->op->kind == op->kind && r->depth <= made->depth) {
    return share_attrs(b, d, made, op);
  }
  CALX_TRY(cx_hlo_vhlo_push(b, d->name, d->properties, d->dict, d->p.at));
  CALX_TRY(cx_hlo_set_attrs(r, &d->p, op));
  CALX_TRY(keep_layouts(r->module, op));
  *made = (cx_hlo_made){ .name = d->name,
                         .properties = d->properties,
                         .op = op,
                         .expanded = r->expanded - expanded,
                         .depth = r->depth };
  return NULL;
}

// ---- making ----

// A function, in the module.
static calx_status *make_func(cx_hlo_bytecode *b, cx_hlo_draft *d,
                              cx_hlo_surrounding where)
{
  if (where != CX_HLO_IN_MODULE) {
    return CX_HLO_BYTES_FAIL(b, d->p.at, "a function inside of an operation");
  }
  CALX_TRY(d->name->is_vhlo
               ? cx_hlo_vhlo_push(b, d->name, d->properties, d->dict, d->p.at)
               : push_other(b, d));
  CALX_TRY(push_types(b, d));
  return cx_hlo_make_func(b->r, &d->p);
}

// Between operations of VHLO and of other dialects stand casts from VHLO's
// types to the same builtin ones. Both are one type here, so the results are
// the operands.
static calx_status *pass_cast(cx_hlo_bytecode *b, cx_hlo_draft *d,
                              cx_hlo_numbers *n)
{
  cx_hlo_reader *r = b->r;
  if (d->n_results != d->p.n_inputs || d->p.n_regions != 0) {
    return CX_HLO_BYTES_FAIL(b, d->p.at, "a cast has a result per operand");
  }
  for (size_t i = 0; i < d->n_results; i++) {
    cx_hlo_value *value = r->use_stack.v[d->p.uses + i].value;
    cx_hlo_any type;
    CALX_TRY(cx_hlo_bytes_type(b, &d->results, &type));
    if (!cx_hlo_any_equal(&value->type, &type)) {
      return CX_HLO_BYTES_UNKNOWN(b, d->p.at, "a cast to another type");
    }
    CALX_TRY(cx_hlo_bytes_define(b, n, value, d->p.at));
  }
  r->use_stack.n = d->p.uses;
  return NULL;
}

static calx_status *make_vhlo(cx_hlo_bytecode *b, cx_hlo_draft *d,
                              cx_hlo_block *block)
{
  cx_hlo_reader *r = b->r;
  size_t region = 0;
  cx_hlo_op *op = d->op;
  if (op == NULL) {
    op = cx_hlo_op_new(r->module, d->p.kind, d->p.n_inputs, d->n_results,
                       d->p.n_regions);
    if (op == NULL) return cx_out_of_memory();
    for (uint32_t i = 0; i < op->n_operands; i++) {
      op->operands[i] = r->use_stack.v[d->p.uses + i].value;
    }
  }
  if (op->kind == CX_HLO_OP_OTHER) {
    op->name = d->p.name;
    CALX_TRY(cx_hlo_bytes_expand(b, op->name.n / CX_HLO_PART_BYTES, d->p.at));
  }
  op->loc = d->p.loc;
  for (uint32_t i = 0; i < op->n_results; i++) {
    CALX_TRY(cx_hlo_bytes_type(b, &d->results, &op->results[i].type));
  }
  for (cx_hlo_region_list *one = d->p.regions; one != NULL; one = one->next) {
    cx_hlo_move_region(&one->region, &op->regions[region++]);
  }
  CALX_TRY(set_attrs(b, d, op));
  r->use_stack.n = d->p.uses;
  cx_hlo_op_append(block, op);
  return NULL;
}

static calx_status *make_other(cx_hlo_bytecode *b, cx_hlo_draft *d,
                               cx_hlo_block *block)
{
  CALX_TRY(cx_hlo_bytes_expand(b, d->p.name.n / CX_HLO_PART_BYTES, d->p.at));
  CALX_TRY(push_other(b, d));
  CALX_TRY(push_types(b, d));
  return cx_hlo_make_op(b->r, &d->p, block);
}

calx_status *cx_hlo_bytes_make(cx_hlo_bytecode *b, cx_hlo_draft *d,
                               cx_hlo_block *block, cx_hlo_surrounding where,
                               cx_hlo_numbers *n)
{
  const cx_hlo_op_role role = d->name->role;
  if (where == CX_HLO_IN_FILE) {
    return CX_HLO_BYTES_FAIL(b, d->p.at, "a file holds one module");
  }
  if (role == CX_HLO_ROLE_FUNC) return make_func(b, d, where);
  if (role == CX_HLO_ROLE_CAST) return pass_cast(b, d, n);
  CALX_TRY(d->name->is_vhlo ? make_vhlo(b, d, block) : make_other(b, d, block));
  cx_hlo_op *op = block->last;
  for (uint32_t i = 0; i < op->n_results; i++) {
    CALX_TRY(cx_hlo_bytes_define(b, n, &op->results[i], d->p.at));
  }
  return NULL;
}
