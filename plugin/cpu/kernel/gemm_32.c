// kernel/gemm_32: the matrix product in vectors of 32 bytes: AVX2 and FMA.
#define GEMM_NAME cpu_kernel_gemm_32
#define GEMM_MANY_NAME cpu_kernel_many_32
#define GEMM_BYTES 32
#define GEMM_MR 4
#define GEMM_NV 3
#include "kernel/gemm_width.h"
