// Windows: pooling, running sums, dilations, paddings.
#include "engine/jit/harness.h"

typedef struct form {
  const char *from, *to, *attributes;
} form;

static const form forms[] = {
  { "2x3x8x40", "2x3x4x20",
    "window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: "
    "1, 1, 2, 2>" },
  { "2x3x9x33", "2x3x5x17",
    "window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: "
    "1, 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [1, 1], [1, 1]]> : "
    "tensor<4x2xi64>" },
  { "2x9x7x20", "2x4x3x20",
    "window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: "
    "1, 2, 2, 1>" },
  { "50", "50",
    "window_dimensions = array<i64: 50>, padding = dense<[[49, 0]]> : "
    "tensor<1x2xi64>" },
  { "5x30", "5x30",
    "window_dimensions = array<i64: 5, 1>, padding = dense<[[4, 0], [0, 0]]> "
    ": tensor<2x2xi64>" },
  { "20x30", "18x8",
    "window_dimensions = array<i64: 3, 10>, window_strides = array<i64: 1, "
    "3>, padding = dense<[[0, 0], [2, 0]]> : tensor<2x2xi64>" },
  // Long ones that slide, with neighbours as lanes and every third as lanes.
  { "83x20", "36x20",
    "window_dimensions = array<i64: 50, 1>, padding = dense<[[0, 2], [0, 0]]> "
    ": tensor<2x2xi64>" },
  { "3x141", "3x36",
    "window_dimensions = array<i64: 1, 37>, window_strides = array<i64: 1, "
    "3>, padding = dense<[[0, 0], [2, 0]]> : tensor<2x2xi64>" },
  { "2x160", "2x40",
    "window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, "
    "4>" },
  { "10x20", "17x10",
    "window_dimensions = array<i64: 3, 2>, base_dilations = array<i64: 2, 1>, "
    "window_dilations = array<i64: 1, 10>" },
  { "10", "4",
    "window_dimensions = array<i64: 3>, window_strides = array<i64: 2>, "
    "padding = dense<[[-1, 0]]> : tensor<1x2xi64>" },
};

static void window(const form *f, const char *op, const char *elem,
                   const char *init, double tolerance, int fill)
{
  char text[2048];
  snprintf(text, sizeof text,
           "func.func @main(%%x: tensor<%sx%s>) -> tensor<%sx%s> {\n"
           "  %%i = stablehlo.constant dense<%s> : tensor<%s>\n"
           "  %%0 = \"stablehlo.reduce_window\"(%%x, %%i) <{%s}> ({\n"
           "  ^bb0(%%a: tensor<%s>, %%b: tensor<%s>):\n"
           "    %%c = stablehlo.%s %%a, %%b : tensor<%s>\n"
           "    stablehlo.return %%c : tensor<%s>\n"
           "  }) : (tensor<%sx%s>, tensor<%s>) -> tensor<%sx%s>\n"
           "  return %%0 : tensor<%sx%s>\n}",
           f->from, elem, f->to, elem, init, elem, f->attributes, elem, elem,
           op, elem, elem, f->from, elem, elem, f->to, elem, f->to, elem);
  harness_check(&(harness_case){ text, tolerance, fill });
}

static void test_forms(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    window(&forms[i], "add", "f32", "0.0", 1e-5, HARNESS_POSITIVE);
    window(&forms[i], "maximum", "f32", "0xFF800000", 0, HARNESS_SPECIAL);
    window(&forms[i], "add", "i32", "7", 0, HARNESS_SPECIAL);
    window(&forms[i], "minimum", "bf16", "0x7F80", 0, HARNESS_PLAIN);
    window(&forms[i], "subtract", "f64", "0.0", 1e-12, HARNESS_PLAIN);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_forms) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
