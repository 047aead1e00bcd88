// kernel/conv_onednn: the candidates for a convolution on oneDNN: a form and a
// layout.
#ifndef CPU_KERNEL_CONV_ONEDNN_H
#define CPU_KERNEL_CONV_ONEDNN_H

#include "kernel/conv_form.h"

typedef enum cpu_kernel_onednn_layout {
  CPU_KERNEL_ONEDNN_AS_GIVEN,   // images as they are in memory
  CPU_KERNEL_ONEDNN_LAST,       // images with channels last
  CPU_KERNEL_ONEDNN_ANY,        // as oneDNN chooses
  CPU_KERNEL_ONEDNN_WINOGRAD,   // the same for its Winograd algorithm
  CPU_KERNEL_ONEDNN_ALL_GIVEN,  // images and weights as they are in memory
  CPU_KERNEL_ONEDNN_LAYOUTS
} cpu_kernel_onednn_layout;

// A candidate is form * LAYOUTS + layout.
#define CPU_KERNEL_ONEDNN_CANDIDATES \
  (CPU_KERNEL_CONV_FORMS * CPU_KERNEL_ONEDNN_LAYOUTS)

// Whether oneDNN computes these types.
bool cpu_kernel_onednn_has_types(const cpu_kernel_conv_desc *d);
// All candidates, in the order in which they are tried without measuring.
void cpu_kernel_onednn_order(const cpu_kernel_conv_desc *d,
                             int order[CPU_KERNEL_ONEDNN_CANDIDATES]);
// Into how many equal parts the images are divided, so that the sums of a
// gradient by the weights are short.
int64_t cpu_kernel_onednn_parts(const cpu_kernel_conv_form *f);

#endif
