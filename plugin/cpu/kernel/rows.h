// kernel/rows: products of a few rows with a matrix, which is read once, as it
// is in memory: f32, or bf16, f16 or i8 widened in registers. Sums of 128
// products are in f32, and these are added up in f64.
#ifndef CPU_KERNEL_ROWS_H
#define CPU_KERNEL_ROWS_H

#include "kernel/internal.h"

#define CPU_KERNEL_ROWS_MOST 8

// c = a * b with a (m, k), m <= ROWS_MOST, and b (k, n); strides in elements.
// One of b's is 1.
typedef struct cpu_kernel_rows {
  int64_t m, n, k;
  const float *a;
  int64_t a_row, a_column;
  const void *b;
  cx_hlo_elem type;  // of b
  int64_t b_row, b_column;
  float *c;
  int64_t c_row, c_column;
} cpu_kernel_rows;

bool cpu_kernel_rows_reads(cx_hlo_elem type);
// Runs on the calling thread. `packed` has cpu_kernel_rows_scratch() bytes.
void cpu_kernel_rows_run(const cpu_kernel_rows *r, void *packed);
size_t cpu_kernel_rows_scratch(int64_t m, int64_t k);

// ---- one vector width; see rows_width.h ----

// a's rows are dense here.
typedef void cpu_kernel_rows_fn(const cpu_kernel_rows *r);
extern cpu_kernel_rows_fn cpu_kernel_rows_16, cpu_kernel_rows_32,
    cpu_kernel_rows_64;

#endif
