// kernel/packed_16: products with packed operands in vectors of 16 bytes:
// any processor.
#define PACKED_NAME cpu_kernel_packed_16
#define PACKED_BYTES 16
#define PACKED_MR 4
#define PACKED_NV 2
#include "kernel/packed_width.h"
