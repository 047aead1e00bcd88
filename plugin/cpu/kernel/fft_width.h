// kernel/fft_width: Fourier transforms for one vector width. Each of fft_16.c,
// fft_32.c and fft_64.c is this text, compiled for other processors, with
//   FFT_NAME    the array of functions
//   FFT_BYTES   of a vector
#include <string.h>

#include "kernel/fft.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#define T float
#define FFT_OF(x) PASTE(x, _f32)
#include "kernel/fft_type.h"
#define T double
#define FFT_OF(x) PASTE(x, _f64)
#include "kernel/fft_type.h"

const cpu_kernel_fft_fns FFT_NAME[2] = {
  [CPU_KERNEL_F32] = { run_f32, FFT_BYTES / sizeof(float) },
  [CPU_KERNEL_F64] = { run_f64, FFT_BYTES / sizeof(double) },
};
