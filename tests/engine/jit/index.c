// Operations that move elements: each alone, in chains, and under others.
#include "engine/jit/harness.h"

static const harness_case cases[] = {
  // broadcast_in_dim: stretched, unsorted, of a scalar
  { "func.func @main(%x: tensor<3x1x5xf32>) -> tensor<2x3x40x5xf32> {\n"
    "%0 = stablehlo.broadcast_in_dim %x, dims = [1, 2, 3] : "
    "(tensor<3x1x5xf32>) -> tensor<2x3x40x5xf32>\n"
    "return %0 : tensor<2x3x40x5xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<5x20xf32>) -> tensor<20x5xf32> {\n"
    "%0 = stablehlo.broadcast_in_dim %x, dims = [1, 0] : (tensor<5x20xf32>) -> "
    "tensor<20x5xf32>\n"
    "return %0 : tensor<20x5xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<f32>) -> tensor<70xf32> {\n"
    "%0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> "
    "tensor<70xf32>\n"
    "return %0 : tensor<70xf32>\n}",
    0, 0 },
  // transposes
  { "func.func @main(%x: tensor<17x35xf32>) -> tensor<35x17xf32> {\n"
    "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<17x35xf32>) -> "
    "tensor<35x17xf32>\n"
    "return %0 : tensor<35x17xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<2x3x4x33xbf16>) -> tensor<4x2x3x33xbf16> {\n"
    "%0 = stablehlo.transpose %x, dims = [2, 0, 1, 3] : "
    "(tensor<2x3x4x33xbf16>) -> tensor<4x2x3x33xbf16>\n"
    "return %0 : tensor<4x2x3x33xbf16>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<2x3x4x20xi8>) -> tensor<2x4x20x3xi8> {\n"
    "%0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<2x3x4x20xi8>) "
    "-> tensor<2x4x20x3xi8>\n"
    "return %0 : tensor<2x4x20x3xi8>\n}",
    0, 0 },
  // reshapes that merge, split, and cross dimensions
  { "func.func @main(%x: tensor<6x35xf32>, %y: tensor<6x5x7xf32>) -> "
    "tensor<6x5x7xf32> {\n"
    "%0 = stablehlo.reshape %x : (tensor<6x35xf32>) -> tensor<6x5x7xf32>\n"
    "%1 = stablehlo.add %0, %y : tensor<6x5x7xf32>\n"
    "return %1 : tensor<6x5x7xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<6x35xf32>, %y: tensor<10xf32>) -> "
    "tensor<21x10xf32> {\n"
    "%0 = stablehlo.reshape %x : (tensor<6x35xf32>) -> tensor<21x10xf32>\n"
    "%1 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<10xf32>) -> "
    "tensor<21x10xf32>\n"
    "%2 = stablehlo.add %0, %1 : tensor<21x10xf32>\n"
    "return %2 : tensor<21x10xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<6x35xf32>) -> tensor<14x15xf32> {\n"
    "%t = stablehlo.transpose %x, dims = [1, 0] : (tensor<6x35xf32>) -> "
    "tensor<35x6xf32>\n"
    "%0 = stablehlo.reshape %t : (tensor<35x6xf32>) -> tensor<14x15xf32>\n"
    "return %0 : tensor<14x15xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<1x1xf32>) -> tensor<f32> {\n"
    "%0 = stablehlo.reshape %x : (tensor<1x1xf32>) -> tensor<f32>\n"
    "return %0 : tensor<f32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<f32>) -> tensor<1x1xf32> {\n"
    "%0 = stablehlo.reshape %x : (tensor<f32>) -> tensor<1x1xf32>\n"
    "return %0 : tensor<1x1xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<8x32xf32>) -> tensor<8x2x1x16xf32> {\n"
    "%b = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<8x32xf32>) -> "
    "tensor<8x32xf32>\n"
    "%0 = stablehlo.reshape %b : (tensor<8x32xf32>) -> tensor<8x2x1x16xf32>\n"
    "return %0 : tensor<8x2x1x16xf32>\n}",
    0, 0 },
  // slices: contiguous, strided, of one element, of the inner dimension
  { "func.func @main(%x: tensor<9x50xf32>) -> tensor<4x43xf32> {\n"
    "%0 = stablehlo.slice %x [2:6, 3:46] : (tensor<9x50xf32>) -> "
    "tensor<4x43xf32>\n"
    "return %0 : tensor<4x43xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<9x50xf32>) -> tensor<3x17xf32> {\n"
    "%0 = stablehlo.slice %x [1:9:3, 0:50:3] : (tensor<9x50xf32>) -> "
    "tensor<3x17xf32>\n"
    "return %0 : tensor<3x17xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<9x50x2xf32>) -> tensor<9x1x2xf32> {\n"
    "%0 = stablehlo.slice %x [0:9, 7:8, 0:2] : (tensor<9x50x2xf32>) -> "
    "tensor<9x1x2xf32>\n"
    "return %0 : tensor<9x1x2xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<9x50xf32>, %i: tensor<i32>, %j: tensor<i64>) "
    "-> tensor<4x20xf32> {\n"
    "%0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [4, 20] : "
    "(tensor<9x50xf32>, tensor<i32>, tensor<i32>) -> tensor<4x20xf32>\n"
    "return %0 : tensor<4x20xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<9x50xf32>, %i: tensor<ui8>) -> "
    "tensor<1x50xf32> {\n"
    "%z = stablehlo.constant dense<200> : tensor<ui8>\n"
    "%0 = stablehlo.dynamic_slice %x, %z, %i, sizes = [1, 50] : "
    "(tensor<9x50xf32>, tensor<ui8>, tensor<ui8>) -> tensor<1x50xf32>\n"
    "return %0 : tensor<1x50xf32>\n}",
    0, 0 },
  // reverse
  { "func.func @main(%x: tensor<5x37xf32>) -> tensor<5x37xf32> {\n"
    "%0 = stablehlo.reverse %x, dims = [1] : tensor<5x37xf32>\n"
    "return %0 : tensor<5x37xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<5x37xi16>) -> tensor<5x37xi16> {\n"
    "%0 = stablehlo.reverse %x, dims = [0, 1] : tensor<5x37xi16>\n"
    "return %0 : tensor<5x37xi16>\n}",
    0, 0 },
  // pad: around, negative, interior, of an inner dimension
  { "func.func @main(%x: tensor<2x5x19xf32>, %p: tensor<f32>) -> "
    "tensor<2x8x24xf32> {\n"
    "%0 = stablehlo.pad %x, %p, low = [0, 1, 2], high = [0, 2, 3], interior = "
    "[0, 0, 0] : (tensor<2x5x19xf32>, tensor<f32>) -> tensor<2x8x24xf32>\n"
    "return %0 : tensor<2x8x24xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<7x30xf32>, %p: tensor<f32>) -> "
    "tensor<6x59xf32> {\n"
    "%0 = stablehlo.pad %x, %p, low = [-2, 0], high = [1, 0], interior = [0, "
    "1] : (tensor<7x30xf32>, tensor<f32>) -> tensor<6x59xf32>\n"
    "return %0 : tensor<6x59xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<7x30xf32>, %p: tensor<f32>) -> "
    "tensor<22x30xf32> {\n"
    "%0 = stablehlo.pad %x, %p, low = [1, 0], high = [2, 0], interior = [2, 0] "
    ": (tensor<7x30xf32>, tensor<f32>) -> tensor<22x30xf32>\n"
    "return %0 : tensor<22x30xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<0x30xf32>, %p: tensor<f32>) -> "
    "tensor<3x30xf32> {\n"
    "%0 = stablehlo.pad %x, %p, low = [1, 0], high = [2, 0], interior = [2, 0] "
    ": (tensor<0x30xf32>, tensor<f32>) -> tensor<3x30xf32>\n"
    "return %0 : tensor<3x30xf32>\n}",
    0, 0 },
  // as large as before, with gaps
  { "func.func @main(%x: tensor<5x2xf32>, %p: tensor<f32>) -> tensor<5x2xf32> "
    "{\n"
    "%0 = stablehlo.pad %x, %p, low = [0, 0], high = [0, -1], interior = [0, "
    "1] : (tensor<5x2xf32>, tensor<f32>) -> tensor<5x2xf32>\n"
    "return %0 : tensor<5x2xf32>\n}",
    0, 0 },
  // a bias under a pad: read where no lane counts
  { "func.func @main(%b: tensor<2xf32>, %p: tensor<f32>) -> tensor<96xf32> {\n"
    "%0 = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<2xf32>) -> "
    "tensor<2x16xf32>\n"
    "%1 = stablehlo.reshape %0 : (tensor<2x16xf32>) -> tensor<32xf32>\n"
    "%2 = stablehlo.pad %1, %p, low = [32], high = [32], interior = [0] : "
    "(tensor<32xf32>, tensor<f32>) -> tensor<96xf32>\n"
    "return %2 : tensor<96xf32>\n}",
    0, 0 },
  // concatenate
  { "func.func @main(%x: tensor<3x20xf32>, %y: tensor<3x5xf32>, %z: "
    "tensor<3x0xf32>) -> tensor<3x45xf32> {\n"
    "%0 = stablehlo.concatenate %x, %z, %y, %x, dim = 1 : (tensor<3x20xf32>, "
    "tensor<3x0xf32>, tensor<3x5xf32>, tensor<3x20xf32>) -> tensor<3x45xf32>\n"
    "return %0 : tensor<3x45xf32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<2x20xf64>, %y: tensor<3x20xf64>) -> "
    "tensor<5x20xf64> {\n"
    "%n = stablehlo.negate %y : tensor<3x20xf64>\n"
    "%0 = stablehlo.concatenate %x, %n, dim = 0 : (tensor<2x20xf64>, "
    "tensor<3x20xf64>) -> tensor<5x20xf64>\n"
    "return %0 : tensor<5x20xf64>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<40x2x2xf32>) -> tensor<40x4x2xf32> {\n"
    "%0 = stablehlo.concatenate %x, %x, dim = 1 : (tensor<40x2x2xf32>, "
    "tensor<40x2x2xf32>) -> tensor<40x4x2xf32>\n"
    "return %0 : tensor<40x4x2xf32>\n}",
    0, 0 },
  // iota and literals
  { "func.func @main(%x: tensor<4x21xi32>) -> tensor<4x21xi32> {\n"
    "%0 = stablehlo.iota dim = 1 : tensor<4x21xi32>\n"
    "%1 = stablehlo.iota dim = 0 : tensor<4x21xi32>\n"
    "%2 = stablehlo.multiply %0, %1 : tensor<4x21xi32>\n"
    "%3 = stablehlo.add %2, %x : tensor<4x21xi32>\n"
    "return %3 : tensor<4x21xi32>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xi1>) "
    "{\n"
    "%0 = stablehlo.constant dense<[[1.0, 2.0, 3.0], [-0.0, 0x7F800000, 0.5], "
    "[7.0, 8.0, 9.0]]> : tensor<3x3xf32>\n"
    "%1 = stablehlo.add %x, %0 : tensor<3x3xf32>\n"
    "%2 = stablehlo.constant dense<[[true, false, true], [false, false, true], "
    "[true, true, true]]> : tensor<3x3xi1>\n"
    "return %1, %2 : tensor<3x3xf32>, tensor<3x3xi1>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<70xbf16>) -> tensor<70xbf16> {\n"
    "%0 = stablehlo.iota dim = 0 : tensor<70xbf16>\n"
    "return %0 : tensor<70xbf16>\n}",
    0, 0 },
  { "func.func @main(%x: tensor<f32>) -> tensor<3x7xcomplex<f32>> {\n"
    "%0 = stablehlo.iota dim = 1 : tensor<3x7xcomplex<f32>>\n"
    "return %0 : tensor<3x7xcomplex<f32>>\n}",
    0, 0 },
  // gather: rows of a table, and elements
  { "func.func @main(%x: tensor<11x33xf32>, %i: tensor<4x5xi32>) -> "
    "tensor<4x5x33xf32> {\n"
    "%0 = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = "
    "#stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], "
    "start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, "
    "33>}> : (tensor<11x33xf32>, tensor<4x5xi32>) -> tensor<4x5x33xf32>\n"
    "return %0 : tensor<4x5x33xf32>\n}",
    0, HARNESS_PLAIN },
  { "func.func @main(%x: tensor<11x33xf32>, %i: tensor<37x2xi64>) -> "
    "tensor<37xf32> {\n"
    "%0 = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = "
    "#stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, "
    "1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : "
    "(tensor<11x33xf32>, tensor<37x2xi64>) -> tensor<37xf32>\n"
    "return %0 : tensor<37xf32>\n}",
    0, HARNESS_COUNT },
  { "func.func @main(%x: tensor<6x9x4xf32>, %i: tensor<6x3xi32>) -> "
    "tensor<6x3x4xf32> {\n"
    "%0 = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = "
    "#stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], "
    "operand_batching_dims = [0], start_indices_batching_dims = [0], "
    "start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, "
    "1, 4>}> : (tensor<6x9x4xf32>, tensor<6x3xi32>) -> tensor<6x3x4xf32>\n"
    "return %0 : tensor<6x3x4xf32>\n}",
    0, HARNESS_COUNT },
  // transposes that are turned in squares
  { "func.func @main(%x: tensor<37x100xf32>, %b: tensor<100xf32>, %y: "
    "tensor<100x37xf32>) -> tensor<100x37xf32> {\n"
    "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<37x100xf32>) -> "
    "tensor<100x37xf32>\n"
    "%1 = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<100xf32>) -> "
    "tensor<100x37xf32>\n"
    "%2 = stablehlo.multiply %0, %1 : tensor<100x37xf32>\n"
    "%3 = stablehlo.add %2, %y : tensor<100x37xf32>\n"
    "return %3 : tensor<100x37xf32>\n}",
    0, HARNESS_PLAIN },
  { "func.func @main(%x: tensor<3x33x5x20xf32>) -> tensor<3x20x33x5xf32> {\n"
    "%0 = stablehlo.transpose %x, dims = [0, 3, 1, 2] : "
    "(tensor<3x33x5x20xf32>) -> tensor<3x20x33x5xf32>\n"
    "return %0 : tensor<3x20x33x5xf32>\n}",
    0, HARNESS_PLAIN },
  { "func.func @main(%x: tensor<48x64xcomplex<f32>>, %y: "
    "tensor<48x64xcomplex<f32>>) -> tensor<64x48xcomplex<f32>> {\n"
    "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<48x64xcomplex<f32>>) "
    "-> tensor<64x48xcomplex<f32>>\n"
    "%1 = stablehlo.transpose %y, dims = [1, 0] : (tensor<48x64xcomplex<f32>>) "
    "-> tensor<64x48xcomplex<f32>>\n"
    "%2 = stablehlo.add %0, %1 : tensor<64x48xcomplex<f32>>\n"
    "return %2 : tensor<64x48xcomplex<f32>>\n}",
    0, HARNESS_PLAIN },
  { "func.func @main(%x: tensor<64x2x64xi8>) -> tensor<64x2x64xi8> {\n"
    "%0 = stablehlo.transpose %x, dims = [2, 1, 0] : (tensor<64x2x64xi8>) -> "
    "tensor<64x2x64xi8>\n"
    "return %0 : tensor<64x2x64xi8>\n}",
    0, HARNESS_SPECIAL },
  { "func.func @main(%x: tensor<50x50xbf16>) -> tensor<50x50xf32> {\n"
    "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<50x50xbf16>) -> "
    "tensor<50x50xbf16>\n"
    "%1 = stablehlo.convert %0 : (tensor<50x50xbf16>) -> tensor<50x50xf32>\n"
    "return %1 : tensor<50x50xf32>\n}",
    0, HARNESS_SPECIAL },
  // nothing at all
  { "func.func @main(%x: tensor<0x5xf32>) -> tensor<0x5xf32> {\n"
    "%0 = stablehlo.negate %x : tensor<0x5xf32>\n"
    "return %0 : tensor<0x5xf32>\n}",
    0, 0 },
  // long enough for blocks
  { "func.func @main(%x: tensor<3x20001xf32>, %b: tensor<3xf32>) -> "
    "tensor<3x20001xf32> {\n"
    "%0 = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<3xf32>) -> "
    "tensor<3x20001xf32>\n"
    "%1 = stablehlo.subtract %x, %0 : tensor<3x20001xf32>\n"
    "return %1 : tensor<3x20001xf32>\n}",
    0, 0 },
};

static void test_cases(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    harness_check(&cases[i]);
  }
}

// Pieces that are copied: of other lengths, one empty, one computed, between
// those of others; more than a loop takes.
static void test_pieces(void **state)
{
  (void)state;
  static const char *const texts[] = {
    "func.func @main(%x: tensor<3x40xf32>, %y: tensor<3x0xf32>, %z: "
    "tensor<40x3xf32>) -> tensor<3x97xf32> {\n"
    "  %a = stablehlo.add %x, %x : tensor<3x40xf32>\n"
    "  %t = stablehlo.transpose %z, dims = [1, 0] : (tensor<40x3xf32>) -> "
    "tensor<3x40xf32>\n"
    "  %s = stablehlo.slice %x [0:3, 5:22] : (tensor<3x40xf32>) -> "
    "tensor<3x17xf32>\n"
    "  %0 = stablehlo.concatenate %a, %y, %s, %t, dim = 1 : (tensor<3x40xf32>, "
    "tensor<3x0xf32>, tensor<3x17xf32>, tensor<3x40xf32>) -> tensor<3x97xf32>\n"
    "  return %0 : tensor<3x97xf32>\n}",
    "func.func @main(%x: tensor<5000xi8>, %y: tensor<1xi8>) -> "
    "tensor<10002xi8> {\n"
    "  %0 = stablehlo.concatenate %y, %x, %x, %y, dim = 0 : (tensor<1xi8>, "
    "tensor<5000xi8>, tensor<5000xi8>, tensor<1xi8>) -> tensor<10002xi8>\n"
    "  return %0 : tensor<10002xi8>\n}",
    "func.func @main(%x: tensor<2x9x3xf32>, %y: tensor<2x8x3xf32>) -> "
    "tensor<2x77x3xf32> {\n"
    "  %0 = stablehlo.concatenate %x, %y, %x, %y, %x, %y, %x, %y, %x, dim = 1 "
    ": (tensor<2x9x3xf32>, tensor<2x8x3xf32>, tensor<2x9x3xf32>, "
    "tensor<2x8x3xf32>, tensor<2x9x3xf32>, tensor<2x8x3xf32>, "
    "tensor<2x9x3xf32>, tensor<2x8x3xf32>, tensor<2x9x3xf32>) -> "
    "tensor<2x77x3xf32>\n"
    "  return %0 : tensor<2x77x3xf32>\n}",
    // Short pieces beside a long one.
    "func.func @main(%x: tensor<7x5xf32>, %y: tensor<7x1xf32>, %z: "
    "tensor<7x194xf32>) -> tensor<7x200xf32> {\n"
    "  %0 = stablehlo.concatenate %x, %y, %z, dim = 1 : (tensor<7x5xf32>, "
    "tensor<7x1xf32>, tensor<7x194xf32>) -> tensor<7x200xf32>\n"
    "  return %0 : tensor<7x200xf32>\n}",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    harness_check(&(harness_case){ texts[i], 0, HARNESS_SPECIAL });
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_pieces),
                                      cmocka_unit_test(test_cases) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
