// kernel/choices: how kernels that were measured are to be run. A kernel is
// measured once in a process; an executable, a checkpoint of a training run and
// this table keep the choice, so that a run that goes on computes the same
// bits, unless time was up before a kernel was measured.
#ifndef CPU_KERNEL_CHOICES_H
#define CPU_KERNEL_CHOICES_H

#include "base/status.h"
#include "kernel/kernel.h"

// How long a candidate took, in nanoseconds: its two shortest runs; INT64_MAX
// where there were fewer.
typedef struct cpu_kernel_times {
  int64_t least, second;
} cpu_kernel_times;

void cpu_kernel_times_add(cpu_kernel_times *times, int64_t ns);
// Which of n >= 1 candidates is chosen: the first, unless another was clearly
// faster in two runs. What disturbs a run makes it longer, so that one
// disturbed run of each neither makes a candidate win nor the first one lose.
int cpu_kernel_times_choose(const cpu_kernel_times *times, int n);

// Gives `desc` the choice that was made for pools of so many threads; false:
// none.
bool cpu_kernel_choice_recall(int threads, cpu_kernel_desc *desc);
// False: the kernel has no choice.
bool cpu_kernel_choice_remember(int threads, const cpu_kernel_desc *chosen);

// All choices as numbers, which the caller frees with cx_free().
calx_status *cpu_kernel_choices_save(int64_t **out,
                                     size_t *out_count) CALX_MUST_USE;
// Adds such choices; those of kernels that have one stay. The numbers may come
// from anywhere: a choice that does not fit its kernel costs time only.
calx_status *cpu_kernel_choices_load(const int64_t *numbers,
                                     size_t count) CALX_MUST_USE;

#endif
