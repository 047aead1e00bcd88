// Direct algorithms at sizes that the interpreter takes too long for: compared
// with plain loops.
#include "lower/compile.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static cpu_threads *pool;

// Runs a program on these arguments. The caller frees the results.
static void run_text(const char *text, void *const *args, void **results)
{
  const cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL;
  CHECK_STATUS_OK(cpu_lower_compile(text, strlen(text), &options, &p));
  const cpu_run_program_info *info = cpu_run_program_info_of(p);
  assert_int_equal(info->n_interpreted, 0);
  for (size_t i = 0; i < info->n_results; i++) {
    const size_t bytes = (size_t)cx_hlo_type_bytes(&info->results[i]);
    results[i] = aligned_alloc(64, (bytes + 64) / 64 * 64);
  }
  cpu_run_context *context = NULL;
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  cpu_coll_launch launch = { .n_replicas = 1, .n_partitions = 1 };
  CHECK_STATUS_OK(cpu_run_program_run(p, context, &launch, args, results));
  cpu_run_context_free(context);
  cpu_run_program_free(p);
}

// Numbers that look random, of a fixed seed.
static uint32_t next_number(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 32);
}

// ---- scans ----

#define ROW 70001

static void scans_of_long_rows(void **unused)
{
  (void)unused;
  static const char text[] =
      "func.func @main(%x: tensor<2x70001xi32>, %y: tensor<70001xf32>) -> "
      "(tensor<2x70001xi32>, tensor<70001xf32>) {\n"
      "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "  %0 = \"stablehlo.reduce_window\"(%x, %z) <{window_dimensions = "
      "array<i64: 1, 70001>, padding = dense<[[0, 0], [70000, 0]]> : "
      "tensor<2x2xi64>}> ({\n"
      "  ^bb0(%a: tensor<i32>, %b: tensor<i32>):\n"
      "    %c = stablehlo.add %a, %b : tensor<i32>\n"
      "    stablehlo.return %c : tensor<i32>\n"
      "  }) : (tensor<2x70001xi32>, tensor<i32>) -> tensor<2x70001xi32>\n"
      "  %1 = \"stablehlo.reduce_window\"(%y, %m) <{window_dimensions = "
      "array<i64: 70001>, padding = dense<[[0, 70000]]> : tensor<1x2xi64>}> "
      "({\n"
      "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "    %c = stablehlo.maximum %a, %b : tensor<f32>\n"
      "    stablehlo.return %c : tensor<f32>\n"
      "  }) : (tensor<70001xf32>, tensor<f32>) -> tensor<70001xf32>\n"
      "  return %0, %1 : tensor<2x70001xi32>, tensor<70001xf32>\n}";
  int32_t *x = malloc((size_t)2 * ROW * 4);
  float *y = malloc((size_t)ROW * 4);
  uint64_t state = 1;
  for (size_t i = 0; i < (size_t)2 * ROW; i++) {
    x[i] = (int32_t)next_number(&state);
  }
  // Falls from both ends, so that the last maximum is near the middle.
  for (int i = 0; i < ROW; i++) {
    y[i] = (float)(next_number(&state) % 1000) - (float)abs(i - ROW / 2) / 8;
  }
  void *results[2];
  run_text(text, (void *[]){ x, y }, results);
  const int32_t *sums = results[0];
  const float *most = results[1];
  for (int r = 0; r < 2; r++) {
    uint32_t sum = 0;
    for (int i = 0; i < ROW; i++) {
      sum += (uint32_t)x[r * ROW + i];
      assert_int_equal(sums[r * ROW + i], (int32_t)sum);
    }
  }
  float largest = y[ROW - 1];
  for (int i = ROW; i-- > 0;) {
    if (y[i] > largest) largest = y[i];
    assert_true(most[i] == largest);
  }
  free(x);
  free(y);
  free(results[0]);
  free(results[1]);
}

int main(void)
{
  CHECK_STATUS_OK(cpu_threads_new(2, &pool));
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(scans_of_long_rows),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cpu_threads_free(pool);
  return failed;
}
