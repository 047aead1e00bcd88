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
  M(floor) M(ceil) M(round) M(isnan) M(isfinite)
#define CALX_EACH_BINARY_(M) \
  M(mul) M(pow) M(maximum) M(minimum) M(eq) M(ne) M(lt) M(le) M(gt) M(ge)
// clang-format on

#if !defined(CALX_NO_SITES) && !defined(__cplusplus)

// The call site is set again by every operand's wrapper, since an operand that
// is a call has set its own; whichever is evaluated last sets this one.
#define CALX_T_(t) calx_here_(t, CALX_HERE)
#define CALX_N_(v) calx_here_(CALX_OPERAND_(v), CALX_HERE)
#define CALX_O_(options) calx_options_here_(options, CALX_HERE)

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

// ---- options; the last required argument rides in the dots ----
#define calx_sum(...) CALX_SUM_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_SUM_(x, ...) (calx_at_(CALX_HERE), calx_sum_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
#define calx_mean(...) CALX_MEAN_(__VA_ARGS__, .size = sizeof(calx_reduce_options))
#define CALX_MEAN_(x, ...) (calx_at_(CALX_HERE), calx_mean_with(CALX_T_(x), CALX_O_((&(calx_reduce_options){ __VA_ARGS__ }))))
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
#define calx_arange(start, end, ...) CALX_ARANGE_(start, end, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_ARANGE_(start, end, step, ...) (calx_at_(CALX_HERE), calx_arange_with(start, end, step, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_conv2d(x, ...) CALX_CONV2D_(x, __VA_ARGS__, .size = sizeof(calx_conv2d_options))
#define CALX_CONV2D_(x, w, ...) (calx_at_(CALX_HERE), calx_conv2d_with(CALX_T_(x), CALX_T_(w), CALX_O_((&(calx_conv2d_options){ __VA_ARGS__ }))))
#define calx_max_pool2d(x, ...) CALX_MAX_POOL2D_(x, __VA_ARGS__, .size = sizeof(calx_max_pool2d_options))
#define CALX_MAX_POOL2D_(x, kernel_size, ...) (calx_at_(CALX_HERE), calx_max_pool2d_with(CALX_T_(x), kernel_size, CALX_O_((&(calx_max_pool2d_options){ __VA_ARGS__ }))))
#define calx_nll_loss(x, ...) CALX_NLL_LOSS_(x, __VA_ARGS__, .size = sizeof(calx_nll_loss_options))
#define CALX_NLL_LOSS_(x, target, ...) (calx_at_(CALX_HERE), calx_nll_loss_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_nll_loss_options){ __VA_ARGS__ }))))
#define calx_cross_entropy(x, ...) CALX_CROSS_ENTROPY_(x, __VA_ARGS__, .size = sizeof(calx_nll_loss_options))
#define CALX_CROSS_ENTROPY_(x, target, ...) (calx_at_(CALX_HERE), calx_cross_entropy_with(CALX_T_(x), CALX_T_(target), CALX_O_((&(calx_nll_loss_options){ __VA_ARGS__ }))))
// clang-format on

#endif
#endif
