// ops/pool: what the files of max pooling share.
#ifndef CX_OPS_POOL_H
#define CX_OPS_POOL_H

#include "ops/ops.h"

typedef struct cx_ops_pool_attrs {
  int64_t kernel[2], stride[2], dilation[2];
  int64_t low[2], high[2];  // padding; high with what ceil_mode adds
} cx_ops_pool_attrs;

// How many windows lie along dimension i of an image, which has `in` elements.
static inline int64_t cx_ops_pool_windows(const cx_ops_pool_attrs *a, int i,
                                          int64_t in)
{
  return (in + a->low[i] + a->high[i] - a->dilation[i] * (a->kernel[i] - 1) -
          1) /
             a->stride[i] +
         1;
}

// The operations in StableHLO: the maximum of each window; where in the image
// it is; the gradient's share of each element; the elements that are maxima.
void cx_ops_pool_emit(cx_graph_emit *e);
void cx_ops_pool_emit_indices(cx_graph_emit *e);
void cx_ops_pool_emit_backward(cx_graph_emit *e);
void cx_ops_pool_emit_pick(cx_graph_emit *e);

#endif
