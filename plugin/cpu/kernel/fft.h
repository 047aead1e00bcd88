// kernel/fft: discrete Fourier transforms of lines, as many at once as a vector
// has lanes.
#ifndef CPU_KERNEL_FFT_H
#define CPU_KERNEL_FFT_H

#include "kernel/internal.h"

// Factors of a length; at most 2^24.
#define CPU_KERNEL_FFT_FACTORS 26

// Lines of n complex numbers. Lengths with other prime factors than 2, 3 and 5
// are a convolution of `wide` numbers (L. Bluestein, 1970). The tables have
// pairs of the type that is computed in.
typedef struct cpu_kernel_fft_line {
  int64_t n, wide;  // wide == n: no convolution
  int n_factors;
  int factors[CPU_KERNEL_FFT_FACTORS];  // of wide
  const void *roots;                    // wide: e^(-2 pi i k / wide)
  const void *chirp;                    // n: e^(sign pi i k^2 / n)
  const void *filter;                   // wide: transform of 1 / chirp
} cpu_kernel_fft_line;

// All lines along one dimension: [lines / inner][have][inner] from, likewise
// [..][keep][..] to. A real tensor has no imaginary parts. have < n: the rest
// of a line is the conjugate of what mirrors it.
typedef struct cpu_kernel_fft_pass {
  const cpu_kernel_fft_line *line;
  const void *from;
  void *to;
  int64_t lines, inner, have, keep;
  bool from_real, to_real, inverse;
} cpu_kernel_fft_pass;

// The blocks [lo, hi) of `lanes` lines. `scratch` has 4 * wide vectors.
typedef void cpu_kernel_fft_run_fn(const cpu_kernel_fft_pass *p, int64_t lo,
                                   int64_t hi, void *scratch);
typedef struct cpu_kernel_fft_fns {
  cpu_kernel_fft_run_fn *run;
  int64_t lanes;
} cpu_kernel_fft_fns;
// Of F32 and F64; see fft_width.h.
extern const cpu_kernel_fft_fns cpu_kernel_fft_16[2];
extern const cpu_kernel_fft_fns cpu_kernel_fft_32[2];
extern const cpu_kernel_fft_fns cpu_kernel_fft_64[2];

#endif
