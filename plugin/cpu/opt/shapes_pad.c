// opt/shapes_pad: a sum of two tensors that zeros pad to places side by side is
// their concatenation. The gradient of slices, as of x[0] to x[7] or of the
// parts of a product, is a chain of such sums, and a loop over one reads each
// part at each element.
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
  if (op == NULL || !cpu_opt_is_number(op->operands[1], 0)) return false;
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

cx_hlo_value *cpu_opt_sum_of_pads(cpu_opt_walk *w, cx_hlo_op *op)
{
  padded a, b;
  if (!is_padded(op->operands[0], &a) || !is_padded(op->operands[1], &b) ||
      a.dim != b.dim) {
    return NULL;
  }
  const padded first = a.low < b.low ? a : b, second = a.low < b.low ? b : a;
  if (first.low + first.size != second.low) return NULL;
  cx_hlo_value *const both[2] = { first.x, second.x };
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
