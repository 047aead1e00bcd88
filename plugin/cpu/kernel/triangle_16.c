// kernel/triangle_16: small triangles in vectors of 16 bytes: any x86-64, and
// other processors.
#define TRIANGLE_NAME cpu_kernel_triangle_16
#define TRIANGLE_BYTES 16
#include "kernel/triangle_width.h"
