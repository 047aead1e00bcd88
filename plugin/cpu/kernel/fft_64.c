// kernel/fft_64: Fourier transforms in vectors of 64 bytes: AVX-512.
#define FFT_NAME cpu_kernel_fft_64
#define FFT_BYTES 64
#include "kernel/fft_width.h"
