// ops/conv: what the convolutions of one to three spatial dimensions share.
#ifndef CX_OPS_CONV_H
#define CX_OPS_CONV_H

#include "ops/ops.h"

enum { CX_OPS_MOST_SPATIAL = 3 };

// Of a list, 0 is the default and, behind the first, repeats the first;
// CALX_ZERO_INT is 0.
typedef struct cx_ops_conv_options {
  const char *op;  // the public function's, for messages
  int n;           // spatial dimensions
  bool transposed;
  calx_tensor *bias;  // NULL: none
  const int64_t *stride, *padding, *dilation;
  const int64_t *output_padding;  // of a transposed one
  int64_t groups;                 // 0: 1
} cx_ops_conv_options;

calx_tensor *cx_ops_convolve(calx_tensor *x, calx_tensor *w,
                             const cx_ops_conv_options *o);

#endif
