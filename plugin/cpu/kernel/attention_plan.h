// kernel/attention_plan: how attention's kernel divides its work and its
// scratch.
#ifndef CPU_KERNEL_ATTENTION_PLAN_H
#define CPU_KERNEL_ATTENTION_PLAN_H

#include "kernel/attention.h"

// Matrices in a thread's scratch.
enum {
  CPU_KERNEL_ATTENTION_K_TURNED,  // (width, keys) in panels
  CPU_KERNEL_ATTENTION_V_DENSE,   // (keys, value_width)
  CPU_KERNEL_ATTENTION_Q_ROWS,    // (strip, width)
  CPU_KERNEL_ATTENTION_OUT_ROWS,  // (strip, value_width)
  CPU_KERNEL_ATTENTION_SCORES,    // (strip, keys)
  CPU_KERNEL_ATTENTION_ROW_SUMS,  // (2, strip)
  // Of the gradient:
  CPU_KERNEL_ATTENTION_K_DENSE,
  CPU_KERNEL_ATTENTION_V_TURNED,
  CPU_KERNEL_ATTENTION_GRADS,    // (strip, keys)
  CPU_KERNEL_ATTENTION_DQ_ROWS,  // (strip, width)
  CPU_KERNEL_ATTENTION_DK_DENSE,
  CPU_KERNEL_ATTENTION_DV_DENSE,
  CPU_KERNEL_ATTENTION_MATRICES
};

typedef struct cpu_kernel_attention_plan {
  cpu_kernel_attention_desc d;
  const cpu_kernel_attention_loops *loops;
  int64_t batches, parts;               // parts: of the rows of a batch
  int64_t strip;                        // rows
  int64_t wide_keys, wide, wide_value;  // sizes in scratch
  float scale, hidden, factor[4];
  size_t at[CPU_KERNEL_ATTENTION_MATRICES], scratch_at,
      scratch_each;  // floats; bytes
} cpu_kernel_attention_plan;

// Of a tensor of one head.
static inline int64_t cpu_kernel_attention_columns(
    const cpu_kernel_attention_desc *d, int t)
{
  switch (t) {
    case CPU_KERNEL_ATTENTION_MASK: return d->keys;
    case CPU_KERNEL_ATTENTION_V:
    case CPU_KERNEL_ATTENTION_OUT:
    case CPU_KERNEL_ATTENTION_DV: return d->value_width;
    default: return d->width;
  }
}

cpu_kernel_run_buffers_fn cpu_kernel_attention_run;

#endif
