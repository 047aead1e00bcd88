// opt/shapes_pad: a sum of two tensors that are padded with zeros, and of which
// one begins where the other ends, is their concatenation. The gradient of
// slices, as of x[0] to x[7] or of the parts of a product, is a chain of such
// sums, and a loop for the chain would read each part at each element.
#include "opt/shapes.h"

// Zeros before and behind x along one dimension.
typedef struct padded {
  cx_hlo_value *x, *zero;
  size_t dim;
  int64_t low, high, size;  // of x along it
} padded;

static bool is_padded(const cx_hlo_value *v, padded *out)
{
  const cx_hlo_op *op = cpu_opt_made_by(v, CX_HLO_OP_PAD);
  if (op == NULL || !cpu_opt_is_zero(op->operands[1], false)) return false;
  const cx_hlo_ints low = cx_hlo_op_ints(op, CX_HLO_A_EDGE_PADDING_LOW);
  const cx_hlo_ints high = cx_hlo_op_ints(op, CX_HLO_A_EDGE_PADDING_HIGH);
  const cx_hlo_ints inside = cx_hlo_op_ints(op, CX_HLO_A_INTERIOR_PADDING);
  size_t dims = 0;
  *out = (padded){ .x = op->operands[0], .zero = op->operands[1] };
  for (size_t d = 0; d < low.n; d++) {
    if (inside.v[d] != 0 || low.v[d] < 0 || high.v[d] < 0) return false;
    if (low.v[d] == 0 && high.v[d] == 0) continue;
    dims++;
    out->dim = d;
    out->low = low.v[d];
    out->high = high.v[d];
    out->size = out->x->type.tensor.dims[d];
  }
  return dims == 1;
}

// Whether no element is -0, because 0 was added.
static bool has_no_minus_zero(const cx_hlo_value *v)
{
  const cx_hlo_op *op = v->op;
  if (op == NULL) return false;
  if (op->kind == CX_HLO_OP_ADD) return cpu_opt_is_zero(op->operands[1], false);
  if (op->kind != CX_HLO_OP_CONCATENATE) return false;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const cx_hlo_op *part = cpu_opt_made_by(op->operands[i], CX_HLO_OP_ADD);
    if (part == NULL || !cpu_opt_is_zero(part->operands[1], false))
      return false;
  }
  return true;
}

// x + 0: there the sum adds a zero of the other tensor's padding, which makes 0
// of -0.
static cx_hlo_value *plus_zero(cpu_opt_walk *w, cx_hlo_value *x)
{
  const cx_hlo_type *t = &x->type.tensor;
  if ((!cx_hlo_elem_is_float(t->elem) && !cx_hlo_elem_is_complex(t->elem)) ||
      has_no_minus_zero(x)) {
    return x;
  }
  return cx_hlo_binary(&w->b, CX_HLO_OP_ADD, x, cx_hlo_splat(&w->b, *t, 0));
}

cx_hlo_value *cpu_opt_sum_of_pads(cpu_opt_walk *w, cx_hlo_op *op)
{
  padded a, b;
  if (!is_padded(op->operands[0], &a) || !is_padded(op->operands[1], &b) ||
      a.dim != b.dim) {
    return NULL;
  }
  const padded first = a.low < b.low ? a : b, second = a.low < b.low ? b : a;
  if (first.low + first.size != second.low) return NULL;
  cx_hlo_value *both[2];
  both[0] = plus_zero(w, first.x);
  both[1] = plus_zero(w, second.x);
  cx_hlo_value *out = cx_hlo_concatenate(&w->b, both, 2, (int64_t)a.dim);
  if (first.low == 0 && second.high == 0) return out;
  const size_t rank = op->results[0].type.tensor.rank;
  int64_t *lists = cpu_opt_list(w, 3 * rank);
  if (lists == NULL) return NULL;
  lists[a.dim] = first.low;
  lists[rank + a.dim] = second.high;
  return cx_hlo_pad(&w->b, out, first.zero, lists, lists + rank,
                    lists + 2 * rank);
}
