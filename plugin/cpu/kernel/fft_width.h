// kernel/fft_width: Fourier transforms for one vector width. Each of fft_16.c,
// fft_32.c and fft_64.c is this text, compiled for other processors, with
//   FFT_NAME    the array of functions
//   FFT_BYTES   of a vector: 16, 32 or 64
#include <string.h>

#include "kernel/fft.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
// Functions whose constant arguments choose what is compiled.
#define INLINE static inline __attribute__((always_inline))
#define MOST_RADIX CPU_KERNEL_FFT_PRIME

// ---- orders of two vectors' elements, `from` them: [0, lanes), [lanes, ..) ---

#define LIST_2(F, n, s) F(n, s, 0), F(n, s, 1)
#define LIST_4(F, n, s) LIST_2(F, n, s), F(n, s, 2), F(n, s, 3)
#define LIST_8(F, n, s) \
  LIST_4(F, n, s), F(n, s, 4), F(n, s, 5), F(n, s, 6), F(n, s, 7)
#define LIST_16(F, n, s)                                                    \
  LIST_8(F, n, s), F(n, s, 8), F(n, s, 9), F(n, s, 10), F(n, s, 11),        \
      F(n, s, 12), F(n, s, 13), F(n, s, 14), F(n, s, 15)
#define SHUFFLE(a, b, F, s) \
  __builtin_shufflevector(a, b, PASTE(LIST_, LANES)(F, LANES, s))
// Every second element; two halves in turn; the first vector backwards.
#define EVERY(n, s, j) (2 * (j) + (s))
#define IN_TURN(n, s, j) ((j) / 2 + (s) * (n) / 2 + ((j) % 2) * (n))
#define BACKWARDS(n, s, j) ((n)-1 - (j))
// The off-diagonal blocks of size s of two rows are exchanged.
#define LOW(n, s, j) (((j) & (s)) == 0 ? (j) : (n) + (j) - (s))
#define HIGH(n, s, j) (((j) & (s)) == 0 ? (j) + (s) : (n) + (j))

#define T float
#define FFT_OF(x) PASTE(x, _f32)
#if FFT_BYTES == 64
#define LANES 16
#elif FFT_BYTES == 32
#define LANES 8
#else
#define LANES 4
#endif
#include "kernel/fft_radix.h"
#include "kernel/fft_block.h"
#include "kernel/fft_row.h"
#undef T
#undef FFT_OF
#undef LANES
#undef VEC
#undef NUMBER

#define T double
#define FFT_OF(x) PASTE(x, _f64)
#if FFT_BYTES == 64
#define LANES 8
#elif FFT_BYTES == 32
#define LANES 4
#else
#define LANES 2
#endif
#include "kernel/fft_radix.h"
#include "kernel/fft_block.h"
#include "kernel/fft_row.h"

const cpu_kernel_fft_fns FFT_NAME[2] = {
  [CPU_KERNEL_F32] = { FFT_BYTES / sizeof(float), run_f32, open_f32, chirp_f32,
                       filter_f32, close_f32, unpack_f32 },
  [CPU_KERNEL_F64] = { FFT_BYTES / sizeof(double), run_f64, open_f64, chirp_f64,
                       filter_f64, close_f64, unpack_f64 },
};
