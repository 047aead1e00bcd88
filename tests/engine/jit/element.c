// Elementwise operations on every type that they take, on ordinary numbers and
// on those where they differ: zeros, infinities, NaN, the limits of integers.
#include "engine/jit/harness.h"

static const char *const all_ints[] = { "i8",  "i16",  "i32",  "i64",
                                        "ui8", "ui16", "ui32", "ui64" };
static const char *const all_floats[] = { "bf16", "f16", "f32", "f64" };

static void unary(const char *op, const char *from, const char *to,
                  double tolerance, int fill)
{
  char text[512];
  snprintf(text, sizeof text,
           "func.func @main(%%x: tensor<75x%s>) -> tensor<75x%s> {\n"
           "  %%0 = \"stablehlo.%s\"(%%x) : (tensor<75x%s>) -> tensor<75x%s>\n"
           "  return %%0 : tensor<75x%s>\n}",
           from, to, op, from, to, to);
  harness_check(&(harness_case){ text, tolerance, fill });
}

static void binary(const char *op, const char *elem, double tolerance, int fill)
{
  char text[512];
  snprintf(text, sizeof text,
           "func.func @main(%%x: tensor<275x%s>, %%y: tensor<275x%s>) -> "
           "tensor<275x%s> {\n"
           "  %%0 = \"stablehlo.%s\"(%%x, %%y) : (tensor<275x%s>, "
           "tensor<275x%s>) -> tensor<275x%s>\n"
           "  return %%0 : tensor<275x%s>\n}",
           elem, elem, elem, op, elem, elem, elem, elem);
  harness_check(&(harness_case){ text, tolerance, fill });
}

#define EACH(name, list) \
  for (size_t name = 0; name < sizeof list / sizeof list[0]; name++)

static void test_int(void **state)
{
  (void)state;
  static const char *const two[] = { "add",
                                     "subtract",
                                     "multiply",
                                     "divide",
                                     "remainder",
                                     "maximum",
                                     "minimum",
                                     "and",
                                     "or",
                                     "xor",
                                     "shift_left",
                                     "shift_right_logical",
                                     "shift_right_arithmetic" };
  static const char *const one[] = { "not", "negate", "popcnt", "sign",
                                     "count_leading_zeros" };
  EACH(t, all_ints)
  {
    EACH(i, two)
    {
      binary(two[i], all_ints[t], 0, HARNESS_SPECIAL);
    }
    EACH(i, one)
    {
      const bool is_sign = strcmp(one[i], "sign") == 0;
      if (is_sign && all_ints[t][0] == 'u') continue;
      unary(one[i], all_ints[t], all_ints[t], 0, HARNESS_SPECIAL);
    }
    binary("power", all_ints[t], 0, HARNESS_PLAIN);
    binary("power", all_ints[t], 0, HARNESS_SPECIAL);
    if (all_ints[t][0] == 'i') {
      unary("abs", all_ints[t], all_ints[t], 0, HARNESS_SPECIAL);
    }
  }
  static const char *const truth[] = { "add", "multiply", "maximum", "minimum",
                                       "and", "or",       "xor" };
  EACH(i, truth) binary(truth[i], "i1", 0, HARNESS_PLAIN);
  unary("not", "i1", "i1", 0, HARNESS_PLAIN);
}

static void test_float(void **state)
{
  (void)state;
  static const char *const two[] = { "add",    "subtract", "multiply",
                                     "divide", "maximum",  "minimum" };
  static const char *const one[] = {
    "negate",           "abs", "sign", "floor", "ceil", "round_nearest_even",
    "round_nearest_afz"
  };
  EACH(t, all_floats)
  {
    EACH(i, two)
    {
      binary(two[i], all_floats[t], 0, HARNESS_SPECIAL);
      binary(two[i], all_floats[t], 0, HARNESS_PLAIN);
    }
    EACH(i, one)
    {
      unary(one[i], all_floats[t], all_floats[t], 0, HARNESS_SPECIAL);
      unary(one[i], all_floats[t], all_floats[t], 0, HARNESS_PLAIN);
    }
    unary("is_finite", all_floats[t], "i1", 0, HARNESS_SPECIAL);
    if (t < 3) {
      binary("remainder", all_floats[t], 0, HARNESS_SPECIAL);
      binary("remainder", all_floats[t], 0, HARNESS_PLAIN);
    }
  }
}

static void test_math(void **state)
{
  (void)state;
  static const char *const one[] = { "exponential", "exponential_minus_one",
                                     "log",         "log_plus_one",
                                     "logistic",    "tanh",
                                     "sqrt",        "rsqrt",
                                     "cbrt",        "sine",
                                     "cosine",      "tan" };
  static const double tolerance[] = { 1e-2, 2e-3, 1e-6, 1e-14 };
  EACH(t, all_floats)
  {
    EACH(i, one)
    {
      unary(one[i], all_floats[t], all_floats[t], tolerance[t],
            HARNESS_POSITIVE);
      unary(one[i], all_floats[t], all_floats[t], tolerance[t], HARNESS_PLAIN);
    }
    binary("power", all_floats[t], tolerance[t], HARNESS_POSITIVE);
    binary("atan2", all_floats[t], tolerance[t], HARNESS_PLAIN);
  }
}

static void test_complex(void **state)
{
  (void)state;
  static const char *const two[] = { "add", "subtract", "multiply", "divide" };
  static const char *const types[] = { "complex<f32>", "complex<f64>" };
  EACH(t, types)
  {
    const double tolerance = t == 0 ? 1e-4 : 1e-12;
    EACH(i, two) binary(two[i], types[t], tolerance, HARNESS_PLAIN);
    unary("negate", types[t], types[t], 0, HARNESS_PLAIN);
    unary("exponential", types[t], types[t], tolerance, HARNESS_POSITIVE);
    unary("abs", types[t], t == 0 ? "f32" : "f64", tolerance, HARNESS_PLAIN);
    unary("real", types[t], t == 0 ? "f32" : "f64", 0, HARNESS_PLAIN);
    unary("imag", types[t], t == 0 ? "f32" : "f64", 0, HARNESS_PLAIN);
  }
  harness_check(&(harness_case){
      "func.func @main(%x: tensor<40xf32>, %y: tensor<40xf32>) -> "
      "tensor<40xcomplex<f32>> {\n"
      "  %0 = stablehlo.complex %x, %y : tensor<40xcomplex<f32>>\n"
      "  return %0 : tensor<40xcomplex<f32>>\n}",
      0, HARNESS_SPECIAL });
}

static void test_convert(void **state)
{
  (void)state;
  static const char *const types[] = { "i1",   "i8",          "i16",  "i32",
                                       "i64",  "ui8",         "ui16", "ui32",
                                       "ui64", "bf16",        "f16",  "f32",
                                       "f64",  "complex<f32>" };
  EACH(i, types)
  {
    EACH(j, types)
    {
      // Of complex numbers to i1 is not compiled.
      if (i + 1 == sizeof types / sizeof types[0] && j == 0) continue;
      unary("convert", types[i], types[j], 0, HARNESS_SPECIAL);
    }
  }
  static const char *const same[][2] = { { "f32", "i32" },  { "ui32", "f32" },
                                         { "bf16", "i16" }, { "ui16", "bf16" },
                                         { "f16", "ui16" }, { "i16", "f16" },
                                         { "f64", "i64" },  { "ui64", "f64" },
                                         { "i8", "ui8" },   { "f16", "bf16" } };
  EACH(i, same)
  {
    unary("bitcast_convert", same[i][0], same[i][1], 0, HARNESS_PLAIN);
  }
}

static void compare(const char *direction, const char *elem, const char *type)
{
  char text[600];
  snprintf(text, sizeof text,
           "func.func @main(%%x: tensor<275x%s>, %%y: tensor<275x%s>) -> "
           "tensor<275xi1> {\n"
           "  %%0 = stablehlo.compare %s, %%x, %%y%s : (tensor<275x%s>, "
           "tensor<275x%s>) -> tensor<275xi1>\n"
           "  return %%0 : tensor<275xi1>\n}",
           elem, elem, direction, type, elem, elem);
  harness_check(&(harness_case){ text, 0, HARNESS_SPECIAL });
}

static void test_compare(void **state)
{
  (void)state;
  static const char *const directions[] = {
    "EQ", "NE", "GE", "GT", "LE", "LT"
  };
  EACH(d, directions)
  {
    EACH(t, all_floats)
    {
      compare(directions[d], all_floats[t], "");
      compare(directions[d], all_floats[t], ", TOTALORDER");
    }
    EACH(t, all_ints) compare(directions[d], all_ints[t], "");
    compare(directions[d], "i1", "");
    if (d < 2) compare(directions[d], "complex<f32>", "");
  }
}

static void test_select(void **state)
{
  (void)state;
  static const char *const types[] = { "f32",  "i8",  "i1",
                                       "bf16", "f64", "complex<f64>" };
  char text[800];
  EACH(t, types)
  {
    const char *e = types[t];
    snprintf(text, sizeof text,
             "func.func @main(%%p: tensor<45xi1>, %%q: tensor<i1>, %%x: "
             "tensor<45x%s>, %%y: tensor<45x%s>) -> tensor<45x%s> {\n"
             "  %%0 = stablehlo.select %%p, %%x, %%y : tensor<45xi1>, "
             "tensor<45x%s>\n"
             "  %%1 = stablehlo.select %%q, %%0, %%y : tensor<i1>, "
             "tensor<45x%s>\n"
             "  return %%1 : tensor<45x%s>\n}",
             e, e, e, e, e, e);
    harness_check(&(harness_case){ text, 0, HARNESS_PLAIN });
  }
  static const char *const clamped[] = { "f32", "i8", "ui64", "f16" };
  EACH(t, clamped)
  {
    const char *e = clamped[t];
    snprintf(text, sizeof text,
             "func.func @main(%%l: tensor<%s>, %%x: tensor<45x%s>, %%h: "
             "tensor<45x%s>) -> tensor<45x%s> {\n"
             "  %%0 = stablehlo.clamp %%l, %%x, %%h : (tensor<%s>, "
             "tensor<45x%s>, tensor<45x%s>) -> tensor<45x%s>\n"
             "  return %%0 : tensor<45x%s>\n}",
             e, e, e, e, e, e, e, e, e);
    harness_check(&(harness_case){ text, 0, HARNESS_SPECIAL });
  }
}

static void test_precision(void **state)
{
  (void)state;
  static const char *const formats[] = { "e5m10", "e8m7",   "e4m3", "e2m0",
                                         "e8m23", "e11m52", "e5m2", "e1m3" };
  EACH(t, all_floats)
  {
    EACH(i, formats)
    {
      char text[400];
      const char *e = all_floats[t];
      snprintf(text, sizeof text,
               "func.func @main(%%x: tensor<175x%s>) -> tensor<175x%s> {\n"
               "  %%0 = stablehlo.reduce_precision %%x, format = %s : "
               "tensor<175x%s>\n"
               "  return %%0 : tensor<175x%s>\n}",
               e, e, formats[i], e, e);
      if (i != 1) harness_check(&(harness_case){ text, 0, HARNESS_SPECIAL });
      harness_check(&(harness_case){ text, 0, HARNESS_PLAIN });
    }
  }
}

static void test_map(void **state)
{
  (void)state;
  harness_check(&(harness_case){
      "func.func @main(%x: tensor<45xf32>, %y: tensor<45xf32>) -> "
      "tensor<45xf32> {\n"
      "  %0 = \"stablehlo.map\"(%x, %y) <{dimensions = array<i64: 0>}> ({\n"
      "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "    %c = stablehlo.constant dense<2.0> : tensor<f32>\n"
      "    %d = stablehlo.multiply %a, %c : tensor<f32>\n"
      "    %e = stablehlo.add %d, %b : tensor<f32>\n"
      "    stablehlo.return %e : tensor<f32>\n"
      "  }) : (tensor<45xf32>, tensor<45xf32>) -> tensor<45xf32>\n"
      "  return %0 : tensor<45xf32>\n}",
      0, HARNESS_PLAIN });
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_int),     cmocka_unit_test(test_float),
    cmocka_unit_test(test_math),    cmocka_unit_test(test_complex),
    cmocka_unit_test(test_convert), cmocka_unit_test(test_compare),
    cmocka_unit_test(test_select),  cmocka_unit_test(test_precision),
    cmocka_unit_test(test_map),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
