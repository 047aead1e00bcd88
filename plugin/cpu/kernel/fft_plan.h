// kernel/fft_plan: factors and tables of lines.
#ifndef CPU_KERNEL_FFT_PLAN_H
#define CPU_KERNEL_FFT_PLAN_H

#include "kernel/fft.h"

// Sets the sizes of a line of n numbers. `along`: its numbers are neighbours in
// memory, so that it can be split; `halved`: it is a real line of 2 n.
void cpu_kernel_fft_line_set(int64_t n, cpu_kernel_math math, bool along,
                             bool halved, cpu_kernel_fft_line *out);
// The bytes of its tables, and filling them at an address aligned to 64. The
// address has to stay.
size_t cpu_kernel_fft_line_bytes(const cpu_kernel_fft_line *l,
                                 cpu_kernel_math math);
calx_status *cpu_kernel_fft_line_fill(cpu_kernel_fft_line *l,
                                      cpu_kernel_math math,
                                      unsigned char *at) CALX_MUST_USE;

// Vectors of scratch that a thread needs for the line's blocks.
int64_t cpu_kernel_fft_block_vectors(const cpu_kernel_fft_line *l);

#endif
