// kernel/small: see small.h. Arguments are those of LAPACK's getrf, potrf and
// trsm: netlib.org/lapack.
#include "kernel/small.h"

#include <string.h>

#include "kernel/triangle.h"

static cpu_kernel_math math_of(const cpu_lapack_plan *p)
{
  return p->d.type == CX_HLO_F32 ? CPU_KERNEL_F32 : CPU_KERNEL_F64;
}

cpu_kernel_small_kind cpu_kernel_small_of(const cpu_lapack_plan *p)
{
  char name[16];
  cpu_lapack_plan_name(p, name, sizeof name);
  const cpu_lapack_tensor *a = &p->tensors[0];
  if (p->d.type != CX_HLO_F32 && p->d.type != CX_HLO_F64) {
    return CPU_KERNEL_SMALL_NONE;
  }
  if (strcmp(name + 1, "getrf") == 0) {
    return a->rows <= CPU_KERNEL_LU_MOST && a->columns <= CPU_KERNEL_LU_MOST
               ? CPU_KERNEL_SMALL_LU
               : CPU_KERNEL_SMALL_NONE;
  }
  if (a->rows > CPU_KERNEL_TRIANGLE_BLOCK) return CPU_KERNEL_SMALL_NONE;
  if (strcmp(name + 1, "potrf") == 0 && p->d.flags[0] == 'L') {
    return CPU_KERNEL_SMALL_CHOLESKY;
  }
  return strcmp(name + 1, "trsm") == 0 ? CPU_KERNEL_SMALL_TRIANGLE
                                       : CPU_KERNEL_SMALL_NONE;
}

size_t cpu_kernel_small_scratch(cpu_kernel_small_kind kind,
                                const cpu_lapack_plan *p)
{
  if (kind != CPU_KERNEL_SMALL_TRIANGLE) return 0;
  const cpu_lapack_tensor *x = &p->tensors[1];
  return cpu_kernel_triangle_scratch(
      math_of(p), p->tensors[0].rows,
      p->d.flags[0] == 'L' ? x->columns : x->rows);
}

// A matrix of a tensor's.
static unsigned char *matrix(const cpu_lapack_plan *p, void *const *buffers,
                             size_t tensor, int64_t i)
{
  const cpu_lapack_tensor *t = &p->tensors[tensor];
  return (unsigned char *)buffers[tensor] + i * t->rows * t->columns * t->bytes;
}

static void copy_matrix(const cpu_lapack_plan *p, size_t tensor,
                        const void *from, void *to)
{
  const cpu_lapack_tensor *t = &p->tensors[tensor];
  if (from != to) memcpy(to, from, (size_t)(t->rows * t->columns * t->bytes));
}

static bool is_positive(const cpu_lapack_plan *p, const unsigned char *x)
{
  double wide;
  float narrow;
  if (p->d.type == CX_HLO_F32) {
    memcpy(&narrow, x, sizeof narrow);
    return narrow > 0;
  }
  memcpy(&wide, x, sizeof wide);
  return wide > 0;
}

// *info: the number of the first column that is not of a definite matrix.
static void cholesky(const cpu_lapack_plan *p, void *const *buffers, int64_t i,
                     cpu_threads *pool)
{
  const cpu_lapack_tensor *a = &p->tensors[0];
  unsigned char *l = matrix(p, buffers, 1, i);
  int32_t info = 0;
  copy_matrix(p, 0, matrix(p, buffers, 0, i), l);
  cpu_kernel_triangle_factor(math_of(p), l, a->rows, pool, NULL, 0);
  for (int64_t k = 0; k < a->rows && info == 0; k++) {
    const unsigned char *x = l + k * (a->rows + 1) * a->bytes;
    if (!is_positive(p, x)) info = (int32_t)(k + 1);
  }
  memcpy(matrix(p, buffers, 2, i), &info, sizeof info);
}

static void triangle(const cpu_lapack_plan *p, void *const *buffers, int64_t i,
                     unsigned char *scratch)
{
  const int64_t n = p->tensors[0].rows;
  const bool turned = p->d.flags[2] != 'N';
  unsigned char *x = matrix(p, buffers, 2, i);
  const cpu_kernel_triangle t = { .math = math_of(p),
                                  .a = matrix(p, buffers, 0, i),
                                  .n = n,
                                  .row = turned ? 1 : n,
                                  .column = turned ? n : 1,
                                  .lower = (p->d.flags[1] == 'L') != turned,
                                  .unit = p->d.flags[3] == 'U',
                                  .right = p->d.flags[0] == 'R' };
  copy_matrix(p, 1, matrix(p, buffers, 1, i), x);
  cpu_kernel_triangle_solve(&t, x, p->tensors[1].columns, p->tensors[1].rows,
                            p->tensors[1].columns, scratch);
}

void cpu_kernel_small_run(cpu_kernel_small_kind kind, const cpu_lapack_plan *p,
                          void *const *buffers, int64_t lo, int64_t hi,
                          cpu_threads *pool, unsigned char *scratch)
{
  const cpu_lapack_tensor *a = &p->tensors[0];
  for (int64_t i = lo; i < hi; i++) {
    switch (kind) {
      case CPU_KERNEL_SMALL_LU:
        cpu_kernel_lu(math_of(p), matrix(p, buffers, 0, i), a->rows, a->columns,
                      matrix(p, buffers, 1, i),
                      (int32_t *)(void *)matrix(p, buffers, 2, i),
                      (int32_t *)(void *)matrix(p, buffers, 3, i));
        break;
      case CPU_KERNEL_SMALL_CHOLESKY: cholesky(p, buffers, i, pool); break;
      case CPU_KERNEL_SMALL_TRIANGLE: triangle(p, buffers, i, scratch); break;
      case CPU_KERNEL_SMALL_NONE: break;
    }
  }
}
