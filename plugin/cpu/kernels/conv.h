// kernels/conv: what both ways of convolving ask of a description.
#ifndef CX_KERNELS_CONV_H
#define CX_KERNELS_CONV_H

#include "kernels/internal.h"

// The strides of the three tensors, in the description's order of dimensions:
// lhs batch, features, spatial; rhs in, out, spatial; result likewise as lhs.
typedef struct cx_conv_strides {
  int64_t lhs[CX_CONV_DIMS + 2];
  int64_t rhs[CX_CONV_DIMS + 2];
  int64_t out[CX_CONV_DIMS + 2];
} cx_conv_strides;
void cx_conv_strides_of(const cx_conv_desc *d, cx_conv_strides *out);

// The sizes in the same order.
void cx_conv_sizes_of(const cx_conv_desc *d, int64_t lhs[CX_CONV_DIMS + 2],
                      int64_t rhs[CX_CONV_DIMS + 2],
                      int64_t out[CX_CONV_DIMS + 2]);

// Choices that measuring can make.
#define CX_CONV_CHOICE_NONE 0
#define CX_CONV_CHOICE_LOOPS 1
#define CX_CONV_CHOICE_ONEDNN 2  // and the candidates from here on

#endif
