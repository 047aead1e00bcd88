// opt/attention_axes: which dimension of a tensor is which of an attention.
#include <string.h>

#include "opt/attention.h"

bool cpu_opt_axes_reshape(const cx_hlo_type *from, const cpu_opt_axes *axes,
                          const cx_hlo_type *to, cpu_opt_axes *out)
{
  if (to->rank > CPU_OPT_AXIS_RANK) return false;
  size_t i = 0;
  for (size_t k = 0; k < to->rank; k++) {
    out->of[k] = CPU_OPT_AXIS_ONE;
    if (to->dims[k] == 1) continue;
    while (i < from->rank && from->dims[i] == 1) i++;
    if (i == from->rank || from->dims[i] != to->dims[k]) return false;
    out->of[k] = axes->of[i++];
  }
  while (i < from->rank && from->dims[i] == 1) i++;
  return i == from->rank;
}

bool cpu_opt_axes_move(const cx_hlo_op *op, const cpu_opt_axes *axes,
                       cpu_opt_axes *out)
{
  const cx_hlo_type *from = &op->operands[0]->type.tensor;
  const cx_hlo_type *to = &op->results[0].type.tensor;
  if (to->rank > CPU_OPT_AXIS_RANK) return false;
  if (op->kind == CX_HLO_OP_RESHAPE) {
    return cpu_opt_axes_reshape(from, axes, to, out);
  }
  if (op->kind == CX_HLO_OP_TRANSPOSE) {
    const cx_hlo_ints p = cx_hlo_op_ints(op, CX_HLO_A_PERMUTATION);
    for (size_t i = 0; i < p.n; i++) out->of[i] = axes->of[p.v[i]];
    return true;
  }
  const cx_hlo_ints at = cx_hlo_op_ints(op, CX_HLO_A_BROADCAST_DIMENSIONS);
  for (size_t k = 0; k < to->rank; k++) {
    out->of[k] = to->dims[k] == 1 ? CPU_OPT_AXIS_ONE : CPU_OPT_AXIS_ANY;
  }
  for (size_t i = 0; i < at.n; i++) {
    if (from->dims[i] != 1) out->of[at.v[i]] = axes->of[i];
  }
  return true;
}

bool cpu_opt_axes_merge(size_t rank, const cpu_opt_axes *a,
                        const cpu_opt_axes *b, cpu_opt_axes *out)
{
  for (size_t i = 0; i < rank; i++) {
    if (a->of[i] != b->of[i] && a->of[i] != CPU_OPT_AXIS_ANY &&
        b->of[i] != CPU_OPT_AXIS_ANY) {
      return false;
    }
    out->of[i] = a->of[i] == CPU_OPT_AXIS_ANY ? b->of[i] : a->of[i];
  }
  return true;
}

// From the axes of a result those of its operand.
static bool move_back(const cx_hlo_op *op, bool broadcast,
                      const cpu_opt_axes *axes, cpu_opt_axes *out)
{
  const cx_hlo_type *from = &op->operands[0]->type.tensor;
  if (from->rank > CPU_OPT_AXIS_RANK) return false;
  if (op->kind == CX_HLO_OP_RESHAPE) {
    return cpu_opt_axes_reshape(&op->results[0].type.tensor, axes, from, out);
  }
  if (op->kind == CX_HLO_OP_TRANSPOSE) {
    const cx_hlo_ints p = cx_hlo_op_ints(op, CX_HLO_A_PERMUTATION);
    for (size_t i = 0; i < p.n; i++) out->of[p.v[i]] = axes->of[i];
    return true;
  }
  if (op->kind != CX_HLO_OP_BROADCAST_IN_DIM || !broadcast) return false;
  const cx_hlo_ints at = cx_hlo_op_ints(op, CX_HLO_A_BROADCAST_DIMENSIONS);
  for (size_t i = 0; i < at.n; i++) {
    out->of[i] = from->dims[i] == 1 ? CPU_OPT_AXIS_ONE : axes->of[at.v[i]];
  }
  return true;
}

cpu_opt_origin cpu_opt_origin_of(cx_hlo_value *v, const cpu_opt_axes *axes,
                                 bool broadcast)
{
  cpu_opt_origin o = { v, *axes };
  cpu_opt_axes back;
  while (o.value->op != NULL &&
         (o.value->op->kind == CX_HLO_OP_RESHAPE ||
          o.value->op->kind == CX_HLO_OP_TRANSPOSE ||
          o.value->op->kind == CX_HLO_OP_BROADCAST_IN_DIM) &&
         move_back(o.value->op, broadcast, &o.axes, &back)) {
    o.value = o.value->op->operands[0];
    o.axes = back;
  }
  return o;
}

bool cpu_opt_same_origin(cx_hlo_value *a, const cpu_opt_axes *a_axes,
                         cx_hlo_value *b, const cpu_opt_axes *b_axes,
                         bool broadcast)
{
  const cpu_opt_origin x = cpu_opt_origin_of(a, a_axes, broadcast);
  const cpu_opt_origin y = cpu_opt_origin_of(b, b_axes, broadcast);
  return x.value == y.value &&
         memcmp(x.axes.of, y.axes.of,
                x.value->type.tensor.rank * sizeof *x.axes.of) == 0;
}

// Moves between a tensor and its use in a product.
#define MOST_MOVES 8

bool cpu_opt_axes_from(const cpu_opt_origin *origin, cx_hlo_value *v,
                       cpu_opt_axes *out)
{
  const cx_hlo_op *moves[MOST_MOVES];
  size_t n = 0;
  for (; v != origin->value; v = v->op->operands[0]) {
    if (v->op == NULL || n == MOST_MOVES ||
        (v->op->kind != CX_HLO_OP_RESHAPE &&
         v->op->kind != CX_HLO_OP_TRANSPOSE)) {
      return false;
    }
    moves[n++] = v->op;
  }
  *out = origin->axes;
  while (n > 0) {
    const cpu_opt_axes before = *out;
    if (!cpu_opt_axes_move(moves[--n], &before, out)) return false;
  }
  return true;
}

static bool has(cx_hlo_ints l, size_t v)
{
  for (size_t i = 0; i < l.n; i++) {
    if (l.v[i] == (int64_t)v) return true;
  }
  return false;
}

bool cpu_opt_axes_product(const cx_hlo_op *op, int which,
                          const cpu_opt_axes *axes, int64_t n_batch, int free,
                          cpu_opt_axes *other, cpu_opt_axes *result,
                          int *contracted)
{
  const cx_hlo_dot_numbers *n =
      cx_hlo_op_attr(op, CX_HLO_A_DOT_DIMENSION_NUMBERS)->as.fields;
  const cx_hlo_ints batch[2] = { n->lhs_batch, n->rhs_batch };
  const cx_hlo_ints inner[2] = { n->lhs_contract, n->rhs_contract };
  const cx_hlo_type *types[2] = { &op->operands[0]->type.tensor,
                                  &op->operands[1]->type.tensor };
  if (types[0]->rank > CPU_OPT_AXIS_RANK ||
      types[1]->rank > CPU_OPT_AXIS_RANK ||
      op->results[0].type.tensor.rank > CPU_OPT_AXIS_RANK) {
    return false;
  }
  int64_t batches = 0;
  for (size_t i = 0; i < batch[0].n; i++) {
    const int axis = axes->of[batch[which].v[i]];
    if (axis >= CPU_KERNEL_ATTENTION_DIMS) return false;
    batches += axis >= 0;
    other->of[batch[1 - which].v[i]] = axis;
    result->of[i] = axis;
  }
  *contracted = CPU_OPT_AXIS_ONE;
  for (size_t i = 0; i < inner[0].n; i++) {
    const int axis = axes->of[inner[which].v[i]];
    other->of[inner[1 - which].v[i]] = axis;
    if (axis == CPU_OPT_AXIS_ONE) continue;
    if (*contracted != CPU_OPT_AXIS_ONE || axis < 0) return false;
    *contracted = axis;
  }
  size_t at = batch[0].n;
  int n_free = 0;
  for (int side = 0; side < 2; side++) {
    for (size_t d = 0; d < types[side]->rank; d++) {
      if (has(batch[side], d) || has(inner[side], d)) continue;
      int axis = CPU_OPT_AXIS_ONE;
      if (side == which) {
        axis = axes->of[d];
      } else if (types[side]->dims[d] != 1) {
        axis = free;
        n_free++;
      }
      if (side != which) other->of[d] = axis;
      result->of[at++] = axis;
    }
  }
  return batches == n_batch && n_free == 1 && *contracted >= 0;
}

cpu_kernel_attention_layout cpu_opt_axes_layout(const cx_hlo_type *type,
                                                const cpu_opt_axes *axes,
                                                int row, int column)
{
  cpu_kernel_attention_layout l = { 0 };
  int64_t stride = 1;
  for (size_t i = type->rank; i-- > 0;) {
    const int axis = axes->of[i];
    if (axis >= 0 && axis < CPU_KERNEL_ATTENTION_DIMS) l.batch[axis] = stride;
    if (axis == row) l.row = stride;
    if (axis == column) l.column = stride;
    stride *= type->dims[i];
  }
  return l;
}
