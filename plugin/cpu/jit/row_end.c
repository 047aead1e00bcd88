// jit/row_end: loads and stores of the first lanes of a vector.
//
// At the end of a row it is known how many lanes count, so powers of two of
// them are moved at once. Without AVX-512, `vmaskmov` takes tens of
// instructions to store, and elements of one or two bytes would be moved one by
// one. With AVX-512 only stores are such: a load that follows a store with a
// mask, and begins behind it, as that of the next row does, would wait until
// the store is done.
#include "jit/emit.h"

int cpu_jit_first_lanes(const cpu_jit_env *env, LLVMValueRef mask)
{
  if (mask == NULL || !LLVMIsConstant(mask)) return 0;
  int n = 0;
  for (int i = 0; i < env->lanes; i++) {
    LLVMValueRef lane = LLVMGetAggregateElement(mask, (unsigned)i);
    if (lane == NULL || LLVMIsAConstantInt(lane) == NULL) return 0;
    if (LLVMConstIntGetZExtValue(lane) == 0) continue;
    if (n != i) return 0;
    n++;
  }
  return n;
}

static LLVMValueRef element(cpu_jit_env *env, LLVMBuilderRef b, LLVMTypeRef t,
                            LLVMValueRef at, int i)
{
  LLVMValueRef index = cpu_jit_i64(env, i);
  return LLVMBuildGEP2(b, t, at, &index, 1, "");
}

static int power_of_two_within(int n)
{
  int power = 1;
  while (2 * power <= n) power *= 2;
  return power;
}

LLVMValueRef cpu_jit_load_first(cpu_jit_env *env, LLVMBuilderRef b,
                                LLVMTypeRef t, LLVMValueRef at, int n)
{
  const int lanes = env->lanes;
  LLVMValueRef all = LLVMConstNull(cpu_jit_wide_type(env, t));
  for (int done = 0, some; done < n; done += some) {
    some = power_of_two_within(n - done);
    LLVMValueRef from = element(env, b, t, at, done);
    LLVMTypeRef type = some == 1 ? t : LLVMVectorType(t, (unsigned)some);
    LLVMValueRef v = LLVMBuildLoad2(b, type, from, "");
    LLVMSetAlignment(v, cpu_jit_bytes_of(t));
    if (some == 1) {
      all = LLVMBuildInsertElement(b, all, v, cpu_jit_i64(env, done), "");
      continue;
    }
    int order[64];
    for (int i = 0; i < lanes; i++) order[i] = i < some ? i : -1;
    v = cpu_jit_shuffle(env, b, v, NULL, order, lanes);
    for (int i = 0; i < lanes; i++) {
      const bool here = i >= done && i < done + some;
      order[i] = here ? lanes + i - done : i;
    }
    all = cpu_jit_shuffle(env, b, all, v, order, lanes);
  }
  return all;
}

void cpu_jit_store_first(cpu_jit_env *env, LLVMBuilderRef b, LLVMTypeRef t,
                         LLVMValueRef v, LLVMValueRef at, int n)
{
  for (int done = 0, some; done < n; done += some) {
    some = power_of_two_within(n - done);
    int order[64];
    for (int i = 0; i < some; i++) order[i] = done + i;
    LLVMValueRef part =
        some == 1 ? LLVMBuildExtractElement(b, v, cpu_jit_i64(env, done), "")
                  : cpu_jit_shuffle(env, b, v, NULL, order, some);
    LLVMValueRef to = element(env, b, t, at, done);
    LLVMSetAlignment(LLVMBuildStore(b, part, to), cpu_jit_bytes_of(t));
  }
}
