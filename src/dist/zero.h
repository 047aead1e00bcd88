// dist/zero: an optimiser whose state is spread over the ranks. zero.c has its
// steps, zero_make.c its making.
#ifndef CX_DIST_ZERO_H
#define CX_DIST_ZERO_H

#include "optim/optimizer.h"

typedef struct cx_dist_shard {
  calx_dtype dtype;
  int64_t total, size;  // elements of all parameters; of a shard
  calx_tensor *own;     // (size), the inner optimiser's parameter
} cx_dist_shard;

typedef struct cx_dist_zero {
  calx_optimizer base;  // base.inner steps on the shards
  calx_module *shards;
  calx_tensor *mask;    // bool (ranks, 1), true at this rank
  calx_tensor **parts;  // scratch: one for each parameter, and the padding
  calx_tensor **seen;   // the gradients that the shards have; NULL: none
  size_t n_seen;
  // Of the parameters. Shard i is the inner optimiser's parameter i.
  cx_optim_position *positions;
  cx_dist_shard *list;
  size_t n, capacity;
  bool alone;  // each parameter has shards of its own
} cx_dist_zero;

// Zeros on the optimiser's device.
calx_tensor *cx_dist_zero_zeros(const cx_dist_zero *z, calx_dtype dtype,
                                int64_t n);
// The rule's step and reduce.
calx_status *cx_dist_zero_step(calx_optimizer *opt) CALX_MUST_USE;
calx_status *cx_dist_zero_reduce(calx_optimizer *opt) CALX_MUST_USE;
// Drops the gradients that the shards have.
void cx_dist_zero_forget(cx_dist_zero *z);

#endif
