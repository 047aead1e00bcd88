// Roots: scatter, select_and_scatter, rng_bit_generator.
#include "engine/jit/harness.h"

#define T(s) "tensor<" s ">"
#define BODY(e, op)                              \
  "  ^bb0(%a: tensor<" e ">, %b: tensor<" e      \
  ">):\n"                                        \
  "    %c = stablehlo." op " %a, %b : tensor<" e \
  ">\n"                                          \
  "    stablehlo.return %c : tensor<" e ">\n"
#define SCATTER(x, i, u, numbers, e, op) \
  "func.func @main(%x: " T(x) ", %i: " T(i) ", %u: " T(u) ") -> " T(x)       \
  " {\n  %0 = \"stablehlo.scatter\"(%x, %i, %u) <{scatter_dimension_numbers" \
  " = #stablehlo.scatter<" numbers ">}> ({\n" BODY(e, op)                    \
  "  }) : (" T(x) ", " T(i) ", " T(u) ") -> " T(x) "\n"                      \
  "  return %0 : " T(x) "\n}"

static const harness_case scatters[] = {
  { SCATTER("11x33xf32", "4x5xi32", "4x5x33xf32",
            "update_window_dims = [2], inserted_window_dims = [0], "
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 2",
            "f32", "add"),
    1e-5, HARNESS_PLAIN },
  { SCATTER("11x200xbf16", "7xi32", "7x200xbf16",
            "update_window_dims = [1], inserted_window_dims = [0], "
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
            "bf16", "add"),
    0, HARNESS_COUNT },
  { SCATTER("40xi32", "50x1xi64", "50xi32",
            "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
            "index_vector_dim = 1",
            "i32", "add"),
    0, HARNESS_PLAIN },
  { SCATTER("9x7xf32", "12x2xi32", "12xf32",
            "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = "
            "[1, 0], index_vector_dim = 1",
            "f32", "multiply"),
    0, HARNESS_COUNT },
  { SCATTER("9x40xf32", "3x2xi32", "3x4x20xf32",
            "update_window_dims = [1, 2], scatter_dims_to_operand_dims = "
            "[0, 1], index_vector_dim = 1",
            "f32", "maximum"),
    0, HARNESS_PLAIN },
  { SCATTER("6x9x4xf64", "6x3x1xi32", "6x3x4xf64",
            "update_window_dims = [2], inserted_window_dims = [1], "
            "input_batching_dims = [0], scatter_indices_batching_dims = [0], "
            "scatter_dims_to_operand_dims = [1], index_vector_dim = 2",
            "f64", "add"),
    0, HARNESS_COUNT },
  { "func.func @main(%i: tensor<6x1xi32>, %u: tensor<6x40xf32>) -> "
    "tensor<9x40xf32> {\n"
    "  %x = stablehlo.constant dense<0.0> : tensor<9x40xf32>\n"
    "  %n = stablehlo.negate %u : tensor<6x40xf32>\n"
    "  %0 = \"stablehlo.scatter\"(%x, %i, %n) <{scatter_dimension_numbers = "
    "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
    "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n" BODY(
        "f32", "add") "  }) : (tensor<9x40xf32>, tensor<6x1xi32>, "
                      "tensor<6x40xf32>) -> tensor<9x40xf32>\n"
                      "  return %0 : tensor<9x40xf32>\n}",
    1e-6, HARNESS_COUNT },
};

static void test_scatter(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof scatters / sizeof scatters[0]; i++) {
    harness_check(&scatters[i]);
    if (i < 6) harness_check_in_place(scatters[i].text);
  }
}

#define SELECT(x, s, attributes, e, direction) \
  "func.func @main(%x: " T(x) ", %s: " T(s) ") -> " T(x) " {\n"           \
  "  %i = stablehlo.constant dense<0.0> : " T(e) "\n"                     \
  "  %0 = \"stablehlo.select_and_scatter\"(%x, %s, %i) <{" attributes     \
  "}> ({\n"                                                               \
  "  ^bb0(%a: " T(e) ", %b: " T(e) "):\n"                                 \
  "    %c = stablehlo.compare " direction ", %a, %b : (" T(e) ", " T(e)   \
  ") -> tensor<i1>\n"                                                     \
  "    stablehlo.return %c : tensor<i1>\n"                                \
  "  }, {\n" BODY(e, "add")                                               \
  "  }) : (" T(x) ", " T(s) ", " T(e) ") -> " T(x) "\n"                   \
  "  return %0 : " T(x) "\n}"

static const harness_case selects[] = {
  { SELECT("2x3x8x40xf32", "2x3x4x20xf32",
           "window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = "
           "array<i64: 1, 1, 2, 2>",
           "f32", "GE"),
    0, HARNESS_COUNT },
  { SELECT("2x3x9x33xf32", "2x3x5x17xf32",
           "window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = "
           "array<i64: 1, 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [1, 1], "
           "[1, 1]]> : tensor<4x2xi64>",
           "f32", "GE"),
    1e-5, HARNESS_PLAIN },
  { SELECT("2x9x7x20xf64", "2x4x3x20xf64",
           "window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = "
           "array<i64: 1, 2, 2, 1>",
           "f64", "GT"),
    1e-12, HARNESS_PLAIN },
  { SELECT("10x10xf32", "8x8xf32", "window_dimensions = array<i64: 3, 3>",
           "f32", "LE"),
    1e-5, HARNESS_PLAIN },
  // Windows side by side.
  { SELECT("8x3x8x8xf32", "8x3x4x4xf32",
           "window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = "
           "array<i64: 1, 1, 2, 2>",
           "f32", "GE"),
    0, HARNESS_SPECIAL },
  { SELECT("2x24x26xf32", "2x12x13xf32",
           "window_dimensions = array<i64: 1, 2, 2>, window_strides = "
           "array<i64: 1, 2, 2>",
           "f32", "GE"),
    0, HARNESS_COUNT },
  { SELECT("5x6x24xbf16", "5x2x8xbf16",
           "window_dimensions = array<i64: 1, 3, 3>, window_strides = "
           "array<i64: 1, 3, 3>",
           "bf16", "GT"),
    0, HARNESS_PLAIN },
  { SELECT("8x8xf64", "2x8xf64",
           "window_dimensions = array<i64: 4, 1>, window_strides = "
           "array<i64: 4, 1>",
           "f64", "GT"),
    0, HARNESS_COUNT },
  { SELECT("60xf16", "20xf16",
           "window_dimensions = array<i64: 3>, window_strides = "
           "array<i64: 3>",
           "f16", "GE"),
    0, HARNESS_COUNT },
  { SELECT("7x3x70xf32", "7x1x35xf32",
           "window_dimensions = array<i64: 1, 3, 2>, window_strides = "
           "array<i64: 1, 3, 2>",
           "f32", "LT"),
    0, HARNESS_SPECIAL },
};

static void test_select(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof selects / sizeof selects[0]; i++) {
    harness_check(&selects[i]);
  }
}

static const char *const updates[] = {
  "func.func @main(%x: tensor<9x50xf32>, %u: tensor<3x20xf32>, %i: "
  "tensor<i32>, %j: tensor<i32>) -> tensor<9x50xf32> {\n"
  "  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %j : (tensor<9x50xf32>, "
  "tensor<3x20xf32>, tensor<i32>, tensor<i32>) -> tensor<9x50xf32>\n"
  "  return %0 : tensor<9x50xf32>\n}",
  "func.func @main(%x: tensor<9x50xf32>, %u: tensor<1x50xf32>, %i: "
  "tensor<i32>) -> tensor<9x50xf32> {\n"
  "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
  "  %n = stablehlo.negate %u : tensor<1x50xf32>\n"
  "  %0 = stablehlo.dynamic_update_slice %x, %n, %i, %z : (tensor<9x50xf32>, "
  "tensor<1x50xf32>, tensor<i32>, tensor<i32>) -> tensor<9x50xf32>\n"
  "  return %0 : tensor<9x50xf32>\n}",
  "func.func @main(%x: tensor<50x3xi8>, %u: tensor<20x2xi8>, %i: tensor<ui64>) "
  "-> tensor<50x3xi8> {\n"
  "  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i : (tensor<50x3xi8>, "
  "tensor<20x2xi8>, tensor<ui64>, tensor<ui64>) -> tensor<50x3xi8>\n"
  "  return %0 : tensor<50x3xi8>\n}",
  "func.func @main(%x: tensor<5xf32>, %u: tensor<0xf32>, %i: tensor<i64>) -> "
  "tensor<5xf32> {\n"
  "  %0 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<5xf32>, "
  "tensor<0xf32>, tensor<i64>) -> tensor<5xf32>\n"
  "  return %0 : tensor<5xf32>\n}",
};

static void test_update(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++) {
    harness_check(&(harness_case){ updates[i], 0, HARNESS_COUNT });
    harness_check(&(harness_case){ updates[i], 0, HARNESS_PLAIN });
    harness_check_in_place(updates[i]);
  }
}

static void test_rng(void **state)
{
  (void)state;
  static const char *const types[] = { "1000xui64", "37xui64",    "1000xui32",
                                       "6x50xui32", "7x9x5xui32", "ui32",
                                       "5x34xi32",  "300xui16",   "31x8xui8",
                                       "0x4xui32",  "2x3x40xi8",  "4001xi64" };
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "func.func @main(%%s: tensor<2xui64>) -> (tensor<2xui64>, "
             "tensor<%s>) {\n"
             "  %%0, %%1 = stablehlo.rng_bit_generator %%s, algorithm = "
             "THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<%s>)\n"
             "  return %%0, %%1 : tensor<2xui64>, tensor<%s>\n}",
             types[i], types[i], types[i]);
    harness_check(&(harness_case){ text, 0, HARNESS_SPECIAL });
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_scatter),
                                      cmocka_unit_test(test_select),
                                      cmocka_unit_test(test_rng),
                                      cmocka_unit_test(test_update) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
