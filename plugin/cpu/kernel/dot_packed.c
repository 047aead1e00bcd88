// kernel/dot_packed: packs the right operand of products for all products of a
// loop; multiplies by what is packed. On AMX it is also packed for split.h.
#include "kernel/dot.h"
#include "kernel/packed.h"

// Each thread has several parts of the columns, and several blocks of rows of
// each part. So a thread that is late leaves some of them to others. For each
// part the rows are packed again.
#define MOST_PARTS 4     // of a thread
#define PART_COLUMNS 64  // at least
#define FEW_BLOCKS 2     // of rows, at least, where the columns are divided
// Multiplications and elements that are worth a thread.
#define THREAD_WORTH 65536
#define PACK_WORTH 16384
#define LEAST_COLUMNS 64
#define LEAST_PRODUCT 32768             // multiplications
#define MOST_PACKED (INT64_C(1) << 21)  // elements
#define MOST_ROWS (INT64_C(1) << 22)

typedef struct packed_run {
  cpu_kernel_packed product;
  int64_t row_blocks;
  cpu_threads *pool;
  unsigned char *rows;  // scratch of each thread
  size_t rows_each;
} packed_run;

static void pack_parts(void *user, int64_t lo, int64_t hi)
{
  const packed_run *r = user;
  for (int64_t i = lo; i < hi; i++) cpu_kernel_packed_pack(&r->product, i);
}

// Blocks of rows of one part are neighbours, so that a thread has few parts.
static void run_blocks(void *user, int64_t lo, int64_t hi)
{
  const packed_run *r = user;
  const int64_t m = r->product.m, blocks = r->row_blocks;
  unsigned char *scratch =
      r->rows + (size_t)cpu_kernel_rank(r->pool) * r->rows_each;
  for (int64_t i = lo; i < hi; i++) {
    const int64_t row = m * (i % blocks) / blocks;
    const int64_t end = m * (i % blocks + 1) / blocks;
    cpu_kernel_packed_run(&r->product, row, end - row, i / blocks,
                          (float *)(void *)scratch);
  }
}

// One, where the columns are few: then only the rows are divided.
static int64_t parts_of(int64_t n, int64_t threads)
{
  const int64_t several = n / (PART_COLUMNS * threads);
  if (threads == 1 || several == 0) return 1;
  return threads * (several < MOST_PARTS ? several : MOST_PARTS);
}

static int64_t row_blocks_of(int64_t m, int64_t parts, int64_t threads)
{
  const int64_t least =
      (m + CPU_KERNEL_PACKED_BLOCK - 1) / CPU_KERNEL_PACKED_BLOCK;
  const int64_t most = m / CPU_KERNEL_PACKED_ROWS;
  int64_t blocks = parts == 1 ? MOST_PARTS * threads : FEW_BLOCKS;
  if (blocks > most) blocks = most;
  return threads == 1 || blocks < least ? least : blocks;
}

static packed_run run_of(const cpu_kernel_dot_plan *p, cpu_threads *pool)
{
  const cpu_kernel_dot_factor *l = &p->factors[0], *r = &p->factors[1];
  return (
      packed_run){ .product = { .m = p->m,
                                .n = p->n,
                                .k = p->k,
                                .parts = parts_of(p->n, cpu_threads_size(pool)),
                                .a_row = l->row,
                                .a_column = l->column,
                                .b_row = r->row,
                                .b_column = r->column,
                                .ldc = p->n },
                   .pool = pool };
}

// ---- on AMX -----------------------------------------------------------------

// 32 rows take as long if some of them are missing. With fewer inner elements
// or columns packing the rows takes too long.
#define SPLIT_ROWS 24
#define SPLIT_COLUMNS 256
#define SPLIT_INNER 128

static bool splits(int64_t n, int64_t k)
{
  return n >= SPLIT_COLUMNS && k >= SPLIT_INNER;
}

bool cpu_kernel_dot_packed_splits(const cpu_kernel_dot_plan *p, bool packs)
{
  const int64_t missing =
      cpu_kernel_split_missing(p->m, CPU_KERNEL_SPLIT_LINES);
  return cpu_kernel_has_tiles() && splits(p->n, p->k) &&
         (packs || (p->m >= SPLIT_ROWS && missing <= p->m / 3));
}

int64_t cpu_kernel_dot_packed_elements(int64_t n, int64_t k)
{
  const int64_t split = splits(n, k) ? cpu_kernel_split_packed_bytes(n, k) : 0;
  return cpu_kernel_packed_elements(n, k) + split / (int64_t)sizeof(float);
}

static cpu_kernel_split split_of(const cpu_kernel_dot_plan *p, const void *a,
                                 const void *b, float *packed, void *c)
{
  const cpu_kernel_dot_factor *l = &p->factors[0], *r = &p->factors[1];
  float *behind = packed + cpu_kernel_packed_elements(p->n, p->k);
  return (cpu_kernel_split){ .m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .a = a,
                             .b = b,
                             .a_row = l->row,
                             .a_column = l->column,
                             .b_row = r->row,
                             .b_column = r->column,
                             .packed = (unsigned char *)behind,
                             .c = c };
}

// ---- running ----------------------------------------------------------------

calx_status *cpu_kernel_dot_pack(const cpu_kernel *kernel, cpu_threads *pool,
                                 const void *lhs, const void *rhs, void *out,
                                 unsigned char *scratch)
{
  const cpu_kernel_dot_plan *p = kernel->plan;
  (void)rhs;
  (void)scratch;
  packed_run r = run_of(p, pool);
  r.product.b = lhs;
  r.product.packed = out;
  const int64_t each = p->n * p->k / r.product.parts;
  cpu_threads_for(pool, r.product.parts, PACK_WORTH / (each + 1) + 1,
                  pack_parts, &r);
  if (p->split) {
    const cpu_kernel_split s = split_of(p, NULL, lhs, out, NULL);
    cpu_kernel_split_pack(&s, pool);
  }
  return NULL;
}

calx_status *cpu_kernel_dot_run_packed(const cpu_kernel *kernel,
                                       cpu_threads *pool, const void *lhs,
                                       const void *rhs, void *out,
                                       unsigned char *scratch)
{
  const cpu_kernel_dot_plan *p = kernel->plan;
  if (p->split) {
    // What is packed is only read.
    const cpu_kernel_split s =
        split_of(p, lhs, NULL, (void *)(uintptr_t)rhs, out);
    if (cpu_kernel_split_run(&s, pool, scratch + p->panels_at,
                             p->panels_each)) {
      return NULL;
    }
  }
  packed_run r = run_of(p, pool);
  r.product.a = lhs;
  r.product.b = rhs;
  r.product.c = out;
  r.rows = scratch + p->panels_at;
  r.rows_each = p->panels_each;
  r.row_blocks = row_blocks_of(p->m, r.product.parts, cpu_threads_size(pool));
  r.product.packed = (float *)(uintptr_t)rhs;  // it is only read
  const int64_t tasks = r.row_blocks * r.product.parts;
  const int64_t each = p->m * p->n * p->k / tasks;
  cpu_threads_for(pool, tasks, THREAD_WORTH / (each + 1) + 1, run_blocks, &r);
  return NULL;
}

// ---- descriptions -----------------------------------------------------------

// Fewer rows are rows.h's. For fewer columns packing the rows does not pay:
// gemm.h takes them as they are. Fewer multiplications take less time than
// the calls, and more elements of b are no longer in a cache once they are
// packed. The bounds keep sizes from overflowing too.
static bool suits(int64_t m, int64_t n, int64_t k)
{
  return m > CPU_KERNEL_ROWS_MOST && n >= LEAST_COLUMNS && k > 0 &&
         m <= MOST_ROWS && k <= CPU_KERNEL_PACKED_LONGEST &&
         n <= MOST_PACKED / k && m * n * k >= LEAST_PRODUCT;
}

bool cpu_kernel_dot_packs(const cpu_kernel_desc *desc)
{
  const cpu_kernel x = { .desc = *desc };
  const cpu_kernel_dot_desc *d = &x.dot;
  return d->kind == CPU_KERNEL_DOT && d->packed == CPU_KERNEL_DOT_PLAIN &&
         d->types[0] == CX_HLO_F32 && d->types[1] == CX_HLO_F32 &&
         d->types[2] == CX_HLO_F32 && d->n_batch == 0 && d->n_rows == 1 &&
         d->n_columns == 1 && d->n_inner == 1 &&
         suits(d->rows[0], d->columns[0], d->inner[0]);
}

int64_t cpu_kernel_dot_pack_of(cpu_kernel_desc *io_product,
                               cpu_kernel_desc *out_pack)
{
  cpu_kernel x = { .desc = *io_product };
  x.dot.packed = CPU_KERNEL_DOT_PACK;
  *out_pack = x.desc;
  x.dot.packed = CPU_KERNEL_DOT_PACKED;
  *io_product = x.desc;
  return cpu_kernel_dot_packed_elements(x.dot.columns[0], x.dot.inner[0]);
}

size_t cpu_kernel_dot_sizes(const cpu_kernel_desc *desc,
                            size_t sizes[CPU_KERNEL_BUFFERS])
{
  cpu_kernel x = { .desc = *desc };
  const int64_t packed = x.dot.packed;
  x.dot.packed = CPU_KERNEL_DOT_PLAIN;
  if ((packed != CPU_KERNEL_DOT_PACK && packed != CPU_KERNEL_DOT_PACKED) ||
      !cpu_kernel_dot_packs(&x.desc)) {
    return 0;
  }
  const int64_t m = x.dot.rows[0], n = x.dot.columns[0], k = x.dot.inner[0];
  const size_t bytes = sizeof(float);
  const size_t all = (size_t)cpu_kernel_dot_packed_elements(n, k) * bytes;
  if (packed == CPU_KERNEL_DOT_PACK) {
    sizes[0] = (size_t)(n * k) * bytes;
    sizes[1] = all;
    return 2;
  }
  sizes[0] = (size_t)(m * k) * bytes;
  sizes[1] = all;
  sizes[2] = (size_t)(m * n) * bytes;
  return 3;
}
