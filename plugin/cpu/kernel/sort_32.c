// kernel/sort_32: keys of sorts in vectors of 32 bytes: AVX2.
#define SORT_NAME cpu_kernel_sort_32
#include "kernel/sort_width.h"
