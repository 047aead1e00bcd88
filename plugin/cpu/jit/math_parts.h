// jit/math_parts: the functions behind cpu_jit_math(), by family.
#ifndef CPU_JIT_MATH_PARTS_H
#define CPU_JIT_MATH_PARTS_H

#include "jit/build.h"

// math.c. Begins the internal function `name` of the module, or finds it there
// and returns false. It has the string attributes of the function in which
// `env` builds, and *out_env builds in its first block.
bool cpu_jit_begin(const cpu_jit_math_env *env, const char *name,
                   LLVMTypeRef type, LLVMValueRef *out_function,
                   cpu_jit_math_env *out_env);
// Returns `result` from it.
void cpu_jit_end(cpu_jit_math_env *inner, LLVMValueRef result);

// math_exp.c. exp_pair is exp(x.hi + x.lo), exp_times that by the sum of
// another pair, of which the second numbers are small against 1 and the first.
LLVMValueRef cpu_jit_exp(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_expm1(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_logistic(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_tanh(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_sinh(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_cosh(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_erf(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_exp_pair(const cpu_jit_ir *m, cpu_jit_pair x);
LLVMValueRef cpu_jit_exp_times(const cpu_jit_ir *m, cpu_jit_pair x,
                               cpu_jit_pair by);

// math_avx512.c: for vectors of 16 or 32 floats where the target has AVX-512.
bool cpu_jit_has_avx512(const cpu_jit_ir *m);
LLVMValueRef cpu_jit_in_pieces(const cpu_jit_ir *m, const cpu_jit_pieces *f,
                               LLVMValueRef x);

// x 2^n, rounded once; n is a whole number.
LLVMValueRef cpu_jit_scale(const cpu_jit_ir *m, LLVMValueRef x, LLVMValueRef n);

// math_log.c
LLVMValueRef cpu_jit_log(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_log1p(const cpu_jit_ir *m, LLVMValueRef x);
// x > 0 and finite is a number in [sqrt(1/2), sqrt(2)), which is returned,
// times 2^k. k is a real number.
LLVMValueRef cpu_jit_split(const cpu_jit_ir *m, LLVMValueRef x,
                           LLVMValueRef *out_k);

// math_erf.c
LLVMValueRef cpu_jit_erfc(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_erf_inv(const cpu_jit_ir *m, LLVMValueRef x);

// math_inverse.c
LLVMValueRef cpu_jit_asin(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_acos(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_atan(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_asinh(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_acosh(const cpu_jit_ir *m, LLVMValueRef x);
LLVMValueRef cpu_jit_atanh(const cpu_jit_ir *m, LLVMValueRef x);

// math_trig.c. The first begins blocks of its own.
LLVMValueRef cpu_jit_trigonometric(const cpu_jit_ir *m, cpu_jit_function fn,
                                   LLVMValueRef x);
LLVMValueRef cpu_jit_atan2(const cpu_jit_ir *m, LLVMValueRef y, LLVMValueRef x);

// math_reduce.c: x less the nearest multiple of pi/2, as a pair of doubles
// (`m` is of doubles), exact to half an ulp of the first for every finite x;
// NaN for others. *out_n is an integer whose lowest two bits are those of the
// multiple. Where x was a float it has fewer bits, and the pair's second number
// is 0. Begins blocks.
cpu_jit_pair cpu_jit_reduce(const cpu_jit_ir *m, LLVMValueRef x, bool was_float,
                            LLVMValueRef *out_n);

// math_pow.c
LLVMValueRef cpu_jit_pow(const cpu_jit_ir *m, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_jit_cbrt(const cpu_jit_ir *m, LLVMValueRef x);

#endif
