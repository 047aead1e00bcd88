// kernel/attention_64: attention's inner loops in vectors of 64 bytes: AVX-512.
#define ATTENTION_NAME cpu_kernel_attention_64
#define ATTENTION_BYTES 64
#define ATTENTION_NV 4
#include "kernel/attention_width.h"
