// kernel/matmul: matrix products of bf16, with sums in f32: of tiles.h on AMX,
// on oneDNN's matmul elsewhere.
//
// AVX512-BF16 multiplies pairs of bf16 numbers, up to twice as many in a cycle
// as f32; AMX multiplies tiles of them. Both flush numbers below f32's least
// normal one to zero. Whether they are faster than widening to f32 depends on
// the processor, so both are timed once in a process.
#ifndef CPU_KERNEL_MATMUL_H
#define CPU_KERNEL_MATMUL_H

#include "kernel/internal.h"

// How a kernel whose operands are bf16 computes: its choice in a description.
#define CPU_KERNEL_BF16_UNDECIDED 0
#define CPU_KERNEL_BF16_WIDENED 1
#define CPU_KERNEL_BF16_NATIVE 2
// The faster one; without `measure`, NATIVE where the processor has the
// instructions.
int64_t cpu_kernel_bf16_choose(bool measure);

// Whether the processor and the system have AMX for bf16.
bool cpu_kernel_has_tiles(void);

// c = a * b with a (m, k) and b (k, n) of bf16 and c (m, n) of bf16 or f32. Of
// a's and b's two strides, in elements, one is 1. c's rows are dense, ldc
// apart.
typedef struct cpu_kernel_matmul_shape {
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column, ldc;
  bool wide;  // c is f32
} cpu_kernel_matmul_shape;

typedef struct cpu_kernel_matmul cpu_kernel_matmul;

// To be run on the threads of `pool`; NULL: on the calling thread alone. NULL:
// oneDNN has no fast kernel for it, or memory is short.
cpu_kernel_matmul *cpu_kernel_matmul_new(const cpu_kernel_matmul_shape *shape,
                                         cpu_threads *pool);
void cpu_kernel_matmul_free(cpu_kernel_matmul *m);
// Bytes that each run at the same time needs, aligned to 64.
size_t cpu_kernel_matmul_scratch(const cpu_kernel_matmul *m);
// Before it runs divided among threads.
calx_status *cpu_kernel_matmul_ready(const cpu_kernel_matmul *m,
                                     const char *name,
                                     cpu_threads *pool) CALX_MUST_USE;
// With the pool that it was made for. False: oneDNN has failed.
bool cpu_kernel_matmul_run(const cpu_kernel_matmul *m, cpu_threads *pool,
                           const void *a, const void *b, void *c,
                           void *scratch);

#endif
