// jit/nest: the loops over the elements of a type, and what an iteration
// stores. loop.c chooses among them; columns.c has those whose lanes are rows.
#ifndef CPU_JIT_NEST_H
#define CPU_JIT_NEST_H

#include "jit/inside.h"

#define CPU_JIT_NEST_BLOCK 4096  // elements of the inner loop in one iteration

typedef struct cpu_jit_nest {
  int n;
  int dims[CPU_JIT_RANK];
  int64_t sizes[CPU_JIT_RANK];
  int64_t inner, block, blocks;
  bool open;  // an iteration is an element of the inner loop
} cpu_jit_nest;

// What is stored, into which buffers.
typedef struct cpu_jit_work {
  const cx_hlo_value *const *values;
  size_t n, buffer;
  bool in_place;  // nothing, where the buffer is that of the (input) value
  const cx_hlo_op *update;  // dynamic_update_slice: where in the buffer
  // concatenate: the value is one of its operands, and begins there.
  const cx_hlo_op *whole;
  int64_t first;
} cpu_jit_work;

// The nest of the runs of dimensions between the cuts. A last run that is much
// shorter than a vector is one with all others.
cpu_jit_nest cpu_jit_nest_of(cpu_jit_env *env, const cx_hlo_type *t,
                             uint32_t cuts);
// Cuts the inner run into blocks.
void cpu_jit_nest_block(cpu_jit_nest *s, int64_t most);
// How many iterations there are.
int64_t cpu_jit_nest_extent(const cpu_jit_nest *s);
// The indices of the outer runs, and where the block starts, from the number of
// the iteration.
cpu_jit_ix cpu_jit_iteration(cpu_jit_env *env, const cpu_jit_nest *s,
                             cpu_jit_ix t, int64_t extent, cpu_jit_loc *out);
// Before which dimensions of an update an index must be cut.
uint32_t cpu_jit_update_cuts(const cx_hlo_op *op);
// Stores what belongs to these indices.
void cpu_jit_store_at(cpu_jit_env *env, const cpu_jit_work *k,
                      const cpu_jit_nest *s, const cpu_jit_loc *outer,
                      cpu_jit_ix inner, LLVMValueRef mask);

// columns.c: a phase whose lanes are rows of a few columns; false: the type or
// the kernel has no use for it, and nothing is emitted.
bool cpu_jit_columns(cpu_jit_env *env, cpu_jit_kernel *k, int phase,
                     const cpu_jit_work *w, const cx_hlo_type *t,
                     uint32_t cuts);

#endif
