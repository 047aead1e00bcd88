// coll/loops: the loops of reductions, compiled once for each vector width, as
// those of kernel/gemm.h are.
#ifndef CPU_COLL_LOOPS_H
#define CPU_COLL_LOOPS_H

#include "hlo/module.h"

// y[i] = a[i] combined with x[i]. y may be a, and overlaps nothing else.
typedef void cpu_coll_loop(void *y, const void *a, const void *x, int64_t n);

typedef struct cpu_coll_loops {
  // The loop for elements of type `e`; NULL: there is none. For bf16 and f16:
  // the loop for f32, to which they are widened.
  cpu_coll_loop *(*of)(cx_hlo_op_kind kind, cx_hlo_elem e);
  void (*widen)(cx_hlo_elem e, const uint16_t *restrict x, int64_t n,
                float *restrict out);
  void (*narrow)(cx_hlo_elem e, const float *restrict x, int64_t n,
                 uint16_t *restrict out);
} cpu_coll_loops;

extern const cpu_coll_loops cpu_coll_loops_16, cpu_coll_loops_32,
    cpu_coll_loops_64;

#endif
