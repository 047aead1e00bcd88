// Elementwise operations on every type that they take, on ordinary numbers and
// on those where they differ: zeros, infinities, NaN, the limits of integers.
#include "engine/jit/harness.h"

static const char *const all_ints[] = { "i8",  "i16",  "i32",  "i64",
                                        "ui8", "ui16", "ui32", "ui64" };
static const char *const all_floats[] = { "bf16", "f16", "f32", "f64" };

// A program of many results: operations on the arguments of all of one test
// are one kernel, since compiling is what takes time.
typedef struct many {
  char args[256], body[16000], types[4000], names[1000];
  int n;
} many;

static void append(char *to, size_t room, const char *text)
{
  const size_t n = strlen(to);
  assert_true(n + strlen(text) < room);
  strcpy(to + n, text);
}

static many *many_new(const char *args)
{
  many *m = test_calloc(1, sizeof *m);
  append(m->args, sizeof m->args, args);
  return m;
}

// `operation` with its types behind it.
static void add(many *m, const char *operation, const char *result)
{
  char line[600];
  snprintf(line, sizeof line, "  %%r%d = %s\n", m->n, operation);
  append(m->body, sizeof m->body, line);
  snprintf(line, sizeof line, "%s%s", m->n > 0 ? ", " : "", result);
  append(m->types, sizeof m->types, line);
  snprintf(line, sizeof line, "%s%%r%d", m->n > 0 ? ", " : "", m->n);
  append(m->names, sizeof m->names, line);
  m->n++;
}

static void check(many *m, double tolerance, int fill)
{
  static char text[32000];
  snprintf(text, sizeof text,
           "func.func @main(%s) -> (%s) {\n%s  return %s : %s\n}", m->args,
           m->types, m->body, m->names, m->types);
  harness_check(&(harness_case){ text, tolerance, fill });
}

static void unaries(const char *const *ops, size_t n, const char *from,
                    const char *to, double tolerance, int fill)
{
  char line[400];
  snprintf(line, sizeof line, "%%x: tensor<75x%s>", from);
  many *m = many_new(line);
  char result[64];
  snprintf(result, sizeof result, "tensor<75x%s>", to);
  for (size_t i = 0; i < n; i++) {
    snprintf(line, sizeof line, "\"stablehlo.%s\"(%%x) : (tensor<75x%s>) -> %s",
             ops[i], from, result);
    add(m, line, result);
  }
  check(m, tolerance, fill);
  test_free(m);
}

static void unary(const char *op, const char *from, const char *to,
                  double tolerance, int fill)
{
  unaries(&op, 1, from, to, tolerance, fill);
}

static void binaries(const char *const *ops, size_t n, const char *elem,
                     double tolerance, int fill)
{
  char line[400];
  char type[64];
  snprintf(type, sizeof type, "tensor<275x%s>", elem);
  snprintf(line, sizeof line, "%%x: %s, %%y: %s", type, type);
  many *m = many_new(line);
  for (size_t i = 0; i < n; i++) {
    snprintf(line, sizeof line, "\"stablehlo.%s\"(%%x, %%y) : (%s, %s) -> %s",
             ops[i], type, type, type);
    add(m, line, type);
  }
  check(m, tolerance, fill);
  test_free(m);
}

static void binary(const char *op, const char *elem, double tolerance, int fill)
{
  binaries(&op, 1, elem, tolerance, fill);
}

#define COUNT(list) (sizeof list / sizeof list[0])
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
  static const char *const one[] = { "not", "negate", "popcnt",
                                     "count_leading_zeros", "sign" };
  EACH(t, all_ints)
  {
    binaries(two, COUNT(two), all_ints[t], 0, HARNESS_SPECIAL);
    // The last is of signed numbers only.
    unaries(one, COUNT(one) - (all_ints[t][0] == 'u'), all_ints[t], all_ints[t],
            0, HARNESS_SPECIAL);
    binary("power", all_ints[t], 0, HARNESS_PLAIN);
    binary("power", all_ints[t], 0, HARNESS_SPECIAL);
    if (all_ints[t][0] == 'i') {
      unary("abs", all_ints[t], all_ints[t], 0, HARNESS_SPECIAL);
    }
  }
  static const char *const truth[] = { "add", "multiply", "maximum", "minimum",
                                       "and", "or",       "xor" };
  binaries(truth, COUNT(truth), "i1", 0, HARNESS_PLAIN);
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
    binaries(two, COUNT(two), all_floats[t], 0, HARNESS_SPECIAL);
    binaries(two, COUNT(two), all_floats[t], 0, HARNESS_PLAIN);
    unaries(one, COUNT(one), all_floats[t], all_floats[t], 0, HARNESS_SPECIAL);
    unaries(one, COUNT(one), all_floats[t], all_floats[t], 0, HARNESS_PLAIN);
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
    unaries(one, COUNT(one), all_floats[t], all_floats[t], tolerance[t],
            HARNESS_POSITIVE);
    unaries(one, COUNT(one), all_floats[t], all_floats[t], tolerance[t],
            HARNESS_PLAIN);
    binary("power", all_floats[t], tolerance[t], HARNESS_POSITIVE);
    binary("atan2", all_floats[t], tolerance[t], HARNESS_PLAIN);
  }
}

// Many numbers by one. Of the least numbers, some lie halfway between two
// floats after a division by 6, 98 or 246.
static void test_divisors(void **state)
{
  (void)state;
  static const char *const divisors[] = {
    "6.0", "-98.0",      "246.0",      "0.001",      "1.0e38",     "0.0",
    "3.0", "0x00000003", "0x807FFFFF", "0x7F800000", "0x7FC00000", "-0.0",
  };
  for (size_t i = 0; i < COUNT(divisors); i++) {
    char text[1200];
    snprintf(text, sizeof text,
             "func.func @main(%%x: tensor<20011xf32>, %%y: tensor<f32>) -> "
             "(tensor<20011xf32>, tensor<20011xf32>) {\n"
             "  %%a = stablehlo.constant dense<%s> : tensor<20011xf32>\n"
             "  %%b = stablehlo.broadcast_in_dim %%y, dims = [] : "
             "(tensor<f32>) -> tensor<20011xf32>\n"
             "  %%0 = stablehlo.divide %%x, %%a : tensor<20011xf32>\n"
             "  %%1 = stablehlo.divide %%x, %%b : tensor<20011xf32>\n"
             "  %%2 = stablehlo.divide %%0, %%b : tensor<20011xf32>\n"
             "  %%3 = stablehlo.divide %%2, %%1 : tensor<20011xf32>\n"
             "  return %%0, %%3 : tensor<20011xf32>, tensor<20011xf32>\n}",
             divisors[i]);
    harness_check(&(harness_case){ text, 0, HARNESS_BITS });
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
    binaries(two, COUNT(two), types[t], tolerance, HARNESS_PLAIN);
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
    char line[400];
    snprintf(line, sizeof line, "%%x: tensor<75x%s>", types[i]);
    many *m = many_new(line);
    // Of complex numbers to i1 is not compiled.
    for (size_t j = i + 1 == COUNT(types) ? 1 : 0; j < COUNT(types); j++) {
      char result[64];
      snprintf(result, sizeof result, "tensor<75x%s>", types[j]);
      snprintf(line, sizeof line,
               "stablehlo.convert %%x : (tensor<75x%s>) -> %s", types[i],
               result);
      add(m, line, result);
    }
    check(m, 0, HARNESS_SPECIAL);
    test_free(m);
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

// Each bf16, among them all NaN, with another one.
static void test_all_bf16(void **state)
{
  (void)state;
  static const char *const ops[] = { "add %x, %y",      "subtract %x, %y",
                                     "multiply %x, %y", "divide %x, %y",
                                     "maximum %x, %y",  "minimum %x, %y",
                                     "sqrt %x",         "negate %x",
                                     "abs %x",          "tanh %x" };
  EACH(i, ops)
  {
    char text[1000];
    snprintf(text, sizeof text,
             "func.func @main(%%z: tensor<ui16>) -> tensor<65536xbf16> {\n"
             "  %%i = stablehlo.iota dim = 0 : tensor<65536xui16>\n"
             "  %%c = stablehlo.constant dense<40503> : tensor<65536xui16>\n"
             "  %%j = stablehlo.multiply %%i, %%c : tensor<65536xui16>\n"
             "  %%x = stablehlo.bitcast_convert %%i : "
             "(tensor<65536xui16>) -> tensor<65536xbf16>\n"
             "  %%y = stablehlo.bitcast_convert %%j : "
             "(tensor<65536xui16>) -> tensor<65536xbf16>\n"
             "  %%0 = stablehlo.%s : tensor<65536xbf16>\n"
             "  return %%0 : tensor<65536xbf16>\n}",
             ops[i]);
    const double tolerance = i + 1 == COUNT(ops) ? 1.0 / 128 : 0;
    harness_check(&(harness_case){ text, tolerance, HARNESS_PLAIN });
  }
}

// All floats whose lower 16 bits are 0, which include every tie; then, of each,
// the next float and the one before.
static const char near_ties[] =
    "func.func @main(%%z: tensor<ui32>) -> (tensor<65536x%s>, "
    "tensor<65536x%s>, tensor<65536x%s>) {\n"
    "  %%i = stablehlo.iota dim = 0 : tensor<65536xui32>\n"
    "  %%n = stablehlo.constant dense<16> : tensor<65536xui32>\n"
    "  %%one = stablehlo.constant dense<1> : tensor<65536xui32>\n"
    "  %%b = stablehlo.shift_left %%i, %%n : tensor<65536xui32>\n"
    "  %%c = stablehlo.add %%b, %%one : tensor<65536xui32>\n"
    "  %%d = stablehlo.subtract %%b, %%one : tensor<65536xui32>\n"
    "  %%x = stablehlo.bitcast_convert %%b : (tensor<65536xui32>) -> "
    "tensor<65536xf32>\n"
    "  %%y = stablehlo.bitcast_convert %%c : (tensor<65536xui32>) -> "
    "tensor<65536xf32>\n"
    "  %%v = stablehlo.bitcast_convert %%d : (tensor<65536xui32>) -> "
    "tensor<65536xf32>\n"
    "  %%0 = stablehlo.convert %%x : (tensor<65536xf32>) -> tensor<65536x%s>\n"
    "  %%1 = stablehlo.convert %%y : (tensor<65536xf32>) -> tensor<65536x%s>\n"
    "  %%2 = stablehlo.convert %%v : (tensor<65536xf32>) -> tensor<65536x%s>\n"
    "  return %%0, %%1, %%2 : tensor<65536x%s>, tensor<65536x%s>, "
    "tensor<65536x%s>\n}";

static void test_f8(void **state)
{
  (void)state;
  static const char *const small[] = { "f8E5M2",       "f8E4M3",
                                       "f8E3M4",       "f8E4M3FN",
                                       "f8E5M2FNUZ",   "f8E4M3FNUZ",
                                       "f8E4M3B11FNUZ" };
  static const char *const others[] = { "i1",     "i8",      "i32", "ui64",
                                        "bf16",   "f16",     "f32", "f64",
                                        "f8E5M2", "f8E4M3FN" };
  EACH(i, small)
  {
    const char *e = small[i];
    char text[3000];
    snprintf(text, sizeof text, near_ties, e, e, e, e, e, e, e, e, e);
    harness_check(&(harness_case){ text, 0, HARNESS_PLAIN });
    EACH(j, others)
    {
      if (strcmp(e, others[j]) == 0) continue;
      char line[400], from[64], to[64];
      snprintf(line, sizeof line, "%%x: tensor<275x%s>, %%y: tensor<275x%s>", e,
               others[j]);
      snprintf(from, sizeof from, "tensor<275x%s>", e);
      snprintf(to, sizeof to, "tensor<275x%s>", others[j]);
      many *m = many_new(line);
      snprintf(line, sizeof line, "stablehlo.convert %%x : (%s) -> %s", from,
               to);
      add(m, line, to);
      snprintf(line, sizeof line, "stablehlo.convert %%y : (%s) -> %s", to,
               from);
      add(m, line, from);
      check(m, 0, HARNESS_SPECIAL);
      test_free(m);
    }
  }
}

static void compares(const char *elem, size_t n, const char *type)
{
  static const char *const directions[] = {
    "EQ", "NE", "GE", "GT", "LE", "LT"
  };
  char line[400];
  snprintf(line, sizeof line, "%%x: tensor<275x%s>, %%y: tensor<275x%s>", elem,
           elem);
  many *m = many_new(line);
  for (size_t d = 0; d < n; d++) {
    snprintf(line, sizeof line,
             "stablehlo.compare %s, %%x, %%y%s : (tensor<275x%s>, "
             "tensor<275x%s>) -> tensor<275xi1>",
             directions[d], type, elem, elem);
    add(m, line, "tensor<275xi1>");
  }
  check(m, 0, HARNESS_SPECIAL);
  test_free(m);
}

static void test_compare(void **state)
{
  (void)state;
  EACH(t, all_floats)
  {
    compares(all_floats[t], 6, "");
    compares(all_floats[t], 6, ", TOTALORDER");
  }
  EACH(t, all_ints) compares(all_ints[t], 6, "");
  compares("i1", 6, "");
  compares("complex<f32>", 2, "");
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

static void precisions(const char *elem, const char *const *formats, size_t n,
                       int fill)
{
  char line[400];
  char type[64];
  snprintf(type, sizeof type, "tensor<175x%s>", elem);
  snprintf(line, sizeof line, "%%x: %s", type);
  many *m = many_new(line);
  for (size_t i = 0; i < n; i++) {
    snprintf(line, sizeof line,
             "stablehlo.reduce_precision %%x, format = %s : %s", formats[i],
             type);
    add(m, line, type);
  }
  check(m, 0, fill);
  test_free(m);
}

static void test_precision(void **state)
{
  (void)state;
  static const char *const formats[] = { "e8m7",  "e5m10",  "e4m3", "e2m0",
                                         "e8m23", "e11m52", "e5m2", "e1m3" };
  EACH(t, all_floats)
  {
    precisions(all_floats[t], formats, COUNT(formats), HARNESS_PLAIN);
    precisions(all_floats[t], formats + 1, COUNT(formats) - 1, HARNESS_SPECIAL);
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
    cmocka_unit_test(test_int),       cmocka_unit_test(test_float),
    cmocka_unit_test(test_math),      cmocka_unit_test(test_complex),
    cmocka_unit_test(test_divisors),  cmocka_unit_test(test_convert),
    cmocka_unit_test(test_compare),   cmocka_unit_test(test_select),
    cmocka_unit_test(test_precision), cmocka_unit_test(test_map),
    cmocka_unit_test(test_f8),        cmocka_unit_test(test_all_bf16),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
