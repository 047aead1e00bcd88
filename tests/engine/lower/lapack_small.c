// Custom calls of LAPACK's routines on small real matrices, which the engine
// does itself, compared with the interpreter, which calls the library: sizes
// around a vector and around what is small, and matrices that are singular,
// have equal pivots, are not definite or not finite.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lower/compile.h"
#include "support/support.h"

#define BATCH 5

static cpu_threads *pool;

// ---- running ----

static void run_text(const char *text, size_t size, bool interpret,
                     void **results)
{
  const cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL;
  cpu_run_context *context = NULL;
  if (interpret) setenv("CALX_CPU_REF", "1", 1);
  CHECK_STATUS_OK(cpu_lower_compile(text, size, &options, &p));
  unsetenv("CALX_CPU_REF");
  const cpu_run_program_info *info = cpu_run_program_info_of(p);
  for (size_t i = 0; i < info->n_results; i++) {
    const size_t bytes = (size_t)cx_hlo_type_bytes(&info->results[i]);
    results[i] = aligned_alloc(64, (bytes + 64) / 64 * 64);
  }
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  CHECK_STATUS_OK(cpu_run_program_run(p, context, NULL, NULL, results));
  cpu_run_context_free(context);
  cpu_run_program_free(p);
}

static double at(const void *x, bool wide, size_t i)
{
  return wide ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

// n numbers: at most `near` units of rounding of the largest one apart. NaN and
// infinity must stand at the same places.
static void check_near(const void *got, const void *want, size_t n, bool wide,
                       double near, const char *what)
{
  double most = 1;
  for (size_t i = 0; i < n; i++) {
    const double w = fabs(at(want, wide, i));
    if (isfinite(w) && w > most) most = w;
  }
  for (size_t i = 0; i < n; i++) {
    const double g = at(got, wide, i), w = at(want, wide, i);
    if ((isnan(g) && isnan(w)) || g == w) continue;
    if (fabs(g - w) <= near * most * (wide ? 0x1p-52 : 0x1p-23)) continue;
    fail_msg("%s: number %zu is %.9g, LAPACK has %.9g", what, i, g, w);
  }
}

static double random_number(void)
{
  return (double)(rand() % 2001 - 1000) / 1000;
}

// ---- programs ----

typedef double number_fn(int64_t i, int64_t row, int64_t column);

static void add_tensor(cx_text *t, const char *name, int64_t m, int64_t n,
                       const char *type, number_fn *number)
{
  cx_text_format(t, "  %%%s = stablehlo.constant dense<[", name);
  for (int64_t i = 0; i < BATCH; i++) {
    cx_text_format(t, i == 0 ? "[" : ", [");
    for (int64_t j = 0; j < m; j++) {
      cx_text_format(t, j == 0 ? "[" : ", [");
      for (int64_t k = 0; k < n; k++) {
        const double x = number(i, j, k);
        cx_text_format(t, k == 0 ? "" : ", ");
        if (isnan(x)) {
          cx_text_format(t,
                         type[1] == '6' ? "0x7FF8000000000000" : "0x7FC00000");
        } else {
          cx_text_format(t, "%.17e", x);
        }
      }
      cx_text_format(t, "]");
    }
    cx_text_format(t, "]");
  }
  cx_text_format(t, "]> : tensor<%dx%lldx%lldx%s>\n", BATCH, (long long)m,
                 (long long)n, type);
}

#define MATRICES "dense<[1, 2, 0]> : tensor<3xindex>"

// ---- LU ----

// Of the batch: random, singular by a column of zeros, with equal pivots, with
// a subnormal pivot, with NaN.
static double to_factor(int64_t i, int64_t row, int64_t column)
{
  const double x = random_number();
  switch (i) {
    case 1: return column == 1 ? 0 : x;
    case 2: return (row * 7 + column * 3) % 4 < 2 ? 1 : -1;
    case 3: return column == 0 ? x * 0x1p-130 : x;
    case 4: return row == 0 && column == 0 ? (double)NAN : x;
    default: return x;
  }
}

// Numbers, pivots and info of the first matrices are LAPACK's; of the others,
// where rounding decides, the first pivot is.
static void try_lu(int64_t m, int64_t n, bool wide)
{
  const char *type = wide ? "f64" : "f32";
  const int64_t p = m < n ? m : n;
  cx_text t = { 0 };
  cx_text_format(&t,
                 "func.func @main() -> (tensor<%dx%lldx%lldx%s>, "
                 "tensor<%dx%lldxi32>, tensor<%dxi32>) {\n",
                 BATCH, (long long)m, (long long)n, type, BATCH, (long long)p,
                 BATCH);
  add_tensor(&t, "c", m, n, type, to_factor);
  cx_text_format(
      &t,
      "  %%a = stablehlo.optimization_barrier %%c : tensor<%dx%lldx%lldx%s>\n"
      "  %%r:3 = stablehlo.custom_call @lapack_%cgetrf_ffi(%%a) "
      "{mhlo.backend_config = {}, operand_layouts = [" MATRICES
      "], result_layouts = [" MATRICES
      ", dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>]} : "
      "(tensor<%dx%lldx%lldx%s>) -> (tensor<%dx%lldx%lldx%s>, "
      "tensor<%dx%lldxi32>, tensor<%dxi32>)\n"
      "  return %%r#0, %%r#1, %%r#2 : tensor<%dx%lldx%lldx%s>, "
      "tensor<%dx%lldxi32>, tensor<%dxi32>\n}",
      BATCH, (long long)m, (long long)n, type, wide ? 'd' : 's', BATCH,
      (long long)m, (long long)n, type, BATCH, (long long)m, (long long)n, type,
      BATCH, (long long)p, BATCH, BATCH, (long long)m, (long long)n, type,
      BATCH, (long long)p, BATCH);
  void *got[3], *want[3];
  run_text(cx_text_str(&t), t.size, false, got);
  run_text(cx_text_str(&t), t.size, true, want);
  char what[64];
  snprintf(what, sizeof what, "LU of %lld x %lld %s", (long long)m,
           (long long)n, type);
  // Equal pivots: the first of them, while the numbers are exact.
  const size_t each = (size_t)(m * n);
  check_near(got[0], want[0], 2 * each, wide, 2000, what);
  const int32_t *pivots = got[1], *info = got[2];
  assert_memory_equal(pivots, want[1], 2 * (size_t)p * sizeof *pivots);
  for (int64_t i = 2; i < 4 && p > 0; i++) {
    assert_int_equal(pivots[i * p], ((int32_t *)want[1])[i * p]);
  }
  // OpenBLAS multiplies by the subnormal pivot's reciprocal, which is infinite.
  for (size_t i = 0; i < each && m <= 64 && n <= 64; i++) {
    assert_true(isfinite(at(got[0], wide, 3 * each + i)));
  }
  assert_memory_equal(info, want[2], 2 * sizeof *info);
  for (int64_t i = 0; i < BATCH * p; i++) {
    assert_true(pivots[i] > i % p && pivots[i] <= m);
  }
  // NaN reaches all that is left, as in LAPACK.
  for (size_t i = 0; i < each && m == n && m > 1; i++) {
    const double x = at(got[0], wide, 4 * each + i);
    assert_true(i < (size_t)n ? i == 0 || isfinite(x) : isnan(x));
  }
  for (int i = 0; i < 3; i++) {
    free(got[i]);
    free(want[i]);
  }
  cx_text_free(&t);
}

static void lu_is_lapacks(void **unused)
{
  (void)unused;
  static const int64_t sizes[][2] = {
    { 1, 1 }, { 2, 2 },   { 3, 3 },   { 4, 4 },   { 5, 3 },  { 3, 5 }, { 8, 8 },
    { 9, 9 }, { 17, 16 }, { 31, 33 }, { 64, 64 }, { 65, 2 }, { 2, 65 }
  };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    try_lu(sizes[i][0], sizes[i][1], false);
    try_lu(sizes[i][0], sizes[i][1], true);
  }
}

// ---- Cholesky's factor and triangular systems ----

// The second is not definite, the third has NaN.
static double definite(int64_t i, int64_t row, int64_t column)
{
  if (i == 2 && row == 1 && column == 1) return (double)NAN;
  if (row == column) return i == 1 && row == 1 ? -1 : 40;
  return (double)((row * 5 + column * 5 + i) % 7) / 7;
}

// No transpose of itself.
static double triangular(int64_t i, int64_t row, int64_t column)
{
  if (row == column) return 40;
  return (double)((row * 5 + column * 3 + i) % 7) / 7;
}

static double any(int64_t i, int64_t row, int64_t column)
{
  (void)i;
  (void)row;
  (void)column;
  return random_number();
}

// The infos, and the factors of definite matrices.
static void try_cholesky(int64_t n, bool wide)
{
  const char *type = wide ? "f64" : "f32";
  cx_text t = { 0 };
  cx_text_format(&t,
                 "func.func @main() -> (tensor<%dx%lldx%lldx%s>, "
                 "tensor<%dxi32>) {\n",
                 BATCH, (long long)n, (long long)n, type, BATCH);
  add_tensor(&t, "c", n, n, type, definite);
  cx_text_format(
      &t,
      "  %%a = stablehlo.optimization_barrier %%c : tensor<%dx%lldx%lldx%s>\n"
      "  %%r:2 = stablehlo.custom_call @lapack_%cpotrf_ffi(%%a) "
      "{mhlo.backend_config = {uplo = 76 : ui8}, operand_layouts = [" MATRICES
      "], result_layouts = [" MATRICES
      ", dense<0> : tensor<1xindex>]} : (tensor<%dx%lldx%lldx%s>) -> "
      "(tensor<%dx%lldx%lldx%s>, tensor<%dxi32>)\n"
      "  return %%r#0, %%r#1 : tensor<%dx%lldx%lldx%s>, tensor<%dxi32>\n}",
      BATCH, (long long)n, (long long)n, type, wide ? 'd' : 's', BATCH,
      (long long)n, (long long)n, type, BATCH, (long long)n, (long long)n, type,
      BATCH, BATCH, (long long)n, (long long)n, type, BATCH);
  void *got[2], *want[2];
  run_text(cx_text_str(&t), t.size, false, got);
  run_text(cx_text_str(&t), t.size, true, want);
  const size_t each = (size_t)(n * n), size = wide ? 8 : 4;
  check_near(got[0], want[0], each, wide, 100, "Cholesky");
  check_near((char *)got[0] + 3 * each * size,
             (char *)want[0] + 3 * each * size, 2 * each, wide, 100,
             "Cholesky");
  // OpenBLAS does not report the NaN, LAPACK's own potrf does.
  int32_t *info = want[1];
  if (n <= 32) info[2] = 2;
  assert_memory_equal(got[1], info, BATCH * sizeof *info);
  for (int i = 0; i < 2; i++) {
    free(got[i]);
    free(want[i]);
  }
  cx_text_free(&t);
}

static void cholesky_is_lapacks(void **unused)
{
  (void)unused;
  static const int64_t sizes[] = { 2, 3, 8, 17, 32, 33 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    try_cholesky(sizes[i], false);
    try_cholesky(sizes[i], true);
  }
}

// `how`: bits of the side, the triangle, the transpose and the diagonal.
static void try_system(int64_t n, int64_t others, int how, bool wide)
{
  const char *type = wide ? "f64" : "f32";
  const int64_t m = (how & 1) != 0 ? n : others;
  const int64_t k = (how & 1) != 0 ? others : n;
  cx_text t = { 0 };
  cx_text_format(&t, "func.func @main() -> tensor<%dx%lldx%lldx%s> {\n", BATCH,
                 (long long)m, (long long)k, type);
  add_tensor(&t, "c", n, n, type, triangular);
  add_tensor(&t, "d", m, k, type, any);
  cx_text_format(
      &t,
      "  %%a:2 = stablehlo.optimization_barrier %%c, %%d : "
      "tensor<%dx%lldx%lldx%s>, tensor<%dx%lldx%lldx%s>\n"
      "  %%r = stablehlo.custom_call @lapack_%ctrsm_ffi(%%a#0, %%a#1) "
      "{mhlo.backend_config = {diag = %d : ui8, side = %d : ui8, trans_x = %d : "
      "ui8, uplo = %d : ui8}, operand_layouts = [" MATRICES ", " MATRICES
      "], result_layouts = [" MATRICES
      "]} : (tensor<%dx%lldx%lldx%s>, tensor<%dx%lldx%lldx%s>) -> "
      "tensor<%dx%lldx%lldx%s>\n"
      "  return %%r : tensor<%dx%lldx%lldx%s>\n}",
      BATCH, (long long)n, (long long)n, type, BATCH, (long long)m,
      (long long)k, type, wide ? 'd' : 's', (how & 8) != 0 ? 'U' : 'N',
      (how & 1) != 0 ? 'L' : 'R', (how & 4) != 0 ? 'T' : 'N',
      (how & 2) != 0 ? 'L' : 'U', BATCH, (long long)n, (long long)n, type,
      BATCH, (long long)m, (long long)k, type, BATCH, (long long)m,
      (long long)k, type, BATCH, (long long)m, (long long)k, type);
  void *got[1], *want[1];
  run_text(cx_text_str(&t), t.size, false, got);
  run_text(cx_text_str(&t), t.size, true, want);
  const size_t each = (size_t)(n * others);
  check_near(got[0], want[0], 2 * each, wide, 1e5, "a triangular system");
  free(got[0]);
  free(want[0]);
  cx_text_free(&t);
}

static void systems_are_lapacks(void **unused)
{
  (void)unused;
  static const int64_t sizes[][2] = {
    { 1, 1 }, { 3, 1 }, { 8, 7 }, { 17, 8 }, { 32, 41 }
  };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (int how = 0; how < 16; how++) {
      try_system(sizes[i][0], sizes[i][1], how, how % 3 == 0);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(lu_is_lapacks),
    cmocka_unit_test(cholesky_is_lapacks),
    cmocka_unit_test(systems_are_lapacks),
  };
  CHECK_STATUS_OK(cpu_threads_new(2, &pool));
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cpu_threads_free(pool);
  return failed;
}
