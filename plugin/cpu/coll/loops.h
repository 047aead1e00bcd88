// coll/loops: the loops of reductions, compiled once for each vector width, as
// those of kernel/gemm.h are.
#ifndef CPU_COLL_LOOPS_H
#define CPU_COLL_LOOPS_H

#include "hlo/module.h"

// NULL: there is no such loop.
typedef struct cpu_coll_loop {
  void (*next)(void *sum, const void *x, int64_t n);
  // sum = a combined with x; the three do not overlap.
  void (*first)(void *sum, const void *a, const void *x, int64_t n);
} cpu_coll_loop;

typedef struct cpu_coll_loops {
  // The loop for elements of type `e`; for bf16 and f16: the loop for f32, to
  // which they are widened.
  cpu_coll_loop (*of)(cx_hlo_op_kind kind, cx_hlo_elem e);
  void (*widen)(cx_hlo_elem e, const uint16_t *restrict x, int64_t n,
                float *restrict out);
  void (*narrow)(cx_hlo_elem e, const float *restrict x, int64_t n,
                 uint16_t *restrict out);
} cpu_coll_loops;

extern const cpu_coll_loops cpu_coll_loops_16, cpu_coll_loops_32,
    cpu_coll_loops_64;

#endif
