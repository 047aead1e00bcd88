// kernel/rows: the product of this processor's vector width.
#include "kernel/rows.h"

bool cpu_kernel_rows_reads(cx_hlo_elem type)
{
  return type == CX_HLO_F32 || type == CX_HLO_BF16 || type == CX_HLO_F16 ||
         type == CX_HLO_I8;
}

size_t cpu_kernel_rows_scratch(int64_t m, int64_t k)
{
  return ((size_t)(m * k) * sizeof(float) + 63) / 64 * 64;
}

void cpu_kernel_rows_run(const cpu_kernel_rows *r, void *packed)
{
  cpu_kernel_rows dense = *r;
  if (r->a_column != 1) {
    float *to = packed;
    for (int64_t i = 0; i < r->m; i++) {
      for (int64_t p = 0; p < r->k; p++) {
        to[i * r->k + p] = r->a[i * r->a_row + p * r->a_column];
      }
    }
    dense.a = to;
    dense.a_row = r->k;
  }
  switch (cpu_kernel_vector_bytes()) {
    case 64: cpu_kernel_rows_64(&dense); break;
    case 32: cpu_kernel_rows_32(&dense); break;
    default: cpu_kernel_rows_16(&dense); break;
  }
}
