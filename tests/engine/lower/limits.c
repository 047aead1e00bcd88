// Programs that need more memory than possible are refused with the shape, and
// large programs compile in time proportional to their size.
#include "compiled.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernel/choices.h"
#include "lower/compile.h"

#define HUGE "1152921504606846976"

typedef struct refusal {
  const char *text, *words;
} refusal;

static const refusal refusals[] = {
  { "func.func @main() -> tensor<" HUGE
    "xf32> {\n"
    "%0 = stablehlo.iota dim = 0 : tensor<" HUGE
    "xf32>\n"
    "return %0 : tensor<" HUGE "xf32> }",
    "main: f32[" HUGE "] is larger than any memory" },
  { "func.func @main(%a: tensor<" HUGE
    "x4xf64>) {\n"
    "return }",
    "main: f64[" HUGE ",4] is larger than any memory" },
  // 2^31 elements in each direction.
  { "func.func @main(%x: tensor<2147483648x1xi8>) -> tensor<i1> {\n"
    "%d = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : "
    "(tensor<2147483648x1xi8>, tensor<2147483648x1xi8>) -> "
    "tensor<2147483648x2147483648xi8>\n"
    "%0 = stablehlo.reverse %d, dims = [0] : "
    "tensor<2147483648x2147483648xi8>\n"
    "%1 = stablehlo.slice %0 [0:1, 0:1] : (tensor<2147483648x2147483648xi8>) "
    "-> tensor<1x1xi8>\n"
    "%2 = stablehlo.convert %1 : (tensor<1x1xi8>) -> tensor<1x1xi1>\n"
    "%3 = stablehlo.reshape %2 : (tensor<1x1xi1>) -> tensor<i1>\n"
    "return %3 : tensor<i1> }",
    "dot_general: i8[2147483648,2147483648] is larger than any memory" },
  { "func.func @main(%x: tensor<2xf32>, %v: tensor<f32>) -> tensor<1xf32> {\n"
    "%p = stablehlo.pad %x, %v, low = [4611686018427387904], high = [1], "
    "interior = [0] : (tensor<2xf32>, tensor<f32>) -> "
    "tensor<4611686018427387907xf32>\n"
    "%s = stablehlo.sine %p : tensor<4611686018427387907xf32>\n"
    "%d = stablehlo.slice %s [4611686018427387903:4611686018427387904] : "
    "(tensor<4611686018427387907xf32>) -> tensor<1xf32>\n"
    "return %d : tensor<1xf32> }",
    "f32[4611686018427387907] is larger than any memory" },
  { "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    "%f = \"stablehlo.async_start\"(%x) ({\n"
    "^bb0(%a: tensor<4xf32>):\n"
    "stablehlo.return %a : tensor<4xf32> }) : (tensor<4xf32>) -> "
    "!stablehlo.future<tensor<4xf32>>\n"
    "%g = stablehlo.optimization_barrier %f : "
    "!stablehlo.future<tensor<4xf32>>\n"
    "%r = \"stablehlo.async_done\"(%g) : (!stablehlo.future<tensor<4xf32>>) "
    "-> tensor<4xf32>\n"
    "return %r : tensor<4xf32> }",
    "takes tuples and futures apart" },
  // In a region that the interpreter runs.
  { "module attributes {mhlo.num_replicas = 2 : i32} {\n"
    "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
    "%s = \"stablehlo.sort\"(%x) <{dimension = 0 : i64}> ({\n"
    "^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
    "%r = \"stablehlo.all_reduce\"(%p) <{replica_groups = "
    "dense<[[0, 5, 6, 7, 8]]> : tensor<1x5xi64>}> ({\n"
    "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "%c = stablehlo.add %a, %b : tensor<f32>\n"
    "stablehlo.return %c : tensor<f32> }) : (tensor<f32>) -> tensor<f32>\n"
    "%l = stablehlo.compare LT, %r, %q : (tensor<f32>, tensor<f32>) -> "
    "tensor<i1>\n"
    "stablehlo.return %l : tensor<i1> }) : (tensor<8xf32>) -> tensor<8xf32>\n"
    "return %s : tensor<8xf32> } }",
    "all_reduce: the groups have the number 5 of 2 replicas" },
};

static calx_status *compile(const char *text, cpu_run_program **out)
{
  cpu_lower_compile_options options = { .threads = pool };
  return cpu_lower_compile(text, strlen(text), &options, out);
}

static void refused(void **unused)
{
  (void)unused;
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    cpu_run_program *p = NULL;
    calx_status *status = compile(refusals[i].text, &p);
    const char *said = calx_status_message(status);
    if (status == NULL || strstr(said, refusals[i].words) == NULL) {
      fail_msg("wanted '%s', found '%s'", refusals[i].words, said);
    }
    calx_status_free(status);
  }
}

// Each value is possible, both together are not.
static void refused_in_sum(void **unused)
{
  (void)unused;
#define T "tensor<140737488355328xi8>"
#define SORT(to, from)                                                  \
  to " = \"stablehlo.sort\"(" from                                      \
     ") <{dimension = 0 : i64}> ({\n"                                   \
     "^bb0(%x: tensor<i8>, %y: tensor<i8>):\n"                          \
     "%l = stablehlo.compare LT, %x, %y : (tensor<i8>, tensor<i8>) -> " \
     "tensor<i1>\n stablehlo.return %l : tensor<i1> }) : (" T ") -> " T "\n"
  static const char text[] =
      "func.func @main(%p: " T ", %q: " T
      ") -> tensor<1xi8> {\n" SORT("%a", "%p")
          SORT("%b", "%q") "%c = stablehlo.add %a, %b : " T
                           "\n"
                           "%d = stablehlo.slice %c [7:8] : (" T
                           ") -> tensor<1xi8>\n"
                           "%e = stablehlo.slice %a [8:9] : (" T
                           ") -> tensor<1xi8>\n"
                           "%f = stablehlo.add %d, %e : tensor<1xi8>\n"
                           "return %f : tensor<1xi8> }";
  cpu_run_program *p = NULL;
  calx_status *status = compile(text, &p);
  assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
  assert_non_null(strstr(calx_status_message(status), "temporary memory"));
  calx_status_free(status);
}

static calx_status *run_one(const cpu_run_program *p, cpu_run_context *context,
                            float *x, float *y)
{
  void *args[] = { x }, *results[] = { y };
  return cpu_run_program_run(p, context, NULL, args, results);
}

// An allocation that the system refuses is an error, and the device continues.
static void memory_not_given(void **unused)
{
  (void)unused;
#define V "tensor<17592186044416xf32>"
  static const char large_text[] =
      "func.func @main(%x: tensor<f32>) -> tensor<1xf32> {\n"
      "%b = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> " V
      "\n"
      "%s = \"stablehlo.sort\"(%b) <{dimension = 0 : i64}> ({\n"
      "^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
      "%l = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> "
      "tensor<i1>\n stablehlo.return %l : tensor<i1> }) : (" V ") -> " V
      "\n"
      "%d = stablehlo.slice %s [8:9] : (" V
      ") -> tensor<1xf32>\n"
      "return %d : tensor<1xf32> }";
  static const char small_text[] =
      "func.func @main(%x: tensor<f32>) -> tensor<1xf32> {\n"
      "%b = stablehlo.reshape %x : (tensor<f32>) -> tensor<1xf32>\n"
      "%d = stablehlo.add %b, %b : tensor<1xf32>\n"
      "return %d : tensor<1xf32> }";
  cpu_run_program *much = NULL, *little = NULL;
  cpu_run_context *context = NULL;
  CHECK_STATUS_OK(compile(large_text, &much));
  CHECK_STATUS_OK(compile(small_text, &little));
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  float x = 4, y = 0;
  for (int i = 0; i < 2; i++) {
    calx_status *status = run_one(much, context, &x, &y);
    assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(calx_status_message(status),
                           "bytes of temporary memory, which"));
    calx_status_free(status);
    CHECK_STATUS_OK(run_one(little, context, &x, &y));
    assert_true(y == 8);
  }
  cpu_run_context_free(context);
  cpu_run_program_free(much);
  cpu_run_program_free(little);
}

// ---- large programs ----

// Each value has a near and a far use, so that fusion searches paths for each.
// With an unbounded search this took minutes.
static void long_chain(void **unused)
{
  (void)unused;
  cx_text text = { 0 };
  int n = 8000;
  cx_text_append(&text,
                 "func.func @main(%v0: tensor<64xf32>) -> "
                 "tensor<64xf32> {\n");
  for (int i = 1; i <= n; i++) {
    cx_text_format(&text,
                   "%%v%d = stablehlo.%s %%v%d, %%v%d : tensor<64xf32>\n", i,
                   i % 2 == 0 ? "add" : "subtract", i - 1, i < 8 ? 0 : i - 8);
  }
  cx_text_format(&text, "return %%v%d : tensor<64xf32> }", n);
  cpu_run_program *p = compiled(&text);
  assert_int_equal(cpu_run_program_info_of(p)->n_compiled, n);
  cpu_run_program_free(p);
}

// Each link reads the one before at two positions, as in the gradient of a
// cumulative product: one loop would compute the first link 2^12 times for an
// element.
static void doubling_chain(void **unused)
{
  (void)unused;
  cx_text text = { 0 };
  const int n = 12;
  cx_text_append(&text,
                 "func.func @main(%v0: tensor<9000xf32>, %w: "
                 "tensor<9000xf32>) -> tensor<9000xf32> {\n"
                 "%z = stablehlo.constant dense<0.0> : tensor<f32>\n");
  for (int i = 0; i < n; i++) {
    cx_text_format(&text,
                   "%%a%d = stablehlo.multiply %%v%d, %%w : tensor<9000xf32>\n"
                   "%%b%d = stablehlo.subtract %%v%d, %%w : tensor<9000xf32>\n"
                   "%%p%d = stablehlo.pad %%b%d, %%z, low = [-%d], high = "
                   "[%d], interior = [0] : (tensor<9000xf32>, tensor<f32>) -> "
                   "tensor<9000xf32>\n"
                   "%%v%d = stablehlo.add %%a%d, %%p%d : tensor<9000xf32>\n",
                   i, i, i, i, i, i, 1 << i, 1 << i, i + 1, i, i);
  }
  cx_text_format(&text, "return %%v%d : tensor<9000xf32> }", n);
  cpu_run_program_free(compiled(&text));
}

// More results than one loop may write.
static void many_results(void **unused)
{
  (void)unused;
  cx_text text = { 0 };
  int n = 150;
  cx_text_append(&text, "func.func @main(%a: tensor<16xf32>) -> (");
  for (int i = 0; i < n; i++) {
    cx_text_append(&text, i == 0 ? "tensor<16xf32>" : ", tensor<16xf32>");
  }
  cx_text_append(&text, ") {\n%v0 = stablehlo.negate %a : tensor<16xf32>\n");
  for (int i = 1; i < n; i++) {
    cx_text_format(&text, "%%v%d = stablehlo.add %%v%d, %%a : tensor<16xf32>\n",
                   i, i - 1);
  }
  cx_text_append(&text, "return %v0");
  for (int i = 1; i < n; i++) cx_text_format(&text, ", %%v%d", i);
  cx_text_append(&text, " : tensor<16xf32>");
  for (int i = 1; i < n; i++) cx_text_append(&text, ", tensor<16xf32>");
  cx_text_append(&text, " }");
  cpu_run_program *p = compiled(&text);
  float x[16] = { 1 }, y[150][16];
  void *args[] = { x }, *results[150];
  for (int i = 0; i < n; i++) results[i] = y[i];
  cpu_run_context *context = NULL;
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  CHECK_STATUS_OK(cpu_run_program_run(p, context, NULL, args, results));
  for (int i = 0; i < n; i++) assert_true(y[i][0] == (float)(i - 1));
  cpu_run_context_free(context);
  cpu_run_program_free(p);
}

// ---- concatenations ----

static int64_t width(size_t i)
{
  return (int64_t)(i % 3 + 1);
}

// A concatenation of n operands along the second of two dimensions. Operand i
// is 2 x (i % 3 + 1), and the result is negated, so that it has a user.
static int64_t pieces_text(size_t n, cx_text *text)
{
  int64_t all = 0;
  cx_text_append(text, "func.func @main(");
  for (size_t i = 0; i < n; i++) {
    cx_text_format(text, "%s%%a%zu: tensor<2x%dxf32>", i == 0 ? "" : ", ", i,
                   (int)width(i));
    all += width(i);
  }
  cx_text_format(text, ") -> tensor<2x%dxf32> {\n%%c = stablehlo.concatenate ",
                 (int)all);
  for (size_t i = 0; i < n; i++) {
    cx_text_format(text, "%s%%a%zu", i == 0 ? "" : ", ", i);
  }
  cx_text_append(text, ", dim = 1 : (");
  for (size_t i = 0; i < n; i++) {
    cx_text_format(text, "%stensor<2x%dxf32>", i == 0 ? "" : ", ",
                   (int)width(i));
  }
  cx_text_format(text,
                 ") -> tensor<2x%dxf32>\n%%n = stablehlo.negate %%c : "
                 "tensor<2x%dxf32>\nreturn %%n : tensor<2x%dxf32> }",
                 (int)all, (int)all, (int)all);
  return all;
}

static void check_pieces(size_t n)
{
  cx_text text = { 0 };
  const int64_t all = pieces_text(n, &text);
  cpu_run_program *p = compiled(&text);
  void **args = test_malloc(n * sizeof *args);
  float *memory = test_malloc(n * 6 * sizeof *memory);
  float *out = test_malloc((size_t)all * 2 * sizeof *out);
  for (size_t i = 0; i < n; i++) {
    args[i] = memory + i * 6;
    for (int k = 0; k < 6; k++)
      memory[i * 6 + (size_t)k] = (float)(i * 10) + (float)k;
  }
  cpu_run_context *context = NULL;
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  CHECK_STATUS_OK(
      cpu_run_program_run(p, context, NULL, args, (void *[]){ out }));
  int64_t at = 0;
  for (size_t i = 0; i < n; i++) {
    for (int64_t row = 0; row < 2; row++) {
      for (int64_t k = 0; k < width(i); k++) {
        const float want = (float)(i * 10) + (float)(row * width(i) + k);
        assert_true(out[row * all + at + k] == -want);
      }
    }
    at += width(i);
  }
  cpu_run_context_free(context);
  cpu_run_program_free(p);
  test_free(out);
  test_free(memory);
  test_free(args);
}

// Any number of operands is compiled.
static void many_pieces(void **unused)
{
  (void)unused;
  static const size_t counts[] = { 2, 16, 17, 18, 31, 32, 256, 257, 300, 5000 };
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    check_pieces(counts[i]);
  }
}

static size_t n_choices(void)
{
  int64_t *numbers;
  size_t count;
  CHECK_STATUS_OK(cpu_kernel_choices_save(&numbers, &count));
  cx_free(numbers);
  return count / (1 + CPU_KERNEL_WORDS);
}

#define CONVOLVED(name, from, size)                                           \
  "%" name " = stablehlo.convolution(%" from                                  \
  ", %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} " \
  "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "           \
  "(tensor<4x" size "x8xf32>, tensor<3x3x8x8xf32>) -> tensor<4x"

// A choice that is measured is remembered. What comes after the most that
// measuring may take is neither.
static void measuring_is_bounded(void **state)
{
  (void)state;
  if (cpu_lower_env_is("CALX_DETERMINISTIC", "1") ||
      cpu_lower_env_is("CALX_CPU_REF", "1")) {
    skip();
  }
  static const char text[] =
      "func.func @main(%x: tensor<4x14x14x8xf32>, %k: tensor<3x3x8x8xf32>) -> "
      "tensor<4x10x10x8xf32> {\n" CONVOLVED("0", "x", "14x14")
      "12x12x8xf32>\n" CONVOLVED("1", "0", "12x12") "10x10x8xf32>\n"
      "return %1 : tensor<4x10x10x8xf32> }";
  cpu_lower_compile_options options = { .threads = pool, .most_measured = 1 };
  const size_t before = n_choices();
  for (size_t i = 0; i < 2; i++) {
    // 1 ns is over after one kernel, of which there are two.
    cpu_run_program *p = NULL;
    CHECK_STATUS_OK(cpu_lower_compile(text, sizeof text - 1, &options, &p));
    assert_non_null(p);
    cpu_run_program_free(p);
    assert_int_equal(n_choices(), before + 1 + i);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(refused),          cmocka_unit_test(refused_in_sum),
    cmocka_unit_test(memory_not_given), cmocka_unit_test(long_chain),
    cmocka_unit_test(doubling_chain),   cmocka_unit_test(many_results),
    cmocka_unit_test(many_pieces),      cmocka_unit_test(measuring_is_bounded),
  };
  return cmocka_run_group_tests(tests, pool_begin, pool_end);
}
