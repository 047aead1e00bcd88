// Products of f32 by oneDNN, on any number of threads.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "case.h"
#include "kernel/sgemm.h"
#include "support/skip.h"

// Whole numbers, whose sums are exact.
static float *new_numbers(int64_t n)
{
  float *x = malloc((size_t)n * sizeof *x);
  assert_non_null(x);
  for (int64_t i = 0; i < n; i++) x[i] = (float)((int)pick(9) - 4);
  return x;
}

// What stands behind a row of c, which no product may change.
#define REST 3
#define UNCHANGED 7.0F

static float product_at(const cpu_kernel_gemm *g, int64_t i, int64_t j)
{
  const float *a = (const float *)g->a + i * g->a_row;
  const float *b = (const float *)g->b + j * g->b_column;
  float product = 0;
  for (int64_t k = 0; k < g->k; k++) {
    product += a[k * g->a_column] * b[k * g->b_row];
  }
  return product;
}

static float expected(const cpu_kernel_gemm *g, float product)
{
  switch (g->mode) {
    case CPU_KERNEL_GEMM_SET: return product;
    case CPU_KERNEL_GEMM_ADD: return UNCHANGED + product;
    default: return UNCHANGED - product;
  }
}

// want: the products, (m, n).
static void check(cpu_kernel_gemm *g, const float *want, cpu_threads *pool)
{
  float *c = g->c;
  for (int64_t i = 0; i < g->m * g->ldc; i++) c[i] = UNCHANGED;
  cpu_kernel_sgemm(cpu_kernel_onednn_get(), g, pool);
  for (int64_t i = 0; i < g->m; i++) {
    for (int64_t j = 0; j < g->ldc; j++) {
      if (c[i * g->ldc + j] !=
          (j < g->n ? expected(g, want[i * g->n + j]) : UNCHANGED)) {
        fail_msg("%lld x %lld x %lld on %d threads, mode %d: (%lld, %lld)",
                 (long long)g->m, (long long)g->n, (long long)g->k,
                 cpu_threads_size(pool), (int)g->mode, (long long)i,
                 (long long)j);
      }
    }
  }
}

static void check_size(int64_t m, int64_t n, int64_t k, int turned,
                       cpu_threads *const pools[], size_t n_pools)
{
  float *a = new_numbers(m * k), *b = new_numbers(k * n);
  float *c = new_numbers(m * (n + REST)), *want = new_numbers(m * n);
  const bool a_turned = (turned & 1) != 0, b_turned = (turned & 2) != 0;
  cpu_kernel_gemm g = { .m = m,
                        .n = n,
                        .k = k,
                        .a = a,
                        .b = b,
                        .a_row = a_turned ? 1 : k,
                        .a_column = a_turned ? m : 1,
                        .b_row = b_turned ? 1 : n,
                        .b_column = b_turned ? k : 1,
                        .c = c,
                        .ldc = n + REST };
  for (int64_t i = 0; i < m * n; i++) want[i] = product_at(&g, i / n, i % n);
  for (size_t i = 0; i < n_pools; i++) {
    g.mode = (cpu_kernel_gemm_mode)(i % 3);
    check(&g, want, pools[i]);
  }
  free(a);
  free(b);
  free(c);
  free(want);
}

// Parts of rows, of columns and of both, some of them empty; so few results
// that oneDNN divides the inner elements; one that is too small to be divided.
static void parts_of_all_forms(void **state)
{
  (void)state;
  if (cpu_kernel_onednn_get() == NULL) SKIP_HERE("oneDNN");
  static const int64_t sizes[][3] = { { 300, 260, 120 }, { 17, 900, 300 },
                                      { 900, 17, 300 },  { 9, 1500, 300 },
                                      { 60, 33, 4000 },  { 20, 30, 40 } };
  static const int counts[] = { 1, 2, 3, 4, 6, 7 };
  cpu_threads *pools[sizeof counts / sizeof *counts];
  const size_t n_pools = sizeof counts / sizeof *counts;
  for (size_t i = 0; i < n_pools; i++) {
    assert_null(cpu_threads_new(counts[i], &pools[i]));
  }
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (int turned = 0; turned < 4; turned++) {
      check_size(sizes[i][0], sizes[i][1], sizes[i][2], turned, pools, n_pools);
    }
  }
  for (size_t i = 0; i < n_pools; i++) cpu_threads_free(pools[i]);
}

int main(void)
{
  pick_seed(1);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(parts_of_all_forms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
