// jit/math: which function is in line, and the internal functions of the rest.
#include "jit/math.h"

#include <stdio.h>

#include "jit/math_parts.h"

// The code of one function.
static LLVMValueRef build(const cpu_jit_ir *m, cpu_jit_function fn,
                          LLVMValueRef x, LLVMValueRef y)
{
  switch (fn) {
#define CPU_JIT_MATH(id, name, is_long, real, complex) \
  case CPU_JIT_##id:                                   \
    return real;
#include "jit/math.def"
#undef CPU_JIT_MATH
    case CPU_JIT_FUNCTIONS: break;
  }
  return x;
}

// The name of the internal function; NULL: its code is in line.
static const char *name_of(const cpu_jit_ir *m, cpu_jit_function fn)
{
  (void)m;
  switch (fn) {
#define CPU_JIT_MATH(id, name, is_long, real, complex) \
  case CPU_JIT_##id:                                   \
    return is_long ? name : NULL;
#include "jit/math.def"
#undef CPU_JIT_MATH
    case CPU_JIT_FUNCTIONS: break;
  }
  return NULL;
}

LLVMValueRef cpu_jit_math(const cpu_jit_math_env *env, cpu_jit_function fn,
                          LLVMValueRef x, LLVMValueRef y)
{
  cpu_jit_ir m = maths_for(env, x);
  const char *base = name_of(&m, fn);
  if (base == NULL) return build(&m, fn, x, y);

  LLVMTypeRef parameters[] = { m.real, m.real };
  unsigned count = y ? 2 : 1;
  LLVMTypeRef type = LLVMFunctionType(m.real, parameters, count, false);
  char name[48];
  snprintf(name, sizeof name, "calx.%s.%ux%s", base, m.lanes,
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
