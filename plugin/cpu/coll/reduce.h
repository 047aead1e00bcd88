// coll/reduce: reduces one range of elements of all members.
#ifndef CPU_COLL_REDUCE_H
#define CPU_COLL_REDUCE_H

#include "ref/ref.h"

typedef struct cpu_coll_reducer cpu_coll_reducer;

// How a region of two scalars is applied to elements: by a vector loop if the
// region is one known operation, else by the interpreter, element by element.
struct cpu_coll_reducer {
  const cx_hlo_module *module;
  const cx_hlo_region *body;  // NULL: addition
  cx_hlo_op_kind kind;        // OTHER: the interpreter
  cx_hlo_elem from, elem;     // of the operands; of the computation
  cpu_ref_context context;    // of the interpreter
};

cpu_coll_reducer cpu_coll_reducer_of(const cx_hlo_module *m,
                                     const cx_hlo_op *op);

// out[0, n) = the elements [at, at + n) of x[0], x[1], … x[n_members - 1]
// combined in that order. `out` is of r->elem and overlaps nothing.
calx_status *cpu_coll_reduce(const cpu_coll_reducer *r, const void *const *x,
                             uint32_t n_members, int64_t at, int64_t n,
                             void *out) CALX_MUST_USE;

#endif
