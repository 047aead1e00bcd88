// ops/composite_arithmetic: binary exponents and questions about elements,
// composed of public ops.
#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"

static calx_tensor *number(double value)
{
  return cx_ops_number(value);
}

// ---- exponents of 2 ---------------------------------------------------------

calx_tensor *calx_ldexp(calx_tensor *x, calx_tensor *other)
{
  CX_OPS_COMPOSITE("ldexp");
  calx_tensor *in[2] = { x, other }, *bad;
  if (cx_ops_unfit("ldexp", in, 2, &bad)) return bad;
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  if (!cx_dtype_is_float(dtype) ||
      cx_dtype_is_float(cx_lazy_tensor_shape(other)->dtype)) {
    return calx_mul(x, calx_pow(number(2), other));
  }
  // An integer exponent leaves x's type, which may hold few integers.
  calx_dtype wide = calx_dtype_size(dtype) < 4 ? CALX_F32 : dtype;
  calx_tensor *by = calx_pow(number(2), calx_to_dtype(other, wide));
  return calx_to_dtype(calx_mul(calx_to_dtype(x, wide), by), dtype);
}

// 2^k of x's type, also where another number is the other operand.
static calx_tensor *power(const calx_tensor *x, int k)
{
  return cx_ops_weak_as(number(ldexp(1, k)), cx_lazy_tensor_shape(x)->dtype,
                        calx_tensor_device(x));
}

// x times 2^-k where |x| is at least 2^(k-1), and 2^k where it is below 2^-k.
// Such products are exact, so that steps of k, k/2 … 1 lead to [0.5, 1).
static calx_tensor *halved(calx_tensor *x, int k, calx_tensor **exponent)
{
  calx_tensor *size = calx_abs(x);
  calx_tensor *large =
      calx_logical_and(calx_ge(size, power(x, k - 1)), calx_isfinite(x));
  calx_tensor *small =
      calx_logical_and(calx_lt(size, power(x, -k)), calx_ne(x, number(0)));
  calx_tensor *way = calx_where(small, calx_scalar_int(-k), calx_scalar_int(0));
  way = calx_where(large, calx_scalar_int(k), way);
  *exponent = cx_ops_plus(*exponent, way);
  calx_tensor *by = calx_where(small, power(x, k), power(x, 0));
  return calx_mul(x, calx_where(large, power(x, -k), by));
}

calx_tensor *calx_frexp(calx_tensor *x, calx_tensor **out_exponent)
{
  CX_OPS_COMPOSITE("frexp");
  calx_tensor *bad;
  if (out_exponent != NULL) *out_exponent = NULL;
  if (cx_ops_unfit("frexp", &x, 1, &bad)) return bad;
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  if (!cx_dtype_is_float(dtype)) {
    return cx_ops_invalid(
        "frexp: %s, a floating type is wanted; convert it "
        "with calx_to_dtype",
        cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  if (calx_dtype_size(dtype) < 4) x = calx_to_dtype(x, CALX_F32);
  // The first step is done twice: all exponents are within 3 of it.
  int most = dtype == CALX_F64 ? 512 : 64;
  calx_tensor *exponent = calx_scalar_int(0);
  x = halved(x, most, &exponent);
  for (int k = most; k >= 1; k /= 2) x = halved(x, k, &exponent);
  if (out_exponent != NULL) *out_exponent = calx_to_dtype(exponent, CALX_I32);
  return calx_to_dtype(x, dtype);
}

calx_tensor *calx_logaddexp2(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE("logaddexp2");
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("logaddexp2", in, 2, &bad)) return bad;
  x = calx_mul(x, number(M_LN2));
  y = calx_mul(y, number(M_LN2));
  return calx_mul(calx_logaddexp(x, y), number(M_LOG2E));
}

// ---- questions --------------------------------------------------------------

calx_tensor *calx_isreal(calx_tensor *x)
{
  CX_OPS_COMPOSITE_COMPLEX("isreal");
  calx_tensor *bad;
  if (cx_ops_unfit("isreal", &x, 1, &bad)) return bad;
  if (cx_dtype_is_complex(cx_lazy_tensor_shape(x)->dtype)) {
    return calx_eq(calx_imag(x), cx_ops_number(0));
  }
  return calx_logical_or(calx_isnan(x), calx_eq(x, x));
}

bool calx_equal(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE_COMPLEX("equal");
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("equal", in, 2, &bad)) return false;
  const cx_graph_shape *a = cx_lazy_tensor_shape(x);
  const cx_graph_shape *b = cx_lazy_tensor_shape(y);
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++) {
    if (a->dims[i] != b->dims[i]) return false;
  }
  calx_tensor *all = calx_all_with(calx_eq(x, y), NULL);
  return calx_item_int(calx_to_dtype(all, CALX_I64)) != 0;
}
