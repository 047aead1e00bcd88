// kernel/rows_64: products of few rows in vectors of 64 bytes: AVX-512.
#define ROWS_NAME cpu_kernel_rows_64
#define ROWS_BYTES 64
#include "kernel/rows_width.h"
