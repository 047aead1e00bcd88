// Shapes, indices, windows, reductions, contractions, random numbers, algebra.
#include <stdio.h>

#include "program.h"

static void test_moves(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>"
      "\n%1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xi32>) -> "
      "tensor<3x2xi32>"
      "\n%r = stablehlo.reverse %1, dims = [0] : tensor<3x2xi32>",
      "tensor<3x2xi32>", "[[3, 6], [2, 5], [1, 4]]");
  gives(
      "%0 = stablehlo.constant dense<[[1], [2]]> : tensor<2x1xi16>"
      "\n%r = stablehlo.broadcast_in_dim %0, dims = [2, 0] : "
      "(tensor<2x1xi16>) -> tensor<2x1x2xi16>",
      "tensor<2x1x2xi16>", "[[[1, 2]], [[1, 2]]]");
  gives(
      "%0 = stablehlo.iota dim = 0 : tensor<10xui8>"
      "\n%r = stablehlo.slice %0 [1:9:3] : (tensor<10xui8>) -> tensor<3xui8>",
      "tensor<3xui8>", "[1, 4, 7]");
  gives(
      "%0 = stablehlo.constant dense<[[1, 2]]> : tensor<1x2xi64>"
      "\n%1 = stablehlo.constant dense<[[3]]> : tensor<1x1xi64>"
      "\n%r = stablehlo.concatenate %0, %1, dim = 1 : (tensor<1x2xi64>, "
      "tensor<1x1xi64>) -> tensor<1x3xi64>",
      "tensor<1x3xi64>", "[[1, 2, 3]]");
}

static void test_pads(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>"
      "\n%1 = stablehlo.constant dense<9> : tensor<i32>"
      "\n%r = stablehlo.pad %0, %1, low = [1], high = [2], interior = [1] : "
      "(tensor<3xi32>, tensor<i32>) -> tensor<8xi32>",
      "tensor<8xi32>", "[9, 1, 9, 2, 9, 3, 9, 9]");
  // Cropped on both sides, a hole first.
  gives(
      "%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>"
      "\n%1 = stablehlo.constant dense<9> : tensor<i32>"
      "\n%r = stablehlo.pad %0, %1, low = [-1], high = [-1], interior = [1] "
      ": (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>",
      "tensor<3xi32>", "[9, 2, 9]");
  gives(
      "%0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>"
      "\n%1 = stablehlo.constant dense<9> : tensor<i32>"
      "\n%r = stablehlo.pad %0, %1, low = [-3], high = [3], interior = [0] : "
      "(tensor<2xi32>, tensor<i32>) -> tensor<2xi32>",
      "tensor<2xi32>", "[9, 9]");
}

static void test_dynamic_slices_clamp(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.iota dim = 0 : tensor<6xi32>"
      "\n%1 = stablehlo.constant dense<100> : tensor<i32>"
      "\n%r = stablehlo.dynamic_slice %0, %1, sizes = [2] : (tensor<6xi32>, "
      "tensor<i32>) -> tensor<2xi32>",
      "tensor<2xi32>", "[4, 5]");
  gives(
      "%0 = stablehlo.iota dim = 0 : tensor<4xi32>"
      "\n%u = stablehlo.constant dense<[8, 9]> : tensor<2xi32>"
      "\n%1 = stablehlo.constant dense<18446744073709551615> : tensor<ui64>"
      "\n%r = stablehlo.dynamic_update_slice %0, %u, %1 : (tensor<4xi32>, "
      "tensor<2xi32>, tensor<ui64>) -> tensor<4xi32>",
      "tensor<4xi32>", "[0, 1, 8, 9]");
}

static void test_gather_clamps(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : "
      "tensor<3x2xi32>"
      "\n%1 = stablehlo.constant dense<[2, -7, 99]> : tensor<3xi32>"
      "\n%r = \"stablehlo.gather\"(%0, %1) <{dimension_numbers = "
      "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
      "start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
      "array<i64: 1, 2>}> : (tensor<3x2xi32>, tensor<3xi32>) -> "
      "tensor<3x2xi32>",
      "tensor<3x2xi32>", "[[5, 6], [1, 2], [5, 6]]");
}

#define SCATTER                                                              \
  "<{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = " \
  "[0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}>"

static void test_scatter_skips(void **state)
{
  (void)state;
  const char *const start =
      "%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>"
      "\n%1 = stablehlo.constant dense<[1, 1, -1, 3]> : tensor<4xi32>"
      "\n%2 = stablehlo.constant dense<[10, 20, 30, 40]> : tensor<4xi32>"
      "\n%r = \"stablehlo.scatter\"(%0, %1, %2) " SCATTER
      " ({\n^bb0(%a: tensor<i32>, %b: tensor<i32>):\n";
  const char *const end =
      "}) : (tensor<3xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<3xi32>";
  char text[1024];
  snprintf(text, sizeof text, "%s%s%s", start,
           "%s = stablehlo.add %a, %b : tensor<i32>\n"
           "stablehlo.return %s : tensor<i32>\n",
           end);
  gives(text, "tensor<3xi32>", "[1, 32, 3]");
  snprintf(text, sizeof text, "%s%s%s", start,
           "stablehlo.return %b : tensor<i32>\n", end);
  gives(text, "tensor<3xi32>", "[1, 20, 3]");
}

static void test_reduces(void **state)
{
  (void)state;
  const char *const x =
      "%0 = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : "
      "tensor<2x3xf32>\n%1 = stablehlo.constant dense<0.5> : tensor<f32>\n";
  char text[1024];
  snprintf(text, sizeof text,
           "%s%%r = stablehlo.reduce(%%0 init: %%1) applies stablehlo.add "
           "across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> "
           "tensor<3xf32>",
           x);
  gives(text, "tensor<3xf32>", "[5.5, 7.5, 9.5]");
  snprintf(text, sizeof text,
           "%s%%r = stablehlo.reduce(%%0 init: %%1) applies "
           "stablehlo.multiply across dimensions = [1, 0] : "
           "(tensor<2x3xf32>, tensor<f32>) -> tensor<f32>",
           x);
  gives(text, "tensor<f32>", "360.0");
  // Rounded once: a sum of bf16 does not stop at 256.
  gives(
      "%0 = stablehlo.constant dense<1.0> : tensor<1000xbf16>"
      "\n%1 = stablehlo.constant dense<0.0> : tensor<bf16>"
      "\n%r = stablehlo.reduce(%0 init: %1) applies stablehlo.add across "
      "dimensions = [0] : (tensor<1000xbf16>, tensor<bf16>) -> tensor<bf16>",
      "tensor<bf16>", "1000.0");
  gives(
      "%0 = stablehlo.constant dense<1> : tensor<0x2xi32>"
      "\n%1 = stablehlo.constant dense<7> : tensor<i32>"
      "\n%r = stablehlo.reduce(%0 init: %1) applies stablehlo.maximum across "
      "dimensions = [0] : (tensor<0x2xi32>, tensor<i32>) -> tensor<2xi32>",
      "tensor<2xi32>", "7");
}

// The accumulator is the first argument, and a body may cross its results.
static void test_argument_order(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>"
      "\n%1 = stablehlo.constant dense<100> : tensor<i32>"
      "\n%r = stablehlo.reduce(%0 init: %1) across dimensions = [0] : "
      "(tensor<3xi32>, tensor<i32>) -> tensor<i32>"
      "\nreducer(%a: tensor<i32>, %b: tensor<i32>) {"
      "\n%s = stablehlo.subtract %a, %b : tensor<i32>"
      "\nstablehlo.return %s : tensor<i32>\n}",
      "tensor<i32>", "94");
  agrees(
      "func.func @main() -> (tensor<i32>, tensor<i32>, tensor<i32>, "
      "tensor<i32>) {"
      "\n%0 = stablehlo.constant dense<[3, 9, 4, 9]> : tensor<4xi32>"
      "\n%1 = stablehlo.iota dim = 0 : tensor<4xi32>"
      "\n%2 = stablehlo.constant dense<-1> : tensor<i32>"
      "\n%r:2 = stablehlo.reduce(%0 init: %2), (%1 init: %2) across "
      "dimensions = [0] : (tensor<4xi32>, tensor<4xi32>, tensor<i32>, "
      "tensor<i32>) -> (tensor<i32>, tensor<i32>)"
      "\nreducer(%a: tensor<i32>, %b: tensor<i32>) (%i: tensor<i32>, %j: "
      "tensor<i32>) {"
      "\n%c = stablehlo.compare GE, %a, %b : (tensor<i32>, tensor<i32>) -> "
      "tensor<i1>"
      "\n%v = stablehlo.select %c, %a, %b : tensor<i1>, tensor<i32>"
      "\n%k = stablehlo.select %c, %i, %j : tensor<i1>, tensor<i32>"
      "\nstablehlo.return %v, %k : tensor<i32>, tensor<i32>\n}"
      "\n%w = stablehlo.constant dense<9> : tensor<i32>"
      "\n%x = stablehlo.constant dense<1> : tensor<i32>"
      "\nreturn %r#0, %w, %r#1, %x : tensor<i32>, tensor<i32>, tensor<i32>, "
      "tensor<i32>\n}");
}

// A body that is not elementwise is walked for each element.
static void test_body_with_control(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>"
      "\n%1 = stablehlo.constant dense<0> : tensor<i32>"
      "\n%two = stablehlo.constant dense<2> : tensor<i32>"
      "\n%r = stablehlo.reduce(%0 init: %1) across dimensions = [0] : "
      "(tensor<4xi32>, tensor<i32>) -> tensor<i32>"
      "\nreducer(%a: tensor<i32>, %b: tensor<i32>) {"
      "\n%c = stablehlo.compare GT, %b, %two : (tensor<i32>, tensor<i32>) "
      "-> tensor<i1>"
      "\n%s = \"stablehlo.if\"(%c) ({"
      "\n%t = stablehlo.add %a, %b : tensor<i32>"
      "\nstablehlo.return %t : tensor<i32>\n}, {"
      "\nstablehlo.return %a : tensor<i32>\n}) : (tensor<i1>) -> tensor<i32>"
      "\nstablehlo.return %s : tensor<i32>\n}",
      "tensor<i32>", "7");
}

static void test_windows(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>"
      "\n%1 = stablehlo.constant dense<0> : tensor<i32>"
      "\n%r = \"stablehlo.reduce_window\"(%0, %1) <{window_dimensions = "
      "array<i64: 4>, padding = dense<[[3, 0]]> : tensor<1x2xi64>}> ({"
      "\n^bb0(%a: tensor<i32>, %b: tensor<i32>):"
      "\n%s = stablehlo.add %a, %b : tensor<i32>"
      "\nstablehlo.return %s : tensor<i32>\n}) : (tensor<4xi32>, "
      "tensor<i32>) -> tensor<4xi32>",
      "tensor<4xi32>", "[1, 3, 6, 10]");
  // Dilations: the holes count as the init.
  gives(
      "%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>"
      "\n%1 = stablehlo.constant dense<10> : tensor<i32>"
      "\n%r = \"stablehlo.reduce_window\"(%0, %1) <{window_dimensions = "
      "array<i64: 2>, base_dilations = array<i64: 2>, window_dilations = "
      "array<i64: 3>}> ({"
      "\n^bb0(%a: tensor<i32>, %b: tensor<i32>):"
      "\n%t = stablehlo.negate %b : tensor<i32>"
      "\n%s = stablehlo.subtract %a, %t : tensor<i32>"
      "\nstablehlo.return %s : tensor<i32>\n}) : (tensor<3xi32>, "
      "tensor<i32>) -> tensor<2xi32>",
      "tensor<2xi32>", "[21, 23]");
}

static void test_select_and_scatter_keeps_the_first(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[5, 5, 1, 7]> : tensor<4xi32>"
      "\n%1 = stablehlo.constant dense<[10, 20, 30]> : tensor<3xi32>"
      "\n%2 = stablehlo.constant dense<1> : tensor<i32>"
      "\n%r = \"stablehlo.select_and_scatter\"(%0, %1, %2) "
      "<{window_dimensions = array<i64: 2>}> ({"
      "\n^bb0(%a: tensor<i32>, %b: tensor<i32>):"
      "\n%c = stablehlo.compare GE, %a, %b : (tensor<i32>, tensor<i32>) -> "
      "tensor<i1>\nstablehlo.return %c : tensor<i1>\n}, {"
      "\n^bb0(%a: tensor<i32>, %b: tensor<i32>):"
      "\n%c = stablehlo.add %a, %b : tensor<i32>"
      "\nstablehlo.return %c : tensor<i32>\n}) : (tensor<4xi32>, "
      "tensor<3xi32>, tensor<i32>) -> tensor<4xi32>",
      "tensor<4xi32>", "[11, 21, 1, 31]");
}

static void test_sort_is_stable(void **state)
{
  (void)state;
  agrees(
      "func.func @main() -> (tensor<5xi32>, tensor<5xi32>) {"
      "\n%0 = stablehlo.constant dense<[2, 1, 2, 1, 0]> : tensor<5xi32>"
      "\n%1 = stablehlo.iota dim = 0 : tensor<5xi32>"
      "\n%r:2 = \"stablehlo.sort\"(%0, %1) <{dimension = 0 : i64, is_stable "
      "= true}> ({"
      "\n^bb0(%a: tensor<i32>, %b: tensor<i32>, %i: tensor<i32>, %j: "
      "tensor<i32>):"
      "\n%c = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> "
      "tensor<i1>\nstablehlo.return %c : tensor<i1>\n}) : (tensor<5xi32>, "
      "tensor<5xi32>) -> (tensor<5xi32>, tensor<5xi32>)"
      "\n%w = stablehlo.constant dense<[4, 1, 3, 0, 2]> : tensor<5xi32>"
      "\nreturn %r#1, %w : tensor<5xi32>, tensor<5xi32>\n}");
}

static void test_dots(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>"
      "\n%1 = stablehlo.constant dense<[[100, 0], [0, 100]]> : tensor<2x2xi8>"
      "\n%r = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : "
      "(tensor<2x2xi8>, tensor<2x2xi8>) -> tensor<2x2xi32>",
      "tensor<2x2xi32>", "[[100, 200], [300, 400]]");
  gives(
      "%0 = stablehlo.iota dim = 2 : tensor<2x3x4xf32>"
      "\n%1 = stablehlo.iota dim = 0 : tensor<4x5x2xf32>"
      "\n%r = stablehlo.dot_general %0, %1, batching_dims = [0] x [2], "
      "contracting_dims = [2] x [0] : (tensor<2x3x4xf32>, "
      "tensor<4x5x2xf32>) -> tensor<2x3x5xf32>",
      "tensor<2x3x5xf32>", "14.0");
  gives(
      "%0 = stablehlo.constant dense<[[1, 0], [1, 1]]> : tensor<2x2xi1>"
      "\n%1 = stablehlo.constant dense<[1, 1]> : tensor<2xi1>"
      "\n%r = stablehlo.dot %0, %1 : (tensor<2x2xi1>, tensor<2xi1>) -> "
      "tensor<2xi1>",
      "tensor<2xi1>", "[1, 1]");
}

static void test_convolutions(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.iota dim = 2 : tensor<1x1x5xf32>"
      "\n%1 = stablehlo.constant dense<[[[1.0, 10.0]]]> : tensor<1x1x2xf32>"
      "\n%r = stablehlo.convolution(%0, %1) dim_numbers = [b, f, 0]x[o, i, "
      "0]->[b, f, 0], window = {stride = [2], pad = [[1, 0]], rhs_dilate = "
      "[2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
      "(tensor<1x1x5xf32>, tensor<1x1x2xf32>) -> tensor<1x1x2xf32>",
      "tensor<1x1x2xf32>", "[[[10.0, 31.0]]]");
  // Two groups of features, each with a kernel of its own, turned around.
  gives(
      "%0 = stablehlo.constant dense<[[[1, 2], [3, 4]]]> : tensor<1x2x2xi32>"
      "\n%1 = stablehlo.constant dense<[[[1, 10]], [[100, 1000]]]> : "
      "tensor<2x1x2xi32>"
      "\n%r = stablehlo.convolution(%0, %1) dim_numbers = [b, f, 0]x[o, i, "
      "0]->[b, f, 0], window = {reverse = [true]} {batch_group_count = 1 : "
      "i64, feature_group_count = 2 : i64} : (tensor<1x2x2xi32>, "
      "tensor<2x1x2xi32>) -> tensor<1x2x1xi32>",
      "tensor<1x2x1xi32>", "[[[12], [3400]]]");
  gives(
      "%0 = stablehlo.constant dense<[[[1]], [[2]]]> : tensor<2x1x1xi32>"
      "\n%1 = stablehlo.constant dense<[[[3]], [[5]]]> : tensor<2x1x1xi32>"
      "\n%r = stablehlo.convolution(%0, %1) dim_numbers = [b, f, 0]x[o, i, "
      "0]->[b, f, 0], window = {} {batch_group_count = 2 : i64, "
      "feature_group_count = 1 : i64} : (tensor<2x1x1xi32>, "
      "tensor<2x1x1xi32>) -> tensor<1x2x1xi32>",
      "tensor<1x2x1xi32>", "[[[3], [10]]]");
}

// The known answers of Random123 (kat_vectors): all zeros, all ones.
static void test_random_bits(void **state)
{
  (void)state;
#define RANDOM(how, words, in, type)                                  \
  "%0 = stablehlo.constant dense<" in "> : tensor<" words             \
  "xui64>\n%s, %r = stablehlo.rng_bit_generator %0, algorithm = " how \
  " : (tensor<" words "xui64>) -> (tensor<" words "xui64>, " type ")"
  gives(RANDOM("THREE_FRY", "2", "0", "tensor<2xui32>"), "tensor<2xui32>",
        "[0x6b200159, 0x99ba4efe]");
  gives(RANDOM("THREE_FRY", "2", "18446744073709551615", "tensor<1xui64>"),
        "tensor<1xui64>", "[0xbb002be71cb996fc]");
  gives(RANDOM("PHILOX", "3", "0", "tensor<4xui32>"), "tensor<4xui32>",
        "[0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]");
  gives(RANDOM("PHILOX", "3", "18446744073709551615", "tensor<2xui64>"),
        "tensor<2xui64>", "[0x41c83b0e408f276d, 0x6d5451fda20bc7c6]");
#undef RANDOM
}

static void test_random_state_counts(void **state)
{
  (void)state;
  agrees(
      "func.func @main() -> (tensor<2xui64>, tensor<2xui64>, "
      "tensor<3xui64>, tensor<3xui64>) {"
      "\n%0 = stablehlo.constant dense<[7, 5]> : tensor<2xui64>"
      "\n%s, %b = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY : "
      "(tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xui32>)"
      "\n%w = stablehlo.constant dense<[7, 14]> : tensor<2xui64>"
      "\n%1 = stablehlo.constant dense<[7, 18446744073709551615, 1]> : "
      "tensor<3xui64>"
      "\n%t, %c = stablehlo.rng_bit_generator %1, algorithm = PHILOX : "
      "(tensor<3xui64>) -> (tensor<3xui64>, tensor<5xui32>)"
      "\n%x = stablehlo.constant dense<[7, 1, 2]> : tensor<3xui64>"
      "\nreturn %s, %w, %t, %x : tensor<2xui64>, tensor<2xui64>, "
      "tensor<3xui64>, tensor<3xui64>\n}");
}

static void test_uniform_numbers(void **state)
{
  (void)state;
  // All lie in [2, 5), and not all are the same.
  gives(
      "%a = stablehlo.constant dense<2> : tensor<i32>"
      "\n%b = stablehlo.constant dense<5> : tensor<i32>"
      "\n%n = stablehlo.constant dense<[100]> : tensor<1xi64>"
      "\n%x = stablehlo.rng %a, %b, %n, distribution = UNIFORM : "
      "(tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<100xi32>"
      "\n%lo = stablehlo.reduce(%x init: %b) applies stablehlo.minimum "
      "across dimensions = [0] : (tensor<100xi32>, tensor<i32>) -> "
      "tensor<i32>"
      "\n%hi = stablehlo.reduce(%x init: %a) applies stablehlo.maximum "
      "across dimensions = [0] : (tensor<100xi32>, tensor<i32>) -> "
      "tensor<i32>"
      "\n%r = stablehlo.subtract %hi, %lo : tensor<i32>",
      "tensor<i32>", "2");
}

static void test_transforms(void **state)
{
  (void)state;
  // Lengths 4 (radix 2) and 3 (Bluestein); there and back.
  const char *const round_trip =
      "func.func @main() -> (tensor<2x%sxf32>, tensor<2x%sxf32>) {"
      "\n%%0 = stablehlo.iota dim = 1 : tensor<2x%sxf32>"
      "\n%%1 = stablehlo.fft %%0, type = RFFT, length = [%s] : "
      "(tensor<2x%sxf32>) -> tensor<2x%sxcomplex<f32>>"
      "\n%%2 = stablehlo.fft %%1, type = IRFFT, length = [%s] : "
      "(tensor<2x%sxcomplex<f32>>) -> tensor<2x%sxf32>"
      "\n%%3 = stablehlo.constant dense<1.0> : tensor<2x%sxf32>"
      "\n%%4 = stablehlo.add %%2, %%3 : tensor<2x%sxf32>"
      "\n%%5 = stablehlo.add %%0, %%3 : tensor<2x%sxf32>"
      "\nreturn %%4, %%5 : tensor<2x%sxf32>, tensor<2x%sxf32>\n}";
  static const char *const sizes[][2] = {
    { "4", "3" }, { "3", "2" }, { "1", "1" }, { "10", "6" }
  };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const char *n = sizes[i][0];
    const char *h = sizes[i][1];
    char text[2048];
    snprintf(text, sizeof text, round_trip, n, n, n, n, n, h, n, h, n, n, n, n,
             n, n);
    agrees_within(text, 1e-6);
  }
  gives(
      "%0 = stablehlo.constant dense<[(1.0, 0.0), (0.0, 0.0), (0.0, 0.0)]> : "
      "tensor<3xcomplex<f32>>"
      "\n%1 = stablehlo.fft %0, type = IFFT, length = [3] : "
      "(tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>>"
      "\n%r = stablehlo.real %1 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>",
      "tensor<3xf32>", "[0.33333333, 0.33333333, 0.33333333]");
}

static void test_algebra(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[[4.0, 77.0], [2.0, 10.0]]> : "
      "tensor<2x2xf32>"
      "\n%r = stablehlo.cholesky %0, lower = true : tensor<2x2xf32>",
      "tensor<2x2xf32>", "[[2.0, 0.0], [1.0, 3.0]]");
  gives(
      "%0 = stablehlo.constant dense<[[4.0, 2.0], [77.0, 10.0]]> : "
      "tensor<2x2xf64>"
      "\n%r = stablehlo.cholesky %0, lower = false : tensor<2x2xf64>",
      "tensor<2x2xf64>", "[[2.0, 1.0], [0.0, 3.0]]");
  gives(
      "%0 = stablehlo.constant dense<[[2.0, 77.0], [1.0, 4.0]]> : "
      "tensor<2x2xf32>"
      "\n%1 = stablehlo.constant dense<[[4.0], [10.0]]> : tensor<2x1xf32>"
      "\n%r = \"stablehlo.triangular_solve\"(%0, %1) <{left_side = true, "
      "lower = true, unit_diagonal = false, transpose_a = "
      "#stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2x2xf32>, "
      "tensor<2x1xf32>) -> tensor<2x1xf32>",
      "tensor<2x1xf32>", "[[2.0], [2.0]]");
  // x A^T = b with the upper triangle: from the right, unit diagonal.
  gives(
      "%0 = stablehlo.constant dense<[[9.0, 3.0], [77.0, 9.0]]> : "
      "tensor<2x2xf32>"
      "\n%1 = stablehlo.constant dense<[[7.0, 2.0]]> : tensor<1x2xf32>"
      "\n%r = \"stablehlo.triangular_solve\"(%0, %1) <{left_side = false, "
      "lower = false, unit_diagonal = true, transpose_a = "
      "#stablehlo<transpose TRANSPOSE>}> : (tensor<2x2xf32>, "
      "tensor<1x2xf32>) -> tensor<1x2xf32>",
      "tensor<1x2xf32>", "[[1.0, 2.0]]");
}

static void test_norms(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[[1.0, 10.0], [3.0, 30.0]]> : "
      "tensor<2x2xf32>"
      "\n%1 = stablehlo.constant dense<[2.0, 1.0]> : tensor<2xf32>"
      "\n%2 = stablehlo.constant dense<[5.0, 0.0]> : tensor<2xf32>"
      "\n%r, %m, %v = \"stablehlo.batch_norm_training\"(%0, %1, %2) "
      "<{epsilon = 0.0 : f32, feature_index = 1 : i64}> : (tensor<2x2xf32>, "
      "tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, "
      "tensor<2xf32>)",
      "tensor<2x2xf32>", "[[3.0, -1.0], [7.0, 1.0]]");
}

// No shape rule knows these: the interpreter checks them itself.
static void test_dynamic_forms(void **state)
{
  (void)state;
  agrees_unverified(
      "func.func @main() -> (tensor<2x3xi32>, tensor<2x3xi32>, tensor<5xi32>, "
      "tensor<5xi32>) {"
      "\n%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>"
      "\n%1 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>"
      "\n%2 = \"stablehlo.dynamic_broadcast_in_dim\"(%0, %1) "
      "<{broadcast_dimensions = array<i64: 1>}> : (tensor<3xi32>, "
      "tensor<2xi64>) -> tensor<2x3xi32>"
      "\n%w = stablehlo.constant dense<[[1, 2, 3], [1, 2, 3]]> : "
      "tensor<2x3xi32>"
      "\n%p = stablehlo.constant dense<0> : tensor<i32>"
      "\n%one = stablehlo.constant dense<[1]> : tensor<1xi64>"
      "\n%zero = stablehlo.constant dense<[0]> : tensor<1xi64>"
      "\n%3 = \"stablehlo.dynamic_pad\"(%0, %p, %one, %one, %zero) : "
      "(tensor<3xi32>, tensor<i32>, tensor<1xi64>, tensor<1xi64>, "
      "tensor<1xi64>) -> tensor<5xi32>"
      "\n%x = stablehlo.constant dense<[0, 1, 2, 3, 0]> : tensor<5xi32>"
      "\nreturn %2, %w, %3, %x : tensor<2x3xi32>, tensor<2x3xi32>, "
      "tensor<5xi32>, tensor<5xi32>\n}");
  agrees_unverified(
      "func.func @main() -> (tensor<2x2xi32>, tensor<2x2xi32>, tensor<2xi32>, "
      "tensor<2xi32>) {"
      "\n%0 = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>"
      "\n%1 = \"stablehlo.einsum\"(%0, %0) <{einsum_config = \"ij,kj->ik\"}> : "
      "(tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>"
      "\n%w = stablehlo.constant dense<[[5, 11], [11, 25]]> : tensor<2x2xi32>"
      "\n%2 = \"stablehlo.unary_einsum\"(%0) <{einsum_config = \"ij->i\"}> : "
      "(tensor<2x2xi32>) -> tensor<2xi32>"
      "\n%x = stablehlo.constant dense<[3, 7]> : tensor<2xi32>"
      "\nreturn %1, %w, %2, %x : tensor<2x2xi32>, tensor<2x2xi32>, "
      "tensor<2xi32>, tensor<2xi32>\n}");
  agrees_unverified(
      "func.func @main() -> (tensor<2x2xi32>, tensor<2x2xi32>) {"
      "\n%0 = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : "
      "tensor<3x2xi32>"
      "\n%1 = stablehlo.constant dense<[2, 0]> : tensor<2xi32>"
      "\n%2 = \"stablehlo.torch_index_select\"(%0, %1) <{dim = 0 : i64, "
      "batch_dims = 0 : i64}> : (tensor<3x2xi32>, tensor<2xi32>) -> "
      "tensor<2x2xi32>"
      "\n%w = stablehlo.constant dense<[[5, 6], [1, 2]]> : tensor<2x2xi32>"
      "\nreturn %2, %w : tensor<2x2xi32>, tensor<2x2xi32>\n}");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_moves),
    cmocka_unit_test(test_pads),
    cmocka_unit_test(test_dynamic_slices_clamp),
    cmocka_unit_test(test_gather_clamps),
    cmocka_unit_test(test_scatter_skips),
    cmocka_unit_test(test_reduces),
    cmocka_unit_test(test_argument_order),
    cmocka_unit_test(test_body_with_control),
    cmocka_unit_test(test_windows),
    cmocka_unit_test(test_select_and_scatter_keeps_the_first),
    cmocka_unit_test(test_sort_is_stable),
    cmocka_unit_test(test_dots),
    cmocka_unit_test(test_convolutions),
    cmocka_unit_test(test_random_bits),
    cmocka_unit_test(test_random_state_counts),
    cmocka_unit_test(test_uniform_numbers),
    cmocka_unit_test(test_transforms),
    cmocka_unit_test(test_algebra),
    cmocka_unit_test(test_norms),
    cmocka_unit_test(test_dynamic_forms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
