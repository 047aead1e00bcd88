// Ops on the types that f32's tests do not cover. Expected values are
// PyTorch's.
#include "../lazy/engine.h"

static calx_tensor *bf16(const float *v, int64_t n)
{
  return calx_to_dtype(calx_tensor_from(v, CALX_F32, CALX_SHAPE(n)), CALX_BF16);
}

static void check(calx_tensor *t, calx_dtype dtype, const float *want, size_t n)
{
  float got[16];
  assert_int_equal(calx_tensor_dtype(t), dtype);
  assert_null(
      calx_tensor_read(calx_to_dtype(t, CALX_F32), got, n * sizeof *got));
  for (size_t i = 0; i < n; i++) {
    if (got[i] != want[i]) {
      print_error("element %zu is %.9g, not %.9g\n", i, (double)got[i],
                  (double)want[i]);
    }
    assert_true(got[i] == want[i]);
  }
}

static void test_divisions_of_half_floats(void **state)
{
  (void)state;
  enum { N = 8 };
  static const float a[N] = { 7, -7, 5.5F, 1000, 3, -0.5F, 100, 0.1F };
  static const float b[N] = { 2, 2, -0.3F, 0.1F, 0.3F, 0.1F, 7, 0.01F };
  static const float floors[N] = { 3, -4, -19, 9984, 9, -5, 14, 10 };
  static const float truncs[N] = { 3, -3, -18, 9984, 10, -5, 14, 10 };
  calx_tensor *x = bf16(a, N);
  calx_tensor *y = bf16(b, N);
  check(calx_div(x, y, .rounding = CALX_ROUND_FLOOR), CALX_BF16, floors, N);
  check(calx_div(x, y, .rounding = CALX_ROUND_TRUNC), CALX_BF16, truncs, N);
  static const float by[N] = { 2, -3, 1, 332, 1, -1, 33, 0 };
  check(calx_div(x, 3, .rounding = CALX_ROUND_FLOOR), CALX_BF16, by, N);
}

static void test_sign_of_unsigned(void **state)
{
  (void)state;
  static const uint8_t v[] = { 0, 1, 3, 128, 255 };
  static const float want[] = { 0, 1, 1, 1, 1 };
  calx_tensor *t = calx_tensor_from(v, CALX_U8, CALX_SHAPE(5));
  check(calx_sign(t), CALX_U8, want, 5);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_divisions_of_half_floats),
    cmocka_unit_test(test_sign_of_unsigned),
  };
  return cmocka_run_group_tests(tests, engine_setup, NULL);
}
