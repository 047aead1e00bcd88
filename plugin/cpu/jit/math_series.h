// jit/math_series: the numbers behind jit/math.
#ifndef CX_JIT_MATH_SERIES_H
#define CX_JIT_MATH_SERIES_H

#include <stdint.h>

// A polynomial, lowest power first. Those of f32 are floats in value.
typedef struct cx_jit_series {
  int count;
  double terms[16];
} cx_jit_series;

extern const cx_jit_series cx_jit_exp_f32, cx_jit_exp_f64, cx_jit_exp_short;
extern const cx_jit_series cx_jit_log_f32, cx_jit_log_f64, cx_jit_log_short,
    cx_jit_log_long;
extern const cx_jit_series cx_jit_tanh_f32;
extern const cx_jit_series cx_jit_sin_f32, cx_jit_sin_f64;
extern const cx_jit_series cx_jit_cos_f32, cx_jit_cos_f64;
extern const cx_jit_series cx_jit_atan_f32, cx_jit_atan_f64;
extern const cx_jit_series cx_jit_erf_f32, cx_jit_erf_f64;
extern const cx_jit_series cx_jit_erfc_f32, cx_jit_erfc_f64;

// One word of zeros, then the bits after the point of 2/pi, highest first.
#define CX_JIT_TWO_OVER_PI_WORDS 22
extern const uint64_t cx_jit_two_over_pi[CX_JIT_TWO_OVER_PI_WORDS];

#endif
