// kernel/narrow_16: products of 8-bit integers in vectors of 16 bytes: any
// processor.
#define NARROW_NAME cpu_kernel_narrow_16
#define NARROW_BYTES 16
#include "kernel/narrow_width.h"
