// kernel/attention_16: attention's inner loops in vectors of 16 bytes: SSE2.
#define ATTENTION_NAME cpu_kernel_attention_16
#define ATTENTION_BYTES 16
#define ATTENTION_NV 2
#include "kernel/attention_width.h"
