// kernel/tiles: matrix products of bf16 on AMX, with sums in f32.
//
// The instructions multiply tiles of 16 rows with 32 inner elements each, and
// flush numbers below f32's least normal one to zero. The right operand is
// packed into tiles, and the left one too unless its rows are dense. Then each
// thread keeps a part of the right operand in its second cache.
#ifndef CPU_KERNEL_TILES_H
#define CPU_KERNEL_TILES_H

#include "kernel/matmul.h"

// Only where the processor and the system have the instructions.

// Bytes that each run at the same time needs, aligned to 64.
size_t cpu_kernel_tiles_scratch(const cpu_kernel_matmul_shape *s);
// pool: NULL: on the calling thread alone.
void cpu_kernel_tiles_run(const cpu_kernel_matmul_shape *s, cpu_threads *pool,
                          const void *a, const void *b, void *c,
                          unsigned char *scratch);

#endif
