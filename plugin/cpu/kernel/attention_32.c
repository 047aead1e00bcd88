// kernel/attention_32: attention's inner loops in vectors of 32 bytes: AVX2.
#define ATTENTION_NAME cpu_kernel_attention_32
#define ATTENTION_BYTES 32
#define ATTENTION_NV 2
#include "kernel/attention_width.h"
