// Operations that move elements: each alone, in chains, and under others.
#include "engine/jit/harness.h"

#define F(sig, results, body) \
  "func.func @main(" sig ") -> " results " {\n" body "}"
#define T(s) "tensor<" s ">"

static const harness_case cases[] = {
  // broadcast_in_dim: stretched, unsorted, of a scalar
  { F("%x: " T("3x1x5xf32"), T("2x3x40x5xf32"),
      "%0 = stablehlo.broadcast_in_dim %x, dims = [1, 2, 3] : (" T(
          "3x1x5xf32") ") -> " T("2x3x40x5xf32") "\n"
                                                 "return %0 : " T(
                                                     "2x3x40x5xf32") "\n"),
    0, 0 },
  { F("%x: " T("5x20xf32"), T("20x5xf32"),
      "%0 = stablehlo.broadcast_in_dim %x, dims = [1, 0] : (" T(
          "5x20xf32") ") -> " T("20x5xf32") "\n"
                                            "return %0 : " T("20x5xf32") "\n"),
    0, 0 },
  { F("%x: " T("f32"), T("70xf32"),
      "%0 = stablehlo.broadcast_in_dim %x, dims = [] : (" T("f32") ") -> " T(
          "70xf32") "\n"
                    "return %0 : " T("70xf32") "\n"),
    0, 0 },
  // transposes
  { F("%x: " T("17x35xf32"), T("35x17xf32"),
      "%0 = stablehlo.transpose %x, dims = [1, 0] : (" T("17x35xf32") ") -> " T(
          "35x17xf32") "\n"
                       "return %0 : " T("35x17xf32") "\n"),
    0, 0 },
  { F("%x: " T("2x3x4x33xbf16"), T("4x2x3x33xbf16"),
      "%0 = stablehlo.transpose %x, dims = [2, 0, 1, 3] : (" T(
          "2x3x4x33xbf1"
          "6") ") -> " T("4x2x3x33xbf16") "\n"
                                          "return %0 : " T(
                                              "4x2x3x33xbf16") "\n"),
    0, 0 },
  { F("%x: " T("2x3x4x20xi8"), T("2x4x20x3xi8"),
      "%0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (" T(
          "2x3x4x20xi8") ") -> " T("2x4x20x3xi8") "\n"
                                                  "return %0 : " T(
                                                      "2x4x20x3xi8") "\n"),
    0, 0 },
  // reshapes that merge, split, and cross dimensions
  { F("%x: " T("6x35xf32") ", %y: " T("6x5x7xf32"), T("6x5x7xf32"),
      "%0 = stablehlo.reshape %x : (" T("6x35xf32") ") -> " T(
          "6x5x7xf32") "\n"
                       "%1 = stablehlo.add %0, %y : " T(
                           "6x5x7xf32") "\n"
                                        "return %1 : " T("6x5x7xf32") "\n"),
    0, 0 },
  { F("%x: " T("6x35xf32") ", %y: " T("10xf32"), T("21x10xf32"),
      "%0 = stablehlo.reshape %x : (" T("6x35xf32") ") -> " T(
          "21x10xf32") "\n"
                       "%1 = stablehlo.broadcast_in_dim %y, dims = [1] : (" T("10xf32") ") -> " T(
                           "21x10xf32") "\n"
                                        "%2 = stablehlo.add %0, %1 : " T(
                                            "21x10xf32") "\n"
                                                         "return %2 : " T(
                                                             "21x10xf32") "\n"),
    0, 0 },
  { F("%x: " T("6x35xf32"), T("14x15xf32"),
      "%t = stablehlo.transpose %x, dims = [1, 0] : (" T("6x35xf32") ") -> " T(
          "35x6xf32") "\n"
                      "%0 = stablehlo.reshape %t : (" T("35x6xf32") ") -> " T(
                          "14x15xf32") "\n"
                                       "return %0 : " T("14x15xf32") "\n"),
    0, 0 },
  { F("%x: " T("1x1xf32"), T("f32"),
      "%0 = stablehlo.reshape %x : (" T("1x1xf32") ") -> " T(
          "f32") "\n"
                 "return %0 : " T("f32") "\n"),
    0, 0 },
  { F("%x: " T("f32"), T("1x1xf32"),
      "%0 = stablehlo.reshape %x : (" T("f32") ") -> " T(
          "1x1xf32") "\n"
                     "return %0 : " T("1x1xf32") "\n"),
    0, 0 },
  { F(
        "%x: " T("8x32xf32"), T("8x2x1x16xf32"),
        "%b = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (" T("8x32xf32") ") -> " T(
            "8x32xf32") "\n"
                        "%0 = stablehlo.reshape %b : (" T("8x32xf32") ") -> " T(
                            "8x2x1x16xf32") "\n"
                                            "return %0 : " T(
                                                "8x2x1x16xf32") "\n"),
    0, 0 },
  // slices: contiguous, strided, of one element, of the inner dimension
  { F("%x: " T("9x50xf32"), T("4x43xf32"),
      "%0 = stablehlo.slice %x [2:6, 3:46] : (" T("9x50xf32") ") -> " T(
          "4x43xf32") "\n"
                      "return %0 : " T("4x43xf32") "\n"),
    0, 0 },
  { F("%x: " T("9x50xf32"), T("3x17xf32"),
      "%0 = stablehlo.slice %x [1:9:3, 0:50:3] : (" T("9x50xf32") ") -> " T(
          "3x17xf32") "\n"
                      "return %0 : " T("3x17xf32") "\n"),
    0, 0 },
  { F("%x: " T("9x50x2xf32"), T("9x1x2xf32"),
      "%0 = stablehlo.slice %x [0:9, 7:8, 0:2] : (" T("9x50x2xf32") ") -> " T(
          "9x1x2xf32") "\n"
                       "return %0 : " T("9x1x2xf32") "\n"),
    0, 0 },
  { F("%x: " T("9x50xf32") ", %i: " T("i32") ", %j: " T("i64"), T("4x20xf32"),
      "%0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [4, 20] : (" T(
          "9x50x"
          "f32") ", " T("i32") ", " T("i32") ") -> " T("4x20xf32") "\n"
                                                                   "return %0 "
                                                                   ": " T(
                                                                       "4x20xf3"
                                                                       "2") "\n"),
    0, 0 },
  { F("%x: " T("9x50xf32") ", %i: " T("ui8"), T("1x50xf32"),
      "%z = stablehlo.constant dense<200> : " T(
          "ui8") "\n"
                 "%0 = stablehlo.dynamic_slice %x, %z, %i, sizes = [1, 50] : "
                 "(" T("9x50xf32") ", " T("ui8") ", " T("ui8") ") -> " T(
                     "1x50xf32") "\n"
                                 "return %0 : " T("1x50xf32") "\n"),
    0, 0 },
  // reverse
  { F("%x: " T("5x37xf32"), T("5x37xf32"),
      "%0 = stablehlo.reverse %x, dims = [1] : " T(
          "5x37xf32") "\n"
                      "return %0 : " T("5x37xf32") "\n"),
    0, 0 },
  { F("%x: " T("5x37xi16"), T("5x37xi16"),
      "%0 = stablehlo.reverse %x, dims = [0, 1] : " T(
          "5x37xi16") "\n"
                      "return %0 : " T("5x37xi16") "\n"),
    0, 0 },
  // pad: around, negative, interior, of an inner dimension
  { F("%x: " T("2x5x19xf32") ", %p: " T("f32"), T("2x8x24xf32"),
      "%0 = stablehlo.pad %x, %p, low = [0, 1, 2], high = [0, 2, 3], interior "
      "= [0, 0, 0] : (" T("2x5x19xf32") ", " T("f32") ") -> " T(
          "2x8x24xf32") "\n"
                        "return %0 : " T("2x8x24xf32") "\n"),
    0, 0 },
  { F("%x: " T("7x30xf32") ", %p: " T("f32"), T("6x59xf32"),
      "%0 = stablehlo.pad %x, %p, low = [-2, 0], high = [1, 0], interior "
      "= [0, 1] : (" T("7x30xf32") ", " T("f32") ") -> " T(
          "6x59xf32") "\n"
                      "return %0 : " T("6x59xf32") "\n"),
    0, 0 },
  { F("%x: " T("7x30xf32") ", %p: " T("f32"), T("22x30xf32"),
      "%0 = stablehlo.pad %x, %p, low = [1, 0], high = [2, 0], interior "
      "= [2, 0] : (" T("7x30xf32") ", " T("f32") ") -> " T(
          "22x30xf32") "\n"
                       "return %0 : " T("22x30xf32") "\n"),
    0, 0 },
  { F("%x: " T("0x30xf32") ", %p: " T("f32"), T("3x30xf32"),
      "%0 = stablehlo.pad %x, %p, low = [1, 0], high = [2, 0], interior "
      "= [2, 0] : (" T("0x30xf32") ", " T("f32") ") -> " T(
          "3x30xf32") "\n"
                      "return %0 : " T("3x30xf32") "\n"),
    0, 0 },
  // as large as before, with gaps
  { F("%x: " T("5x2xf32") ", %p: " T("f32"), T("5x2xf32"),
      "%0 = stablehlo.pad %x, %p, low = [0, 0], high = [0, -1], interior "
      "= [0, 1] : (" T("5x2xf32") ", " T("f32") ") -> " T(
          "5x2xf32") "\n"
                     "return %0 : " T("5x2xf32") "\n"),
    0, 0 },
  // a bias under a pad: read where no lane counts
  { F("%b: " T("2xf32") ", %p: " T("f32"), T("96xf32"),
      "%0 = stablehlo.broadcast_in_dim %b, dims = [0] : (" T("2xf32") ") -> " T(
          "2x16xf32") "\n"
                      "%1 = stablehlo.reshape %0 : (" T(
                          "2x1"
                          "6xf"
                          "32") ") -> " T("32xf32") "\n"
                                                    "%2 = stablehlo.pad %1, "
                                                    "%p, low = [32], high = "
                                                    "[32], interior = [0] : "
                                                    "(" T("32xf32") ", " T(
                                                        "f3"
                                                        "2") ") -> " T("96xf32") "\n"
                                                                                 "return "
                                                                                 "%2 : " T(
                                                                                     "96xf3"
                                                                                     "2") "\n"),
    0, 0 },
  // concatenate
  {
      F("%x: " T("3x20xf32") ", %y: " T("3x5xf32") ", %z: " T("3x0xf32"),
        T("3x45xf32"),
        "%0 = stablehlo.concatenate %x, %z, %y, %x, dim = 1 : (" T("3x20xf32") ", " T(
            "3x0xf32") ", " T("3x5xf32") ", " T("3x20xf32") ") -> " T("3x45xf3"
                                                                      "2") "\n"
                                                                           "ret"
                                                                           "urn"
                                                                           " %"
                                                                           "0 "
                                                                           ":"
                                                                           " " T(
                                                                               "3x45xf32") "\n"),
      0, 0 },
  { F("%x: " T("2x20xf64") ", %y: " T("3x20xf64"), T("5x20xf64"),
      "%n = stablehlo.negate %y : " T(
          "3x20xf64") "\n"
                      "%0 = stablehlo.concatenate %x, %n, dim = 0 : (" T(
                          "2x20x"
                          "f64") ", " T("3x20xf64") ") -> " T("5x20xf64") "\n"
                                                                          "retu"
                                                                          "rn "
                                                                          "%0 "
                                                                          ":"
                                                                          " " T(
                                                                              "5x20xf64") "\n"),
    0, 0 },
  { F("%x: " T("40x2x2xf32"), T("40x4x2xf32"),
      "%0 = stablehlo.concatenate %x, %x, dim = 1 : (" T("40x2x2xf32") ", " T(
          "40x2x2xf32") ") -> " T("40x4x2xf32") "\n"
                                                "return %0 : " T(
                                                    "40x4x2xf32") "\n"),
    0, 0 },
  // iota and literals
  { F("%x: " T("4x21xi32"), T("4x21xi32"),
      "%0 = stablehlo.iota dim = 1 : " T(
          "4x21xi32") "\n"
                      "%1 = stablehlo.iota dim = 0 : " T(
                          "4x21xi32") "\n"
                                      "%2 = stablehlo.multiply %0, %1 : " T(
                                          "4x21xi32") "\n"
                                                      "%3 = stablehlo.add %2, "
                                                      "%x : " T(
                                                          "4x21xi32") "\n"
                                                                      "return "
                                                                      "%3 : " T(
                                                                          "4x21"
                                                                          "xi3"
                                                                          "2") "\n"),
    0, 0 },
  { F("%x: " T("3x3xf32"), "(" T("3x3xf32") ", " T("3x3xi1") ")",
      "%0 = stablehlo.constant dense<[[1.0, 2.0, 3.0], [-0.0, 0x7F800000, "
      "0.5], [7.0, 8.0, 9.0]]> : " T(
          "3x3xf32") "\n"
                     "%1 = stablehlo.add %x, %0 : " T(
                         "3x3xf32") "\n"
                                    "%2 = stablehlo.constant dense<[[true, "
                                    "false, true], [false, false, "
                                    "true], [true, true, true]]> : " T(
                                        "3x3xi1") "\n"
                                                  "return %1, %2 : " T(
                                                      "3x3xf32") ", " T("3x3xi"
                                                                        "1") "\n"),
    0, 0 },
  { F("%x: " T("70xbf16"), T("70xbf16"),
      "%0 = stablehlo.iota dim = 0 : " T("70xbf16") "\n"
                                                    "return %0 : " T(
                                                        "70xbf16") "\n"),
    0, 0 },
  { F("%x: " T("f32"), T("3x7xcomplex<f32>"),
      "%0 = stablehlo.iota dim = 1 : " T(
          "3x7xcomplex<f32>") "\n"
                              "return %0 : " T("3x7xcomplex<f32>") "\n"),
    0, 0 },
  // gather: rows of a table, and elements
  { F("%x: " T("11x33xf32") ", %i: " T("4x5xi32"), T("4x5x33xf32"),
      "%0 = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = "
      "#stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], "
      "start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: "
      "1, 33>}> : (" T("11x33xf32") ", " T("4x5xi32") ") -> " T(
          "4x5x33xf32") "\n"
                        "return %0 : " T("4x5x33xf32") "\n"),
    0, HARNESS_PLAIN },
  { F("%x: " T("11x33xf32") ", %i: " T("37x2xi64"), T("37xf32"),
      "%0 = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = "
      "#stablehlo.gather<collapsed_slice_dims = [0, 1], "
      "start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = "
      "array<i64: 1, 1>}> : (" T("11x33xf32") ", " T("37x2xi64") ") -> " T(
          "37xf32") "\n"
                    "return %0 : " T("37xf32") "\n"),
    0, HARNESS_COUNT },
  { F("%x: " T("6x9x4xf32") ", %i: " T("6x3xi32"), T("6x3x4xf32"),
      "%0 = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = "
      "#stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], "
      "operand_batching_dims = [0], start_indices_batching_dims = [0], "
      "start_index_map = [1], index_vector_dim = 2>, slice_sizes = "
      "array<i64: 1, 1, 4>}> : (" T("6x9x4xf32") ", " T("6x3xi32") ") -> " T(
          "6x3x4xf32") "\n"
                       "return %0 : " T("6x3x4xf32") "\n"),
    0, HARNESS_COUNT },
  // transposes that are turned in squares
  { F("%x: " T("37x100xf32") ", %b: " T("100xf32") ", %y: " T("100x37xf32"),
      T("100x37xf32"),
      "%0 = stablehlo.transpose %x, dims = [1, 0] : (" T(
          "37x100xf32") ") -> " T("100x37xf32") "\n"
                                                "%1 = "
                                                "stablehlo.broadcast_in_dim "
                                                "%b, dims = [0] : (" T(
                                                    "100xf"
                                                    "32") ") -> " T("100x37xf3"
                                                                    "2") "\n"
                                                                         "%2 = "
                                                                         "stabl"
                                                                         "ehlo."
                                                                         "multi"
                                                                         "ply "
                                                                         "%0, "
                                                                         "%1 "
                                                                         ": " T(
                                                                             "1"
                                                                             "0"
                                                                             "0"
                                                                             "x"
                                                                             "3"
                                                                             "7"
                                                                             "x"
                                                                             "f"
                                                                             "3"
                                                                             "2") "\n"
                                                                                  "%3 = stablehlo.add %2, %y : " T(
                                                                                      "100x37xf32") "\n"
                                                                                                    "return %3 : " T(
                                                                                                        "100x37xf32") "\n"),
    0, HARNESS_PLAIN },
  { F("%x: " T("3x33x5x20xf32"), T("3x20x33x5xf32"),
      "%0 = stablehlo.transpose %x, dims = [0, 3, 1, 2] : (" T(
          "3x33x5x20xf3"
          "2") ") -> " T("3x20x33x5xf32") "\n"
                                          "return %0 : " T(
                                              "3x20x33x5xf32") "\n"),
    0, HARNESS_PLAIN },
  { F("%x: " T("48x64xcomplex<f32>") ", %y: " T("48x64xcomplex<f32>"),
      T("64x48xcomplex<f32>"),
      "%0 = stablehlo.transpose %x, dims = [1, 0] : (" T("48x64xcomplex<f32>") ") -> " T(
          "64x48xcomplex<f32>") "\n"
                                "%1 = stablehlo.transpose %y, dims = [1, 0] : "
                                "(" T("48x64xcomplex<f32>") ") -> " T(
                                    "64x48xcomplex<f32>") "\n"
                                                          "%2 = stablehlo.add "
                                                          "%0, %1 : " T(
                                                              "64x48xcomplex<"
                                                              "f32>") "\n"
                                                                      "return "
                                                                      "%2 : " T(
                                                                          "64x4"
                                                                          "8xco"
                                                                          "mple"
                                                                          "x<"
                                                                          "f32"
                                                                          ">") "\n"),
    0, HARNESS_PLAIN },
  { F("%x: " T("64x2x64xi8"), T("64x2x64xi8"),
      "%0 = stablehlo.transpose %x, dims = [2, 1, 0] : (" T(
          "64x2x64xi8") ") -> " T("64x2x64xi8") "\n"
                                                "return %0 : " T(
                                                    "64x2x64xi8") "\n"),
    0, HARNESS_SPECIAL },
  { F("%x: " T("50x50xbf16"), T("50x50xf32"),
      "%0 = stablehlo.transpose %x, dims = [1, 0] : (" T(
          "50x50xbf16") ") -> " T("50x50xbf16") "\n"
                                                "%1 = stablehlo.convert %0 : "
                                                "(" T("50x50xbf16") ") -> " T(
                                                    "50x50xf32") "\n"
                                                                 "return %1 "
                                                                 ": " T(
                                                                     "50x50xf3"
                                                                     "2") "\n"),
    0, HARNESS_SPECIAL },
  // nothing at all
  { F("%x: " T("0x5xf32"), T("0x5xf32"),
      "%0 = stablehlo.negate %x : " T("0x5xf32") "\n"
                                                 "return %0 : " T(
                                                     "0x5xf32") "\n"),
    0, 0 },
  // long enough for blocks
  { F("%x: " T("3x20001xf32") ", %b: " T("3xf32"), T("3x20001xf32"),
      "%0 = stablehlo.broadcast_in_dim %b, dims = [0] : (" T("3xf32") ") -> " T(
          "3x20001xf32") "\n"
                         "%1 = stablehlo.subtract %x, %0 : " T(
                             "3x20001xf32") "\n"
                                            "return %1 : " T(
                                                "3x20001xf32") "\n"),
    0, 0 },
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
