// Loops: elementwise operations, and those that move elements.
#include "engine/jit/harness.h"

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
};

static void test_cases(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    harness_check(&cases[i]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
