// hlo/infer: operations whose sizes are operands.
//
// The sizes of the results must be static: they are those of the declared type.
// An operand that is a constant must agree with them.
#include "hlo/infer.h"

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

// Operand i has the sizes of the declared result.
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

// The result has the declared sizes, and the rank of the operand. `most`: no
// size is greater than that of the operand.
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

// Operands first to first + 2 have one integer for each dimension of operand 0.
// Writes them; *out_known: all of them are constants.
static calx_status *three_vectors(const cx_hlo_infer *in, size_t first,
                                  cx_hlo_ints out[3], bool *out_known)
{
  const size_t rank = cx_hlo_operand(in, 0)->rank;
  *out_known = true;
  for (size_t k = 0; k < 3; k++) {
    const cx_hlo_elements *known = NULL;
    CALX_TRY(cx_hlo_need_vector(in, first + k, rank, &known));
    int64_t *v = CX_ARENA_ARRAY(in->arena, int64_t, rank);
    if (v == NULL) return cx_out_of_memory();
    for (size_t i = 0; known != NULL && i < rank; i++) {
      v[i] = cx_hlo_elements_int(known, i);
    }
    out[k] = (cx_hlo_ints){ v, rank };
    *out_known &= known != NULL;
  }
  return NULL;
}

calx_status *cx_hlo_infer_real_dynamic_slice(cx_hlo_infer *in)
{
  cx_hlo_ints ranges[3];
  bool known = false;
  CALX_TRY(three_vectors(in, 1, ranges, &known));
  const cx_hlo_elem elem = cx_hlo_operand(in, 1)->elem;
  if (cx_hlo_operand(in, 2)->elem != elem ||
      cx_hlo_operand(in, 3)->elem != elem) {
    return cx_hlo_bad(in, "starts, limits and strides must be of one type");
  }
  return known ? cx_hlo_sliced(in, ranges) : declared_dims(in, true);
}

calx_status *cx_hlo_infer_dynamic_pad(cx_hlo_infer *in)
{
  cx_hlo_ints padding[3];
  bool known = false;
  CALX_TRY(cx_hlo_need_scalar(in, "padding", 1, 0));
  CALX_TRY(three_vectors(in, 2, padding, &known));
  return known ? cx_hlo_padded(in, padding) : declared_dims(in, false);
}

// The operation restricts the valid part; the type of the tensor is the same.
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
