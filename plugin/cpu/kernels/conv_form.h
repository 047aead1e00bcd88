// kernels/conv_form: a StableHLO convolution seen as one of oneDNN's three.
#ifndef CX_KERNELS_CONV_FORM_H
#define CX_KERNELS_CONV_FORM_H

#include "kernels/conv.h"

typedef enum cx_conv_kind {
  CX_CONV_FORWARD,
  CX_CONV_INPUT,    // the gradient by the input
  CX_CONV_WEIGHTS,  // the gradient by the weights
  CX_CONV_FORMS
} cx_conv_kind;

// Batch or groups, channels, spatial; strides in elements.
typedef struct cx_conv_tensor {
  int n;
  int64_t size[6], stride[6];
} cx_conv_tensor;

// The forward convolution whose gradient it is, or that it is.
typedef struct cx_conv_form {
  cx_conv_kind kind;
  int n;           // spatial dimensions: 1 to 3
  int64_t groups;  // weights have this dimension first where it is above 1
  cx_conv_tensor src, weights, dst;
  int64_t stride[3], dilation[3], low[3], high[3];
  bool turned;         // the kernel must be reversed first,
  bool turned_dim[3];  // in these
} cx_conv_form;

// False: it is none of this kind, or of sizes that oneDNN is not trusted with.
bool cx_conv_form_of(const cx_conv_desc *d, cx_conv_kind kind,
                     cx_conv_form *out);

// The kinds, the likeliest first.
void cx_conv_likely_forms(const cx_conv_desc *d,
                          cx_conv_kind out[CX_CONV_FORMS]);

// Adds all of lhs (which 0) or rhs (1) in its own order; `form` not NULL: with
// the kernel turned as it says.
void cx_conv_view_in_order(const cx_conv_desc *d, int which,
                           const cx_conv_form *form, cx_view *io);

#endif
