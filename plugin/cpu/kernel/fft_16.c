// kernel/fft_16: Fourier transforms in vectors of 16 bytes: any x86-64, and
// other processors.
#define FFT_NAME cpu_kernel_fft_16
#define FFT_BYTES 16
#include "kernel/fft_width.h"
