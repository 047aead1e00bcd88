// Random dots and convolutions against sums in double precision.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "case.h"
#include "support/long.h"

static const cx_hlo_elem types[][3] = {
  { CX_HLO_F32, CX_HLO_F32, CX_HLO_F32 },
  { CX_HLO_F32, CX_HLO_F32, CX_HLO_F32 },
  { CX_HLO_F64, CX_HLO_F64, CX_HLO_F64 },
  { CX_HLO_BF16, CX_HLO_BF16, CX_HLO_BF16 },
  { CX_HLO_F16, CX_HLO_F16, CX_HLO_F16 },
  { CX_HLO_I1, CX_HLO_I1, CX_HLO_I1 },
  { CX_HLO_I8, CX_HLO_I8, CX_HLO_I8 },
  { CX_HLO_I16, CX_HLO_I16, CX_HLO_I16 },
  { CX_HLO_I32, CX_HLO_I32, CX_HLO_I32 },
  { CX_HLO_I64, CX_HLO_I64, CX_HLO_I64 },
  { CX_HLO_UI8, CX_HLO_UI8, CX_HLO_UI8 },
  { CX_HLO_UI16, CX_HLO_UI16, CX_HLO_UI16 },
  { CX_HLO_UI32, CX_HLO_UI32, CX_HLO_UI32 },
  { CX_HLO_UI64, CX_HLO_UI64, CX_HLO_UI64 },
  { CX_HLO_C64, CX_HLO_C64, CX_HLO_C64 },
  { CX_HLO_C128, CX_HLO_C128, CX_HLO_C128 },
  { CX_HLO_BF16, CX_HLO_BF16, CX_HLO_F32 },
  { CX_HLO_F16, CX_HLO_F32, CX_HLO_F32 },
  { CX_HLO_F32, CX_HLO_F32, CX_HLO_F64 },
  { CX_HLO_F32, CX_HLO_F32, CX_HLO_BF16 },
  { CX_HLO_I8, CX_HLO_I8, CX_HLO_I32 },
  { CX_HLO_UI8, CX_HLO_UI8, CX_HLO_UI32 },
  { CX_HLO_I16, CX_HLO_I16, CX_HLO_I64 },
};
#define N_TYPES (sizeof types / sizeof *types)
// Every second case of the longer runs is one for oneDNN.
static int rounds(void)
{
  return (int)sanitized_or(1, long_or(3, 2));
}

typedef void make_fn(kernel_case *c, const cx_hlo_elem elems[3]);

static void run_all(make_fn *make, bool tune)
{
  size_t cases = 0, wrong = 0;
  for (int threads = 1; threads <= 2; threads++) {
    cpu_threads *pool;
    assert_null(cpu_threads_new(threads, &pool));
    for (int round = 0; round < rounds(); round++) {
      for (size_t i = 0; i < 2 * N_TYPES; i++) {
        if (tune && i % 2 == 1) continue;
        const cx_hlo_elem *t = types[i % 2 == 0 ? 0 : i / 2];
        pick_seed(cases + 1000 * (uint64_t)threads);
        kernel_case c;
        make(&c, t);
        size_t bad = case_run(&c, pool, tune);
        if (bad != 0) print_message("case %zu, %d threads\n", cases, threads);
        wrong += bad != 0;
        cases++;
        case_free(&c);
      }
    }
    cpu_threads_free(pool);
  }
  print_message("%zu cases, %zu wrong\n", cases, wrong);
  assert_int_equal(wrong, 0);
}

static void dots(void **state)
{
  (void)state;
  run_all(dot_case, false);
}

static void convolutions(void **state)
{
  (void)state;
  run_all(conv_case, false);
}

static void run_type(make_fn *make, const cx_hlo_elem type[3], int n, bool tune)
{
  size_t wrong = 0;
  for (int threads = 1; threads <= 2; threads++) {
    cpu_threads *pool;
    assert_null(cpu_threads_new(threads, &pool));
    const int count =
        (int)sanitized_or((n + 2) / 3, long_or(n, (2 * n + 2) / 3));
    for (int i = 0; i < count; i++) {
      pick_seed(50000 + (uint64_t)i);
      kernel_case c;
      make(&c, type);
      size_t bad = case_run(&c, pool, tune);
      if (bad != 0) print_message("case %d, %d threads\n", i, threads);
      wrong += bad != 0;
      case_free(&c);
    }
    cpu_threads_free(pool);
  }
  assert_int_equal(wrong, 0);
}

// Implementations of f32 only: oneDNN, 16 images at a time, depthwise
// gradients.
static void run_f32(make_fn *make, int n, bool tune)
{
  run_type(make, types[0], n, tune);
}

static void large_dots(void **state)
{
  (void)state;
  run_f32(large_dot_case, 12, false);
}

// bf16 as it is, where the processor has instructions for it.
static void large_dots_of_bf16(void **state)
{
  (void)state;
  static const cx_hlo_elem narrow[][3] = {
    { CX_HLO_BF16, CX_HLO_BF16, CX_HLO_BF16 },
    { CX_HLO_BF16, CX_HLO_BF16, CX_HLO_F32 }
  };
  for (int tune = 0; tune < 2; tune++) {
    for (int i = 0; i < 2; i++) {
      run_type(large_dot_case, narrow[i], 12, tune == 1);
    }
  }
}

static void narrow_convolutions(void **state)
{
  (void)state;
  run_f32(narrow_conv_case, 80, false);
}

static void convolutions_in_lanes(void **state)
{
  (void)state;
  run_f32(lanes_conv_case, 80, false);
}

static void depthwise_convolutions(void **state)
{
  (void)state;
  run_f32(depthwise_conv_case, 60, false);
}

static void products(void **state)
{
  (void)state;
  run_all(product_conv_case, false);
}

static void winograd_convolutions(void **state)
{
  (void)state;
  run_f32(winograd_conv_case, 4, true);
}

static void implicit_convolutions(void **state)
{
  (void)state;
  run_f32(implicit_conv_case, 90, false);
}

static void split_convolutions(void **state)
{
  (void)state;
  run_f32(split_conv_case, 12, false);
}

// Sums that are too long for one chain of additions in f32.
static void long_convolutions(void **state)
{
  (void)state;
  for (int tune = 0; tune < 2; tune++) run_f32(long_conv_case, 1, tune == 1);
}

static void tuned_convolutions(void **state)
{
  (void)state;
  run_all(conv_case, true);
}

// The other operand is read as it is: f32, bf16, f16 or i8.
static void thin_dots(void **state)
{
  (void)state;
  static const cx_hlo_elem thin[][3] = {
    { CX_HLO_F32, CX_HLO_F32, CX_HLO_F32 },
    { CX_HLO_BF16, CX_HLO_BF16, CX_HLO_BF16 },
    { CX_HLO_F32, CX_HLO_BF16, CX_HLO_F32 },
    { CX_HLO_F32, CX_HLO_I8, CX_HLO_F32 },
    { CX_HLO_I8, CX_HLO_F32, CX_HLO_F32 },
    { CX_HLO_F16, CX_HLO_F32, CX_HLO_F32 },
    { CX_HLO_F16, CX_HLO_F16, CX_HLO_F16 },
    { CX_HLO_F32, CX_HLO_F16, CX_HLO_F32 },
  };
  for (size_t i = 0; i < sizeof thin / sizeof *thin; i++) {
    run_type(thin_dot_case, thin[i], 4, false);
  }
}

// 8-bit integers, all values of them: sums are exact.
static void dots_of_bytes(void **state)
{
  (void)state;
  static const cx_hlo_elem bytes[][3] = {
    { CX_HLO_I8, CX_HLO_I8, CX_HLO_I32 },
    { CX_HLO_I8, CX_HLO_UI8, CX_HLO_I32 },
    { CX_HLO_UI8, CX_HLO_I8, CX_HLO_I32 },
    { CX_HLO_UI8, CX_HLO_UI8, CX_HLO_UI32 },
    { CX_HLO_I8, CX_HLO_I8, CX_HLO_I8 },
  };
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
    run_type(large_dot_case, bytes[i], 6, false);
    run_type(thin_dot_case, bytes[i], 4, false);
  }
}

// Batches of tiny matrices.
static void tiny_dots(void **state)
{
  (void)state;
  static const cx_hlo_elem all[][3] = {
    { CX_HLO_F32, CX_HLO_F32, CX_HLO_F32 },
    { CX_HLO_F64, CX_HLO_F64, CX_HLO_F64 },
    { CX_HLO_F16, CX_HLO_F16, CX_HLO_F16 },
    { CX_HLO_I32, CX_HLO_I32, CX_HLO_I32 },
    { CX_HLO_I64, CX_HLO_I64, CX_HLO_I64 },
    { CX_HLO_C64, CX_HLO_C64, CX_HLO_C64 },
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    run_type(tiny_dot_case, all[i], 40, false);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(dots),
    cmocka_unit_test(convolutions),
    cmocka_unit_test(large_dots),
    cmocka_unit_test(large_dots_of_bf16),
    cmocka_unit_test(thin_dots),
    cmocka_unit_test(dots_of_bytes),
    cmocka_unit_test(tiny_dots),
    cmocka_unit_test(narrow_convolutions),
    cmocka_unit_test(convolutions_in_lanes),
    cmocka_unit_test(depthwise_convolutions),
    cmocka_unit_test(products),
    cmocka_unit_test(winograd_convolutions),
    cmocka_unit_test(implicit_convolutions),
    cmocka_unit_test(split_convolutions),
    cmocka_unit_test(long_convolutions),
    cmocka_unit_test(tuned_convolutions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
