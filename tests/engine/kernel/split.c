// Products of f32 that are large enough for split.h. Where the processor has no
// AMX, sgemm computes them, and the same holds.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "case.h"
#include "kernel/conv.h"
#include "kernel/matmul.h"
#include "kernel/onednn.h"
#include "kernel/split.h"
#include "support/skip.h"

typedef struct matrices {
  int64_t m, n, k;
  bool a_turned, b_turned;
  float *a, *b, *c;
} matrices;

static float *new_matrix(int64_t n)
{
  float *x = malloc((size_t)n * sizeof *x);
  assert_non_null(x);
  for (int64_t i = 0; i < n; i++) {
    x[i] = (float)pick(1u << 24) / (float)(1 << 23) - 1;
  }
  return x;
}

static matrices new_matrices(int64_t m, int64_t n, int64_t k, int turned)
{
  return (matrices){ m,
                     n,
                     k,
                     (turned & 1) != 0,
                     (turned & 2) != 0,
                     new_matrix(m * k),
                     new_matrix(k * n),
                     new_matrix(m * n) };
}

static void free_matrices(matrices *x)
{
  free(x->a);
  free(x->b);
  free(x->c);
}

static float *a_at(const matrices *x, int64_t i, int64_t q)
{
  return &x->a[x->a_turned ? q * x->m + i : i * x->k + q];
}

static float *b_at(const matrices *x, int64_t q, int64_t j)
{
  return &x->b[x->b_turned ? j * x->k + q : q * x->n + j];
}

static void multiply(matrices *x, int threads)
{
  cpu_threads *pool;
  assert_null(cpu_threads_new(threads, &pool));
  cpu_kernel_desc desc =
      product_desc(x->m, x->n, x->k, x->a_turned, x->b_turned);
  desc_run(&desc, pool, x->a, x->b, x->c);
  cpu_threads_free(pool);
}

static double want_at(const matrices *x, int64_t i, int64_t j)
{
  double want = 0;
  for (int64_t q = 0; q < x->k; q++) {
    want += (double)*a_at(x, i, q) * (double)*b_at(x, q, j);
  }
  return want;
}

// Root of the mean square of a row's errors, divided by that of its results.
static double row_error(const matrices *x, int64_t i)
{
  double error = 0, all = 0;
  for (int64_t j = 0; j < x->n; j++) {
    const double want = want_at(x, i, j);
    error += pow((double)x->c[i * x->n + j] - want, 2);
    all += want * want;
  }
  return sqrt(error / all);
}

// sgemm has up to 4.2e-7, and two parts of bf16 have 4e-6.
#define MOST_ERROR 6e-7

static void check_rows(const matrices *x, int64_t step)
{
  for (int64_t i = 0; i < x->m; i += step) {
    const double error = row_error(x, i);
    if (!(error <= MOST_ERROR)) {
      fail_msg("%lld x %lld x %lld, row %lld: %g", (long long)x->m,
               (long long)x->n, (long long)x->k, (long long)i, error);
    }
  }
}

// Ends of tiles, of bands and panels, of blocks of inner elements, of parts;
// also of parts of the inner elements.
static const int64_t sizes[][3] = { { 300, 260, 220 }, { 257, 545, 130 },
                                    { 256, 289, 800 }, { 2800, 24, 64 },
                                    { 290, 190, 93 },  { 90, 93, 3200 } };
#define N_SIZES (sizeof sizes / sizeof *sizes)

static void as_exact_as_f32(void **state)
{
  (void)state;
  for (size_t i = 0; i < N_SIZES; i++) {
    for (int turned = 0; turned < 4; turned++) {
      matrices x = new_matrices(sizes[i][0], sizes[i][1], sizes[i][2], turned);
      multiply(&x, turned % 3 + 1);
      check_rows(&x, 3);
      free_matrices(&x);
    }
  }
}

static void check_same_bits(int64_t m, int64_t n, int64_t k, int turned)
{
  matrices x = new_matrices(m, n, k, turned);
  const size_t bytes = (size_t)(x.m * x.n) * sizeof *x.c;
  float *first = malloc(bytes);
  assert_non_null(first);
  for (int threads = 1; threads <= 5; threads++) {
    memset(x.c, 0xff, bytes);
    multiply(&x, threads);
    if (threads == 1) memcpy(first, x.c, bytes);
    assert_memory_equal(first, x.c, bytes);
  }
  free(first);
  free_matrices(&x);
}

// Of the second one the inner elements are divided into four parts.
static void same_bits_on_all_threads(void **state)
{
  (void)state;
  if (!cpu_kernel_has_tiles()) SKIP_HERE("AMX");
  check_same_bits(300, 700, 420, 0);
  assert_int_equal(cpu_kernel_split_depth(93, 90, 3200), 4);
  check_same_bits(93, 90, 3200, 1);
}

// Blocks of rows and columns from the smallest numbers to the largest, whose
// products are not. Rows of zeros.
static void numbers_of_all_sizes(void **state)
{
  (void)state;
  for (int turned = 0; turned < 4; turned++) {
    matrices x = new_matrices(320, 260, 220, turned);
    for (int64_t i = 0; i < x.m; i++) {
      const int exponent = (int)(i / 32) * 28 - 140;
      for (int64_t q = 0; q < x.k; q++) {
        *a_at(&x, i, q) = i == 40 ? 0 : ldexpf(*a_at(&x, i, q), exponent);
      }
    }
    multiply(&x, 2);
    for (int64_t i = 0; i < x.m; i++) {
      if (i == 40) {
        for (int64_t j = 0; j < x.n; j++) assert_true(x.c[i * x.n + j] == 0);
      } else if (i >= 64) {  // the results are no subnormal numbers
        assert_true(row_error(&x, i) <= MOST_ERROR);
      }
    }
    // The inner elements' powers cancel.
    for (int64_t q = 0; q < x.k; q++) {
      const int exponent = (int)q % 80 - 40;
      for (int64_t i = 0; i < x.m; i++) *a_at(&x, i, q) = ldexpf(1, exponent);
      for (int64_t j = 0; j < x.n; j++) {
        *b_at(&x, q, j) = ldexpf(*b_at(&x, q, j), -exponent);
      }
    }
    multiply(&x, 2);
    check_rows(&x, 64);
    free_matrices(&x);
  }
}

// The largest numbers times the smallest: results near 1.
static void subnormal_numbers(void **state)
{
  (void)state;
  matrices x = new_matrices(256, 300, 230, 0);
  for (int64_t i = 0; i < x.m * x.k; i++) x.a[i] = ldexpf(x.a[i], -130);
  for (int64_t i = 0; i < x.k * x.n; i++) x.b[i] = ldexpf(x.b[i], 126);
  multiply(&x, 1);
  check_rows(&x, 8);
  free_matrices(&x);
}

static void check_specials(const matrices *x)
{
  for (int64_t i = 0; i < x->m; i++) {
    for (int64_t j = 0; j < x->n; j++) {
      const double want = want_at(x, i, j);
      const double got = (double)x->c[i * x->n + j];
      assert_true(isnan(want)   ? isnan(got)
                  : isinf(want) ? got == want
                                : fabs(got - want) < 1e-4);
    }
  }
}

// The infinity meets numbers whose other parts are 0.
static void check_infinities(int64_t m, int64_t n, int64_t k)
{
  matrices x = new_matrices(m, n, k, 1);
  for (int64_t j = 0; j < x.n; j += 3) *b_at(&x, 400, j) = 1;
  *a_at(&x, 7, 400) = INFINITY;
  multiply(&x, 2);
  check_specials(&x);
  *a_at(&x, 7, 400) = NAN;
  multiply(&x, 2);
  check_specials(&x);
  *a_at(&x, 7, 400) = 2;
  *b_at(&x, 2, 11) = -INFINITY;
  multiply(&x, 2);
  check_specials(&x);
  free_matrices(&x);
}

static void infinities_and_nans(void **state)
{
  (void)state;
  check_infinities(300, 260, 420);
  check_infinities(90, 93, 3200);
}

// Of a right operand that is packed for several products, with an infinity in
// either operand or none.
static void packed_operands(void **state)
{
  (void)state;
  for (int which = 0; which < 3; which++) {
    matrices x = new_matrices(32, 300, 420, which);
    if (which == 0) *a_at(&x, 7, 400) = INFINITY;
    if (which == 1) *b_at(&x, 400, 9) = -INFINITY;
    cpu_kernel_desc pack,
        desc = product_desc(x.m, x.n, x.k, x.a_turned, x.b_turned);
    const int64_t elements = cpu_kernel_dot_pack_of(&desc, &pack);
    float *packed = aligned_alloc(64, (size_t)elements * sizeof *packed);
    assert_non_null(packed);
    cpu_threads *pool;
    assert_null(cpu_threads_new(which + 1, &pool));
    desc_run(&pack, pool, x.b, x.b, packed);
    desc_run(&desc, pool, x.a, packed, x.c);
    check_specials(&x);
    if (which == 2) check_rows(&x, 1);
    cpu_kernel *kernel;
    assert_null(cpu_kernel_new(&desc, pool, false, &kernel));
    assert_string_equal(cpu_kernel_name(kernel), cpu_kernel_has_tiles()
                                                     ? "packed split bf16"
                                                     : "packed");
    cpu_kernel_free(kernel);
    cpu_threads_free(pool);
    free(packed);
    free_matrices(&x);
  }
}

// As loops compute it.
static void convolutions_with_infinities(void **state)
{
  (void)state;
  static const cx_hlo_elem f32[3] = { CX_HLO_F32, CX_HLO_F32, CX_HLO_F32 };
  size_t infinities = 0;
  cpu_threads *pool;
  assert_null(cpu_threads_new(2, &pool));
  for (uint64_t seed = 1; seed <= 6; seed++) {
    pick_seed(seed);
    kernel_case c;
    split_conv_case(&c, f32);
    float *lhs = (float *)(void *)c.lhs.data;
    lhs[c.lhs.n / 2] = INFINITY;
    cpu_kernel_desc desc;
    assert_true(cpu_kernel_describe(c.op, &desc));
    desc.words[1] = CPU_KERNEL_CONV_CHOICE_LOOPS;
    float *want = new_matrix((int64_t)c.out.n), *got = (void *)c.out.data;
    desc_run(&desc, pool, lhs, c.rhs.data, want);
    desc.words[1] = CPU_KERNEL_CONV_CHOICE_IMPLICIT;
    desc_run(&desc, pool, lhs, c.rhs.data, got);
    for (size_t i = 0; i < c.out.n; i++) {
      infinities += isinf(want[i]) != 0;
      assert_true(isfinite(want[i]) ? fabsf(got[i] - want[i]) < 1e-3F
                  : isnan(want[i])  ? isnan(got[i])
                                    : got[i] == want[i]);
    }
    free(want);
    case_free(&c);
  }
  cpu_threads_free(pool);
  assert_true(infinities > 100);
}

// Products that run on a thread each, one of them with an infinity.
static void check_batches(int64_t m, int64_t n, int64_t k)
{
  enum { BATCHES = 5 };
  matrices all = new_matrices(BATCHES * m, n, k, 0);
  free(all.b);
  all.b = new_matrix(BATCHES * k * n);
  all.a[2 * m * k + 5] = INFINITY;
  cpu_kernel batched = { .desc = product_desc(m, n, k, false, false) };
  batched.dot.n_batch = 1;
  batched.dot.batch[0] = BATCHES;
  batched.dot.lhs_batch[0] = m * k;
  batched.dot.rhs_batch[0] = k * n;
  for (int threads = 1; threads <= 3; threads++) {
    cpu_threads *pool;
    assert_null(cpu_threads_new(threads, &pool));
    desc_run(&batched.desc, pool, all.a, all.b, all.c);
    cpu_threads_free(pool);
    for (int64_t i = 0; i < BATCHES; i++) {
      const matrices x = { .m = m,
                           .n = n,
                           .k = k,
                           .a = all.a + i * m * k,
                           .b = all.b + i * k * n,
                           .c = all.c + i * m * n };
      check_specials(&x);
    }
  }
  free_matrices(&all);
}

// The inner elements of the second ones would be divided if they were alone.
static void batches_with_infinities(void **state)
{
  (void)state;
  check_batches(290, 240, 64);
  check_batches(96, 96, 3200);
}

static void which_are_split(void **state)
{
  (void)state;
  static const struct {
    int64_t m, n, k;
    bool split;
  } cases[] = { { 256, 256, 64, true },  { 256, 255, 64, false },
                { 96, 512, 96, true },   { 95, 520, 96, false },
                { 2000, 32, 96, true },  { 2000, 33, 96, false },
                { 270, 256, 63, false }, { 600, 600, 95, false },
                { 600, 600, 96, true },  { 97, 512, 97, false },
                { 64, 64, 3200, true },  { 63, 64, 3200, false } };
  if (!cpu_kernel_has_tiles()) SKIP_HERE("AMX");
  cpu_threads *pool;
  assert_null(cpu_threads_new(1, &pool));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cpu_kernel_desc desc =
        product_desc(cases[i].m, cases[i].n, cases[i].k, false, false);
    cpu_kernel *kernel;
    assert_null(cpu_kernel_new(&desc, pool, false, &kernel));
    const bool split = strcmp(cpu_kernel_name(kernel), "split bf16") == 0;
    if (split != cases[i].split) {
      fail_msg("%lld x %lld x %lld: %s", (long long)cases[i].m,
               (long long)cases[i].n, (long long)cases[i].k,
               cpu_kernel_name(kernel));
    }
    cpu_kernel_free(kernel);
  }
  cpu_threads_free(pool);
}

int main(void)
{
  pick_seed(1);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(as_exact_as_f32),
    cmocka_unit_test(same_bits_on_all_threads),
    cmocka_unit_test(numbers_of_all_sizes),
    cmocka_unit_test(subnormal_numbers),
    cmocka_unit_test(infinities_and_nans),
    cmocka_unit_test(packed_operands),
    cmocka_unit_test(convolutions_with_infinities),
    cmocka_unit_test(batches_with_infinities),
    cmocka_unit_test(which_are_split),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
