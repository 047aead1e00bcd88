// nn/batch_norm: what the layers that normalise over batches share.
#ifndef CX_NN_BATCH_NORM_H
#define CX_NN_BATCH_NORM_H

#include "nn/module.h"

typedef struct cx_nn_batch_norm {
  calx_module *m;
  int64_t features;
  calx_nn_batch_norm_options o;
  calx_tensor *tracked;  // i64 (); NULL: no running statistics
} cx_nn_batch_norm;

// The options of the op, with the parameters and buffers (C).
calx_batch_norm_options cx_nn_batch_norm_op(const cx_nn_batch_norm *b);
void cx_nn_batch_norm_repr(const void *state, cx_text *out);
// A layer whose forward is given a cx_nn_batch_norm.
calx_module *cx_nn_batch_norm_make(const cx_nn_layer *layer,
                                   calx_module *parent, const char *name,
                                   int64_t features,
                                   const calx_nn_batch_norm_options *options);
// The running statistics before a batch, where the momentum is None; else NULL.
void cx_nn_batch_norm_before(const cx_nn_batch_norm *b, calx_tensor **before);
// After a batch: counts it, and makes the running statistics the average.
void cx_nn_batch_norm_after(const cx_nn_batch_norm *b, calx_tensor *y,
                            calx_tensor *const *before);
// Adds one to num_batches_tracked.
void cx_nn_count_batch(const cx_nn_batch_norm *b);

#endif
