// kernel/narrow_32: products of 8-bit integers in vectors of 32 bytes: AVX2.
#define NARROW_NAME cpu_kernel_narrow_32
#define NARROW_BYTES 32
#include "kernel/narrow_width.h"
