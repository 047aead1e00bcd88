// hlo/bytecode: operations, blocks and regions.
//
// Values have numbers. A region takes as many of them as it defines, behind
// those of the region around it, and gives them back at its end. An isolated
// operation uses none from outside of it, and its numbers begin at 0.
#include "hlo/bytecode_codes.h"
#include "hlo/bytecode_reader.h"

// ---- blocks ----

// arguments ::= count (type location?)* orders?
static calx_status *read_args(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              cx_hlo_block *block, cx_hlo_numbers *n)
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
    CALX_TRY(cx_hlo_bytes_define(b, n, &block->args[i], at));
  }
  cx_hlo_bytes flag;
  if (b->version < 3) return NULL;
  CALX_TRY(cx_hlo_bytes_take(b, in, 1, &flag));
  return *flag.at != 0 ? cx_hlo_bytes_skip_orders(b, in, block->n_args) : NULL;
}

static calx_status *read_op(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                            cx_hlo_block *block, cx_hlo_surrounding where,
                            cx_hlo_numbers *n);

// block ::= (operations << 1 | has arguments) arguments? operation*
static calx_status *read_block(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               cx_hlo_region *region, cx_hlo_surrounding where,
                               cx_hlo_numbers *n)
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
                                cx_hlo_region *region, cx_hlo_surrounding where)
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
  for (size_t i = 0; i < count; i++) {
    b->values.v[base + i] = (cx_hlo_numbered){ NULL, 0 };
  }
  b->values.n = base + count;
  cx_hlo_numbers n = { base, base + count };
  for (size_t i = 0; i < blocks; i++) {
    CALX_TRY(read_block(b, in, region, where, &n));
  }
  b->values.n = base;
  return NULL;
}

// The regions of an operation; those of an isolated one in a section of their
// own.
static calx_status *read_regions(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 cx_hlo_parts *p, cx_hlo_surrounding inside)
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
    if (inside != CX_HLO_IN_MODULE)
      CALX_TRY(cx_hlo_add_region(b->r, p, &region));
    CALX_TRY(read_region(b, from, region, inside));
  }
  cx_hlo_reader_higher(b->r);
  b->scope = scope;
  return NULL;
}

// ---- operations ----

// The module's own operation, whose regions are those of the file.
static calx_status *start_module(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 unsigned has, cx_hlo_draft *d,
                                 cx_hlo_surrounding where)
{
  const cx_hlo_bytes none = { d->p.at, d->p.at };
  if (where != CX_HLO_IN_FILE) {
    return CX_HLO_BYTES_UNKNOWN(b, d->p.at, "a module inside of a module");
  }
  b->r->module->loc = d->p.loc;
  CALX_TRY(cx_hlo_bytes_take_module(
      b, d->properties == NULL ? none : d->properties->bytes, d->dict));
  if (!(has & CX_HLO_HAS_REGIONS)) return NULL;
  return read_regions(b, in, &d->p, CX_HLO_IN_MODULE);
}

// Field by field: zeroing all at once costs as much as reading an operation.
static void start(cx_hlo_draft *d, const cx_hlo_reader *r,
                  const cx_hlo_bytes *in)
{
  cx_hlo_parts *p = &d->p;
  p->at = in->at;
  p->groups = r->group_stack.n;
  p->uses = r->use_stack.n;
  p->named = r->named_stack.n;
  p->types = r->any_stack.n;
  p->n_inputs = p->n_regions = d->n_results = 0;
  p->regions = p->last_region = NULL;
  p->loc = NULL;
  d->dict = NULL;
  d->op = NULL;
  d->properties = NULL;
  d->results.at = in->at;
  d->results.end = in->end;
}

// operation ::= name has location attributes values regions
static calx_status *read_op(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                            cx_hlo_block *block, cx_hlo_surrounding where,
                            cx_hlo_numbers *n)
{
  cx_hlo_draft d;
  start(&d, b->r, in);
  size_t id = 0;
  CALX_TRY(cx_hlo_bytes_index(b, in, b->n_op_names, "operation", &id));
  if (in->at == in->end) {
    return CX_HLO_BYTES_FAIL(b, in->at, "the file ends in an operation");
  }
  const unsigned has = (unsigned char)*in->at++;
  d.name = &b->op_names[id];
  d.p.name = d.name->name;
  d.p.kind = d.name->kind;
  if (d.p.kind == CX_HLO_OP_RETURN && where == CX_HLO_IN_FUNCTION) {
    d.p.kind = CX_HLO_OP_FUNC_RETURN;
  }
  CALX_TRY(cx_hlo_bytes_loc(b, in, &d.p.loc));
  CALX_TRY(cx_hlo_bytes_read_attrs(b, in, has, &d));
  CALX_TRY(cx_hlo_bytes_read_values(b, in, has, &d));
  if (d.name->role == CX_HLO_ROLE_MODULE) {
    return start_module(b, in, has, &d, where);
  }
  if (has & CX_HLO_HAS_REGIONS) {
    const bool is_function = d.name->role == CX_HLO_ROLE_FUNC;
    CALX_TRY(read_regions(
        b, in, &d.p, is_function ? CX_HLO_IN_FUNCTION : CX_HLO_IN_OPERATION));
  }
  return cx_hlo_bytes_make(b, &d, block, where, n);
}

calx_status *cx_hlo_bytes_read_program(cx_hlo_bytecode *b, cx_hlo_bytes program)
{
  cx_hlo_numbers none = { 0, 0 };
  return read_block(b, &program, NULL, CX_HLO_IN_FILE, &none);
}
