// lower/rounds: how often a loop runs at most, where its condition says so: it
// compares a counter with a constant, alone or together with other conditions.
#include <math.h>

#include "lower/lower.h"
#include "opt/edit.h"

#define DEEPEST 8  // conditions that are combined

static bool is_literal(const cx_hlo_value *v, int64_t *out)
{
  const cx_hlo_elements *e = cpu_opt_literal(v);
  if (e == NULL || v->type.tensor.rank != 0 ||
      (v->type.tensor.elem != CX_HLO_I32 &&
       v->type.tensor.elem != CX_HLO_I64)) {
    return false;
  }
  *out = cx_hlo_elements_int(e, 0);
  return true;
}

// The constant that an iteration adds to variable i; 0: none is known.
static int64_t step_of(const cx_hlo_op *loop, uint32_t i)
{
  const cx_hlo_block *body = loop->regions[1].first;
  const cx_hlo_value *arg = &body->args[i];
  const cx_hlo_op *add =
      cpu_opt_made_by(body->last->operands[i], CX_HLO_OP_ADD);
  if (add == NULL) return 0;
  int64_t step = 0;
  for (int k = 0; k < 2; k++) {
    if (add->operands[k] == arg && is_literal(add->operands[1 - k], &step)) {
      return step;
    }
  }
  return 0;
}

// Of a counter that is below a limit, or (a negative step) above it.
static double rounds_of(const cx_hlo_op *loop, const cx_hlo_op *compare)
{
  const cx_hlo_value *arg = compare->operands[0];
  int64_t first = 0;
  int64_t limit = 0;
  if (arg->op != NULL || arg->block != loop->regions[0].first ||
      !is_literal(loop->operands[arg->index], &first) ||
      !is_literal(compare->operands[1], &limit)) {
    return CPU_LOWER_UNKNOWN_ROUNDS;
  }
  const double step = (double)step_of(loop, arg->index);
  const double way = (double)limit - (double)first;
  const int64_t direction =
      cx_hlo_op_int(compare, CX_HLO_A_COMPARISON_DIRECTION);
  const bool up = direction == CX_HLO_LT || direction == CX_HLO_LE;
  const bool down = direction == CX_HLO_GT || direction == CX_HLO_GE;
  if (!(up && step > 0) && !(down && step < 0)) return CPU_LOWER_UNKNOWN_ROUNDS;
  const bool with_limit = direction == CX_HLO_LE || direction == CX_HLO_GE;
  const double rounds = with_limit ? floor(way / step) + 1 : ceil(way / step);
  return rounds > 0 ? rounds : 0;
}

static double most_rounds(const cx_hlo_op *loop, const cx_hlo_value *condition,
                          int depth)
{
  const cx_hlo_op *op = condition->op;
  if (op == NULL || depth > DEEPEST) return CPU_LOWER_UNKNOWN_ROUNDS;
  if (op->kind == CX_HLO_OP_COMPARE) return rounds_of(loop, op);
  if (op->kind != CX_HLO_OP_AND) return CPU_LOWER_UNKNOWN_ROUNDS;
  const double a = most_rounds(loop, op->operands[0], depth + 1);
  const double b = most_rounds(loop, op->operands[1], depth + 1);
  return a < b ? a : b;
}

double cpu_lower_rounds(const cx_hlo_op *loop)
{
  const cx_hlo_op *end = cx_hlo_terminator(loop->regions[0].first);
  return most_rounds(loop, end->operands[0], 0);
}
