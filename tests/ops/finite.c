// finite: the ops that have a rule of their own.
#include "finite.h"

// ---- the ops ----------------------------------------------------------------

#define CASE(name, expression)                         \
  static calx_tensor *f_##name(calx_tensor *const *in) \
  {                                                    \
    calx_tensor *x = in[0];                            \
    (void)x;                                           \
    return (expression);                               \
  }
// The elementwise ops: their inputs are of [low, high); flat as in a subject.
// clang-format off
#define ELEMENTWISE(ONE, TWO) \
  ONE(neg, -1, 1, true) \
  ONE(abs, 0.1, 1, true) \
  ONE(exp, -1, 1, false) \
  ONE(expm1, -1, 1, false) \
  ONE(log, 0.5, 2, false) \
  ONE(log2, 0.5, 2, false) \
  ONE(log1p, -0.5, 2, false) \
  ONE(sqrt, 0.5, 2, false) \
  ONE(rsqrt, 0.5, 2, false) \
  ONE(reciprocal, 0.5, 2, false) \
  ONE(square, -1, 1, false) \
  ONE(sin, -1, 1, false) \
  ONE(cos, -1, 1, false) \
  ONE(tanh, -1, 1, false) \
  ONE(sigmoid, -1, 1, false) \
  ONE(relu, 0.1, 1, true) \
  ONE(tan, -1, 1, false) \
  ONE(asin, -0.8, 0.8, false) \
  ONE(acos, -0.8, 0.8, false) \
  ONE(atan, -1, 1, false) \
  ONE(sinh, -1, 1, false) \
  ONE(cosh, -1, 1, false) \
  ONE(asinh, -1, 1, false) \
  ONE(acosh, 1.5, 2.5, false) \
  ONE(atanh, -0.8, 0.8, false) \
  ONE(exp2, -1, 1, false) \
  ONE(log10, 0.5, 2, false) \
  ONE(erf, -1, 1, false) \
  ONE(erfc, -1, 1, false) \
  ONE(erfinv, -0.8, 0.8, false) \
  ONE(lgamma, 0.5, 3, false) \
  ONE(digamma, 0.5, 3, false) \
  ONE(frac, 0.1, 0.9, true) \
  ONE(max, -1, 1, true) \
  ONE(min, -1, 1, true) \
  TWO(mul, -1, 1, false) \
  TWO(div, 0.5, 2, false) \
  TWO(pow, 0.5, 2, false) \
  TWO(remainder, 1, 1.9, true) \
  TWO(fmod, 1, 1.9, true) \
  TWO(atan2, 0.5, 2, false) \
  TWO(logaddexp, -1, 1, false) \
  TWO(maximum, -1, 1, true) \
  TWO(minimum, -1, 1, true)

#define ONE(op, low, high, flat) CASE(op, calx_##op(x))
#define TWO(op, low, high, flat) CASE(op, calx_##op(x, in[1]))
ELEMENTWISE(ONE, TWO)
CASE(add, calx_add(x, in[1]))
CASE(sub, calx_sub(x, in[1]))
CASE(matmul, calx_matmul(x, in[1]))
CASE(pow3, calx_pow(x, 3))
CASE(pow_half, calx_pow(x, 0.5))
CASE(pow_any, calx_pow(x, 1.7))
CASE(polygamma, calx_polygamma(1, x))
CASE(where, calx_where(calx_gt(x, 0.5), calx_square(x), in[1]))
CASE(sum, calx_square(calx_sum(x, .dims = CALX_DIMS(1))))
CASE(mean, calx_square(calx_mean(x, .dims = CALX_DIMS(0), .keepdim = true)))
CASE(amax, calx_square(calx_amax(x, .dims = CALX_DIMS(1))))
CASE(amin, calx_square(calx_amin(x, .dims = CALX_DIMS(0))))
CASE(max_dim, calx_square(calx_max_dim(x, 1, false, NULL)))
CASE(min_dim, calx_square(calx_min_dim(x, 0, true, NULL)))
CASE(reshape, calx_square(calx_reshape(x, CALX_SHAPE(4, 3))))
CASE(permute, calx_square(calx_permute(x, CALX_DIMS(1, 0))))
CASE(expand, calx_square(calx_expand(x, CALX_SHAPE(2, 3, 4))))
CASE(cat, calx_square(calx_cat(in, 2, 1)))
CASE(slice, calx_square(calx_slice(x, 1, 1, 4, 2)))
CASE(select, calx_square(calx_select(x, 0, -1)))
CASE(linear, calx_square(calx_linear(x, in[1], in[2])))
CASE(matmul_batch, calx_square(calx_matmul(x, in[1])))
CASE(log_softmax, calx_square(calx_log_softmax(x, 1)))
CASE(softmax, calx_square(calx_softmax(x, 0)))
CASE(conv2d,
     calx_square(calx_conv2d(x, in[1], .bias = in[2], .padding = { 1 })))
CASE(conv2d_stride,
     calx_square(calx_conv2d(x, in[1], .stride = { 2, 1 }, .dilation = { 1,
     2 })))
CASE(conv2d_groups,
     calx_square(calx_conv2d(x, in[1], .groups = 2, .stride = { 2 },
     .padding = { 1 })))
CASE(max_pool2d, calx_square(calx_max_pool2d(x, 2)))
CASE(max_pool2d_wide,
     calx_square(calx_max_pool2d(x, 3, .stride = { 1 }, .padding = { 1 })))
CASE(batch_norm,
     calx_square(calx_batch_norm(x, .weight = in[1], .bias = in[2],
     .training = true)))
CASE(to_dtype, calx_square(calx_to_dtype(x, CALX_F64)))
// clang-format on

static calx_tensor *target(void)
{
  static const int64_t classes[3] = { 1, 0, 3 };
  return calx_tensor_from(classes, CALX_I64, CALX_SHAPE(3));
}
// clang-format off
CASE(nll_loss, calx_square(calx_nll_loss(x, target())))
CASE(cross_entropy, calx_cross_entropy(x, target(), .label_smoothing = 0.1))

#define M { 3, 4 }
// clang-format on
#define ONE_ROW(op, low, high, flat) \
  { #op, f_##op, 1, { 2 }, { M }, low, high, flat },
#define TWO_ROW(op, low, high, flat) \
  { #op, f_##op, 2, { 2, 1 }, { M, { 4 } }, low, high, flat },
static const subject subjects[] = {
  { "matmul", f_matmul, 2, { 2, 2 }, { M, { 4, 2 } }, -1, 1, false },
  { "add", f_add, 2, { 2, 1 }, { M, { 4 } }, -1, 1, true },
  { "sub", f_sub, 2, { 2, 2 }, { M, { 3, 1 } }, -1, 1, true },
  { "pow 3", f_pow3, 1, { 2 }, { M }, -1, 1, false },
  { "pow 0.5", f_pow_half, 1, { 2 }, { M }, 0.5, 2, false },
  { "pow 1.7", f_pow_any, 1, { 2 }, { M }, 0.5, 2, false },
  { "polygamma", f_polygamma, 1, { 2 }, { M }, 1, 2, false },
  { "where", f_where, 2, { 2, 2 }, { M, M }, -1, 1, false },
  { "sum", f_sum, 1, { 2 }, { M }, -1, 1, false },
  { "mean", f_mean, 1, { 2 }, { M }, -1, 1, false },
  { "amax", f_amax, 1, { 2 }, { M }, -1, 1, false },
  { "amin", f_amin, 1, { 2 }, { M }, -1, 1, false },
  { "max_dim", f_max_dim, 1, { 2 }, { M }, -1, 1, false },
  { "min_dim", f_min_dim, 1, { 2 }, { M }, -1, 1, false },
  { "reshape", f_reshape, 1, { 2 }, { M }, -1, 1, false },
  { "permute", f_permute, 1, { 2 }, { M }, -1, 1, false },
  { "expand", f_expand, 1, { 2 }, { M }, -1, 1, false },
  { "cat", f_cat, 2, { 2, 2 }, { M, { 3, 2 } }, -1, 1, false },
  { "slice", f_slice, 1, { 2 }, { M }, -1, 1, false },
  { "select", f_select, 1, { 2 }, { M }, -1, 1, false },
  { "linear",
    f_linear,
    3,
    { 3, 2, 1 },
    { { 2, 3, 4 }, { 2, 4 }, { 2 } },
    -1,
    1,
    false },
  { "matmul, batched",
    f_matmul_batch,
    2,
    { 3, 3 },
    { { 2, 3, 4 }, { 1, 4, 2 } },
    -1,
    1,
    false },
  { "log_softmax", f_log_softmax, 1, { 2 }, { M }, -1, 1, false },
  { "softmax", f_softmax, 1, { 2 }, { M }, -1, 1, false },
  { "conv2d",
    f_conv2d,
    3,
    { 4, 4, 1 },
    { { 2, 2, 4, 4 }, { 3, 2, 3, 3 }, { 3 } },
    -1,
    1,
    false },
  { "conv2d, stride and dilation",
    f_conv2d_stride,
    2,
    { 4, 4 },
    { { 1, 2, 5, 6 }, { 2, 2, 2, 2 } },
    -1,
    1,
    false },
  { "conv2d, groups",
    f_conv2d_groups,
    2,
    { 4, 4 },
    { { 1, 4, 5, 5 }, { 2, 2, 3, 3 } },
    -1,
    1,
    false },
  { "max_pool2d", f_max_pool2d, 1, { 4 }, { { 1, 2, 4, 4 } }, -1, 1, false },
  { "max_pool2d, overlapping",
    f_max_pool2d_wide,
    1,
    { 4 },
    { { 1, 1, 4, 4 } },
    -1,
    1,
    false },
  { "batch_norm",
    f_batch_norm,
    3,
    { 4, 1, 1 },
    { { 3, 2, 2, 2 }, { 2 }, { 2 } },
    0.2,
    1,
    false },
  { "to_dtype", f_to_dtype, 1, { 2 }, { M }, -1, 1, false },
  { "nll_loss", f_nll_loss, 1, { 2 }, { M }, -1, 1, false },
  { "cross_entropy", f_cross_entropy, 1, { 2 }, { M }, -1, 1, false },
  ELEMENTWISE(ONE_ROW, TWO_ROW)
};

static void test_primitives(void **state)
{
  (void)state;
  finite_check(subjects, sizeof subjects / sizeof *subjects, 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_primitives) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
