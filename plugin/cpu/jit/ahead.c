// jit/ahead: prefetches of what a loop is to read.
//
// Where the arithmetic for an element is long, few iterations fit in the
// processor's window, so it sees the loads of the next lines too late; and what
// it reads ahead by itself ends with a page of 4 KiB. With a prefetch for each
// vector the gradient of an activation, from memory, takes 0.65 of the time.
// Loops of little arithmetic would become slower (decision 114).
#include "jit/emit.h"

#define DISTANCE 2048              // bytes; 1024 and 4096 are as good
#define LEAST ((int64_t)64 << 10)  // bytes of a tensor: others are in a cache
#define LEAST_NS 0.4               // of arithmetic for an element
#define LINE 64

void cpu_jit_stream(cpu_jit_env *env, const cpu_jit_loc *p)
{
  env->stream = cpu_jit_loc_linear(env, p).base;
}

static bool is_streamed(const cpu_jit_env *env, const cpu_jit_loc *p,
                        cpu_jit_ix ix, int64_t bytes)
{
  if (ix.wide || ix.lane != 1 || ix.base != env->stream ||
      env->element_ns < LEAST_NS) {
    return false;
  }
  for (int i = 0; i < p->n; i++) bytes *= p->part[i].size;
  return bytes >= LEAST;
}

void cpu_jit_read_ahead(cpu_jit_env *env, LLVMBuilderRef b, LLVMTypeRef t,
                        LLVMValueRef pointer, const cpu_jit_loc *p,
                        cpu_jit_ix ix)
{
  const int64_t bytes = cpu_jit_bytes_of(t);
  if (!is_streamed(env, p, ix, bytes)) return;
  LLVMValueRef at = LLVMBuildGEP2(b, t, pointer, &ix.base, 1, "");
  for (int64_t i = 0; i < env->lanes * bytes; i += LINE) {
    LLVMValueRef offset = cpu_jit_i64(env, DISTANCE + i);
    // To be read, to the first level of the cache, of data.
    LLVMValueRef args[] = { LLVMBuildGEP2(b, env->i8, at, &offset, 1, ""),
                            LLVMConstInt(env->i32, 0, 0),
                            LLVMConstInt(env->i32, 3, 0),
                            LLVMConstInt(env->i32, 1, 0) };
    LLVMTypeRef type = LLVMTypeOf(args[0]);
    cpu_jit_intrinsic(env->module, b, "llvm.prefetch", &type, 1, args, 4);
  }
}
