// kernel/triangle_32: small triangles in vectors of 32 bytes: AVX2 and FMA.
#define TRIANGLE_NAME cpu_kernel_triangle_32
#define TRIANGLE_BYTES 32
#include "kernel/triangle_width.h"
