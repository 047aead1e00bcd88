// lower/views: takes out of loops what needs no loop, because its result is
// memory that is there already, under another shape.
#include "lower/lower.h"

// A transpose that moves only dimensions of size 1 keeps the elements' order.
static bool keeps_order(const cx_hlo_op *op)
{
  cx_hlo_ints p = cx_hlo_op_ints(op, CX_HLO_A_PERMUTATION);
  const cx_hlo_type *in = &op->operands[0]->type.tensor;
  int64_t last = -1;
  for (size_t i = 0; i < p.n; i++) {
    if (in->dims[p.v[i]] == 1) continue;
    if (p.v[i] < last) return false;
    last = p.v[i];
  }
  return true;
}

static bool adds_only_ones(const cx_hlo_op *op)
{
  const cx_hlo_type *in = &op->operands[0]->type.tensor;
  const cx_hlo_type *out = &op->results[0].type.tensor;
  if (cx_hlo_type_elements(in) != cx_hlo_type_elements(out)) return false;
  cx_hlo_ints at = cx_hlo_op_ints(op, CX_HLO_A_BROADCAST_DIMENSIONS);
  int64_t last = -1;
  for (size_t i = 0; i < at.n; i++) {
    if (in->dims[i] == 1) continue;
    if (at.v[i] < last || out->dims[at.v[i]] != in->dims[i]) return false;
    last = at.v[i];
  }
  return true;
}

static bool is_of_whole_bytes(const cx_hlo_value *v)
{
  return cx_hlo_elem_bits(v->type.tensor.elem) % 8 == 0;
}

static bool is_view(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_RESHAPE: return true;
    case CX_HLO_OP_TRANSPOSE: return keeps_order(op);
    case CX_HLO_OP_BROADCAST_IN_DIM: return adds_only_ones(op);
    case CX_HLO_OP_BITCAST_CONVERT:
      return is_of_whole_bytes(op->operands[0]) &&
             is_of_whole_bytes(&op->results[0]);
    default: return false;
  }
}

static cpu_lower_value *result_info(const cpu_lower_state *c,
                                    const cx_hlo_op *op)
{
  return cpu_lower_info(c, &op->results[0]);
}

// Views of what the loop reads from memory.
static void drop_leading(cpu_lower_state *c, cpu_lower_group *g)
{
  size_t n = 0;
  for (size_t i = 0; i < g->n_ops; i++) {
    cx_hlo_op *op = g->ops[i];
    if (op != g->root && is_view(op) &&
        !cpu_lower_is_among(g->ops, n, op->operands[0]->op) &&
        !cpu_lower_is_constant(op->operands[0])) {
      cpu_lower_value *info = result_info(c, op);
      info->alias = op->operands[0];
      if (info->producer == g) info->producer = NULL;
    } else {
      g->ops[n++] = op;
    }
  }
  g->n_ops = n;
}

// Views of what the loop writes, where it writes one value.
static void drop_trailing(cpu_lower_state *c, cpu_lower_group *g)
{
  while (g->root == NULL && g->n_ops > 0) {
    const cx_hlo_op *last = g->ops[g->n_ops - 1];
    size_t n_written = 0;
    for (size_t i = 0; i < g->n_ops; i++) {
      if (result_info(c, g->ops[i])->producer == g) n_written++;
    }
    cpu_lower_value *info = result_info(c, last);
    if (n_written != 1 || info->producer != g || !is_view(last) ||
        !cpu_lower_is_among(g->ops, g->n_ops, last->operands[0]->op) ||
        last->operands[0]->op->n_results != 1) {
      return;
    }
    info->alias = last->operands[0];
    info->producer = NULL;
    cpu_lower_info(c, last->operands[0])->producer = g;
    g->n_ops--;
  }
}

// Nothing of it is left, or another group writes its only value.
static bool is_idle(const cpu_lower_state *c, const cpu_lower_group *g)
{
  for (size_t i = 0; i < g->n_ops; i++) {
    const cx_hlo_op *op = g->ops[i];
    for (uint32_t r = 0; r < op->n_results; r++) {
      if (cpu_lower_info(c, &op->results[r])->producer == g) return false;
    }
  }
  return g->kind == CPU_LOWER_GROUP_LOOP;
}

// By position in the block.
static void sort_ops(const cpu_lower_state *c, cpu_lower_group *g)
{
  for (size_t i = 1; i < g->n_ops; i++) {
    cx_hlo_op *op = g->ops[i];
    const uint32_t position = result_info(c, op)->position;
    size_t k = i;
    for (; k > 0 && result_info(c, g->ops[k - 1])->position > position; k--) {
      g->ops[k] = g->ops[k - 1];
    }
    g->ops[k] = op;
  }
}

calx_status *cpu_lower_views(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  // The last group comes first in the block; a view of a view is memory only
  // once the first one is.
  for (size_t i = schedule->n_groups; i > 0; i--) {
    cpu_lower_group *g = schedule->groups[i - 1];
    if (g->kind != CPU_LOWER_GROUP_LOOP) continue;
    sort_ops(c, g);
    drop_leading(c, g);
    drop_trailing(c, g);
  }
  size_t n = 0;
  for (size_t i = 0; i < schedule->n_groups; i++) {
    cpu_lower_group *g = schedule->groups[i];
    if (is_idle(c, g)) continue;
    schedule->groups[n++] = g;
    if (g->kind != CPU_LOWER_GROUP_CONTROL) continue;
    for (uint32_t r = 0; r < g->ops[0]->n_regions; r++) {
      CALX_TRY(cpu_lower_views(c, &g->regions[r]));
    }
  }
  schedule->n_groups = n;
  return NULL;
}
