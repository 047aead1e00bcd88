// hlo/bytecode: operations, blocks and regions.
//
// Values have numbers. A region takes as many of them as it defines, behind
// those of the region around it, and gives them back at its end. An isolated
// operation uses none from outside of it, and its numbers begin at 0.
#include <string.h>

#include "hlo/bytecode_codes.h"
#include "hlo/bytecode_reader.h"

// Where an operation stands.
typedef enum surrounding {
  IN_FILE,
  IN_MODULE,
  IN_FUNCTION,
  IN_OPERATION
} surrounding;

typedef struct numbers {
  size_t next, end;  // of the values that a region defines
} numbers;

static calx_status *read_block(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               cx_hlo_region *region, surrounding where,
                               numbers *n);

// ---- values ----

static calx_status *define(cx_hlo_bytecode *b, numbers *n, cx_hlo_value *value,
                           const char *at)
{
  if (n->next == n->end) {
    return CX_HLO_BYTES_FAIL(b, at, "the region has more values than it says");
  }
  b->values.v[n->next++] = value;
  return NULL;
}

// All in a type, which is gone through again for each use. A tensor: 0.
static size_t count_parts(const cx_hlo_any *type)
{
  const cx_hlo_non_tensor *t = type->non_tensor;
  if (t == NULL) return 0;
  size_t n = 1;
  for (size_t i = 0; i < t->n_parts; i++) n += 1 + count_parts(&t->parts[i]);
  return n;
}

// operands ::= count value*, pushed with their types
static calx_status *read_operands(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                  cx_hlo_parts *p)
{
  cx_hlo_reader *r = b->r;
  CALX_TRY(cx_hlo_bytes_count(b, in, &p->n_inputs));
  for (size_t i = 0; i < p->n_inputs; i++) {
    const char *at = in->at;
    size_t id = 0;
    CALX_TRY(cx_hlo_bytes_index(b, in, b->values.n - b->scope, "value", &id));
    cx_hlo_value *value = b->values.v[b->scope + id];
    if (value == NULL) {
      return CX_HLO_BYTES_FAIL(b, at, "value %zu is used before it is defined",
                               id);
    }
    CALX_TRY(cx_hlo_bytes_expand(b, count_parts(&value->type), at));
    CALX_TRY(CX_HLO_PUSH(r->use_stack, (cx_hlo_use){ value, at }));
    CALX_TRY(cx_hlo_push_type(r, &value->type));
  }
  return NULL;
}

// The orders in which n values are used: nothing that a program means.
static calx_status *skip_use_orders(cx_hlo_bytecode *b, cx_hlo_bytes *in,
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

// ---- blocks ----

// arguments ::= count (type location?)* orders?
static calx_status *read_args(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              cx_hlo_block *block, numbers *n)
{
  for (size_t i = 0; i < block->n_args; i++) {
    const char *at = in->at;
    const cx_hlo_loc *ignored = NULL;
    uint64_t v = 0;
    cx_hlo_bytes type = *in;
    bool has_loc = true;
    if (b->version < 4) {
      CALX_TRY(cx_hlo_bytes_type(b, in, &block->args[i].type));
    } else {
      CALX_TRY(cx_hlo_bytes_number(b, &type, &v));
      CALX_TRY(
          cx_hlo_bytes_type_at(b, (size_t)(v >> 1), at, &block->args[i].type));
      in->at = type.at;
      has_loc = v & 1;
    }
    if (has_loc) CALX_TRY(cx_hlo_bytes_loc(b, in, &ignored));
    CALX_TRY(define(b, n, &block->args[i], at));
  }
  cx_hlo_bytes flag;
  if (b->version < 3) return NULL;
  CALX_TRY(cx_hlo_bytes_take(b, in, 1, &flag));
  return *flag.at != 0 ? skip_use_orders(b, in, block->n_args) : NULL;
}

static calx_status *read_op(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                            cx_hlo_block *block, surrounding where, numbers *n);

// block ::= (operations << 1 | has arguments) arguments? operation*
static calx_status *read_block(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               cx_hlo_region *region, surrounding where,
                               numbers *n)
{
  const char *at = in->at;
  uint64_t head = 0;
  size_t n_args = 0;
  CALX_TRY(cx_hlo_bytes_number(b, in, &head));
  if (head & 1) CALX_TRY(cx_hlo_bytes_count(b, in, &n_args));
  cx_hlo_block *block = &b->r->module->others;
  if (region != NULL) block = cx_hlo_block_new(b->r->module, region, n_args);
  if (block == NULL) return cx_out_of_memory();
  if (block->n_args != n_args) {
    return CX_HLO_BYTES_FAIL(b, at, "a module has no arguments");
  }
  if (head & 1) CALX_TRY(read_args(b, in, block, n));
  for (uint64_t i = 0; i < head >> 1; i++) {
    CALX_TRY(read_op(b, in, block, where, n));
  }
  return NULL;
}

// ---- regions ----

// region ::= blocks (values block*)?; NULL: into the module.
static calx_status *read_region(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                cx_hlo_region *region, surrounding where)
{
  const size_t base = b->values.n;
  size_t blocks = 0, count = 0;
  CALX_TRY(cx_hlo_bytes_count(b, in, &blocks));
  if (blocks == 0) return NULL;
  CALX_TRY(cx_hlo_bytes_count(b, in, &count));
  // Each value takes a byte or more of the file, in one region.
  const size_t most = (size_t)(b->r->scan.end - b->r->scan.start);
  if (count > most - b->declared) {
    return CX_HLO_BYTES_FAIL(b, in->at, "more values than the file holds");
  }
  b->declared += count;
  if (!cx_grow(&b->values.v, &b->values.capacity, base + count,
               sizeof *b->values.v)) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < count; i++) b->values.v[base + i] = NULL;
  b->values.n = base + count;
  numbers n = { base, base + count };
  for (size_t i = 0; i < blocks; i++) {
    CALX_TRY(read_block(b, in, region, where, &n));
  }
  b->values.n = base;
  return NULL;
}

// The regions of an operation; those of an isolated one in a section of their
// own.
static calx_status *read_regions(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 cx_hlo_parts *p, surrounding inside)
{
  uint64_t head = 0;
  const size_t scope = b->scope;
  cx_hlo_bytes section = { NULL, NULL };
  CALX_TRY(cx_hlo_bytes_number(b, in, &head));
  const bool in_section = (head & 1) && b->version >= 2;
  if (head & 1) b->scope = b->values.n;
  if (in_section) {
    size_t id = 0;
    CALX_TRY(cx_hlo_bytes_section(b, in, &id, &section));
    if (id != CX_HLO_SECTION_PROGRAM) {
      return CX_HLO_BYTES_FAIL(b, section.at,
                               "regions are in section %d, not %zu",
                               CX_HLO_SECTION_PROGRAM, id);
    }
  }
  cx_hlo_bytes *from = in_section ? &section : in;
  CALX_TRY(cx_hlo_reader_deeper(b->r));
  for (uint64_t i = 0; i < head >> 1; i++) {
    cx_hlo_region *region = NULL;
    if (inside != IN_MODULE) CALX_TRY(cx_hlo_add_region(b->r, p, &region));
    CALX_TRY(read_region(b, from, region, inside));
  }
  cx_hlo_reader_higher(b->r);
  b->scope = scope;
  return NULL;
}

// ---- operations ----

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

// The module's name is its first property.
static calx_status *take_module(cx_hlo_bytecode *b, cx_hlo_bytes properties,
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

static calx_status *take_other(cx_hlo_bytecode *b, const cx_hlo_op_name *name,
                               cx_hlo_bytes properties, const cx_hlo_attr *dict,
                               const char *at)
{
  CALX_TRY(cx_hlo_other_push(b, name->name, properties, at));
  for (size_t i = 0; dict != NULL && i < dict->as.dict.n; i++) {
    CALX_TRY(CX_HLO_PUSH(b->r->named_stack, dict->as.dict.items[i]));
  }
  return NULL;
}

// dictionary? properties?, pushed; those of a module become its own.
static calx_status *read_attrs(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               cx_hlo_op_name *name, unsigned has)
{
  const char *at = in->at;
  const cx_hlo_bytes none = { at, at };
  cx_hlo_bytes_properties *properties = NULL;
  const cx_hlo_attr *dict = NULL;
  size_t i = 0;
  if (has & CX_HLO_HAS_ATTRS) CALX_TRY(cx_hlo_bytes_attr(b, in, &dict));
  if (has & CX_HLO_HAS_PROPERTIES) {
    CALX_TRY(cx_hlo_bytes_index(b, in, b->n_properties, "properties", &i));
    properties = &b->properties[i];
  }
  if (dict != NULL && dict->kind != CX_HLO_ATTR_DICT) {
    return CX_HLO_BYTES_FAIL(b, at, "attributes are a dictionary");
  }
  if (name->is_vhlo) return cx_hlo_vhlo_push(b, name, properties, dict, at);
  const cx_hlo_bytes bytes = properties == NULL ? none : properties->bytes;
  return name->role == CX_HLO_ROLE_MODULE
             ? take_module(b, bytes, dict)
             : take_other(b, name, bytes, dict, at);
}

// Results stand before the operands in the file and behind them on the stack.
static calx_status *read_values(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                unsigned has, cx_hlo_parts *p)
{
  cx_hlo_bytes results = { in->at, in->at };
  size_t n = 0;
  uint64_t ignored = 0;
  if (has & CX_HLO_HAS_RESULTS) {
    CALX_TRY(cx_hlo_bytes_count(b, in, &n));
    results = *in;
    for (size_t i = 0; i < n; i++) {
      CALX_TRY(cx_hlo_bytes_number(b, in, &ignored));
    }
  }
  if (has & CX_HLO_HAS_OPERANDS) CALX_TRY(read_operands(b, in, p));
  for (size_t i = 0; i < n; i++) {
    cx_hlo_any type;
    CALX_TRY(cx_hlo_bytes_type(b, &results, &type));
    CALX_TRY(cx_hlo_push_type(b->r, &type));
  }
  if (has & CX_HLO_HAS_SUCCESSORS) {
    return CX_HLO_BYTES_UNKNOWN(b, in->at,
                                "StableHLO has no branches to blocks");
  }
  return has & CX_HLO_HAS_USE_ORDERS ? skip_use_orders(b, in, n) : NULL;
}

// Between operations of VHLO and of other dialects stand casts from VHLO's
// types to the same builtin ones. Both are one type here, so the results are
// the operands.
static calx_status *pass_cast(cx_hlo_bytecode *b, const cx_hlo_parts *p,
                              numbers *n)
{
  cx_hlo_reader *r = b->r;
  const size_t count = p->n_inputs;
  const cx_hlo_any *types = r->any_stack.v + p->types;
  if (r->any_stack.n - p->types != 2 * count || p->n_regions != 0) {
    return CX_HLO_BYTES_FAIL(b, p->at, "a cast has a result per operand");
  }
  for (size_t i = 0; i < count; i++) {
    if (!cx_hlo_any_equal(&types[i], &types[count + i])) {
      return CX_HLO_BYTES_UNKNOWN(b, p->at, "a cast to another type");
    }
    CALX_TRY(define(b, n, r->use_stack.v[p->uses + i].value, p->at));
  }
  r->use_stack.n = p->uses;
  r->any_stack.n = p->types;
  r->named_stack.n = p->named;
  return NULL;
}

// Makes the operation in `block`, and its values.
static calx_status *make(cx_hlo_bytecode *b, cx_hlo_op_role role,
                         cx_hlo_parts *p, cx_hlo_block *block,
                         surrounding where, numbers *n)
{
  if (where == IN_FILE) {
    return CX_HLO_BYTES_FAIL(b, p->at, "a file holds one module");
  }
  if (role == CX_HLO_ROLE_FUNC) {
    if (where == IN_MODULE) return cx_hlo_make_func(b->r, p);
    return CX_HLO_BYTES_FAIL(b, p->at, "a function inside of an operation");
  }
  if (role == CX_HLO_ROLE_CAST) return pass_cast(b, p, n);
  CALX_TRY(cx_hlo_make_op(b->r, p, block));
  cx_hlo_op *op = block->last;
  for (uint32_t i = 0; i < op->n_results; i++) {
    CALX_TRY(define(b, n, &op->results[i], p->at));
  }
  return NULL;
}

// operation ::= name has location attributes values regions
static calx_status *read_op(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                            cx_hlo_block *block, surrounding where, numbers *n)
{
  cx_hlo_reader *r = b->r;
  cx_hlo_parts p = { .at = in->at,
                     .groups = r->group_stack.n,
                     .uses = r->use_stack.n,
                     .named = r->named_stack.n,
                     .types = r->any_stack.n };
  size_t id = 0;
  cx_hlo_bytes byte;
  CALX_TRY(cx_hlo_bytes_index(b, in, b->n_op_names, "operation", &id));
  CALX_TRY(cx_hlo_bytes_take(b, in, 1, &byte));
  const unsigned has = (unsigned char)*byte.at;
  cx_hlo_op_name *name = &b->op_names[id];
  const bool is_function = name->role == CX_HLO_ROLE_FUNC;
  p.name = name->name;
  p.kind = name->kind;
  if (p.kind == CX_HLO_OP_RETURN && where == IN_FUNCTION) {
    p.kind = CX_HLO_OP_FUNC_RETURN;
  }
  CALX_TRY(cx_hlo_bytes_loc(b, in, &p.loc));
  CALX_TRY(read_attrs(b, in, name, has));
  CALX_TRY(read_values(b, in, has, &p));
  const bool starts = where == IN_FILE && name->role == CX_HLO_ROLE_MODULE;
  if (name->role == CX_HLO_ROLE_MODULE && !starts) {
    return CX_HLO_BYTES_UNKNOWN(b, p.at, "a module inside of a module");
  }
  if (has & CX_HLO_HAS_REGIONS) {
    CALX_TRY(read_regions(b, in, &p,
                          starts        ? IN_MODULE
                          : is_function ? IN_FUNCTION
                                        : IN_OPERATION));
  }
  if (starts) {
    r->module->loc = p.loc;
    return NULL;
  }
  return make(b, name->role, &p, block, where, n);
}

calx_status *cx_hlo_bytes_read_program(cx_hlo_bytecode *b, cx_hlo_bytes program)
{
  numbers none = { 0, 0 };
  return read_block(b, &program, NULL, IN_FILE, &none);
}
