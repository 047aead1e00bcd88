// kernel/packed: the products of this processor's vector width.
#include "kernel/packed.h"

size_t cpu_kernel_packed_scratch(int64_t m, int64_t k)
{
  const int64_t most =
      m < CPU_KERNEL_PACKED_BLOCK ? m : CPU_KERNEL_PACKED_BLOCK;
  const int64_t groups =
      (most + CPU_KERNEL_PACKED_ROWS - 1) / CPU_KERNEL_PACKED_ROWS;
  const int64_t inner =
      k < CPU_KERNEL_PACKED_INNER ? k : CPU_KERNEL_PACKED_INNER;
  return (size_t)(groups * CPU_KERNEL_PACKED_ROWS * inner) * sizeof(float);
}

const cpu_kernel_packed_loops *cpu_kernel_packed_get(void)
{
  switch (cpu_kernel_vector_bytes()) {
    case 64: return &cpu_kernel_packed_64;
    case 32: return &cpu_kernel_packed_32;
    default: return &cpu_kernel_packed_16;
  }
}

void cpu_kernel_packed_pack(const cpu_kernel_packed *p, int64_t part)
{
  cpu_kernel_packed_get()->pack(p, part);
}

void cpu_kernel_packed_run(const cpu_kernel_packed *p, int64_t row,
                           int64_t rows, int64_t part, float *scratch)
{
  cpu_kernel_packed_get()->run(p, row, rows, part, scratch);
}
