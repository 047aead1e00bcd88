// Reductions: along every place of dimensions, with every body, in one phase
// and in two.
#include "engine/jit/harness.h"

#include <string.h>

typedef struct form {
  const char *from, *to, *dims;
} form;

static const form forms[] = {
  { "1003", "", "0" },
  { "7", "", "0" },
  { "3x200", "3", "1" },
  { "37x10", "37", "1" },
  { "50x33", "33", "0" },
  { "19x70", "70", "0" },
  { "4x6x5x7", "6", "0, 2, 3" },
  { "3x40x21", "3x21", "1" },
  { "2x3x4x50", "3x50", "0, 2" },
  { "5x1x9", "5x9", "1" },
  { "1x1", "", "0, 1" },
  { "0x5", "5", "0" },
  { "5x0", "", "0, 1" },
  { "300x400", "", "0, 1" },
  { "2000x40", "40", "0" },
  { "8x3x70x70", "3", "0, 2, 3" },
  { "70001", "", "0" },
  { "6x6", "6x6", "" },
  { "2x3x600", "2x3", "2" },
  { "40x3", "40", "1" },
  { "1x64x1", "1x1", "1" },
  { "33x2x2", "33", "1, 2" },
  { "300x300", "300", "0" },
  { "40x2100", "2100", "0" },
};

static void simple(const form *f, const char *op, const char *elem,
                   const char *init, double tolerance, int fill)
{
  char text[2048];
  char from[64];
  char to[64];
  snprintf(from, sizeof from, "tensor<%s%s%s>", f->from, *f->from ? "x" : "",
           elem);
  snprintf(to, sizeof to, "tensor<%s%s%s>", f->to, *f->to ? "x" : "", elem);
  snprintf(
      text, sizeof text,
      "func.func @main(%%x: %s) -> %s {\n"
      "  %%i = stablehlo.constant dense<%s> : tensor<%s>\n"
      "  %%0 = stablehlo.reduce(%%x init: %%i) applies stablehlo.%s across "
      "dimensions = [%s] : (%s, tensor<%s>) -> %s\n"
      "  return %%0 : %s\n}",
      from, to, init, elem, op, f->dims, from, elem, to, to);
  harness_check(&(harness_case){ text, tolerance, fill });
}

static void test_forms(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    simple(&forms[i], "add", "f32", "1.5", 2e-5, HARNESS_POSITIVE);
    simple(&forms[i], "maximum", "f32", "0xFF800000", 0, HARNESS_SPECIAL);
  }
}

static void test_types(void **state)
{
  (void)state;
  for (size_t i = 0; i < 6; i++) {
    simple(&forms[i], "add", "i32", "3", 0, HARNESS_SPECIAL);
    simple(&forms[i], "minimum", "i8", "127", 0, HARNESS_SPECIAL);
    simple(&forms[i], "maximum", "ui16", "0", 0, HARNESS_SPECIAL);
    simple(&forms[i], "xor", "ui64", "5", 0, HARNESS_SPECIAL);
    simple(&forms[i], "or", "i1", "false", 0, HARNESS_PLAIN);
    simple(&forms[i], "and", "i1", "true", 0, HARNESS_PLAIN);
    simple(&forms[i], "add", "f64", "0.0", 1e-13, HARNESS_PLAIN);
    simple(&forms[i], "multiply", "f64", "1.0", 1e-10, HARNESS_POSITIVE);
    simple(&forms[i], "minimum", "f16", "0x7C00", 0, HARNESS_SPECIAL);
  }
  simple(&(form){ "4x30", "4", "1" }, "add", "bf16", "0.0", 2e-2,
         HARNESS_POSITIVE);
  const form swept = { "20x20x400", "400", "0, 1" };
  simple(&swept, "or", "i1", "false", 0, HARNESS_PLAIN);
  simple(&swept, "add", "i64", "7", 0, HARNESS_SPECIAL);
  simple(&swept, "maximum", "bf16", "0.0", 0, HARNESS_PLAIN);
  simple(&swept, "add", "f64", "0.0", 1e-12, HARNESS_POSITIVE);
}

// What is reduced is an output too, also in the memory of what it is made of.
static void unreduced(const form *f, const char *elem, const char *init)
{
  char text[2048];
  char from[64];
  char to[64];
  snprintf(from, sizeof from, "tensor<%sx%s>", f->from, elem);
  snprintf(to, sizeof to, "tensor<%s%s%s>", f->to, *f->to ? "x" : "", elem);
  snprintf(
      text, sizeof text,
      "func.func @main(%%x: %s, %%y: %s) -> (%s, %s, %s) {\n"
      "  %%i = stablehlo.constant dense<%s> : tensor<%s>\n"
      "  %%a = stablehlo.multiply %%x, %%y : %s\n"
      "  %%b = stablehlo.add %%a, %%x : %s\n"
      "  %%0 = stablehlo.reduce(%%b init: %%i) applies stablehlo.add across "
      "dimensions = [%s] : (%s, tensor<%s>) -> %s\n"
      "  %%1 = stablehlo.negate %%0 : %s\n"
      "  return %%b, %%1, %%a : %s, %s, %s\n}",
      from, from, from, to, from, init, elem, from, from, f->dims, from, elem,
      to, to, from, to, from);
  harness_check(&(harness_case){ text, 2e-5, HARNESS_POSITIVE });
  if (strcmp(elem, "i32") == 0) harness_check_in_place(text);
}

static void test_unreduced(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    if (*forms[i].dims == 0) continue;  // then all outputs are results
    unreduced(&forms[i], "f32", "1.5");
    unreduced(&forms[i], "i32", "3");
  }
}

static const harness_case cases[] = {
  // Statistics of a batch: two sums and what is made of them.
  { "func.func @main(%x: tensor<6x5x4x9xf32>, %s: tensor<5xf32>) -> "
    "(tensor<5xf32>, tensor<5xf32>) {\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %n = stablehlo.constant dense<216.0> : tensor<5xf32>\n"
    "  %q = stablehlo.multiply %x, %x : tensor<6x5x4x9xf32>\n"
    "  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across "
    "dimensions = [0, 2, 3] : (tensor<6x5x4x9xf32>, tensor<f32>) -> "
    "tensor<5xf32>\n"
    "  %1 = stablehlo.reduce(%q init: %z) applies stablehlo.add across "
    "dimensions = [0, 2, 3] : (tensor<6x5x4x9xf32>, tensor<f32>) -> "
    "tensor<5xf32>\n"
    "  %2 = stablehlo.divide %0, %n : tensor<5xf32>\n"
    "  %3 = stablehlo.add %1, %s : tensor<5xf32>\n"
    "  return %2, %3 : tensor<5xf32>, tensor<5xf32>\n}",
    1e-4, HARNESS_PLAIN },
  // Producers of other shapes, and an initial value that is computed.
  { "func.func @main(%x: tensor<20x33xf32>, %b: tensor<33xf32>, "
    "%i: tensor<f32>) -> tensor<33xf32> {\n"
    "  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<33xf32>) -> "
    "tensor<20x33xf32>\n"
    "  %1 = stablehlo.subtract %x, %0 : tensor<20x33xf32>\n"
    "  %2 = stablehlo.negate %i : tensor<f32>\n"
    "  %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across "
    "dimensions = [0] : (tensor<20x33xf32>, tensor<f32>) -> tensor<33xf32>\n"
    "  %4 = stablehlo.multiply %3, %b : tensor<33xf32>\n"
    "  return %4 : tensor<33xf32>\n}",
    1e-4, HARNESS_PLAIN },
  // The place of the greatest.
  { "func.func @main(%x: tensor<37x10xf32>) -> (tensor<37xf32>, "
    "tensor<37xi32>) {\n"
    "  %n = stablehlo.iota dim = 1 : tensor<37x10xi32>\n"
    "  %z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    "  %o = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %0:2 = stablehlo.reduce(%x init: %z), (%n init: %o) across dimensions "
    "= [1] : (tensor<37x10xf32>, tensor<37x10xi32>, tensor<f32>, tensor<i32>) "
    "-> (tensor<37xf32>, tensor<37xi32>)\n"
    "   reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: "
    "tensor<i32>) {\n"
    "    %1 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> "
    "tensor<i1>\n"
    "    %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>\n"
    "    %3 = stablehlo.select %1, %i, %j : tensor<i1>, tensor<i32>\n"
    "    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>\n"
    "  }\n"
    "  return %0#0, %0#1 : tensor<37xf32>, tensor<37xi32>\n}",
    0, HARNESS_PLAIN },
  // Nothing of nothing.
  { "func.func @main(%x: tensor<0x40xf32>, %y: tensor<0x40xf32>) -> "
    "tensor<40xf32> {\n"
    "  %z = stablehlo.constant dense<2.0> : tensor<f32>\n"
    "  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<0x40xf32>, "
    "tensor<0x40xf32>) -> tensor<0x40xf32>\n"
    "  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across "
    "dimensions = [0] : (tensor<0x40xf32>, tensor<f32>) -> tensor<40xf32>\n"
    "  return %1 : tensor<40xf32>\n}",
    0, HARNESS_PLAIN },
  { "func.func @main(%x: tensor<0xf32>, %y: tensor<0xf32>) -> tensor<f32> {\n"
    "  %z = stablehlo.constant dense<2.0> : tensor<f32>\n"
    "  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<0xf32>, "
    "tensor<0xf32>) -> tensor<0xf32>\n"
    "  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across "
    "dimensions = [0] : (tensor<0xf32>, tensor<f32>) -> tensor<f32>\n"
    "  return %1 : tensor<f32>\n}",
    0, HARNESS_PLAIN },
  // Two phases and an epilogue; a result of rank 0.
  { "func.func @main(%x: tensor<300x300xf32>, %w: tensor<f32>) -> "
    "tensor<f32> {\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across "
    "dimensions = [0, 1] : (tensor<300x300xf32>, tensor<f32>) -> tensor<f32>\n"
    "  %1 = stablehlo.multiply %0, %w : tensor<f32>\n"
    "  return %1 : tensor<f32>\n}",
    1e-4, HARNESS_POSITIVE },
};

static void test_cases(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    harness_check(&cases[i]);
  }
}

#define SUM_OF_TANH(from, to, over)                                       \
  "func.func @main(%x: tensor<" from ">) -> tensor<" to                   \
  "> {\n"                                                                 \
  "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"                  \
  "  %0 = stablehlo.tanh %x : tensor<" from                               \
  ">\n"                                                                   \
  "  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across "    \
  "dimensions = " over " : (tensor<" from ">, tensor<f32>) -> tensor<" to \
  ">\n"                                                                   \
  "  return %1 : tensor<" to ">\n}"

// What is read in the order of memory, or in long pieces of it, is read ahead.
// Columns that are cut into blocks are not, nor short rows that are far apart.
static void test_ahead(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    bool ahead;
  } sums[] = {
    { SUM_OF_TANH("1024x96xf32", "96xf32", "[0]"), true },
    { SUM_OF_TANH("96x1024xf32", "96xf32", "[1]"), true },
    { SUM_OF_TANH("96x96xf32", "96xf32", "[0]"), false },
    { SUM_OF_TANH("4x65536xf32", "65536xf32", "[0]"), false },
    { SUM_OF_TANH("16x24x900xf32", "24xf32", "[0, 2]"), false },
    { SUM_OF_TANH("4x24x9000xf32", "24xf32", "[0, 2]"), true },
  };
  for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
    assert_int_equal(harness_prefetches(sums[i].text) > 0, sums[i].ahead);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_forms),     cmocka_unit_test(test_types),
    cmocka_unit_test(test_unreduced), cmocka_unit_test(test_cases),
    cmocka_unit_test(test_ahead),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
