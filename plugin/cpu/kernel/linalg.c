// kernel/linalg: runs a described cholesky or triangular_solve.
//
// If there are enough matrices, they run on different threads. Else the rows of
// one factorisation, and the right-hand sides of one system, are divided among
// the threads. Types other than F32 and F64 are copied to scratch.
#include <string.h>

#include "base/alloc.h"
#include "kernel/internal.h"
#include "kernel/triangle.h"

// Right-hand sides that are worth a thread of their own.
#define LEAST_PART 64
// Rows and columns of a tile that is transposed.
#define TILE 32

typedef struct linalg_plan {
  cpu_kernel_linalg_desc d;
  cpu_kernel_math math;
  bool converted;  // the operands and the result are copied to scratch
  cpu_kernel_operand operands[3];
  int64_t parts;  // of each matrix's right-hand sides
  size_t scratch_at, scratch_each;
} linalg_plan;

// ---- describing -------------------------------------------------------------

static int64_t flag(const cx_hlo_op *op, cx_hlo_attr_id id)
{
  return cx_hlo_op_flag(op, id) ? 1 : 0;
}

bool cpu_kernel_linalg_describe(const cx_hlo_op *op,
                                cpu_kernel_linalg_desc *out)
{
  const bool solves = op->kind == CX_HLO_OP_TRIANGULAR_SOLVE;
  const cx_hlo_type *a = &op->operands[0]->type.tensor;
  const cx_hlo_type *b = &op->operands[solves ? 1 : 0]->type.tensor;
  const size_t last = a->rank - 1;
  if (!cpu_kernel_fits(a) || !cpu_kernel_fits(b)) return false;
  *out = (cpu_kernel_linalg_desc){ .kind = solves ? CPU_KERNEL_SOLVE
                                                  : CPU_KERNEL_CHOLESKY,
                                   .type = a->elem,
                                   .batch = 1,
                                   .n = a->dims[last],
                                   .lower = flag(op, CX_HLO_A_LOWER) };
  for (size_t i = 0; i + 1 < last; i++) out->batch *= a->dims[i];
  if (solves) {
    // ADJOINT of a real matrix is TRANSPOSE.
    enum { NO_TRANSPOSE = 1 };
    out->left = flag(op, CX_HLO_A_LEFT_SIDE);
    out->unit = flag(op, CX_HLO_A_UNIT_DIAGONAL);
    out->transpose =
        cx_hlo_op_int(op, CX_HLO_A_TRANSPOSE_A) == NO_TRANSPOSE ? 0 : 1;
    out->others = b->dims[out->left != 0 ? last : last - 1];
  }
  cpu_kernel_math math;
  return cpu_kernel_linalg_is_sound(out, &math);
}

static bool is_flag(int64_t x)
{
  return x == 0 || x == 1;
}

bool cpu_kernel_linalg_is_sound(const cpu_kernel_linalg_desc *d,
                                cpu_kernel_math *math)
{
  const bool solves = d->kind == CPU_KERNEL_SOLVE;
  const int64_t types[3] = { d->type, d->type, d->type };
  const int64_t a[3] = { d->batch, d->n, d->n };
  const int64_t b[3] = { d->batch, d->n, d->others };
  bool complex;
  int64_t bound[2] = { 1, 1 }, n;
  return cpu_kernel_math_of(types, math, &complex) && !complex &&
         (*math == CPU_KERNEL_F32 || *math == CPU_KERNEL_F64) &&
         is_flag(d->lower) && is_flag(d->left) && is_flag(d->unit) &&
         is_flag(d->transpose) &&
         (solves || (d->left == 0 && d->unit == 0 && d->transpose == 0 &&
                     d->others == 0)) &&
         cpu_kernel_count(3, a, &bound[0], &n) &&
         cpu_kernel_count(3, b, &bound[1], &n);
}

double cpu_kernel_linalg_flops(const cpu_kernel_linalg_desc *d)
{
  cpu_kernel_math math;
  if (!cpu_kernel_linalg_is_sound(d, &math)) return 0;
  const double square = (double)d->batch * (double)d->n * (double)d->n;
  return d->kind == CPU_KERNEL_SOLVE ? square * (double)d->others
                                     : square * (double)d->n / 3;
}

// ---- running ----------------------------------------------------------------

// One run; a and b are of the type that is computed in.
typedef struct linalg_run {
  const linalg_plan *p;
  cpu_threads *pool;
  const unsigned char *a, *b;
  unsigned char *out, *scratch;
  int64_t bytes;
} linalg_run;

static void solve_some(void *user, int64_t lo, int64_t hi)
{
  const linalg_run *r = user;
  const cpu_kernel_linalg_desc *d = &r->p->d;
  const int64_t rows = d->left ? d->n : d->others;
  const int64_t columns = d->left ? d->others : d->n;
  const size_t rank = (size_t)cpu_kernel_rank(r->pool);
  for (int64_t i = lo; i < hi; i++) {
    const int64_t batch = i / r->p->parts, part = i % r->p->parts;
    const int64_t first = d->others * part / r->p->parts;
    const int64_t n = d->others * (part + 1) / r->p->parts - first;
    const int64_t at = batch * rows * columns + first * (d->left ? 1 : columns);
    const int64_t here[2] = { d->left ? rows : n, d->left ? n : columns };
    unsigned char *x = r->out + at * r->bytes;
    const bool whole = here[1] == columns;
    const int64_t pieces = r->b == r->out ? 0 : whole ? 1 : here[0];
    for (int64_t k = 0; k < pieces; k++) {
      const int64_t skip = k * columns * r->bytes;
      memcpy(x + skip, r->b + at * r->bytes + skip,
             (size_t)((whole ? here[0] : 1) * here[1] * r->bytes));
    }
    const cpu_kernel_triangle t = { .math = r->p->math,
                                    .a = r->a + batch * d->n * d->n * r->bytes,
                                    .n = d->n,
                                    .row = d->transpose ? 1 : d->n,
                                    .column = d->transpose ? d->n : 1,
                                    .lower = d->lower != d->transpose,
                                    .unit = d->unit != 0,
                                    .right = d->left == 0 };
    cpu_kernel_triangle_solve(&t, x, columns, here[0], here[1],
                              r->scratch + rank * r->p->scratch_each);
  }
}

// The lower triangle of `to` becomes the transpose of from's upper one, or the
// other way round. They may be the same.
static void mirror(int64_t bytes, int64_t n, const unsigned char *from,
                   unsigned char *to, bool to_lower)
{
  for (int64_t i = 0; i < n; i += TILE) {
    for (int64_t j = 0; j <= i; j += TILE) {
      for (int64_t k = i; k < n && k < i + TILE; k++) {
        for (int64_t l = j; l <= k && l < j + TILE; l++) {
          const int64_t low = (k * n + l) * bytes, high = (l * n + k) * bytes;
          memmove(to + (to_lower ? low : high), from + (to_lower ? high : low),
                  (size_t)bytes);
        }
      }
    }
  }
}

static void factor_some(void *user, int64_t lo, int64_t hi)
{
  const linalg_run *r = user;
  const cpu_kernel_linalg_desc *d = &r->p->d;
  const int64_t n = d->n;
  for (int64_t i = lo; i < hi; i++) {
    const unsigned char *a = r->a + i * n * n * r->bytes;
    unsigned char *l = r->out + i * n * n * r->bytes;
    if (!d->lower) mirror(r->bytes, n, a, l, true);
    for (int64_t k = 0; d->lower && k < n && a != l; k++) {
      memcpy(l + k * n * r->bytes, a + k * n * r->bytes,
             (size_t)((k + 1) * r->bytes));
    }
    cpu_kernel_triangle_factor(r->p->math, l, n, r->pool, r->scratch,
                               r->p->scratch_each);
    if (!d->lower) mirror(r->bytes, n, l, l, false);
    for (int64_t k = 0; k < n; k++) {
      const int64_t from = d->lower ? k + 1 : 0, to = d->lower ? n : k;
      memset(l + (k * n + from) * r->bytes, 0,
             (size_t)((to - from) * r->bytes));
    }
  }
}

static calx_status *run_linalg(const cpu_kernel *kernel, cpu_threads *pool,
                               const void *lhs, const void *rhs, void *out,
                               unsigned char *scratch)
{
  const linalg_plan *p = kernel->plan;
  const bool solves = p->d.kind == CPU_KERNEL_SOLVE;
  if (kernel->bytes[2] == 0) return NULL;
  linalg_run r = { p,
                   pool,
                   lhs,
                   rhs,
                   out,
                   scratch + p->scratch_at,
                   (int64_t)cpu_kernel_math_bytes(p->math) };
  if (p->converted) {
    cpu_kernel_operand_gather(&p->operands[0], lhs, p->math, scratch, pool);
    r.a = scratch + p->operands[0].at;
    r.out = scratch + p->operands[2].at;
    if (solves) {
      cpu_kernel_operand_gather(&p->operands[2], rhs, p->math, scratch, pool);
      r.b = r.out;
    }
  }
  if (solves) {
    cpu_threads_for(pool, p->d.batch * p->parts, 1, solve_some, &r);
  } else if (p->d.batch >= cpu_threads_size(pool)) {
    cpu_threads_for(pool, p->d.batch, 1, factor_some, &r);
  } else {
    factor_some(&r, 0, p->d.batch);
  }
  if (p->converted) {
    cpu_kernel_math_store(
        p->math, r.out, NULL, (cx_hlo_elem)p->d.type, out,
        (int64_t)(kernel->bytes[2] / cx_hlo_elem_bytes((cx_hlo_elem)p->d.type)),
        pool);
  }
  return NULL;
}

// ---- making -----------------------------------------------------------------

static void reserve(cpu_kernel *kernel, linalg_plan *p, int which, int64_t n)
{
  cpu_kernel_operand *o = &p->operands[which];
  o->view.type = (cx_hlo_elem)p->d.type;
  cpu_kernel_view_add(&o->view, n, 1);
  cpu_kernel_operand_reserve(kernel, p->math, n, o);
}

static int64_t parts_of(const linalg_plan *p, int threads)
{
  if (p->d.kind != CPU_KERNEL_SOLVE || p->d.batch >= threads) return 1;
  const int64_t wanted = p->d.batch == 0 ? 1 : threads / p->d.batch;
  const int64_t most = p->d.others / LEAST_PART;
  return most < 1 ? 1 : wanted < most ? wanted : most;
}

calx_status *cpu_kernel_linalg_new(cpu_kernel *kernel)
{
  linalg_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  cpu_kernel_set(kernel, run_linalg, p, "loops");
  p->d = kernel->linalg;
  const cpu_kernel_linalg_desc *d = &p->d;
  if (!cpu_kernel_linalg_is_sound(d, &p->math)) {
    return cx_invalid(
        "a description of a %s contradicts itself",
        d->kind == CPU_KERNEL_SOLVE ? "triangular system" : "factorisation");
  }
  const bool solves = d->kind == CPU_KERNEL_SOLVE;
  const size_t size = cx_hlo_elem_bytes((cx_hlo_elem)d->type);
  const int64_t n[2] = { d->batch * d->n * d->n,
                         d->batch * d->n * (solves ? d->others : d->n) };
  kernel->bytes[0] = (size_t)n[0] * size;
  kernel->bytes[1] = solves ? (size_t)n[1] * size : 0;
  kernel->bytes[2] = (size_t)n[1] * size;
  p->converted = !cpu_kernel_math_is(p->math, (cx_hlo_elem)d->type);
  if (p->converted) {
    reserve(kernel, p, 0, n[0]);
    reserve(kernel, p, 2, n[1]);
  }
  p->parts = parts_of(p, kernel->threads);
  p->scratch_each = cpu_kernel_triangle_scratch(p->math, d->n, d->others);
  p->scratch_at =
      cpu_kernel_reserve(kernel, p->scratch_each * (size_t)kernel->threads);
  return NULL;
}
