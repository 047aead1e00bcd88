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
  int64_t *list = CX_ARENA_ARRAY(&w->b.module->arena, int64_t, n + 1);
  for (size_t i = 0; list != NULL && i < n; i++) {
    list[i] = cx_hlo_elements_int(e, i);
  }
  return list;
}

static cpu_opt_value slice(cpu_opt_walk *w, const cx_hlo_op *op)
{
  const size_t rank = op->operands[0]->type.tensor.rank;
  const int64_t *start = integers(w, op->operands[1], rank);
  const int64_t *limit = integers(w, op->operands[2], rank);
  const int64_t *stride = integers(w, op->operands[3], rank);
  if (start == NULL || limit == NULL || stride == NULL) return NULL;
  return cx_hlo_slice(&w->b, op->operands[0], start, limit, stride);
}

static cpu_opt_value pad(cpu_opt_walk *w, const cx_hlo_op *op)
{
  const size_t rank = op->operands[0]->type.tensor.rank;
  const int64_t *low = integers(w, op->operands[2], rank);
  const int64_t *high = integers(w, op->operands[3], rank);
  const int64_t *interior = integers(w, op->operands[4], rank);
  if (low == NULL || high == NULL || interior == NULL) return NULL;
  return cx_hlo_pad(&w->b, op->operands[0], op->operands[1], low, high,
                    interior);
}

static cpu_opt_value gather(cpu_opt_walk *w, const cx_hlo_op *op)
{
  cx_hlo_builder *b = &w->b;
  const size_t rank = op->operands[0]->type.tensor.rank;
  const int64_t *sizes = integers(w, op->operands[2], rank);
  if (sizes == NULL) return NULL;
  cx_hlo_op *r = cx_hlo_build_begin(b, CX_HLO_OP_GATHER, op->operands, 2, 1, 0);
  cx_hlo_build_attr(b, r, CX_HLO_A_GATHER_DIMENSION_NUMBERS,
                    cx_hlo_op_attr(op, CX_HLO_A_GATHER_DIMENSION_NUMBERS));
  cx_hlo_build_ints(b, r, CX_HLO_A_SLICE_SIZES, sizes, rank);
  const cx_hlo_attr *sorted = cx_hlo_op_attr(op, CX_HLO_A_INDICES_ARE_SORTED);
  if (sorted != NULL) {
    cx_hlo_build_attr(b, r, CX_HLO_A_INDICES_ARE_SORTED, sorted);
  }
  return cx_hlo_build_end(b, r);
}

static cpu_opt_value convolution(cpu_opt_walk *w, const cx_hlo_op *op)
{
  static const cx_hlo_attr_id taken[] = {
    CX_HLO_A_WINDOW_STRIDES,         CX_HLO_A_LHS_DILATION,
    CX_HLO_A_RHS_DILATION,           CX_HLO_A_WINDOW_REVERSAL,
    CX_HLO_A_CONV_DIMENSION_NUMBERS, CX_HLO_A_FEATURE_GROUP_COUNT,
    CX_HLO_A_BATCH_GROUP_COUNT,      CX_HLO_A_PRECISION_CONFIG
  };
  cx_hlo_builder *b = &w->b;
  const size_t spatial = cx_hlo_op_conv(op)->input_spatial.n;
  const int64_t *padding = integers(w, op->operands[2], 2 * spatial);
  if (padding == NULL) return NULL;
  cx_hlo_op *r =
      cx_hlo_build_begin(b, CX_HLO_OP_CONVOLUTION, op->operands, 2, 1, 0);
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    const cx_hlo_attr *attr = cx_hlo_op_attr(op, taken[i]);
    if (attr != NULL) cx_hlo_build_attr(b, r, taken[i], attr);
  }
  cx_hlo_build_attr(b, r, CX_HLO_A_PADDING,
                    cx_hlo_attr_matrix(b->module, padding, spatial, 2));
  cx_hlo_build_declare(b, r, 0, &op->results[0].type.tensor);
  return cx_hlo_build_end(b, r);
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
      r = cx_hlo_broadcast_in_dim(
          b, x, to->dims, to->rank,
          cx_hlo_op_ints(op, CX_HLO_A_BROADCAST_DIMENSIONS).v);
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
