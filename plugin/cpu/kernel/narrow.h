// kernel/narrow: matrix products of 8-bit integers, with sums in 32 bits that
// wrap. Two neighbours along the inner dimension are one word of two 16-bit
// numbers: one instruction multiplies both pairs and adds the two products,
// exactly.
#ifndef CPU_KERNEL_NARROW_H
#define CPU_KERNEL_NARROW_H

#include "kernel/internal.h"

// c = a * b with a (m, k), b (k, n) of any strides and c (m, n) with rows ldc
// apart, in elements.
typedef struct cpu_kernel_narrow {
  int64_t m, n, k;
  const uint8_t *a, *b;
  bool a_signed, b_signed;  // i8; else u8
  int64_t a_row, a_column, b_row, b_column;
  uint32_t *c;
  int64_t ldc;
} cpu_kernel_narrow;

// Whether operands of this type are read.
bool cpu_kernel_narrow_reads(cx_hlo_elem type);
// Runs on the calling thread. `panels` has cpu_kernel_narrow_panels() bytes,
// aligned to 64.
void cpu_kernel_narrow_run(const cpu_kernel_narrow *g, void *panels);
size_t cpu_kernel_narrow_panels(int64_t m, int64_t n, int64_t k);

// ---- one vector width; see narrow_width.h ----

typedef void cpu_kernel_narrow_fn(const cpu_kernel_narrow *g, void *panels);
extern cpu_kernel_narrow_fn cpu_kernel_narrow_16, cpu_kernel_narrow_32,
    cpu_kernel_narrow_64;

#endif
