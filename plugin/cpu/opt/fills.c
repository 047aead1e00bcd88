// opt/fills: a large constant that a while begins with, all of whose elements
// are equal, becomes a broadcast. The loop writes over it, so a constant would
// have to be copied for each run and to be kept in the executable; a broadcast
// is written where the variable is. Each variable has its own.
#include "opt/edit.h"
#include "opt/passes.h"

#define LEAST_BYTES 4096

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  if (op->kind != CX_HLO_OP_WHILE) return NULL;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const cx_hlo_type *t = &op->operands[i]->type.tensor;
    const unsigned char *element = cpu_opt_splat(op->operands[i]);
    if (element == NULL || cx_hlo_type_bytes(t) < LEAST_BYTES ||
        cpu_opt_made_by(op->operands[i], CX_HLO_OP_CONSTANT) == NULL) {
      continue;
    }
    const cx_hlo_type scalar = { t->elem, 0, NULL };
    cx_hlo_value *one = cpu_opt_splat_like(&w->b, &scalar, element);
    cx_hlo_value *all =
        cx_hlo_broadcast_in_dim(&w->b, one, t->dims, t->rank, NULL);
    if (all == NULL) return NULL;
    op->operands[i] = all;
    w->changed = true;
  }
  return NULL;
}

calx_status *cpu_opt_fills(cx_hlo_module *m, bool *changed)
{
  return cpu_opt_walk_func(m, cx_hlo_entry(m), visit, NULL, changed);
}
