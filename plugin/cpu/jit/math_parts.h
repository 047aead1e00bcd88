// jit/math_parts: the functions behind cpu_jit_math(), by family.
#ifndef CPU_JIT_MATH_PARTS_H
#define CPU_JIT_MATH_PARTS_H

#include "jit/math_build.h"

// math.c. Begins the internal function `name` of the module, or finds it there
// and returns false. It has the string attributes of the function in which
// `env` builds, and *out_env builds in its first block.
bool cpu_jit_begin(cpu_jit_math_env *env, const char *name, LLVMTypeRef type,
                   value *out_function, cpu_jit_math_env *out_env);
// Returns `result` from it.
void cpu_jit_end(cpu_jit_math_env *inner, value result);

// math_exp.c. The last is exp(x.hi + x.lo).
value cpu_jit_exp(const maths *m, value x);
value cpu_jit_expm1(const maths *m, value x);
value cpu_jit_logistic(const maths *m, value x);
value cpu_jit_tanh(const maths *m, value x);
value cpu_jit_erf(const maths *m, value x);
value cpu_jit_exp_pair(const maths *m, pair x);

// math_log.c
value cpu_jit_log(const maths *m, value x);
value cpu_jit_log1p(const maths *m, value x);
// x > 0 and finite is a number in [sqrt(1/2), sqrt(2)), which is returned,
// times 2^k. k is a real number.
value cpu_jit_split(const maths *m, value x, value *out_k);

// math_trig.c. The first begins blocks of its own.
value cpu_jit_trigonometric(const maths *m, cpu_jit_function fn, value x);
value cpu_jit_atan2(const maths *m, value y, value x);

// math_reduce.c: x less the nearest multiple of pi/2, as a pair of doubles
// (`m` is of doubles), exact to half an ulp of the first for every finite x;
// NaN for others. *out_n is an integer whose lowest two bits are those of the
// multiple. Where x was a float it has fewer bits, and the pair's second number
// is 0. Begins blocks.
pair cpu_jit_reduce(const maths *m, value x, bool was_float, value *out_n);

// math_pow.c
value cpu_jit_pow(const maths *m, value x, value y);
value cpu_jit_cbrt(const maths *m, value x);

#endif
