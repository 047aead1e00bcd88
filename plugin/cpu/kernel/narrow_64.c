// kernel/narrow_64: products of 8-bit integers in vectors of 64 bytes: AVX-512
// with VNNI.
#define NARROW_NAME cpu_kernel_narrow_64
#define NARROW_BYTES 64
#include "kernel/narrow_width.h"
