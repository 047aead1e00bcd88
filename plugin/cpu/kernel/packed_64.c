// kernel/packed_64: products with packed operands in vectors of 64 bytes:
// AVX-512.
#define PACKED_NAME cpu_kernel_packed_64
#define PACKED_BYTES 64
#define PACKED_MR 8
#define PACKED_NV 3
#include "kernel/packed_width.h"
