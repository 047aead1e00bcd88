// kernels/gemm_64: the matrix product in vectors of 64 bytes: AVX-512.
#define GEMM_NAME cx_gemm_64
#define GEMM_BYTES 64
#define GEMM_MR 8
#define GEMM_NV 3
#include "kernels/gemm_width.h"
