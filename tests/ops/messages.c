// messages: what is said of a dim that is none, of shapes, element types and
// options that do not fit, and of targets that are no class numbers.
#include "calx/calx.h"
#include "lazy/lazy.h"
#include "pjrt/fake.h"
#include "support/support.h"

static calx_tensor *f32(calx_dims shape)
{
  static const float data[2000];  // of the largest shape
  return calx_tensor_from(data, CALX_F32, shape);
}

static calx_tensor *of(calx_dtype dtype, calx_dims shape)
{
  return calx_to_dtype(f32(shape), dtype);
}

// Statement `call` in a scope of its own fails with these words.
#define SAYS(call, words)                                           \
  do {                                                              \
    calx_scope *s_ = calx_scope_begin();                            \
    (void)(call);                                                   \
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s_), words); \
  } while (0)

static void test_dims(void **state)
{
  (void)state;
#define RANGE " is out of range: f32[2,3] has dims -2 to 1"
#define X f32(CALX_SHAPE(2, 3))
  SAYS(calx_sum(X, .dims = CALX_DIMS(3)), "sum: dim 3" RANGE);
  SAYS(calx_mean(X, .dims = CALX_DIMS(-3)), "mean: dim -3" RANGE);
  SAYS(calx_sum(X, .dims = CALX_DIMS(1, -1)),
       "sum: dim -1 of f32[2,3] is given twice");
  SAYS(calx_argmax(X, .dims = CALX_DIMS(2)), "argmax: dim 2" RANGE);
  SAYS(calx_argmin(X, .dims = CALX_DIMS(-3)), "argmin: dim -3" RANGE);
  SAYS(calx_argmax(X, .dims = CALX_DIMS(0, 1)), "elements of f32[2,3]; 2 are");
  SAYS(calx_max_dim(X, 2, false, NULL), "max_dim: dim 2" RANGE);
  SAYS(calx_softmax(X, 2), "softmax: dim 2" RANGE);
  SAYS(calx_log_softmax(X, -3), "log_softmax: dim -3" RANGE);
  SAYS(calx_flatten(X, .start_dim = 2), "flatten: start_dim 2" RANGE);
  SAYS(calx_flatten(X, .end_dim = 2), "flatten: end_dim 2" RANGE);
  SAYS(calx_flatten(X, .start_dim = 1, .end_dim = -2),
       "flatten: start_dim 1 of f32[2,3] comes after end_dim -2");
  SAYS(calx_transpose(X, 0, 2), "transpose: dim1 2" RANGE);
  SAYS(calx_transpose(X, -3, 0), "transpose: dim0 -3" RANGE);
  SAYS(calx_permute(X, CALX_DIMS(0, 2)), "permute: dim 2" RANGE);
  SAYS(calx_squeeze(X, 2), "squeeze: dim 2" RANGE);
  SAYS(calx_unsqueeze(X, 3),
       "unsqueeze: dim 3 is out of range: f32[2,3] with one more has dims -3 "
       "to 2");
  calx_tensor *two[2] = { X, X };
  SAYS(calx_cat(two, 2, 2), "cat: dim 2" RANGE);
  SAYS(calx_stack(two, 2, -4),
       "stack: dim -4 is out of range: f32[2,3] with one more has dims -3 to "
       "2");
  SAYS(calx_einsum("ij,jk->ik", two, 2),
       "einsum: 'ij,jk->ik': 'j' has the sizes 3 and 2");
  SAYS(calx_interpolate(f32(CALX_SHAPE(1, 1, 4)), CALX_SHAPE(2),
                        .scale_factor = 2),
       "1 sizes and .scale_factor: one of both is wanted");
  SAYS(calx_interpolate(f32(CALX_SHAPE(1, 1, 4)), CALX_NO_SIZES,
                        .scale_factor = -1),
       "a factor of -1 for f32[1,1,4]");
  SAYS(calx_interpolate(f32(CALX_SHAPE(1, 1, 4)), CALX_SHAPE(2),
                        .align_corners = true),
       "align_corners option can only be set");
  SAYS(calx_slice(X, 2, 0, 1, 1), "slice: dim 2" RANGE);
  SAYS(calx_slice(X, 0, 0, 1, 0), "slice: step 0 for f32[2,3]");
  SAYS(calx_select(X, -3, 0), "select: dim -3" RANGE);
  calx_tensor *scalar = calx_sum(X);
  SAYS(calx_sum(scalar, .dims = CALX_DIMS(1)),
       "sum: dim 1 is out of range: f32[] has dims -1 to 0");
  SAYS(calx_select(scalar, 0, 0), "select: f32[] is a scalar");
}

static void test_empty(void **state)
{
  (void)state;
  calx_tensor *e = f32(CALX_SHAPE(0, 3));
  SAYS(calx_argmax(e), "argmax: f32[0,3] has no element to choose from");
  SAYS(calx_argmin(e, .dims = CALX_DIMS(0)),
       "argmin: dim 0 of f32[0,3] has size 0");
  SAYS(calx_max(e), "max: f32[0,3] has no element");
  SAYS(calx_min(e), "min: f32[0,3] has no element");
  SAYS(calx_min_dim(e, 0, false, NULL), "min_dim: dim 0 of f32[0,3] has size");
  SAYS(calx_amax(e, .dims = CALX_DIMS(0)), "name others with .dims");
  SAYS(calx_max(NULL), "max: operand 0 is NULL");
}

static void test_shapes(void **state)
{
  (void)state;
  calx_tensor *a = f32(CALX_SHAPE(2, 3)), *b = f32(CALX_SHAPE(4, 5));
  SAYS(calx_reshape(a, CALX_SHAPE(-2, 3)), "one of them may be -1");
  SAYS(calx_reshape(f32(CALX_SHAPE(0)), CALX_SHAPE(-1, 0)),
       "0 elements, whatever -1 stands for");
  SAYS(calx_expand(a, CALX_SHAPE(5, 3)), "only dimensions of size 1 and new");
  SAYS(calx_permute(a, CALX_DIMS(0, 0)), "of f32[2,3]: each is wanted once");
  SAYS(calx_cat(((calx_tensor *[]){ a, b }), 2, 0),
       "all sizes but dimension 0's must be equal");
  SAYS(calx_stack((calx_tensor *[]){ a, b }, 2, 0),
       "stack: operand 1 is f32[4,5], operand 0 f32[2,3]");
  calx_tensor *const *none = NULL;
  SAYS(calx_cat(none, 2, 0), "cat: the list of 2 tensors is NULL");
  SAYS(calx_stack(none, 2, 0), "stack: the list of 2 tensors is NULL");
  SAYS(calx_stack(&a, 0, 0), "stack: 0 tensors, 1 to 4096");
  SAYS(calx_mm(a, b), "mm: f32[2,3] and f32[4,5]: the first has 3 columns, ");
  SAYS(calx_matmul(a, b), "they must be equal");
  SAYS(calx_linear(a, f32(CALX_SHAPE(3)), NULL), "(out, in) is wanted");
  SAYS(calx_linear(a, f32(CALX_SHAPE(4, 3)), f32(CALX_SHAPE(3))),
       "linear: the bias is f32[3], one number for each of the 4 rows");
  calx_no_grad_begin();
  SAYS(calx_assign(a, b), "assign: the value f32[4,5] does not broadcast to");
  calx_no_grad_end();
  calx_tensor *one = f32(CALX_SHAPE(1, 1)), *huge;
  const int64_t big = INT64_C(1) << 40;
  huge = calx_expand(one, CALX_SHAPE(big, 1));
  SAYS(calx_mul(huge, calx_expand(one, CALX_SHAPE(1, big))),
       "mul: the result f32[1099511627776,1099511627776] is too large");
  SAYS(calx_zeros(CALX_SHAPE(-1, 2)), "zeros: f32[-1,2] has a negative size");
  SAYS(calx_rand(CALX_SHAPE(-1)), "rand: f32[-1] has a negative size");
  SAYS(calx_arange(0, 9, -1), "in steps of -1: the step must lead from");
  SAYS(f32(CALX_SHAPE(-1)), "tensor_from: size -1 of dimension 0 is negative");
}

static void test_options(void **state)
{
  (void)state;
  calx_tensor *x = f32(CALX_SHAPE(1, 2, 4, 4)),
              *w = f32(CALX_SHAPE(3, 1, 2, 2));
  SAYS(calx_conv2d(x, w, .groups = 2), "3 filters do not make 2 equal groups");
  SAYS(calx_conv2d(x, w, .groups = -1), "conv2d: groups is -1, 1 to ");
  SAYS(calx_conv2d(x, w, .stride = -1), "conv2d: stride is -1, 1 to ");
  SAYS(calx_conv2d(x, w, .dilation = INT64_MAX), "conv2d: dilation is 92233");
  SAYS(calx_conv2d(x, w, .padding = -2), "conv2d: padding is -2, 0 to ");
  SAYS(calx_conv2d(x, w, .padding = CALX_PADDING_SAME, .stride = 3),
       "wants stride 1, got 3; got f32[1,2,4,4] and f32[3,1,2,2]");
  SAYS(calx_conv2d(x, f32(CALX_SHAPE(1, 2, 5, 1))),
       "the filter, of 5 rows with its dilation, is larger than the padded "
       "image, which has 4");
  SAYS(calx_max_pool2d(x, 0), "max_pool2d: kernel_size is 0, 1 to ");
  SAYS(calx_max_pool2d(x, 2, .stride = INT64_MAX), "stride is 92233");
  SAYS(calx_max_pool2d(x, 3, .padding = 2), "is 2, 0 to 1 is possible");
  SAYS(calx_max_pool2d(x, 3, .dilation = 2), "of 5 rows with its dilation");
  x = f32(CALX_SHAPE(3, 4));
  calx_tensor *t = of(CALX_I64, CALX_SHAPE(3));
  SAYS(calx_nll_loss(x, t, .label_smoothing = 0.1),
       "label_smoothing 0.1 is for calx_cross_entropy only");
  SAYS(calx_cross_entropy(x, t, .label_smoothing = 2), "smoothing 2 must lie");
  SAYS(calx_nll_loss(x, t, .reduction = 9), "reduction 9 is none of");
  SAYS(calx_nll_loss(x, t, .weight = f32(CALX_SHAPE(3))),
       "weight is f32[3], one number for each of the 4 classes");
}

// What PyTorch raises too, where the number is known at the call.
static void test_integers(void **state)
{
  (void)state;
  calx_tensor *i = of(CALX_I32, CALX_SHAPE(3));
  SAYS(calx_pow(i, -1),
       "pow: integers to negative integer powers are not allowed: i32[3]");
  SAYS(calx_div(i, 0, .rounding = CALX_ROUND_FLOOR),
       "div: i32[3] divided by the integer 0");
  SAYS(calx_div(i, 0, .rounding = CALX_ROUND_TRUNC), "by the integer 0");
  SAYS(calx_div(i, 1, .rounding = 7), "div: rounding 7 is none of");
  calx_pow(i, -1.5);
  calx_pow(f32(CALX_SHAPE(3)), -1);
  calx_div(i, 0);
  calx_div(i, 0.0, .rounding = CALX_ROUND_FLOOR);
  assert_null(calx_scope_error());
}

static void test_types(void **state)
{
  (void)state;
  calx_tensor *m = f32(CALX_SHAPE(3, 3));
  calx_tensor *image = f32(CALX_SHAPE(1, 1, 4, 4));
  SAYS(calx_mm(m, of(CALX_BF16, CALX_SHAPE(3, 3))), "calx_to_dtype");
  SAYS(calx_linear(of(CALX_BF16, CALX_SHAPE(3, 3)), m, NULL), "calx_to_dtype");
  SAYS(calx_conv2d(of(CALX_BF16, CALX_SHAPE(1, 1, 4, 4)), image),
       "got bf16[1,1,4,4] and f32[1,1,4,4]; convert one with calx_to_dtype");
  SAYS(calx_where(m, m, m), "calx_to_dtype(condition, CALX_BOOL)");
  SAYS(calx_softmax(of(CALX_I32, CALX_SHAPE(3)), 0), "calx_to_dtype");
  SAYS(calx_mean(of(CALX_I32, CALX_SHAPE(3))), "calx_to_dtype");
  SAYS(calx_batch_norm(of(CALX_I32, CALX_SHAPE(2, 3)), .training = true),
       "batch_norm: i32[2,3] is not floating; convert it with calx_to_dtype");
}

static void test_targets(void **state)
{
  (void)state;
  calx_tensor *x = f32(CALX_SHAPE(3, 3));
  SAYS(calx_cross_entropy(x, f32(CALX_SHAPE(3))),
       "got f32[3]; class numbers are i64 (calx_to_dtype(target, CALX_I64))");
  SAYS(calx_nll_loss(x, f32(CALX_SHAPE(3))),
       "nll_loss: a target of class numbers is i64, got f32[3]; convert it "
       "with calx_to_dtype(target, CALX_I64)");
  SAYS(calx_nll_loss(x, of(CALX_I64, CALX_SHAPE(2))),
       "got i64[2] for f32[3,3]");
  SAYS(calx_cross_entropy(of(CALX_I64, CALX_SHAPE(3, 3)),
                          of(CALX_I64, CALX_SHAPE(3))),
       "calx_to_dtype");
}

// Functions that take several tensors or make several.
static void test_lists(void **state)
{
  (void)state;
  calx_tensor *x = f32(CALX_SHAPE(2, 3)), *out[8];
  calx_tensor *i = of(CALX_I64, CALX_SHAPE(2));
  SAYS(calx_gcd(x, i), "gcd: f32[2,3], integers are wanted; convert with");
  SAYS(calx_bitwise_left_shift(x, i), "bitwise_left_shift: ");
  SAYS(calx_nextafter(i, i), "nextafter: i64[2], a floating type is wanted");
  SAYS(calx_frexp(i, NULL), "frexp: i64[2], a floating type is wanted");
  SAYS(calx_inner(x, i), "inner: f32[2,3] and i64[2]: one type is wanted");
  SAYS(calx_renorm(x, 2, 0, (double)NAN), "renorm: p 2 and maxnorm nan");
  SAYS(calx_renorm(x, 2, 2, 1), "renorm: dim 2" RANGE);
  SAYS(calx_pdist(x, .p = -1), "pdist: f32[2,3] and p -1");
  SAYS(calx_addbmm(x, x, x), "addbmm: f32[2,3] and f32[2,3]: batches");
  SAYS(calx_combinations(calx_ravel(f32(CALX_SHAPE(40, 50))), .r = 5),
       "combinations: 5 at a time of f32[2000] have more than");
  SAYS((calx_hsplit(x, 2, out), out[1]),
       "hsplit: dimension 1 of f32[2,3] does not make 2 equal parts");
  SAYS((calx_dsplit(x, 2, out), out[0]), "dsplit: f32[2,3], rank 3 or more");
  SAYS((calx_unravel_index(x, CALX_SHAPE(2), out), out[0]),
       "unravel_index: f32[2,3] and 1 sizes: integers");
  SAYS(calx_column_stack((calx_tensor *const *)NULL, 2),
       "column_stack: 2 tensors at NULL");
  SAYS(calx_cartesian_prod(&x, 1), "cartesian_prod: tensor 0 of 1 is f32[2,3]");
  SAYS(calx_index_reduce(x, 0, i, x, 7), "7 is none of calx_index_reduction");
  SAYS(calx_index_reduce(x, 0, i, f32(CALX_SHAPE(1, 3)), CALX_INDEX_MEAN),
       "index_reduce: f32[1,3] at i64[2] of f32[2,3]: a vector");
  SAYS(calx_diagonal_scatter(x, x),
       "diagonal_scatter: the source f32[2,3] in place of f32[2]: equal");
  SAYS(calx_trapezoid(x, .x = i), "trapezoid: x is i64[2] for f32[2,3]");
  SAYS((calx_gradient(x, out, .edge_order = 2), out[0]),
       "gradient: edge_order 2 of dimension 0 of f32[2,3]");
  SAYS(calx_histogram(x, NULL, .min = 2, .max = 1),
       "histogram: f32[2,3], 0 bins from 2 to 1");
  SAYS(calx_hann_window(-1), "hann_window: f32[-1] has a negative size");
  SAYS(calx_hann_window(4, .dtype = CALX_I64), "a floating one is wanted");
  const calx_dims many = { .count = CALX_MAX_RANK + 1 };
  SAYS(calx_pad(x, many), "pad: 9 numbers, calx_dims holds 8");
  calx_tensor *parts[CALX_MAX_RANK + 1];
  SAYS((calx_split(x, many, 0, parts), parts[7]), "split: 9 sizes, calx_dims");
  SAYS((calx_tensor_split_at(x, many, 0, parts), parts[8]),
       "tensor_split: 9 indices, calx_dims holds 8");
  SAYS((calx_dsplit_at(x, many, parts), parts[8]), "dsplit: f32[2,3], rank 3");
  SAYS(calx_mvlgamma(x, 0), "mvlgamma: p is 0, 1 to 4096 is possible");
}

static void says_line(calx_status *status, int line)
{
  char where[64];
  snprintf(where, sizeof where, "tests/ops/messages.c:%d: ", line);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, status, where);
}

static void test_lines(void **state)
{
  (void)state;
  calx_device *device = NULL;
  calx_at_(&(calx_site){ "elsewhere.c", "f", 1 });
  says_line(calx_device_open("nowhere", &device), __LINE__);
  calx_optimizer *opt = calx_sgd(NULL, .lr = 0.1);
  says_line(calx_optimizer_error(opt), __LINE__ - 1);
  calx_optimizer_free(opt);
  opt = calx_adam(NULL);
  says_line(calx_optimizer_error(opt), __LINE__ - 1);
  calx_optimizer_free(opt);
  opt = calx_adamw(NULL);
  says_line(calx_optimizer_error(opt), __LINE__ - 1);
  calx_optimizer_free(opt);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_dims),     SUPPORT_TEST(test_empty),
    SUPPORT_TEST(test_shapes),   SUPPORT_TEST(test_options),
    SUPPORT_TEST(test_integers), SUPPORT_TEST(test_types),
    SUPPORT_TEST(test_targets),  SUPPORT_TEST(test_lines),
    SUPPORT_TEST(test_lists),
  };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
