// kernels/gemm: chooses the matrix product for this processor.
#include "kernels/gemm.h"

#include <stdatomic.h>
#include <string.h>

static cx_gemm_fn *const *choose(void)
{
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    return cx_gemm_64;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return cx_gemm_32;
  }
#endif
  return cx_gemm_16;
}

static void clear(cx_math math, const cx_gemm *g)
{
  const size_t bytes = cx_math_bytes(math);
  for (int64_t i = 0; i < g->m; i++) {
    memset((char *)g->c + (size_t)(i * g->ldc) * bytes, 0,
           (size_t)g->n * bytes);
  }
}

void cx_gemm_run(cx_math math, const cx_gemm *g, void *panels)
{
  if (g->m == 0 || g->n == 0) return;
  if (g->k == 0) {
    if (g->mode == CX_GEMM_SET) clear(math, g);
    return;
  }
  // Whoever comes first: all choose the same.
  static cx_gemm_fn *const *_Atomic chosen;
  cx_gemm_fn *const *fns = atomic_load_explicit(&chosen, memory_order_relaxed);
  if (fns == NULL) {
    fns = choose();
    atomic_store_explicit(&chosen, fns, memory_order_relaxed);
  }
  fns[math](g, panels);
}

size_t cx_gemm_panels(cx_math math, int64_t m, int64_t n, int64_t k)
{
  // Rounded up for the widest tile: 8 rows, 192 bytes of columns.
  size_t inner = (size_t)(k < CX_GEMM_INNER ? k : CX_GEMM_INNER);
  size_t columns = (size_t)(n < CX_GEMM_COLUMNS ? n : CX_GEMM_COLUMNS) + 48;
  size_t rows = (size_t)(m < CX_GEMM_ROWS ? m : CX_GEMM_ROWS) + 8;
  return (inner * (columns + rows) * cx_math_bytes(math) + 63) / 64 * 64;
}
