// jit/math_series: the numbers behind jit/math.
#ifndef CPU_JIT_MATH_SERIES_H
#define CPU_JIT_MATH_SERIES_H

#include <stdint.h>

// A polynomial, lowest power first. Those of f32 are floats in value.
typedef struct cpu_jit_series {
  int count;
  double terms[16];
} cpu_jit_series;

extern const cpu_jit_series cpu_jit_exp_f32, cpu_jit_exp_f64, cpu_jit_exp_short;
extern const cpu_jit_series cpu_jit_exp2_f32;
extern const cpu_jit_series cpu_jit_log_f32, cpu_jit_log_f64, cpu_jit_log_short,
    cpu_jit_log_long;
extern const cpu_jit_series cpu_jit_tanh_f32;
extern const cpu_jit_series cpu_jit_sin_f32, cpu_jit_sin_f64;
extern const cpu_jit_series cpu_jit_cos_f32, cpu_jit_cos_f64;
extern const cpu_jit_series cpu_jit_atan_f32, cpu_jit_atan_f64;
extern const cpu_jit_series cpu_jit_asin_f32;
extern const cpu_jit_series cpu_jit_sinh_f32, cpu_jit_sinh_f64;
extern const cpu_jit_series cpu_jit_erf_f32, cpu_jit_erf_f64;
extern const cpu_jit_series cpu_jit_erfc_f32, cpu_jit_erfc_f64,
    cpu_jit_erfcx_f32;
extern const cpu_jit_series cpu_jit_inverse_low_f32, cpu_jit_inverse_high_f32;

// A function of f32 that is odd and ends level, on [0, most] in 16 pieces. The
// piece of x is in the bits 21 to 24 of x + offset, four to each power of two.
// In it the function is a polynomial in x - center[piece], whose coefficient of
// power k is terms[k][piece]; in the first one x and that polynomial. Beyond
// `most` it is as at `most`.
typedef struct cpu_jit_pieces {
  double offset, most;
  int degree;
  double center[16];
  double terms[7][16];
} cpu_jit_pieces;

extern const cpu_jit_pieces cpu_jit_tanh_pieces, cpu_jit_erf_pieces;

// One word of zeros, then the bits after the point of 2/pi, highest first.
#define CPU_JIT_TWO_OVER_PI_WORDS 22
extern const uint64_t cpu_jit_two_over_pi[CPU_JIT_TWO_OVER_PI_WORDS];

#endif
