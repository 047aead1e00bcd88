// jit/math: which function is in line, and the internal functions of the rest.
#include "jit/math.h"

#include <stdio.h>

#include "jit/math_parts.h"

static const char *const names[CX_JIT_FUNCTIONS] = {
  [CX_JIT_EXP] = "exp",           [CX_JIT_EXPM1] = "expm1",
  [CX_JIT_LOG] = "log",           [CX_JIT_LOG1P] = "log1p",
  [CX_JIT_LOGISTIC] = "logistic", [CX_JIT_TANH] = "tanh",
  [CX_JIT_SIN] = "sin",           [CX_JIT_COS] = "cos",
  [CX_JIT_TAN] = "tan",           [CX_JIT_SQRT] = "sqrt",
  [CX_JIT_RSQRT] = "rsqrt",       [CX_JIT_CBRT] = "cbrt",
  [CX_JIT_POW] = "pow",           [CX_JIT_ATAN2] = "atan2",
  [CX_JIT_ERF] = "erf",
};

static value build(const maths *m, cx_jit_function fn, value x, value y)
{
  switch (fn) {
    case CX_JIT_EXP: return cx_jit_exp(m, x);
    case CX_JIT_EXPM1: return cx_jit_expm1(m, x);
    case CX_JIT_LOG: return cx_jit_log(m, x);
    case CX_JIT_LOG1P: return cx_jit_log1p(m, x);
    case CX_JIT_LOGISTIC: return cx_jit_logistic(m, x);
    case CX_JIT_TANH: return cx_jit_tanh(m, x);
    case CX_JIT_SIN:
    case CX_JIT_COS:
    case CX_JIT_TAN: return cx_jit_trigonometric(m, fn, x);
    case CX_JIT_SQRT: return root(m, x);
    case CX_JIT_RSQRT: return quotient(m, num(m, 1), root(m, x));
    case CX_JIT_CBRT: return cx_jit_cbrt(m, x);
    case CX_JIT_POW: return cx_jit_pow(m, x, y);
    case CX_JIT_ATAN2: return cx_jit_atan2(m, x, y);
    case CX_JIT_ERF: return cx_jit_erf(m, x);
    case CX_JIT_FUNCTIONS: break;
  }
  return x;
}

// Those of which every copy would cost more to compile than a call does to run.
static bool is_long(const maths *m, cx_jit_function fn)
{
  switch (fn) {
    case CX_JIT_SIN:
    case CX_JIT_COS:
    case CX_JIT_TAN:
    case CX_JIT_CBRT:
    case CX_JIT_POW:
    case CX_JIT_ATAN2: return true;
    case CX_JIT_ERF: return m->wide;
    default: return false;
  }
}

value cx_jit_math(cx_jit_math_env *env, cx_jit_function fn, value x, value y)
{
  maths m = maths_for(env, x);
  if (!is_long(&m, fn)) return build(&m, fn, x, y);

  LLVMTypeRef parameters[] = { m.real, m.real };
  unsigned count = y ? 2 : 1;
  LLVMTypeRef type = LLVMFunctionType(m.real, parameters, count, false);
  char name[48];
  snprintf(name, sizeof name, "calx.%s.%ux%s", names[fn], m.lanes,
           m.wide ? "f64" : "f32");
  value function, arguments[] = { x, y };
  cx_jit_math_env inner;
  if (cx_jit_begin(env, name, type, &function, &inner)) {
    maths within = maths_of(&inner, m.wide, m.lanes);
    cx_jit_end(&inner, build(&within, fn, LLVMGetParam(function, 0),
                             y ? LLVMGetParam(function, 1) : NULL));
  }
  return LLVMBuildCall2(env->builder, type, function, arguments, count, "");
}
