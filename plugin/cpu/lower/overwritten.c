// lower/overwritten: initial values of loops that nothing reads.
//
// A loop that collects a row an iteration begins with a tensor of zeros, and
// writes over all of it. Such a tensor needs memory, but not its zeros.
#include "lower/lower.h"
#include "opt/loops.h"

// The uses of the two values in the loop and, for the body's argument, of the
// condition's too.
static size_t count_uses(const cx_hlo_op *loop, uint32_t variable,
                         const cx_hlo_value *next)
{
  const cx_hlo_value *seen = &loop->regions[0].first->args[variable];
  const cx_hlo_value *arg = &loop->regions[1].first->args[variable];
  size_t n = 0;
  for (const cx_hlo_op *op = cpu_opt_inner(loop); op != loop;
       op = cpu_opt_next(op)) {
    for (uint32_t k = 0; k < op->n_operands; k++) {
      const cx_hlo_value *v = op->operands[k];
      if (v == seen || v == arg || v == next) n++;
    }
  }
  return n;
}

const cx_hlo_op *cpu_lower_written_row(const cx_hlo_op *loop, uint32_t variable)
{
  const cx_hlo_op *update = cpu_opt_loop_update(loop, variable);
  // The update reads the argument, and the terminator what it made.
  return update != NULL && count_uses(loop, variable, &update->results[0]) == 2
             ? update
             : NULL;
}

static bool writes_all_rows(const cx_hlo_op *loop, uint32_t variable)
{
  const cpu_opt_loop_count c = cpu_opt_loop_count_of(loop);
  const cx_hlo_op *update = cpu_lower_written_row(loop, variable);
  return c.n > 0 && update != NULL &&
         update->operands[0]->type.tensor.dims[0] == c.n &&
         cpu_opt_loop_permutes(&c, update->operands[2]);
}

bool cpu_lower_is_overwritten(const cpu_lower_state *c,
                              const cpu_lower_group *g)
{
  if (g->kind != CPU_LOWER_GROUP_LOOP || g->n_outputs != 1) return false;
  const cx_hlo_op *fill = g->outputs[0]->op;
  const cpu_lower_use_list *uses = &g->schedule->uses;
  if (fill == NULL || fill->kind != CX_HLO_OP_BROADCAST_IN_DIM ||
      cpu_opt_splat(g->outputs[0]) == NULL) {
    return false;
  }
  const uint32_t i = cpu_lower_info(c, g->outputs[0])->position;
  if (uses->first[i + 1] - uses->first[i] != 1) return false;
  const cpu_lower_use *use = &uses->uses[uses->first[i]];
  const cx_hlo_op *loop = uses->ops[use->user];
  return use->operand >= 0 && loop->kind == CX_HLO_OP_WHILE &&
         writes_all_rows(loop, (uint32_t)use->operand);
}
