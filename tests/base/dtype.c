// Element types: names, promotion, single elements to numbers and back. Halves
// are checked against their definition, every pattern of them.
#include "base/dtype.h"

#include <math.h>

#include "check.h"

// torch.promote_types of torch 2.13; it has no answer where one of u16, u32 and
// u64 meets another integer.
static void test_promotion(void **state)
{
  (void)state;
  enum { B = CALX_BOOL, N = 13, NONE = 0 };
  static const int table[N][N] = {
#define i8 CALX_I8
#define i16 CALX_I16
#define i32 CALX_I32
#define i64 CALX_I64
#define u8 CALX_U8
#define bf CALX_BF16
#define f16 CALX_F16
#define f32 CALX_F32
#define f64 CALX_F64
    { B, i8, i16, i32, i64, u8, 0, 0, 0, bf, f16, f32, f64 },
    { i8, i8, i16, i32, i64, i16, 0, 0, 0, bf, f16, f32, f64 },
    { i16, i16, i16, i32, i64, i16, 0, 0, 0, bf, f16, f32, f64 },
    { i32, i32, i32, i32, i64, i32, 0, 0, 0, bf, f16, f32, f64 },
    { i64, i64, i64, i64, i64, i64, 0, 0, 0, bf, f16, f32, f64 },
    { u8, i16, i16, i32, i64, u8, 0, 0, 0, bf, f16, f32, f64 },
    { 0, 0, 0, 0, 0, 0, CALX_U16, 0, 0, bf, f16, f32, f64 },
    { 0, 0, 0, 0, 0, 0, 0, CALX_U32, 0, bf, f16, f32, f64 },
    { 0, 0, 0, 0, 0, 0, 0, 0, CALX_U64, bf, f16, f32, f64 },
    { bf, bf, bf, bf, bf, bf, bf, bf, bf, bf, f32, f32, f64 },
    { f16, f16, f16, f16, f16, f16, f16, f16, f16, f32, f16, f32, f64 },
    { f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f64 },
    { f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64 },
  };
  for (int a = 0; a < N; a++) {
    for (int b = 0; b < N; b++) {
      calx_dtype got =
          cx_dtype_promote((calx_dtype)(a + B), (calx_dtype)(b + B));
      assert_int_equal(
          got, cx_dtype_promote((calx_dtype)(b + B), (calx_dtype)(a + B)));
      if (table[a][b] != NONE) assert_int_equal(got, table[a][b]);
      assert_true(cx_dtype_valid(got));
    }
  }
  for (int d = CALX_BOOL; d <= CALX_C128; d++) {
    const bool wide = d == CALX_F64 || d == CALX_C128;
    assert_int_equal(cx_dtype_promote((calx_dtype)d, CALX_C64),
                     wide ? CALX_C128 : CALX_C64);
    assert_int_equal(cx_dtype_promote(CALX_C64, (calx_dtype)d),
                     wide ? CALX_C128 : CALX_C64);
    assert_int_equal(cx_dtype_promote((calx_dtype)d, CALX_C128), CALX_C128);
    assert_int_equal(cx_dtype_promote(CALX_C128, (calx_dtype)d), CALX_C128);
  }
}

static void test_facts(void **state)
{
  (void)state;
  static const struct {
    calx_dtype d;
    const char *name;
    size_t size;
    bool is_float, is_int, is_unsigned;
  } facts[] = {
    { CALX_BOOL, "bool", 1, false, false, false },
    { CALX_I8, "i8", 1, false, true, false },
    { CALX_U8, "u8", 1, false, true, true },
    { CALX_I64, "i64", 8, false, true, false },
    { CALX_U64, "u64", 8, false, true, true },
    { CALX_BF16, "bf16", 2, true, false, false },
    { CALX_F16, "f16", 2, true, false, false },
    { CALX_F64, "f64", 8, true, false, false },
    { CALX_C64, "c64", 8, false, false, false },
    { CALX_C128, "c128", 16, false, false, false },
  };
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
    assert_string_equal(calx_dtype_name(facts[i].d), facts[i].name);
    assert_int_equal(calx_dtype_size(facts[i].d), facts[i].size);
    assert_true(cx_dtype_is_float(facts[i].d) == facts[i].is_float);
    assert_true(cx_dtype_is_int(facts[i].d) == facts[i].is_int);
    assert_true(cx_dtype_is_unsigned(facts[i].d) == facts[i].is_unsigned);
  }
  const int odd[] = { 0, -1, 16, 1000, INT32_MIN };
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    assert_string_equal(calx_dtype_name((calx_dtype)odd[i]), "?");
    assert_int_equal(calx_dtype_size((calx_dtype)odd[i]), 0);
    assert_false(cx_dtype_valid((calx_dtype)odd[i]));
  }
}

// ---- halves -----------------------------------------------------------------

typedef struct format {
  calx_dtype dtype;
  int mantissa, bias, top;  // bits; of the exponent; its greatest
} format;

static const format formats[] = { { CALX_F16, 10, 15, 31 },
                                  { CALX_BF16, 7, 127, 255 } };

// By the definition.
static double value_of(const format *f, uint32_t bits)
{
  uint32_t m = bits & ((1u << f->mantissa) - 1);
  int e = (int)(bits >> f->mantissa) & f->top;
  double sign = bits >> 15 != 0 ? -1 : 1;
  if (e == f->top) return m != 0 ? (double)NAN : sign * (double)INFINITY;
  if (e == 0) return sign * ldexp(m, 1 - f->bias - f->mantissa);
  return sign *
         ldexp(m + (double)(1u << f->mantissa), e - f->bias - f->mantissa);
}

static uint16_t store(const format *f, double v)
{
  uint16_t bits;
  cx_store_double(f->dtype, &bits, v);
  return bits;
}

static void test_every_half(void **state)
{
  (void)state;
  for (int k = 0; k < 2; k++) {
    const format *f = &formats[k];
    for (uint32_t bits = 0; bits < 65536; bits++) {
      uint16_t h = (uint16_t)bits;
      double got = cx_load_double(f->dtype, &h), want = value_of(f, bits);
      if (isnan(want)) {
        assert_true(isnan(got));
        assert_true(isnan(value_of(f, store(f, got))));
        continue;
      }
      if (got != want || signbit(got) != signbit(want)) {
        fail_msg("%s %04x: %g, wanted %g", calx_dtype_name(f->dtype), bits, got,
                 want);
      }
      if (store(f, got) != h) {
        fail_msg("%s %04x is stored as %04x", calx_dtype_name(f->dtype), bits,
                 store(f, got));
      }
    }
  }
}

// Between two neighbours: the nearer one, and of the middle the even one.
static void test_rounding(void **state)
{
  (void)state;
  for (int k = 0; k < 2; k++) {
    const format *f = &formats[k];
    uint32_t infinite = (uint32_t)f->top << f->mantissa;
    for (uint32_t bits = 0; bits + 1 < infinite; bits++) {
      double a = value_of(f, bits), b = value_of(f, bits + 1);
      double middle = a + (b - a) / 2;
      uint32_t even = bits % 2 == 0 ? bits : bits + 1;
      assert_int_equal(store(f, middle), even);
      assert_int_equal(store(f, nextafter(middle, 0)), bits);
      assert_int_equal(store(f, nextafter(middle, 1e300)), bits + 1);
      assert_int_equal(store(f, -middle), even | 0x8000);
    }
    double most = value_of(f, infinite - 1);
    double over = most + (most - value_of(f, infinite - 2)) / 2;
    assert_int_equal(store(f, nextafter(over, 0)), infinite - 1);
    assert_int_equal(store(f, over), infinite);
    assert_int_equal(store(f, 1e300), infinite);
    assert_int_equal(store(f, -1e300), infinite | 0x8000);
    assert_int_equal(store(f, 1e-300), 0);
    assert_int_equal(store(f, -1e-300), 0x8000);
  }
}

// ---- integers ---------------------------------------------------------------

static void check_saturates(calx_dtype d, double v, int64_t wanted)
{
  int64_t bits = 0;
  cx_store_double(d, &bits, v);
  if (cx_load_int(d, &bits) != wanted) {
    fail_msg("%s of %g: %lld, wanted %lld", calx_dtype_name(d), v,
             (long long)cx_load_int(d, &bits), (long long)wanted);
  }
}

static void test_integers(void **state)
{
  (void)state;
  check_saturates(CALX_I8, 127.9, 127);
  check_saturates(CALX_I8, 128, 127);
  check_saturates(CALX_I8, -128.9, -128);
  check_saturates(CALX_I8, -1.9, -1);
  check_saturates(CALX_U8, 255.5, 255);
  check_saturates(CALX_U8, 256, 255);
  check_saturates(CALX_U8, -1, 0);
  check_saturates(CALX_I32, 3e9, INT32_MAX);
  check_saturates(CALX_I32, -3e9, INT32_MIN);
  check_saturates(CALX_U32, 4294967295.0, UINT32_MAX);
  check_saturates(CALX_I64, 1e300, INT64_MAX);
  check_saturates(CALX_I64, -1e300, INT64_MIN);
  check_saturates(CALX_I64, 9223372036854774784.0, 9223372036854774784);
  check_saturates(CALX_U64, 1e300, -1);
  check_saturates(CALX_U64, 9223372036854775808.0, INT64_MIN);
  check_saturates(CALX_I16, (double)NAN, 0);
  check_saturates(CALX_I16, (double)INFINITY, INT16_MAX);
  check_saturates(CALX_U16, (double)-INFINITY, 0);
  check_saturates(CALX_BOOL, 0.1, 1);
  check_saturates(CALX_BOOL, -0.0, 0);
  uint64_t u = UINT64_MAX;
  assert_true(cx_load_double(CALX_U64, &u) == 18446744073709551616.0);
  // Floats as integers saturate too.
  float f = 1e30F;
  assert_true(cx_load_int(CALX_F32, &f) == INT64_MAX);
  f = NAN;
  assert_true(cx_load_int(CALX_F32, &f) == 0);
  f = -2.9F;
  assert_true(cx_load_int(CALX_F32, &f) == -2);
  double d;
  cx_store_int(CALX_F64, &d, -5);
  assert_true(d == -5);
  int16_t s;
  cx_store_int(CALX_I16, &s, -5);
  assert_int_equal(s, -5);
  unsigned char b = 7;
  cx_store_int(CALX_BOOL, &b, 256);
  assert_int_equal(b, 1);
}

static void test_sizes(void **state)
{
  (void)state;
  int64_t n;
  size_t bytes;
  assert_true(cx_dims_bytes(CALX_F32, NULL, 0, &n, &bytes));
  assert_true(n == 1 && bytes == 4);
  assert_true(cx_dims_bytes(CALX_F64, (int64_t[]){ 3, 0, 5 }, 3, &n, &bytes));
  assert_true(n == 0 && bytes == 0);
  assert_true(cx_dims_bytes(CALX_I16, (int64_t[]){ 3, 5 }, 2, &n, &bytes));
  assert_true(n == 15 && bytes == 30);
  assert_true(cx_dims_bytes(CALX_I8, (int64_t[]){ INT64_MAX }, 1, &n, &bytes));
  assert_false(
      cx_dims_bytes(CALX_I16, (int64_t[]){ INT64_MAX }, 1, &n, &bytes));
  assert_false(
      cx_dims_bytes(CALX_I8, (int64_t[]){ INT64_MAX, 3 }, 2, &n, &bytes));
  assert_false(
      cx_dims_bytes(CALX_I8, (int64_t[]){ INT64_MAX, 2, 2 }, 3, &n, &bytes));
  assert_false(cx_dims_bytes(CALX_I8, (int64_t[]){ 4, -1 }, 2, &n, &bytes));
  assert_true(cx_dims_bytes(CALX_F64, (int64_t[]){ INT64_MAX, INT64_MAX, 0 }, 3,
                            &n, &bytes));
  assert_true(n == 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_promotion),  CHECK_TEST(test_facts),
    CHECK_TEST(test_every_half), CHECK_TEST(test_rounding),
    CHECK_TEST(test_integers),   CHECK_TEST(test_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
