// ops/bucket: one operation on the elements of many tensors.
#ifndef CX_OPS_BUCKET_H
#define CX_OPS_BUCKET_H

#include "ops/ops.h"

// Maps a tensor to one of the same shape, element by element.
typedef calx_tensor *cx_ops_bucket_fn(void *user, calx_tensor *x);

// out[i] is fn of in[i]; fn is called once for all tensors of one dtype. The
// operands have been checked.
void cx_ops_bucketed(calx_tensor *const *in, size_t n, cx_ops_bucket_fn *fn,
                     void *user, calx_tensor **out);

#endif
