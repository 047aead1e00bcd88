// opt/async: replaces async_start and async_done by the operations themselves.
//
// A device runs one step at a time, so nothing is gained by starting early: the
// operations in an async_start move before it, and an async_done is replaced by
// their results. A future that is used otherwise stays; lowering refuses it.
#include "base/alloc.h"
#include "opt/edit.h"
#include "opt/passes.h"

static void unpack(cpu_opt_walk *w, cx_hlo_op *start)
{
  cx_hlo_block *block = start->regions[0].first;
  for (uint32_t i = 0; i < start->n_operands; i++) {
    w->map[block->args[i].number] = start->operands[i];
  }
  cpu_opt_take_block(w, block);
  // They were visited in the region, before its arguments were replaced.
  w->revisit = true;
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  if (op->kind == CX_HLO_OP_ASYNC_START) {
    const cx_hlo_block *block = op->regions[0].first;
    if (block != NULL && block->n_args == op->n_operands &&
        cx_hlo_terminator(block) != NULL) {
      unpack(w, op);
    }
    return NULL;
  }
  if (op->kind != CX_HLO_OP_ASYNC_DONE) return NULL;
  const cx_hlo_op *start =
      cpu_opt_made_by(op->operands[0], CX_HLO_OP_ASYNC_START);
  if (start == NULL) return NULL;
  const cx_hlo_op *end = start->regions[0].first == NULL
                             ? NULL
                             : cx_hlo_terminator(start->regions[0].first);
  if (end != NULL && end->n_operands == op->n_results) {
    cpu_opt_replace_all(w, op, end->operands);
  }
  return NULL;
}

static calx_status *erase_unused(cpu_opt_walk *w, cx_hlo_op *op)
{
  const uint32_t *uses = w->user;
  if (op->kind == CX_HLO_OP_ASYNC_START && uses[op->results[0].number] == 0) {
    cpu_opt_erase(w, op);
  }
  return NULL;
}

static bool is_start(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_ASYNC_START;
}

calx_status *cpu_opt_async(cx_hlo_module *m, bool *changed)
{
  for (cx_hlo_func *f = m->first; f != NULL; f = f->next) {
    if (!cpu_opt_any(f, is_start)) continue;
    CALX_TRY(cpu_opt_walk_func(m, f, visit, NULL, changed));
    uint32_t *uses = cpu_opt_uses(m, f);
    if (uses == NULL) return cx_out_of_memory();
    calx_status *status = cpu_opt_walk_func(m, f, erase_unused, uses, changed);
    cx_free(uses);
    CALX_TRY(status);
  }
  return NULL;
}
