#include "jit/emit.h"
calx_status *cx_jit_kernel_reduce(cx_jit_env *env, cx_jit_kernel *k)
{
  (void)k;
  cx_jit_fail(env, "reduce");
  return env->status;
}
