// kernel/triangle_64: small triangles in vectors of 64 bytes: AVX-512.
#define TRIANGLE_NAME cpu_kernel_triangle_64
#define TRIANGLE_BYTES 64
#include "kernel/triangle_width.h"
