// kernel/gemm_16: the matrix product in vectors of 16 bytes: any x86-64, and
// other processors.
#define GEMM_NAME cpu_kernel_gemm_16
#define GEMM_MANY_NAME cpu_kernel_many_16
#define GEMM_BYTES 16
#define GEMM_MR 4
#define GEMM_NV 2
#include "kernel/gemm_width.h"
