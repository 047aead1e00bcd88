// kernel/lanes_64: the loops of 16 images in vectors of 64 bytes: AVX-512.
#define LANES_NAME cpu_kernel_lanes_64
#define LANES_BYTES 64
#define LANES_PIXELS 4
#define LANES_WIDE 1
#include "kernel/lanes_width.h"
