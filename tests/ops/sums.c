// Sums of many equal numbers, by each operation that sums: within 2e-6 of what
// they are, which is about what PyTorch's are.
#include <math.h>
#include <stdlib.h>

#include "../lazy/engine.h"

#define BOUND 2e-6

static void check(const char *what, calx_tensor *t, double want)
{
  const size_t n = (size_t)calx_tensor_numel(t);
  float *got = test_malloc(n * sizeof *got);
  assert_null(calx_tensor_read(t, got, n * sizeof *got));
  for (size_t i = 0; i < n; i++) {
    const double off = fabs((double)got[i] / want - 1);
    if (!(off <= BOUND)) {
      fail_msg("%s: element %zu is %.9g, not %.9g", what, i, (double)got[i],
               want);
    }
  }
  test_free(got);
}

static calx_tensor *equal(calx_dims shape)
{
  return calx_full(shape, 0.7, .dtype = CALX_F32);
}

static void test_reductions(void **state)
{
  (void)state;
  const double x = (double)0.7F;
  const int64_t n = 1 << 22;
  check("sum", calx_sum(equal(CALX_SHAPE(n))), x * (double)n);
  check("mean", calx_mean(equal(CALX_SHAPE(n))), x);
  check("mean of rows",
        calx_mean(equal(CALX_SHAPE(n, 4)), .dims = CALX_DIMS(0)), x);
  check("sum of planes",
        calx_sum(equal(CALX_SHAPE(256, 8, 32, 32)), .dims = CALX_DIMS(0, 2, 3)),
        x * 256 * 32 * 32);
  // Larger ones are done by oneDNN, which adds up in f32.
  check("product",
        calx_mm(equal(CALX_SHAPE(3, n / 16)), equal(CALX_SHAPE(n / 16, 4))),
        x * x * (double)n / 16);
}

// The gradients of a convolution without padding, whose every term is the same:
// of those whose weights' gradient is a kernel of our own.
static void check_convolution(const char *what, int64_t images,
                              int64_t channels, int64_t outs, int64_t size,
                              int64_t kernel, int64_t groups)
{
  const double x = (double)0.7F;
  calx_tensor *in = equal(CALX_SHAPE(images, channels, size, size));
  calx_tensor *w =
      calx_zeros(CALX_SHAPE(outs, channels / groups, kernel, kernel));
  calx_tensor *b = calx_zeros(CALX_SHAPE(outs));
  calx_requires_grad(w, true);
  calx_requires_grad(b, true);
  calx_tensor *y = calx_conv2d(in, w, .bias = b, .groups = (int)groups);
  calx_backward(calx_sum(calx_mul(y, equal(CALX_SHAPE(1)))));
  const double each = (double)(size - kernel + 1);
  check(what, calx_grad(w), x * x * each * each * (double)images);
  check(what, calx_grad(b), x * each * each * (double)images);
}

static void test_convolutions(void **state)
{
  (void)state;
  check_convolution("few channels", 512, 1, 8, 28, 3, 1);
  check_convolution("groups of one channel", 1024, 16, 16, 34, 5, 16);
}

// Statistics of a channel of 2^22 equal numbers, and what its gradients add up.
static void test_batch_norm(void **state)
{
  (void)state;
  const double x = (double)0.7F, n = 1 << 22;
  calx_tensor *in = equal(CALX_SHAPE(1024, 2, 64, 64));
  calx_tensor *mean = calx_zeros(CALX_SHAPE(2)),
              *var = calx_zeros(CALX_SHAPE(2));
  calx_tensor *w = calx_ones(CALX_SHAPE(2)), *b = calx_ones(CALX_SHAPE(2));
  calx_requires_grad(w, true);
  calx_requires_grad(b, true);
  calx_tensor *y =
      calx_batch_norm(in, .running_mean = mean, .running_var = var, .weight = w,
                      .bias = b, .training = true, .momentum = 1.0);
  calx_backward(calx_sum(calx_mul(y, 0.7)));
  check("batch norm's mean", mean, x);
  check("batch norm's gradient of the bias", calx_grad(b), x * n);
  // Nothing varies: what is left over of the variance is rounding.
  float left[2];
  assert_null(calx_tensor_read(var, left, sizeof left));
  for (int i = 0; i < 2; i++) assert_true(fabs((double)left[i]) < 1e-5 * x * x);
}

// A loss that indexes by class, 2^22 times into one number: calx's own way to
// add up what an index picks (no op of calx makes a scatter).
static void test_picked(void **state)
{
  (void)state;
  const int64_t n = 1 << 22;
  calx_tensor *x = calx_zeros(CALX_SHAPE(1));
  calx_requires_grad(x, true);
  calx_tensor *rows =
      calx_expand(calx_reshape(x, CALX_SHAPE(1, 1)), CALX_SHAPE(n, 1));
  calx_tensor *target = calx_full(CALX_SHAPE(n), 0, .dtype = CALX_I64);
  calx_tensor *loss = calx_nll_loss(rows, target, .reduction = CALX_SUM);
  calx_backward(calx_mul(loss, 0.7));
  check("gradient of what an index picks", calx_grad(x),
        -(double)0.7F * (double)n);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_reductions),
    cmocka_unit_test(test_convolutions),
    cmocka_unit_test(test_batch_norm),
    cmocka_unit_test(test_picked),
  };
  return cmocka_run_group_tests(tests, engine_setup, NULL);
}
