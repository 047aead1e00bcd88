// kernel/sgemm: matrix products of f32 by oneDNN's sgemm, on all threads.
#ifndef CPU_KERNEL_SGEMM_H
#define CPU_KERNEL_SGEMM_H

#include "kernel/gemm.h"
#include "kernel/onednn.h"

// g's operands are f32; of each one stride is 1. Inside of a loop or a parallel
// region it runs on the calling thread.
void cpu_kernel_sgemm(const cpu_kernel_onednn *d, const cpu_kernel_gemm *g,
                      cpu_threads *pool);

#endif
