// jit/inside: what lies within an operand, for operations that may look outside
// of it.
#ifndef CPU_JIT_INSIDE_H
#define CPU_JIT_INSIDE_H

#include "jit/emit.h"

// Conditions under which an operand is read: of all lanes at once, and by lane.
// NULL: always.
typedef struct cpu_jit_inside {
  LLVMValueRef all, lanes;
  int all_level, lanes_level;
  bool never;  // one of them is known not to hold
} cpu_jit_inside;

// Where v is in the list, or -1.
int cpu_jit_position(cx_hlo_ints list, int64_t v);
// An integer, or one in each lane, as an index held within [0, limit].
cpu_jit_ix cpu_jit_start_index(cpu_jit_env *env, const cx_hlo_value *v,
                               const cpu_jit_loc *p, int64_t limit);
// 0 <= ix < n, added to the conditions; where it fails for all lanes the index
// becomes 0, so that it can be read.
void cpu_jit_within(cpu_jit_env *env, cpu_jit_ix *ix, int64_t n,
                    cpu_jit_inside *in);
// ix is a multiple of d, by which it is then divided. It is not negative where
// it counts.
void cpu_jit_spaced(cpu_jit_env *env, cpu_jit_ix *ix, int64_t d,
                    cpu_jit_inside *in);
// The operand's element where `in` holds, else `other`.
cpu_jit_val cpu_jit_inside_or(cpu_jit_env *env, const cx_hlo_value *v,
                              cpu_jit_loc *at, const cpu_jit_inside *in,
                              cpu_jit_val other);

#endif
