// nn/batch_norm: what the layers that normalise over batches share.
#ifndef CX_NN_BATCH_NORM_H
#define CX_NN_BATCH_NORM_H

#include "nn/module.h"

typedef struct cx_nn_batch_norm {
  calx_module *m;
  int64_t features;
  calx_nn_batch_norm_options o;
  calx_tensor *tracked;  // i64 (); NULL: no running statistics
  bool is_frozen;        // training leaves the running statistics alone
} cx_nn_batch_norm;

// Whether its next batch changes the running statistics.
bool cx_nn_batch_norm_updates(const cx_nn_batch_norm *b);
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

// Whether it is a BatchNorm layer of any kind.
bool cx_nn_is_batch_norm(const calx_module *m);

// The BatchNorm layers of a model that have running statistics.
typedef struct cx_nn_norms {
  struct cx_nn_kept_norm *list;
  size_t n, capacity;
  bool failed;
} cx_nn_norms;
// Their statistics begin anew, and are the average of all batches from here on,
// until cx_nn_norms_end(), which is called on failure too.
calx_status *cx_nn_norms_begin(calx_module *model,
                               cx_nn_norms *out) CALX_MUST_USE;
void cx_nn_norms_end(cx_nn_norms *norms);

#endif
