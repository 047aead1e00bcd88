// hlo/build: constants and elementwise operations.
#include <math.h>

#include "hlo/build.h"
#include "hlo/build_op.h"
#include "hlo/infer.h"
#include "hlo/number.h"

// ---- constants ----

static cx_hlo_value *constant(cx_hlo_builder *b, const cx_hlo_attr *value)
{
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_CONSTANT, NULL, 0, 1, 0);
  cx_hlo_build_attr(b, op, CX_HLO_A_VALUE, value);
  return cx_hlo_build_end(b, op);
}

static bool is_countable(cx_hlo_builder *b, const cx_hlo_type *type)
{
  if (b->failed != NULL) return false;
  if (cx_hlo_elem_class(type->elem) != 0 && cx_hlo_type_elements(type) >= 0) {
    return true;
  }
  cx_hlo_builder_fail(
      b, cx_invalid("constant: there is no literal of %s", CX_HLO_SHAPE(type)));
  return false;
}

cx_hlo_value *cx_hlo_constant(cx_hlo_builder *b, cx_hlo_type type,
                              const void *bytes, size_t size)
{
  if (!is_countable(b, &type)) return NULL;
  const size_t n = (size_t)cx_hlo_type_elements(&type);
  if (size / cx_hlo_elem_bytes(type.elem) != n ||
      size % cx_hlo_elem_bytes(type.elem) != 0) {
    cx_hlo_builder_fail(
        b, cx_invalid("constant: %zu bytes for %s", size, CX_HLO_SHAPE(&type)));
    return NULL;
  }
  return constant(b, cx_hlo_attr_elements(b->module, &type, bytes, size));
}

// A literal of equal elements.
static cx_hlo_value *splat(cx_hlo_builder *b, const cx_hlo_type *type,
                           const unsigned char element[16])
{
  return constant(b, cx_hlo_attr_elements(b->module, type, element,
                                          cx_hlo_elem_bytes(type->elem)));
}

cx_hlo_value *cx_hlo_splat(cx_hlo_builder *b, cx_hlo_type type, double value)
{
  unsigned char element[16] = { 0 };
  if (!is_countable(b, &type)) return NULL;
  cx_hlo_store_number(type.elem, element, value);
  return splat(b, &type, element);
}

cx_hlo_value *cx_hlo_splat_int(cx_hlo_builder *b, cx_hlo_type type,
                               int64_t value)
{
  const unsigned others = CX_HLO_CLASS_FLOAT | CX_HLO_CLASS_COMPLEX;
  if ((cx_hlo_elem_class(type.elem) & others) != 0) {
    return cx_hlo_splat(b, type, (double)value);
  }
  unsigned char element[16] = { 0 };
  if (!is_countable(b, &type)) return NULL;
  cx_hlo_store_int(type.elem, element, value);
  return splat(b, &type, element);
}

// The highest value for sign 1, the lowest for sign -1.
static cx_hlo_value *extreme(cx_hlo_builder *b, cx_hlo_elem e, double sign)
{
  const cx_hlo_type type = { e, 0, NULL };
  if (cx_hlo_elem_is_complex(e)) {
    cx_hlo_builder_fail(
        b, cx_invalid("constant: %s has no lowest or highest value",
                      cx_hlo_elem_name(e)));
    return NULL;
  }
  if (e == CX_HLO_I1) return cx_hlo_splat_int(b, type, sign > 0);
  if (cx_hlo_elem_is_float(e)) {
    const double top = cx_hlo_highest_real(e);
    return cx_hlo_splat(b, type, sign > 0 ? top : cx_hlo_lowest_real(e));
  }
  return cx_hlo_splat(b, type, sign * HUGE_VAL);
}

cx_hlo_value *cx_hlo_lowest(cx_hlo_builder *b, cx_hlo_elem e)
{
  return extreme(b, e, -1);
}

cx_hlo_value *cx_hlo_highest(cx_hlo_builder *b, cx_hlo_elem e)
{
  return extreme(b, e, 1);
}

cx_hlo_value *cx_hlo_iota(cx_hlo_builder *b, cx_hlo_type type,
                          int64_t dimension)
{
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_IOTA, NULL, 0, 1, 0);
  cx_hlo_build_int(b, op, CX_HLO_A_IOTA_DIMENSION, dimension);
  cx_hlo_build_declare(b, op, 0, &type);
  return cx_hlo_build_end(b, op);
}

// ---- elementwise ----

static cx_hlo_value *plain(cx_hlo_builder *b, cx_hlo_op_kind kind,
                           cx_hlo_value *const *operands, size_t n)
{
  return cx_hlo_build_end(b, cx_hlo_build_begin(b, kind, operands, n, 1, 0));
}

cx_hlo_value *cx_hlo_unary(cx_hlo_builder *b, cx_hlo_op_kind kind,
                           cx_hlo_value *x)
{
  return plain(b, kind, &x, 1);
}

cx_hlo_value *cx_hlo_binary(cx_hlo_builder *b, cx_hlo_op_kind kind,
                            cx_hlo_value *x, cx_hlo_value *y)
{
  cx_hlo_value *const operands[] = { x, y };
  return plain(b, kind, operands, 2);
}

cx_hlo_value *cx_hlo_compare(cx_hlo_builder *b, cx_hlo_direction d,
                             cx_hlo_value *x, cx_hlo_value *y)
{
  cx_hlo_value *const operands[] = { x, y };
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_COMPARE, operands, 2, 1, 0);
  if (op == NULL) return NULL;
  cx_hlo_build_attr(
      b, op, CX_HLO_A_COMPARISON_DIRECTION,
      cx_hlo_attr_choice(b->module, CX_HLO_COMPARISON_DIRECTION, d));
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_fft(cx_hlo_builder *b, cx_hlo_fft_kind kind,
                         cx_hlo_value *x, const int64_t *lengths, size_t n)
{
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_FFT, &x, 1, 1, 0);
  if (op == NULL) return NULL;
  cx_hlo_build_attr(b, op, CX_HLO_A_FFT_TYPE,
                    cx_hlo_attr_choice(b->module, CX_HLO_FFT_TYPE, kind));
  cx_hlo_build_ints(b, op, CX_HLO_A_FFT_LENGTH, lengths, n);
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_select(cx_hlo_builder *b, cx_hlo_value *pred,
                            cx_hlo_value *on_true, cx_hlo_value *on_false)
{
  cx_hlo_value *const operands[] = { pred, on_true, on_false };
  return plain(b, CX_HLO_OP_SELECT, operands, 3);
}

cx_hlo_value *cx_hlo_clamp(cx_hlo_builder *b, cx_hlo_value *low,
                           cx_hlo_value *x, cx_hlo_value *high)
{
  cx_hlo_value *const operands[] = { low, x, high };
  return plain(b, CX_HLO_OP_CLAMP, operands, 3);
}

cx_hlo_value *cx_hlo_convert(cx_hlo_builder *b, cx_hlo_value *x, cx_hlo_elem to)
{
  const cx_hlo_type type = { to, 0, NULL };
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_CONVERT, &x, 1, 1, 0);
  cx_hlo_build_declare(b, op, 0, &type);
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_bitcast_convert(cx_hlo_builder *b, cx_hlo_value *x,
                                     cx_hlo_type to)
{
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_BITCAST_CONVERT, &x, 1, 1, 0);
  cx_hlo_build_declare(b, op, 0, &to);
  return cx_hlo_build_end(b, op);
}
