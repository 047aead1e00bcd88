// kernel/dot_implicit: plain matrix products of few rows as implicit ones
// (implicit.h), which pack the right operand block by block.
#include "base/alloc.h"
#include "kernel/dot.h"
#include "kernel/implicit.h"

#define LEAST_ROWS 16
#define LEAST_COLUMNS 32
// Few rows, of a right operand of so many elements that it is in no cache.
#define FEW_ROWS 96
#define MANY_WEIGHTS (INT64_C(1) << 19)

static bool suits(const cpu_kernel_dot_desc *d)
{
  const bool f32 = d->types[0] == CX_HLO_F32 && d->types[1] == CX_HLO_F32 &&
                   d->types[2] == CX_HLO_F32;
  if (!f32 || d->packed != CPU_KERNEL_DOT_PLAIN || d->n_batch != 0 ||
      d->n_rows != 1 || d->n_columns != 1 || d->n_inner != 1) {
    return false;
  }
  const int64_t m = d->rows[0], n = d->columns[0], k = d->inner[0];
  return d->lhs_inner[0] == 1 &&
         (d->rhs_columns[0] == 1 || d->rhs_inner[0] == 1) && m >= LEAST_ROWS &&
         m <= FEW_ROWS && n >= LEAST_COLUMNS && k >= MANY_WEIGHTS / n;
}

calx_status *cpu_kernel_dot_implicit_new(cpu_kernel *kernel, bool *out_taken)
{
  const cpu_kernel_dot_desc *d = &kernel->dot;
  *out_taken = suits(d);
  if (!*out_taken) return NULL;
  cpu_kernel_implicit_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  p->taps = cx_calloc(1, sizeof *p->taps);
  if (p->taps == NULL) {
    cx_free(p);
    return cx_out_of_memory();
  }
  p->run = d->inner[0];
  p->n = d->columns[0];
  p->b_row = d->rhs_inner[0];
  p->b_column = d->rhs_columns[0];
  for (int i = 0; i < CPU_KERNEL_IMPLICIT_DIMS; i++) p->in[i] = 1;
  p->n_classes = 1;
  p->classes[0] = (cpu_kernel_implicit_class){
    .points = d->rows[0],
    .taps = 1,
    .n_lines = 1,
    .lines = { { .size = d->rows[0], .image = d->lhs_rows[0], .dim = -1 } }
  };
  cpu_kernel_implicit_set(kernel, p);
  return NULL;
}
