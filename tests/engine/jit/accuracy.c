// Sums of many equal numbers: of each form, by each number of lanes, about as
// far from the interpreter's, which adds in f64, as PyTorch's are.
#include <stdlib.h>

#include "engine/jit/harness.h"

#define BOUND 2e-6
#define FEW 4  // forms of all sizes; the others' largest is for long runs

typedef struct form {
  const char *from, *to, *dims;
  int64_t others;  // elements for one of those that %lld counts
} form;

static const form forms[] = {
  { "%lld", "", "0", 1 },              // a row that is cut into pieces
  { "%lldx64", "64", "0", 64 },        // columns, by sweeps
  { "%lldx33", "33", "0", 33 },        // with an end of a vector
  { "%lldx1", "1", "0", 1 },           // one column
  { "%lldx5", "5", "0", 5 },           // of few lanes
  { "%lldx3x16", "3", "0, 2", 48 },    // short rows in a long loop
  { "%lldx3x100", "3", "0, 2", 300 },  // longer ones
  { "40x%lldx2", "40x2", "1", 80 },    // no pieces
  { "40x%lld", "40", "1", 40 },        // rows, no pieces
  { "2x%lldx2x8", "2x2", "1, 3", 32 },
  { "3x%lldx300", "300", "0, 1", 900 },
};

static void text_of(const form *f, int64_t n, const char *elem, char *out,
                    size_t size)
{
  char dims[64], from[96], to[64];
  snprintf(dims, sizeof dims, f->from, (long long)n);
  snprintf(from, sizeof from, "tensor<%sx%s>", dims, elem);
  snprintf(to, sizeof to, "tensor<%s%s%s>", f->to, *f->to ? "x" : "", elem);
  const char *zero = elem[0] == 'c' ? "(0.0, 0.0)" : "0.0";
  snprintf(out, size,
           "func.func @main(%%x: %s) -> %s {\n"
           "  %%i = stablehlo.constant dense<%s> : tensor<%s>\n"
           "  %%0 = stablehlo.reduce(%%x init: %%i) applies stablehlo.add "
           "across dimensions = [%s] : (%s, tensor<%s>) -> %s\n"
           "  return %%0 : %s\n}",
           from, to, zero, elem, f->dims, from, elem, to, to);
}

static void check(const form *f, int64_t elements, const char *elem,
                  double bound)
{
  char text[2048];
  text_of(f, elements / f->others, elem, text, sizeof text);
  harness_check(&(harness_case){ text, bound, HARNESS_EQUAL });
}

static void test_forms(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    for (int bits = 12; bits <= 24; bits += 4) {
      if (bits == 24 && i >= FEW && getenv("CALX_TEST_LONG") == NULL) continue;
      check(&forms[i], (int64_t)1 << bits, "f32", BOUND);
    }
  }
}

static void test_longest(void **state)
{
  (void)state;
  for (size_t i = 0; i < FEW; i++) {
    check(&forms[i], (int64_t)1 << 26, "f32", BOUND);
  }
}

static void test_types(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    check(&forms[i], 1 << 18, "complex<f32>", BOUND);
    check(&forms[i], 1 << 18, "bf16", 1.0 / 256);
  }
}

// Two sums and a maximum in one reduction; sums of windows; a sum beside a
// reduction of another kind; what is summed is computed.
static const char *const texts[] = {
  "func.func @main(%x: tensor<100000x40xf32>, %y: tensor<100000x40xf32>) -> "
  "(tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) {\n"
  "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
  "  %0:3 = stablehlo.reduce(%x init: %z), (%y init: %z), (%x init: %z) across "
  "dimensions = [0] : (tensor<100000x40xf32>, tensor<100000x40xf32>, "
  "tensor<100000x40xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> "
  "(tensor<40xf32>, tensor<40xf32>, tensor<40xf32>)\n"
  "   reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<f32>, %d: "
  "tensor<f32>) (%e: tensor<f32>, %f: tensor<f32>) {\n"
  "    %1 = stablehlo.add %a, %b : tensor<f32>\n"
  "    %2 = stablehlo.add %d, %c : tensor<f32>\n"
  "    %3 = stablehlo.maximum %e, %f : tensor<f32>\n"
  "    stablehlo.return %1, %2, %3 : tensor<f32>, tensor<f32>, tensor<f32>\n"
  "  }\n"
  "  return %0#0, %0#1, %0#2 : tensor<40xf32>, tensor<40xf32>, "
  "tensor<40xf32>\n}",
  "func.func @main(%x: tensor<8192x6xf32>) -> tensor<2x6xf32> {\n"
  "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
  "  %0 = \"stablehlo.reduce_window\"(%x, %z) ({\n"
  "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
  "    %1 = stablehlo.add %a, %b : tensor<f32>\n"
  "    stablehlo.return %1 : tensor<f32>\n"
  "  }) {window_dimensions = array<i64: 4096, 1>, window_strides = "
  "array<i64: 4096, 1>} : (tensor<8192x6xf32>, tensor<f32>) -> "
  "tensor<2x6xf32>\n"
  "  return %0 : tensor<2x6xf32>\n}",
  "func.func @main(%x: tensor<64x64x40xf32>) -> tensor<1x2x40xf32> {\n"
  "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
  "  %0 = \"stablehlo.reduce_window\"(%x, %z) ({\n"
  "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
  "    %1 = stablehlo.add %a, %b : tensor<f32>\n"
  "    stablehlo.return %1 : tensor<f32>\n"
  "  }) {window_dimensions = array<i64: 64, 60, 1>, window_strides = "
  "array<i64: 1, 4, 1>} : (tensor<64x64x40xf32>, tensor<f32>) -> "
  "tensor<1x2x40xf32>\n"
  "  return %0 : tensor<1x2x40xf32>\n}",
  "func.func @main(%x: tensor<40x50000xf32>) -> (tensor<40xf32>, "
  "tensor<40xf32>, tensor<40xf32>) {\n"
  "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
  "  %q = stablehlo.multiply %x, %x : tensor<40x50000xf32>\n"
  "  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across "
  "dimensions = [1] : (tensor<40x50000xf32>, tensor<f32>) -> tensor<40xf32>\n"
  "  %1 = stablehlo.reduce(%q init: %z) applies stablehlo.add across "
  "dimensions = [1] : (tensor<40x50000xf32>, tensor<f32>) -> tensor<40xf32>\n"
  "  %2 = stablehlo.reduce(%q init: %z) applies stablehlo.maximum across "
  "dimensions = [1] : (tensor<40x50000xf32>, tensor<f32>) -> tensor<40xf32>\n"
  "  return %0, %1, %2 : tensor<40xf32>, tensor<40xf32>, tensor<40xf32>\n}",
};

static void test_texts(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    harness_check(&(harness_case){ texts[i], BOUND, HARNESS_EQUAL });
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_forms),
    cmocka_unit_test(test_types),
    cmocka_unit_test(test_texts),
  };
  const struct CMUnitTest longest[] = { cmocka_unit_test(test_longest) };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (getenv("CALX_TEST_LONG") == NULL) return failed;
  return failed + cmocka_run_group_tests(longest, NULL, NULL);
}
