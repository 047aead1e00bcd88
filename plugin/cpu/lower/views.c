// lower/views: what needs no loop because it is memory that is there already,
// under another shape; and the inputs and outputs of loops.
#include <string.h>

#include "lower/plan.h"

static bool order_kept(const cx_hlo_op *op)
{
  // A transpose that moves only sizes of 1 leaves the elements where they are.
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

static bool only_ones(const cx_hlo_op *op)
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

static bool same_bits(const cx_hlo_op *op)
{
  cx_hlo_elem from = op->operands[0]->type.tensor.elem;
  cx_hlo_elem to = op->results[0].type.tensor.elem;
  return cx_hlo_elem_bits(from) % 8 == 0 && cx_hlo_elem_bits(to) % 8 == 0;
}

static bool is_view(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_RESHAPE: return true;
    case CX_HLO_OP_TRANSPOSE: return order_kept(op);
    case CX_HLO_OP_BROADCAST_IN_DIM: return only_ones(op);
    case CX_HLO_OP_BITCAST_CONVERT: return same_bits(op);
    default: return false;
  }
}

static bool holds(const cpu_lower_unit *u, const cx_hlo_op *op)
{
  for (size_t i = 0; i < u->n_ops; i++) {
    if (u->ops[i] == op) return true;
  }
  return false;
}

static bool computes(const cpu_lower_unit *u, const cx_hlo_value *v)
{
  return v->op != NULL && holds(u, v->op);
}

// An operation that reads memory only to give it another shape goes: its result
// is that memory.
static void drop_leading(cpu_lower_planner *g, cpu_lower_unit *u)
{
  size_t n = 0;
  for (size_t i = 0; i < u->n_ops; i++) {
    cx_hlo_op *op = u->ops[i];
    bool in_unit = false;
    for (size_t k = 0; k < n && op->n_operands > 0; k++) {
      if (u->ops[k] == op->operands[0]->op) in_unit = true;
    }
    if (op != u->hero && is_view(op) && !in_unit &&
        !cpu_lower_is_constant(op->operands[0])) {
      cpu_lower_value_info *info = cx_graph_value(g, &op->results[0]);
      info->alias = op->operands[0];
      if (info->home == u) info->home = NULL;
    } else {
      u->ops[n++] = op;
    }
  }
  u->n_ops = n;
}

// The same at the other end, where a loop writes one value.
static void drop_trailing(cpu_lower_planner *g, cpu_lower_unit *u)
{
  for (;;) {
    cx_hlo_op *only = NULL;
    size_t n = 0;
    for (size_t i = 0; i < u->n_ops; i++) {
      if (cx_graph_value(g, &u->ops[i]->results[0])->home == u) {
        only = u->ops[i];
        n++;
      }
    }
    if (n != 1 || only != u->ops[u->n_ops - 1] || !is_view(only) ||
        only == u->hero || u->hero != NULL || !computes(u, only->operands[0]) ||
        only->operands[0]->op->n_results != 1) {
      return;
    }
    cpu_lower_value_info *info = cx_graph_value(g, &only->results[0]);
    info->alias = only->operands[0];
    info->home = NULL;
    cx_graph_value(g, only->operands[0])->home = u;
    u->n_ops--;
  }
}

// Nothing of it is left, or another unit came to write its only value.
static bool is_idle(const cpu_lower_planner *g, const cpu_lower_unit *u)
{
  for (size_t i = 0; i < u->n_ops; i++) {
    const cx_hlo_op *op = u->ops[i];
    for (uint32_t r = 0; r < op->n_results; r++) {
      if (cx_graph_value(g, &op->results[r])->home == u) return false;
    }
  }
  return u->kind == CPU_LOWER_UNIT_CODE;
}

// ---- order within a unit ----

static uint32_t place_of(const cpu_lower_planner *g, const cx_hlo_op *op)
{
  return cx_graph_value(g, &op->results[0])->op;
}

static void sort_ops(const cpu_lower_planner *g, cpu_lower_unit *u)
{
  for (size_t i = 1; i < u->n_ops; i++) {
    cx_hlo_op *op = u->ops[i];
    size_t k = i;
    for (; k > 0 && place_of(g, u->ops[k - 1]) > place_of(g, op); k--) {
      u->ops[k] = u->ops[k - 1];
    }
    u->ops[k] = op;
  }
}

// ---- inputs and outputs ----

static bool push_once(cpu_lower_compilation *l, cx_hlo_value ***list, size_t *n,
                      size_t *room, cx_hlo_value *v)
{
  for (size_t i = 0; i < *n; i++) {
    if ((*list)[i] == v) return true;
  }
  return cpu_lower_push(l, list, n, room, v);
}

static bool is_splat(const cx_hlo_value *v)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(v->op, CX_HLO_A_VALUE);
  return attr != NULL && attr->kind == CX_HLO_ATTR_ELEMENTS &&
         (attr->as.elements.splat ||
          cx_hlo_type_elements(&v->type.tensor) == 1);
}

// Constants that are one number are computed with; others are read.
static bool add_input(cpu_lower_planner *g, cpu_lower_unit *u,
                      const cx_hlo_op *op, uint32_t operand,
                      cx_hlo_op ***constants, size_t *n, size_t *room)
{
  cx_hlo_value *v = op->operands[operand];
  if (computes(u, v)) return true;
  if (u->kind == CPU_LOWER_UNIT_CODE && cpu_lower_is_constant(v) &&
      is_splat(v) &&
      (cpu_jit_fuses(op, operand) ||
       cx_hlo_type_elements(&v->type.tensor) == 1)) {
    for (size_t i = 0; i < *n; i++) {
      if ((*constants)[i] == v->op) return true;
    }
    return cpu_lower_push(g->l, constants, n, room, v->op);
  }
  // A collective takes its operands by their order.
  return u->kind == CPU_LOWER_UNIT_COLLECTIVE
             ? cpu_lower_push(g->l, &u->inputs, &u->n_inputs, &u->inputs_room,
                              v)
             : push_once(g->l, &u->inputs, &u->n_inputs, &u->inputs_room, v);
}

static calx_status *list_buffers(cpu_lower_planner *g, cpu_lower_unit *u)
{
  cx_hlo_op **constants = NULL;
  size_t n = 0, room = 0;
  u->outputs = NULL;
  for (size_t i = 0; i < u->n_ops; i++) {
    cx_hlo_op *op = u->ops[i];
    for (uint32_t k = 0; k < op->n_operands; k++) {
      if (!add_input(g, u, op, k, &constants, &n, &room)) {
        return cx_out_of_memory();
      }
    }
    for (uint32_t r = 0; r < op->n_results; r++) {
      if (cx_graph_value(g, &op->results[r])->home == u &&
          !cpu_lower_push(g->l, &u->outputs, &u->n_outputs, &u->outputs_room,
                          &op->results[r])) {
        return cx_out_of_memory();
      }
    }
  }
  if (n == 0) return NULL;
  cx_hlo_op **ops = CX_ARENA_ARRAY(&g->l->arena, cx_hlo_op *, n + u->n_ops);
  if (ops == NULL) return cx_out_of_memory();
  memcpy(ops, constants, n * sizeof *ops);
  memcpy(ops + n, u->ops, u->n_ops * sizeof *ops);
  u->ops = ops;
  u->n_ops += n;
  return NULL;
}

calx_status *cpu_lower_views(cpu_lower_planner *g, cpu_lower_schedule *plan)
{
  // Earlier units first: a view of a view is memory only once the first is.
  for (size_t i = plan->n_units; i > 0; i--) {
    cpu_lower_unit *u = plan->units[i - 1];
    if (u->kind != CPU_LOWER_UNIT_CODE) continue;
    sort_ops(g, u);
    drop_leading(g, u);
    drop_trailing(g, u);
  }
  size_t n = 0;
  for (size_t i = 0; i < plan->n_units; i++) {
    cpu_lower_unit *u = plan->units[i];
    if (!is_idle(g, u)) plan->units[n++] = u;
  }
  plan->n_units = n;
  for (size_t i = 0; i < plan->n_units; i++) {
    cpu_lower_unit *u = plan->units[i];
    if (u->kind == CPU_LOWER_UNIT_CONTROL) {
      for (uint32_t r = 0; r < u->ops[0]->n_regions; r++) {
        CALX_TRY(cpu_lower_views(g, &u->regions[r]));
      }
    } else {
      CALX_TRY(list_buffers(g, u));
    }
  }
  return NULL;
}
