// hlo/infer: operations whose sizes are operands.
//
// Sizes of results must be known all the same: the declared type says them.
// Where the operand is a constant, it must agree.
#include "hlo/infer.h"

#include <string.h>

const cx_hlo_elements *cx_hlo_literal_of(const cx_hlo_value *v)
{
  if (v->op == NULL || v->op->kind != CX_HLO_OP_CONSTANT) return NULL;
  const cx_hlo_attr *value = cx_hlo_op_attr(v->op, CX_HLO_A_VALUE);
  const cx_hlo_type *t = &v->type.tensor;
  return value != NULL && value->kind == CX_HLO_ATTR_ELEMENTS &&
                 cx_hlo_type_equal(&value->as.elements.type.tensor, t)
             ? &value->as.elements
             : NULL;
}

calx_status *cx_hlo_need_vector(const cx_hlo_infer *in, size_t i, size_t n,
                                const cx_hlo_elements **out)
{
  const cx_hlo_type *t = cx_hlo_operand(in, i);
  *out = cx_hlo_literal_of(in->op->operands[i]);
  if (t->rank == 1 && t->dims[0] == (int64_t)n &&
      (cx_hlo_elem_is_int(t->elem) || t->elem == CX_HLO_INDEX)) {
    return NULL;
  }
  return cx_hlo_bad(in, "operand %zu must be %zu integers, got %s", i, n,
                    CX_HLO_SHAPE(t));
}

// Operand i tells the sizes of the declared result.
static calx_status *check_shape(const cx_hlo_infer *in, size_t i)
{
  const cx_hlo_type *to = &in->results[0].tensor;
  const cx_hlo_elements *known = NULL;
  CALX_TRY(cx_hlo_need_vector(in, i, to->rank, &known));
  for (size_t d = 0; known != NULL && d < to->rank; d++) {
    if (cx_hlo_elements_int(known, d) == to->dims[d]) continue;
    return cx_hlo_bad(in, "dimension %zu of %s must be %lld", d,
                      CX_HLO_SHAPE(to),
                      (long long)cx_hlo_elements_int(known, d));
  }
  return NULL;
}

calx_status *cx_hlo_infer_dynamic_reshape(cx_hlo_infer *in)
{
  CALX_TRY(check_shape(in, 1));
  return cx_hlo_infer_reshape(in);
}

calx_status *cx_hlo_infer_dynamic_iota(cx_hlo_infer *in)
{
  CALX_TRY(check_shape(in, 0));
  return cx_hlo_infer_iota(in);
}

calx_status *cx_hlo_infer_dynamic_broadcast_in_dim(cx_hlo_infer *in)
{
  const size_t rank = cx_hlo_operand(in, 0)->rank;
  const cx_hlo_ints grow =
      cx_hlo_op_ints(in->op, CX_HLO_A_KNOWN_EXPANDING_DIMENSIONS);
  const cx_hlo_ints keep =
      cx_hlo_op_ints(in->op, CX_HLO_A_KNOWN_NONEXPANDING_DIMENSIONS);
  CALX_TRY(cx_hlo_need_dims(in, "known_expanding_dimensions", grow, rank));
  CALX_TRY(cx_hlo_need_dims(in, "known_nonexpanding_dimensions", keep, rank));
  for (size_t i = 0; i < grow.n; i++) {
    if (!cx_hlo_ints_have(keep, grow.v[i])) continue;
    return cx_hlo_bad(in, "dimension %lld is known to expand and not to",
                      (long long)grow.v[i]);
  }
  CALX_TRY(check_shape(in, 1));
  return cx_hlo_infer_broadcast_in_dim(in);
}

// ---- parts ----

// The declared sizes, for a result of the operand's rank; `most`: none is
// greater than the operand's.
static calx_status *declared_dims(cx_hlo_infer *in, bool most)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type to = in->results[0].tensor;
  bool ok = to.rank == x->rank;
  for (size_t i = 0; ok && most && i < x->rank; i++) {
    ok = to.dims[i] <= x->dims[i];
  }
  if (!ok) {
    return cx_hlo_bad(in, "cannot make %s of %s", CX_HLO_SHAPE(&to),
                      CX_HLO_SHAPE(x));
  }
  return cx_hlo_result(in, 0, x->elem, to.rank, to.dims);
}

calx_status *cx_hlo_infer_real_dynamic_slice(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_elements *part[3];
  for (size_t i = 0; i < 3; i++) {
    CALX_TRY(cx_hlo_need_vector(in, i + 1, x->rank, &part[i]));
    if (cx_hlo_operand(in, i + 1)->elem == cx_hlo_operand(in, 1)->elem) {
      continue;
    }
    return cx_hlo_bad(in, "starts, limits and strides must be of one type");
  }
  if (part[0] == NULL || part[1] == NULL || part[2] == NULL) {
    return declared_dims(in, true);
  }
  int64_t *dims = cx_hlo_dims_copy(in, x, 0);
  if (dims == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < x->rank; i++) {
    CALX_TRY(cx_hlo_sliced(in, i, cx_hlo_elements_int(part[0], i),
                           cx_hlo_elements_int(part[1], i),
                           cx_hlo_elements_int(part[2], i), &dims[i]));
  }
  return cx_hlo_result(in, 0, x->elem, x->rank, dims);
}

calx_status *cx_hlo_infer_dynamic_pad(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_elements *part[3];
  CALX_TRY(cx_hlo_need_padding_value(in));
  for (size_t i = 0; i < 3; i++) {
    CALX_TRY(cx_hlo_need_vector(in, i + 2, x->rank, &part[i]));
  }
  if (part[0] == NULL || part[1] == NULL || part[2] == NULL) {
    return declared_dims(in, false);
  }
  int64_t *dims = cx_hlo_dims_copy(in, x, 0);
  if (dims == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < x->rank; i++) {
    CALX_TRY(cx_hlo_padded(in, i, cx_hlo_elements_int(part[0], i),
                           cx_hlo_elements_int(part[1], i),
                           cx_hlo_elements_int(part[2], i), &dims[i]));
  }
  return cx_hlo_result(in, 0, x->elem, x->rank, dims);
}

// The size is that of a part; the tensor keeps its own.
calx_status *cx_hlo_infer_set_dimension_size(cx_hlo_infer *in)
{
  const cx_hlo_type *size = cx_hlo_operand(in, 1);
  const int64_t d = cx_hlo_op_int(in->op, CX_HLO_A_DIMENSION);
  CALX_TRY(cx_hlo_need_dim(in, "dimension", d, cx_hlo_operand(in, 0)->rank));
  if (size->rank != 0 || size->elem != CX_HLO_I32) {
    return cx_hlo_bad(in, "the size must be i32[], got %s", CX_HLO_SHAPE(size));
  }
  in->results[0] = in->op->operands[0]->type;
  return NULL;
}
