// kernel/dot_plan: decides how a described dot_general is run.
//
// An operand whose rows and contracted dimensions are one dimension each, one
// of them dense, is used where it is. Any other operand, and one of another
// type than is computed in, is first copied ("gathered") to scratch. bf16 is
// computed in bf16, with sums in f32, where that is faster and nothing is
// gathered.
#include <string.h>

#include "base/alloc.h"
#include "kernel/dot.h"
#include "kernel/gemm.h"
#include "kernel/packed.h"

// Multiplications up to which gemm.h is as fast as oneDNN, whose first small
// product takes 30 ms to generate its code. With few rows the limit is lower,
// because packing the right operand takes time.
#define SMALL_PRODUCT ((double)(1 << 24))
#define SMALL_OF_FEW_ROWS ((double)(1 << 22))
#define FEW_ROWS 32
// Below, packing costs less than the preparations of rows.h.
#define ROWS_COLUMNS 16
#define ROWS_INNER 8
// Multiplications from which on packing pairs of 8-bit integers pays.
#define LEAST_NARROW 4096.0
// Batches and rows of tiny products that run in one call.
#define LEAST_MANY 16
#define MANY_ROWS 16
// By its times, oneDNN's sgemm copies its operands if 1 / rows + 1 / columns is
// less. Then strides do not matter.
#define ONEDNN_COPIES_BELOW (1.0 / 511)
#define PAGE 1024  // elements
// Inner elements from which on a faster product pays for transposing its
// result. Columns up to which that holds for any stride.
#define TURNED_INNER 512
#define TURNED_COLUMNS 128
// Rows, inner elements and multiplications from which on packing for split.h
// pays. Many results go to memory, which takes as long whatever computes them,
// so they need more inner elements.
#define SPLIT_ROWS 96
#define SPLIT_INNER 64
#define SPLIT_PRODUCT ((double)(1 << 22))
#define SPLIT_MANY_RESULTS (1 << 18)
#define SPLIT_INNER_OF_MANY 96
// Rows and columns, if the inner elements are divided too.
#define SPLIT_LINES_IN_PARTS 64
// Multiplications from which on a matmul's code is worth its generation.
#define NATIVE_PRODUCT ((double)(1 << 16))

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

// The operand that is read as it is: by rows.h the one with more elements.
static bool is_wide(const cpu_kernel_dot_plan *p, int which)
{
  return which == 0 ? p->few_columns : p->few_rows;
}

// Whether operand `which` is read as it is. `native`: as bf16.
static bool keeps_type(const cpu_kernel_dot_plan *p, int which, bool native)
{
  const cx_hlo_elem type = p->operands[which].view.type;
  if (native) return type == CX_HLO_BF16;
  if (p->narrow) return true;
  return (!p->complex && cpu_kernel_math_is(p->math, type)) ||
         (is_wide(p, which) && cpu_kernel_rows_reads(type));
}

static void plan_factor(cpu_kernel_dot_plan *p, bool native, int which,
                        const dims *batch, const dims *rows,
                        const dims *columns, int64_t n_rows, int64_t n_columns)
{
  cpu_kernel_dot_factor *s = &p->factors[which];
  cpu_kernel_view *view = &p->operands[which].view;
  *s = (cpu_kernel_dot_factor){ .gathered = false };
  view->n = 0;
  s->row = as_one(rows);
  s->column = as_one(columns);
  for (int64_t i = 0; i < batch->n; i++) s->batch[i] = batch->stride[i];
  bool dense = s->column == 1 || s->row == 1 || columns->n == 0 || rows->n == 0;
  if (keeps_type(p, which, native) && s->row >= 0 && s->column >= 0 && dense) {
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

static void plan_factors(cpu_kernel_dot_plan *p, bool native)
{
  const cpu_kernel_dot_desc *d = &p->d;
  dims batch = { d->n_batch, d->batch, d->lhs_batch };
  dims rows = { d->n_rows, d->rows, d->lhs_rows };
  dims inner = { d->n_inner, d->inner, d->lhs_inner };
  plan_factor(p, native, 0, &batch, &rows, &inner, p->m, p->k);
  batch.stride = d->rhs_batch;
  inner.stride = d->rhs_inner;
  dims columns = { d->n_columns, d->columns, d->rhs_columns };
  plan_factor(p, native, 1, &batch, &inner, &columns, p->k, p->n);
}

static void plan_scratch(cpu_kernel *kernel, cpu_kernel_dot_plan *p)
{
  for (int i = 0; i < 3; i++) {
    cpu_kernel_operand *o = &p->operands[i];
    const size_t bytes = cx_hlo_elem_bytes(o->view.type);
    if (i < 2 ? !p->factors[i].gathered : !p->stored) continue;
    cpu_kernel_operand_reserve(kernel, p->math,
                               (int64_t)(kernel->bytes[i] / bytes), o);
  }
  if (p->packed) {
    p->panels_each = cpu_kernel_packed_scratch(p->m, p->k);
  } else if (p->few_rows || p->few_columns) {
    p->panels_each = cpu_kernel_rows_scratch(p->few_rows ? p->m : p->n, p->k);
  } else if (p->narrow) {
    p->panels_each = cpu_kernel_narrow_panels(p->m, p->n, p->k);
  } else if (p->matmul != NULL) {
    p->panels_each = cpu_kernel_matmul_scratch(p->matmul);
  } else if (p->onednn == NULL) {
    p->panels_each = cpu_kernel_gemm_panels(p->math, p->m, p->n, p->k);
  }
  if (p->split) {
    const size_t split = cpu_kernel_split_scratch(p->packed ? 0 : p->n, p->k);
    if (p->panels_each < split) p->panels_each = split;
  }
  const bool sums = p->split && !p->packed && p->batches == 1;
  const size_t panels =
      p->turned ? kernel->bytes[2] : p->panels_each * (size_t)kernel->threads;
  p->panels_at = cpu_kernel_reserve(kernel, panels);
  p->sums_at = cpu_kernel_reserve(
      kernel, sums ? cpu_kernel_split_sums_bytes(p->m, p->n, p->k) : 0);
}

// ---- making -----------------------------------------------------------------

static double work_of(const cpu_kernel_dot_plan *p)
{
  return (double)p->m * (double)p->n * (double)p->k;
}

static bool is_small(const cpu_kernel_dot_plan *p)
{
  return work_of(p) <= (p->m < FEW_ROWS ? SMALL_OF_FEW_ROWS : SMALL_PRODUCT);
}

// Products of bf16 as they are, if that is chosen and possible.
static void plan_native(cpu_kernel *kernel, cpu_kernel_dot_plan *p,
                        cpu_threads *pool, bool tune)
{
  const int64_t *types = p->d.types;
  if (types[0] != CX_HLO_BF16 || types[1] != CX_HLO_BF16 ||
      (types[2] != CX_HLO_BF16 && types[2] != CX_HLO_F32) ||
      (double)p->batches * work_of(p) < NATIVE_PRODUCT) {
    return;
  }
  int64_t choice = kernel->dot.choice;
  if (choice == CPU_KERNEL_BF16_UNDECIDED) {
    choice = cpu_kernel_bf16_choose(tune);
    if (tune) kernel->dot.choice = choice;
  }
  if (choice != CPU_KERNEL_BF16_NATIVE) return;
  plan_factors(p, true);
  const cpu_kernel_dot_factor *l = &p->factors[0], *r = &p->factors[1];
  if (l->gathered || r->gathered) return;
  const cpu_kernel_matmul_shape shape = { .m = p->m,
                                          .n = p->n,
                                          .k = p->k,
                                          .a_row = l->row,
                                          .a_column = l->column,
                                          .b_row = r->row,
                                          .b_column = r->column,
                                          .ldc = p->n,
                                          .wide = types[2] == CX_HLO_F32 };
  p->divided = p->batches < kernel->threads;
  p->matmul = cpu_kernel_matmul_new(&shape, p->divided ? pool : NULL);
}

static void free_plan(void *user)
{
  cpu_kernel_dot_plan *p = user;
  cpu_kernel_matmul_free(p->matmul);
  cx_free(p);
}

// Products of a few rows or columns, which read the other operand once.
static void plan_rows(cpu_kernel_dot_plan *p)
{
  if (p->math != CPU_KERNEL_F32 || p->complex || p->k < ROWS_INNER) return;
  p->few_rows = p->m <= CPU_KERNEL_ROWS_MOST && p->n >= ROWS_COLUMNS;
  p->few_columns =
      !p->few_rows && p->n <= CPU_KERNEL_ROWS_MOST && p->m >= ROWS_COLUMNS;
}

// Products of 8-bit integers as they are, if neither operand is gathered.
static void plan_narrow(cpu_kernel_dot_plan *p)
{
  if (p->math != CPU_KERNEL_U32 ||
      !cpu_kernel_narrow_reads(p->operands[0].view.type) ||
      !cpu_kernel_narrow_reads(p->operands[1].view.type) ||
      work_of(p) < LEAST_NARROW) {
    return;
  }
  p->narrow = true;
  plan_factors(p, false);
  p->narrow = !p->factors[0].gathered && !p->factors[1].gathered;
}

// Products with the right operand in panels: f32, of one dimension each. True:
// the kernel packs, or it multiplies what is packed.
static bool plan_packed(cpu_kernel *kernel, cpu_kernel_dot_plan *p)
{
  cpu_kernel plain = { .desc = kernel->desc };
  plain.dot.packed = CPU_KERNEL_DOT_PLAIN;
  p->packed =
      p->d.packed != CPU_KERNEL_DOT_PLAIN && cpu_kernel_dot_packs(&plain.desc);
  if (!p->packed) return false;
  p->factors[0] = (cpu_kernel_dot_factor){ .row = p->d.lhs_rows[0],
                                           .column = p->d.lhs_inner[0] };
  p->factors[1] = (cpu_kernel_dot_factor){ .row = p->d.rhs_inner[0],
                                           .column = p->d.rhs_columns[0] };
  const bool packs = p->d.packed == CPU_KERNEL_DOT_PACK;
  p->split = cpu_kernel_dot_packed_splits(p, packs);
  kernel->run = packs ? cpu_kernel_dot_pack : cpu_kernel_dot_run_packed;
  const char *name = packs ? "pack" : p->split ? "packed split bf16" : "packed";
  memcpy(kernel->name, name, strlen(name) + 1);
  const size_t panels =
      (size_t)cpu_kernel_dot_packed_elements(p->n, p->k) * sizeof(float);
  if (packs) {
    kernel->bytes[0] = kernel->bytes[1];
    kernel->bytes[2] = panels;
  } else {
    kernel->bytes[1] = panels;
  }
  return true;
}

// Whether sums of products of bf16 are faster than f32.
static bool is_split(const cpu_kernel_dot_plan *p)
{
  const bool many = p->n > SPLIT_MANY_RESULTS / p->m;
  const bool in_parts = p->batches == 1 && p->n >= SPLIT_LINES_IN_PARTS &&
                        cpu_kernel_split_depth(p->m, p->n, p->k) > 1;
  return p->math == CPU_KERNEL_F32 && !p->complex && cpu_kernel_has_tiles() &&
         p->m >= (in_parts ? SPLIT_LINES_IN_PARTS : SPLIT_ROWS) &&
         p->k >= (many ? SPLIT_INNER_OF_MANY : SPLIT_INNER) &&
         work_of(p) >= SPLIT_PRODUCT &&
         cpu_kernel_split_fills(p->m, p->n, p->k);
}

// Whether sgemm is faster for the transposed product (decision 110). The left
// operand is stored transposed, and one of these holds: oneDNN reads it in
// steps of whole pages, which fall into the same sets of a cache; or there are
// few columns and at least twice as many rows.
static bool is_turned(const cpu_kernel_dot_plan *p)
{
  const cpu_kernel_dot_factor *l = &p->factors[0], *r = &p->factors[1];
  if (p->onednn == NULL || p->batches != 1 || p->complex || p->stored ||
      l->row != 1 || l->column == 1 || r->column != 1 || p->k < TURNED_INNER) {
    return false;
  }
  const bool copies =
      1.0 / (double)p->m + 1.0 / (double)p->n < ONEDNN_COPIES_BELOW;
  return (!copies && l->column % PAGE == 0 && r->row % PAGE != 0) ||
         (p->n <= TURNED_COLUMNS && p->m / 2 >= p->n);
}

// Chooses what computes the products.
static void plan_products(cpu_kernel *kernel, cpu_kernel_dot_plan *p,
                          cpu_threads *pool, bool tune)
{
  const bool any = kernel->bytes[2] != 0 && p->k != 0;
  if (plan_packed(kernel, p)) return;
  if (any) plan_rows(p);
  const bool rows = p->few_rows || p->few_columns;
  if (any && !rows) plan_native(kernel, p, pool, tune);
  if (any && !rows) plan_narrow(p);
  if (p->matmul == NULL) {
    p->stored =
        p->complex || !cpu_kernel_math_is(p->math, p->operands[2].view.type);
    plan_factors(p, false);
  }
  for (int i = 0; i < 3; i++) {
    const bool as_is = i < 2 ? !p->factors[i].gathered : !p->stored;
    p->bytes[i] = as_is ? (int64_t)cx_hlo_elem_bytes(p->operands[i].view.type)
                        : (int64_t)cpu_kernel_math_bytes(p->math);
  }
  if (p->matmul != NULL) {
    memcpy(kernel->name, "bf16 matmul", 12);
    return;
  }
  if (p->math == CPU_KERNEL_F32 && any && !rows && !is_small(p)) {
    p->onednn = cpu_kernel_onednn_get();
  }
  p->split = any && !rows && !p->narrow && is_split(p);
  p->turned = !p->split && is_turned(p);
  p->many = any && !p->complex && p->d.n_batch == 1 &&
            p->batches >= LEAST_MANY && p->m <= MANY_ROWS &&
            p->n <= CPU_KERNEL_MANY_MOST && p->k <= CPU_KERNEL_MANY_MOST;
  if (rows) memcpy(kernel->name, "rows", 5);
  if (p->narrow) memcpy(kernel->name, "8-bit", 6);
  if (p->onednn != NULL) memcpy(kernel->name, "dnnl_sgemm", 11);
  if (p->split) memcpy(kernel->name, "split bf16", 11);
  if (p->turned) memcpy(kernel->name, "transposed dnnl_sgemm", 22);
}

calx_status *cpu_kernel_dot_new(cpu_kernel *kernel, cpu_threads *pool,
                                bool tune)
{
  cpu_kernel_dot_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  cpu_kernel_set(kernel, cpu_kernel_dot_run, p, "loops");
  kernel->free_plan = free_plan;
  p->d = kernel->dot;
  if (!cpu_kernel_dot_is_sound(&p->d, p)) {
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
  if (!is_small(p)) {
    bool taken;
    CALX_TRY(cpu_kernel_dot_implicit_new(kernel, &taken));
    if (taken) {
      cx_free(p);
      return NULL;
    }
  }
  plan_products(kernel, p, pool, tune);
  if (p->d.packed < CPU_KERNEL_DOT_PLAIN ||
      p->d.packed > CPU_KERNEL_DOT_PACKED ||
      (p->d.packed != CPU_KERNEL_DOT_PLAIN && !p->packed)) {
    return cx_invalid("a description of a packed product contradicts itself");
  }
  plan_scratch(kernel, p);
  return NULL;
}
