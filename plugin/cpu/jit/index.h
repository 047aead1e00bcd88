// jit/index: what lies within an operand, for operations that may look outside
// of it.
#ifndef CX_JIT_INDEX_H
#define CX_JIT_INDEX_H

#include "jit/emit.h"

// Conditions under which an operand is read: of all lanes at once, and by lane.
// NULL: always.
typedef struct cx_jit_inside {
  LLVMValueRef all, lanes;
  int all_level, lanes_level;
} cx_jit_inside;

// 0 <= ix < n, added to the conditions; where it fails for all lanes the index
// becomes 0, so that it can be read.
void cx_jit_within(cx_jit_env *env, cx_jit_ix *ix, int64_t n,
                   cx_jit_inside *in);
// ix is a multiple of d, by which it is then divided. It is not negative where
// it counts.
void cx_jit_spaced(cx_jit_env *env, cx_jit_ix *ix, int64_t d,
                   cx_jit_inside *in);
// The operand's element where `in` holds, else `other`.
cx_jit_val cx_jit_inside_or(cx_jit_env *env, const cx_hlo_value *v,
                            cx_jit_place *at, const cx_jit_inside *in,
                            cx_jit_val other);

#endif
