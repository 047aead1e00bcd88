// kernel/implicit_split: implicit products on AMX: copies rows and columns from
// where the points' taps are, and split.h packs and multiplies them.
#include <string.h>

#include "kernel/implicit.h"
#include "kernel/matmul.h"
#include "kernel/split.h"

#define INNER CPU_KERNEL_SPLIT_INNER

// Points that a thread has listed: those of consecutive bands are often the
// same.
typedef struct listed_points {
  int64_t first, n;
  cpu_kernel_implicit_point of[INNER];
} listed_points;

typedef struct split_job {
  const cpu_kernel_implicit_plan *p;
  const cpu_kernel_implicit_class *c;
  cpu_threads *pool;
  const float *lhs, *rhs;
  listed_points *points;  // of each thread
} split_job;

// Rows, columns and inner elements of the product of a class.
typedef struct split_sizes {
  int64_t m, n, k;
} split_sizes;

static split_sizes sizes_of(const cpu_kernel_implicit_plan *p,
                            const cpu_kernel_implicit_class *c)
{
  const int64_t taps = c->taps * p->run;
  return p->transposed ? (split_sizes){ taps, p->n, c->points }
                       : (split_sizes){ c->points, p->n, taps };
}

static const cpu_kernel_implicit_point *points_of(const split_job *j,
                                                  int64_t first, int64_t n)
{
  listed_points *l = &j->points[cpu_kernel_rank(j->pool)];
  if (l->first != first || l->n != n) {
    cpu_kernel_implicit_list(j->c, first, n, l->of);
    l->first = first;
    l->n = n;
  }
  return l->of;
}

// How many of n elements from `at` on are of the same run.
static int64_t of_run(const cpu_kernel_implicit_plan *p, int64_t at, int64_t n)
{
  const int64_t left = p->run - at % p->run;
  return n < left ? n : left;
}

static const cpu_kernel_implicit_tap *tap_of(const split_job *j, int64_t at)
{
  return &j->p->taps[j->c->first_tap + at / j->p->run];
}

// from: NULL: zeros.
static void copy(float *to, const float *from, int64_t n)
{
  if (from == NULL) {
    memset(to, 0, sizeof *to * (size_t)n);
  } else {
    memcpy(to, from, sizeof *to * (size_t)n);
  }
}

// A point's n elements of the run of tap t, from the one after `skip` on.
static void copy_run(const split_job *j, const cpu_kernel_implicit_point *x,
                     const cpu_kernel_implicit_tap *t, int64_t skip, int64_t n,
                     float *to)
{
  const float *from = cpu_kernel_implicit_address(j->p, j->lhs, x, t);
  copy(to, from == NULL ? NULL : from + skip, n);
}

// Rows are points: of each, runs of elements of some taps.
static void gather_points(void *user, int64_t first, int64_t n, int64_t k,
                          int64_t inner, float *to)
{
  const split_job *j = user;
  const cpu_kernel_implicit_point *points = points_of(j, first, n);
  for (int64_t at = 0, here; at < inner; at += here) {
    here = of_run(j->p, k + at, inner - at);
    const cpu_kernel_implicit_tap *t = tap_of(j, k + at);
    const int64_t skip = (k + at) % j->p->run;
    for (int64_t i = 0; i < n; i++) {
      copy_run(j, &points[i], t, skip, here, to + i * inner + at);
    }
  }
}

// Inner elements are points: of each, elements of a tap's run, or of several.
static void gather_taps(void *user, int64_t first, int64_t n, int64_t k,
                        int64_t inner, float *to)
{
  const split_job *j = user;
  const cpu_kernel_implicit_point *points = points_of(j, k, inner);
  for (int64_t at = 0, here; at < n; at += here) {
    here = of_run(j->p, first + at, n - at);
    const cpu_kernel_implicit_tap *t = tap_of(j, first + at);
    const int64_t skip = (first + at) % j->p->run;
    for (int64_t i = 0; i < inner; i++) {
      copy_run(j, &points[i], t, skip, here,
               to + i * CPU_KERNEL_SPLIT_LINES + at);
    }
  }
}

// Columns of the weights, whose taps may be in any order.
static void gather_weights(void *user, int64_t first, int64_t n, int64_t k,
                           int64_t inner, float *to)
{
  const split_job *j = user;
  const cpu_kernel_implicit_plan *p = j->p;
  for (int64_t at = 0, here; at < inner; at += here) {
    here = of_run(p, k + at, inner - at);
    const float *from = j->rhs + tap_of(j, k + at)->other +
                        (k + at) % p->run * p->b_row + first * p->b_column;
    if (p->b_row == 1) {
      for (int64_t i = 0; i < n; i++) {
        copy(to + i * inner + at, from + i * p->b_column, here);
      }
    } else {
      for (int64_t i = 0; i < here; i++) {
        copy(to + (at + i) * CPU_KERNEL_SPLIT_LINES, from + i * p->b_row, n);
      }
    }
  }
}

// Where the product's rows begin in the result.
static void list_rows(const split_job *j, int64_t m, int64_t *out)
{
  const cpu_kernel_implicit_plan *p = j->p;
  for (int64_t i = 0, n; i < m; i += n) {
    if (p->transposed) {
      n = p->run;
      const int64_t row = tap_of(j, i)->other;
      for (int64_t q = 0; q < n; q++) out[i + q] = row + q * p->n;
    } else {
      n = m - i < INNER ? m - i : INNER;
      const cpu_kernel_implicit_point *points = points_of(j, i, n);
      for (int64_t q = 0; q < n; q++) out[i + q] = points[q].row;
    }
  }
}

static bool run_class(split_job *j, int64_t *rows, float *out,
                      unsigned char *memory)
{
  float *sums = (float *)(void *)(memory + j->p->sums_at);
  const cpu_kernel_implicit_plan *p = j->p;
  const split_sizes size = sizes_of(p, j->c);
  for (int i = 0; i < cpu_threads_size(j->pool); i++) j->points[i].n = 0;
  cpu_kernel_split s = { .m = size.m,
                         .n = size.n,
                         .k = size.k,
                         .a = j->lhs,
                         .a_row = p->transposed ? 1 : p->run,
                         .a_column = p->transposed ? p->run : 1,
                         .b = j->rhs,
                         .b_row = p->b_row,
                         .b_column = p->b_column,
                         .gather_a =
                             p->transposed ? gather_taps : gather_points,
                         .gather_b = p->transposed ? NULL : gather_weights,
                         .user = j,
                         .sums = sums,
                         .c = out,
                         .c_rows = rows };
  list_rows(j, size.m, rows);
  if (size.k > 0) {
    return cpu_kernel_split_run(&s, j->pool, memory, p->split_each);
  }
  for (int64_t i = 0; i < size.m; i++) copy(out + rows[i], NULL, size.n);
  return true;
}

bool cpu_kernel_implicit_run_split(const cpu_kernel_implicit_plan *p,
                                   cpu_threads *pool, const float *lhs,
                                   const float *rhs, float *out,
                                   unsigned char *scratch)
{
  split_job j = { .p = p,
                  .pool = pool,
                  .lhs = lhs,
                  .rhs = rhs,
                  .points = (listed_points *)(void *)(scratch + p->listed_at) };
  int64_t *rows = (int64_t *)(void *)(scratch + p->row_starts_at);
  bool finite = true;
  for (int i = 0; i < p->n_classes && finite; i++) {
    j.c = &p->classes[i];
    finite = run_class(&j, rows, out, scratch);
  }
  return finite;
}

// ---- planning ---------------------------------------------------------------

// Below, packing takes longer than it saves.
#define LEAST_ROWS 96
#define LEAST_COLUMNS 128
#define LEAST_INNER 128
#define LEAST_RUN 16

static bool is_large(int64_t columns, int64_t inner)
{
  return cpu_kernel_has_tiles() && columns >= LEAST_COLUMNS &&
         inner >= LEAST_INNER;
}

bool cpu_kernel_implicit_splits(int64_t rows, int64_t columns, int64_t inner)
{
  return rows >= LEAST_ROWS && is_large(columns, inner) &&
         cpu_kernel_split_fills(rows, columns, inner);
}

bool cpu_kernel_implicit_plan_split(cpu_kernel *kernel,
                                    cpu_kernel_implicit_plan *p)
{
  int64_t rows = 0, most = 0;
  size_t sums = 0;
  p->split_each = 0;
  for (int i = 0; i < p->n_classes; i++) {
    const split_sizes size = sizes_of(p, &p->classes[i]);
    rows += size.m;
    if (size.m > most) most = size.m;
    if (size.k == 0) continue;
    if (!is_large(size.n, size.k)) return false;
    const size_t each = cpu_kernel_split_scratch(size.n, size.k);
    if (each > p->split_each) p->split_each = each;
    const size_t of = cpu_kernel_split_sums_bytes(size.m, size.n, size.k);
    if (of > sums) sums = of;
  }
  if (rows < LEAST_ROWS || p->run < LEAST_RUN) return false;
  // The same scratch serves implicit.c, if an operand has an infinity or NaN.
  const size_t before = kernel->scratch;
  kernel->scratch = 0;
  (void)cpu_kernel_reserve(kernel, p->split_each * (size_t)kernel->threads);
  p->listed_at = cpu_kernel_reserve(
      kernel, sizeof(listed_points) * (size_t)kernel->threads);
  p->row_starts_at = cpu_kernel_reserve(kernel, sizeof(int64_t) * (size_t)most);
  p->sums_at = cpu_kernel_reserve(kernel, sums);
  if (kernel->scratch < before) kernel->scratch = before;
  return true;
}
