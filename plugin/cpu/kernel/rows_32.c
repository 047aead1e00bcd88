// kernel/rows_32: products of few rows in vectors of 32 bytes: AVX2.
#define ROWS_NAME cpu_kernel_rows_32
#define ROWS_BYTES 32
#include "kernel/rows_width.h"
