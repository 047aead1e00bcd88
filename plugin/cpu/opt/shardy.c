// opt/shardy: a program for one partition, without what it says to a
// partitioner.
//
// There a sharding constraint is its operand, and so is the cast around it that
// bytecode has between VHLO's types and the others'. The verifier does not know
// these operations, so this runs before it and relies on nothing but links.
#include "opt/shardy.h"

#include "opt/edit.h"

static bool is_identity(const cx_hlo_op *op)
{
  static const char *const names[] = { "sdy.sharding_constraint", "sdy.reshard",
                                       "builtin.unrealized_conversion_cast" };
  if (op == NULL || op->kind != CX_HLO_OP_OTHER || op->n_operands != 1 ||
      op->n_results != 1 || op->n_regions != 0 ||
      !cx_hlo_any_equal(&op->operands[0]->type, &op->results[0].type)) {
    return false;
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (cx_hlo_str_equal(op->name, names[i])) return true;
  }
  return false;
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
