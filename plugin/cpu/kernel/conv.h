// kernel/conv: the implementations of convolution, and what they ask about a
// description.
#ifndef CPU_KERNEL_CONV_H
#define CPU_KERNEL_CONV_H

#include "kernel/internal.h"

// The sizes, strides and positions of the dimensions of lhs (0), rhs (1) and
// result (2), in the description's order: lhs batch, features, spatial; rhs in,
// out, spatial; result likewise as lhs.
typedef struct cpu_kernel_conv_tensors {
  int64_t size[3][CPU_KERNEL_CONV_DIMS + 2];
  int64_t stride[3][CPU_KERNEL_CONV_DIMS + 2];
  int64_t at[3][CPU_KERNEL_CONV_DIMS + 2];
} cpu_kernel_conv_tensors;
void cpu_kernel_conv_tensors_of(const cpu_kernel_conv_desc *d,
                                cpu_kernel_conv_tensors *out);

// A spatial dimension of one element, which stands for one that is absent.
extern const cpu_kernel_conv_dim cpu_kernel_conv_absent_dim;

// Sets the sizes of the three tensors in bytes; false: one is too large.
bool cpu_kernel_conv_size(cpu_kernel *kernel, const cpu_kernel_conv_desc *d);

// Whether the order of its dimensions is that of a gradient by the weights.
bool cpu_kernel_conv_seems_by_weights(const cpu_kernel_conv_desc *d);

// The choice in a description, which measuring sets.
#define CPU_KERNEL_CONV_CHOICE_NONE 0
#define CPU_KERNEL_CONV_CHOICE_LOOPS 1
#define CPU_KERNEL_CONV_CHOICE_LANES 2
#define CPU_KERNEL_CONV_CHOICE_ONEDNN 3  // and the candidates from here on

#define CPU_KERNEL_CONV_CHOICE_DOT 1000
#define CPU_KERNEL_CONV_CHOICE_IMPLICIT 1001

// The fastest choice, by a rule, or measured if no rule decides.
calx_status *cpu_kernel_conv_tune(const cpu_kernel *kernel, cpu_threads *pool,
                                  int64_t *out) CALX_MUST_USE;

// Each function sets the kernel's plan and name. The description must be sound.
// *out_taken is false if the implementation cannot run it, or only slowly.

// The implementation of the choice, or by rule; false: only loops are left.
calx_status *cpu_kernel_conv_prepare(cpu_kernel *kernel, cpu_threads *pool,
                                     bool *out_taken) CALX_MUST_USE;
// A matrix product.
calx_status *cpu_kernel_conv_dot_new(cpu_kernel *kernel, cpu_threads *pool,
                                     bool *out_taken) CALX_MUST_USE;
// 16 images at a time: f32, few channels.
calx_status *cpu_kernel_conv_lanes_new(cpu_kernel *kernel,
                                       bool *out_taken) CALX_MUST_USE;
// Whether oneDNN's vectors would be so empty that this is certainly faster.
bool cpu_kernel_conv_lanes_are_sure(const cpu_kernel_conv_desc *d);
// The gradient by the weights of many groups of one channel, 16 groups at a
// time. `always`: also for kernels of 3 x 3 taps, where oneDNN is often as
// fast.
calx_status *cpu_kernel_conv_depthwise_new(cpu_kernel *kernel, bool always,
                                           bool *out_taken) CALX_MUST_USE;
// A matrix product whose left operand is gathered block by block: f32, channels
// last.
calx_status *cpu_kernel_conv_implicit_new(cpu_kernel *kernel,
                                          bool *out_taken) CALX_MUST_USE;
// Whether that may be faster than oneDNN, and whether it certainly is.
bool cpu_kernel_conv_implicit_suits(const cpu_kernel_conv_desc *d);
bool cpu_kernel_conv_implicit_is_sure(const cpu_kernel_conv_desc *d);
// oneDNN's candidate of the choice; without a choice the first that works.
calx_status *cpu_kernel_conv_onednn_new(cpu_kernel *kernel, cpu_threads *pool,
                                        bool *out_taken) CALX_MUST_USE;
// Loops, which run any convolution.
calx_status *cpu_kernel_conv_loops_new(cpu_kernel *kernel) CALX_MUST_USE;

// oneDNN's candidates that are worth measuring.
#define CPU_KERNEL_CONV_CANDIDATES 3
typedef struct cpu_kernel_conv_candidates {
  int64_t sure;  // the fastest one, if it works; or …_CHOICE_NONE
  int n;
  int64_t choices[CPU_KERNEL_CONV_CANDIDATES];
  bool by_weights;  // it is a gradient by the weights
  bool enough;      // the first is enough, unless its implementation is a gemm
} cpu_kernel_conv_candidates;
void cpu_kernel_conv_onednn_candidates(const cpu_kernel_conv_desc *d,
                                       cpu_kernel_conv_candidates *out);

#endif
