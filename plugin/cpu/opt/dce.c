// opt/dce: removes operations that nothing uses.
//
// One walk backward: the operands of an operation are marked before the
// operations that produce them are visited. An operation stays, with its
// regions, if one of its results is needed or if it has a side effect. Unused
// results of a while are removed by the loops pass.
#include "base/alloc.h"
#include "opt/edit.h"
#include "opt/passes.h"

static bool is_end(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_RETURN || op->kind == CX_HLO_OP_FUNC_RETURN;
}

static bool is_needed(const cx_hlo_op *op, const unsigned char *needed)
{
  if (is_end(op)) return true;
  for (uint32_t i = 0; i < op->n_results; i++) {
    if (needed[op->results[i].number]) return true;
  }
  return !cpu_opt_pure(op);
}

// The last operation of the last region that has one, among the first
// `regions`; NULL: none.
static cx_hlo_op *last_inside(const cx_hlo_op *op, size_t regions)
{
  for (size_t r = regions; r-- > 0;) {
    const cx_hlo_block *block = op->regions[r].first;
    if (block != NULL && block->last != NULL) return block->last;
  }
  return NULL;
}

// The next operation of the backward walk, which visits an operation before its
// regions.
static cx_hlo_op *step_out(cx_hlo_op *op)
{
  while (op->previous == NULL) {
    const cx_hlo_region *region = op->block->region;
    cx_hlo_op *parent = region->op;
    if (parent == NULL) return NULL;
    cx_hlo_op *inner = last_inside(parent, (size_t)(region - parent->regions));
    if (inner != NULL) return inner;
    op = parent;
  }
  return op->previous;
}

calx_status *cpu_opt_dce(cx_hlo_module *m, bool *changed)
{
  cx_hlo_func *f = cx_hlo_entry(m);
  unsigned char *needed = cx_calloc((size_t)m->n_values + 1, 1);
  if (needed == NULL) return cx_out_of_memory();
  cx_hlo_op *op = f->body.first->last;
  while (op != NULL) {
    cx_hlo_op *before = NULL;
    if (is_needed(op, needed)) {
      for (uint32_t i = 0; i < op->n_operands; i++) {
        needed[op->operands[i]->number] = 1;
      }
      before = last_inside(op, op->n_regions);
      if (before == NULL) before = step_out(op);
    } else {
      before = step_out(op);
      cpu_opt_unlink(op);
      *changed = true;
    }
    op = before;
  }
  cx_free(needed);
  return NULL;
}
