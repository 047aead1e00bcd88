// kernel/rows_16: products of few rows in vectors of 16 bytes: any processor.
#define ROWS_NAME cpu_kernel_rows_16
#define ROWS_BYTES 16
#include "kernel/rows_width.h"
