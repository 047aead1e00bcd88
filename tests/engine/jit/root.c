// Roots: scatter, select_and_scatter, sort, rng_bit_generator.
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

// Into one column, a constant, which may be out of range; the vectors run along
// the rows.
#define COLUMN(x, u, e, at) \
  "func.func @main(%x: " T(x) ", %u: " T(u) ") -> " T(x)                     \
  " {\n  %i = stablehlo.constant dense<" at "> : tensor<i64>\n"              \
  "  %0 = \"stablehlo.scatter\"(%x, %i, %u) <{scatter_dimension_numbers"     \
  " = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = "  \
  "[1], scatter_dims_to_operand_dims = [1], index_vector_dim = 0>}> ({\n"    \
  BODY(e, "add")                                                             \
  "  }) : (" T(x) ", tensor<i64>, " T(u) ") -> " T(x) "\n"                    \
  "  return %0 : " T(x) "\n}"

static const harness_case scatters[] = {
  { COLUMN("40x3xf32", "37xf32", "f32", "2"), 0, HARNESS_PLAIN },
  { COLUMN("40x3xf32", "37xf32", "f32", "3"), 0, HARNESS_PLAIN },
  { COLUMN("40x3xbf16", "37xbf16", "bf16", "-3"), 0, HARNESS_PLAIN },
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
  // Windows that an index moves over either end of the lanes' dimension.
  { SCATTER("9x61xf32", "7x2xi32", "7x3x53xf32",
            "update_window_dims = [1, 2], scatter_dims_to_operand_dims = "
            "[0, 1], index_vector_dim = 1",
            "f32", "add"),
    1e-5, HARNESS_PLAIN },
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
    if (i < 7) harness_check_in_place(scatters[i].text);
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
  { SELECT("2x16x24xf32", "2x2x3xf32",
           "window_dimensions = array<i64: 1, 8, 8>, window_strides = "
           "array<i64: 1, 8, 8>",
           "f32", "GE"),
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
  // … with channels last.
  { SELECT("3x6x8x10xf32", "3x3x4x10xf32",
           "window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = "
           "array<i64: 1, 2, 2, 1>",
           "f32", "GE"),
    0, HARNESS_SPECIAL },
  { SELECT("2x9x4x37xbf16", "2x3x2x37xbf16",
           "window_dimensions = array<i64: 1, 3, 2, 1>, window_strides = "
           "array<i64: 1, 3, 2, 1>",
           "bf16", "GT"),
    0, HARNESS_COUNT },
  { SELECT("6x5x20xf64", "2x5x10xf64",
           "window_dimensions = array<i64: 3, 1, 2>, window_strides = "
           "array<i64: 3, 1, 2>",
           "f64", "GT"),
    0, HARNESS_COUNT },
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

typedef struct sort_case {
  const char *dims, *elem;
  int dim;
  const char *direction;  // and how it compares
} sort_case;

// A comparator that NaN makes no order must get the interpreter's answer too.
static void test_sort(void **state)
{
  (void)state;
  static const sort_case cases[] = {
    { "1000x", "f32", 0, "LT, %a, %b, FLOAT" },
    { "777x", "f32", 0, "LT, %a, %b, TOTALORDER" },
    { "1000x", "f64", -1, "GE, %a, %b, FLOAT" },
    { "7x33x", "i32", 1, "GT, %a, %b" },
    { "7x33x", "ui8", 0, "LT, %a, %b" },
    { "5x6x7x", "bf16", 1, "LT, %a, %b, FLOAT" },
    { "2x3x1x4x", "f16", 1, "GT, %a, %b, TOTALORDER" },
    { "64x", "i1", 0, "LT, %a, %b" },
    { "1x", "f32", 0, "LT, %a, %b" },
    { "5x1x", "i64", 1, "LT, %a, %b" },
    { "2x", "i16", 0, "LT, %a, %b" },
    // Lines in blocks.
    { "16999x", "ui32", 0, "LT, %a, %b" },
    { "2x16500x", "f64", 1, "LT, %a, %b" },
    { "16400x2x", "i16", 0, "GT, %a, %b" },
    { "16384x1x", "f32", 0, "NE, %a, %b" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const sort_case *c = &cases[i];
    char text[1024];
    snprintf(text, sizeof text,
             "func.func @main(%%x: tensor<%s%s>) -> tensor<%s%s> {\n"
             "  %%0 = \"stablehlo.sort\"(%%x) <{dimension = %d : i64}> ({\n"
             "  ^bb0(%%a: tensor<%s>, %%b: tensor<%s>):\n"
             "    %%c = stablehlo.compare %s : (tensor<%s>, tensor<%s>) -> "
             "tensor<i1>\n"
             "    stablehlo.return %%c : tensor<i1>\n"
             "  }) : (tensor<%s%s>) -> tensor<%s%s>\n"
             "  return %%0 : tensor<%s%s>\n}",
             c->dims, c->elem, c->dims, c->elem, c->dim, c->elem, c->elem,
             c->direction, c->elem, c->elem, c->dims, c->elem, c->dims, c->elem,
             c->dims, c->elem);
    harness_check(&(harness_case){ text, 0, HARNESS_SPECIAL });
  }
}

#define SORT_THREE(x, y, dim, results, wanted) \
  "func.func @main(%x: " T(x "xf32") ", %z: " T(x "xi8") ") -> (" wanted      \
  ") {\n  %n = stablehlo.negate %x : " T(x "xf32") "\n"                       \
  "  %y = stablehlo.iota dim = 0 : " T(x "xi32") "\n"                         \
  "  %0:3 = \"stablehlo.sort\"(%n, %y, %z) <{dimension = " dim               \
  " : i64, is_stable = true}> ({\n"                                          \
  "  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, "                \
  "%d: tensor<i32>, %e: tensor<i8>, %f: tensor<i8>):\n"                      \
  "    %l = stablehlo.compare LT, %e, %f : (tensor<i8>, tensor<i8>) -> "      \
  "tensor<i1>\n"                                                             \
  "    %q = stablehlo.compare EQ, %e, %f : (tensor<i8>, tensor<i8>) -> "      \
  "tensor<i1>\n"                                                             \
  "    %g = stablehlo.compare " y ", %a, %b : (tensor<f32>, tensor<f32>) -> " \
  "tensor<i1>\n"                                                             \
  "    %h = stablehlo.and %q, %g : tensor<i1>\n"                             \
  "    %k = stablehlo.or %l, %h : tensor<i1>\n"                              \
  "    stablehlo.return %k : tensor<i1>\n"                                   \
  "  }) : (" T(x "xf32") ", " T(x "xi32") ", " T(x "xi8") ") -> ("            \
  T(x "xf32") ", " T(x "xi32") ", " T(x "xi8") ")\n"                         \
  "  return " results " : " wanted "\n}"

// By several operands, with operations before it in the same kernel, and with
// results that nobody wants.
static void test_sort_of_many(void **state)
{
  (void)state;
  static const char *const texts[] = {
    SORT_THREE("500", "GT", "0", "%0#0, %0#1, %0#2",
               T("500xf32") ", " T("500xi32") ", " T("500xi8")),
    SORT_THREE("30x20", "LT", "0", "%0#1", T("30x20xi32")),
    SORT_THREE("30x20", "LT", "1", "%0#1, %0#0",
               T("30x20xi32") ", " T("30x20xf32")),
    SORT_THREE("16400x2", "LT", "0", "%0#2, %0#0",
               T("16400x2xi8") ", " T("16400x2xf32")),
    SORT_THREE("17000", "GT", "0", "%0#1", T("17000xi32")),
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    harness_check(&(harness_case){ texts[i], 0, HARNESS_COUNT });
  }
  harness_check(&(harness_case){ texts[0], 0, HARNESS_SPECIAL });
  harness_check(&(harness_case){
      "func.func @main(%x: tensor<300xcomplex<f32>>) -> "
      "tensor<300xcomplex<f32>> {\n"
      "  %0 = \"stablehlo.sort\"(%x) <{dimension = 0 : i64}> ({\n"
      "  ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):\n"
      "    %c = stablehlo.imag %a : (tensor<complex<f32>>) -> tensor<f32>\n"
      "    %d = stablehlo.imag %b : (tensor<complex<f32>>) -> tensor<f32>\n"
      "    %e = stablehlo.compare LT, %c, %d : (tensor<f32>, tensor<f32>) -> "
      "tensor<i1>\n"
      "    stablehlo.return %e : tensor<i1>\n"
      "  }) : (tensor<300xcomplex<f32>>) -> tensor<300xcomplex<f32>>\n"
      "  return %0 : tensor<300xcomplex<f32>>\n}",
      0, HARNESS_COUNT });
}

static void check_rng(const char *algorithm, int words, const char *type)
{
  char text[512];
  snprintf(text, sizeof text,
           "func.func @main(%%s: tensor<%dxui64>) -> (tensor<%dxui64>, "
           "tensor<%s>) {\n"
           "  %%0, %%1 = stablehlo.rng_bit_generator %%s, algorithm = "
           "%s : (tensor<%dxui64>) -> (tensor<%dxui64>, tensor<%s>)\n"
           "  return %%0, %%1 : tensor<%dxui64>, tensor<%s>\n}",
           words, words, type, algorithm, words, words, type, words, type);
  harness_check(&(harness_case){ text, 0, HARNESS_SPECIAL });
}

static void test_rng(void **state)
{
  (void)state;
  static const char *const types[] = { "1000xui64", "37xui64",    "1000xui32",
                                       "6x50xui32", "7x9x5xui32", "ui32",
                                       "5x34xi32",  "300xui16",   "31x8xui8",
                                       "0x4xui32",  "2x3x40xi8",  "4001xi64" };
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    check_rng("THREE_FRY", 2, types[i]);
  }
  check_rng("PHILOX", 2, "37xui64");
  check_rng("PHILOX", 3, "4096xi64");
  check_rng("PHILOX", 3, "7x9x5xui32");
  check_rng("PHILOX", 2, "16387xui16");
  check_rng("DEFAULT", 2, "31x8xui8");
  check_rng("DEFAULT", 3, "i32");
  check_rng("DEFAULT", 2, "0x4xui32");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_scatter), cmocka_unit_test(test_select),
    cmocka_unit_test(test_sort),    cmocka_unit_test(test_sort_of_many),
    cmocka_unit_test(test_rng),     cmocka_unit_test(test_update)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
