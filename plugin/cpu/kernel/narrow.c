// kernel/narrow: the product of this processor's vector width. Processors with
// AVX-512 and without VNNI take AVX2's: the foundation of AVX-512 has no
// product of 16-bit numbers.
#include "kernel/narrow.h"

#include "kernel/gemm.h"

bool cpu_kernel_narrow_reads(cx_hlo_elem type)
{
  return type == CX_HLO_I8 || type == CX_HLO_UI8;
}

// Panels of pairs have the sizes of those of 32-bit numbers.
size_t cpu_kernel_narrow_panels(int64_t m, int64_t n, int64_t k)
{
  return cpu_kernel_gemm_panels(CPU_KERNEL_U32, m, n, (k + 1) / 2);
}

static bool has_vnni(void)
{
#if defined(__x86_64__)
  return cpu_kernel_vector_bytes() == 64 &&
         __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

void cpu_kernel_narrow_run(const cpu_kernel_narrow *g, void *panels)
{
  if (g->m == 0 || g->n == 0) return;
  if (has_vnni()) {
    cpu_kernel_narrow_64(g, panels);
  } else if (cpu_kernel_vector_bytes() >= 32) {
    cpu_kernel_narrow_32(g, panels);
  } else {
    cpu_kernel_narrow_16(g, panels);
  }
}
