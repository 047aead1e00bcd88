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

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_reductions),
    cmocka_unit_test(test_convolutions),
  };
  return cmocka_run_group_tests(tests, engine_setup, NULL);
}
