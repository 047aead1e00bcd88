// kernel/dot: runs a described dot_general as matrix products.
//
// An operand whose rows and contracted dimensions are one dimension each, one
// of them dense, is used where it is. Any other operand, and one of another
// type than is computed in, is first copied ("gathered") to scratch. Complex
// numbers become two planes, and their product four products. If there are
// enough batches, they run on different threads; else each product is divided
// among the threads.
#include <string.h>

#include "base/alloc.h"
#include "kernel/gemm.h"
#include "kernel/internal.h"
#include "kernel/onednn.h"

// Multiplications up to which gemm.h is as fast as oneDNN, whose first small
// product takes 30 ms to generate its code. With few rows the limit is lower,
// because packing the right operand takes time.
#define SMALL_PRODUCT ((double)(1 << 24))
#define SMALL_OF_FEW_ROWS ((double)(1 << 22))
#define FEW_ROWS 32
// Multiplications from which on oneDNN divides a product among threads.
#define SPREAD_PRODUCT 1000000
// Multiplications that are worth a thread.
#define THREAD_WORTH 65536

// lhs: rows are m and columns k. rhs: rows are k and columns n.
typedef struct factor {
  bool gathered;                       // copied
  int64_t row, column;                 // strides in elements
  int64_t batch[CPU_KERNEL_DOT_DIMS];  // likewise
} factor;

typedef struct dot_plan {
  cpu_kernel_dot_desc d;
  cpu_kernel_math math;
  bool complex;
  bool stored;  // the result is computed in scratch and then converted
  const cpu_kernel_onednn *onednn;  // NULL: gemm.h
  int64_t batches, m, n, k;
  factor factors[2];
  cpu_kernel_operand operands[3];  // lhs, rhs, result
  size_t panels_at, panels_each;
} dot_plan;

// ---- checking ---------------------------------------------------------------

// The product of the sizes; false: above the bound, in which a size of 0 counts
// as 1, so that sums of strides fit too.
static bool count(int64_t n, const int64_t *size, int64_t *io_bound,
                  int64_t *out)
{
  return n >= 0 && n <= CPU_KERNEL_DOT_DIMS &&
         cpu_kernel_count(n, size, io_bound, out);
}

// Adds the offset of the list's last element; false: a stride is negative or
// too large.
static bool reach(int64_t n, const int64_t *size, const int64_t *stride,
                  int64_t *io_last)
{
  for (int64_t i = 0; i < n; i++) {
    if (stride[i] < 0 || stride[i] >= CPU_KERNEL_MOST) return false;
    if (size[i] == 0) continue;
    if (size[i] - 1 > 0 && stride[i] > CPU_KERNEL_MOST / (size[i] - 1)) {
      return false;
    }
    *io_last += stride[i] * (size[i] - 1);
    if (*io_last >= CPU_KERNEL_MOST) return false;
  }
  return true;
}

static bool is_sound(const cpu_kernel_dot_desc *d, dot_plan *p)
{
  int64_t bound[3] = { 1, 1, 1 }, same;
  if (!cpu_kernel_math_of(d->types, &p->math, &p->complex) ||
      !count(d->n_batch, d->batch, &bound[0], &p->batches) ||
      !count(d->n_rows, d->rows, &bound[0], &p->m) ||
      !count(d->n_inner, d->inner, &bound[0], &p->k) ||
      !count(d->n_batch, d->batch, &bound[1], &same) ||
      !count(d->n_inner, d->inner, &bound[1], &same) ||
      !count(d->n_columns, d->columns, &bound[1], &p->n) ||
      !count(d->n_batch, d->batch, &bound[2], &same) ||
      !count(d->n_rows, d->rows, &bound[2], &same) ||
      !count(d->n_columns, d->columns, &bound[2], &same)) {
    return false;
  }
  int64_t last[2] = { 0, 0 };
  if (!reach(d->n_batch, d->batch, d->lhs_batch, &last[0]) ||
      !reach(d->n_rows, d->rows, d->lhs_rows, &last[0]) ||
      !reach(d->n_inner, d->inner, d->lhs_inner, &last[0]) ||
      !reach(d->n_batch, d->batch, d->rhs_batch, &last[1]) ||
      !reach(d->n_inner, d->inner, d->rhs_inner, &last[1]) ||
      !reach(d->n_columns, d->columns, d->rhs_columns, &last[1])) {
    return false;
  }
  const int64_t lhs = p->batches * p->m * p->k;
  const int64_t rhs = p->batches * p->k * p->n;
  return (lhs == 0 || last[0] < lhs) && (rhs == 0 || last[1] < rhs);
}

double cpu_kernel_dot_flops(const cpu_kernel_dot_desc *d)
{
  dot_plan p;
  if (!is_sound(d, &p)) return 0;
  const double flops =
      2 * (double)p.batches * (double)p.m * (double)p.n * (double)p.k;
  return p.complex ? 4 * flops : flops;
}

// ---- planning ---------------------------------------------------------------

typedef struct dims {
  int64_t n;
  const int64_t *size, *stride;
} dims;

// The stride of the list, if it is one dimension in memory; else -1. An empty
// list has one element, so its stride does not matter.
static int64_t as_one(const dims *l)
{
  for (int64_t i = 1; i < l->n; i++) {
    if (l->stride[i - 1] != l->stride[i] * l->size[i]) return -1;
  }
  return l->n == 0 ? 0 : l->stride[l->n - 1];
}

static void view_list(cpu_kernel_view *v, const dims *l)
{
  for (int64_t i = 0; i < l->n; i++)
    cpu_kernel_view_add(v, l->size[i], l->stride[i]);
}

static void plan_factor(dot_plan *p, int which, const dims *batch,
                        const dims *rows, const dims *columns, int64_t n_rows,
                        int64_t n_columns)
{
  factor *s = &p->factors[which];
  cpu_kernel_view *view = &p->operands[which].view;
  const bool fits = !p->complex && cpu_kernel_math_is(p->math, view->type);
  s->row = as_one(rows);
  s->column = as_one(columns);
  for (int64_t i = 0; i < batch->n; i++) s->batch[i] = batch->stride[i];
  bool dense = s->column == 1 || s->row == 1 || columns->n == 0 || rows->n == 0;
  if (fits && s->row >= 0 && s->column >= 0 && dense) {
    // A leading dimension must be at least as large as a row.
    if (columns->n == 0) s->column = s->row == 1 ? n_rows : 1;
    if (rows->n == 0) s->row = s->column == 1 ? n_columns : 1;
    return;
  }
  s->gathered = true;
  bool columns_last =
      columns->n != 0 && (rows->n == 0 || columns->stride[columns->n - 1] <=
                                              rows->stride[rows->n - 1]);
  view_list(view, batch);
  view_list(view, columns_last ? rows : columns);
  view_list(view, columns_last ? columns : rows);
  s->row = columns_last ? n_columns : 1;
  s->column = columns_last ? 1 : n_rows;
  int64_t each = n_rows * n_columns;
  for (int64_t i = batch->n - 1; i >= 0; i--) {
    s->batch[i] = each;
    each *= batch->size[i];
  }
}

static void plan_factors(dot_plan *p)
{
  const cpu_kernel_dot_desc *d = &p->d;
  dims batch = { d->n_batch, d->batch, d->lhs_batch };
  dims rows = { d->n_rows, d->rows, d->lhs_rows };
  dims inner = { d->n_inner, d->inner, d->lhs_inner };
  plan_factor(p, 0, &batch, &rows, &inner, p->m, p->k);
  batch.stride = d->rhs_batch;
  inner.stride = d->rhs_inner;
  dims columns = { d->n_columns, d->columns, d->rhs_columns };
  plan_factor(p, 1, &batch, &inner, &columns, p->k, p->n);
}

static void plan_scratch(cpu_kernel *kernel, dot_plan *p)
{
  for (int i = 0; i < 3; i++) {
    cpu_kernel_operand *o = &p->operands[i];
    const size_t bytes = cx_hlo_elem_bytes(o->view.type);
    if (i < 2 ? !p->factors[i].gathered : !p->stored) continue;
    cpu_kernel_operand_reserve(kernel, p->math,
                               (int64_t)(kernel->bytes[i] / bytes), o);
  }
  if (p->onednn == NULL) {
    p->panels_each = cpu_kernel_gemm_panels(p->math, p->m, p->n, p->k);
    p->panels_at =
        cpu_kernel_reserve(kernel, p->panels_each * (size_t)kernel->threads);
  }
}

// ---- running ----------------------------------------------------------------

// One product of planes, which are in scratch or the tensors themselves.
typedef struct product {
  const dot_plan *p;
  cpu_threads *pool;
  cpu_kernel_planes planes;
  unsigned char *panels;
  int64_t batch;  // whose rows or columns are divided among the threads
} product;

static void multiply(const product *q, int64_t batch, int64_t row, int64_t rows,
                     int64_t column, int64_t columns)
{
  const dot_plan *p = q->p;
  const int64_t bytes = (int64_t)cpu_kernel_math_bytes(p->math);
  const factor *l = &p->factors[0], *r = &p->factors[1];
  int64_t at[2] = { row * l->row, column * r->column };
  int64_t rest = batch;
  for (int64_t i = p->d.n_batch - 1; i >= 0; i--) {
    const int64_t index = rest % p->d.batch[i];
    rest /= p->d.batch[i];
    at[0] += index * l->batch[i];
    at[1] += index * r->batch[i];
  }
  const void *a = q->planes.lhs + at[0] * bytes;
  const void *b = q->planes.rhs + at[1] * bytes;
  void *c = q->planes.out + ((batch * p->m + row) * p->n + column) * bytes;
  if (p->onednn != NULL) {
    const bool a_plain = l->column == 1, b_plain = r->column == 1;
    const bool spread = rows * columns * p->k >= SPREAD_PRODUCT;
    cpu_kernel_onednn_enter(p->onednn, spread ? q->pool : NULL);
    p->onednn->sgemm(
        a_plain ? 'N' : 'T', b_plain ? 'N' : 'T', rows, columns, p->k,
        q->planes.mode == CPU_KERNEL_GEMM_SUB ? -1.0F : 1.0F, a,
        a_plain ? l->row : l->column, b, b_plain ? r->row : r->column,
        q->planes.mode == CPU_KERNEL_GEMM_SET ? 0.0F : 1.0F, c, p->n);
    cpu_kernel_onednn_leave(p->onednn);
    return;
  }
  const cpu_kernel_gemm g = { .m = rows,
                              .n = columns,
                              .k = p->k,
                              .a = a,
                              .b = b,
                              .a_row = l->row,
                              .a_column = l->column,
                              .b_row = r->row,
                              .b_column = r->column,
                              .c = c,
                              .ldc = p->n,
                              .mode = q->planes.mode };
  const size_t rank = (size_t)cpu_kernel_rank(q->pool);
  cpu_kernel_gemm_run(p->math, &g, q->panels + rank * p->panels_each);
}

static void run_batches(void *user, int64_t lo, int64_t hi)
{
  const product *q = user;
  for (int64_t i = lo; i < hi; i++) multiply(q, i, 0, q->p->m, 0, q->p->n);
}

// Rows and columns are divided in tiles.
#define TILE_ROWS 8
#define TILE_COLUMNS 48

static void run_rows(void *user, int64_t lo, int64_t hi)
{
  const product *q = user;
  int64_t end = hi * TILE_ROWS < q->p->m ? hi * TILE_ROWS : q->p->m;
  multiply(q, q->batch, lo * TILE_ROWS, end - lo * TILE_ROWS, 0, q->p->n);
}

static void run_columns(void *user, int64_t lo, int64_t hi)
{
  const product *q = user;
  int64_t end = hi * TILE_COLUMNS < q->p->n ? hi * TILE_COLUMNS : q->p->n;
  multiply(q, q->batch, 0, q->p->m, lo * TILE_COLUMNS, end - lo * TILE_COLUMNS);
}

static void run_product(void *user)
{
  product *q = user;
  const dot_plan *p = q->p;
  const int64_t work = p->m * p->n * p->k;
  if (p->batches >= cpu_threads_size(q->pool)) {
    cpu_threads_for(q->pool, p->batches, THREAD_WORTH / (work + 1) + 1,
                    run_batches, q);
    return;
  }
  for (q->batch = 0; q->batch < p->batches; q->batch++) {
    if (p->onednn != NULL) {
      run_batches(q, q->batch, q->batch + 1);
    } else if (p->m >= p->n) {
      const int64_t tile = TILE_ROWS * p->n * p->k;
      cpu_threads_for(q->pool, (p->m + TILE_ROWS - 1) / TILE_ROWS,
                      THREAD_WORTH / (tile + 1) + 1, run_rows, q);
    } else {
      const int64_t tile = TILE_COLUMNS * p->m * p->k;
      cpu_threads_for(q->pool, (p->n + TILE_COLUMNS - 1) / TILE_COLUMNS,
                      THREAD_WORTH / (tile + 1) + 1, run_columns, q);
    }
  }
}

static const void *gather_factor(const dot_plan *p, int which, const void *from,
                                 unsigned char *scratch, cpu_threads *pool)
{
  const cpu_kernel_operand *o = &p->operands[which];
  if (!p->factors[which].gathered) return from;
  cpu_kernel_operand_gather(o, from, p->math, scratch, pool);
  return scratch + o->at;
}

static calx_status *run_dot(const cpu_kernel *kernel, cpu_threads *pool,
                            const void *lhs, const void *rhs, void *out,
                            unsigned char *scratch)
{
  const dot_plan *p = kernel->plan;
  if (kernel->bytes[2] == 0) return NULL;
  product q = { .p = p, .pool = pool, .panels = scratch + p->panels_at };
  unsigned char *stored = scratch + p->operands[2].at;
  q.planes =
      (cpu_kernel_planes){ gather_factor(p, 0, lhs, scratch, pool),
                           gather_factor(p, 1, rhs, scratch, pool),
                           p->stored ? stored : out, CPU_KERNEL_GEMM_SET };
  cpu_kernel_gemm_planes(&q.planes, p->operands, run_product, &q);
  if (p->stored) {
    cpu_kernel_math_store(p->math, stored, stored + p->operands[2].plane,
                          p->operands[2].view.type, out,
                          p->batches * p->m * p->n, pool);
  }
  return NULL;
}

// ---- making -----------------------------------------------------------------

static bool is_small(const dot_plan *p)
{
  const double work = (double)p->m * (double)p->n * (double)p->k;
  return work <= (p->m < FEW_ROWS ? SMALL_OF_FEW_ROWS : SMALL_PRODUCT);
}

calx_status *cpu_kernel_dot_new(cpu_kernel *kernel)
{
  dot_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  cpu_kernel_set(kernel, run_dot, p, "loops");
  p->d = kernel->dot;
  if (!is_sound(&p->d, p)) {
    return cx_invalid("a description of a matrix product contradicts itself");
  }
  const int64_t n[3] = { p->batches * p->m * p->k, p->batches * p->k * p->n,
                         p->batches * p->m * p->n };
  for (int i = 0; i < 3; i++) {
    cpu_kernel_operand *o = &p->operands[i];
    o->view.type = (cx_hlo_elem)p->d.types[i];
    o->imaginary = cx_hlo_elem_is_complex(o->view.type);
    kernel->bytes[i] = (size_t)n[i] * cx_hlo_elem_bytes(o->view.type);
  }
  p->stored =
      p->complex || !cpu_kernel_math_is(p->math, p->operands[2].view.type);
  plan_factors(p);
  if (p->math == CPU_KERNEL_F32 && kernel->bytes[2] != 0 && p->k != 0 &&
      !is_small(p)) {
    p->onednn = cpu_kernel_onednn_get();
  }
  plan_scratch(kernel, p);
  if (p->onednn != NULL) memcpy(kernel->name, "dnnl_sgemm", 11);
  return NULL;
}
