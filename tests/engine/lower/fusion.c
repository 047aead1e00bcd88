// What the loops of a program read and write: values are computed again where
// they are cheap, sums share a loop, rows stay where they are. Most tests count
// the bytes.
#include "compiled.h"

#include <string.h>

// In a training step two loops read a product, with another product between
// them. What both make of it, or of an argument, here a tanh, is computed
// twice; a tanh of two tensors is written and read.
static void recomputed(void **unused)
{
  (void)unused;
  static const struct {
    const char *factors;
    double mib;  // read and written by all loops and products
  } cases[] = { { "%p, %c", 5 + 4 + 5 + 6 },
                { "%x, %c", 5 + 6 + 5 + 6 },
                { "%p, %x", 5 + 8 + 5 + 6 } };
  for (size_t i = 0; i < 3; i++) {
    cx_text text = { 0 };
    cx_text_format(
        &text,
        "func.func @main(%%x: tensor<1024x512xf32>, %%w: tensor<512x512xf32>) "
        "-> tensor<1024x512xf32> {\n"
        "%%c = stablehlo.constant dense<2.0> : tensor<1024x512xf32>\n"
        "%%p = stablehlo.dot_general %%x, %%w, contracting_dims = [1] x [0] : "
        "(tensor<1024x512xf32>, tensor<512x512xf32>) -> tensor<1024x512xf32>\n"
        "%%a = stablehlo.multiply %s : tensor<1024x512xf32>\n"
        "%%t = stablehlo.tanh %%a : tensor<1024x512xf32>\n"
        "%%y = stablehlo.multiply %%t, %%p : tensor<1024x512xf32>\n"
        "%%z = stablehlo.dot_general %%y, %%w, contracting_dims = [1] x [0] : "
        "(tensor<1024x512xf32>, tensor<512x512xf32>) -> tensor<1024x512xf32>\n"
        "%%r = stablehlo.multiply %%z, %%t : tensor<1024x512xf32>\n"
        "return %%r : tensor<1024x512xf32> }",
        cases[i].factors);
    cpu_run_program *p = compiled(&text);
    assert_float_equal(cpu_run_program_info_of(p)->work.bytes,
                       cases[i].mib * 1048576, 1);
    cpu_run_program_free(p);
  }
}

// As in a normalisation and its gradient: the second sum's loop goes on with
// something made of the first sum, which another loop reads too. It is computed
// twice or, as the logarithm, written. Both sums come from one pass over x.
static void share_a_loop(const char *made)
{
  cx_text text = { 0 };
  cx_text_format(
      &text,
      "func.func @main(%%x: tensor<4096x64xf32>, %%m: tensor<64xf32>, %%p: "
      "tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {\n"
      "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%%s = stablehlo.reduce(%%x init: %%z) applies stablehlo.add across "
      "dimensions = [0] : (tensor<4096x64xf32>, tensor<f32>) -> "
      "tensor<64xf32>\n"
      "%%n = stablehlo.%s %%s : tensor<64xf32>\n"
      "%%q = stablehlo.multiply %%x, %%x : tensor<4096x64xf32>\n"
      "%%t = stablehlo.reduce(%%q init: %%z) applies stablehlo.add across "
      "dimensions = [0] : (tensor<4096x64xf32>, tensor<f32>) -> "
      "tensor<64xf32>\n"
      "%%a = stablehlo.multiply %%m, %%n : tensor<64xf32>\n"
      "%%b = stablehlo.add %%a, %%t : tensor<64xf32>\n"
      "%%c = stablehlo.add %%n, %%p : tensor<64xf32>\n"
      "return %%b, %%c : tensor<64xf32>, tensor<64xf32> }",
      made);
  cpu_run_program *p = compiled(&text);
  const double bytes = cpu_run_program_info_of(p)->work.bytes;
  assert_true(bytes >= 1048576 && bytes < 1.5 * 1048576);
  cpu_run_program_free(p);
}

static void sums_share_a_loop(void **unused)
{
  (void)unused;
  share_a_loop("negate");
  share_a_loop("log");
}

// As in the gradient of a bias in front of a pooling: the windows lie side by
// side, so that both loops may compute the sum of x and the bias where they
// read it. Where they overlap it is written.
static void pooled(int stride, double mib)
{
  cx_text text = { 0 };
#define POOL                                                      \
  "window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = " \
  "array<i64: 1, %d, %d, 1>"
  const int size = (128 - 2) / stride + 1;
  cx_text_format(
      &text,
      "func.func @main(%%x: tensor<4x128x128x16xf32>, %%w: tensor<16xf32>) -> "
      "(tensor<4x%dx%dx16xf32>, tensor<4x128x128x16xf32>) {\n"
      "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%%b = stablehlo.broadcast_in_dim %%w, dims = [3] : (tensor<16xf32>) -> "
      "tensor<4x128x128x16xf32>\n"
      "%%y = stablehlo.add %%x, %%b : tensor<4x128x128x16xf32>\n"
      "%%p = \"stablehlo.reduce_window\"(%%y, %%z) ({\n"
      "^bb0(%%i: tensor<f32>, %%j: tensor<f32>):\n"
      "%%m = stablehlo.maximum %%i, %%j : tensor<f32>\n"
      "stablehlo.return %%m : tensor<f32> }) {" POOL
      "} : (tensor<4x128x128x16xf32>, tensor<f32>) -> "
      "tensor<4x%dx%dx16xf32>\n"
      "%%g = \"stablehlo.select_and_scatter\"(%%y, %%p, %%z) ({\n"
      "^bb0(%%i: tensor<f32>, %%j: tensor<f32>):\n"
      "%%m = stablehlo.compare GE, %%i, %%j : (tensor<f32>, tensor<f32>) -> "
      "tensor<i1>\n"
      "stablehlo.return %%m : tensor<i1> }, {\n"
      "^bb0(%%i: tensor<f32>, %%j: tensor<f32>):\n"
      "%%m = stablehlo.add %%i, %%j : tensor<f32>\n"
      "stablehlo.return %%m : tensor<f32> }) {" POOL
      "} : (tensor<4x128x128x16xf32>, tensor<4x%dx%dx16xf32>, tensor<f32>) -> "
      "tensor<4x128x128x16xf32>\n"
      "return %%p, %%g : tensor<4x%dx%dx16xf32>, tensor<4x128x128x16xf32> }",
      size, size, stride, stride, size, size, stride, stride, size, size, size,
      size);
  cpu_run_program *p = compiled(&text);
  assert_float_equal(cpu_run_program_info_of(p)->work.bytes / 1048576, mib,
                     0.01);
  cpu_run_program_free(p);
}

static void pools_compute_their_operand(void **unused)
{
  (void)unused;
  pooled(2, 4 + 1 + 4 + 1 + 4);
  pooled(1, 4 + 4 + 4 + 3.9377 + 4 + 3.9377 + 4);
}

static size_t count(const char *text, const char *word)
{
  size_t n = 0;
  for (const char *at = strstr(text, word); at != NULL; n++) {
    at = strstr(at + 1, word);
  }
  return n;
}

// Two convolutions of few channels, with a bias and a pooling between them: the
// images are transposed before the first and after the second one, unless their
// number is no multiple of 16, or a convolution has many channels.
static void convolved_twice(int images, int channels, size_t transposes)
{
#define CONVOLVED(result, x, w)                                           \
  "%%" result " = stablehlo.convolution(%%" x ", %%" w                    \
  ") dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} " \
  "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
  cx_text text = { 0 }, after = { 0 };
  cx_text_format(
      &text,
      "func.func @main(%%x: tensor<%dx1x12x12xf32>, %%v: tensor<%dx1x3x3xf32>, "
      "%%b: tensor<%dxf32>, %%w: tensor<5x%dx3x3xf32>) -> "
      "tensor<%dx5x3x3xf32> {\n" CONVOLVED("0", "x", "v")
      "(tensor<%dx1x12x12xf32>, tensor<%dx1x3x3xf32>) -> "
      "tensor<%dx%dx10x10xf32>\n"
      "%%1 = stablehlo.broadcast_in_dim %%b, dims = [1] : (tensor<%dxf32>) -> "
      "tensor<%dx%dx10x10xf32>\n"
      "%%2 = stablehlo.add %%0, %%1 : tensor<%dx%dx10x10xf32>\n"
      "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%%3 = \"stablehlo.reduce_window\"(%%2, %%z) ({\n"
      "^bb0(%%i: tensor<f32>, %%j: tensor<f32>):\n"
      "%%m = stablehlo.maximum %%i, %%j : tensor<f32>\n"
      "stablehlo.return %%m : tensor<f32> }) {window_dimensions = array<i64: "
      "1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>} : "
      "(tensor<%dx%dx10x10xf32>, tensor<f32>) -> tensor<%dx%dx5x5xf32>\n",
      images, channels, channels, channels, images, images, channels, images,
      channels, channels, images, channels, images, channels, images, channels,
      images, channels);
  cx_text_format(&text,
                 CONVOLVED("4", "3", "w")
                 "(tensor<%dx%dx5x5xf32>, tensor<5x%dx3x3xf32>) -> "
                 "tensor<%dx5x3x3xf32>\n"
                 "return %%4 : tensor<%dx5x3x3xf32> }",
                 images, channels, channels, images, images);
  const char *t = cx_text_str(&text);
  cpu_lower_compile_options options = { .threads = pool };
  CHECK_STATUS_OK(cpu_lower_optimized(t, strlen(t), &options, &after));
  assert_int_equal(count(cx_text_str(&after), "stablehlo.transpose"),
                   transposes);
  cx_text_free(&after);
  cx_text_free(&text);
}

static void images_stay_in_lanes(void **unused)
{
  (void)unused;
  convolved_twice(32, 10, 2);
  convolved_twice(24, 10, 0);
  convolved_twice(32, 64, 0);
}

// Two loops of an iteration, with a product between them, read a row of a
// tensor from outside: both read it there, and none copies it.
static void rows_are_read_in_place(void **unused)
{
  (void)unused;
  cx_text text = { 0 };
  cx_text_append(
      &text,
      "func.func @main(%x: tensor<4x64x64xf32>, %s: tensor<64x64xf32>) -> "
      "tensor<64x64xf32> {\n"
      "%z = stablehlo.constant dense<0> : tensor<i32>\n"
      "%c = stablehlo.constant dense<4> : tensor<i32>\n"
      "%one = stablehlo.constant dense<1> : tensor<i32>\n"
      "%r:2 = stablehlo.while(%i = %z, %a = %s) : tensor<i32>, "
      "tensor<64x64xf32>\n"
      "cond { %p = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) "
      "-> tensor<i1>\n"
      "stablehlo.return %p : tensor<i1> }\n"
      "do { %0 = stablehlo.dynamic_slice %x, %i, %z, %z, sizes = [1, 64, 64] : "
      "(tensor<4x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> "
      "tensor<1x64x64xf32>\n"
      "%1 = stablehlo.reshape %0 : (tensor<1x64x64xf32>) -> tensor<64x64xf32>\n"
      "%2 = stablehlo.subtract %a, %1 : tensor<64x64xf32>\n"
      "%3 = stablehlo.dot_general %2, %2, contracting_dims = [1] x [0] : "
      "(tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>\n"
      "%4 = stablehlo.multiply %3, %1 : tensor<64x64xf32>\n"
      "%j = stablehlo.add %i, %one : tensor<i32>\n"
      "stablehlo.return %j, %4 : tensor<i32>, tensor<64x64xf32> }\n"
      "return %r#1 : tensor<64x64xf32> }");
  cpu_run_program *p = compiled(&text);
  const cpu_run_program_info *info = cpu_run_program_info_of(p);
  // Of each iteration: 2 + 1, 1 + 1 (both operands are one tensor), 2 + 1.
  assert_int_equal((int)(info->work.bytes / 16384), 4 * 8);
  cpu_run_program_free(p);
}

// What a sum and a later loop read is written by the loop that adds it up, in
// the memory of a product that nothing reads any more. Of short rows, which a
// sum reads in another order, and of a long chain a loop of its own writes it,
// unless the chain has values of columns and there are many elements.
static void written_by_the_sum(void **unused)
{
  (void)unused;
  static const struct {
    int rows, columns, chain;
    bool scaled;
    int tensors;  // read and written
  } cases[] = { { 16384, 64, 1, false, 2 + 3 + 2 },
                { 16384, 8, 1, false, 2 + 3 + 1 + 2 },
                { 16384, 64, 5, false, 2 + 3 + 1 + 2 },
                { 16384, 64, 5, true, 2 + 3 + 2 },
                { 4096, 64, 5, true, 2 + 3 + 1 + 2 } };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cx_text text = { 0 };
    char t[32], row[32], square[32];
    snprintf(t, sizeof t, "tensor<%dx%dxf32>", cases[i].rows, cases[i].columns);
    snprintf(row, sizeof row, "tensor<%dxf32>", cases[i].columns);
    snprintf(square, sizeof square, "tensor<%dx%dxf32>", cases[i].columns,
             cases[i].columns);
    cx_text_format(
        &text,
        "func.func @main(%%x: %s, %%y: %s, %%w: %s, %%v: %s) -> %s {\n"
        "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%%e = stablehlo.broadcast_in_dim %%v, dims = [1] : (%s) -> %s\n"
        "%%a0 = stablehlo.dot_general %%x, %%w, contracting_dims = [1] x [0] : "
        "(%s, %s) -> %s\n",
        t, t, square, row, t, row, t, t, square, t);
    for (int k = 0; k < cases[i].chain; k++) {
      cx_text_format(&text, "%%a%d = stablehlo.tanh %%a%d : %s\n", k + 1, k, t);
    }
    cx_text_format(
        &text,
        "%%y2 = stablehlo.multiply %%y, %s : %s\n"
        "%%b = stablehlo.divide %%a%d, %%y2 : %s\n"
        "%%s = stablehlo.reduce(%%b init: %%z) applies stablehlo.add across "
        "dimensions = [0] : (%s, tensor<f32>) -> %s\n"
        "%%m = stablehlo.broadcast_in_dim %%s, dims = [1] : (%s) -> %s\n"
        "%%r = stablehlo.subtract %%b, %%m : %s\n"
        "return %%r : %s }",
        cases[i].scaled ? "%e" : "%y", t, cases[i].chain, t, t, row, row, t, t,
        t);
    cpu_run_program *p = compiled(&text);
    const cpu_run_program_info *info = cpu_run_program_info_of(p);
    const double bytes = (double)cases[i].rows * cases[i].columns * 4;
    // The sums and the right operand are small.
    assert_int_equal((int)(info->work.bytes / bytes), cases[i].tensors);
    assert_int_equal((int)((double)info->arena_bytes / bytes), 1);
    cpu_run_program_free(p);
  }
}

// A loop whose only value another loop writes is removed.
static void written_by_another(void **unused)
{
  (void)unused;
  cx_text text = { 0 };
  cx_text_append(
      &text,
      "func.func @main(%x: tensor<4xf32>, %w: tensor<12x2xf32>, %v: "
      "tensor<3x4x2xf32>) -> (tensor<2xf32>, tensor<12xf32>, tensor<3x2xf32>) "
      "{\n%y = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> "
      "tensor<3x4xf32>\n"
      "%r = stablehlo.reshape %y : (tensor<3x4xf32>) -> tensor<12xf32>\n"
      "%d = stablehlo.dot_general %r, %w, contracting_dims = [0] x [0] : "
      "(tensor<12xf32>, tensor<12x2xf32>) -> tensor<2xf32>\n"
      "%e = stablehlo.dot_general %y, %v, batching_dims = [0] x [0], "
      "contracting_dims = [1] x [1] : (tensor<3x4xf32>, tensor<3x4x2xf32>) -> "
      "tensor<3x2xf32>\n"
      "return %d, %r, %e : tensor<2xf32>, tensor<12xf32>, tensor<3x2xf32> }");
  cpu_run_program_free(compiled(&text));
}

// A tensor of which a loop updates a row is in memory once: 64 KiB.
static void updated_in_place(void **unused)
{
  (void)unused;
  cx_text text = { 0 };
  cx_text_append(
      &text,
      "func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {\n"
      "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%o = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> "
      "tensor<1024x16xf32>\n"
      "%c = stablehlo.constant dense<0> : tensor<i32>\n"
      "%n = stablehlo.constant dense<6> : tensor<i32>\n"
      "%one = stablehlo.constant dense<1> : tensor<i32>\n"
      "%r:3 = stablehlo.while(%i = %c, %a = %x, %q = %o) : tensor<i32>, "
      "tensor<16xf32>, tensor<1024x16xf32>\n"
      "cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) "
      "-> tensor<i1>\n stablehlo.return %p : tensor<i1> }\n"
      "do { %j = stablehlo.add %i, %one : tensor<i32>\n"
      "%b = stablehlo.add %a, %x : tensor<16xf32>\n"
      "%row = stablehlo.reshape %b : (tensor<16xf32>) -> tensor<1x16xf32>\n"
      "%u = stablehlo.dynamic_update_slice %q, %row, %i, %c : "
      "(tensor<1024x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> "
      "tensor<1024x16xf32>\n"
      "stablehlo.return %j, %b, %u : tensor<i32>, tensor<16xf32>, "
      "tensor<1024x16xf32> }\n"
      "%s = stablehlo.reduce(%r#2 init: %z) applies stablehlo.add across "
      "dimensions = [0] : (tensor<1024x16xf32>, tensor<f32>) -> "
      "tensor<16xf32>\n"
      "return %s : tensor<16xf32> }");
  cpu_run_program *p = compiled(&text);
  assert_true(cpu_run_program_info_of(p)->arena_bytes < 100000);
  float x[16] = { 1, 2 }, y[16];
  void *args[] = { x }, *results[] = { y };
  cpu_run_context *context = NULL;
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  CHECK_STATUS_OK(cpu_run_program_run(p, context, NULL, args, results));
  assert_true(y[0] == 27 && y[1] == 54 && y[2] == 0);
  cpu_run_context_free(context);
  cpu_run_program_free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(recomputed),
    cmocka_unit_test(sums_share_a_loop),
    cmocka_unit_test(pools_compute_their_operand),
    cmocka_unit_test(images_stay_in_lanes),
    cmocka_unit_test(rows_are_read_in_place),
    cmocka_unit_test(written_by_the_sum),
    cmocka_unit_test(written_by_another),
    cmocka_unit_test(updated_in_place),
  };
  return cmocka_run_group_tests(tests, pool_begin, pool_end);
}
