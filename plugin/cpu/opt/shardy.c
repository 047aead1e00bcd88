// opt/shardy: a program for one partition, without what it says to a
// partitioner.
//
// A sharding constraint is its operand there. So is a cast between VHLO's types
// and the others', which only text has: the bytecode reader drops it. This runs
// before the verifier, so it relies on nothing but links.
#include "opt/shardy.h"

#include "opt/edit.h"
#include "spmd/spmd.h"

static bool is_identity(const cx_hlo_op *op)
{
  return op != NULL && op->kind == CX_HLO_OP_OTHER && op->n_operands == 1 &&
         op->n_results == 1 && op->n_regions == 0 &&
         cx_hlo_any_equal(&op->operands[0]->type, &op->results[0].type) &&
         cx_spmd_is_identity(op);
}

// The value that v is. The bound is for values that are their own operands,
// which only a program has that is not verified.
static cx_hlo_value *behind(const cx_hlo_module *m, cx_hlo_value *v)
{
  for (uint32_t i = 0; i < m->n_values && is_identity(v->op); i++) {
    v = v->op->operands[0];
  }
  return v;
}

void cpu_opt_shardy_drop(cx_hlo_module *m)
{
  for (cx_hlo_func *f = m->first; f != NULL; f = f->next) {
    cx_hlo_op *first = cpu_opt_first(f->body.first);
    for (cx_hlo_op *op = first; op != NULL; op = cpu_opt_next(op)) {
      for (uint32_t i = 0; i < op->n_operands; i++) {
        op->operands[i] = behind(m, op->operands[i]);
      }
    }
    cx_hlo_op *next = NULL;
    for (cx_hlo_op *op = first; op != NULL; op = next) {
      next = cpu_opt_next(op);
      if (is_identity(op)) cpu_opt_unlink(op);
    }
  }
}
