// kernel/small: calls of LAPACK's routines on small real matrices, by functions
// of the engine: a call of the library costs more than the work of a matrix of
// a few rows, and needs it transposed on its way.
#ifndef CPU_KERNEL_SMALL_H
#define CPU_KERNEL_SMALL_H

#include "kernel/internal.h"

typedef enum cpu_kernel_small_kind {
  CPU_KERNEL_SMALL_NONE,  // the library does it
  CPU_KERNEL_SMALL_LU,
  CPU_KERNEL_SMALL_CHOLESKY,
  CPU_KERNEL_SMALL_TRIANGLE
} cpu_kernel_small_kind;

cpu_kernel_small_kind cpu_kernel_small_of(const cpu_lapack_plan *p);
// What one thread needs.
size_t cpu_kernel_small_scratch(cpu_kernel_small_kind kind,
                                const cpu_lapack_plan *p);
// As cpu_lapack_run. The plan is sound.
void cpu_kernel_small_run(cpu_kernel_small_kind kind, const cpu_lapack_plan *p,
                          void *const *buffers, int64_t lo, int64_t hi,
                          cpu_threads *pool, unsigned char *scratch);

#endif
