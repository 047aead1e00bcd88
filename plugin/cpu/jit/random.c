// jit/random: the generators of rng_bit_generator, on vectors of counters.
//
// J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011):
// Threefry-2x32 with 20 rounds, Philox-4x32 with 10.
#include "jit/root.h"

static LLVMValueRef low_half(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x)
{
  return LLVMBuildTrunc(b, x, cpu_jit_wide_type(env, env->i32), "");
}

static LLVMValueRef high_half(cpu_jit_env *env, LLVMBuilderRef b,
                              LLVMValueRef x)
{
  LLVMValueRef by = cpu_jit_const_int(LLVMTypeOf(x), 32);
  return low_half(env, b, LLVMBuildLShr(b, x, by, ""));
}

static LLVMValueRef rotated(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x,
                            int by)
{
  LLVMTypeRef t = LLVMTypeOf(x);
  LLVMValueRef args[] = { x, x, cpu_jit_const_int(t, (unsigned)by) };
  return cpu_jit_intrinsic(env->module, b, "llvm.fshl", &t, 1, args, 3);
}

void cpu_jit_threefry(cpu_jit_env *env, const LLVMValueRef key[2],
                      LLVMValueRef counter, LLVMValueRef out[2])
{
  static const int by[2][4] = { { 13, 15, 26, 6 }, { 17, 29, 16, 24 } };
  LLVMTypeRef word = cpu_jit_wide_type(env, env->i32);
  LLVMBuilderRef b = cpu_jit_at(env, env->n_levels - 1);
  LLVMValueRef third = cpu_jit_op2(env, LLVMXor, key[0], key[1], 0);
  third = cpu_jit_op2(env, LLVMXor, third,
                      LLVMConstInt(env->i32, 0x1BD11BDA, 0), 0);
  LLVMValueRef k[3] = { cpu_jit_splat(env, key[0], 0),
                        cpu_jit_splat(env, key[1], 0),
                        cpu_jit_splat(env, third, 0) };
  LLVMValueRef x = LLVMBuildAdd(b, low_half(env, b, counter), k[0], "");
  LLVMValueRef y = LLVMBuildAdd(b, high_half(env, b, counter), k[1], "");
  for (unsigned round = 0; round < 5; round++) {
    for (int i = 0; i < 4; i++) {
      x = LLVMBuildAdd(b, x, y, "");
      y = LLVMBuildXor(b, rotated(env, b, y, by[round % 2][i]), x, "");
    }
    x = LLVMBuildAdd(b, x, k[(round + 1) % 3], "");
    y = LLVMBuildAdd(b, y, k[(round + 2) % 3], "");
    y = LLVMBuildAdd(b, y, cpu_jit_const_int(word, round + 1), "");
  }
  out[0] = x;
  out[1] = y;
}

static LLVMValueRef product(LLVMBuilderRef b, LLVMValueRef x, LLVMTypeRef to,
                            uint32_t by)
{
  return LLVMBuildMul(b, LLVMBuildZExt(b, x, to, ""), cpu_jit_const_int(to, by),
                      "");
}

void cpu_jit_philox(cpu_jit_env *env, const LLVMValueRef key[2],
                    LLVMValueRef low, LLVMValueRef high, LLVMValueRef out[4])
{
  LLVMTypeRef word = cpu_jit_wide_type(env, env->i32);
  LLVMTypeRef twice = LLVMTypeOf(low);
  LLVMBuilderRef b = cpu_jit_at(env, env->n_levels - 1);
  LLVMValueRef k[2] = { cpu_jit_splat(env, key[0], 0),
                        cpu_jit_splat(env, key[1], 0) };
  LLVMValueRef x[4] = { low_half(env, b, low), high_half(env, b, low),
                        low_half(env, b, high), high_half(env, b, high) };
  for (int round = 0; round < 10; round++) {
    LLVMValueRef p = product(b, x[0], twice, 0xD2511F53u);
    LLVMValueRef q = product(b, x[2], twice, 0xCD9E8D57u);
    x[0] = LLVMBuildXor(b, high_half(env, b, q), x[1], "");
    x[0] = LLVMBuildXor(b, x[0], k[0], "");
    x[1] = low_half(env, b, q);
    x[2] = LLVMBuildXor(b, high_half(env, b, p), x[3], "");
    x[2] = LLVMBuildXor(b, x[2], k[1], "");
    x[3] = low_half(env, b, p);
    k[0] = LLVMBuildAdd(b, k[0], cpu_jit_const_int(word, 0x9E3779B9u), "");
    k[1] = LLVMBuildAdd(b, k[1], cpu_jit_const_int(word, 0xBB67AE85u), "");
  }
  for (int i = 0; i < 4; i++) out[i] = x[i];
}
