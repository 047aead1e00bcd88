// jit/reduce_phase: what the files that emit a phase of a reduction share:
// reduce_emit.c, reduce_sweep.c and, below both, reduce_sum.c.
#ifndef CPU_JIT_REDUCE_PHASE_H
#define CPU_JIT_REDUCE_PHASE_H

#include "jit/reduce.h"

// A phase in progress. Sum i of vector u is accs[u * n_sums + i].
typedef struct cpu_jit_reduce_phase {
  cpu_jit_env *env;
  const cpu_jit_plan *p;
  cpu_jit_ix index[CPU_JIT_RANK];  // of each run
  cpu_jit_ix piece;                // which piece
  LLVMValueRef lo, hi;             // of the run that is cut
  int mask_level;                  // where the mask in use was made
  cpu_jit_val accs[16 * CPU_JIT_SUMS];
} cpu_jit_reduce_phase;

// ---- reduce_sum.c ----

// The identity of a sum whose operation is simple, in the type `e` of its
// blocks or totals.
cpu_jit_val cpu_jit_reduce_identity(cpu_jit_env *env, const cpu_jit_sum *s,
                                    cx_hlo_elem e);
// The program's initial value, in the type that is summed in.
cpu_jit_val cpu_jit_reduce_initial(cpu_jit_env *env, const cpu_jit_sum *s);
// Adds the elements x to one vector's sums.
void cpu_jit_reduce_combine(cpu_jit_reduce_phase *f, cpu_jit_val *accs,
                            const cpu_jit_val *x);
// The elements of all sums at the phase's indices. Outputs that are not reduced
// are stored.
void cpu_jit_reduce_elements(cpu_jit_reduce_phase *f, LLVMValueRef mask,
                             cpu_jit_val *x);
LLVMValueRef cpu_jit_reduce_block_limit(cpu_jit_env *env,
                                        const cpu_jit_loop *loop, int64_t block,
                                        LLVMValueRef hi);
// The location of a result; `start`: the index of the run that lanes run along.
const cpu_jit_loc *cpu_jit_reduce_out_loc(cpu_jit_reduce_phase *f,
                                          cpu_jit_ix start, LLVMValueRef mask);
// The location of a result in the piece's part of the scratch.
cpu_jit_loc cpu_jit_reduce_partial_loc(const cpu_jit_reduce_phase *f,
                                       const cpu_jit_loc *out);
void cpu_jit_reduce_store_at(cpu_jit_reduce_phase *f, size_t offset,
                             cpu_jit_val v, const cpu_jit_loc *at);
// The sums of a piece go to the scratch.
void cpu_jit_reduce_store_partial(cpu_jit_reduce_phase *f,
                                  const cpu_jit_val *sums,
                                  const cpu_jit_loc *out);
// Adds the program's initial values to the sums, and stores the results and
// what is computed from them.
void cpu_jit_reduce_store_results(cpu_jit_reduce_phase *f, cpu_jit_val *sums,
                                  const cpu_jit_loc *out);

// ---- reduce_sweep.c ----

// An iteration by sweeps: the chunk of columns from `start`.
void cpu_jit_reduce_sweep(cpu_jit_reduce_phase *f, cpu_jit_ix start);

#endif
