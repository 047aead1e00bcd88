// hlo/infer: operations that work element by element.
//
// StableHLO does not broadcast: all operands have the same sizes. Only the
// predicate of select and the bounds of clamp may have rank 0.
#include "hlo/infer.h"

static calx_status *same_operands(const cx_hlo_infer *in)
{
  const cx_hlo_type *first = cx_hlo_operand(in, 0);
  for (size_t i = 1; i < in->op->n_operands; i++) {
    if (cx_hlo_type_equal(first, cx_hlo_operand(in, i))) continue;
    return cx_hlo_bad(in, "operands have different types: %s and %s",
                      CX_HLO_SHAPE(first), CX_HLO_SHAPE(cx_hlo_operand(in, i)));
  }
  return NULL;
}

// The result has the sizes of the first operand and this element type.
static calx_status *result_like(cx_hlo_infer *in, cx_hlo_elem elem)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  return cx_hlo_result(in, 0, elem, x->rank, x->dims);
}

calx_status *cx_hlo_infer_elementwise(cx_hlo_infer *in)
{
  CALX_TRY(same_operands(in));
  return result_like(in, cx_hlo_operand(in, 0)->elem);
}

calx_status *cx_hlo_infer_real_part(cx_hlo_infer *in)
{
  return result_like(in, cx_hlo_elem_part(cx_hlo_operand(in, 0)->elem));
}

calx_status *cx_hlo_infer_is_finite(cx_hlo_infer *in)
{
  return result_like(in, CX_HLO_I1);
}

calx_status *cx_hlo_infer_complex(cx_hlo_infer *in)
{
  CALX_TRY(same_operands(in));
  cx_hlo_elem elem;
  CALX_TRY(cx_hlo_complex_elem(in, &elem));
  return result_like(in, elem);
}

calx_status *cx_hlo_infer_compare(cx_hlo_infer *in)
{
  CALX_TRY(same_operands(in));
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const unsigned class = cx_hlo_elem_class(x->elem);
  const int64_t how = cx_hlo_op_int(in->op, CX_HLO_A_COMPARE_TYPE);
  static const unsigned allowed[] = {
    ~0u,                                        // NOTYPE
    CX_HLO_CLASS_FLOAT | CX_HLO_CLASS_COMPLEX,  // FLOAT
    CX_HLO_CLASS_FLOAT,                         // TOTALORDER
    CX_HLO_CLASS_SIGNED | CX_HLO_CLASS_INDEX,   // SIGNED
    CX_HLO_CLASS_UNSIGNED | CX_HLO_CLASS_BOOL,  // UNSIGNED
  };
  if ((allowed[how] & class) == 0) {
    return cx_hlo_bad(in, "compare_type %s does not fit %s",
                      cx_hlo_choice_value(CX_HLO_COMPARISON_TYPE, how),
                      CX_HLO_SHAPE(x));
  }
  return result_like(in, CX_HLO_I1);
}

calx_status *cx_hlo_infer_select(cx_hlo_infer *in)
{
  const cx_hlo_type *pred = cx_hlo_operand(in, 0);
  const cx_hlo_type *a = cx_hlo_operand(in, 1);
  const cx_hlo_type *b = cx_hlo_operand(in, 2);
  if (!cx_hlo_type_equal(a, b)) {
    return cx_hlo_bad(in, "values have different types: %s and %s",
                      CX_HLO_SHAPE(a), CX_HLO_SHAPE(b));
  }
  if (pred->elem != CX_HLO_I1 ||
      (pred->rank != 0 && !cx_hlo_same_dims(pred, a))) {
    return cx_hlo_bad(
        in, "the predicate of %s must be i1 of its shape or rank 0, got %s",
        CX_HLO_SHAPE(a), CX_HLO_SHAPE(pred));
  }
  return cx_hlo_result(in, 0, a->elem, a->rank, a->dims);
}

calx_status *cx_hlo_infer_clamp(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 1);
  for (size_t i = 0; i < 3; i += 2) {
    const cx_hlo_type *bound = cx_hlo_operand(in, i);
    if (bound->elem == x->elem &&
        (bound->rank == 0 || cx_hlo_same_dims(bound, x))) {
      continue;
    }
    return cx_hlo_bad(in, "a bound of %s must be like it or rank 0, got %s",
                      CX_HLO_SHAPE(x), CX_HLO_SHAPE(bound));
  }
  return cx_hlo_result(in, 0, x->elem, x->rank, x->dims);
}

calx_status *cx_hlo_infer_convert(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_elem to = in->results[0].tensor.elem;
  if (cx_hlo_elem_class(to) == 0) {
    return cx_hlo_bad(in, "cannot convert %s to %s", CX_HLO_SHAPE(x),
                      cx_hlo_elem_name(to));
  }
  return result_like(in, to);
}

calx_status *cx_hlo_infer_reduce_precision(cx_hlo_infer *in)
{
  const int64_t e = cx_hlo_op_int(in->op, CX_HLO_A_EXPONENT_BITS);
  const int64_t m = cx_hlo_op_int(in->op, CX_HLO_A_MANTISSA_BITS);
  if (e < 1 || m < 0) {
    return cx_hlo_bad(in,
                      "exponent_bits %lld must be at least 1, and "
                      "mantissa_bits %lld at least 0",
                      (long long)e, (long long)m);
  }
  return cx_hlo_infer_elementwise(in);
}

// Operand and result have the same bits. Where the widths of the element types
// differ, the narrower type has one more dimension at the end. Its size is the
// number of narrow elements in a wide one.
calx_status *cx_hlo_infer_bitcast_convert(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *to = &in->results[0].tensor;
  const unsigned from_bits = cx_hlo_elem_bits(x->elem);
  const unsigned to_bits = cx_hlo_elem_bits(to->elem);
  if (cx_hlo_elem_class(to->elem) == 0 ||
      cx_hlo_elem_is_complex(x->elem) != cx_hlo_elem_is_complex(to->elem)) {
    return cx_hlo_bad(in, "cannot make %s of %s", CX_HLO_SHAPE(to),
                      CX_HLO_SHAPE(x));
  }
  const cx_hlo_type *wide = from_bits >= to_bits ? x : to;
  const cx_hlo_type *narrow = from_bits >= to_bits ? to : x;
  bool ok = narrow->rank == wide->rank;
  if (from_bits != to_bits) {
    const unsigned low = cx_hlo_elem_bits(narrow->elem);
    const unsigned high = cx_hlo_elem_bits(wide->elem);
    ok = narrow->rank == wide->rank + 1 && high % low == 0 &&
         narrow->dims[wide->rank] == high / low;
  }
  const cx_hlo_type head = { wide->elem, wide->rank, narrow->dims };
  if (ok && cx_hlo_type_equal(wide, &head)) return NULL;
  return cx_hlo_bad(in, "%s and %s do not have the same bits", CX_HLO_SHAPE(x),
                    CX_HLO_SHAPE(to));
}

calx_status *cx_hlo_infer_map(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const size_t n = in->op->n_operands;
  cx_hlo_any *args = CX_ARENA_ARRAY(in->arena, cx_hlo_any, n);
  if (args == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_need_same_dims(in, "operands", n));
  for (size_t i = 0; i < n; i++) {
    args[i].tensor.elem = cx_hlo_operand(in, i)->elem;
  }
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_DIMENSIONS, x->rank));
  for (size_t i = 0; i < x->rank; i++) {
    if (cx_hlo_op_int_at(in->op, CX_HLO_A_DIMENSIONS, i) != (int64_t)i) {
      return cx_hlo_bad(in, "dimensions must be all, in order");
    }
  }
  CALX_TRY(cx_hlo_need_body(in, 0, args, n, NULL, 1));
  const cx_hlo_type *r = &cx_hlo_returned(in, 0, 0)->tensor;
  if (r->rank != 0 || cx_hlo_elem_class(r->elem) == 0) {
    return cx_hlo_bad(in, "the region must return a scalar, got %s",
                      CX_HLO_SHAPE(r));
  }
  return result_like(in, r->elem);
}
