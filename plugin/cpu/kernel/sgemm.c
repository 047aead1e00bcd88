// kernel/sgemm: see sgemm.h.
//
// oneDNN can divide a product among threads, but then loses up to a third of
// their time (decision 115). So the result is divided here into as many parts
// as there are threads, and each thread computes one part alone. Only where the
// parts would be tiny does oneDNN divide: it can divide the inner elements too.
#include "kernel/sgemm.h"

#include <math.h>

// Multiplications that are worth a thread.
#define THREAD_WORTH 500000
// The fewest results of a part.
#define LEAST_RESULTS 512
// oneDNN computes so many rows and columns at a time.
#define ROWS 8
#define COLUMNS 16
// oneDNN copies the operands of each part. A number takes as long as so many
// multiplications; twice as long if the operand is stored transposed.
#define COPY 8.0

typedef struct division {
  const cpu_kernel_onednn *d;
  const cpu_kernel_gemm *g;
  int64_t down, across;  // parts
} division;

// On the threads of the pool; NULL: on the calling thread.
static void multiply(const cpu_kernel_onednn *d, const cpu_kernel_gemm *g,
                     cpu_threads *pool)
{
  const bool a_plain = g->a_column == 1, b_plain = g->b_column == 1;
  cpu_kernel_onednn_enter(d, pool);
  d->sgemm(a_plain ? 'N' : 'T', b_plain ? 'N' : 'T', g->m, g->n, g->k,
           g->mode == CPU_KERNEL_GEMM_SUB ? -1.0F : 1.0F, g->a,
           a_plain ? g->a_row : g->a_column, g->b,
           b_plain ? g->b_row : g->b_column,
           g->mode == CPU_KERNEL_GEMM_SET ? 0.0F : 1.0F, g->c, g->ldc);
  cpu_kernel_onednn_leave(d);
}

static int64_t blocks_of(int64_t n, int64_t each)
{
  return (n + each - 1) / each;
}

// Where part i of n rows or columns begins, in whole blocks.
static int64_t begin_of(int64_t n, int64_t each, int64_t i, int64_t parts)
{
  const int64_t begin = blocks_of(n, each) * i / parts * each;
  return begin < n ? begin : n;
}

static void run_parts(void *user, int64_t lo, int64_t hi)
{
  const division *v = user;
  for (int64_t i = lo; i < hi; i++) {
    const int64_t down = i % v->down, across = i / v->down;
    const int64_t row = begin_of(v->g->m, ROWS, down, v->down);
    const int64_t column = begin_of(v->g->n, COLUMNS, across, v->across);
    cpu_kernel_gemm g = *v->g;
    g.m = begin_of(g.m, ROWS, down + 1, v->down) - row;
    g.n = begin_of(g.n, COLUMNS, across + 1, v->across) - column;
    g.a = (const float *)g.a + row * g.a_row;
    g.b = (const float *)g.b + column * g.b_column;
    g.c = (float *)g.c + row * g.ldc + column;
    if (g.m > 0 && g.n > 0) multiply(v->d, &g, NULL);
  }
}

// What the largest part takes, in multiplications for each inner element.
static double cost_of(const cpu_kernel_gemm *g, int64_t down, int64_t across)
{
  const double rows = (double)(blocks_of(blocks_of(g->m, ROWS), down) * ROWS);
  const double columns =
      (double)(blocks_of(blocks_of(g->n, COLUMNS), across) * COLUMNS);
  return rows * columns + COPY * (rows * (g->a_column == 1 ? 1 : 2) +
                                  columns * (g->b_column == 1 ? 1 : 2));
}

static void divide(division *v, int64_t threads)
{
  double best = HUGE_VAL;
  for (int64_t down = 1; down <= threads; down++) {
    if (threads % down != 0) continue;
    const double cost = cost_of(v->g, down, threads / down);
    if (cost >= best) continue;
    best = cost;
    v->down = down;
    v->across = threads / down;
  }
}

void cpu_kernel_sgemm(const cpu_kernel_onednn *d, const cpu_kernel_gemm *g,
                      cpu_threads *pool)
{
  const double worth =
      (double)g->m * (double)g->n * (double)g->k / THREAD_WORTH;
  int64_t threads = cpu_threads_inside() ? 1 : cpu_threads_size(pool);
  if (worth < (double)threads) threads = (int64_t)worth;
  if (threads <= 1) {
    multiply(d, g, NULL);
  } else if (g->m * g->n < threads * LEAST_RESULTS) {
    multiply(d, g, pool);
  } else {
    division v = { .d = d, .g = g };
    divide(&v, threads);
    cpu_threads_for(pool, threads, 1, run_parts, &v);
  }
}
