// jit/element: what the files on elementwise operations share.
#ifndef CPU_JIT_ELEMENT_H
#define CPU_JIT_ELEMENT_H

#include "jit/build.h"
#include "jit/emit.h"

// Where an operation on operands of one shape puts its code.
typedef struct cpu_jit_ctx {
  cpu_jit_env *env;
  cx_hlo_elem elem;  // of the operands, or of their parts
  LLVMTypeRef type;  // of the operands in registers
  cpu_jit_ir ir;     // real: that type, of floats; whole: integers as wide
} cpu_jit_ctx;

// The emitter of code on floats, with wide on doubles; lanes 0: scalars.
static inline cpu_jit_ir cpu_jit_ir_of(const cpu_jit_env *env, LLVMBuilderRef b,
                                       bool wide, unsigned lanes)
{
  const cpu_jit_math_env math = { env->context, env->module, b,
                                  env->target->has_fma,
                                  env->target->has_masks };
  return maths_of(&math, wide, lanes);
}

// ---- element_int.c, element_real.c ----

LLVMValueRef cpu_jit_int_op(const cpu_jit_ctx *c, const cx_hlo_op *op,
                            LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_jit_real_op(const cpu_jit_ctx *c, const cx_hlo_op *op,
                             LLVMValueRef x, LLVMValueRef y);

// ---- element.c ----

LLVMValueRef cpu_jit_max(const cpu_jit_ctx *c, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_jit_min(const cpu_jit_ctx *c, LLVMValueRef x, LLVMValueRef y);
// An intrinsic on the type of x; y is its second operand, or NULL.
LLVMValueRef cpu_jit_call(const cpu_jit_ctx *c, const char *name,
                          LLVMValueRef x, LLVMValueRef y);

// ---- convert_f8.c ----

// Between codes of a type for which cpu_jit_is_f8 and floats.
LLVMValueRef cpu_jit_from_f8(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x,
                             bool wide, cx_hlo_elem e);
LLVMValueRef cpu_jit_to_f8(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x,
                           bool wide, cx_hlo_elem e);

#endif
