// kernel/lanes_32: the loops of 16 images in vectors of 32 bytes: AVX2 and
// FMA.
#define LANES_NAME cpu_kernel_lanes_32
#define LANES_BYTES 32
#define LANES_PIXELS 2
#define LANES_WIDE 0
#include "kernel/lanes_width.h"
