// opt/relu: x > 0 becomes max(x, 0) > 0 where max(x, 0) is there.
//
// The gradient of relu asks whether its operand is positive. Its result tells
// that too, and is in memory when a product or a convolution reads it. So a
// training step need not keep the operand.
#include "base/alloc.h"
#include "hlo/ops.h"
#include "opt/edit.h"
#include "opt/passes.h"

typedef struct signs {
  cx_hlo_value **relu;  // by number of x: max(x, 0); NULL: not seen
  uint32_t n;
} signs;

static void note_maximum(const signs *k, cx_hlo_op *op)
{
  for (int i = 0; i < 2; i++) {
    const cx_hlo_value *x = op->operands[i];
    if (cpu_opt_is_zero(op->operands[1 - i], false) && x->number < k->n) {
      k->relu[x->number] = &op->results[0];
    }
  }
}

static void replace_compared(cpu_opt_walk *w, cx_hlo_op *op)
{
  const signs *k = w->user;
  const int64_t direction = cx_hlo_op_int(op, CX_HLO_A_COMPARISON_DIRECTION);
  const cx_hlo_attr *type = cx_hlo_op_attr(op, CX_HLO_A_COMPARE_TYPE);
  if ((direction != CX_HLO_GT && direction != CX_HLO_LT) ||
      (type != NULL && type->as.integer == CX_HLO_TOTALORDER)) {
    return;
  }
  const int at = direction == CX_HLO_GT ? 0 : 1;
  const cx_hlo_value *x = op->operands[at];
  if (x->number >= k->n || !cpu_opt_is_number(op->operands[1 - at], 0)) return;
  cx_hlo_value *relu = k->relu[x->number];
  if (relu == NULL || relu->op->block != op->block) return;
  cx_hlo_value *operands[2] = { op->operands[0], op->operands[1] };
  operands[at] = relu;
  cx_hlo_op *r = cpu_opt_begin_like(&w->b, op, operands);
  cx_hlo_build_declare(&w->b, r, 0, &op->results[0].type.tensor);
  cpu_opt_replace(w, op, cx_hlo_build_end(&w->b, r));
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  if (op->n_results != 1 || op->n_operands != 2 ||
      op->operands[0]->type.non_tensor != NULL) {
    return NULL;
  }
  if (!cx_hlo_elem_is_float(op->operands[0]->type.tensor.elem)) return NULL;
  if (op->kind == CX_HLO_OP_MAXIMUM) note_maximum(w->user, op);
  if (op->kind == CX_HLO_OP_COMPARE) replace_compared(w, op);
  return NULL;
}

calx_status *cpu_opt_relu(cx_hlo_module *m, bool *changed)
{
  signs k = { cx_calloc(m->n_values, sizeof *k.relu), m->n_values };
  if (k.relu == NULL) return cx_out_of_memory();
  calx_status *status =
      cpu_opt_walk_func(m, cx_hlo_entry(m), visit, &k, changed);
  cx_free(k.relu);
  return status;
}
