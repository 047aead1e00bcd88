// kernel/implicit_points: the points of implicit products, and their addresses.
#include "kernel/implicit.h"

void cpu_kernel_implicit_list(const cpu_kernel_implicit_class *c, int64_t first,
                              int64_t n, cpu_kernel_implicit_point *out)
{
  int64_t at[CPU_KERNEL_IMPLICIT_DIMS + 1];
  for (int i = c->n_lines - 1; i >= 0; i--) {
    at[i] = first % c->lines[i].size;
    first /= c->lines[i].size;
  }
  for (int64_t p = 0; p < n; p++) {
    cpu_kernel_implicit_point x = { .row = c->row };
    for (int i = 0; i < c->n_lines; i++) {
      const cpu_kernel_implicit_line *l = &c->lines[i];
      x.image += at[i] * l->image;
      x.row += at[i] * l->row;
      if (l->dim >= 0) x.at[l->dim] = at[i] * l->step;
    }
    out[p] = x;
    for (int i = c->n_lines - 1; i >= 0 && ++at[i] == c->lines[i].size; i--) {
      at[i] = 0;
    }
  }
}

const float *cpu_kernel_implicit_address(const cpu_kernel_implicit_plan *p,
                                         const float *input,
                                         const cpu_kernel_implicit_point *x,
                                         const cpu_kernel_implicit_tap *t)
{
  int64_t offset = x->image;
  for (int i = 0; i < CPU_KERNEL_IMPLICIT_DIMS; i++) {
    const int64_t at = x->at[i] + t->shift[i];
    if (at < 0 || at >= p->in[i]) return NULL;
    offset += at * p->stride[i];
  }
  return input + offset;
}
