// kernel/gemm: chooses the matrix product for this processor.
#include "kernel/gemm.h"

#include <stdatomic.h>
#include <string.h>

static cpu_kernel_gemm_fn *const *choose(void)
{
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    return cpu_kernel_gemm_64;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return cpu_kernel_gemm_32;
  }
#endif
  return cpu_kernel_gemm_16;
}

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
  // Whoever comes first: all choose the same.
  static cpu_kernel_gemm_fn *const *_Atomic chosen;
  cpu_kernel_gemm_fn *const *fns =
      atomic_load_explicit(&chosen, memory_order_relaxed);
  if (fns == NULL) {
    fns = choose();
    atomic_store_explicit(&chosen, fns, memory_order_relaxed);
  }
  fns[math](g, panels);
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
