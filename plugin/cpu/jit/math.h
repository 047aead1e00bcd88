// jit/math: mathematical functions as LLVM IR, of this project's own making.
//
// A call leaves the instructions of one function at the builder's position, for
// scalars and vectors of float and double, with no call to any library: short
// ones in line, the long ones (power, trigonometry …) as one internal function
// of the module per type. Errors are at most 2 ulp over the whole range of the
// arguments (in f64 4 for erf_inv and 6 for erfc); infinities, NaN, signed
// zeros and denormals are as IEEE 754 and C's Annex F have them. None of it has
// fast-math flags and none may be given: the sums are ordered.
#ifndef CPU_JIT_MATH_H
#define CPU_JIT_MATH_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdint.h>

// A row of math.def each.
typedef enum cpu_jit_function {
#define CPU_JIT_MATH(id, name, is_long, real, complex) CPU_JIT_##id,
#include "jit/math.def"
#undef CPU_JIT_MATH
  CPU_JIT_FUNCTIONS  // how many there are
} cpu_jit_function;

// Where code goes. The builder stands in a block of a function, whose string
// attributes (target-cpu, target-features …) the internal functions take over:
// vectors are passed alike only between functions of the same target.
typedef struct cpu_jit_math_env {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  bool has_fma;     // the target fuses multiply and add in one instruction
  bool has_avx512;  // and its instructions are used for vectors of 16 lanes
} cpu_jit_math_env;

// fn(x), or fn(x, y) for POW and ATAN2 (else y is NULL). x is a float, a
// double or a vector of them; y has x's type, and so has the result. No basic
// block is begun: code goes on where the builder stood.
LLVMValueRef cpu_jit_math(const cpu_jit_math_env *env, cpu_jit_function fn,
                          LLVMValueRef x, LLVMValueRef y);

// The same on complex numbers, each as its real and imaginary part. Branch
// cuts are as in C's Annex G. Not defined for ATAN2, ERF and the functions
// after it.
void cpu_jit_math_complex(const cpu_jit_math_env *env, cpu_jit_function fn,
                          const LLVMValueRef x[2], const LLVMValueRef y[2],
                          LLVMValueRef out[2]);
void cpu_jit_complex_multiply(const cpu_jit_math_env *env,
                              const LLVMValueRef x[2], const LLVMValueRef y[2],
                              LLVMValueRef out[2]);
// Neither overflows nor underflows where the quotient does not.
void cpu_jit_complex_divide(const cpu_jit_math_env *env,
                            const LLVMValueRef x[2], const LLVMValueRef y[2],
                            LLVMValueRef out[2]);
// |x|, as hypot.
LLVMValueRef cpu_jit_complex_abs(const cpu_jit_math_env *env,
                                 const LLVMValueRef x[2]);

// ---- math_function.c: what the rest of the emitter uses too ----

// The constant in every lane where `type` is a vector.
LLVMValueRef cpu_jit_const_int(LLVMTypeRef type, uint64_t v);
LLVMValueRef cpu_jit_const_real(LLVMTypeRef type, double v);
LLVMValueRef cpu_jit_in_all_lanes(LLVMTypeRef vector, LLVMValueRef scalar);
LLVMValueRef cpu_jit_intrinsic(LLVMModuleRef module, LLVMBuilderRef b,
                               const char *name, LLVMTypeRef *types,
                               size_t n_types, LLVMValueRef *args,
                               unsigned n_args);
void cpu_jit_add_attribute(LLVMValueRef function, const char *name);

#endif
