// jit/math: which function is in line, and the internal functions of the rest.
#include "jit/math.h"

#include <stdio.h>

#include "jit/math_parts.h"

static const char *const names[CPU_JIT_FUNCTIONS] = {
  [CPU_JIT_EXP] = "exp",           [CPU_JIT_EXPM1] = "expm1",
  [CPU_JIT_LOG] = "log",           [CPU_JIT_LOG1P] = "log1p",
  [CPU_JIT_LOGISTIC] = "logistic", [CPU_JIT_TANH] = "tanh",
  [CPU_JIT_SIN] = "sin",           [CPU_JIT_COS] = "cos",
  [CPU_JIT_TAN] = "tan",           [CPU_JIT_SQRT] = "sqrt",
  [CPU_JIT_RSQRT] = "rsqrt",       [CPU_JIT_CBRT] = "cbrt",
  [CPU_JIT_POW] = "pow",           [CPU_JIT_ATAN2] = "atan2",
  [CPU_JIT_ERF] = "erf",
};

static LLVMValueRef build(const cpu_jit_ir *m, cpu_jit_function fn,
                          LLVMValueRef x, LLVMValueRef y)
{
  switch (fn) {
    case CPU_JIT_EXP: return cpu_jit_exp(m, x);
    case CPU_JIT_EXPM1: return cpu_jit_expm1(m, x);
    case CPU_JIT_LOG: return cpu_jit_log(m, x);
    case CPU_JIT_LOG1P: return cpu_jit_log1p(m, x);
    case CPU_JIT_LOGISTIC: return cpu_jit_logistic(m, x);
    case CPU_JIT_TANH: return cpu_jit_tanh(m, x);
    case CPU_JIT_SIN:
    case CPU_JIT_COS:
    case CPU_JIT_TAN: return cpu_jit_trigonometric(m, fn, x);
    case CPU_JIT_SQRT: return root(m, x);
    case CPU_JIT_RSQRT: return quotient(m, num(m, 1), root(m, x));
    case CPU_JIT_CBRT: return cpu_jit_cbrt(m, x);
    case CPU_JIT_POW: return cpu_jit_pow(m, x, y);
    case CPU_JIT_ATAN2: return cpu_jit_atan2(m, x, y);
    case CPU_JIT_ERF: return cpu_jit_erf(m, x);
    case CPU_JIT_FUNCTIONS: break;
  }
  return x;
}

// Those of which every copy would cost more to compile than a call does to run.
static bool is_long(const cpu_jit_ir *m, cpu_jit_function fn)
{
  switch (fn) {
    case CPU_JIT_SIN:
    case CPU_JIT_COS:
    case CPU_JIT_TAN:
    case CPU_JIT_CBRT:
    case CPU_JIT_POW:
    case CPU_JIT_ATAN2: return true;
    case CPU_JIT_ERF: return m->wide;
    default: return false;
  }
}

LLVMValueRef cpu_jit_math(const cpu_jit_math_env *env, cpu_jit_function fn,
                          LLVMValueRef x, LLVMValueRef y)
{
  cpu_jit_ir m = maths_for(env, x);
  if (!is_long(&m, fn)) return build(&m, fn, x, y);

  LLVMTypeRef parameters[] = { m.real, m.real };
  unsigned count = y ? 2 : 1;
  LLVMTypeRef type = LLVMFunctionType(m.real, parameters, count, false);
  char name[48];
  snprintf(name, sizeof name, "calx.%s.%ux%s", names[fn], m.lanes,
           m.wide ? "f64" : "f32");
  LLVMValueRef function, arguments[] = { x, y };
  cpu_jit_math_env inner;
  if (cpu_jit_begin(env, name, type, &function, &inner)) {
    cpu_jit_ir within = maths_of(&inner, m.wide, m.lanes);
    cpu_jit_end(&inner, build(&within, fn, LLVMGetParam(function, 0),
                              y ? LLVMGetParam(function, 1) : NULL));
  }
  return LLVMBuildCall2(env->builder, type, function, arguments, count, "");
}
