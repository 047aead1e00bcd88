// kernel/fft_32: Fourier transforms in vectors of 32 bytes: AVX2 and FMA.
#define FFT_NAME cpu_kernel_fft_32
#define FFT_BYTES 32
#include "kernel/fft_width.h"
