// kernel/packed_32: products with packed operands in vectors of 32 bytes:
// AVX2 and FMA.
#define PACKED_NAME cpu_kernel_packed_32
#define PACKED_BYTES 32
#define PACKED_MR 4
#define PACKED_NV 3
#include "kernel/packed_width.h"
