// Loops: elementwise operations, and those that move elements.
#include "engine/jit/harness.h"

// A value for each element of the dimensions `dims`: added, and its square too.
#define PER_CHANNEL(x, c, dims)                                         \
  "func.func @main(%x: tensor<" x ">, %c: tensor<" c ">) -> (tensor<" x \
  ">, tensor<" x                                                        \
  ">) {\n"                                                              \
  "  %0 = stablehlo.broadcast_in_dim %c, dims = " dims " : (tensor<" c  \
  ">) -> tensor<" x                                                     \
  ">\n"                                                                 \
  "  %1 = stablehlo.add %0, %x : tensor<" x                             \
  ">\n"                                                                 \
  "  %2 = stablehlo.multiply %c, %c : tensor<" c                        \
  ">\n"                                                                 \
  "  %3 = stablehlo.broadcast_in_dim %2, dims = " dims " : (tensor<" c  \
  ">) -> tensor<" x                                                     \
  ">\n"                                                                 \
  "  %4 = stablehlo.subtract %1, %3 : tensor<" x                        \
  ">\n"                                                                 \
  "  return %1, %4 : tensor<" x ">, tensor<" x ">\n}"

// A field of three parts: x1 - x0, x0 * x2, x0 + x1 + x2, joined, plus x.
#define FIELD(x, part, last, first, second, third)                          \
  "func.func @main(%x: tensor<" x ">) -> tensor<" x                         \
  "> {\n"                                                                   \
  "  %0 = stablehlo.slice %x " first " : (tensor<" x ">) -> tensor<" part   \
  ">\n"                                                                     \
  "  %1 = stablehlo.slice %x " second " : (tensor<" x ">) -> tensor<" part  \
  ">\n"                                                                     \
  "  %2 = stablehlo.slice %x " third " : (tensor<" x ">) -> tensor<" part   \
  ">\n"                                                                     \
  "  %3 = stablehlo.subtract %1, %0 : tensor<" part                         \
  ">\n"                                                                     \
  "  %4 = stablehlo.multiply %0, %2 : tensor<" part                         \
  ">\n"                                                                     \
  "  %5 = stablehlo.add %0, %1 : tensor<" part                              \
  ">\n"                                                                     \
  "  %6 = stablehlo.add %5, %2 : tensor<" part                              \
  ">\n"                                                                     \
  "  %7 = stablehlo.concatenate %3, %4, %6, dim = " last " : (tensor<" part \
  ">, tensor<" part ">, tensor<" part ">) -> tensor<" x                     \
  ">\n"                                                                     \
  "  %8 = stablehlo.add %7, %x : tensor<" x                                 \
  ">\n"                                                                     \
  "  return %8 : tensor<" x ">\n}"

// A long chain: tanh(x * y + 1) / (1 + exp(y - x)).
#define CHAIN(t)                                                       \
  "func.func @main(%x: tensor<" t ">, %y: tensor<" t ">) -> tensor<" t \
  "> {\n"                                                              \
  "  %one = stablehlo.constant dense<1.0> : tensor<" t                 \
  ">\n"                                                                \
  "  %0 = stablehlo.multiply %x, %y : tensor<" t                       \
  ">\n"                                                                \
  "  %1 = stablehlo.add %0, %one : tensor<" t                          \
  ">\n"                                                                \
  "  %2 = stablehlo.tanh %1 : tensor<" t                               \
  ">\n"                                                                \
  "  %3 = stablehlo.subtract %y, %x : tensor<" t                       \
  ">\n"                                                                \
  "  %4 = stablehlo.exponential %3 : tensor<" t                        \
  ">\n"                                                                \
  "  %5 = stablehlo.add %4, %one : tensor<" t                          \
  ">\n"                                                                \
  "  %6 = stablehlo.divide %2, %5 : tensor<" t                         \
  ">\n"                                                                \
  "  return %6 : tensor<" t ">\n}"

static const harness_case cases[] = {
  { "func.func @main(%x: tensor<1003xf32>, %y: tensor<1003xf32>) -> "
    "tensor<1003xf32> {\n"
    "  %0 = stablehlo.add %x, %y : tensor<1003xf32>\n"
    "  %1 = stablehlo.multiply %0, %x : tensor<1003xf32>\n"
    "  return %1 : tensor<1003xf32>\n}",
    0, HARNESS_SPECIAL },
  { "func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {\n"
    "  %0 = stablehlo.subtract %x, %y : tensor<f32>\n"
    "  return %0 : tensor<f32>\n}",
    0, HARNESS_PLAIN },
  { "func.func @main(%x: tensor<2x5x6x7xf32>, %b: tensor<5xf32>) -> "
    "tensor<2x5x6x7xf32> {\n"
    "  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<5xf32>) -> "
    "tensor<2x5x6x7xf32>\n"
    "  %1 = stablehlo.add %0, %x : tensor<2x5x6x7xf32>\n"
    "  %2 = stablehlo.constant dense<0.0> : tensor<2x5x6x7xf32>\n"
    "  %3 = stablehlo.maximum %1, %2 : tensor<2x5x6x7xf32>\n"
    "  return %3 : tensor<2x5x6x7xf32>\n}",
    0, HARNESS_SPECIAL },
  // Long enough that several vectors are computed together, and a rest of them.
  { "func.func @main(%x: tensor<1003xf32>, %y: tensor<1003xf32>) -> "
    "tensor<1003xf32> {\n"
    "  %0 = stablehlo.tanh %x : tensor<1003xf32>\n"
    "  %1 = stablehlo.add %0, %y : tensor<1003xf32>\n"
    "  %2 = stablehlo.tanh %1 : tensor<1003xf32>\n"
    "  %3 = stablehlo.subtract %2, %x : tensor<1003xf32>\n"
    "  %4 = stablehlo.tanh %3 : tensor<1003xf32>\n"
    "  %5 = stablehlo.compare GT, %x, %y : (tensor<1003xf32>, "
    "tensor<1003xf32>) -> tensor<1003xi1>\n"
    "  %6 = stablehlo.select %5, %2, %4 : tensor<1003xi1>, "
    "tensor<1003xf32>\n"
    "  return %6 : tensor<1003xf32>\n}",
    1e-3, HARNESS_PLAIN },
  // The same of each type of float.
  { CHAIN("1003xf32"), 2e-6, HARNESS_PLAIN },
  { CHAIN("1011xf16"), 2e-3, HARNESS_PLAIN },
  { CHAIN("1017xbf16"), 2e-2, HARNESS_PLAIN },
  // Several runs of the last dimension are whole vectors.
  { PER_CHANNEL("4x6x8x10xf32", "10xf32", "[3]"), 0, HARNESS_SPECIAL },
  { PER_CHANNEL("16x20xf32", "20xf32", "[1]"), 0, HARNESS_SPECIAL },
  { PER_CHANNEL("2x4x24xbf16", "24xbf16", "[2]"), 0, HARNESS_SPECIAL },
  { PER_CHANNEL("32x3xf64", "3xf64", "[1]"), 0, HARNESS_SPECIAL },
  { PER_CHANNEL("16x6xi8", "6xi8", "[1]"), 0, HARNESS_PLAIN },
  { PER_CHANNEL("8x2x4x5xf32", "4x5xf32", "[2, 3]"), 0, HARNESS_SPECIAL },
  { PER_CHANNEL("15x10xf32", "10xf32", "[1]"), 0, HARNESS_SPECIAL },
  // The last dimension's size, along another.
  { PER_CHANNEL("16x10xf32", "16xf32", "[0]"), 0, HARNESS_SPECIAL },
  { PER_CHANNEL("40x40xf32", "40xf32", "[0]"), 0, HARNESS_SPECIAL },
  // Rows of a few columns: whole vectors of them, and what is left.
  { PER_CHANNEL("67x3xf32", "67xf32", "[0]"), 0, HARNESS_SPECIAL },
  { PER_CHANNEL("64x2xf64", "64xf64", "[0]"), 0, HARNESS_SPECIAL },
  { PER_CHANNEL("5x35x3xbf16", "5x35xbf16", "[0, 1]"), 0, HARNESS_SPECIAL },
  { PER_CHANNEL("9001x2xi8", "9001xi8", "[0]"), 0, HARNESS_PLAIN },
  { FIELD("37x3xf32", "37x1xf32", "1", "[0:37, 0:1]", "[0:37, 1:2]",
          "[0:37, 2:3]"),
    0, HARNESS_SPECIAL },
  { FIELD("5000x3xf64", "5000x1xf64", "1", "[0:5000, 0:1]", "[0:5000, 1:2]",
          "[0:5000, 2:3]"),
    0, HARNESS_SPECIAL },
  { FIELD("3x40x12xf16", "3x40x4xf16", "2", "[0:3, 0:40, 0:4]",
          "[0:3, 0:40, 4:8]", "[0:3, 0:40, 8:12]"),
    0, HARNESS_SPECIAL },
  // A row next to it, and columns beside the tensor.
  { "func.func @main(%x: tensor<41x3xf32>, %z: tensor<f32>) -> "
    "tensor<40x3xf32> {\n"
    "  %0 = stablehlo.slice %x [1:41, 0:2] : (tensor<41x3xf32>) -> "
    "tensor<40x2xf32>\n"
    "  %1 = stablehlo.pad %0, %z, low = [0, 1], high = [0, 0], interior = "
    "[0, 0] : (tensor<40x2xf32>, tensor<f32>) -> tensor<40x3xf32>\n"
    "  %2 = stablehlo.slice %x [0:40, 0:3] : (tensor<41x3xf32>) -> "
    "tensor<40x3xf32>\n"
    "  %3 = stablehlo.multiply %1, %2 : tensor<40x3xf32>\n"
    "  return %3 : tensor<40x3xf32>\n}",
    0, HARNESS_SPECIAL },
};

static void test_cases(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    harness_check(&cases[i]);
  }
}

// A value for each row is added to rows of n elements.
static void check_rows(const char *elem, int n)
{
  char text[600];
  snprintf(text, sizeof text,
           "func.func @main(%%x: tensor<11x%dx%s>, %%c: tensor<11x%s>) -> "
           "tensor<11x%dx%s> {\n"
           "  %%0 = stablehlo.broadcast_in_dim %%c, dims = [0] : "
           "(tensor<11x%s>) -> tensor<11x%dx%s>\n"
           "  %%1 = stablehlo.add %%0, %%x : tensor<11x%dx%s>\n"
           "  return %%1 : tensor<11x%dx%s>\n}",
           n, elem, elem, n, elem, elem, n, elem, n, elem, n, elem);
  const harness_case c = { text, 0, HARNESS_PLAIN };
  harness_check(&c);
}

// Each number of lanes at the end of a row, behind whole vectors and alone.
static void test_row_ends(void **state)
{
  (void)state;
  static const char *const elems[] = { "i8", "bf16", "f16", "f32", "f64" };
  for (size_t i = 0; i < sizeof elems / sizeof elems[0]; i++) {
    for (int n = 5; n < 24; n++) check_rows(elems[i], n);
  }
}

static void test_in_place(void **state)
{
  (void)state;
  harness_check_in_place(
      "func.func @main(%x: tensor<3x10007xf32>, %y: tensor<3x10007xf32>) -> "
      "tensor<3x10007xf32> {\n"
      "  %0 = stablehlo.multiply %x, %x : tensor<3x10007xf32>\n"
      "  %1 = stablehlo.add %0, %y : tensor<3x10007xf32>\n"
      "  return %1 : tensor<3x10007xf32>\n}");
}

// x + x, n times over.
static char *long_text(int n)
{
  char *text = test_malloc(200 + (size_t)n * 80);
  char *p = text;
  p += sprintf(p, "func.func @main(%%r0: tensor<9xf32>) -> tensor<9xf32> {\n");
  for (int i = 0; i < n; i++) {
    p += sprintf(p, "  %%r%d = stablehlo.add %%r%d, %%r%d : tensor<9xf32>\n",
                 i + 1, i, i);
  }
  sprintf(p, "  return %%r%d : tensor<9xf32>\n}", n);
  return text;
}

static void test_sizes(void **state)
{
  (void)state;
  char *text = long_text(1000);
  harness_check(&(harness_case){ text, 0, HARNESS_PLAIN });
  test_free(text);
  text = long_text(1100);
  CHECK_FAILS(CALX_UNIMPLEMENTED, harness_compile(text), "too many operations");
  test_free(text);
}

// Each pad reads the one before twice: 2^n elements for one.
static void test_explosion(void **state)
{
  (void)state;
  char text[20000];
  char *p = text;
  p +=
      sprintf(p, "func.func @main(%%r0: tensor<64xf32>) -> tensor<64xf32> {\n");
  for (int i = 0; i < 30; i++) {
    p += sprintf(p,
                 "  %%s%d = stablehlo.reverse %%r%d, dims = [0] : "
                 "tensor<64xf32>\n"
                 "  %%t%d = stablehlo.slice %%r%d [%d:64] : (tensor<64xf32>) "
                 "-> tensor<%dxf32>\n"
                 "  %%u%d = stablehlo.slice %%s%d [0:%d] : (tensor<64xf32>) -> "
                 "tensor<%dxf32>\n"
                 "  %%r%d = stablehlo.concatenate %%u%d, %%t%d, dim = 0 : "
                 "(tensor<%dxf32>, tensor<%dxf32>) -> tensor<64xf32>\n",
                 i, i, i, i, i + 1, 63 - i, i, i, i + 1, i + 1, i + 1, i, i,
                 i + 1, 63 - i);
  }
  sprintf(p, "  return %%r30 : tensor<64xf32>\n}");
  CHECK_FAILS(CALX_UNIMPLEMENTED, harness_compile(text),
              "more instructions than a kernel may have");
}

static void test_shared(void **state)
{
  (void)state;
  harness_check_shared(cases[0].text, cases[0].text, cases[1].text);
  // Sizes do not count where all is one run.
  harness_check_shared(
      "func.func @main(%x: tensor<10xf32>) -> "
      "tensor<10xf32> {\n"
      "  %0 = stablehlo.negate %x : tensor<10xf32>\n"
      "  return %0 : tensor<10xf32>\n}",
      "func.func @main(%x: tensor<50x320xf32>) -> "
      "tensor<50x320xf32> {\n"
      "  %0 = stablehlo.negate %x : tensor<50x320xf32>\n"
      "  return %0 : tensor<50x320xf32>\n}",
      cases[0].text);
}

#define SCALED(by, direction)                                \
  "func.func @main(%x: tensor<70xf32>) -> (tensor<70xf32>, " \
  "tensor<70xi1>) {\n"                                       \
  "  %c = stablehlo.constant dense<" by                      \
  "> : tensor<70xf32>\n"                                     \
  "  %0 = stablehlo.multiply %x, %c : tensor<70xf32>\n"      \
  "  %1 = stablehlo.compare " direction                      \
  ", %x, %c : (tensor<70xf32>, "                             \
  "tensor<70xf32>) -> tensor<70xi1>\n"                       \
  "  return %0, %1 : tensor<70xf32>, tensor<70xi1>\n}"

// What differs in a constant or a direction alone is not shared.
static void test_not_shared(void **state)
{
  (void)state;
  const char *text = SCALED("0.5", "LT");
  harness_check_shared(text, text, SCALED("0.25", "LT"));
  harness_check_shared(text, text, SCALED("0.5", "LE"));
}

#define SCALED_TANH(t, c)                                              \
  "func.func @main(%x: tensor<" t ">, %c: tensor<" c ">) -> tensor<" t \
  "> {\n"                                                              \
  "  %0 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<" c      \
  ">) -> "                                                             \
  "tensor<" t                                                          \
  ">\n"                                                                \
  "  %1 = stablehlo.multiply %x, %0 : tensor<" t                       \
  ">\n"                                                                \
  "  %2 = stablehlo.tanh %1 : tensor<" t                               \
  ">\n"                                                                \
  "  return %2 : tensor<" t ">\n}"

#define TURNED_TANH(t)                                           \
  "func.func @main(%x: tensor<" t ">) -> tensor<" t              \
  "> {\n"                                                        \
  "  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<" t \
  ">) -> tensor<" t                                              \
  ">\n"                                                          \
  "  %1 = stablehlo.tanh %0 : tensor<" t                         \
  ">\n"                                                          \
  "  return %1 : tensor<" t ">\n}"

// Long tensors that a loop of much arithmetic passes in the order of memory are
// read ahead. Short ones are not, nor those that it jumps through.
static void test_ahead(void **state)
{
  (void)state;
  assert_int_equal(harness_prefetches(SCALED_TANH("1024x96xf32", "96xf32")), 1);
  assert_int_equal(harness_prefetches(SCALED_TANH("160x96xf32", "96xf32")), 0);
  assert_int_equal(
      harness_prefetches(PER_CHANNEL("1024x96xf32", "96xf32", "[1]")), 0);
  assert_true(harness_prefetches(CHAIN("200000xf32")) >= 2);
  assert_int_equal(harness_prefetches(CHAIN("8000xf32")), 0);
  assert_int_equal(harness_prefetches(TURNED_TANH("64x64x64xf32")), 0);
}

// Lines of results of 1 MiB or more, whatever the arithmetic.
static void test_written_ahead(void **state)
{
  (void)state;
  assert_int_equal(
      harness_prefetches_to_write(SCALED_TANH("1024x96xf32", "96xf32")), 0);
  assert_true(
      harness_prefetches_to_write(SCALED_TANH("4096x96xf32", "96xf32")) > 0);
  assert_true(harness_prefetches_to_write(
                  PER_CHANNEL("4096x96xf32", "96xf32", "[1]")) > 0);
}

static void test_refused(void **state)
{
  (void)state;
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              harness_compile("func.func @main(%x: tensor<4xf64>) -> "
                              "tensor<4xf64> {\n"
                              "  %0 = stablehlo.remainder %x, %x : "
                              "tensor<4xf64>\n"
                              "  return %0 : tensor<4xf64>\n}"),
              "kernel 0: an operation of no class");
  const cpu_jit_options options = { .lanes = 5 };
  cx_text object = { 0 };
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cpu_jit_get_api()->compile(&options, NULL, 0, &object),
              "5 lanes");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_cases),     cmocka_unit_test(test_row_ends),
    cmocka_unit_test(test_in_place),  cmocka_unit_test(test_sizes),
    cmocka_unit_test(test_explosion), cmocka_unit_test(test_refused),
    cmocka_unit_test(test_shared),    cmocka_unit_test(test_not_shared),
    cmocka_unit_test(test_ahead),     cmocka_unit_test(test_written_ahead),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
