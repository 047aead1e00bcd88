// jit/reduce: what the files on reductions share. reduce.c has the plan,
// reduce_emit.c the code.
#ifndef CPU_JIT_REDUCE_H
#define CPU_JIT_REDUCE_H

#include "jit/emit.h"

#define CPU_JIT_SUMS 32  // results of all reduces of a kernel

// One result of a reduce.
typedef struct cpu_jit_sum {
  const cx_hlo_op *op;
  size_t index;             // which of its results
  const cx_hlo_op *simple;  // the body's only operation, if it is one whose
                            // identity is known; else NULL
  cx_hlo_elem elem;         // that it is summed in: f32 for bf16 and f16
  cx_hlo_elem total;        // that the sums of blocks are added up in
  size_t offset;            // of its partial results in the scratch
  size_t narrow;            // … of a sweep's sums of a block
} cpu_jit_sum;

// The dimensions of what is reduced, in runs that are reduced or kept.
//
// By rows: lanes run along the last run, which is reduced; an iteration is one
// element of the result. By columns: lanes run along a kept run, an iteration
// is a block of it. Where that gives too few iterations, one reduced run is cut
// into pieces, whose results a second phase puts together. By sweeps: the sums
// of a piece of long columns are in memory that the first cache holds, so that
// rows are read as they lie. How it is cut depends on the sizes alone, and so
// does the result.
//
// A long row of f32 additions drifts: each rounds by up to half a unit of the
// sum so far. So at most about CPU_JIT_BLOCK are added one to another; what
// they give is added up in f64. The loop over run `block_run` is cut for that,
// and the loops around it carry f64.
typedef struct cpu_jit_plan {
  const cx_hlo_type *from;
  int n;
  int dims[CPU_JIT_RANK];
  int out_dims[CPU_JIT_RANK];  // of a kept run, in the results
  int64_t sizes[CPU_JIT_RANK];
  bool reduced[CPU_JIT_RANK];
  int vector;  // the run that the lanes run along; -1: scalars
  bool rows, sweep;
  int lanes;
  int unroll;   // vectors at once
  bool masked;  // all vectors have masks, so that code is there once
  int64_t columns, blocks;  // of the vector run, where it is kept
  int64_t chunk;            // columns of a sweep
  int split;                // the run that is cut; -1: none
  int64_t pieces, piece;    // how many, how long
  int block_run;            // the run that is cut into blocks; -1: none
  int64_t block;            // how long they are, in steps of its loop
  int64_t outs;             // elements of a result
  int64_t extent;           // iterations of the first phase
  cpu_jit_sum sums[CPU_JIT_SUMS];
  size_t n_sums;
  bool second;  // the phase that puts pieces together
} cpu_jit_plan;

// Whether the output has an element for each one of what is reduced
// (reduce_sum.c).
bool cpu_jit_is_unreduced(const cpu_jit_plan *p, const cx_hlo_value *output);
// A phase, an iteration of which reads this many elements.
void cpu_jit_reduce_emit(cpu_jit_env *env, cpu_jit_kernel *k,
                         const cpu_jit_plan *plan, int phase, double elements);

#endif
