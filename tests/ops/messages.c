// messages: what is said of a dim that is none, of element types that do not
// fit and of targets that are no class numbers.
#include "calx/calx.h"
#include "lazy/lazy.h"
#include "pjrt/fake.h"
#include "support/support.h"

static calx_tensor *f32(calx_dims shape)
{
  static const float data[64];
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
  SAYS(calx_argmax(X, .dims = CALX_DIMS(2)), "dim 2" RANGE);
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
  SAYS(calx_slice(X, 2, 0, 1, 1), "slice: dim 2" RANGE);
  SAYS(calx_slice(X, 0, 0, 1, 0), "slice: step 0 for f32[2,3]");
  SAYS(calx_select(X, -3, 0), "select: dim -3" RANGE);
  calx_tensor *scalar = calx_sum(X);
  SAYS(calx_sum(scalar, .dims = CALX_DIMS(1)),
       "sum: dim 1 is out of range: f32[] has dims -1 to 0");
  SAYS(calx_select(scalar, 0, 0), "select: f32[] is a scalar");
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
    SUPPORT_TEST(test_dims),
    SUPPORT_TEST(test_types),
    SUPPORT_TEST(test_targets),
    SUPPORT_TEST(test_lines),
  };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
