// kernel/dot: runs a described dot_general as matrix products.
//
// Complex numbers become two planes, and their product four products. If there
// are enough batches, they run on different threads; else each product is
// divided among the threads.
#include "kernel/dot.h"

#include <stdatomic.h>

#include "kernel/gemm.h"
#include "kernel/packed.h"
#include "kernel/sgemm.h"

// Multiplications that are worth a thread.
#define THREAD_WORTH 65536

// ---- running ----------------------------------------------------------------

// One product of planes, which are in scratch or the tensors themselves.
typedef struct product {
  const cpu_kernel_dot_plan *p;
  cpu_threads *pool;
  cpu_kernel_planes planes;
  unsigned char *panels;
  float *sums;    // of split.h; NULL: none
  int64_t batch;  // whose rows or columns are divided among the threads
  _Atomic bool failed;
} product;

// False: an operand has an infinity or NaN.
static bool use_split(const product *q, const cpu_kernel_gemm *g)
{
  const cpu_kernel_split s = { .m = g->m,
                               .n = g->n,
                               .k = g->k,
                               .a = g->a,
                               .b = g->b,
                               .a_row = g->a_row,
                               .a_column = g->a_column,
                               .b_row = g->b_row,
                               .b_column = g->b_column,
                               .sums = q->sums,
                               .c = g->c };
  return cpu_kernel_split_run(&s, q->pool, q->panels, q->p->panels_each);
}

// The transposed product, if the columns are few.
static void use_rows(const cpu_kernel_dot_plan *p, const cpu_kernel_gemm *g,
                     void *packed)
{
  const bool turned = p->few_columns;
  const cpu_kernel_rows r = { .m = turned ? g->n : g->m,
                              .n = turned ? g->m : g->n,
                              .k = g->k,
                              .a = turned ? g->b : g->a,
                              .a_row = turned ? g->b_column : g->a_row,
                              .a_column = turned ? g->b_row : g->a_column,
                              .b = turned ? g->a : g->b,
                              .type =
                                  p->factors[turned ? 0 : 1].gathered
                                      ? CX_HLO_F32
                                      : p->operands[turned ? 0 : 1].view.type,
                              .b_row = turned ? g->a_column : g->b_row,
                              .b_column = turned ? g->a_row : g->b_column,
                              .c = g->c,
                              .c_row = turned ? 1 : g->ldc,
                              .c_column = turned ? g->ldc : 1 };
  cpu_kernel_rows_run(&r, packed);
}

static void use_narrow(const cpu_kernel_dot_plan *p, const cpu_kernel_gemm *g,
                       void *panels)
{
  const cpu_kernel_narrow n = { .m = g->m,
                                .n = g->n,
                                .k = g->k,
                                .a = g->a,
                                .b = g->b,
                                .a_signed =
                                    p->operands[0].view.type == CX_HLO_I8,
                                .b_signed =
                                    p->operands[1].view.type == CX_HLO_I8,
                                .a_row = g->a_row,
                                .a_column = g->a_column,
                                .b_row = g->b_row,
                                .b_column = g->b_column,
                                .c = g->c,
                                .ldc = g->ldc };
  cpu_kernel_narrow_run(&n, panels);
}

static void multiply(product *q, int64_t batch, int64_t row, int64_t rows,
                     int64_t column, int64_t columns)
{
  const cpu_kernel_dot_plan *p = q->p;
  const cpu_kernel_dot_factor *l = &p->factors[0], *r = &p->factors[1];
  int64_t at[2] = { row * l->row, column * r->column };
  int64_t rest = batch;
  for (int64_t i = p->d.n_batch - 1; i >= 0; i--) {
    const int64_t index = rest % p->d.batch[i];
    rest /= p->d.batch[i];
    at[0] += index * l->batch[i];
    at[1] += index * r->batch[i];
  }
  const cpu_kernel_gemm g = {
    .m = rows,
    .n = columns,
    .k = p->k,
    .a = q->planes.lhs + at[0] * p->bytes[0],
    .b = q->planes.rhs + at[1] * p->bytes[1],
    .a_row = l->row,
    .a_column = l->column,
    .b_row = r->row,
    .b_column = r->column,
    .c = q->planes.out + ((batch * p->m + row) * p->n + column) * p->bytes[2],
    .ldc = p->n,
    .mode = q->planes.mode
  };
  unsigned char *panels =
      q->panels + (size_t)cpu_kernel_rank(q->pool) * p->panels_each;
  if (p->few_rows || p->few_columns) {
    use_rows(p, &g, panels);
  } else if (p->narrow) {
    use_narrow(p, &g, panels);
  } else if (p->matmul != NULL) {
    if (!cpu_kernel_matmul_run(p->matmul, p->divided ? q->pool : NULL, g.a, g.b,
                               g.c, panels)) {
      atomic_store(&q->failed, true);
    }
  } else if (p->split && use_split(q, &g)) {
    return;
  } else if (p->onednn != NULL) {
    cpu_kernel_sgemm(p->onednn, &g, q->pool);
  } else {
    cpu_kernel_gemm_run(p->math, &g, panels);
  }
}

// Of the one dimension that batches have.
static void multiply_many(const product *q, int64_t lo, int64_t hi)
{
  const cpu_kernel_dot_plan *p = q->p;
  const cpu_kernel_dot_factor *l = &p->factors[0], *r = &p->factors[1];
  const cpu_kernel_many many = {
    .one = { .m = p->m,
             .n = p->n,
             .k = p->k,
             .a = q->planes.lhs + lo * l->batch[0] * p->bytes[0],
             .b = q->planes.rhs + lo * r->batch[0] * p->bytes[1],
             .a_row = l->row,
             .a_column = l->column,
             .b_row = r->row,
             .b_column = r->column,
             .c = q->planes.out + lo * p->m * p->n * p->bytes[2],
             .ldc = p->n },
    .a_step = l->batch[0],
    .b_step = r->batch[0],
    .products = hi - lo
  };
  cpu_kernel_many_run(p->math, &many);
}

static void run_batches(void *user, int64_t lo, int64_t hi)
{
  product *q = user;
  if (q->p->many) {
    multiply_many(q, lo, hi);
    return;
  }
  for (int64_t i = lo; i < hi; i++) multiply(q, i, 0, q->p->m, 0, q->p->n);
}

// Rows and columns are divided in tiles.
#define TILE_ROWS 8
#define TILE_COLUMNS 48
// Tiles of rows whose products take eight times as long as packing b.
#define PACK_TILES 8

static void run_rows(void *user, int64_t lo, int64_t hi)
{
  product *q = user;
  int64_t end = hi * TILE_ROWS < q->p->m ? hi * TILE_ROWS : q->p->m;
  multiply(q, q->batch, lo * TILE_ROWS, end - lo * TILE_ROWS, 0, q->p->n);
}

static void run_columns(void *user, int64_t lo, int64_t hi)
{
  product *q = user;
  int64_t end = hi * TILE_COLUMNS < q->p->n ? hi * TILE_COLUMNS : q->p->n;
  multiply(q, q->batch, 0, q->p->m, lo * TILE_COLUMNS, end - lo * TILE_COLUMNS);
}

// Tiles of a part of the rows. Each part packs all of b, so it has as many rows
// as pay for that, unless then some threads would have fewer parts than others.
static int64_t rows_grain(const product *q, int64_t tiles)
{
  const cpu_kernel_dot_plan *p = q->p;
  const int64_t worth = THREAD_WORTH / (TILE_ROWS * p->n * p->k + 1) + 1;
  const int64_t threads = cpu_threads_size(q->pool);
  const int64_t each = tiles / PACK_TILES / threads;  // parts of a thread
  const int64_t fair = tiles / (threads * (each > 1 ? each : 1));
  return worth > fair ? worth : fair;
}

// Rows of the result that are transposed at a time.
#define TURNED_ROWS 16

// q->panels, (n, m), to the rows of the result.
static void turn_rows(void *user, int64_t lo, int64_t hi)
{
  const product *q = user;
  const int64_t m = q->p->m, n = q->p->n, row = lo * TURNED_ROWS;
  const int64_t end = hi * TURNED_ROWS < m ? hi * TURNED_ROWS : m;
  const float *from = (const float *)(const void *)q->panels;
  float *to = (float *)(void *)q->planes.out;
  cpu_kernel_packed_get()->panel(from + row, 1, m, end - row, n, n,
                                 to + row * n);
}

// Computes rhs^T lhs, and from it its transpose, which is the product.
static void run_turned(product *q)
{
  const cpu_kernel_dot_plan *p = q->p;
  const cpu_kernel_dot_factor *l = &p->factors[0], *r = &p->factors[1];
  const cpu_kernel_gemm g = { .m = p->n,
                              .n = p->m,
                              .k = p->k,
                              .a = q->planes.rhs,
                              .b = q->planes.lhs,
                              .a_row = r->column,
                              .a_column = r->row,
                              .b_row = l->column,
                              .b_column = l->row,
                              .c = q->panels,
                              .ldc = p->m,
                              .mode = CPU_KERNEL_GEMM_SET };
  cpu_kernel_sgemm(p->onednn, &g, q->pool);
  cpu_threads_for(q->pool, (p->m + TURNED_ROWS - 1) / TURNED_ROWS,
                  THREAD_WORTH / (TURNED_ROWS * p->n) + 1, turn_rows, q);
}

static void run_product(void *user)
{
  product *q = user;
  const cpu_kernel_dot_plan *p = q->p;
  const int64_t work = p->m * p->n * p->k;
  if (p->turned) {
    run_turned(q);
    return;
  }
  if (p->batches >= cpu_threads_size(q->pool)) {
    cpu_threads_for(q->pool, p->batches, THREAD_WORTH / (work + 1) + 1,
                    run_batches, q);
    return;
  }
  for (q->batch = 0; q->batch < p->batches; q->batch++) {
    if (p->split || p->onednn != NULL || p->matmul != NULL) {
      run_batches(q, q->batch, q->batch + 1);
    } else if (p->m >= p->n) {
      const int64_t tiles = (p->m + TILE_ROWS - 1) / TILE_ROWS;
      cpu_threads_for(q->pool, tiles, rows_grain(q, tiles), run_rows, q);
    } else {
      const int64_t tile = TILE_COLUMNS * p->m * p->k;
      cpu_threads_for(q->pool, (p->n + TILE_COLUMNS - 1) / TILE_COLUMNS,
                      THREAD_WORTH / (tile + 1) + 1, run_columns, q);
    }
  }
}

static const void *gather_factor(const cpu_kernel_dot_plan *p, int which,
                                 const void *from, unsigned char *scratch,
                                 cpu_threads *pool)
{
  const cpu_kernel_operand *o = &p->operands[which];
  if (!p->factors[which].gathered) return from;
  cpu_kernel_operand_gather(o, from, p->math, scratch, pool);
  return scratch + o->at;
}

calx_status *cpu_kernel_dot_run(const cpu_kernel *kernel, cpu_threads *pool,
                                const void *lhs, const void *rhs, void *out,
                                unsigned char *scratch)
{
  const cpu_kernel_dot_plan *p = kernel->plan;
  if (kernel->bytes[2] == 0) return NULL;
  if (p->divided && p->matmul != NULL) {
    CALX_TRY(cpu_kernel_matmul_ready(p->matmul, kernel->name, pool));
  }
  product q = { .p = p,
                .pool = pool,
                .panels = scratch + p->panels_at,
                .sums = p->batches > 1
                            ? NULL
                            : (float *)(void *)(scratch + p->sums_at) };
  unsigned char *stored = scratch + p->operands[2].at;
  q.planes =
      (cpu_kernel_planes){ gather_factor(p, 0, lhs, scratch, pool),
                           gather_factor(p, 1, rhs, scratch, pool),
                           p->stored ? stored : out, CPU_KERNEL_GEMM_SET };
  cpu_kernel_gemm_planes(&q.planes, p->operands, run_product, &q);
  if (atomic_load(&q.failed)) {
    return cx_error(CALX_INTERNAL, "oneDNN failed in %s", kernel->name);
  }
  if (p->stored) {
    cpu_kernel_math_store(p->math, stored, stored + p->operands[2].plane,
                          p->operands[2].view.type, out,
                          p->batches * p->m * p->n, pool);
  }
  return NULL;
}
