// kernel/lanes_16: the loops over 16 images in vectors of 16 bytes: any x86-64,
// and other processors.
#define LANES_NAME cpu_kernel_lanes_16
#define LANES_BYTES 16
#define LANES_PIXELS 2
#define LANES_WIDE 0
#include "kernel/lanes_width.h"
