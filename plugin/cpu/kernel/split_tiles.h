// kernel/split_tiles: multiplies a band and a panel for split.c. Only files
// that are compiled for AMX include it.
#ifndef CPU_KERNEL_SPLIT_TILES_H
#define CPU_KERNEL_SPLIT_TILES_H

#include "kernel/split_pack.h"

// 32 x 32 sums, which are added to c, or stored if they are the `first`.
typedef struct cpu_kernel_split_sums {
  _Alignas(64) float value[BAND * BAND];
  float exponent;  // of the power of two that they were multiplied by
  bool first;
  int64_t m, n, rows;  // where in c; how many rows c has
  int64_t written;     // rows that are in c
} cpu_kernel_split_sums;

// Writes rows until `end` of them are in c.
void cpu_kernel_split_write(const cpu_kernel_split *s, cpu_kernel_split_sums *x,
                            int64_t end);
// Computes the values of `out`. Meanwhile it writes all of `before`, which
// costs next to nothing beside the tiles' products.
void cpu_kernel_split_multiply(const cpu_kernel_split *s, int64_t inner,
                               const cpu_kernel_split_packed *band,
                               const cpu_kernel_split_packed *panel,
                               cpu_kernel_split_sums *before,
                               cpu_kernel_split_sums *out);

#endif
