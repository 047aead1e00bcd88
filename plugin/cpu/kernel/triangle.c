// kernel/triangle: see triangle.h.
#include "kernel/triangle.h"

#include <string.h>

#define BLOCK CPU_KERNEL_TRIANGLE_BLOCK
// Rows of a right-hand side that are transposed at once, if it is `right`.
#define STRIP 64
// Multiplications that are worth a thread.
#define THREAD_WORTH 65536

static const cpu_kernel_triangle_fns *fns(cpu_kernel_math math)
{
  switch (cpu_kernel_vector_bytes()) {
    case 64: return &cpu_kernel_triangle_64[math];
    case 32: return &cpu_kernel_triangle_32[math];
    default: return &cpu_kernel_triangle_16[math];
  }
}

static size_t rounded(size_t bytes)
{
  return (bytes + 63) / 64 * 64;
}

// Scratch is a packed triangle, a transposed strip, and the product's panels.
static size_t packed_bytes(cpu_kernel_math math)
{
  return rounded((size_t)BLOCK * BLOCK * cpu_kernel_math_bytes(math));
}

static size_t strip_bytes(cpu_kernel_math math)
{
  return rounded((size_t)BLOCK * STRIP * cpu_kernel_math_bytes(math));
}

size_t cpu_kernel_triangle_scratch(cpu_kernel_math math, int64_t n,
                                   int64_t others)
{
  const int64_t most = n > others ? n : others;
  return packed_bytes(math) + strip_bytes(math) +
         cpu_kernel_gemm_panels(math, most, most, n);
}

static unsigned char *panels_of(cpu_kernel_math math, unsigned char *scratch)
{
  return scratch + packed_bytes(math) + strip_bytes(math);
}

// About half of n > BLOCK, a multiple of BLOCK.
static int64_t half_of(int64_t n)
{
  return (n / 2 + BLOCK - 1) / BLOCK * BLOCK;
}

// ---- triangular systems -----------------------------------------------------

// One system: the part [at, at + n) of the triangle, whole right-hand sides.
typedef struct system {
  const cpu_kernel_triangle *t;
  int64_t bytes;  // of an element
  unsigned char *x;
  int64_t ldx, rows, columns;
  unsigned char *scratch;
} system;

// Copies elements from strides to strides.
static void copy(int64_t bytes, const unsigned char *from, int64_t from_row,
                 int64_t from_column, unsigned char *to, int64_t to_row,
                 int64_t rows, int64_t columns)
{
  for (int64_t i = 0; i < rows; i++) {
    if (from_column == 1) {
      memcpy(to + i * to_row * bytes, from + i * from_row * bytes,
             (size_t)(columns * bytes));
      continue;
    }
    for (int64_t j = 0; j < columns; j++) {
      const unsigned char *p = from + (i * from_row + j * from_column) * bytes;
      unsigned char *q = to + (i * to_row + j) * bytes;
      if (bytes == 4) {
        memcpy(q, p, 4);
      } else {
        memcpy(q, p, 8);
      }
    }
  }
}

// The lower triangle that the block's functions take: reversed if the first
// unknown is the last, transposed for unknowns on the right.
static void pack(const system *s, int64_t at, int64_t n, bool forward)
{
  const cpu_kernel_triangle *t = s->t;
  const int64_t row = t->right ? t->column : t->row;
  const int64_t column = t->right ? t->row : t->column;
  const int64_t sign = forward ? 1 : -1;
  const int64_t first = forward ? at : at + n - 1;
  for (int64_t i = 0; i < n; i++) {
    copy(s->bytes,
         t->a + (first * (t->row + t->column) + sign * i * row) * s->bytes, 0,
         sign * column, s->scratch + i * BLOCK * s->bytes, 0, 1,
         t->unit ? i : i + 1);
  }
}

static void solve_block(const system *s, int64_t at, int64_t n)
{
  const cpu_kernel_triangle *t = s->t;
  const bool forward = t->lower != t->right;
  const int64_t first = forward ? 0 : n - 1;
  cpu_kernel_triangle_solve_fn *solve = fns(t->math)->solve;
  pack(s, at, n, forward);
  if (!t->right) {
    solve(s->scratch, n, t->unit, s->x + (at + first) * s->ldx * s->bytes,
          forward ? s->ldx : -s->ldx, s->columns);
    return;
  }
  unsigned char *strip = s->scratch + packed_bytes(t->math);
  for (int64_t i = 0; i < s->rows; i += STRIP) {
    const int64_t here = s->rows - i < STRIP ? s->rows - i : STRIP;
    unsigned char *x = s->x + (i * s->ldx + at) * s->bytes;
    copy(s->bytes, x, 1, s->ldx, strip, STRIP, n, here);
    solve(s->scratch, n, t->unit, strip + first * STRIP * s->bytes,
          forward ? STRIP : -STRIP, here);
    copy(s->bytes, strip, 1, STRIP, x, s->ldx, here, n);
  }
}

// Subtracts from the unknowns [to, to + m) what is known of [from, from + k).
static void subtract(const system *s, int64_t to, int64_t m, int64_t from,
                     int64_t k)
{
  const cpu_kernel_triangle *t = s->t;
  const int64_t row = t->right ? from : to, column = t->right ? to : from;
  const int64_t step = t->right ? 1 : s->ldx;
  const void *a = t->a + (row * t->row + column * t->column) * s->bytes;
  const void *known = s->x + from * step * s->bytes;
  cpu_kernel_gemm g = { .m = m,
                        .n = s->columns,
                        .k = k,
                        .a = a,
                        .a_row = t->row,
                        .a_column = t->column,
                        .b = known,
                        .b_row = s->ldx,
                        .b_column = 1,
                        .c = s->x + to * step * s->bytes,
                        .ldc = s->ldx,
                        .mode = CPU_KERNEL_GEMM_SUB };
  if (t->right) {
    g.m = s->rows;
    g.n = m;
    g.a = known;
    g.a_row = s->ldx;
    g.a_column = 1;
    g.b = a;
    g.b_row = t->row;
    g.b_column = t->column;
  }
  cpu_kernel_gemm_run(t->math, &g, panels_of(t->math, s->scratch));
}

static void solve_part(const system *s, int64_t at, int64_t n)
{
  if (n <= BLOCK) {
    solve_block(s, at, n);
    return;
  }
  const int64_t half = half_of(n);
  if (s->t->lower != s->t->right) {
    solve_part(s, at, half);
    subtract(s, at + half, n - half, at, half);
    solve_part(s, at + half, n - half);
  } else {
    solve_part(s, at + half, n - half);
    subtract(s, at, half, at + half, n - half);
    solve_part(s, at, half);
  }
}

void cpu_kernel_triangle_solve(const cpu_kernel_triangle *t, void *x,
                               int64_t ldx, int64_t rows, int64_t columns,
                               unsigned char *scratch)
{
  if (rows == 0 || columns == 0) return;
  const int64_t bytes = (int64_t)cpu_kernel_math_bytes(t->math);
  const system s = { t, bytes, x, ldx, rows, columns, scratch };
  solve_part(&s, 0, t->n);
}

// ---- Cholesky's factors -----------------------------------------------------

typedef struct factoring {
  cpu_kernel_math math;
  int64_t bytes, lda;
  cpu_threads *pool;
  unsigned char *scratch;
  size_t each;
  // One step: `known` columns of L at `a`, and the `n` rows below, `tile` rows
  // at once.
  unsigned char *a;
  int64_t known, n, tile;
} factoring;

static unsigned char *scratch_here(const factoring *f)
{
  return f->scratch + (size_t)cpu_kernel_rank(f->pool) * f->each;
}

// Rows below the known block: L21 = A21 L11^-T.
static void solve_rows(void *user, int64_t lo, int64_t hi)
{
  const factoring *f = user;
  const cpu_kernel_triangle t = { .math = f->math,
                                  .a = f->a,
                                  .n = f->known,
                                  .row = 1,
                                  .column = f->lda,
                                  .right = true };
  cpu_kernel_triangle_solve(&t, f->a + (f->known + lo) * f->lda * f->bytes,
                            f->lda, hi - lo, f->known, scratch_here(f));
}

// A tile of rows of A22 - L21 L21^T, up to the diagonal.
static void update_tile(const factoring *f, int64_t at)
{
  const int64_t rows = f->n - at < f->tile ? f->n - at : f->tile;
  const unsigned char *below = f->a + f->known * f->lda * f->bytes;
  unsigned char *to = f->a + f->known * (f->lda + 1) * f->bytes;
  const cpu_kernel_gemm g = { .m = rows,
                              .n = at + rows,
                              .k = f->known,
                              .a = below + at * f->lda * f->bytes,
                              .b = below,
                              .a_row = f->lda,
                              .a_column = 1,
                              .b_row = 1,
                              .b_column = f->lda,
                              .c = to + at * f->lda * f->bytes,
                              .ldc = f->lda,
                              .mode = CPU_KERNEL_GEMM_SUB };
  cpu_kernel_gemm_run(f->math, &g, panels_of(f->math, scratch_here(f)));
}

// A tile from above and one from below: pairs of equal work.
static void update_pairs(void *user, int64_t lo, int64_t hi)
{
  const factoring *f = user;
  const int64_t tiles = (f->n + f->tile - 1) / f->tile;
  for (int64_t i = lo; i < hi; i++) {
    update_tile(f, i * f->tile);
    if (i != tiles - 1 - i) update_tile(f, (tiles - 1 - i) * f->tile);
  }
}

static void factor_part(factoring *f, unsigned char *a, int64_t n)
{
  if (n <= BLOCK) {
    fns(f->math)->factor(a, n, f->lda);
    return;
  }
  const int64_t half = half_of(n), rest = n - half;
  factor_part(f, a, half);
  const int64_t fair = rest / (4 * cpu_threads_size(f->pool)) / 8 * 8;
  f->a = a;
  f->known = half;
  f->n = rest;
  f->tile = fair < 64 ? 64 : fair > 256 ? 256 : fair;
  cpu_threads_for(f->pool, rest, THREAD_WORTH / (half * half / 2) + 16,
                  solve_rows, f);
  const int64_t tiles = (rest + f->tile - 1) / f->tile;
  cpu_threads_for(f->pool, (tiles + 1) / 2,
                  THREAD_WORTH / (f->tile * rest * half) + 1, update_pairs, f);
  factor_part(f, a + half * (f->lda + 1) * f->bytes, rest);
}

void cpu_kernel_triangle_factor(cpu_kernel_math math, void *a, int64_t n,
                                cpu_threads *pool, unsigned char *scratch,
                                size_t each)
{
  const int64_t bytes = (int64_t)cpu_kernel_math_bytes(math);
  factoring f = { .math = math,
                  .bytes = bytes,
                  .lda = n,
                  .pool = pool,
                  .scratch = scratch,
                  .each = each };
  if (n > 0) factor_part(&f, a, n);
}

void cpu_kernel_lu(cpu_kernel_math math, const void *a, int64_t m, int64_t n,
                   void *factors, int32_t *pivots, int32_t *info)
{
  fns(math)->lu(a, m, n, factors, pivots, info);
}
