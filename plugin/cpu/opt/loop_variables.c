// opt/loop_variables: variables of a while that collect the same rows at the
// same indices, from the same beginning, become one.
//
// They are equal in each iteration: both begin with the same value, and the
// same update is all that the body does to each. Automatic differentiation
// keeps a value once for each of its uses, and products that left the loop
// (loop_products.c) keep factors that may be kept already. The variable that
// nothing uses any more is removed by the pass "loops".
#include "opt/loops.h"
#include "opt/passes.h"

static bool are_equal(const cx_hlo_op *loop, uint32_t i, const cx_hlo_op *x,
                      uint32_t j, const cx_hlo_op *y)
{
  if (loop->operands[i] != loop->operands[j] ||
      x->n_operands != y->n_operands) {
    return false;
  }
  for (uint32_t k = 1; k < x->n_operands; k++) {
    if (x->operands[k] != y->operands[k]) return false;
  }
  return true;
}

// Uses of one of the loop's arguments become uses of another one. An update of
// the old variable becomes one of the kept: nothing returns it any more.
static void exchange(cx_hlo_op *loop, uint32_t from, uint32_t to)
{
  for (cx_hlo_op *op = cpu_opt_inner(loop); op != loop; op = cpu_opt_next(op)) {
    for (uint32_t k = 0; k < op->n_operands; k++) {
      for (int r = 0; r < 2; r++) {
        cx_hlo_value *args = loop->regions[r].first->args;
        if (op->operands[k] == &args[from]) op->operands[k] = &args[to];
      }
    }
  }
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *loop)
{
  if (loop->kind != CX_HLO_OP_WHILE) return NULL;
  cx_hlo_op *end = loop->regions[1].first->last;
  for (uint32_t j = 1; j < loop->n_operands; j++) {
    const cx_hlo_op *y = cpu_opt_loop_update(loop, j);
    const cx_hlo_value *result = &loop->results[j];
    for (uint32_t i = 0; i < j && y != NULL; i++) {
      const cx_hlo_op *x = cpu_opt_loop_update(loop, i);
      if (x == NULL || !are_equal(loop, i, x, j, y) ||
          result->number >= w->map_size || w->map[result->number] != NULL) {
        continue;
      }
      exchange(loop, j, i);
      // Unchanged from now on, and so removed.
      end->operands[j] = &loop->regions[1].first->args[j];
      w->map[result->number] = &loop->results[i];
      w->changed = true;
      break;
    }
  }
  return NULL;
}

calx_status *cpu_opt_loop_variables(cx_hlo_module *m, bool *changed)
{
  cx_hlo_func *f = cx_hlo_entry(m);
  return cpu_opt_any(f, cpu_opt_is_loop)
             ? cpu_opt_walk_func(m, f, visit, NULL, changed)
             : NULL;
}
