// jit/ahead: prefetches of what a loop is to read and write.
//
// Where the arithmetic for an element is long, few iterations fit in the
// processor's window, so it sees the loads of the next lines too late; and what
// it reads ahead by itself ends with a page of 4 KiB. With a prefetch for each
// vector the gradient of an activation, from memory, takes 0.65 of the time.
// Loops of little arithmetic would become slower. A store to a line that
// another core has in its cache waits until that core has dropped it, so lines
// of long results are asked for ahead (decision 114).
#include "jit/emit.h"

#define DISTANCE 2048  // bytes; 1024 and 4096 are as good
#define LINE 64
// Bytes of a tensor. Shorter ones are in a cache already; of those to write, in
// the cache of the core that writes them.
#define LEAST_READ ((int64_t)64 << 10)
#define LEAST_WRITTEN ((int64_t)1 << 20)
#define LEAST_NS 0.4  // of arithmetic for an element

void cpu_jit_stream(cpu_jit_env *env, const cpu_jit_loc *p)
{
  env->stream = cpu_jit_loc_linear(env, p).base;
}

static bool is_streamed(const cpu_jit_env *env, const cpu_jit_loc *p,
                        cpu_jit_ix ix, int64_t bytes, int64_t least)
{
  if (ix.wide || ix.lane != 1 || ix.base != env->stream) return false;
  for (int i = 0; i < p->n; i++) bytes *= p->part[i].size;
  return bytes >= least;
}

// The lines DISTANCE further in memory than the vector at `ix`.
static void prefetch(cpu_jit_env *env, LLVMBuilderRef b, LLVMTypeRef t,
                     LLVMValueRef pointer, cpu_jit_ix ix, bool to_write)
{
  LLVMValueRef at = LLVMBuildGEP2(b, t, pointer, &ix.base, 1, "");
  const int64_t bytes = env->lanes * cpu_jit_bytes_of(t);
  for (int64_t i = 0; i < bytes; i += LINE) {
    LLVMValueRef offset = cpu_jit_i64(env, DISTANCE + i);
    // To the first level of the cache, of data.
    LLVMValueRef args[] = { LLVMBuildGEP2(b, env->i8, at, &offset, 1, ""),
                            LLVMConstInt(env->i32, to_write ? 1 : 0, 0),
                            LLVMConstInt(env->i32, 3, 0),
                            LLVMConstInt(env->i32, 1, 0) };
    LLVMTypeRef type = LLVMTypeOf(args[0]);
    cpu_jit_intrinsic(env->module, b, "llvm.prefetch", &type, 1, args, 4);
  }
}

void cpu_jit_read_ahead(cpu_jit_env *env, LLVMBuilderRef b, LLVMTypeRef t,
                        LLVMValueRef pointer, const cpu_jit_loc *p,
                        cpu_jit_ix ix)
{
  if (env->element_ns >= LEAST_NS &&
      is_streamed(env, p, ix, cpu_jit_bytes_of(t), LEAST_READ)) {
    prefetch(env, b, t, pointer, ix, false);
  }
}

void cpu_jit_write_ahead(cpu_jit_env *env, LLVMBuilderRef b, LLVMTypeRef t,
                         LLVMValueRef pointer, const cpu_jit_loc *p,
                         cpu_jit_ix ix)
{
  if (is_streamed(env, p, ix, cpu_jit_bytes_of(t), LEAST_WRITTEN)) {
    prefetch(env, b, t, pointer, ix, true);
  }
}
