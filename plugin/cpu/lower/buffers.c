// lower/buffers: the values that each group reads from memory, and those that
// it writes there.
#include <string.h>

#include "lower/lower.h"

static bool is_scalar(const cx_hlo_value *v)
{
  return cx_hlo_type_elements(&v->type.tensor) == 1;
}

// Whether the loop has the constant as a number in its code: one that is equal
// in all elements.
static bool is_immediate(const cpu_lower_group *g, const cx_hlo_op *user,
                         uint32_t operand)
{
  const cx_hlo_value *v = user->operands[operand];
  if (g->kind != CPU_LOWER_GROUP_LOOP || !cpu_lower_is_constant(v)) {
    return false;
  }
  const cx_hlo_attr *attr = cx_hlo_op_attr(v->op, CX_HLO_A_VALUE);
  return attr != NULL && attr->kind == CX_HLO_ATTR_ELEMENTS &&
         (is_scalar(v) ||
          (attr->as.elements.splat && cpu_jit_fuses(user, operand)));
}

static calx_status *push_once(cpu_lower_state *c, void *list, size_t *n,
                              size_t *room, void *item)
{
  void **items = *(void ***)list;
  for (size_t i = 0; i < *n; i++) {
    if (items[i] == item) return NULL;
  }
  return cpu_lower_push(c, list, n, room, item);
}

// Lists the inputs, and adds the immediate constants to the group.
static calx_status *list_inputs(cpu_lower_state *c, cpu_lower_group *g)
{
  cx_hlo_op **ops = NULL;  // the constants, then the group's
  size_t n = 0, room = 0;
  for (size_t i = 0; i < g->n_ops; i++) {
    const cx_hlo_op *op = g->ops[i];
    for (uint32_t k = 0; k < op->n_operands; k++) {
      cx_hlo_value *v = op->operands[k];
      if (v->op != NULL && cpu_lower_is_among(g->ops, g->n_ops, v->op)) {
        continue;
      }
      if (g->desc != NULL && !cpu_kernel_reads(g->desc, k)) continue;
      if (is_immediate(g, op, k)) {
        CALX_TRY(push_once(c, &ops, &n, &room, v->op));
      } else if (g->kind == CPU_LOWER_GROUP_COLLECTIVE) {
        // It takes its operands by number, so an equal one counts twice.
        CALX_TRY(
            cpu_lower_push(c, &g->inputs, &g->n_inputs, &g->inputs_room, v));
      } else {
        CALX_TRY(push_once(c, &g->inputs, &g->n_inputs, &g->inputs_room, v));
      }
    }
  }
  if (n == 0) return NULL;
  for (size_t i = 0; i < g->n_ops; i++) {
    CALX_TRY(cpu_lower_push(c, &ops, &n, &room, g->ops[i]));
  }
  g->ops = ops;
  g->n_ops = n;
  return NULL;
}

static calx_status *list_buffers(cpu_lower_state *c, void *user,
                                 cpu_lower_group *g)
{
  (void)user;
  for (size_t i = 0; i < g->n_ops; i++) {
    cx_hlo_op *op = g->ops[i];
    for (uint32_t r = 0; r < op->n_results; r++) {
      if (cpu_lower_info(c, &op->results[r])->producer != g) continue;
      CALX_TRY(cpu_lower_push(c, &g->outputs, &g->n_outputs, &g->outputs_room,
                              &op->results[r]));
    }
  }
  // What control flow reads depends on its regions.
  return g->kind == CPU_LOWER_GROUP_CONTROL ? NULL : list_inputs(c, g);
}

calx_status *cpu_lower_buffers(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  return cpu_lower_each_group(c, schedule, list_buffers, NULL);
}
