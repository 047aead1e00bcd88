// kernel/sort_16: keys of sorts in vectors of 16 bytes: for any processor.
#define SORT_NAME cpu_kernel_sort_16
#include "kernel/sort_width.h"
