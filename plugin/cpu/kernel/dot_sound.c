// kernel/dot_sound: whether a described dot_general does not contradict itself,
// and its number of operations.
#include "kernel/dot.h"

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

bool cpu_kernel_dot_is_sound(const cpu_kernel_dot_desc *d,
                             cpu_kernel_dot_plan *p)
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
  cpu_kernel_dot_plan p;
  if (!cpu_kernel_dot_is_sound(d, &p) || d->packed == CPU_KERNEL_DOT_PACK)
    return 0;
  const double flops =
      2 * (double)p.batches * (double)p.m * (double)p.n * (double)p.k;
  return p.complex ? 4 * flops : flops;
}
