// jit/math: mathematical functions as LLVM IR, of this project's own making.
//
// A call leaves the instructions of one function at the builder's position, for
// scalars and vectors of float and double, with no call to any library: short
// ones in line, the long ones (power, trigonometry …) as one internal function
// of the module per type. Errors are at most 2 ulp over the whole range of the
// arguments; infinities, NaN, signed zeros and denormals are as IEEE 754 and
// C's Annex F have them. None of it has fast-math flags and none may be given:
// the sums are ordered.
#ifndef CX_JIT_MATH_H
#define CX_JIT_MATH_H

#include <llvm-c/Core.h>
#include <stdbool.h>

typedef enum cx_jit_function {
  CX_JIT_EXP,
  CX_JIT_EXPM1,
  CX_JIT_LOG,
  CX_JIT_LOG1P,
  CX_JIT_LOGISTIC,  // 1 / (1 + exp(-x))
  CX_JIT_TANH,
  CX_JIT_SIN,
  CX_JIT_COS,
  CX_JIT_TAN,
  CX_JIT_SQRT,
  CX_JIT_RSQRT,  // -0 gives -inf
  CX_JIT_CBRT,
  CX_JIT_POW,    // x to the power y
  CX_JIT_ATAN2,  // x is the ordinate: atan2(x, y)
  CX_JIT_ERF,
  CX_JIT_FUNCTIONS  // how many there are
} cx_jit_function;

// Where code goes. The builder stands in a block of a function, whose string
// attributes (target-cpu, target-features …) the internal functions take over:
// vectors are passed alike only between functions of the same target.
typedef struct cx_jit_math_env {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  bool has_fma;  // the target fuses multiply and add in one instruction
} cx_jit_math_env;

// fn(x), or fn(x, y) for POW and ATAN2 (else y is NULL). x is a float, a
// double or a vector of them; y has x's type, and so has the result. No basic
// block is begun: code goes on where the builder stood.
LLVMValueRef cx_jit_math(cx_jit_math_env *env, cx_jit_function fn,
                         LLVMValueRef x, LLVMValueRef y);

// The same on complex numbers, each as its real and imaginary part. Branch
// cuts are as in C's Annex G. Not defined for ATAN2 and ERF.
void cx_jit_math_complex(cx_jit_math_env *env, cx_jit_function fn,
                         const LLVMValueRef x[2], const LLVMValueRef y[2],
                         LLVMValueRef out[2]);
void cx_jit_complex_multiply(cx_jit_math_env *env, const LLVMValueRef x[2],
                             const LLVMValueRef y[2], LLVMValueRef out[2]);
// Neither overflows nor underflows where the quotient does not.
void cx_jit_complex_divide(cx_jit_math_env *env, const LLVMValueRef x[2],
                           const LLVMValueRef y[2], LLVMValueRef out[2]);
// |x|, as hypot.
LLVMValueRef cx_jit_complex_abs(cx_jit_math_env *env, const LLVMValueRef x[2]);

#endif
