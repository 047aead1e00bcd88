// kernel/conv_prepare: makes the implementation of a convolution that its
// choice or the rule says.
#include "kernel/conv.h"

calx_status *cpu_kernel_conv_prepare(cpu_kernel *kernel, cpu_threads *pool,
                                     bool *out_taken)
{
  const int64_t choice = kernel->conv.choice;
  const bool none = choice == CPU_KERNEL_CONV_CHOICE_NONE;
  *out_taken = choice == CPU_KERNEL_CONV_CHOICE_LOOPS;
  if (*out_taken) return cpu_kernel_conv_loops_new(kernel);
  if (none || choice == CPU_KERNEL_CONV_CHOICE_DOT) {
    CALX_TRY(cpu_kernel_conv_dot_new(kernel, pool, out_taken));
    if (*out_taken) return NULL;
  }
  if (none || choice == CPU_KERNEL_CONV_CHOICE_LANES) {
    CALX_TRY(cpu_kernel_conv_lanes_new(kernel, out_taken));
    if (!*out_taken)
      CALX_TRY(cpu_kernel_conv_depthwise_new(kernel, !none, out_taken));
  }
  if (choice == CPU_KERNEL_CONV_CHOICE_IMPLICIT) {
    CALX_TRY(cpu_kernel_conv_implicit_new(kernel, out_taken));
  }
  if (*out_taken) return NULL;
  return cpu_kernel_conv_onednn_new(kernel, pool, out_taken);
}
