// jit/interleave: between vectors of memory and vectors of columns. A row has n
// columns, which are neighbours in memory; n vectors of memory hold as many
// rows as a vector has lanes.
#include "jit/emit.h"

// Whether the lanes that are wanted are at different places in their vectors.
static bool lie_apart(const int *order, int lanes)
{
  uint64_t seen = 0;
  for (int k = 0; k < lanes; k++) {
    const uint64_t bit = (uint64_t)1 << (order[k] % lanes);
    if ((seen & bit) != 0) return false;
    seen |= bit;
  }
  return true;
}

// Lane k: that of v[from[k]].
static LLVMValueRef blended(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef *v,
                            int n, const int *from)
{
  const int lanes = env->lanes;
  LLVMValueRef out = v[0];
  for (int i = 1; i < n; i++) {
    int mask[64];
    for (int k = 0; k < lanes; k++) mask[k] = from[k] == i ? lanes + k : k;
    out = cpu_jit_shuffle(env, b, out, v[i], mask, lanes);
  }
  return out;
}

LLVMValueRef cpu_jit_pick_lanes(cpu_jit_env *env, LLVMBuilderRef b,
                                LLVMValueRef *v, int n, const int *order)
{
  const int lanes = env->lanes;
  if (lie_apart(order, lanes)) {
    int from[64];
    int at[64];
    for (int k = 0; k < lanes; k++) {
      from[order[k] % lanes] = order[k] / lanes;
      at[k] = order[k] % lanes;
    }
    LLVMValueRef all = blended(env, b, v, n, from);
    return cpu_jit_shuffle(env, b, all, NULL, at, lanes);
  }
  LLVMValueRef out = NULL;
  bool have[64] = { false };
  for (int i = 0; i < n; i++) {
    int mask[64];
    bool used = false;
    for (int k = 0; k < lanes; k++) {
      const bool here = order[k] / lanes == i;
      // Any element will do where nothing is known as yet.
      mask[k] = have[k] ? k : -1;
      if (here) mask[k] = (out == NULL ? 0 : lanes) + order[k] % lanes;
      used |= here;
      have[k] |= here;
    }
    if (!used) continue;
    out = out == NULL ? cpu_jit_shuffle(env, b, v[i], NULL, mask, lanes)
                      : cpu_jit_shuffle(env, b, out, v[i], mask, lanes);
  }
  return out;
}

LLVMValueRef cpu_jit_column(cpu_jit_env *env, LLVMBuilderRef b,
                            LLVMValueRef *memory, int n, int column)
{
  int order[64];
  for (int row = 0; row < env->lanes; row++) order[row] = row * n + column;
  return cpu_jit_pick_lanes(env, b, memory, n, order);
}

void cpu_jit_interleave(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef *v,
                        int n)
{
  const int lanes = env->lanes;
  LLVMValueRef memory[CPU_JIT_COLUMNS];
  if (n % 2 == 0) {
    for (int i = 0; i < n; i++) {
      int order[64];
      for (int k = 0; k < lanes; k++) {
        const int at = i * lanes + k;
        order[k] = at % n * lanes + at / n;
      }
      memory[i] = cpu_jit_pick_lanes(env, b, v, n, order);
    }
  } else {
    // The number of lanes is a power of two, so the elements of a column have
    // different places in their vectors: each column is permuted once.
    for (int c = 0; c < n; c++) {
      int order[64];
      for (int row = 0; row < lanes; row++) order[(row * n + c) % lanes] = row;
      v[c] = cpu_jit_shuffle(env, b, v[c], NULL, order, lanes);
    }
    for (int i = 0; i < n; i++) {
      int from[64];
      for (int k = 0; k < lanes; k++) from[k] = (i * lanes + k) % n;
      memory[i] = blended(env, b, v, n, from);
    }
  }
  for (int i = 0; i < n; i++) v[i] = memory[i];
}
