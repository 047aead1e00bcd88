// kernel/conv_form: a StableHLO convolution seen as one of oneDNN's three.
#ifndef CPU_KERNEL_CONV_FORM_H
#define CPU_KERNEL_CONV_FORM_H

#include "kernel/conv.h"

typedef enum cpu_kernel_conv_kind {
  CPU_KERNEL_CONV_FORWARD,
  CPU_KERNEL_CONV_INPUT,    // the gradient by the input
  CPU_KERNEL_CONV_WEIGHTS,  // the gradient by the weights
  CPU_KERNEL_CONV_FORMS
} cpu_kernel_conv_kind;

// The length of oneDNN's lists of dimensions, DNNL_MAX_NDIMS.
#define CPU_KERNEL_CONV_LIST 12

// Batch or groups, channels, spatial; strides in elements.
typedef struct cpu_kernel_conv_tensor {
  int n;
  int64_t size[CPU_KERNEL_CONV_LIST], stride[CPU_KERNEL_CONV_LIST];
} cpu_kernel_conv_tensor;

// The forward convolution that it is, or whose gradient it is.
typedef struct cpu_kernel_conv_form {
  cpu_kernel_conv_kind kind;
  int n;           // spatial dimensions: 1 to 3
  int64_t groups;  // weights have this dimension first where it is above 1
  union {
    struct {
      cpu_kernel_conv_tensor src, weights, dst;
    };
    cpu_kernel_conv_tensor tensors[3];  // the same, in this order
  };
  int64_t stride[CPU_KERNEL_CONV_LIST], dilation[CPU_KERNEL_CONV_LIST];
  int64_t low[CPU_KERNEL_CONV_LIST], high[CPU_KERNEL_CONV_LIST];
  bool turned;         // some dimension of the kernel must be reversed first
  bool turned_dim[3];  // which
} cpu_kernel_conv_form;

// By kind: which of src (0), weights (1) and dst (2) are lhs, rhs and result;
// and which of lhs (0), rhs (1) and result (2) are src, weights and dst.
extern const int cpu_kernel_conv_roles[CPU_KERNEL_CONV_FORMS][3];

// False: it is not of this kind, or too large for oneDNN.
bool cpu_kernel_conv_form_of(const cpu_kernel_conv_desc *d,
                             cpu_kernel_conv_kind kind,
                             cpu_kernel_conv_form *out);

// The three kinds, the likeliest first.
void cpu_kernel_conv_likely_forms(
    const cpu_kernel_conv_desc *d,
    cpu_kernel_conv_kind out[CPU_KERNEL_CONV_FORMS]);

// Adds the dimensions of lhs (which 0) or rhs (1) in their own order; with a
// form, reverses those of the kernel that it says.
void cpu_kernel_conv_view_in_order(const cpu_kernel_conv_desc *d, int which,
                                   const cpu_kernel_conv_form *form,
                                   cpu_kernel_view *io);

#endif
