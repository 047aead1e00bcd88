// ops/composite_pointwise: elementwise functions of one, two or three operands,
// composed of public ops.
#include <float.h>
#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"

static calx_tensor *number(double value)
{
  return cx_ops_number(value);
}

// ---- limits -----------------------------------------------------------------

// x where `inside` is true, else the limit. NaN stays, with gradient 0.
static calx_tensor *limited(calx_tensor *x, calx_tensor *inside,
                            calx_tensor *limit)
{
  calx_tensor *nan = calx_isnan(x);
  return calx_where(inside, x, calx_where(nan, calx_detach(x), limit));
}

calx_tensor *calx_clamp_min(calx_tensor *x, calx_tensor *min)
{
  CX_OPS_COMPOSITE("clamp_min");
  return limited(x, calx_ge(x, min), min);
}

calx_tensor *calx_clamp_max(calx_tensor *x, calx_tensor *max)
{
  CX_OPS_COMPOSITE("clamp_max");
  return limited(x, calx_le(x, max), max);
}

calx_tensor *calx_clamp(calx_tensor *x, calx_tensor *min, calx_tensor *max)
{
  CX_OPS_COMPOSITE("clamp");
  return calx_clamp_max(calx_clamp_min(x, min), max);
}

// The greatest finite number of a floating type.
static double highest(calx_dtype dtype)
{
  switch ((int)dtype) {
    case CALX_F16: return 65504;
    case CALX_BF16: return 0x1.fep127;
    case CALX_F32: return (double)FLT_MAX;
    default: return DBL_MAX;
  }
}

calx_tensor *calx_nan_to_num_with(calx_tensor *x,
                                  const calx_nan_to_num_options *o)
{
  CX_OPS_COMPOSITE("nan_to_num");
  calx_tensor *bad;
  if (cx_ops_unfit("nan_to_num", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(nan_to_num, o, bad);
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  if (!cx_dtype_is_inexact(dtype)) return cx_lazy_tensor_detached(x);
  double most = highest(dtype);
  x = calx_where(calx_isnan(x), cx_ops_given(o->nan, 0), x);
  x = calx_where(calx_isposinf(x), cx_ops_given(o->posinf, most), x);
  return calx_where(calx_isneginf(x), cx_ops_given(o->neginf, -most), x);
}

calx_tensor *calx_masked_fill(calx_tensor *x, calx_tensor *mask,
                              calx_tensor *value)
{
  CX_OPS_COMPOSITE_COMPLEX("masked_fill");
  calx_tensor *in[3] = { x, mask, value }, *bad;
  if (cx_ops_unfit("masked_fill", in, 3, &bad)) return bad;
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  calx_status *status = cx_ops_check_weak("masked_fill", value, dtype);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  if (cx_lazy_tensor_is(value, CX_LAZY_T_WEAK))
    value = cx_ops_weak_as(value, dtype, NULL);
  return calx_where(mask, calx_to_dtype(value, dtype), x);
}

// ---- logic ------------------------------------------------------------------

static calx_tensor *logical(const char *op, calx_tensor *x, calx_tensor *y,
                            calx_tensor *(*fn)(calx_tensor *, calx_tensor *))
{
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit(op, in, 2, &bad)) return bad;
  return fn(calx_to_dtype(x, CALX_BOOL), calx_to_dtype(y, CALX_BOOL));
}

#define LOGICAL(op)                                              \
  calx_tensor *calx_logical_##op(calx_tensor *x, calx_tensor *y) \
  {                                                              \
    CX_OPS_COMPOSITE_COMPLEX("logical_" #op);                    \
    return logical("logical_" #op, x, y, calx_bitwise_##op);     \
  }
LOGICAL(and)
LOGICAL(or)
LOGICAL(xor)

calx_tensor *calx_isclose_with(calx_tensor *x, calx_tensor *y,
                               const calx_isclose_options *o)
{
  CX_OPS_COMPOSITE("isclose");
  calx_tensor *in[2] = { x, y }, *bad;
  if (!cx_ops_floating("isclose", in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(isclose, o, bad);
  calx_tensor *apart = calx_abs(cx_ops_minus(in[0], in[1]));
  calx_tensor *most = calx_mul(calx_abs(in[1]), cx_ops_given(o->rtol, 1e-5));
  most = cx_ops_plus(most, cx_ops_given(o->atol, 1e-8));
  calx_tensor *close =
      calx_bitwise_and(calx_isfinite(apart), calx_le(apart, most));
  close = calx_bitwise_or(close, calx_eq(in[0], in[1]));
  if (!o->equal_nan) return close;
  return calx_bitwise_or(
      close, calx_bitwise_and(calx_isnan(in[0]), calx_isnan(in[1])));
}

// ---- sums and products ------------------------------------------------------

calx_tensor *calx_lerp(calx_tensor *x, calx_tensor *end, calx_tensor *weight)
{
  CX_OPS_COMPOSITE_COMPLEX("lerp");
  calx_tensor *in[3] = { x, end, weight }, *bad;
  if (cx_ops_unfit("lerp", in, 3, &bad)) return bad;
  // As PyTorch: from the end that the weight is nearer to.
  calx_tensor *way = cx_ops_minus(end, x);
  calx_tensor *rest = cx_ops_minus(number(1), weight);
  return calx_where(calx_lt(calx_abs(weight), number(0.5)),
                    cx_ops_plus(x, calx_mul(weight, way)),
                    cx_ops_minus(end, calx_mul(way, rest)));
}

static calx_tensor *add_scaled(const char *op, calx_tensor *x, calx_tensor *y,
                               const calx_addcmul_options *o)
{
  calx_tensor *bad;
  if (o == NULL) return cx_ops_plus(x, y);
  if (!cx_ops_options_fit(op, o->size, sizeof *o, &bad)) return bad;
  calx_add_options scale = { .size = sizeof scale, .alpha = o->value };
  return calx_add_with(x, y, &scale);
}

calx_tensor *calx_addcmul_with(calx_tensor *x, calx_tensor *y, calx_tensor *z,
                               const calx_addcmul_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("addcmul");
  return add_scaled("addcmul", x, calx_mul(y, z), o);
}

calx_tensor *calx_addcdiv_with(calx_tensor *x, calx_tensor *y, calx_tensor *z,
                               const calx_addcmul_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("addcdiv");
  calx_tensor *in[3] = { x, y, z }, *bad;
  if (cx_ops_unfit("addcdiv", in, 3, &bad)) return bad;
  if (!cx_dtype_is_inexact(cx_lazy_tensor_shape(y)->dtype) &&
      !cx_dtype_is_inexact(cx_lazy_tensor_shape(z)->dtype)) {
    return cx_ops_invalid(
        "addcdiv: integers are divided, %s by %s; use calx_div with .rounding "
        "or convert one with calx_to_dtype",
        cx_graph_shape_str(cx_lazy_tensor_shape(y)),
        cx_graph_shape_str(cx_lazy_tensor_shape(z)));
  }
  return add_scaled("addcdiv", x, calx_div(y, z), o);
}

// Promotes x and y, then makes them floating. False: *out is what the function
// returns.
static bool pair_of_floats(const char *op, calx_tensor *in[2],
                           calx_tensor **out)
{
  if (cx_ops_unfit(op, in, 2, out)) return false;
  cx_ops_promote(in, 2);
  return cx_ops_floating(op, in, 2, out);
}

calx_tensor *calx_xlogy(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE("xlogy");
  calx_tensor *in[2] = { x, y }, *bad;
  if (!pair_of_floats("xlogy", in, &bad)) return bad;
  calx_tensor *zero = calx_logical_and(calx_eq(in[0], number(0)),
                                       calx_logical_not(calx_isnan(in[1])));
  calx_tensor *log = calx_log(calx_where(zero, number(1), in[1]));
  return calx_where(zero, number(0), calx_mul(in[0], log));
}

calx_tensor *calx_hypot(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE("hypot");
  calx_tensor *in[2] = { x, y }, *bad;
  if (!pair_of_floats("hypot", in, &bad)) return bad;
  // Scaled by the greater, so that the squares do not overflow.
  x = calx_abs(in[0]);
  y = calx_abs(in[1]);
  calx_tensor *most = calx_maximum(x, y);
  calx_tensor *flat =
      calx_logical_or(calx_eq(most, number(0)), calx_isinf(most));
  calx_tensor *scale = calx_where(flat, number(1), calx_detach(most));
  calx_tensor *sum = cx_ops_plus(calx_square(calx_div(x, scale)),
                                 calx_square(calx_div(y, scale)));
  return calx_where(flat, most, calx_mul(calx_sqrt(sum), scale));
}

// 1 / -0 is -infinity.
static calx_tensor *is_minus_zero(calx_tensor *x)
{
  return calx_logical_and(calx_eq(x, number(0)),
                          calx_lt(calx_reciprocal(x), number(0)));
}

calx_tensor *calx_copysign(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE("copysign");
  calx_tensor *in[2] = { x, y }, *bad;
  if (!pair_of_floats("copysign", in, &bad)) return bad;
  calx_tensor *negative =
      calx_logical_or(calx_lt(in[1], number(0)), is_minus_zero(in[1]));
  calx_tensor *size = calx_abs(in[0]);
  return calx_where(negative, calx_neg(size), size);
}

// ---- one operand ------------------------------------------------------------

calx_tensor *calx_deg2rad(calx_tensor *x)
{
  CX_OPS_COMPOSITE("deg2rad");
  return calx_mul(x, number(M_PI / 180));
}

calx_tensor *calx_rad2deg(calx_tensor *x)
{
  CX_OPS_COMPOSITE("rad2deg");
  return calx_mul(x, number(180 / M_PI));
}

calx_tensor *calx_sinc(calx_tensor *x)
{
  CX_OPS_COMPOSITE("sinc");
  if (!cx_ops_floating("sinc", &x, 1, &x)) return x;
  calx_tensor *zero = calx_eq(x, number(0));
  calx_tensor *y = calx_mul(calx_where(zero, number(1), x), number(M_PI));
  return calx_where(zero, number(1), calx_div(calx_sin(y), y));
}

calx_tensor *calx_logit(calx_tensor *x)
{
  CX_OPS_COMPOSITE("logit");
  if (!cx_ops_floating("logit", &x, 1, &x)) return x;
  return calx_log(calx_div(x, cx_ops_minus(number(1), x)));
}

calx_tensor *calx_heaviside(calx_tensor *x, calx_tensor *values)
{
  CX_OPS_COMPOSITE("heaviside");
  calx_tensor *in[2] = { x, values }, *bad;
  if (cx_ops_unfit("heaviside", in, 2, &bad)) return bad;
  calx_tensor *step =
      calx_to_dtype(calx_gt(x, number(0)), cx_lazy_tensor_shape(x)->dtype);
  return calx_where(calx_eq(x, number(0)), values, step);
}

// ---- NaN, zeros and types ---------------------------------------------------

calx_tensor *calx_xlog1py(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE("xlog1py");
  calx_tensor *in[2] = { x, y }, *bad;
  if (!pair_of_floats("xlog1py", in, &bad)) return bad;
  calx_tensor *zero = calx_logical_and(calx_eq(in[0], number(0)),
                                       calx_logical_not(calx_isnan(in[1])));
  calx_tensor *log = calx_log1p(calx_where(zero, number(1), in[1]));
  return calx_where(zero, number(0), calx_mul(in[0], log));
}

calx_tensor *calx_signbit(calx_tensor *x)
{
  CX_OPS_COMPOSITE("signbit");
  calx_tensor *bad;
  if (cx_ops_unfit("signbit", &x, 1, &bad)) return bad;
  calx_tensor *below = calx_lt(x, number(0));
  if (!cx_dtype_is_float(cx_lazy_tensor_shape(x)->dtype)) return below;
  return calx_logical_or(below, is_minus_zero(x));
}

calx_tensor *calx_float_power(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE("float_power");
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("float_power", in, 2, &bad)) return bad;
  // A number stays one, which calx_pow can make part of the program.
  for (int i = 0; i < 2; i++) {
    bool weak = cx_lazy_tensor_is(in[i], CX_LAZY_T_WEAK);
    if (!weak || cx_lazy_tensor_is(in[1 - i], CX_LAZY_T_WEAK)) {
      in[i] = weak ? cx_ops_weak_as(in[i], CALX_F64, NULL)
                   : calx_to_dtype(in[i], CALX_F64);
    }
  }
  return calx_pow(in[0], in[1]);
}

calx_tensor *calx_fmax(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE("fmax");
  return calx_where(calx_logical_or(calx_ge(x, y), calx_isnan(y)), x, y);
}

calx_tensor *calx_fmin(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE("fmin");
  return calx_where(calx_logical_or(calx_le(x, y), calx_isnan(y)), x, y);
}

calx_tensor *calx_clip(calx_tensor *x, calx_tensor *min, calx_tensor *max)
{
  CX_OPS_COMPOSITE("clip");
  return calx_clamp(x, min, max);
}

bool calx_allclose_with(calx_tensor *x, calx_tensor *y,
                        const calx_isclose_options *o)
{
  CX_OPS_COMPOSITE("allclose");
  calx_tensor *all = calx_all_with(calx_isclose_with(x, y, o), NULL);
  return calx_item_int(calx_to_dtype(all, CALX_I64)) != 0;
}
