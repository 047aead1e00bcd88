// hlo/infer: operations of CHLO that StableHLO does not have.
//
// Source: openxla/stablehlo, dialect/ChloOps.td.
#include "hlo/infer.h"

// ---- broadcasting ----

// The dimension of x that becomes dimension `i` of a result of this rank; -1:
// there is none. Without the attribute, the last dimensions are aligned, as in
// numpy.
static int64_t source_dim(const cx_hlo_infer *in, const cx_hlo_type *x,
                          size_t rank, size_t i)
{
  const cx_hlo_attr *attr =
      cx_hlo_op_attr(in->op, CX_HLO_A_BROADCAST_DIMENSIONS);
  if (attr == NULL || x->rank == rank) {
    return (int64_t)i - (int64_t)(rank - x->rank);
  }
  const cx_hlo_ints at = attr->as.ints;
  for (size_t k = 0; k < at.n; k++) {
    if (at.v[k] == (int64_t)i) return (int64_t)k;
  }
  return -1;
}

// The sizes to which operands [first, last] are broadcast.
static calx_status *common_dims(cx_hlo_infer *in, size_t first, size_t last,
                                size_t *out_rank, int64_t **out_dims)
{
  size_t rank = 0;
  for (size_t i = first; i <= last; i++) {
    const size_t r = cx_hlo_operand(in, i)->rank;
    if (r > rank) rank = r;
  }
  int64_t *dims = CX_ARENA_ARRAY(in->arena, int64_t, rank + 1);
  if (dims == NULL) return cx_out_of_memory();
  for (size_t d = 0; d < rank; d++) {
    dims[d] = 1;
    for (size_t i = first; i <= last; i++) {
      const cx_hlo_type *x = cx_hlo_operand(in, i);
      const int64_t k = source_dim(in, x, rank, d);
      if (k < 0 || x->dims[k] == 1 || x->dims[k] == dims[d]) continue;
      if (dims[d] != 1) {
        return cx_hlo_bad(in, "%s does not broadcast to %lld along %zu",
                          CX_HLO_SHAPE(x), (long long)dims[d], d);
      }
      dims[d] = x->dims[k];
    }
  }
  *out_rank = rank;
  *out_dims = dims;
  return NULL;
}

// The attribute maps the dimensions of the operand of the lower rank.
static calx_status *check_mapping(const cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *y = cx_hlo_operand(in, 1);
  const size_t low = x->rank < y->rank ? x->rank : y->rank;
  const size_t high = x->rank < y->rank ? y->rank : x->rank;
  const cx_hlo_ints at = cx_hlo_op_ints(in->op, CX_HLO_A_BROADCAST_DIMENSIONS);
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_BROADCAST_DIMENSIONS, low));
  return cx_hlo_need_dims(in, "broadcast_dimensions", at, high);
}

calx_status *cx_hlo_infer_broadcasting(cx_hlo_infer *in)
{
  size_t rank = 0;
  int64_t *dims = NULL;
  CALX_TRY(cx_hlo_need_same_elem(in, 0, 1));
  CALX_TRY(check_mapping(in));
  CALX_TRY(common_dims(in, 0, 1, &rank, &dims));
  cx_hlo_elem elem = cx_hlo_operand(in, 0)->elem;
  if (in->op->kind == CX_HLO_OP_CHLO_BROADCAST_COMPARE) elem = CX_HLO_I1;
  if (in->op->kind == CX_HLO_OP_CHLO_BROADCAST_COMPLEX) {
    CALX_TRY(cx_hlo_complex_elem(in, &elem));
  }
  return cx_hlo_result(in, 0, elem, rank, dims);
}

calx_status *cx_hlo_infer_broadcast_select(cx_hlo_infer *in)
{
  size_t rank = 0;
  int64_t *dims = NULL;
  CALX_TRY(cx_hlo_need_same_elem(in, 1, 2));
  if (cx_hlo_operand(in, 0)->elem != CX_HLO_I1) {
    return cx_hlo_bad(in, "the predicate must be i1, got %s",
                      CX_HLO_SHAPE(cx_hlo_operand(in, 0)));
  }
  CALX_TRY(common_dims(in, 0, 2, &rank, &dims));
  return cx_hlo_result(in, 0, cx_hlo_operand(in, 1)->elem, rank, dims);
}

// ---- others ----

// The attribute is a number or a literal of one element. The result has its
// element type and the sizes of the operand.
calx_status *cx_hlo_infer_constant_like(cx_hlo_infer *in)
{
  const cx_hlo_attr *v = cx_hlo_op_attr(in->op, CX_HLO_A_SCALAR);
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  cx_hlo_elem elem = CX_HLO_INVALID;
  if (v->kind == CX_HLO_ATTR_INT || v->kind == CX_HLO_ATTR_FLOAT) {
    elem = v->elem;
  } else if (v->kind == CX_HLO_ATTR_BOOL) {
    elem = CX_HLO_I1;
  } else if (v->kind == CX_HLO_ATTR_ELEMENTS &&
             cx_hlo_type_elements(&v->as.elements.type.tensor) == 1) {
    elem = v->as.elements.type.tensor.elem;
  }
  if (elem == CX_HLO_INVALID) {
    return cx_hlo_bad(in, "attribute 'value' must be one element");
  }
  return cx_hlo_result(in, 0, elem, x->rank, x->dims);
}

// The k largest elements along the last dimension, and their indices.
calx_status *cx_hlo_infer_top_k(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const int64_t k = cx_hlo_op_int(in->op, CX_HLO_A_K);
  if (x->rank == 0 || k < 0 || k > x->dims[x->rank - 1] ||
      (cx_hlo_elem_class(x->elem) & ~CX_HLO_CLASS_COMPLEX) == 0) {
    return cx_hlo_bad(in, "k %lld does not fit the last dimension of %s",
                      (long long)k, CX_HLO_SHAPE(x));
  }
  int64_t *dims = cx_hlo_dims_copy(in, x);
  if (dims == NULL) return cx_out_of_memory();
  dims[x->rank - 1] = k;
  CALX_TRY(cx_hlo_result(in, 0, x->elem, x->rank, dims));
  return cx_hlo_result(in, 1, CX_HLO_I32, x->rank, dims);
}
