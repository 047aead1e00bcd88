// Cholesky's factors and triangular systems against the textbook's loops in
// long double.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "case.h"
#include "linalg_case.h"

static const struct {
  const char *name;
  cx_hlo_elem elem;
  double unit;
} types[] = { { "f32", CX_HLO_F32, 6e-8 },
              { "f64", CX_HLO_F64, 1.2e-16 },
              { "bf16", CX_HLO_BF16, 4e-3 },
              { "f16", CX_HLO_F16, 5e-4 } };

static double random_real(void)
{
  return ((double)pick(20001) - 10000) / 10000;
}

// ---- triangular systems ----

static bool is_read(const problem *p, int64_t i, int64_t j)
{
  return i == j ? !p->unit_diagonal : p->lower == (i > j);
}

// Element (i, j) of op(A).
static extended element(const problem *p, const extended *a, int64_t i,
                        int64_t j)
{
  if (i == j && p->unit_diagonal) return 1;
  return p->transpose ? a[j * p->n + i] : a[i * p->n + j];
}

// Entries of about 1/n keep the solution and its error small. What is not read
// is NaN.
static void fill_system(problem *p)
{
  const double size = p->n > 4 ? 1.0 / (double)p->n : 0.25;
  for (int64_t i = 0; i < p->batch * p->n * p->n; i++) {
    const int64_t row = i / p->n % p->n, column = i % p->n;
    const double v = !is_read(p, row, column) ? (double)NAN
                     : row == column          ? 1.5 + random_real() / 2
                                              : random_real() * size;
    problem_store(p, p->lhs, i, v);
    p->a[i] = (extended)problem_load(p, p->lhs, i);
  }
  for (int64_t i = 0; i < p->batch * p->n * p->others; i++) {
    problem_store(p, p->rhs, i, random_real());
    p->b[i] = (extended)problem_load(p, p->rhs, i);
  }
}

// x, `step` apart, for b in its place.
static void solve_one(const problem *p, const extended *a, extended *b,
                      int64_t step)
{
  const bool forward = (p->lower != (p->transpose != 0)) == p->left;
  for (int64_t k = 0; k < p->n; k++) {
    const int64_t i = forward ? k : p->n - 1 - k;
    extended s = b[i * step];
    for (int64_t l = 0; l < k; l++) {
      const int64_t j = forward ? l : p->n - 1 - l;
      s -= (p->left ? element(p, a, i, j) : element(p, a, j, i)) * b[j * step];
    }
    b[i * step] = s / element(p, a, i, i);
  }
}

static size_t check(const problem *p, int64_t n, double bound)
{
  size_t wrong = 0;
  for (int64_t i = 0; i < n; i++) {
    const double got = problem_load(p, p->out, i), want = (double)p->b[i];
    const bool right =
        isnan(want) ? isnan(got) : fabs(got - want) <= bound * (1 + fabs(want));
    if (!right && wrong++ == 0) {
      print_message(
          "%s %lldx%lld others %lld lower %d left %d unit %d "
          "transpose %d: at %lld %g, wanted %g\n",
          p->type, (long long)p->batch, (long long)p->n, (long long)p->others,
          p->lower, p->left, p->unit_diagonal, p->transpose, (long long)i, got,
          want);
    }
  }
  return wrong;
}

static size_t try_system(problem *p, cpu_threads *pool)
{
  problem_allocate(p);
  fill_system(p);
  problem_run(p, pool);
  const int64_t each = p->n * p->others;
  for (int64_t k = 0; k < p->batch; k++) {
    for (int64_t i = 0; i < p->others; i++) {
      solve_one(p, p->a + k * p->n * p->n,
                p->b + k * each + i * (p->left ? 1 : p->n),
                p->left ? p->others : 1);
    }
  }
  const double f32 = p->elem == CX_HLO_F64 ? 0 : 40 * 6e-8;
  const size_t wrong = check(p, p->batch * each, 40 * p->unit + f32);
  problem_release(p);
  return wrong;
}

// ---- Cholesky's factors ----

// A = M M^T / n + I / 2, mirrored; the triangle that is not read is NaN.
static void fill_positive(problem *p)
{
  const int64_t n = p->n;
  extended *m = calloc((size_t)(n * n) + 1, sizeof *m);
  for (int64_t k = 0; k < p->batch; k++) {
    for (int64_t i = 0; i < n * n; i++) m[i] = (extended)random_real();
    for (int64_t i = 0; i < n; i++) {
      for (int64_t j = 0; j < n; j++) {
        extended s = i == j ? 0.5L : 0;
        const bool read = i == j || p->lower == (i > j);
        for (int64_t l = 0; read && l < n; l++) {
          s += m[i * n + l] * m[j * n + l] / (extended)n;
        }
        problem_store(p, p->lhs, (k * n + i) * n + j,
                      read ? (double)s : (double)NAN);
      }
    }
  }
  free(m);
}

// The wanted L or U, in b.
static void factor_one(const problem *p, int64_t k)
{
  const int64_t n = p->n;
  extended *l = p->b + k * n * n;
  const int64_t row = p->lower ? n : 1, column = p->lower ? 1 : n;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j <= i; j++) {
      extended s =
          (extended)problem_load(p, p->lhs, k * n * n + i * row + j * column);
      for (int64_t t = 0; t < j; t++) {
        s -= l[i * row + t * column] * l[j * row + t * column];
      }
      const extended d = l[j * row + j * column];
      l[i * row + j * column] = i > j   ? s / d
                                : s > 0 ? sqrtl(s)
                                        : (extended)NAN;
    }
  }
}

static size_t try_factor(problem *p, cpu_threads *pool, int64_t bad)
{
  problem_allocate(p);
  fill_positive(p);
  if (bad >= 0) problem_store(p, p->lhs, bad * p->n + bad, -1);
  memset(p->out, 0x7f,
         (size_t)(p->batch * p->n * p->n) * cx_hlo_elem_bytes(p->elem));
  problem_run(p, pool);
  for (int64_t k = 0; k < p->batch; k++) factor_one(p, k);
  // The smallest eigenvalue is at least 1/2, the largest below 2.
  const double f32 = p->elem == CX_HLO_F64 ? 0 : 100 * 6e-8;
  const size_t wrong = check(p, p->batch * p->n * p->n, 100 * p->unit + f32);
  problem_release(p);
  return wrong;
}

// ---- tests ----

static int64_t random_size(void)
{
  switch (pick(4)) {
    case 0: return pick(5);
    case 1: return 30 + pick(8);
    case 2: return pick(70);
    default: return 1 + pick(120);
  }
}

static void random_problems(bool solves, int rounds)
{
  size_t wrong = 0;
  for (int threads = 1; threads <= 3; threads++) {
    cpu_threads *pool = NULL;
    assert_null(cpu_threads_new(threads, &pool));
    for (int i = 0; i < rounds; i++) {
      pick_seed((uint64_t)(300 + i + 1000 * threads));
      const unsigned t = pick(2) ? pick(2) : pick(4);
      problem p = { .type = types[t].name,
                    .elem = types[t].elem,
                    .unit = types[t].unit,
                    .batch = pick(5),
                    .n = random_size(),
                    .others = random_size(),
                    .solves = solves,
                    .lower = pick(2),
                    .left = pick(2),
                    .unit_diagonal = solves && pick(2),
                    .transpose = (int)pick(3) };
      wrong += solves ? try_system(&p, pool) : try_factor(&p, pool, -1);
    }
    cpu_threads_free(pool);
  }
  assert_int_equal(wrong, 0);
}

static void systems(void **state)
{
  (void)state;
  random_problems(true, 150);
}

static void factors(void **state)
{
  (void)state;
  random_problems(false, 60);
}

// Several levels of halves, tiles of all sizes, parts for each thread.
static void large(void **state)
{
  (void)state;
  for (int threads = 1; threads <= 3; threads++) {
    cpu_threads *pool = NULL;
    assert_null(cpu_threads_new(threads, &pool));
    for (unsigned i = 0; i < 8; i++) {
      problem p = { .type = types[i % 2].name,
                    .elem = types[i % 2].elem,
                    .unit = types[i % 2].unit,
                    .batch = 1,
                    .n = 300 - 7 * (int64_t)i,
                    .others = 200,
                    .solves = true,
                    .lower = (i & 2) != 0,
                    .left = (i & 4) != 0,
                    .transpose = (int)(i & 1) };
      assert_int_equal(try_system(&p, pool), 0);
      p.solves = false;
      assert_int_equal(try_factor(&p, pool, -1), 0);
    }
    cpu_threads_free(pool);
  }
}

// From the column that is not positive on everything is NaN, as the interpreter
// has it.
static void not_positive(void **state)
{
  (void)state;
  cpu_threads *pool = NULL;
  assert_null(cpu_threads_new(2, &pool));
  for (int64_t bad = 0; bad < 150; bad += 29) {
    problem p = { .type = "f32",
                  .elem = CX_HLO_F32,
                  .unit = 6e-8,
                  .batch = 1,
                  .n = 150,
                  .lower = bad % 2 == 0 };
    assert_int_equal(try_factor(&p, pool, bad), 0);
  }
  cpu_threads_free(pool);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(systems),
    cmocka_unit_test(factors),
    cmocka_unit_test(large),
    cmocka_unit_test(not_positive),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
