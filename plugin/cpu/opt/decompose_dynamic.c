// opt/decompose: operations whose shape is an operand become static ones, if
// that operand is a constant. The verifier has checked that result types are
// static.
#include "opt/decompose.h"
#include "opt/emit.h"

// The integers of a literal; NULL: it is none, or has another number of them.
static int64_t *integers(cpu_opt_walk *w, const cx_hlo_value *v, size_t n)
{
  const cx_hlo_elements *e = cpu_opt_literal(v);
  if (e == NULL || cx_hlo_type_elements(&e->type.tensor) != (int64_t)n) {
    return NULL;
  }
  int64_t *list = cpu_opt_list(w, n);
  for (size_t i = 0; list != NULL && i < n; i++) {
    list[i] = cx_hlo_elements_int(e, i);
  }
  return list;
}

// The literals of three operands, each with an integer per dimension; false:
// one is no such literal.
static bool three_lists(cpu_opt_walk *w, const cx_hlo_op *op, uint32_t first,
                        int64_t *out[3])
{
  const size_t rank = op->operands[0]->type.tensor.rank;
  for (uint32_t i = 0; i < 3; i++) {
    out[i] = integers(w, op->operands[first + i], rank);
    if (out[i] == NULL) return false;
  }
  return true;
}

static cpu_opt_value slice(cpu_opt_walk *w, const cx_hlo_op *op)
{
  int64_t *at[3];  // starts, limits, strides
  if (!three_lists(w, op, 1, at)) return NULL;
  return cx_hlo_slice(&w->b, op->operands[0], at[0], at[1], at[2]);
}

static cpu_opt_value pad(cpu_opt_walk *w, const cx_hlo_op *op)
{
  int64_t *sizes[3];  // low, high, interior
  if (!three_lists(w, op, 2, sizes)) return NULL;
  return cx_hlo_pad(&w->b, op->operands[0], op->operands[1], sizes[0], sizes[1],
                    sizes[2]);
}

static cpu_opt_value gather(cpu_opt_walk *w, const cx_hlo_op *op)
{
  cx_hlo_builder *b = &w->b;
  const size_t rank = op->operands[0]->type.tensor.rank;
  const int64_t *sizes = integers(w, op->operands[2], rank);
  if (sizes == NULL) return NULL;
  cx_hlo_op *r = cx_hlo_build_begin(b, CX_HLO_OP_GATHER, op->operands, 2, 1, 0);
  cpu_opt_keep_attr(b, r, op, CX_HLO_A_GATHER_DIMENSION_NUMBERS);
  cpu_opt_keep_attr(b, r, op, CX_HLO_A_INDICES_ARE_SORTED);
  cx_hlo_build_ints(b, r, CX_HLO_A_SLICE_SIZES, sizes, rank);
  return cx_hlo_build_end(b, r);
}

static cpu_opt_value convolution(cpu_opt_walk *w, const cx_hlo_op *op)
{
  const size_t spatial = cx_hlo_op_conv(op)->input_spatial.n;
  const int64_t *padding = integers(w, op->operands[2], 2 * spatial);
  if (padding == NULL) return NULL;
  return cpu_opt_convolution(w, op, op->operands, padding);
}

void cpu_opt_static_form(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_builder *b = &w->b;
  const cx_hlo_type *to = &op->results[0].type.tensor;
  cpu_opt_value x = op->operands[0];
  cpu_opt_value r = NULL;
  switch (op->kind) {
    case CX_HLO_OP_DYNAMIC_RESHAPE:
      r = cx_hlo_reshape(b, x, to->dims, to->rank);
      break;
    case CX_HLO_OP_DYNAMIC_BROADCAST_IN_DIM:
      r = cpu_opt_broadcast(
          b, x, to, cx_hlo_op_ints(op, CX_HLO_A_BROADCAST_DIMENSIONS).v);
      break;
    case CX_HLO_OP_DYNAMIC_IOTA:
      r = cx_hlo_iota(b, *to, cx_hlo_op_int(op, CX_HLO_A_IOTA_DIMENSION));
      break;
    case CX_HLO_OP_DYNAMIC_PAD: r = pad(w, op); break;
    case CX_HLO_OP_DYNAMIC_GATHER: r = gather(w, op); break;
    case CX_HLO_OP_DYNAMIC_CONV: r = convolution(w, op); break;
    default: r = slice(w, op); break;
  }
  if (r != NULL) cpu_opt_replace(w, op, r);
}
