// Products of f32 whose right operand is packed, and large ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "case.h"
#include "kernel/matmul.h"
#include "kernel/onednn.h"
#include "opt/kernel_call.h"

static cpu_threads *new_pool(int threads)
{
  cpu_threads *pool;
  assert_null(cpu_threads_new(threads, &pool));
  return pool;
}

static float whole_number(int64_t i)
{
  return (float)((i * 7 + 3) % 11 - 5);
}

static void check_packed(cpu_threads *pool, int64_t m, int64_t n, int64_t k,
                         bool lhs_turned, bool rhs_turned)
{
  float *x = malloc((size_t)(m * k) * sizeof *x);
  float *y = malloc((size_t)(k * n) * sizeof *y);
  float *plain = malloc((size_t)(m * n) * sizeof *plain);
  float *got = malloc((size_t)(m * n) * sizeof *got);
  for (int64_t i = 0; i < m * k; i++) x[i] = whole_number(i);
  for (int64_t i = 0; i < k * n; i++) y[i] = whole_number(i + 4);
  cpu_kernel_desc desc = product_desc(m, n, k, lhs_turned, rhs_turned);
  assert_true(cpu_kernel_dot_packs(&desc));
  desc_run(&desc, pool, x, y, plain);
  cpu_kernel_desc pack;
  const size_t elements = (size_t)cpu_kernel_dot_pack_of(&desc, &pack);
  float *packed = aligned_alloc(64, elements * sizeof *packed);
  desc_run(&pack, pool, y, y, packed);
  desc_run(&desc, pool, x, packed, got);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      float want = 0;  // of whole numbers: exact
      for (int64_t q = 0; q < k; q++) {
        want += x[lhs_turned ? q * m + i : i * k + q] *
                y[rhs_turned ? j * k + q : q * n + j];
      }
      assert_true(plain[i * n + j] == want && got[i * n + j] == want);
    }
  }
  free(x);
  free(y);
  free(plain);
  free(got);
  free(packed);
}

// Ends of tiles, panels, groups, blocks of rows and of inner elements; more
// threads than vectors of columns.
static void packed_operands(void **state)
{
  (void)state;
  static const int64_t sizes[][3] = { { 32, 64, 48 },   { 9, 100, 37 },
                                      { 17, 93, 61 },   { 130, 70, 29 },
                                      { 23, 65, 515 },  { 259, 64, 16 },
                                      { 32, 290, 130 }, { 61, 257, 420 } };
  for (int threads = 1; threads <= 3; threads++) {
    cpu_threads *pool = new_pool(threads);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      for (int turned = 0; turned < 4; turned++) {
        check_packed(pool, sizes[i][0], sizes[i][1], sizes[i][2],
                     (turned & 1) != 0, (turned & 2) != 0);
      }
    }
    cpu_threads_free(pool);
  }
}

static void check_name(int64_t m, int64_t n, int64_t k, bool lhs_turned,
                       bool rhs_turned, const char *wanted)
{
  cpu_kernel_desc desc = product_desc(m, n, k, lhs_turned, rhs_turned);
  cpu_threads *pool = new_pool(1);
  cpu_kernel *kernel;
  assert_null(cpu_kernel_new(&desc, pool, false, &kernel));
  assert_string_equal(cpu_kernel_name(kernel), wanted);
  cpu_kernel_free(kernel);
  cpu_threads_free(pool);
}

// Few rows by many weights are not packed as a whole. The transposed product is
// computed if the left operand is stored transposed, and has many more rows
// than there are columns, or is read in steps of whole pages.
static void large_products(void **state)
{
  (void)state;
  check_name(40, 1024, 520, false, false, "implicit product");
  check_name(40, 1024, 520, false, true, "implicit product");
  if (cpu_kernel_onednn_get() != NULL) {
    check_name(220, 70, 2100, true, false, "transposed dnnl_sgemm");
  }
  if (cpu_kernel_onednn_get() != NULL && !cpu_kernel_has_tiles()) {
    check_name(1024, 160, 520, true, false, "transposed dnnl_sgemm");
    check_name(1024, 160, 520, true, true, "dnnl_sgemm");
    check_name(1000, 160, 520, true, false, "dnnl_sgemm");
  }
  for (int threads = 1; threads <= 2; threads++) {
    cpu_threads *pool = new_pool(threads);
    for (int turned = 0; turned < 4; turned++) {
      check_packed(pool, 220, 70, 2100, (turned & 1) != 0, (turned & 2) != 0);
    }
    check_packed(pool, 40, 1024, 520, false, threads == 2);
    check_packed(pool, 1024, 160, 520, true, false);
    cpu_threads_free(pool);
  }
}

// A description of a packed product whose sizes do not fit is refused.
static void damaged_packed_operands(void **state)
{
  (void)state;
  cpu_threads *pool = new_pool(1);
  const cpu_kernel_desc good = product_desc(32, 64, 48, false, false);
  for (int which = 0; which < 2; which++) {
    cpu_kernel_desc product = good, pack;
    (void)cpu_kernel_dot_pack_of(&product, &pack);
    cpu_kernel_desc bad = which == 0 ? product : pack;
    size_t refused = 0;
    for (int at = 1; at < CPU_KERNEL_WORDS; at++) {
      cpu_kernel_desc damaged = bad;
      damaged.words[at] = (int64_t)1 << 40;
      calx_status *status = NULL;
      refused += !desc_run_zeros(&damaged, pool, &status);
      calx_status_free(status);
    }
    assert_true(refused > 5);
  }
  cpu_threads_free(pool);
}

// A call in a program of the user's, whose last types are its results.
static bool is_described(const cpu_kernel_desc *desc, int64_t packed,
                         size_t n_operands)
{
  const int64_t lhs[2] = { 32, 48 }, out[2] = { 32, 64 };
  const cx_hlo_type types[3] = { { CX_HLO_F32, 2, lhs },
                                 { CX_HLO_F32, 1, &packed },
                                 { CX_HLO_F32, 2, out } };
  cx_hlo_builder *b;
  assert_null(cx_hlo_builder_new("m", "main", types, 3, &b));
  cx_hlo_value *operands[3];
  const cx_hlo_type *results[3];
  for (size_t i = 0; i < 3; i++) {
    operands[i] = cx_hlo_param(b, i);
    if (i >= n_operands) results[i - n_operands] = &types[i];
  }
  const cx_hlo_op *call = cpu_opt_kernel_call(b, desc, operands, n_operands,
                                              results, 3 - n_operands);
  assert_non_null(call);
  cpu_kernel_desc found;
  const bool described = cpu_kernel_describe(call, &found);
  cx_hlo_module *module;
  assert_null(cx_hlo_builder_finish(b, operands, 1, &module));
  cx_hlo_module_free(module);
  return described;
}

static void calls_with_other_results(void **state)
{
  (void)state;
  cpu_kernel_desc product = product_desc(32, 64, 48, false, false), pack;
  const int64_t packed = cpu_kernel_dot_pack_of(&product, &pack);
  for (size_t operands = 0; operands < 3; operands++) {
    assert_int_equal(is_described(&product, packed, operands), operands == 2);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(packed_operands),
    cmocka_unit_test(large_products),
    cmocka_unit_test(damaged_packed_operands),
    cmocka_unit_test(calls_with_other_results),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
