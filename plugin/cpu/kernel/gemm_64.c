// kernel/gemm_64: the matrix product in vectors of 64 bytes: AVX-512.
#define GEMM_NAME cpu_kernel_gemm_64
#define GEMM_MANY_NAME cpu_kernel_many_64
#define GEMM_BYTES 64
#define GEMM_MR 8
#define GEMM_NV 3
#include "kernel/gemm_width.h"
