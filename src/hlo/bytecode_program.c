// hlo/bytecode: blocks and regions.
//
// Values have numbers. A region takes as many of them as it defines, behind
// those of the region around it, and gives them back at its end. An isolated
// operation uses none from outside of it, and its numbers begin at 0.
#include "hlo/bytecode_codes.h"
#include "hlo/bytecode_reader.h"

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
    CALX_TRY(cx_hlo_bytes_read_op(b, in, block, where, n));
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
calx_status *cx_hlo_bytes_read_regions(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                       cx_hlo_parts *p,
                                       cx_hlo_surrounding inside)
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

calx_status *cx_hlo_bytes_read_program(cx_hlo_bytecode *b, cx_hlo_bytes program)
{
  cx_hlo_numbers none = { 0, 0 };
  return read_block(b, &program, NULL, CX_HLO_IN_FILE, &none);
}
