/**
 * calx/ops_macros.h: the C spelling of calx/ops.h: call sites, numbers as
 * operands, options as designated initialisers. Part of calx/ops.h; not to be
 * included by itself. Off in C++ and with CALX_NO_SITES, where numbers and
 * options take the plain functions.
 */
#ifndef CALX_OPS_MACROS_H
#define CALX_OPS_MACROS_H

#include "calx/ops.h"

// The elementwise ops, for what is written once for all of them: calx.hpp and
// tests. M is a macro of the op's name.
// clang-format off
#define CALX_EACH_UNARY_(M) \
  M(neg) M(abs) M(sign) M(exp) M(expm1) M(log) M(log2) M(log1p) M(sqrt) \
  M(rsqrt) M(reciprocal) M(square) M(sin) M(cos) M(tanh) M(sigmoid) M(relu) \
  M(floor) M(ceil) M(round)  M(isnan) M(isfinite) M(tan) M(asin) M(acos) M(atan) M(sinh) M(cosh) \
  M(asinh) M(acosh) M(atanh) M(exp2) M(log10) M(erf) M(erfc) M(erfinv) \
  M(lgamma) M(digamma) M(trunc) M(frac) M(bitwise_not) M(isinf) M(isposinf) \
  M(isneginf) M(logical_not)
#define CALX_EACH_BINARY_(M) \
  M(mul) M(pow) M(maximum) M(minimum) M(remainder) M(fmod) M(atan2) M(logaddexp) \
  M(bitwise_and) M(bitwise_or) M(bitwise_xor) \
  M(eq) M(ne) M(lt) M(le) M(gt) M(ge)
// clang-format on

#if !defined(CALX_NO_SITES) && !defined(__cplusplus)

// The call site is set again by every operand's wrapper, since an operand that
// is a call has set its own; whichever is evaluated last sets this one.
#define CALX_T_(t) calx_here_(t, CALX_HERE)
#define CALX_N_(v) calx_here_(CALX_OPERAND_(v), CALX_HERE)
#define CALX_O_(options) calx_options_here_(options, CALX_HERE)

// calx_arange(end), calx_arange(start, end) and calx_arange(start, end, step);
// what comes next has a name. Without one it reaches a stop. Of gcc's two kinds
// one takes no number and the other no braces, so a call is tried with both.
#if defined(__clang__)
#define CALX_STOP_1_(name) CALX_NAMED
#define CALX_STOP_2_(name) CALX_NAMED
#else
#define CALX_STOP_1_(name) \
  __extension__ struct {   \
    struct {               \
    } none;                \
  } name[0];
#define CALX_STOP_2_(name) \
  struct CALX_OPTIONS {    \
    int none;              \
  } name;
#endif
#define CALX_ARANGE_CALL_(stop, type)              \
  typedef struct type {                            \
    double start, end, step;                       \
    stop(before_size) size_t size;                 \
    stop(before_dtype) calx_dtype dtype;           \
    stop(before_device) calx_device *device;       \
    stop(before_requires_grad) bool requires_grad; \
  } type
CALX_ARANGE_CALL_(CALX_STOP_1_, calx_arange_call_);
CALX_ARANGE_CALL_(CALX_STOP_2_, calx_arange_braces_);
#undef CALX_ARANGE_CALL_
#undef CALX_STOP_1_
#undef CALX_STOP_2_
static inline calx_tensor *calx_arange_here_(const calx_site *site,
                                             calx_arange_call_ call)
{
  bool one = call.end == CALX_UNWRITTEN_;
  calx_create_options options = { .size = call.size,
                                  .dtype = call.dtype,
                                  .device = call.device,
                                  .requires_grad = call.requires_grad };
  calx_at_(site);
  return calx_arange_with(one ? 0 : call.start, one ? call.start : call.end,
                          call.step, &options);
}
CALX_WRITTEN_(calx_diff_options, dim, calx_written_dim_);
CALX_WRITTEN_(calx_trapezoid_options, dim, calx_written_dim_);
CALX_WRITTEN_(calx_sort_options, dim, calx_written_dim_);
CALX_WRITTEN_(calx_topk_options, dim, calx_written_dim_);
CALX_WRITTEN_(calx_normalize_options, dim, calx_written_int_);
CALX_WRITTEN_(calx_cosine_similarity_options, dim, calx_written_int_);
CALX_WRITTEN_(calx_dropout_options, p, calx_written_);
CALX_WRITTEN_(calx_feature_dropout_options, p, calx_written_);

// An operand: a tensor as it is, a number as calx_scalar() makes it.
static inline calx_tensor *calx_operand_tensor_(calx_tensor *t)
{
  return t;
}
// What int64_t does not hold is told as the float that it is.
static inline calx_tensor *calx_operand_unsigned_(unsigned long long value)
{
  return value > (unsigned long long)INT64_MAX
             ? calx_scalar((double)value)
             : calx_scalar_int((int64_t)value);
}
static inline calx_tensor *calx_operand_wide_(long double value)
{
  return calx_scalar((double)value);
}
// A list in braces has commas, so its macros pass all arguments on as they are.
static inline calx_tensor *calx_cat_here_(const calx_site *site,
                                          calx_tensor *const *tensors,
                                          size_t count, int dim)
{
  calx_at_(site);
  return calx_cat(tensors, count, dim);
}
static inline calx_tensor *calx_stack_here_(const calx_site *site,
                                            calx_tensor *const *tensors,
                                            size_t count, int dim)
{
  calx_at_(site);
  return calx_stack(tensors, count, dim);
}
// clang-format off
// The operand is expanded once, so that the text of nested calls does not double
// with each level; each level's variable has a name of its own. Any type that is
// no integer must become a double: a pointer, NULL too, does not compile then.
#define CALX_OPERAND_(v) CALX_OPERAND_AS_(v, __COUNTER__)
#define CALX_OPERAND_AS_(v, n) CALX_OPERAND_IN_(v, n)
#define CALX_OPERAND_IN_(v, n)                                             \
  __extension__({                                                          \
    __auto_type calx_operand_##n = (v);                                    \
    _Generic(calx_operand_##n, calx_tensor *: calx_operand_tensor_,        \
        _Bool: calx_scalar_int, char: calx_scalar_int,                     \
        signed char: calx_scalar_int, unsigned char: calx_scalar_int,      \
        short: calx_scalar_int, unsigned short: calx_scalar_int,           \
        int: calx_scalar_int, unsigned: calx_scalar_int,                   \
        long: calx_scalar_int, long long: calx_scalar_int,                 \
        unsigned long: calx_operand_unsigned_,                             \
        unsigned long long: calx_operand_unsigned_,                        \
        long double: calx_operand_wide_,                                   \
        default: calx_scalar)(calx_operand_##n);                           \
  })

// ---- numbers ----
#define calx_scalar(value) (calx_at_(CALX_HERE), calx_scalar(value))
#define calx_scalar_int(value) (calx_at_(CALX_HERE), calx_scalar_int(value))

// ---- one operand ----
#define calx_neg(x) (calx_at_(CALX_HERE), calx_neg(CALX_T_(x)))
#define calx_abs(x) (calx_at_(CALX_HERE), calx_abs(CALX_T_(x)))
#define calx_sign(x) (calx_at_(CALX_HERE), calx_sign(CALX_T_(x)))
#define calx_exp(x) (calx_at_(CALX_HERE), calx_exp(CALX_T_(x)))
#define calx_expm1(x) (calx_at_(CALX_HERE), calx_expm1(CALX_T_(x)))
#define calx_log(x) (calx_at_(CALX_HERE), calx_log(CALX_T_(x)))
#define calx_log2(x) (calx_at_(CALX_HERE), calx_log2(CALX_T_(x)))
#define calx_log1p(x) (calx_at_(CALX_HERE), calx_log1p(CALX_T_(x)))
#define calx_sqrt(x) (calx_at_(CALX_HERE), calx_sqrt(CALX_T_(x)))
#define calx_rsqrt(x) (calx_at_(CALX_HERE), calx_rsqrt(CALX_T_(x)))
#define calx_reciprocal(x) (calx_at_(CALX_HERE), calx_reciprocal(CALX_T_(x)))
#define calx_square(x) (calx_at_(CALX_HERE), calx_square(CALX_T_(x)))
#define calx_sin(x) (calx_at_(CALX_HERE), calx_sin(CALX_T_(x)))
#define calx_cos(x) (calx_at_(CALX_HERE), calx_cos(CALX_T_(x)))
#define calx_tanh(x) (calx_at_(CALX_HERE), calx_tanh(CALX_T_(x)))
#define calx_sigmoid(x) (calx_at_(CALX_HERE), calx_sigmoid(CALX_T_(x)))
#define calx_relu(x) (calx_at_(CALX_HERE), calx_relu(CALX_T_(x)))
#define calx_floor(x) (calx_at_(CALX_HERE), calx_floor(CALX_T_(x)))
#define calx_ceil(x) (calx_at_(CALX_HERE), calx_ceil(CALX_T_(x)))
#define calx_round(x) (calx_at_(CALX_HERE), calx_round(CALX_T_(x)))
#define calx_isnan(x) (calx_at_(CALX_HERE), calx_isnan(CALX_T_(x)))
#define calx_isfinite(x) (calx_at_(CALX_HERE), calx_isfinite(CALX_T_(x)))
#define calx_tan(x) (calx_at_(CALX_HERE), calx_tan(CALX_T_(x)))
#define calx_asin(x) (calx_at_(CALX_HERE), calx_asin(CALX_T_(x)))
#define calx_acos(x) (calx_at_(CALX_HERE), calx_acos(CALX_T_(x)))
#define calx_atan(x) (calx_at_(CALX_HERE), calx_atan(CALX_T_(x)))
#define calx_sinh(x) (calx_at_(CALX_HERE), calx_sinh(CALX_T_(x)))
#define calx_cosh(x) (calx_at_(CALX_HERE), calx_cosh(CALX_T_(x)))
#define calx_asinh(x) (calx_at_(CALX_HERE), calx_asinh(CALX_T_(x)))
#define calx_acosh(x) (calx_at_(CALX_HERE), calx_acosh(CALX_T_(x)))
#define calx_atanh(x) (calx_at_(CALX_HERE), calx_atanh(CALX_T_(x)))
#define calx_exp2(x) (calx_at_(CALX_HERE), calx_exp2(CALX_T_(x)))
#define calx_log10(x) (calx_at_(CALX_HERE), calx_log10(CALX_T_(x)))
#define calx_erf(x) (calx_at_(CALX_HERE), calx_erf(CALX_T_(x)))
#define calx_erfc(x) (calx_at_(CALX_HERE), calx_erfc(CALX_T_(x)))
#define calx_erfinv(x) (calx_at_(CALX_HERE), calx_erfinv(CALX_T_(x)))
#define calx_lgamma(x) (calx_at_(CALX_HERE), calx_lgamma(CALX_T_(x)))
#define calx_digamma(x) (calx_at_(CALX_HERE), calx_digamma(CALX_T_(x)))
#define calx_trunc(x) (calx_at_(CALX_HERE), calx_trunc(CALX_T_(x)))
#define calx_frac(x) (calx_at_(CALX_HERE), calx_frac(CALX_T_(x)))
#define calx_bitwise_not(x) (calx_at_(CALX_HERE), calx_bitwise_not(CALX_T_(x)))
#define calx_isinf(x) (calx_at_(CALX_HERE), calx_isinf(CALX_T_(x)))
#define calx_isposinf(x) (calx_at_(CALX_HERE), calx_isposinf(CALX_T_(x)))
#define calx_isneginf(x) (calx_at_(CALX_HERE), calx_isneginf(CALX_T_(x)))
#define calx_logical_not(x) (calx_at_(CALX_HERE), calx_logical_not(CALX_T_(x)))
#define calx_polygamma(n, x) (calx_at_(CALX_HERE), calx_polygamma(n, CALX_T_(x)))
#define calx_detach(x) (calx_at_(CALX_HERE), calx_detach(CALX_T_(x)))
#define calx_max(x) (calx_at_(CALX_HERE), calx_max(CALX_T_(x)))
#define calx_min(x) (calx_at_(CALX_HERE), calx_min(CALX_T_(x)))
#define calx_t(x) (calx_at_(CALX_HERE), calx_t(CALX_T_(x)))

// ---- two operands ----
#define calx_mul(x, y) (calx_at_(CALX_HERE), calx_mul(CALX_N_(x), CALX_N_(y)))
#define calx_div(x, ...) CALX_DIV_(x, __VA_ARGS__, .size = sizeof(calx_div_options))
#define CALX_DIV_(x, y, ...) (calx_at_(CALX_HERE), calx_div_with(CALX_N_(x), CALX_N_(y), CALX_O_((&(calx_div_options){ __VA_ARGS__ }))))
#define calx_pow(x, y) (calx_at_(CALX_HERE), calx_pow(CALX_N_(x), CALX_N_(y)))
#define calx_maximum(x, y) (calx_at_(CALX_HERE), calx_maximum(CALX_N_(x), CALX_N_(y)))
#define calx_minimum(x, y) (calx_at_(CALX_HERE), calx_minimum(CALX_N_(x), CALX_N_(y)))
#define calx_remainder(x, y) (calx_at_(CALX_HERE), calx_remainder(CALX_N_(x), CALX_N_(y)))
#define calx_fmod(x, y) (calx_at_(CALX_HERE), calx_fmod(CALX_N_(x), CALX_N_(y)))
#define calx_atan2(x, y) (calx_at_(CALX_HERE), calx_atan2(CALX_N_(x), CALX_N_(y)))
#define calx_logaddexp(x, y) (calx_at_(CALX_HERE), calx_logaddexp(CALX_N_(x), CALX_N_(y)))
#define calx_bitwise_and(x, y) (calx_at_(CALX_HERE), calx_bitwise_and(CALX_N_(x), CALX_N_(y)))
#define calx_bitwise_or(x, y) (calx_at_(CALX_HERE), calx_bitwise_or(CALX_N_(x), CALX_N_(y)))
#define calx_bitwise_xor(x, y) (calx_at_(CALX_HERE), calx_bitwise_xor(CALX_N_(x), CALX_N_(y)))
#define calx_bitwise_left_shift(x, y) (calx_at_(CALX_HERE), calx_bitwise_left_shift(CALX_N_(x), CALX_N_(y)))
#define calx_bitwise_right_shift(x, y) (calx_at_(CALX_HERE), calx_bitwise_right_shift(CALX_N_(x), CALX_N_(y)))
#define calx_nextafter(x, y) (calx_at_(CALX_HERE), calx_nextafter(CALX_N_(x), CALX_N_(y)))
#define calx_eq(x, y) (calx_at_(CALX_HERE), calx_eq(CALX_N_(x), CALX_N_(y)))
#define calx_ne(x, y) (calx_at_(CALX_HERE), calx_ne(CALX_N_(x), CALX_N_(y)))
#define calx_lt(x, y) (calx_at_(CALX_HERE), calx_lt(CALX_N_(x), CALX_N_(y)))
#define calx_le(x, y) (calx_at_(CALX_HERE), calx_le(CALX_N_(x), CALX_N_(y)))
#define calx_gt(x, y) (calx_at_(CALX_HERE), calx_gt(CALX_N_(x), CALX_N_(y)))
#define calx_ge(x, y) (calx_at_(CALX_HERE), calx_ge(CALX_N_(x), CALX_N_(y)))
#define calx_add(x, ...) CALX_ADD_(x, __VA_ARGS__, .size = sizeof(calx_add_options))
#define CALX_ADD_(x, y, ...) (calx_at_(CALX_HERE), calx_add_with(CALX_N_(x), CALX_N_(y), CALX_O_((&(calx_add_options){ __VA_ARGS__ }))))
#define calx_sub(x, ...) CALX_SUB_(x, __VA_ARGS__, .size = sizeof(calx_add_options))
#define CALX_SUB_(x, y, ...) (calx_at_(CALX_HERE), calx_sub_with(CALX_N_(x), CALX_N_(y), CALX_O_((&(calx_add_options){ __VA_ARGS__ }))))
#define calx_where(c, x, y) (calx_at_(CALX_HERE), calx_where(CALX_T_(c), CALX_N_(x), CALX_N_(y)))

// ---- calx/pointwise.h ----
#define calx_deg2rad(x) (calx_at_(CALX_HERE), calx_deg2rad(CALX_T_(x)))
#define calx_rad2deg(x) (calx_at_(CALX_HERE), calx_rad2deg(CALX_T_(x)))
#define calx_sinc(x) (calx_at_(CALX_HERE), calx_sinc(CALX_T_(x)))
#define calx_logit(x) (calx_at_(CALX_HERE), calx_logit(CALX_T_(x)))
#define calx_clamp_min(x, y) (calx_at_(CALX_HERE), calx_clamp_min(CALX_N_(x), CALX_N_(y)))
#define calx_clamp_max(x, y) (calx_at_(CALX_HERE), calx_clamp_max(CALX_N_(x), CALX_N_(y)))
#define calx_logical_and(x, y) (calx_at_(CALX_HERE), calx_logical_and(CALX_N_(x), CALX_N_(y)))
#define calx_logical_or(x, y) (calx_at_(CALX_HERE), calx_logical_or(CALX_N_(x), CALX_N_(y)))
#define calx_logical_xor(x, y) (calx_at_(CALX_HERE), calx_logical_xor(CALX_N_(x), CALX_N_(y)))
#define calx_xlogy(x, y) (calx_at_(CALX_HERE), calx_xlogy(CALX_N_(x), CALX_N_(y)))
#define calx_hypot(x, y) (calx_at_(CALX_HERE), calx_hypot(CALX_N_(x), CALX_N_(y)))
#define calx_copysign(x, y) (calx_at_(CALX_HERE), calx_copysign(CALX_N_(x), CALX_N_(y)))
#define calx_heaviside(x, y) (calx_at_(CALX_HERE), calx_heaviside(CALX_N_(x), CALX_N_(y)))
#define calx_clamp(x, y, z) (calx_at_(CALX_HERE), calx_clamp(CALX_N_(x), CALX_N_(y), CALX_N_(z)))
#define calx_lerp(x, y, z) (calx_at_(CALX_HERE), calx_lerp(CALX_N_(x), CALX_N_(y), CALX_N_(z)))
#define calx_masked_fill(x, mask, value) (calx_at_(CALX_HERE), calx_masked_fill(CALX_T_(x), CALX_T_(mask), CALX_N_(value)))
#define calx_addcmul(x, y, ...) CALX_ADDCMUL_(x, y, __VA_ARGS__, .size = sizeof(calx_addcmul_options))
#define CALX_ADDCMUL_(x, y, z, ...) (calx_at_(CALX_HERE), calx_addcmul_with(CALX_T_(x), CALX_T_(y), CALX_T_(z), CALX_O_((&(calx_addcmul_options){ __VA_ARGS__ }))))
#define calx_addcdiv(x, y, ...) CALX_ADDCDIV_(x, y, __VA_ARGS__, .size = sizeof(calx_addcmul_options))
#define CALX_ADDCDIV_(x, y, z, ...) (calx_at_(CALX_HERE), calx_addcdiv_with(CALX_T_(x), CALX_T_(y), CALX_T_(z), CALX_O_((&(calx_addcmul_options){ __VA_ARGS__ }))))
#define calx_isclose(x, ...) CALX_ISCLOSE_(x, __VA_ARGS__, .size = sizeof(calx_isclose_options))
#define CALX_ISCLOSE_(x, y, ...) (calx_at_(CALX_HERE), calx_isclose_with(CALX_T_(x), CALX_N_(y), CALX_O_((&(calx_isclose_options){ __VA_ARGS__ }))))
#define calx_nan_to_num(...) CALX_NAN_TO_NUM_(__VA_ARGS__, .size = sizeof(calx_nan_to_num_options))
#define CALX_NAN_TO_NUM_(x, ...) (calx_at_(CALX_HERE), calx_nan_to_num_with(CALX_T_(x), CALX_O_((&(calx_nan_to_num_options){ __VA_ARGS__ }))))
#define calx_signbit(x) (calx_at_(CALX_HERE), calx_signbit(CALX_T_(x)))
#define calx_xlog1py(x, y) (calx_at_(CALX_HERE), calx_xlog1py(CALX_N_(x), CALX_N_(y)))
#define calx_float_power(x, y) (calx_at_(CALX_HERE), calx_float_power(CALX_N_(x), CALX_N_(y)))
#define calx_fmax(x, y) (calx_at_(CALX_HERE), calx_fmax(CALX_N_(x), CALX_N_(y)))
#define calx_fmin(x, y) (calx_at_(CALX_HERE), calx_fmin(CALX_N_(x), CALX_N_(y)))
#define calx_clip(x, y, z) (calx_at_(CALX_HERE), calx_clip(CALX_N_(x), CALX_N_(y), CALX_N_(z)))
#define calx_gcd(x, y) (calx_at_(CALX_HERE), calx_gcd(CALX_N_(x), CALX_N_(y)))
#define calx_lcm(x, y) (calx_at_(CALX_HERE), calx_lcm(CALX_N_(x), CALX_N_(y)))
#define calx_ldexp(x, y) (calx_at_(CALX_HERE), calx_ldexp(CALX_N_(x), CALX_N_(y)))
#define calx_logaddexp2(x, y) (calx_at_(CALX_HERE), calx_logaddexp2(CALX_N_(x), CALX_N_(y)))
#define calx_isreal(x) (calx_at_(CALX_HERE), calx_isreal(CALX_T_(x)))
#define calx_equal(x, y) (calx_at_(CALX_HERE), calx_equal(CALX_T_(x), CALX_T_(y)))
#define calx_frexp(x, out_exponent) (calx_at_(CALX_HERE), calx_frexp(CALX_T_(x), out_exponent))
#define calx_allclose(x, ...) CALX_ALLCLOSE_(x, __VA_ARGS__, .size = sizeof(calx_isclose_options))
#define CALX_ALLCLOSE_(x, y, ...) (calx_at_(CALX_HERE), calx_allclose_with(CALX_T_(x), CALX_N_(y), CALX_O_((&(calx_isclose_options){ __VA_ARGS__ }))))

// ---- calx/loss.h ----
#define calx_mse_loss(x, ...) CALX_MSE_LOSS_(x, __VA_ARGS__, .size = sizeof(calx_loss_options))
#define CALX_MSE_LOSS_(x, target, ...) (calx_at_(CALX_HERE), calx_mse_loss_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_loss_options){ __VA_ARGS__ }))))
#define calx_l1_loss(x, ...) CALX_L1_LOSS_(x, __VA_ARGS__, .size = sizeof(calx_loss_options))
#define CALX_L1_LOSS_(x, target, ...) (calx_at_(CALX_HERE), calx_l1_loss_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_loss_options){ __VA_ARGS__ }))))
#define calx_smooth_l1_loss(x, ...) CALX_SMOOTH_L1_LOSS_(x, __VA_ARGS__, .size = sizeof(calx_smooth_l1_loss_options))
#define CALX_SMOOTH_L1_LOSS_(x, target, ...) (calx_at_(CALX_HERE), calx_smooth_l1_loss_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_smooth_l1_loss_options){ __VA_ARGS__ }))))
#define calx_huber_loss(x, ...) CALX_HUBER_LOSS_(x, __VA_ARGS__, .size = sizeof(calx_huber_loss_options))
#define CALX_HUBER_LOSS_(x, target, ...) (calx_at_(CALX_HERE), calx_huber_loss_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_huber_loss_options){ __VA_ARGS__ }))))
#define calx_binary_cross_entropy(x, ...) CALX_BINARY_CROSS_ENTROPY_(x, __VA_ARGS__, .size = sizeof(calx_binary_cross_entropy_options))
#define CALX_BINARY_CROSS_ENTROPY_(x, target, ...) (calx_at_(CALX_HERE), calx_binary_cross_entropy_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_binary_cross_entropy_options){ __VA_ARGS__ }))))
#define calx_binary_cross_entropy_with_logits(x, ...) CALX_BINARY_CROSS_ENTROPY_WITH_LOGITS_(x, __VA_ARGS__, .size = sizeof(calx_binary_cross_entropy_with_logits_options))
#define CALX_BINARY_CROSS_ENTROPY_WITH_LOGITS_(x, target, ...) (calx_at_(CALX_HERE), calx_binary_cross_entropy_with_logits_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_binary_cross_entropy_with_logits_options){ __VA_ARGS__ }))))
#define calx_kl_div(x, ...) CALX_KL_DIV_(x, __VA_ARGS__, .size = sizeof(calx_kl_div_options))
#define CALX_KL_DIV_(x, target, ...) (calx_at_(CALX_HERE), calx_kl_div_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_kl_div_options){ __VA_ARGS__ }))))
#define calx_poisson_nll_loss(x, ...) CALX_POISSON_NLL_LOSS_(x, __VA_ARGS__, .size = sizeof(calx_poisson_nll_loss_options))
#define CALX_POISSON_NLL_LOSS_(x, target, ...) (calx_at_(CALX_HERE), calx_poisson_nll_loss_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_poisson_nll_loss_options){ __VA_ARGS__ }))))
#define calx_soft_margin_loss(x, ...) CALX_SOFT_MARGIN_LOSS_(x, __VA_ARGS__, .size = sizeof(calx_loss_options))
#define CALX_SOFT_MARGIN_LOSS_(x, target, ...) (calx_at_(CALX_HERE), calx_soft_margin_loss_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_loss_options){ __VA_ARGS__ }))))
#define calx_hinge_embedding_loss(x, ...) CALX_HINGE_EMBEDDING_LOSS_(x, __VA_ARGS__, .size = sizeof(calx_hinge_embedding_loss_options))
#define CALX_HINGE_EMBEDDING_LOSS_(x, target, ...) (calx_at_(CALX_HERE), calx_hinge_embedding_loss_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_hinge_embedding_loss_options){ __VA_ARGS__ }))))
#define calx_margin_ranking_loss(x, y, ...) CALX_MARGIN_RANKING_LOSS_(x, y, __VA_ARGS__, .size = sizeof(calx_margin_loss_options))
#define CALX_MARGIN_RANKING_LOSS_(x, y, target, ...) (calx_at_(CALX_HERE), calx_margin_ranking_loss_with(CALX_T_(x), CALX_T_(y), CALX_T_(target), CALX_O_((&(calx_margin_loss_options){ __VA_ARGS__ }))))
#define calx_cosine_embedding_loss(x, y, ...) CALX_COSINE_EMBEDDING_LOSS_(x, y, __VA_ARGS__, .size = sizeof(calx_margin_loss_options))
#define CALX_COSINE_EMBEDDING_LOSS_(x, y, target, ...) (calx_at_(CALX_HERE), calx_cosine_embedding_loss_with(CALX_T_(x), CALX_T_(y), CALX_T_(target), CALX_O_((&(calx_margin_loss_options){ __VA_ARGS__ }))))
#define calx_triplet_margin_loss(a, b, ...) CALX_TRIPLET_MARGIN_LOSS_(a, b, __VA_ARGS__, .size = sizeof(calx_triplet_margin_loss_options))
#define CALX_TRIPLET_MARGIN_LOSS_(a, b, c, ...) (calx_at_(CALX_HERE), calx_triplet_margin_loss_with(CALX_T_(a), CALX_T_(b), CALX_T_(c), CALX_O_((&(calx_triplet_margin_loss_options){ __VA_ARGS__ }))))
#define calx_triplet_margin_with_distance_loss(a, b, ...) CALX_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_(a, b, __VA_ARGS__, .size = sizeof(calx_triplet_margin_with_distance_loss_options))
#define CALX_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_(a, b, c, ...) (calx_at_(CALX_HERE), calx_triplet_margin_with_distance_loss_with(CALX_T_(a), CALX_T_(b), CALX_T_(c), CALX_O_((&(calx_triplet_margin_with_distance_loss_options){ __VA_ARGS__ }))))
#define calx_multi_margin_loss(x, ...) CALX_MULTI_MARGIN_LOSS_(x, __VA_ARGS__, .size = sizeof(calx_multi_margin_loss_options))
#define CALX_MULTI_MARGIN_LOSS_(x, target, ...) (calx_at_(CALX_HERE), calx_multi_margin_loss_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_multi_margin_loss_options){ __VA_ARGS__ }))))
#define calx_multilabel_margin_loss(x, ...) CALX_MULTILABEL_MARGIN_LOSS_(x, __VA_ARGS__, .size = sizeof(calx_loss_options))
#define CALX_MULTILABEL_MARGIN_LOSS_(x, target, ...) (calx_at_(CALX_HERE), calx_multilabel_margin_loss_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_loss_options){ __VA_ARGS__ }))))
#define calx_multilabel_soft_margin_loss(x, ...) CALX_MULTILABEL_SOFT_MARGIN_LOSS_(x, __VA_ARGS__, .size = sizeof(calx_multilabel_soft_margin_loss_options))
#define CALX_MULTILABEL_SOFT_MARGIN_LOSS_(x, target, ...) (calx_at_(CALX_HERE), calx_multilabel_soft_margin_loss_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_multilabel_soft_margin_loss_options){ __VA_ARGS__ }))))
#define calx_linear_cross_entropy(x, w, ...) CALX_LINEAR_CROSS_ENTROPY_(x, w, __VA_ARGS__, .size = sizeof(calx_linear_cross_entropy_options))
#define CALX_LINEAR_CROSS_ENTROPY_(x, w, target, ...) (calx_at_(CALX_HERE), calx_linear_cross_entropy_with(CALX_T_(x), CALX_T_(w), CALX_T_(target), CALX_O_((&(calx_linear_cross_entropy_options){ __VA_ARGS__ }))))
#define calx_gaussian_nll_loss(x, target, ...) CALX_GAUSSIAN_NLL_LOSS_(x, target, __VA_ARGS__, .size = sizeof(calx_gaussian_nll_loss_options))
#define CALX_GAUSSIAN_NLL_LOSS_(x, target, var, ...) (calx_at_(CALX_HERE), calx_gaussian_nll_loss_with(CALX_T_(x), CALX_T_(target), CALX_T_(var), CALX_O_((&(calx_gaussian_nll_loss_options){ __VA_ARGS__ }))))
#define calx_ctc_loss(a, b, c, ...) CALX_CTC_LOSS_(a, b, c, __VA_ARGS__, .size = sizeof(calx_ctc_loss_options))
#define CALX_CTC_LOSS_(a, b, c, d, ...) (calx_at_(CALX_HERE), calx_ctc_loss_with(CALX_T_(a), CALX_T_(b), CALX_T_(c), CALX_T_(d), CALX_O_((&(calx_ctc_loss_options){ __VA_ARGS__ }))))

// ---- calx/arrange.h; lists in braces have commas, so dots pass them on ----
#define calx_flip(x, ...) (calx_at_(CALX_HERE), calx_flip(CALX_T_(x), __VA_ARGS__))
#define calx_repeat(x, ...) (calx_at_(CALX_HERE), calx_repeat(CALX_T_(x), __VA_ARGS__))
#define calx_tile(x, ...) (calx_at_(CALX_HERE), calx_tile(CALX_T_(x), __VA_ARGS__))
#define calx_repeat_interleave(x, repeats, dim) (calx_at_(CALX_HERE), calx_repeat_interleave(CALX_T_(x), repeats, dim))
#define calx_movedim(x, source, destination) (calx_at_(CALX_HERE), calx_movedim(CALX_T_(x), source, destination))
#define calx_unflatten(x, ...) (calx_at_(CALX_HERE), calx_unflatten(CALX_T_(x), __VA_ARGS__))
#define calx_narrow(x, dim, start, length) (calx_at_(CALX_HERE), calx_narrow(CALX_T_(x), dim, start, length))
#define calx_split(x, ...) (calx_at_(CALX_HERE), calx_split(CALX_T_(x), __VA_ARGS__))
#define calx_chunk(x, chunks, dim, out) (calx_at_(CALX_HERE), calx_chunk(CALX_T_(x), chunks, dim, out))
#define calx_unbind(x, dim, out) (calx_at_(CALX_HERE), calx_unbind(CALX_T_(x), dim, out))
#define calx_roll(x, ...) (calx_at_(CALX_HERE), calx_roll(CALX_T_(x), __VA_ARGS__))
#define calx_tril(x, diagonal) (calx_at_(CALX_HERE), calx_tril(CALX_T_(x), diagonal))
#define calx_triu(x, diagonal) (calx_at_(CALX_HERE), calx_triu(CALX_T_(x), diagonal))
#define calx_pixel_shuffle(x, upscale_factor) (calx_at_(CALX_HERE), calx_pixel_shuffle(CALX_T_(x), upscale_factor))
#define calx_diagonal(...) CALX_DIAGONAL_(__VA_ARGS__, .size = sizeof(calx_diagonal_options))
#define CALX_DIAGONAL_(x, ...) (calx_at_(CALX_HERE), calx_diagonal_with(CALX_T_(x), CALX_O_((&(calx_diagonal_options){ __VA_ARGS__ }))))
#define calx_pad(x, ...) CALX_PAD_(x, __VA_ARGS__, .size = sizeof(calx_pad_options))
#define CALX_PAD_(x, pad, ...) (calx_at_(CALX_HERE), calx_pad_with(CALX_T_(x), pad, CALX_O_((&(calx_pad_options){ __VA_ARGS__ }))))
#define calx_fliplr(x) (calx_at_(CALX_HERE), calx_fliplr(CALX_T_(x)))
#define calx_flipud(x) (calx_at_(CALX_HERE), calx_flipud(CALX_T_(x)))
#define calx_atleast_1d(x) (calx_at_(CALX_HERE), calx_atleast_1d(CALX_T_(x)))
#define calx_atleast_2d(x) (calx_at_(CALX_HERE), calx_atleast_2d(CALX_T_(x)))
#define calx_atleast_3d(x) (calx_at_(CALX_HERE), calx_atleast_3d(CALX_T_(x)))
#define calx_trace(x) (calx_at_(CALX_HERE), calx_trace(CALX_T_(x)))
#define calx_rot90(x, k, ...) (calx_at_(CALX_HERE), calx_rot90(CALX_T_(x), k, __VA_ARGS__))
#define calx_swapaxes(x, axis0, axis1) (calx_at_(CALX_HERE), calx_swapaxes(CALX_T_(x), axis0, axis1))
#define calx_swapdims(x, dim0, dim1) (calx_at_(CALX_HERE), calx_swapdims(CALX_T_(x), dim0, dim1))
#define calx_moveaxis(x, source, destination) (calx_at_(CALX_HERE), calx_moveaxis(CALX_T_(x), source, destination))
#define calx_broadcast_to(x, ...) (calx_at_(CALX_HERE), calx_broadcast_to(CALX_T_(x), __VA_ARGS__))
#define calx_expand_as(x, y) (calx_at_(CALX_HERE), calx_expand_as(CALX_T_(x), CALX_T_(y)))
#define calx_hstack(...) (calx_at_(CALX_HERE), calx_hstack(__VA_ARGS__))
#define calx_vstack(...) (calx_at_(CALX_HERE), calx_vstack(__VA_ARGS__))
#define calx_dstack(...) (calx_at_(CALX_HERE), calx_dstack(__VA_ARGS__))
#define calx_block_diag(...) (calx_at_(CALX_HERE), calx_block_diag(__VA_ARGS__))
#define calx_split_with_sizes(x, ...) (calx_at_(CALX_HERE), calx_split_with_sizes(CALX_T_(x), __VA_ARGS__))
#define calx_tensor_split(x, sections, dim, out) (calx_at_(CALX_HERE), calx_tensor_split(CALX_T_(x), sections, dim, out))
#define calx_tensor_split_at(x, ...) (calx_at_(CALX_HERE), calx_tensor_split_at(CALX_T_(x), __VA_ARGS__))
#define calx_diag(x, diagonal) (calx_at_(CALX_HERE), calx_diag(CALX_T_(x), diagonal))
#define calx_diag_embed(...) CALX_DIAG_EMBED_(__VA_ARGS__, .size = sizeof(calx_diagonal_options))
#define CALX_DIAG_EMBED_(x, ...) (calx_at_(CALX_HERE), calx_diag_embed_with(CALX_T_(x), CALX_O_((&(calx_diagonal_options){ __VA_ARGS__ }))))
#define calx_slice_scatter(x, source, dim, start, end, step) (calx_at_(CALX_HERE), calx_slice_scatter(CALX_T_(x), CALX_N_(source), dim, start, end, step))
#define calx_select_scatter(x, source, dim, index) (calx_at_(CALX_HERE), calx_select_scatter(CALX_T_(x), CALX_N_(source), dim, index))

// ---- calx/linalg.h ----
#define calx_grouped_mm(x, y, offs) (calx_at_(CALX_HERE), calx_grouped_mm(CALX_T_(x), CALX_T_(y), CALX_T_(offs)))
#define calx_bmm(x, y) (calx_at_(CALX_HERE), calx_bmm(CALX_T_(x), CALX_T_(y)))
#define calx_mv(x, y) (calx_at_(CALX_HERE), calx_mv(CALX_T_(x), CALX_T_(y)))
#define calx_dot(x, y) (calx_at_(CALX_HERE), calx_dot(CALX_T_(x), CALX_T_(y)))
#define calx_outer(x, y) (calx_at_(CALX_HERE), calx_outer(CALX_T_(x), CALX_T_(y)))
#define calx_einsum(equation, ...) (calx_at_(CALX_HERE), calx_einsum(equation, __VA_ARGS__))
#define calx_addmm(input, x, ...) CALX_ADDMM_(input, x, __VA_ARGS__, .size = sizeof(calx_addmm_options))
#define CALX_ADDMM_(input, x, y, ...) (calx_at_(CALX_HERE), calx_addmm_with(CALX_T_(input), CALX_T_(x), CALX_T_(y), CALX_O_((&(calx_addmm_options){ __VA_ARGS__ }))))
#define calx_addmv(input, x, ...) CALX_ADDMV_(input, x, __VA_ARGS__, .size = sizeof(calx_addmm_options))
#define CALX_ADDMV_(input, x, y, ...) (calx_at_(CALX_HERE), calx_addmv_with(CALX_T_(input), CALX_T_(x), CALX_T_(y), CALX_O_((&(calx_addmm_options){ __VA_ARGS__ }))))
#define calx_baddbmm(input, x, ...) CALX_BADDBMM_(input, x, __VA_ARGS__, .size = sizeof(calx_addmm_options))
#define CALX_BADDBMM_(input, x, y, ...) (calx_at_(CALX_HERE), calx_baddbmm_with(CALX_T_(input), CALX_T_(x), CALX_T_(y), CALX_O_((&(calx_addmm_options){ __VA_ARGS__ }))))
#define calx_addr(input, x, ...) CALX_ADDR_(input, x, __VA_ARGS__, .size = sizeof(calx_addmm_options))
#define CALX_ADDR_(input, x, y, ...) (calx_at_(CALX_HERE), calx_addr_with(CALX_T_(input), CALX_T_(x), CALX_T_(y), CALX_O_((&(calx_addmm_options){ __VA_ARGS__ }))))
#define calx_ger(x, y) (calx_at_(CALX_HERE), calx_ger(CALX_T_(x), CALX_T_(y)))
// ---- factorisations ----
#define calx_cholesky(...) CALX_CHOLESKY_(__VA_ARGS__, .size = sizeof(calx_cholesky_options))
#define CALX_CHOLESKY_(x, ...) (calx_at_(CALX_HERE), calx_cholesky_with(CALX_T_(x), CALX_O_((&(calx_cholesky_options){ __VA_ARGS__ }))))
#define calx_cholesky_solve(b, ...) CALX_CHOLESKY_SOLVE_(b, __VA_ARGS__, .size = sizeof(calx_cholesky_options))
#define CALX_CHOLESKY_SOLVE_(b, l, ...) (calx_at_(CALX_HERE), calx_cholesky_solve_with(CALX_T_(b), CALX_T_(l), CALX_O_((&(calx_cholesky_options){ __VA_ARGS__ }))))
#define calx_cholesky_inverse(...) CALX_CHOLESKY_INVERSE_(__VA_ARGS__, .size = sizeof(calx_cholesky_options))
#define CALX_CHOLESKY_INVERSE_(l, ...) (calx_at_(CALX_HERE), calx_cholesky_inverse_with(CALX_T_(l), CALX_O_((&(calx_cholesky_options){ __VA_ARGS__ }))))
#define calx_solve_triangular(a, ...) CALX_SOLVE_TRIANGULAR_(a, __VA_ARGS__, .size = sizeof(calx_solve_triangular_options))
#define CALX_SOLVE_TRIANGULAR_(a, b, ...) (calx_at_(CALX_HERE), calx_solve_triangular_with(CALX_T_(a), CALX_T_(b), CALX_O_((&(calx_solve_triangular_options){ __VA_ARGS__ }))))
#define calx_qr(x, ...) CALX_QR_(x, __VA_ARGS__, .size = sizeof(calx_qr_options))
#define CALX_QR_(x, out_r, ...) (calx_at_(CALX_HERE), calx_qr_with(CALX_T_(x), out_r, CALX_O_((&(calx_qr_options){ __VA_ARGS__ }))))
#define calx_lu(x, out_l, out_u) (calx_at_(CALX_HERE), calx_lu(CALX_T_(x), out_l, out_u))
#define calx_lu_factor(x, out_pivots) (calx_at_(CALX_HERE), calx_lu_factor(CALX_T_(x), out_pivots))
#define calx_lu_unpack(lu, pivots, out_l, out_u) (calx_at_(CALX_HERE), calx_lu_unpack(CALX_T_(lu), CALX_T_(pivots), out_l, out_u))
#define calx_lu_solve(lu, pivots, ...) CALX_LU_SOLVE_(lu, pivots, __VA_ARGS__, .size = sizeof(calx_lu_solve_options))
#define CALX_LU_SOLVE_(lu, pivots, b, ...) (calx_at_(CALX_HERE), calx_lu_solve_with(CALX_T_(lu), CALX_T_(pivots), CALX_T_(b), CALX_O_((&(calx_lu_solve_options){ __VA_ARGS__ }))))
#define calx_geqrf(x, out_tau) (calx_at_(CALX_HERE), calx_geqrf(CALX_T_(x), out_tau))
#define calx_householder_product(x, tau) (calx_at_(CALX_HERE), calx_householder_product(CALX_T_(x), CALX_T_(tau)))
#define calx_orgqr(x, tau) (calx_at_(CALX_HERE), calx_orgqr(CALX_T_(x), CALX_T_(tau)))
#define calx_ormqr(x, tau, ...) CALX_ORMQR_(x, tau, __VA_ARGS__, .size = sizeof(calx_ormqr_options))
#define CALX_ORMQR_(x, tau, other, ...) (calx_at_(CALX_HERE), calx_ormqr_with(CALX_T_(x), CALX_T_(tau), CALX_T_(other), CALX_O_((&(calx_ormqr_options){ __VA_ARGS__ }))))
#define calx_triangular_solve(b, ...) CALX_TRIANGULAR_SOLVE_(b, __VA_ARGS__, .size = sizeof(calx_triangular_solve_options))
#define CALX_TRIANGULAR_SOLVE_(b, a, ...) (calx_at_(CALX_HERE), calx_triangular_solve_with(CALX_T_(b), CALX_T_(a), CALX_O_((&(calx_triangular_solve_options){ __VA_ARGS__ }))))
#define calx_solve(a, b) (calx_at_(CALX_HERE), calx_solve(CALX_T_(a), CALX_T_(b)))
#define calx_lstsq(a, b) (calx_at_(CALX_HERE), calx_lstsq(CALX_T_(a), CALX_T_(b)))
#define calx_inverse(x) (calx_at_(CALX_HERE), calx_inverse(CALX_T_(x)))
#define calx_tensorinv(...) CALX_TENSORINV_(__VA_ARGS__, .size = sizeof(calx_tensorinv_options))
#define CALX_TENSORINV_(x, ...) (calx_at_(CALX_HERE), calx_tensorinv_with(CALX_T_(x), CALX_O_((&(calx_tensorinv_options){ __VA_ARGS__ }))))
#define calx_tensorsolve(a, ...) CALX_TENSORSOLVE_(a, __VA_ARGS__, .size = sizeof(calx_tensorsolve_options))
#define CALX_TENSORSOLVE_(a, b, ...) (calx_at_(CALX_HERE), calx_tensorsolve_with(CALX_T_(a), CALX_T_(b), CALX_O_((&(calx_tensorsolve_options){ __VA_ARGS__ }))))
#define calx_det(x) (calx_at_(CALX_HERE), calx_det(CALX_T_(x)))
#define calx_logdet(x) (calx_at_(CALX_HERE), calx_logdet(CALX_T_(x)))
#define calx_eigh(x, ...) CALX_EIGH_(x, __VA_ARGS__, .size = sizeof(calx_eigh_options))
#define CALX_EIGH_(x, out_vectors, ...) (calx_at_(CALX_HERE), calx_eigh_with(CALX_T_(x), out_vectors, CALX_O_((&(calx_eigh_options){ __VA_ARGS__ }))))
#define calx_svd(x, out_s, ...) CALX_SVD_(x, out_s, __VA_ARGS__, .size = sizeof(calx_svd_options))
#define CALX_SVD_(x, out_s, out_vh, ...) (calx_at_(CALX_HERE), calx_svd_with(CALX_T_(x), out_s, out_vh, CALX_O_((&(calx_svd_options){ __VA_ARGS__ }))))
#define calx_svdvals(x) (calx_at_(CALX_HERE), calx_svdvals(CALX_T_(x)))
#define calx_eigvalsh(...) CALX_EIGVALSH_(__VA_ARGS__, .size = sizeof(calx_eigh_options))
#define CALX_EIGVALSH_(x, ...) (calx_at_(CALX_HERE), calx_eigvalsh_with(CALX_T_(x), CALX_O_((&(calx_eigh_options){ __VA_ARGS__ }))))
#define calx_cond(x) (calx_at_(CALX_HERE), calx_cond(CALX_T_(x)))
#define calx_pinv(...) CALX_PINV_(__VA_ARGS__, .size = sizeof(calx_pinv_options))
#define CALX_PINV_(x, ...) (calx_at_(CALX_HERE), calx_pinv_with(CALX_T_(x), CALX_O_((&(calx_pinv_options){ __VA_ARGS__ }))))
#define calx_matrix_rank(...) CALX_MATRIX_RANK_(__VA_ARGS__, .size = sizeof(calx_pinv_options))
#define CALX_MATRIX_RANK_(x, ...) (calx_at_(CALX_HERE), calx_matrix_rank_with(CALX_T_(x), CALX_O_((&(calx_pinv_options){ __VA_ARGS__ }))))
#define calx_lobpcg(x, ...) CALX_LOBPCG_(x, __VA_ARGS__, .size = sizeof(calx_lobpcg_options))
#define CALX_LOBPCG_(x, out_vectors, ...) (calx_at_(CALX_HERE), calx_lobpcg_with(CALX_T_(x), out_vectors, CALX_O_((&(calx_lobpcg_options){ __VA_ARGS__ }))))
#define calx_slogdet(x, out) (calx_at_(CALX_HERE), calx_slogdet(CALX_T_(x), out))
#define calx_tensordot(x, ...) CALX_TENSORDOT_(x, __VA_ARGS__, .size = sizeof(calx_tensordot_options))
#define CALX_TENSORDOT_(x, y, ...) (calx_at_(CALX_HERE), calx_tensordot_with(CALX_T_(x), CALX_T_(y), CALX_O_((&(calx_tensordot_options){ __VA_ARGS__ }))))
#define calx_kron(x, y) (calx_at_(CALX_HERE), calx_kron(CALX_T_(x), CALX_T_(y)))
#define calx_inner(x, y) (calx_at_(CALX_HERE), calx_inner(CALX_T_(x), CALX_T_(y)))
#define calx_vdot(x, y) (calx_at_(CALX_HERE), calx_vdot(CALX_T_(x), CALX_T_(y)))
#define calx_renorm(x, p, dim, maxnorm) (calx_at_(CALX_HERE), calx_renorm(CALX_T_(x), p, dim, maxnorm))
#define calx_dist(x, ...) CALX_DIST_(x, __VA_ARGS__, .size = sizeof(calx_dist_options))
#define CALX_DIST_(x, y, ...) (calx_at_(CALX_HERE), calx_dist_with(CALX_T_(x), CALX_T_(y), CALX_O_((&(calx_dist_options){ __VA_ARGS__ }))))
#define calx_pdist(...) CALX_PDIST_(__VA_ARGS__, .size = sizeof(calx_dist_options))
#define CALX_PDIST_(x, ...) (calx_at_(CALX_HERE), calx_pdist_with(CALX_T_(x), CALX_O_((&(calx_dist_options){ __VA_ARGS__ }))))
#define calx_addbmm(input, x, ...) CALX_ADDBMM_(input, x, __VA_ARGS__, .size = sizeof(calx_addmm_options))
#define CALX_ADDBMM_(input, x, y, ...) (calx_at_(CALX_HERE), calx_addbmm_with(CALX_T_(input), CALX_T_(x), CALX_T_(y), CALX_O_((&(calx_addmm_options){ __VA_ARGS__ }))))
#define calx_cdist(x, ...) CALX_CDIST_(x, __VA_ARGS__, .size = sizeof(calx_cdist_options))
#define CALX_CDIST_(x, y, ...) (calx_at_(CALX_HERE), calx_cdist_with(CALX_T_(x), CALX_T_(y), CALX_O_((&(calx_cdist_options){ __VA_ARGS__ }))))
#define calx_pairwise_distance(x, ...) CALX_PAIRWISE_DISTANCE_(x, __VA_ARGS__, .size = sizeof(calx_pairwise_distance_options))
#define CALX_PAIRWISE_DISTANCE_(x, y, ...) (calx_at_(CALX_HERE), calx_pairwise_distance_with(CALX_T_(x), CALX_T_(y), CALX_O_((&(calx_pairwise_distance_options){ __VA_ARGS__ }))))
#define calx_vecdot(x, y, dim) (calx_at_(CALX_HERE), calx_vecdot(CALX_T_(x), CALX_T_(y), dim))
#define calx_cross(x, y, dim) (calx_at_(CALX_HERE), calx_cross(CALX_T_(x), CALX_T_(y), dim))
#define calx_matrix_power(x, n) (calx_at_(CALX_HERE), calx_matrix_power(CALX_T_(x), n))
#define calx_matrix_exp(x) (calx_at_(CALX_HERE), calx_matrix_exp(CALX_T_(x)))
#define calx_multi_dot(...) (calx_at_(CALX_HERE), calx_multi_dot(__VA_ARGS__))
#define calx_chain_matmul(...) (calx_at_(CALX_HERE), calx_chain_matmul(__VA_ARGS__))
#define calx_vander(...) CALX_VANDER_(__VA_ARGS__, .size = sizeof(calx_vander_options))
#define CALX_VANDER_(x, ...) (calx_at_(CALX_HERE), calx_vander_with(CALX_T_(x), CALX_O_((&(calx_vander_options){ __VA_ARGS__ }))))

// ---- calx/statistics.h ----
#define calx_cummax(x, dim, out) (calx_at_(CALX_HERE), calx_cummax(CALX_T_(x), dim, out))
#define calx_cummin(x, dim, out) (calx_at_(CALX_HERE), calx_cummin(CALX_T_(x), dim, out))
#define calx_logcumsumexp(x, dim) (calx_at_(CALX_HERE), calx_logcumsumexp(CALX_T_(x), dim))
#define calx_median(x) (calx_at_(CALX_HERE), calx_median(CALX_T_(x)))
#define calx_nanmedian(x) (calx_at_(CALX_HERE), calx_nanmedian(CALX_T_(x)))
#define calx_median_dim(x, dim, keepdim, out) (calx_at_(CALX_HERE), calx_median_dim(CALX_T_(x), dim, keepdim, out))
#define calx_nanmedian_dim(x, dim, keepdim, out) (calx_at_(CALX_HERE), calx_nanmedian_dim(CALX_T_(x), dim, keepdim, out))
#define calx_mode(x, dim, keepdim, out) (calx_at_(CALX_HERE), calx_mode(CALX_T_(x), dim, keepdim, out))
#define calx_kthvalue(x, k, dim, keepdim, out) (calx_at_(CALX_HERE), calx_kthvalue(CALX_T_(x), k, dim, keepdim, out))
#define calx_quantile(x, ...) CALX_QUANTILE_(x, __VA_ARGS__, .size = sizeof(calx_quantile_options))
#define CALX_QUANTILE_(x, q, ...) (calx_at_(CALX_HERE), calx_quantile_with(CALX_T_(x), CALX_N_(q), CALX_O_((&(calx_quantile_options){ __VA_ARGS__ }))))
#define calx_nanquantile(x, ...) CALX_NANQUANTILE_(x, __VA_ARGS__, .size = sizeof(calx_quantile_options))
#define CALX_NANQUANTILE_(x, q, ...) (calx_at_(CALX_HERE), calx_nanquantile_with(CALX_T_(x), CALX_N_(q), CALX_O_((&(calx_quantile_options){ __VA_ARGS__ }))))
#define calx_diff(...) CALX_DIFF_(__VA_ARGS__, .size = sizeof(calx_diff_options))
#define CALX_DIFF_(x, ...) (calx_at_(CALX_HERE), calx_diff_with(CALX_T_(x), CALX_O_(calx_diff_options_written_(&(calx_diff_options){ .dim = CALX_UNWRITTEN_DIM_, __VA_ARGS__ }))))
#define calx_cov(...) CALX_COV_(__VA_ARGS__, .size = sizeof(calx_cov_options))
#define CALX_COV_(x, ...) (calx_at_(CALX_HERE), calx_cov_with(CALX_T_(x), CALX_O_((&(calx_cov_options){ __VA_ARGS__ }))))
#define calx_corrcoef(x) (calx_at_(CALX_HERE), calx_corrcoef(CALX_T_(x)))
#define calx_aminmax(x, ...) CALX_AMINMAX_(x, __VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_AMINMAX_(x, out, ...) (calx_at_(CALX_HERE), calx_aminmax_with(CALX_T_(x), out, CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_var_mean(x, ...) CALX_VAR_MEAN_(x, __VA_ARGS__, .size = sizeof(calx_var_options))
#define CALX_VAR_MEAN_(x, out, ...) (calx_at_(CALX_HERE), calx_var_mean_with(CALX_T_(x), out, CALX_O_((&(calx_var_options){ __VA_ARGS__ }))))
#define calx_std_mean(x, ...) CALX_STD_MEAN_(x, __VA_ARGS__, .size = sizeof(calx_var_options))
#define CALX_STD_MEAN_(x, out, ...) (calx_at_(CALX_HERE), calx_std_mean_with(CALX_T_(x), out, CALX_O_((&(calx_var_options){ __VA_ARGS__ }))))

// ---- cumulative, normalisation ----
#define calx_cumsum(x, dim) (calx_at_(CALX_HERE), calx_cumsum(CALX_T_(x), dim))
#define calx_cumprod(x, dim) (calx_at_(CALX_HERE), calx_cumprod(CALX_T_(x), dim))
#define calx_instance_norm(...) CALX_INSTANCE_NORM_(__VA_ARGS__, .size = sizeof(calx_layer_norm_options))
#define CALX_INSTANCE_NORM_(x, ...) (calx_at_(CALX_HERE), calx_instance_norm_with(CALX_T_(x), CALX_O_((&(calx_layer_norm_options){ __VA_ARGS__ }))))
#define calx_layer_norm(x, ...) CALX_LAYER_NORM_(x, __VA_ARGS__, .size = sizeof(calx_layer_norm_options))
#define CALX_LAYER_NORM_(x, over, ...) (calx_at_(CALX_HERE), calx_layer_norm_with(CALX_T_(x), over, CALX_O_((&(calx_layer_norm_options){ __VA_ARGS__ }))))
#define calx_rms_norm(x, ...) CALX_RMS_NORM_(x, __VA_ARGS__, .size = sizeof(calx_layer_norm_options))
#define CALX_RMS_NORM_(x, over, ...) (calx_at_(CALX_HERE), calx_rms_norm_with(CALX_T_(x), over, CALX_O_((&(calx_layer_norm_options){ __VA_ARGS__ }))))
#define calx_group_norm(x, ...) CALX_GROUP_NORM_(x, __VA_ARGS__, .size = sizeof(calx_layer_norm_options))
#define CALX_GROUP_NORM_(x, over, ...) (calx_at_(CALX_HERE), calx_group_norm_with(CALX_T_(x), over, CALX_O_((&(calx_layer_norm_options){ __VA_ARGS__ }))))

// ---- calx/indexing.h ----
#define calx_index_select(x, dim, index) (calx_at_(CALX_HERE), calx_index_select(CALX_T_(x), dim, CALX_T_(index)))
#define calx_one_hot(index, num_classes) (calx_at_(CALX_HERE), calx_one_hot(CALX_T_(index), num_classes))
#define calx_gather(x, dim, index) (calx_at_(CALX_HERE), calx_gather(CALX_T_(x), dim, CALX_T_(index)))
#define calx_take_along_dim(x, index, dim) (calx_at_(CALX_HERE), calx_take_along_dim(CALX_T_(x), CALX_T_(index), dim))
#define calx_scatter(x, dim, index, source) (calx_at_(CALX_HERE), calx_scatter(CALX_T_(x), dim, CALX_T_(index), CALX_N_(source)))
#define calx_scatter_add(x, dim, index, source) (calx_at_(CALX_HERE), calx_scatter_add(CALX_T_(x), dim, CALX_T_(index), CALX_N_(source)))
#define calx_scatter_reduce(x, dim, index, source, reduce) (calx_at_(CALX_HERE), calx_scatter_reduce(CALX_T_(x), dim, CALX_T_(index), CALX_N_(source), reduce))
#define calx_index_copy(x, dim, index, source) (calx_at_(CALX_HERE), calx_index_copy(CALX_T_(x), dim, CALX_T_(index), CALX_T_(source)))
#define calx_index_add(x, dim, index, ...) CALX_INDEX_ADD_(x, dim, index, __VA_ARGS__, .size = sizeof(calx_index_add_options))
#define CALX_INDEX_ADD_(x, dim, index, source, ...) (calx_at_(CALX_HERE), calx_index_add_with(CALX_T_(x), dim, CALX_T_(index), CALX_T_(source), CALX_O_((&(calx_index_add_options){ __VA_ARGS__ }))))
#define calx_embedding_bag(index, ...) CALX_EMBEDDING_BAG_(index, __VA_ARGS__, .size = sizeof(calx_embedding_bag_options))
#define CALX_EMBEDDING_BAG_(index, weight, ...) (calx_at_(CALX_HERE), calx_embedding_bag_with(CALX_T_(index), CALX_T_(weight), CALX_O_((&(calx_embedding_bag_options){ __VA_ARGS__ }))))
#define calx_embedding(index, ...) CALX_EMBEDDING_(index, __VA_ARGS__, .size = sizeof(calx_embedding_options))
#define CALX_EMBEDDING_(index, weight, ...) (calx_at_(CALX_HERE), calx_embedding_with(CALX_T_(index), CALX_T_(weight), CALX_O_((&(calx_embedding_options){ __VA_ARGS__ }))))
#define calx_sort(...) CALX_SORT_(__VA_ARGS__, .size = sizeof(calx_sort_options))
#define CALX_SORT_(x, ...) (calx_at_(CALX_HERE), calx_sort_with(CALX_T_(x), CALX_O_(calx_sort_options_written_(&(calx_sort_options){ .dim = CALX_UNWRITTEN_DIM_, __VA_ARGS__ }))))
#define calx_argsort(...) CALX_ARGSORT_(__VA_ARGS__, .size = sizeof(calx_sort_options))
#define CALX_ARGSORT_(x, ...) (calx_at_(CALX_HERE), calx_argsort_with(CALX_T_(x), CALX_O_(calx_sort_options_written_(&(calx_sort_options){ .dim = CALX_UNWRITTEN_DIM_, __VA_ARGS__ }))))
#define calx_topk(x, ...) CALX_TOPK_(x, __VA_ARGS__, .size = sizeof(calx_topk_options))
#define CALX_TOPK_(x, k, ...) (calx_at_(CALX_HERE), calx_topk_with(CALX_T_(x), k, CALX_O_(calx_topk_options_written_(&(calx_topk_options){ .dim = CALX_UNWRITTEN_DIM_, __VA_ARGS__ }))))
#define calx_nonzero(...) CALX_NONZERO_(__VA_ARGS__, .size = sizeof(calx_select_options))
#define CALX_NONZERO_(x, ...) (calx_at_(CALX_HERE), calx_nonzero_with(CALX_T_(x), CALX_O_((&(calx_select_options){ __VA_ARGS__ }))))
#define calx_masked_select(x, ...) CALX_MASKED_SELECT_(x, __VA_ARGS__, .size = sizeof(calx_select_options))
#define CALX_MASKED_SELECT_(x, mask, ...) (calx_at_(CALX_HERE), calx_masked_select_with(CALX_T_(x), CALX_T_(mask), CALX_O_((&(calx_select_options){ __VA_ARGS__ }))))
#define calx_unique(...) CALX_UNIQUE_(__VA_ARGS__, .size = sizeof(calx_unique_options))
#define CALX_UNIQUE_(x, ...) (calx_at_(CALX_HERE), calx_unique_with(CALX_T_(x), CALX_O_((&(calx_unique_options){ __VA_ARGS__ }))))
#define calx_bincount(...) CALX_BINCOUNT_(__VA_ARGS__, .size = sizeof(calx_bincount_options))
#define CALX_BINCOUNT_(x, ...) (calx_at_(CALX_HERE), calx_bincount_with(CALX_T_(x), CALX_O_((&(calx_bincount_options){ __VA_ARGS__ }))))
#define calx_searchsorted(sequence, ...) CALX_SEARCHSORTED_(sequence, __VA_ARGS__, .size = sizeof(calx_searchsorted_options))
#define CALX_SEARCHSORTED_(sequence, values, ...) (calx_at_(CALX_HERE), calx_searchsorted_with(CALX_T_(sequence), CALX_N_(values), CALX_O_((&(calx_searchsorted_options){ __VA_ARGS__ }))))
#define calx_bucketize(x, ...) CALX_BUCKETIZE_(x, __VA_ARGS__, .size = sizeof(calx_searchsorted_options))
#define CALX_BUCKETIZE_(x, boundaries, ...) (calx_at_(CALX_HERE), calx_bucketize_with(CALX_N_(x), CALX_T_(boundaries), CALX_O_((&(calx_searchsorted_options){ __VA_ARGS__ }))))
#define calx_index_fill(x, dim, index, value) (calx_at_(CALX_HERE), calx_index_fill(CALX_T_(x), dim, CALX_T_(index), CALX_N_(value)))
#define calx_masked_scatter(x, mask, source) (calx_at_(CALX_HERE), calx_masked_scatter(CALX_T_(x), CALX_T_(mask), CALX_T_(source)))
#define calx_isin(elements, ...) CALX_ISIN_(elements, __VA_ARGS__, .size = sizeof(calx_isin_options))
#define CALX_ISIN_(elements, test_elements, ...) (calx_at_(CALX_HERE), calx_isin_with(CALX_N_(elements), CALX_N_(test_elements), CALX_O_((&(calx_isin_options){ __VA_ARGS__ }))))
#define calx_histc(...) CALX_HISTC_(__VA_ARGS__, .size = sizeof(calx_histc_options))
#define CALX_HISTC_(x, ...) (calx_at_(CALX_HERE), calx_histc_with(CALX_T_(x), CALX_O_((&(calx_histc_options){ __VA_ARGS__ }))))
#define calx_index_put(x, indices, count, ...) CALX_INDEX_PUT_(x, indices, count, __VA_ARGS__, .size = sizeof(calx_index_put_options))
#define CALX_INDEX_PUT_(x, indices, count, values, ...) (calx_at_(CALX_HERE), calx_index_put_with(CALX_T_(x), indices, count, CALX_N_(values), CALX_O_((&(calx_index_put_options){ __VA_ARGS__ }))))

// ---- attention, dropout ----
#define calx_dropout(...) CALX_DROPOUT_(__VA_ARGS__, .size = sizeof(calx_dropout_options))
#define CALX_DROPOUT_(x, ...) (calx_at_(CALX_HERE), calx_dropout_with(CALX_T_(x), CALX_O_(calx_dropout_options_written_(&(calx_dropout_options){ .p = CALX_UNWRITTEN_, __VA_ARGS__ }))))
#define calx_scaled_dot_product_attention(query, key, ...) CALX_ATTENTION_(query, key, __VA_ARGS__, .size = sizeof(calx_attention_options))
#define CALX_ATTENTION_(query, key, value, ...) (calx_at_(CALX_HERE), calx_scaled_dot_product_attention_with(CALX_T_(query), CALX_T_(key), CALX_T_(value), CALX_O_((&(calx_attention_options){ __VA_ARGS__ }))))

// ---- activations ----
#define calx_silu(x) (calx_at_(CALX_HERE), calx_silu(CALX_T_(x)))
#define calx_selu(x) (calx_at_(CALX_HERE), calx_selu(CALX_T_(x)))
#define calx_relu6(x) (calx_at_(CALX_HERE), calx_relu6(CALX_T_(x)))
#define calx_hardswish(x) (calx_at_(CALX_HERE), calx_hardswish(CALX_T_(x)))
#define calx_hardsigmoid(x) (calx_at_(CALX_HERE), calx_hardsigmoid(CALX_T_(x)))
#define calx_mish(x) (calx_at_(CALX_HERE), calx_mish(CALX_T_(x)))
#define calx_logsigmoid(x) (calx_at_(CALX_HERE), calx_logsigmoid(CALX_T_(x)))
#define calx_softsign(x) (calx_at_(CALX_HERE), calx_softsign(CALX_T_(x)))
#define calx_tanhshrink(x) (calx_at_(CALX_HERE), calx_tanhshrink(CALX_T_(x)))
#define calx_gelu(...) CALX_GELU_(__VA_ARGS__, .size = sizeof(calx_gelu_options))
#define CALX_GELU_(x, ...) (calx_at_(CALX_HERE), calx_gelu_with(CALX_T_(x), CALX_O_((&(calx_gelu_options){ __VA_ARGS__ }))))
#define calx_elu(...) CALX_ELU_(__VA_ARGS__, .size = sizeof(calx_elu_options))
#define CALX_ELU_(x, ...) (calx_at_(CALX_HERE), calx_elu_with(CALX_T_(x), CALX_O_((&(calx_elu_options){ __VA_ARGS__ }))))
#define calx_celu(...) CALX_CELU_(__VA_ARGS__, .size = sizeof(calx_celu_options))
#define CALX_CELU_(x, ...) (calx_at_(CALX_HERE), calx_celu_with(CALX_T_(x), CALX_O_((&(calx_celu_options){ __VA_ARGS__ }))))
#define calx_leaky_relu(...) CALX_LEAKY_RELU_(__VA_ARGS__, .size = sizeof(calx_leaky_relu_options))
#define CALX_LEAKY_RELU_(x, ...) (calx_at_(CALX_HERE), calx_leaky_relu_with(CALX_T_(x), CALX_O_((&(calx_leaky_relu_options){ __VA_ARGS__ }))))
#define calx_hardtanh(...) CALX_HARDTANH_(__VA_ARGS__, .size = sizeof(calx_hardtanh_options))
#define CALX_HARDTANH_(x, ...) (calx_at_(CALX_HERE), calx_hardtanh_with(CALX_T_(x), CALX_O_((&(calx_hardtanh_options){ __VA_ARGS__ }))))
#define calx_softplus(...) CALX_SOFTPLUS_(__VA_ARGS__, .size = sizeof(calx_softplus_options))
#define CALX_SOFTPLUS_(x, ...) (calx_at_(CALX_HERE), calx_softplus_with(CALX_T_(x), CALX_O_((&(calx_softplus_options){ __VA_ARGS__ }))))
#define calx_hardshrink(...) CALX_HARDSHRINK_(__VA_ARGS__, .size = sizeof(calx_hardshrink_options))
#define CALX_HARDSHRINK_(x, ...) (calx_at_(CALX_HERE), calx_hardshrink_with(CALX_T_(x), CALX_O_((&(calx_hardshrink_options){ __VA_ARGS__ }))))
#define calx_softshrink(...) CALX_SOFTSHRINK_(__VA_ARGS__, .size = sizeof(calx_softshrink_options))
#define CALX_SOFTSHRINK_(x, ...) (calx_at_(CALX_HERE), calx_softshrink_with(CALX_T_(x), CALX_O_((&(calx_softshrink_options){ __VA_ARGS__ }))))
#define calx_threshold(x, threshold, value) (calx_at_(CALX_HERE), calx_threshold(CALX_T_(x), CALX_N_(threshold), CALX_N_(value)))
#define calx_prelu(x, weight) (calx_at_(CALX_HERE), calx_prelu(CALX_T_(x), CALX_T_(weight)))
#define calx_glu(x, dim) (calx_at_(CALX_HERE), calx_glu(CALX_T_(x), dim))
#define calx_softmin(x, dim) (calx_at_(CALX_HERE), calx_softmin(CALX_T_(x), dim))

// ---- calx/functional.h ----
#define calx_dropout1d(...) CALX_DROPOUT1D_(__VA_ARGS__, .size = sizeof(calx_feature_dropout_options))
#define CALX_DROPOUT1D_(x, ...) (calx_at_(CALX_HERE), calx_dropout1d_with(CALX_T_(x), CALX_O_(calx_feature_dropout_options_written_(&(calx_feature_dropout_options){ .p = CALX_UNWRITTEN_, __VA_ARGS__ }))))
#define calx_dropout2d(...) CALX_DROPOUT2D_(__VA_ARGS__, .size = sizeof(calx_feature_dropout_options))
#define CALX_DROPOUT2D_(x, ...) (calx_at_(CALX_HERE), calx_dropout2d_with(CALX_T_(x), CALX_O_(calx_feature_dropout_options_written_(&(calx_feature_dropout_options){ .p = CALX_UNWRITTEN_, __VA_ARGS__ }))))
#define calx_dropout3d(...) CALX_DROPOUT3D_(__VA_ARGS__, .size = sizeof(calx_feature_dropout_options))
#define CALX_DROPOUT3D_(x, ...) (calx_at_(CALX_HERE), calx_dropout3d_with(CALX_T_(x), CALX_O_(calx_feature_dropout_options_written_(&(calx_feature_dropout_options){ .p = CALX_UNWRITTEN_, __VA_ARGS__ }))))
#define calx_alpha_dropout(...) CALX_ALPHA_DROPOUT_(__VA_ARGS__, .size = sizeof(calx_feature_dropout_options))
#define CALX_ALPHA_DROPOUT_(x, ...) (calx_at_(CALX_HERE), calx_alpha_dropout_with(CALX_T_(x), CALX_O_(calx_feature_dropout_options_written_(&(calx_feature_dropout_options){ .p = CALX_UNWRITTEN_, __VA_ARGS__ }))))
#define calx_feature_alpha_dropout(...) CALX_FEATURE_ALPHA_DROPOUT_(__VA_ARGS__, .size = sizeof(calx_feature_dropout_options))
#define CALX_FEATURE_ALPHA_DROPOUT_(x, ...) (calx_at_(CALX_HERE), calx_feature_alpha_dropout_with(CALX_T_(x), CALX_O_(calx_feature_dropout_options_written_(&(calx_feature_dropout_options){ .p = CALX_UNWRITTEN_, __VA_ARGS__ }))))
#define calx_rrelu(...) CALX_RRELU_(__VA_ARGS__, .size = sizeof(calx_rrelu_options))
#define CALX_RRELU_(x, ...) (calx_at_(CALX_HERE), calx_rrelu_with(CALX_T_(x), CALX_O_((&(calx_rrelu_options){ __VA_ARGS__ }))))
#define calx_gumbel_softmax(x, ...) CALX_GUMBEL_SOFTMAX_(x, __VA_ARGS__, .size = sizeof(calx_gumbel_softmax_options))
#define CALX_GUMBEL_SOFTMAX_(x, dim, ...) (calx_at_(CALX_HERE), calx_gumbel_softmax_with(CALX_T_(x), dim, CALX_O_((&(calx_gumbel_softmax_options){ __VA_ARGS__ }))))
#define calx_pixel_unshuffle(x, r) (calx_at_(CALX_HERE), calx_pixel_unshuffle(CALX_T_(x), r))
#define calx_channel_shuffle(x, groups) (calx_at_(CALX_HERE), calx_channel_shuffle(CALX_T_(x), groups))
#define calx_bilinear(x, y, weight, bias) (calx_at_(CALX_HERE), calx_bilinear(CALX_T_(x), CALX_T_(y), CALX_T_(weight), CALX_T_(bias)))
#define calx_affine_grid(x, ...) CALX_AFFINE_GRID_(x, __VA_ARGS__, .size = sizeof(calx_affine_grid_options))
#define CALX_AFFINE_GRID_(x, sizes, ...) (calx_at_(CALX_HERE), calx_affine_grid_with(CALX_T_(x), sizes, CALX_O_((&(calx_affine_grid_options){ __VA_ARGS__ }))))
#define calx_grid_sample(x, ...) CALX_GRID_SAMPLE_(x, __VA_ARGS__, .size = sizeof(calx_grid_sample_options))
#define CALX_GRID_SAMPLE_(x, grid, ...) (calx_at_(CALX_HERE), calx_grid_sample_with(CALX_T_(x), CALX_T_(grid), CALX_O_((&(calx_grid_sample_options){ __VA_ARGS__ }))))
#define calx_local_response_norm(x, ...) CALX_LOCAL_RESPONSE_NORM_(x, __VA_ARGS__, .size = sizeof(calx_local_response_norm_options))
#define CALX_LOCAL_RESPONSE_NORM_(x, channels, ...) (calx_at_(CALX_HERE), calx_local_response_norm_with(CALX_T_(x), channels, CALX_O_((&(calx_local_response_norm_options){ __VA_ARGS__ }))))
#define calx_fold(x, output_size, ...) CALX_FOLD_(x, output_size, __VA_ARGS__, .size = sizeof(calx_fold_options))
#define CALX_FOLD_(x, output_size, kernel_size, ...) (calx_at_(CALX_HERE), calx_fold_with(CALX_T_(x), output_size, kernel_size, CALX_O_((&(calx_fold_options){ __VA_ARGS__ }))))
#define calx_fractional_max_pool2d(x, ...) CALX_FRACTIONAL_MAX_POOL2D_(x, __VA_ARGS__, .size = sizeof(calx_fractional_max_pool_options))
#define CALX_FRACTIONAL_MAX_POOL2D_(x, kernel_size, ...) (calx_at_(CALX_HERE), calx_fractional_max_pool2d_with(CALX_T_(x), kernel_size, CALX_O_((&(calx_fractional_max_pool_options){ __VA_ARGS__ }))))
#define calx_fractional_max_pool3d(x, ...) CALX_FRACTIONAL_MAX_POOL3D_(x, __VA_ARGS__, .size = sizeof(calx_fractional_max_pool_options))
#define CALX_FRACTIONAL_MAX_POOL3D_(x, kernel_size, ...) (calx_at_(CALX_HERE), calx_fractional_max_pool3d_with(CALX_T_(x), kernel_size, CALX_O_((&(calx_fractional_max_pool_options){ __VA_ARGS__ }))))
#define calx_max_unpool1d(x, indices, ...) CALX_MAX_UNPOOL1D_(x, indices, __VA_ARGS__, .size = sizeof(calx_max_unpool_options))
#define CALX_MAX_UNPOOL1D_(x, indices, kernel_size, ...) (calx_at_(CALX_HERE), calx_max_unpool1d_with(CALX_T_(x), CALX_T_(indices), kernel_size, CALX_O_((&(calx_max_unpool_options){ __VA_ARGS__ }))))
#define calx_max_unpool2d(x, indices, ...) CALX_MAX_UNPOOL2D_(x, indices, __VA_ARGS__, .size = sizeof(calx_max_unpool_options))
#define CALX_MAX_UNPOOL2D_(x, indices, kernel_size, ...) (calx_at_(CALX_HERE), calx_max_unpool2d_with(CALX_T_(x), CALX_T_(indices), kernel_size, CALX_O_((&(calx_max_unpool_options){ __VA_ARGS__ }))))
#define calx_max_unpool3d(x, indices, ...) CALX_MAX_UNPOOL3D_(x, indices, __VA_ARGS__, .size = sizeof(calx_max_unpool_options))
#define CALX_MAX_UNPOOL3D_(x, indices, kernel_size, ...) (calx_at_(CALX_HERE), calx_max_unpool3d_with(CALX_T_(x), CALX_T_(indices), kernel_size, CALX_O_((&(calx_max_unpool_options){ __VA_ARGS__ }))))

#define calx_i0(x) (calx_at_(CALX_HERE), calx_i0(CALX_T_(x)))
#define calx_log_ndtr(x) (calx_at_(CALX_HERE), calx_log_ndtr(CALX_T_(x)))
#define calx_ndtri(x) (calx_at_(CALX_HERE), calx_ndtri(CALX_T_(x)))
#define calx_igamma(a, x) (calx_at_(CALX_HERE), calx_igamma(CALX_T_(a), CALX_T_(x)))
#define calx_igammac(a, x) (calx_at_(CALX_HERE), calx_igammac(CALX_T_(a), CALX_T_(x)))
#define calx_i0e(x) (calx_at_(CALX_HERE), calx_i0e(CALX_T_(x)))
#define calx_i1(x) (calx_at_(CALX_HERE), calx_i1(CALX_T_(x)))
#define calx_i1e(x) (calx_at_(CALX_HERE), calx_i1e(CALX_T_(x)))
#define calx_ndtr(x) (calx_at_(CALX_HERE), calx_ndtr(CALX_T_(x)))
#define calx_ravel(x) (calx_at_(CALX_HERE), calx_ravel(CALX_T_(x)))
#define calx_msort(x) (calx_at_(CALX_HERE), calx_msort(CALX_T_(x)))
#define calx_mvlgamma(x, p) (calx_at_(CALX_HERE), calx_mvlgamma(CALX_T_(x), p))
#define calx_diagflat(x, offset) (calx_at_(CALX_HERE), calx_diagflat(CALX_T_(x), offset))
#define calx_broadcast_tensors(...) (calx_at_(CALX_HERE), calx_broadcast_tensors(__VA_ARGS__))
#define calx_cartesian_prod(...) (calx_at_(CALX_HERE), calx_cartesian_prod(__VA_ARGS__))
#define calx_column_stack(...) (calx_at_(CALX_HERE), calx_column_stack(__VA_ARGS__))
#define calx_hsplit(x, sections, out) (calx_at_(CALX_HERE), calx_hsplit(CALX_T_(x), sections, out))
#define calx_hsplit_at(x, ...) (calx_at_(CALX_HERE), calx_hsplit_at(CALX_T_(x), __VA_ARGS__))
#define calx_vsplit(x, sections, out) (calx_at_(CALX_HERE), calx_vsplit(CALX_T_(x), sections, out))
#define calx_vsplit_at(x, ...) (calx_at_(CALX_HERE), calx_vsplit_at(CALX_T_(x), __VA_ARGS__))
#define calx_dsplit(x, sections, out) (calx_at_(CALX_HERE), calx_dsplit(CALX_T_(x), sections, out))
#define calx_dsplit_at(x, ...) (calx_at_(CALX_HERE), calx_dsplit_at(CALX_T_(x), __VA_ARGS__))
#define calx_unravel_index(index, ...) (calx_at_(CALX_HERE), calx_unravel_index(CALX_T_(index), __VA_ARGS__))
#define calx_combinations(...) CALX_COMBINATIONS_(__VA_ARGS__, .size = sizeof(calx_combinations_options))
#define CALX_COMBINATIONS_(x, ...) (calx_at_(CALX_HERE), calx_combinations_with(CALX_T_(x), CALX_O_((&(calx_combinations_options){ __VA_ARGS__ }))))
#define calx_unique_consecutive(...) CALX_UNIQUE_CONSECUTIVE_(__VA_ARGS__, .size = sizeof(calx_unique_options))
#define CALX_UNIQUE_CONSECUTIVE_(x, ...) (calx_at_(CALX_HERE), calx_unique_consecutive_with(CALX_T_(x), CALX_O_((&(calx_unique_options){ __VA_ARGS__ }))))
#define calx_argwhere(...) CALX_ARGWHERE_(__VA_ARGS__, .size = sizeof(calx_select_options))
#define CALX_ARGWHERE_(x, ...) (calx_at_(CALX_HERE), calx_argwhere_with(CALX_T_(x), CALX_O_((&(calx_select_options){ __VA_ARGS__ }))))
#define calx_trapezoid(...) CALX_TRAPEZOID_(__VA_ARGS__, .size = sizeof(calx_trapezoid_options))
#define CALX_TRAPEZOID_(x, ...) (calx_at_(CALX_HERE), calx_trapezoid_with(CALX_T_(x), CALX_O_(calx_trapezoid_options_written_(&(calx_trapezoid_options){ .dim = CALX_UNWRITTEN_DIM_, __VA_ARGS__ }))))
#define calx_cumulative_trapezoid(...) CALX_CUMULATIVE_TRAPEZOID_(__VA_ARGS__, .size = sizeof(calx_trapezoid_options))
#define CALX_CUMULATIVE_TRAPEZOID_(x, ...) (calx_at_(CALX_HERE), calx_cumulative_trapezoid_with(CALX_T_(x), CALX_O_(calx_trapezoid_options_written_(&(calx_trapezoid_options){ .dim = CALX_UNWRITTEN_DIM_, __VA_ARGS__ }))))
#define calx_diagonal_scatter(x, ...) CALX_DIAGONAL_SCATTER_(x, __VA_ARGS__, .size = sizeof(calx_diagonal_options))
#define CALX_DIAGONAL_SCATTER_(x, source, ...) (calx_at_(CALX_HERE), calx_diagonal_scatter_with(CALX_T_(x), CALX_T_(source), CALX_O_((&(calx_diagonal_options){ __VA_ARGS__ }))))
#define calx_gradient(x, ...) CALX_GRADIENT_(x, __VA_ARGS__, .size = sizeof(calx_gradient_options))
#define CALX_GRADIENT_(x, out, ...) (calx_at_(CALX_HERE), calx_gradient_with(CALX_T_(x), out, CALX_O_((&(calx_gradient_options){ __VA_ARGS__ }))))
#define calx_histogramdd(x, ...) CALX_HISTOGRAMDD_(x, __VA_ARGS__, .size = sizeof(calx_histogramdd_options))
#define CALX_HISTOGRAMDD_(x, out_edges, ...) (calx_at_(CALX_HERE), calx_histogramdd_with(CALX_T_(x), out_edges, CALX_O_((&(calx_histogramdd_options){ __VA_ARGS__ }))))
#define calx_histogram(x, ...) CALX_HISTOGRAM_(x, __VA_ARGS__, .size = sizeof(calx_histogram_options))
#define CALX_HISTOGRAM_(x, out_edges, ...) (calx_at_(CALX_HERE), calx_histogram_with(CALX_T_(x), out_edges, CALX_O_((&(calx_histogram_options){ __VA_ARGS__ }))))
#define calx_index_reduce(x, dim, index, source, ...) CALX_INDEX_REDUCE_(x, dim, index, source, __VA_ARGS__, .size = sizeof(calx_index_reduce_options))
#define CALX_INDEX_REDUCE_(x, dim, index, source, reduce, ...) (calx_at_(CALX_HERE), calx_index_reduce_with(CALX_T_(x), dim, CALX_T_(index), CALX_T_(source), reduce, CALX_O_((&(calx_index_reduce_options){ __VA_ARGS__ }))))

// ---- positional arguments ----
#define calx_to_dtype(x, dtype) (calx_at_(CALX_HERE), calx_to_dtype(CALX_T_(x), dtype))
#define calx_max_dim(x, dim, keepdim, out) (calx_at_(CALX_HERE), calx_max_dim(CALX_T_(x), dim, keepdim, out))
#define calx_min_dim(x, dim, keepdim, out) (calx_at_(CALX_HERE), calx_min_dim(CALX_T_(x), dim, keepdim, out))
#define calx_transpose(x, dim0, dim1) (calx_at_(CALX_HERE), calx_transpose(CALX_T_(x), dim0, dim1))
#define calx_unsqueeze(x, dim) (calx_at_(CALX_HERE), calx_unsqueeze(CALX_T_(x), dim))
#define calx_squeeze(x, dim) (calx_at_(CALX_HERE), calx_squeeze(CALX_T_(x), dim))
#define calx_cat(...) calx_cat_here_(CALX_HERE, __VA_ARGS__)
#define calx_stack(...) calx_stack_here_(CALX_HERE, __VA_ARGS__)
#define calx_slice(x, dim, start, end, step) (calx_at_(CALX_HERE), calx_slice(CALX_T_(x), dim, start, end, step))
#define calx_select(x, dim, index) (calx_at_(CALX_HERE), calx_select(CALX_T_(x), dim, index))
#define calx_matmul(x, y) (calx_at_(CALX_HERE), calx_matmul(CALX_T_(x), CALX_T_(y)))
#define calx_mm(x, y) (calx_at_(CALX_HERE), calx_mm(CALX_T_(x), CALX_T_(y)))
#define calx_linear(x, weight, bias) (calx_at_(CALX_HERE), calx_linear(CALX_T_(x), CALX_T_(weight), CALX_T_(bias)))
#define calx_log_softmax(x, dim) (calx_at_(CALX_HERE), calx_log_softmax(CALX_T_(x), dim))
#define calx_softmax(x, dim) (calx_at_(CALX_HERE), calx_softmax(CALX_T_(x), dim))
#define calx_reshape(x, ...) (calx_at_(CALX_HERE), calx_reshape(CALX_T_(x), __VA_ARGS__))
#define calx_permute(x, ...) (calx_at_(CALX_HERE), calx_permute(CALX_T_(x), __VA_ARGS__))
#define calx_expand(x, ...) (calx_at_(CALX_HERE), calx_expand(CALX_T_(x), __VA_ARGS__))
#define calx_assign(tensor, value) (calx_at_(CALX_HERE), calx_assign(CALX_T_(tensor), CALX_N_(value)))
#define calx_assign_slice(tensor, value, dim, start, end, step) (calx_at_(CALX_HERE), calx_assign_slice(CALX_T_(tensor), CALX_N_(value), dim, start, end, step))
#define calx_assign_select(tensor, value, dim, index) (calx_at_(CALX_HERE), calx_assign_select(CALX_T_(tensor), CALX_N_(value), dim, index))
#define calx_zero_(x) (calx_at_(CALX_HERE), calx_zero_(CALX_T_(x)))
#define calx_copy_(x, y) (calx_at_(CALX_HERE), calx_copy_(CALX_T_(x), CALX_N_(y)))
#define calx_fill_(x, y) (calx_at_(CALX_HERE), calx_fill_(CALX_T_(x), CALX_N_(y)))
#define calx_mul_(x, y) (calx_at_(CALX_HERE), calx_mul_(CALX_T_(x), CALX_N_(y)))
#define calx_clamp_(x, min, max) (calx_at_(CALX_HERE), calx_clamp_(CALX_T_(x), CALX_N_(min), CALX_N_(max)))
#define calx_add_(x, ...) CALX_ADD__(x, __VA_ARGS__, .size = sizeof(calx_add_options))
#define CALX_ADD__(x, y, ...) (calx_at_(CALX_HERE), calx_add__with(CALX_T_(x), CALX_N_(y), CALX_O_((&(calx_add_options){ __VA_ARGS__ }))))
#define calx_sub_(x, ...) CALX_SUB__(x, __VA_ARGS__, .size = sizeof(calx_add_options))
#define CALX_SUB__(x, y, ...) (calx_at_(CALX_HERE), calx_sub__with(CALX_T_(x), CALX_N_(y), CALX_O_((&(calx_add_options){ __VA_ARGS__ }))))
#define calx_div_(x, ...) CALX_DIV__(x, __VA_ARGS__, .size = sizeof(calx_div_options))
#define CALX_DIV__(x, y, ...) (calx_at_(CALX_HERE), calx_div__with(CALX_T_(x), CALX_N_(y), CALX_O_((&(calx_div_options){ __VA_ARGS__ }))))

// ---- options; the last required argument rides in the dots ----
#define calx_sum(...) CALX_SUM_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_SUM_(x, ...) (calx_at_(CALX_HERE), calx_sum_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_mean(...) CALX_MEAN_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_MEAN_(x, ...) (calx_at_(CALX_HERE), calx_mean_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_prod(...) CALX_PROD_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_PROD_(x, ...) (calx_at_(CALX_HERE), calx_prod_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_all(...) CALX_ALL_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_ALL_(x, ...) (calx_at_(CALX_HERE), calx_all_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_any(...) CALX_ANY_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_ANY_(x, ...) (calx_at_(CALX_HERE), calx_any_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_count_nonzero(...) CALX_COUNT_NONZERO_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_COUNT_NONZERO_(x, ...) (calx_at_(CALX_HERE), calx_count_nonzero_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_logsumexp(...) CALX_LOGSUMEXP_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_LOGSUMEXP_(x, ...) (calx_at_(CALX_HERE), calx_logsumexp_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_nansum(...) CALX_NANSUM_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_NANSUM_(x, ...) (calx_at_(CALX_HERE), calx_nansum_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_nanmean(...) CALX_NANMEAN_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_NANMEAN_(x, ...) (calx_at_(CALX_HERE), calx_nanmean_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_var(...) CALX_VAR_(__VA_ARGS__, .size = sizeof(calx_var_options))
#define CALX_VAR_(x, ...) (calx_at_(CALX_HERE), calx_var_with(CALX_T_(x), CALX_O_((&(calx_var_options){ __VA_ARGS__ }))))
#define calx_std(...) CALX_STD_(__VA_ARGS__, .size = sizeof(calx_var_options))
#define CALX_STD_(x, ...) (calx_at_(CALX_HERE), calx_std_with(CALX_T_(x), CALX_O_((&(calx_var_options){ __VA_ARGS__ }))))
#define calx_norm(...) CALX_NORM_(__VA_ARGS__, .size = sizeof(calx_norm_options))
#define CALX_NORM_(x, ...) (calx_at_(CALX_HERE), calx_norm_with(CALX_T_(x), CALX_O_((&(calx_norm_options){ __VA_ARGS__ }))))
#define calx_normalize(...) CALX_NORMALIZE_(__VA_ARGS__, .size = sizeof(calx_normalize_options))
#define CALX_NORMALIZE_(x, ...) (calx_at_(CALX_HERE), calx_normalize_with(CALX_T_(x), CALX_O_(calx_normalize_options_written_(&(calx_normalize_options){ .dim = CALX_UNWRITTEN_DIM_, __VA_ARGS__ }))))
#define calx_cosine_similarity(x, ...) CALX_COSINE_SIMILARITY_(x, __VA_ARGS__, .size = sizeof(calx_cosine_similarity_options))
#define CALX_COSINE_SIMILARITY_(x, y, ...) (calx_at_(CALX_HERE), calx_cosine_similarity_with(CALX_T_(x), CALX_T_(y), CALX_O_(calx_cosine_similarity_options_written_(&(calx_cosine_similarity_options){ .dim = CALX_UNWRITTEN_DIM_, __VA_ARGS__ }))))
#define calx_amax(...) CALX_AMAX_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_AMAX_(x, ...) (calx_at_(CALX_HERE), calx_amax_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_amin(...) CALX_AMIN_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_AMIN_(x, ...) (calx_at_(CALX_HERE), calx_amin_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_argmax(...) CALX_ARGMAX_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_ARGMAX_(x, ...) (calx_at_(CALX_HERE), calx_argmax_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_argmin(...) CALX_ARGMIN_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_ARGMIN_(x, ...) (calx_at_(CALX_HERE), calx_argmin_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_flatten(...) CALX_FLATTEN_(__VA_ARGS__, .size = sizeof(calx_flatten_options))
#define CALX_FLATTEN_(x, ...) (calx_at_(CALX_HERE), calx_flatten_with(CALX_T_(x), CALX_O_((&(calx_flatten_options){ __VA_ARGS__ }))))
#define calx_batch_norm(...) CALX_BATCH_NORM_(__VA_ARGS__, .size = sizeof(calx_batch_norm_options))
#define CALX_BATCH_NORM_(x, ...) (calx_at_(CALX_HERE), calx_batch_norm_with(CALX_T_(x), CALX_O_((&(calx_batch_norm_options){ __VA_ARGS__ }))))
#define calx_zeros(...) CALX_ZEROS_(__VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_ZEROS_(x, ...) (calx_at_(CALX_HERE), calx_zeros_with(x, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_ones(...) CALX_ONES_(__VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_ONES_(x, ...) (calx_at_(CALX_HERE), calx_ones_with(x, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_rand(...) CALX_RAND_(__VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_RAND_(x, ...) (calx_at_(CALX_HERE), calx_rand_with(x, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_randn(...) CALX_RANDN_(__VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_RANDN_(x, ...) (calx_at_(CALX_HERE), calx_randn_with(x, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_full(shape, ...) CALX_FULL_(shape, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_FULL_(shape, value, ...) (calx_at_(CALX_HERE), calx_full_with(shape, value, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define CALX_ARANGE_(type, ...) (type){ .end = CALX_UNWRITTEN_, .step = 1, .start = __VA_ARGS__, .size = sizeof(calx_create_options) }
#define calx_arange(...) ((void)sizeof(CALX_ARANGE_(calx_arange_braces_, __VA_ARGS__)), calx_arange_here_(CALX_HERE, CALX_ARANGE_(calx_arange_call_, __VA_ARGS__)))
#define calx_conv2d(x, ...) CALX_CONV2D_(x, __VA_ARGS__, .size = sizeof(calx_conv2d_options))
#define CALX_CONV2D_(x, w, ...) (calx_at_(CALX_HERE), calx_conv2d_with(CALX_T_(x), CALX_T_(w), CALX_O_((&(calx_conv2d_options){ __VA_ARGS__ }))))
#define calx_conv1d(x, ...) CALX_CONV1D_(x, __VA_ARGS__, .size = sizeof(calx_conv1d_options))
#define CALX_CONV1D_(x, w, ...) (calx_at_(CALX_HERE), calx_conv1d_with(CALX_T_(x), CALX_T_(w), CALX_O_((&(calx_conv1d_options){ __VA_ARGS__ }))))
#define calx_conv3d(x, ...) CALX_CONV3D_(x, __VA_ARGS__, .size = sizeof(calx_conv3d_options))
#define CALX_CONV3D_(x, w, ...) (calx_at_(CALX_HERE), calx_conv3d_with(CALX_T_(x), CALX_T_(w), CALX_O_((&(calx_conv3d_options){ __VA_ARGS__ }))))
#define calx_conv_transpose1d(x, ...) CALX_CONV_TRANSPOSE1D_(x, __VA_ARGS__, .size = sizeof(calx_conv_transpose1d_options))
#define CALX_CONV_TRANSPOSE1D_(x, w, ...) (calx_at_(CALX_HERE), calx_conv_transpose1d_with(CALX_T_(x), CALX_T_(w), CALX_O_((&(calx_conv_transpose1d_options){ __VA_ARGS__ }))))
#define calx_conv_transpose2d(x, ...) CALX_CONV_TRANSPOSE2D_(x, __VA_ARGS__, .size = sizeof(calx_conv_transpose2d_options))
#define CALX_CONV_TRANSPOSE2D_(x, w, ...) (calx_at_(CALX_HERE), calx_conv_transpose2d_with(CALX_T_(x), CALX_T_(w), CALX_O_((&(calx_conv_transpose2d_options){ __VA_ARGS__ }))))
#define calx_conv_transpose3d(x, ...) CALX_CONV_TRANSPOSE3D_(x, __VA_ARGS__, .size = sizeof(calx_conv_transpose3d_options))
#define CALX_CONV_TRANSPOSE3D_(x, w, ...) (calx_at_(CALX_HERE), calx_conv_transpose3d_with(CALX_T_(x), CALX_T_(w), CALX_O_((&(calx_conv_transpose3d_options){ __VA_ARGS__ }))))
#define calx_avg_pool1d(...) CALX_AVG_POOL1D_(__VA_ARGS__, .size = sizeof(calx_avg_pool1d_options))
#define CALX_AVG_POOL1D_(x, ...) (calx_at_(CALX_HERE), calx_avg_pool1d_with(CALX_T_(x), CALX_O_((&(calx_avg_pool1d_options){ __VA_ARGS__ }))))
#define calx_avg_pool2d(...) CALX_AVG_POOL2D_(__VA_ARGS__, .size = sizeof(calx_avg_pool2d_options))
#define CALX_AVG_POOL2D_(x, ...) (calx_at_(CALX_HERE), calx_avg_pool2d_with(CALX_T_(x), CALX_O_((&(calx_avg_pool2d_options){ __VA_ARGS__ }))))
#define calx_avg_pool3d(...) CALX_AVG_POOL3D_(__VA_ARGS__, .size = sizeof(calx_avg_pool3d_options))
#define CALX_AVG_POOL3D_(x, ...) (calx_at_(CALX_HERE), calx_avg_pool3d_with(CALX_T_(x), CALX_O_((&(calx_avg_pool3d_options){ __VA_ARGS__ }))))
#define calx_max_pool3d(x, ...) CALX_MAX_POOL3D_(x, __VA_ARGS__, .size = sizeof(calx_max_pool3d_options))
#define CALX_MAX_POOL3D_(x, kernel_size, ...) (calx_at_(CALX_HERE), calx_max_pool3d_with(CALX_T_(x), kernel_size, CALX_O_((&(calx_max_pool3d_options){ __VA_ARGS__ }))))
#define calx_lp_pool1d(x, ...) CALX_LP_POOL1D_(x, __VA_ARGS__, .size = sizeof(calx_lp_pool_options))
#define CALX_LP_POOL1D_(x, norm_type, ...) (calx_at_(CALX_HERE), calx_lp_pool1d_with(CALX_T_(x), norm_type, CALX_O_((&(calx_lp_pool_options){ __VA_ARGS__ }))))
#define calx_lp_pool2d(x, ...) CALX_LP_POOL2D_(x, __VA_ARGS__, .size = sizeof(calx_lp_pool_options))
#define CALX_LP_POOL2D_(x, norm_type, ...) (calx_at_(CALX_HERE), calx_lp_pool2d_with(CALX_T_(x), norm_type, CALX_O_((&(calx_lp_pool_options){ __VA_ARGS__ }))))
#define calx_lp_pool3d(x, ...) CALX_LP_POOL3D_(x, __VA_ARGS__, .size = sizeof(calx_lp_pool_options))
#define CALX_LP_POOL3D_(x, norm_type, ...) (calx_at_(CALX_HERE), calx_lp_pool3d_with(CALX_T_(x), norm_type, CALX_O_((&(calx_lp_pool_options){ __VA_ARGS__ }))))
#define calx_max_pool1d(x, ...) CALX_MAX_POOL1D_(x, __VA_ARGS__, .size = sizeof(calx_max_pool1d_options))
#define CALX_MAX_POOL1D_(x, kernel_size, ...) (calx_at_(CALX_HERE), calx_max_pool1d_with(CALX_T_(x), kernel_size, CALX_O_((&(calx_max_pool1d_options){ __VA_ARGS__ }))))
#define calx_adaptive_avg_pool(x, ...) (calx_at_(CALX_HERE), calx_adaptive_avg_pool(CALX_T_(x), __VA_ARGS__))
#define calx_adaptive_max_pool(x, ...) (calx_at_(CALX_HERE), calx_adaptive_max_pool(CALX_T_(x), __VA_ARGS__))
#define calx_adaptive_max_pool_with_indices(x, output_size, out_indices) (calx_at_(CALX_HERE), calx_adaptive_max_pool_with_indices(CALX_T_(x), output_size, out_indices))
#define calx_interpolate(x, ...) CALX_INTERPOLATE_(x, __VA_ARGS__, .size = sizeof(calx_interpolate_options))
#define CALX_INTERPOLATE_(x, sizes, ...) (calx_at_(CALX_HERE), calx_interpolate_with(CALX_T_(x), sizes, CALX_O_((&(calx_interpolate_options){ __VA_ARGS__ }))))
#define calx_unfold(x, ...) CALX_UNFOLD_(x, __VA_ARGS__, .size = sizeof(calx_unfold_options))
#define CALX_UNFOLD_(x, kernel_size, ...) (calx_at_(CALX_HERE), calx_unfold_with(CALX_T_(x), kernel_size, CALX_O_((&(calx_unfold_options){ __VA_ARGS__ }))))
#define calx_max_pool2d(x, ...) CALX_MAX_POOL2D_(x, __VA_ARGS__, .size = sizeof(calx_max_pool2d_options))
#define CALX_MAX_POOL2D_(x, kernel_size, ...) (calx_at_(CALX_HERE), calx_max_pool2d_with(CALX_T_(x), kernel_size, CALX_O_((&(calx_max_pool2d_options){ __VA_ARGS__ }))))
#define calx_nll_loss(x, ...) CALX_NLL_LOSS_(x, __VA_ARGS__, .size = sizeof(calx_nll_loss_options))
#define CALX_NLL_LOSS_(x, target, ...) (calx_at_(CALX_HERE), calx_nll_loss_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_nll_loss_options){ __VA_ARGS__ }))))
#define calx_cross_entropy(x, ...) CALX_CROSS_ENTROPY_(x, __VA_ARGS__, .size = sizeof(calx_nll_loss_options))
#define CALX_CROSS_ENTROPY_(x, target, ...) (calx_at_(CALX_HERE), calx_cross_entropy_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_nll_loss_options){ __VA_ARGS__ }))))
// clang-format on

#endif
#endif
