// kernel/gemm: runs the matrix product of this processor's vector width, and
// complex products.
#include "kernel/gemm.h"

#include <string.h>

static void clear(cpu_kernel_math math, const cpu_kernel_gemm *g)
{
  const size_t bytes = cpu_kernel_math_bytes(math);
  for (int64_t i = 0; i < g->m; i++) {
    memset((char *)g->c + (size_t)(i * g->ldc) * bytes, 0,
           (size_t)g->n * bytes);
  }
}

void cpu_kernel_gemm_run(cpu_kernel_math math, const cpu_kernel_gemm *g,
                         void *panels)
{
  if (g->m == 0 || g->n == 0) return;
  if (g->k == 0) {
    if (g->mode == CPU_KERNEL_GEMM_SET) clear(math, g);
    return;
  }
  switch (cpu_kernel_vector_bytes()) {
    case 64: cpu_kernel_gemm_64[math](g, panels); break;
    case 32: cpu_kernel_gemm_32[math](g, panels); break;
    default: cpu_kernel_gemm_16[math](g, panels); break;
  }
}

void cpu_kernel_many_run(cpu_kernel_math math, const cpu_kernel_many *q)
{
  switch (cpu_kernel_vector_bytes()) {
    case 64: cpu_kernel_many_64[math](q); break;
    case 32: cpu_kernel_many_32[math](q); break;
    default: cpu_kernel_many_16[math](q); break;
  }
}

// re = re*re - im*im, im = re*im + im*re; absent planes are zero.
void cpu_kernel_gemm_planes(cpu_kernel_planes *planes,
                            const cpu_kernel_operand operands[3],
                            void (*run)(void *user), void *user)
{
  const cpu_kernel_planes real = *planes;
  const cpu_kernel_operand *l = &operands[0], *r = &operands[1];
  planes->mode = CPU_KERNEL_GEMM_SET;
  run(user);
  if (!operands[2].imaginary) return;
  if (l->imaginary && r->imaginary) {
    planes->lhs = real.lhs + l->plane;
    planes->rhs = real.rhs + r->plane;
    planes->mode = CPU_KERNEL_GEMM_SUB;
    run(user);
  }
  planes->out = real.out + operands[2].plane;
  planes->mode = CPU_KERNEL_GEMM_SET;
  for (int i = 1; i >= 0; i--) {
    if (!operands[i].imaginary) continue;
    planes->lhs = real.lhs + (i == 0 ? l->plane : 0);
    planes->rhs = real.rhs + (i == 1 ? r->plane : 0);
    run(user);
    planes->mode = CPU_KERNEL_GEMM_ADD;
  }
  if (planes->mode == CPU_KERNEL_GEMM_SET) {
    memset(planes->out, 0, operands[2].plane);
  }
}

size_t cpu_kernel_gemm_panels(cpu_kernel_math math, int64_t m, int64_t n,
                              int64_t k)
{
  // Rounded up for the widest tile: 8 rows, 192 bytes of columns.
  size_t inner =
      (size_t)(k < CPU_KERNEL_GEMM_INNER ? k : CPU_KERNEL_GEMM_INNER);
  size_t columns =
      (size_t)(n < CPU_KERNEL_GEMM_COLUMNS ? n : CPU_KERNEL_GEMM_COLUMNS) + 48;
  size_t rows =
      (size_t)(m < CPU_KERNEL_GEMM_ROWS ? m : CPU_KERNEL_GEMM_ROWS) + 8;
  return (inner * (columns + rows) * cpu_kernel_math_bytes(math) + 63) / 64 *
         64;
}
