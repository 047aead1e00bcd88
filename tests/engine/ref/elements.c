// Elementwise operations: the edges of every class of types.
#include <math.h>
#include <string.h>

#include "hlo/number.h"
#include "program.h"

#define UNARY(name, type, a, want)                                 \
  gives("%0 = stablehlo.constant dense<" a "> : " type             \
        "\n%r = \"stablehlo." name "\"(%0) : (" type ") -> " type, \
        type, want)
#define BINARY(name, type, a, b, want)                             \
  gives("%0 = stablehlo.constant dense<" a "> : " type             \
        "\n%1 = stablehlo.constant dense<" b "> : " type           \
        "\n%r = \"stablehlo." name "\"(%0, %1) : (" type ", " type \
        ") -> " type,                                              \
        type, want)
#define CONVERT(from, a, to, want)                              \
  gives("%0 = stablehlo.constant dense<" a "> : " from          \
        "\n%r = \"stablehlo.convert\"(%0) : (" from ") -> " to, \
        to, want)

static void test_integers_wrap(void **state)
{
  (void)state;
  BINARY("add", "tensor<3xi8>", "[127, -128, 5]", "[1, -1, 6]",
         "[-128, 127, 11]");
  BINARY("multiply", "tensor<2xi32>", "[65536, -2147483648]", "[65536, -1]",
         "[0, -2147483648]");
  BINARY("add", "tensor<2xi4>", "[7, -8]", "[1, -1]", "[-8, 7]");
  BINARY("subtract", "tensor<2xui2>", "[0, 3]", "[1, 1]", "[3, 2]");
  BINARY("multiply", "tensor<1xi64>", "[9223372036854775807]", "[2]", "[-2]");
  UNARY("negate", "tensor<2xi16>", "[-32768, 4]", "[-32768, -4]");
  UNARY("abs", "tensor<2xi8>", "[-128, -3]", "[-128, 3]");
}

static void test_division_never_traps(void **state)
{
  (void)state;
  BINARY("divide", "tensor<4xi32>", "[7, -7, 5, -2147483648]", "[2, 2, 0, -1]",
         "[3, -3, -1, -2147483648]");
  BINARY("divide", "tensor<2xui8>", "[200, 9]", "[7, 0]", "[28, 255]");
  BINARY("divide", "tensor<1xi64>", "[-9223372036854775808]", "[-1]",
         "[-9223372036854775808]");
  BINARY("remainder", "tensor<4xi32>", "[7, -7, 5, -2147483648]",
         "[2, 2, 0, -1]", "[1, -1, 5, 0]");
  BINARY("remainder", "tensor<2xui64>", "[18446744073709551615, 9]", "[10, 0]",
         "[5, 9]");
}

static void test_integer_powers(void **state)
{
  (void)state;
  BINARY("power", "tensor<6xi32>", "[2, 3, -1, -1, 5, 0]",
         "[10, 0, -3, 4, -1, 0]", "[1024, 1, -1, 1, 0, 1]");
  BINARY("power", "tensor<1xui8>", "[3]", "[200]", "[161]");
}

static void test_shifts(void **state)
{
  (void)state;
  BINARY("shift_left", "tensor<3xi8>", "[1, 1, -1]", "[7, 8, 1]",
         "[-128, 0, -2]");
  BINARY("shift_right_logical", "tensor<3xi8>", "[-1, -1, -1]", "[4, 8, -1]",
         "[15, 0, 0]");
  BINARY("shift_right_arithmetic", "tensor<3xi8>", "[-128, -128, 64]",
         "[3, 100, 9]", "[-16, -1, 0]");
  BINARY("shift_right_arithmetic", "tensor<2xui8>", "[128, 64]", "[1, 1]",
         "[192, 32]");
  BINARY("shift_left", "tensor<1xi64>", "[1]", "[64]", "[0]");
}

static void test_bits(void **state)
{
  (void)state;
  UNARY("popcnt", "tensor<3xi8>", "[-1, 0, 5]", "[8, 0, 2]");
  UNARY("count_leading_zeros", "tensor<3xi16>", "[0, 1, -1]", "[16, 15, 0]");
  UNARY("count_leading_zeros", "tensor<1xui4>", "[3]", "[2]");
  UNARY("not", "tensor<2xi1>", "[true, false]", "[false, true]");
  UNARY("not", "tensor<1xui8>", "[5]", "[250]");
  BINARY("xor", "tensor<1xi32>", "[12]", "[10]", "[6]");
  BINARY("add", "tensor<4xi1>", "[0, 0, 1, 1]", "[0, 1, 0, 1]", "[0, 1, 1, 1]");
  BINARY("multiply", "tensor<4xi1>", "[0, 0, 1, 1]", "[0, 1, 0, 1]",
         "[0, 0, 0, 1]");
  BINARY("maximum", "tensor<2xi1>", "[0, 1]", "[1, 0]", "[1, 1]");
  BINARY("maximum", "tensor<2xui64>", "[18446744073709551615, 1]", "[1, 2]",
         "[18446744073709551615, 2]");
}

static void test_floats(void **state)
{
  (void)state;
  BINARY("maximum", "tensor<4xf32>", "[0x7FC00000, 1.0, -0.0, 2.0]",
         "[1.0, 0x7FC00000, 0.0, 3.0]", "[0x7FC00000, 0x7FC00000, 0.0, 3.0]");
  BINARY("minimum", "tensor<3xf32>", "[0x7FC00000, -0.0, 2.0]",
         "[1.0, 0.0, 3.0]", "[0x7FC00000, -0.0, 2.0]");
  UNARY("sign", "tensor<5xf32>", "[-0.0, 0.0, -3.0, 4.0, 0x7FC00000]",
        "[-0.0, 0.0, -1.0, 1.0, 0x7FC00000]");
  UNARY("round_nearest_even", "tensor<4xf32>", "[0.5, 1.5, -2.5, 2.4]",
        "[0.0, 2.0, -2.0, 2.0]");
  UNARY("round_nearest_afz", "tensor<4xf32>", "[0.5, 1.5, -2.5, 2.4]",
        "[1.0, 2.0, -3.0, 2.0]");
  BINARY("remainder", "tensor<2xf32>", "[5.5, -5.5]", "[2.0, 2.0]",
         "[1.5, -1.5]");
  UNARY("logistic", "tensor<3xf32>", "[0.0, -200.0, 200.0]", "[0.5, 0.0, 1.0]");
  UNARY("rsqrt", "tensor<2xf64>", "[4.0, 0.0]", "[0.5, 0x7FF0000000000000]");
  // 1 + 2^-24 is a tie, which goes to even.
  BINARY("add", "tensor<2xf32>", "[1.0, 1.0]",
         "[5.96046448e-08, 1.1920929e-07]", "[1.0, 0x3F800001]");
  BINARY("add", "tensor<2xbf16>", "[256.0, 256.0]", "[1.0, 3.0]",
         "[256.0, 260.0]");
  BINARY("multiply", "tensor<1xf16>", "[300.0]", "[300.0]", "[0x7C00]");
}

static void test_complex(void **state)
{
  (void)state;
  BINARY("multiply", "tensor<1xcomplex<f32>>", "[(1.0, 2.0)]", "[(3.0, -1.0)]",
         "[(5.0, 5.0)]");
  BINARY("divide", "tensor<1xcomplex<f32>>", "[(5.0, 5.0)]", "[(3.0, -1.0)]",
         "[(1.0, 2.0)]");
  BINARY("maximum", "tensor<2xcomplex<f32>>", "[(1.0, 2.0), (3.0, 0.0)]",
         "[(1.0, 3.0), (2.0, 9.0)]", "[(1.0, 3.0), (3.0, 0.0)]");
  gives(
      "%0 = stablehlo.constant dense<[(3.0, -4.0)]> : tensor<1xcomplex<f32>>"
      "\n%r = \"stablehlo.abs\"(%0) : (tensor<1xcomplex<f32>>) -> "
      "tensor<1xf32>",
      "tensor<1xf32>", "[5.0]");
  UNARY("sign", "tensor<2xcomplex<f32>>", "[(3.0, 4.0), (0.0, 0.0)]",
        "[(0.6, 0.8), (0.0, 0.0)]");
}

static void test_converts(void **state)
{
  (void)state;
  CONVERT("tensor<5xf32>", "[1.9, -1.9, 300.0, -300.0, 0x7FC00000]",
          "tensor<5xi8>", "[1, -1, 127, -128, 0]");
  CONVERT("tensor<3xf32>", "[-1.0, 4e9, 1e20]", "tensor<3xui32>",
          "[0, 4000000000, 4294967295]");
  CONVERT("tensor<2xf32>", "[1e30, -1e30]", "tensor<2xi64>",
          "[9223372036854775807, -9223372036854775808]");
  CONVERT("tensor<3xi32>", "[300, -129, 2]", "tensor<3xi8>", "[44, 127, 2]");
  CONVERT("tensor<2xi32>", "[9, -1]", "tensor<2xi4>", "[-7, -1]");
  CONVERT("tensor<3xf32>", "[0.5, 0.0, 0x7FC00000]", "tensor<3xi1>",
          "[true, false, true]");
  CONVERT("tensor<2xi1>", "[true, false]", "tensor<2xf32>", "[1.0, 0.0]");
  CONVERT("tensor<1xi32>", "[16777217]", "tensor<1xf32>", "[16777216.0]");
  // Half way but for one: through a double it would go to even.
  CONVERT("tensor<1xi64>", "[9007200328482817]", "tensor<1xf32>",
          "[0x5A000001]");
  CONVERT("tensor<1xui64>", "[18446744073709551615]", "tensor<1xf64>",
          "[18446744073709551616.0]");
  CONVERT("tensor<1xcomplex<f32>>", "[(2.5, 3.0)]", "tensor<1xi32>", "[2]");
  CONVERT("tensor<1xf32>", "[2.5]", "tensor<1xcomplex<f64>>", "[(2.5, 0.0)]");
}

static void test_small_floats(void **state)
{
  (void)state;
  CONVERT("tensor<4xf32>", "[448.0, 1000.0, 0x7F800000, 17.0]",
          "tensor<4xf8E4M3FN>", "[448.0, 0x7F, 0x7F, 16.0]");
  CONVERT("tensor<3xf32>", "[57344.0, 1e6, -1e6]", "tensor<3xf8E5M2>",
          "[57344.0, 0x7C, 0xFC]");
  CONVERT("tensor<2xf32>", "[-0.0, 0x7FC00000]", "tensor<2xf8E4M3FNUZ>",
          "[0.0, 0x80]");
  CONVERT("tensor<3xf32>", "[5.0, 100.0, -2.5]", "tensor<3xf4E2M1FN>",
          "[4.0, 6.0, -2.0]");
  CONVERT("tensor<2xf8E4M3FN>", "[0x38, 0x7F]", "tensor<2xf32>",
          "[1.0, 0x7FC00000]");
  BINARY("add", "tensor<1xf8E5M2>", "[1.0]", "[0.125]", "[1.0]");
}

// All f16 and bf16 numbers, and what lies between them, against hlo/number.
static void test_sixteen_bits(void **state)
{
  (void)state;
  static double between[2 * 65536];
  static uint16_t got[2 * 65536];
  static const cx_hlo_elem types[] = { CX_HLO_F16, CX_HLO_BF16 };
  for (size_t t = 0; t < 2; t++) {
    for (uint32_t i = 0; i < 65536; i++) {
      const double a = cx_hlo_bits_to_real(types[t], i);
      const double b = cx_hlo_bits_to_real(types[t], (i + 1) & 0xffff);
      between[2 * i] = a;
      between[2 * i + 1] = (a + b) / 2;
    }
    program p = program_open(
        t == 0 ? "func.func @main(%x: tensor<131072xf64>) -> "
                 "tensor<131072xf16> {\n%r = stablehlo.convert %x : "
                 "(tensor<131072xf64>) -> tensor<131072xf16>\nreturn %r : "
                 "tensor<131072xf16>\n}"
               : "func.func @main(%x: tensor<131072xf64>) -> "
                 "tensor<131072xbf16> {\n%r = stablehlo.convert %x : "
                 "(tensor<131072xf64>) -> tensor<131072xbf16>\nreturn %r : "
                 "tensor<131072xbf16>\n}",
        true);
    const void *in[] = { between };
    void *out[] = { got };
    assert_null(program_run(&p, in, out, NULL));
    for (size_t i = 0; i < 2 * 65536; i++) {
      const uint64_t want = cx_hlo_real_to_bits(types[t], between[i]);
      if (isnan(between[i])) {
        assert_true(isnan(cx_hlo_bits_to_real(types[t], got[i])));
      } else if (got[i] != want) {
        print_error("%a becomes 0x%04x, not 0x%04x\n", between[i],
                    (unsigned)got[i], (unsigned)want);
        fail();
      }
    }
    program_close(&p);
  }
}

static void test_compare(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[0x7FC00000, 1.0, -0.0]> : tensor<3xf32>"
      "\n%1 = stablehlo.constant dense<[0x7FC00000, 2.0, 0.0]> : "
      "tensor<3xf32>"
      "\n%r = stablehlo.compare NE, %0, %1, FLOAT : (tensor<3xf32>, "
      "tensor<3xf32>) -> tensor<3xi1>",
      "tensor<3xi1>", "[true, true, false]");
  gives(
      "%0 = stablehlo.constant dense<[0x7FC00000, 0xFFC00000, -0.0]> : "
      "tensor<3xf32>"
      "\n%1 = stablehlo.constant dense<[0x7F800000, 0xFF800000, 0.0]> : "
      "tensor<3xf32>"
      "\n%r = stablehlo.compare LT, %0, %1, TOTALORDER : (tensor<3xf32>, "
      "tensor<3xf32>) -> tensor<3xi1>",
      "tensor<3xi1>", "[false, true, true]");
  gives(
      "%0 = stablehlo.constant dense<[-1, 3]> : tensor<2xi8>"
      "\n%1 = stablehlo.constant dense<[1, 3]> : tensor<2xi8>"
      "\n%r = stablehlo.compare GE, %0, %1, SIGNED : (tensor<2xi8>, "
      "tensor<2xi8>) -> tensor<2xi1>",
      "tensor<2xi1>", "[false, true]");
  gives(
      "%0 = stablehlo.constant dense<[255, 3]> : tensor<2xui8>"
      "\n%1 = stablehlo.constant dense<[1, 3]> : tensor<2xui8>"
      "\n%r = stablehlo.compare GT, %0, %1, UNSIGNED : (tensor<2xui8>, "
      "tensor<2xui8>) -> tensor<2xi1>",
      "tensor<2xi1>", "[true, false]");
}

static void test_select_clamp(void **state)
{
  (void)state;
  gives(
      "%p = stablehlo.constant dense<false> : tensor<i1>"
      "\n%0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>"
      "\n%1 = stablehlo.constant dense<[3, 4]> : tensor<2xi32>"
      "\n%r = stablehlo.select %p, %0, %1 : tensor<i1>, tensor<2xi32>",
      "tensor<2xi32>", "[3, 4]");
  gives(
      "%l = stablehlo.constant dense<-1.0> : tensor<f32>"
      "\n%0 = stablehlo.constant dense<[-3.0, 0.5, 7.0]> : tensor<3xf32>"
      "\n%h = stablehlo.constant dense<[1.0, 1.0, 2.0]> : tensor<3xf32>"
      "\n%r = stablehlo.clamp %l, %0, %h : (tensor<f32>, tensor<3xf32>, "
      "tensor<3xf32>) -> tensor<3xf32>",
      "tensor<3xf32>", "[-1.0, 0.5, 2.0]");
}

static void test_reduce_precision(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[1.1, 70000.0, 1e-6, 0x7FC00000]> : "
      "tensor<4xf32>"
      "\n%r = stablehlo.reduce_precision %0, format = e5m10 : tensor<4xf32>",
      "tensor<4xf32>", "[1.0996094, 0x7F800000, 0.0, 0x7FC00000]");
  gives(
      "%0 = stablehlo.constant dense<[0x7FC00000, 1.5, 3.0]> : tensor<3xf32>"
      "\n%r = stablehlo.reduce_precision %0, format = e8m0 : tensor<3xf32>",
      "tensor<3xf32>", "[0x7F800000, 2.0, 4.0]");
}

static void test_bitcasts(void **state)
{
  (void)state;
  gives(
      "%0 = stablehlo.constant dense<[1.0]> : tensor<1xf32>"
      "\n%r = stablehlo.bitcast_convert %0 : (tensor<1xf32>) -> "
      "tensor<1x4xui8>",
      "tensor<1x4xui8>", "[[0, 0, 128, 63]]");
  gives(
      "%0 = stablehlo.constant dense<[[0, 0, 128, 63]]> : tensor<1x4xui8>"
      "\n%r = stablehlo.bitcast_convert %0 : (tensor<1x4xui8>) -> "
      "tensor<1xf32>",
      "tensor<1xf32>", "[1.0]");
  gives(
      "%0 = stablehlo.constant dense<[5]> : tensor<1xui8>"
      "\n%r = stablehlo.bitcast_convert %0 : (tensor<1xui8>) -> "
      "tensor<1x8xi1>",
      "tensor<1x8xi1>", "[[1, 0, 1, 0, 0, 0, 0, 0]]");
  gives(
      "%0 = stablehlo.constant dense<[[-1, 1]]> : tensor<1x2xi4>"
      "\n%r = stablehlo.bitcast_convert %0 : (tensor<1x2xi4>) -> "
      "tensor<1xui8>",
      "tensor<1xui8>", "[31]");
  gives(
      "%0 = stablehlo.constant dense<[-1]> : tensor<1xi4>"
      "\n%r = stablehlo.bitcast_convert %0 : (tensor<1xi4>) -> tensor<1xui4>",
      "tensor<1xui4>", "[15]");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_integers_wrap),
    cmocka_unit_test(test_division_never_traps),
    cmocka_unit_test(test_integer_powers),
    cmocka_unit_test(test_shifts),
    cmocka_unit_test(test_bits),
    cmocka_unit_test(test_floats),
    cmocka_unit_test(test_complex),
    cmocka_unit_test(test_converts),
    cmocka_unit_test(test_small_floats),
    cmocka_unit_test(test_sixteen_bits),
    cmocka_unit_test(test_compare),
    cmocka_unit_test(test_select_clamp),
    cmocka_unit_test(test_reduce_precision),
    cmocka_unit_test(test_bitcasts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
