// kernel/sort_64: keys of sorts in vectors of 64 bytes: AVX-512.
#define SORT_NAME cpu_kernel_sort_64
#include "kernel/sort_width.h"
