// Ops on the types that f32's tests do not cover. Expected values are
// PyTorch's.
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

// A factor that is no i64.
static void test_large_alpha(void **state)
{
  (void)state;
  static const float v[] = { 0, 1, -2 };
  static const float add[] = { 0, 1e20F, -2e20F };
  static const float sub[] = { 0, -INFINITY, INFINITY };
  calx_tensor *x = calx_tensor_from(v, CALX_F32, CALX_SHAPE(3));
  check(calx_add(0, x, .alpha = 1e20), CALX_F32, add, 3);
  calx_tensor *y = calx_slice(x, 0, 1, 3, 1);
  check(calx_sub(0, y, .alpha = INFINITY), CALX_F32, sub + 1, 2);
}

static void test_sign_of_unsigned(void **state)
{
  (void)state;
  static const uint8_t v[] = { 0, 1, 3, 128, 255 };
  static const float want[] = { 0, 1, 1, 1, 1 };
  calx_tensor *t = calx_tensor_from(v, CALX_U8, CALX_SHAPE(5));
  check(calx_sign(t), CALX_U8, want, 5);
}

static void check_text(calx_tensor *t, const char *words)
{
  char *text = calx_stablehlo_str(t);
  assert_non_null(text);
  if (strstr(text, words) == NULL) {
    fputs(text, stderr);
    fail();
  }
  calx_string_free(text);
}

// Places are i32 where it can count them, and i64 from there on. Nothing is
// run: each tensor would take 2 GiB.
static void test_places(void **state)
{
  (void)state;
  const int64_t most = INT32_MAX;
  calx_tensor *x = calx_zeros(CALX_SHAPE(most), .dtype = CALX_U8);
  calx_tensor *y = calx_zeros(CALX_SHAPE(most + 1), .dtype = CALX_U8);
  check_text(calx_argmax(x), "tensor<2147483647xi32>");
  check_text(calx_argmax(y), "tensor<2147483648xi64>");
  check_text(calx_argmin(y), "tensor<2147483648xi64>");
}

// One byte of 2 GiB; for long runs.
static void test_far_place(void **state)
{
  (void)state;
  const int64_t n = (int64_t)INT32_MAX + 11;
  uint8_t *v = calloc((size_t)n, 1);
  assert_non_null(v);
  v[n - 3] = 1;
  calx_tensor *t = calx_tensor_from(v, CALX_U8, CALX_SHAPE(n));
  free(v);
  int64_t place = 0;
  assert_null(calx_tensor_read(calx_argmax(t), &place, sizeof place));
  assert_int_equal(place, n - 3);
  // From the second start on it is no part of the program.
  for (int64_t i = 1; i < 5; i++) {
    uint8_t found[2] = { 7, 7 };
    calx_tensor *two = calx_slice(t, 0, n - 3 - i, n - 1 - i, 1);
    assert_null(calx_tensor_read(two, found, 2));
    assert_int_equal(found[0], 0);
    assert_int_equal(found[1], i == 1);
  }
}

// ---- numbers of C's types ---------------------------------------------------

static void test_numbers(void **state)
{
  (void)state;
  calx_tensor *x = calx_full(CALX_SHAPE(1), 3);
  check(calx_mul(x, 0.5L), CALX_F32, (float[]){ 1.5f }, 1);
  check(calx_mul(x, UINT64_MAX), CALX_F32, (float[]){ 0x1.8p65f }, 1);
  check(calx_mul(x, (size_t)1 << 63), CALX_F32, (float[]){ 0x1.8p64f }, 1);
  check(calx_mul(x, (size_t)7), CALX_F32, (float[]){ 21 }, 1);
  calx_tensor *i = calx_full(CALX_SHAPE(1), 3, .dtype = CALX_I32);
  check(calx_add(i, (size_t)7), CALX_I32, (float[]){ 10 }, 1);
  check(calx_add(i, (unsigned char)7), CALX_I32, (float[]){ 10 }, 1);
  check(calx_add(i, 'a'), CALX_I32, (float[]){ 100 }, 1);
  check(calx_add(i, 1 == 1), CALX_I32, (float[]){ 4 }, 1);
}

#define NO_VALUE(...) check_no_value((__VA_ARGS__, calx_scope_take_error()))
static void check_no_value(calx_status *status)
{
  assert_non_null(status);
  assert_int_equal(calx_status_code(status), CALX_INVALID_ARGUMENT);
  assert_non_null(strstr(calx_status_message(status), "has no value in"));
  calx_status_free(status);
}

// A number that an integer type does not hold is neither cut nor wrapped around
// in silence where it is the value itself; PyTorch refuses the same ones.
static void test_numbers_out_of_range(void **state)
{
  (void)state;
  calx_dims one = CALX_SHAPE(1);
  NO_VALUE(calx_full(one, NAN, .dtype = CALX_I64));
  NO_VALUE(calx_full(one, INFINITY, .dtype = CALX_I32));
  NO_VALUE(calx_full(one, 300, .dtype = CALX_U8));
  NO_VALUE(calx_full(one, -256, .dtype = CALX_U8));
  NO_VALUE(calx_full(one, 128, .dtype = CALX_I8));
  NO_VALUE(calx_full(one, 0x1p63, .dtype = CALX_I64));
  check(calx_full(one, -128, .dtype = CALX_I8), CALX_I8, (float[]){ -128 }, 1);
  check(calx_full(one, -1, .dtype = CALX_U8), CALX_U8, (float[]){ 255 }, 1);
  check(calx_full(one, 255.9, .dtype = CALX_U8), CALX_U8, (float[]){ 255 }, 1);
  check(calx_full(one, NAN, .dtype = CALX_BOOL), CALX_BOOL, (float[]){ 1 }, 1);
  check(calx_full(one, 0.5, .dtype = CALX_BOOL), CALX_BOOL, (float[]){ 1 }, 1);
  calx_tensor *no = calx_zeros(one, .dtype = CALX_BOOL);
  calx_assign(no, 0.5);
  check(no, CALX_BOOL, (float[]){ 1 }, 1);
  calx_tensor *u8 = calx_full(one, 7, .dtype = CALX_U8);
  calx_tensor *i64 = calx_full(one, 7, .dtype = CALX_I64);
  NO_VALUE(calx_assign(u8, 300));
  NO_VALUE(calx_assign(i64, NAN));
  check(u8, CALX_U8, (float[]){ 7 }, 1);
  calx_assign(i64, INT64_MIN);
  assert_true(calx_item_int(i64) == INT64_MIN);
  calx_tensor *yes = calx_gt(u8, 0);
  NO_VALUE(calx_where(yes, 300, u8));
  NO_VALUE(calx_where(yes, u8, 300));
  check(calx_where(yes, 200, u8), CALX_U8, (float[]){ 200 }, 1);
  check(calx_where(yes, 300.5, u8), CALX_F32, (float[]){ 300.5f }, 1);
}

// A query that sees no key: 0, and no gradient but of what the others see.
static void test_no_key(void **state)
{
  (void)state;
  const float q[4] = { 1, 2, 3, 4 }, sees[4] = { 1, 0, 0, 0 };
  calx_tensor *x = calx_tensor_from(q, CALX_F32, CALX_SHAPE(2, 2));
  calx_tensor *m = calx_tensor_from(sees, CALX_F32, CALX_SHAPE(2, 2));
  calx_requires_grad(x, true);
  calx_tensor *masks[2] = { calx_gt(m, 0), calx_log(m) };
  for (int i = 0; i < 2; i++) {
    calx_tensor *y =
        calx_scaled_dot_product_attention(x, x, x, .attn_mask = masks[i]);
    check(y, CALX_F32, (float[]){ 1, 2, 0, 0 }, 4);
    calx_tensor *grad;
    calx_grad_of(calx_sum(y), (calx_tensor *[]){ x }, 1, &grad);
    check(grad, CALX_F32, (float[]){ 1, 1, 0, 0 }, 4);
  }
  calx_tensor *none = calx_zeros(CALX_SHAPE(0, 2));
  calx_tensor *all = calx_ones(CALX_SHAPE(2, 0), .dtype = CALX_BOOL);
  check(calx_scaled_dot_product_attention(x, none, none, .attn_mask = all),
        CALX_F32, (float[]){ 0, 0, 0, 0 }, 4);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_divisions_of_half_floats),
    cmocka_unit_test(test_large_alpha),
    cmocka_unit_test(test_sign_of_unsigned),
    cmocka_unit_test(test_no_key),
    cmocka_unit_test(test_places),
    cmocka_unit_test(test_numbers),
    cmocka_unit_test(test_numbers_out_of_range),
  };
  const struct CMUnitTest longest[] = { cmocka_unit_test(test_far_place) };
  const int failed = cmocka_run_group_tests(tests, engine_setup, NULL);
  if (getenv("CALX_TEST_LONG") == NULL) return failed;
  return failed + cmocka_run_group_tests(longest, engine_setup, NULL);
}
