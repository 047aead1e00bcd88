// kernels/lanes_64: the loops of 16 images in vectors of 64 bytes: AVX-512.
#define LANES_NAME cx_lanes_64
#define LANES_PIXELS 4
#include "kernels/lanes_width.h"
