// kernel/kernel: matrix products and convolutions.
//
// A kernel is made from a description without pointers, so that descriptions
// can be stored with an executable, with the choice that measuring made. f32
// (and bf16, f16 widened) runs on oneDNN, on the device's pool; small products,
// convolutions with few channels, other types, and everything where there is no
// oneDNN, on loops of our own. libdnnl is loaded at the first kernel that needs
// it.
// A kernel may be run by many threads at once, each with its own scratch.
#ifndef CPU_KERNEL_KERNELS_H
#define CPU_KERNEL_KERNELS_H

#include "hlo/module.h"
#include "threads/threads.h"

#define CPU_KERNEL_WORDS 128
// All that a kernel is: integers in a layout of the room's own. Equal
// descriptions are equal bytes.
typedef struct cpu_kernel_desc {
  int64_t words[CPU_KERNEL_WORDS];
} cpu_kernel_desc;

typedef struct cpu_kernel cpu_kernel;

// Whether a kernel does `op` (dot_general or convolution, verified, of every
// form), and its description.
bool cpu_kernel_describe(const cx_hlo_op *op, cpu_kernel_desc *out);

// Creates what the description says, for teams of cpu_threads_size(pool). A
// description from a file is hostile: it is checked. With `tune`, times the
// candidates for a convolution once on scratch data and writes the choice into
// `desc`; a description that holds a choice is taken as it is. Without either,
// and for products, a rule chooses.
calx_status *cpu_kernel_new(cpu_kernel_desc *desc, cpu_threads *pool, bool tune,
                            cpu_kernel **out) CALX_MUST_USE;
void cpu_kernel_free(cpu_kernel *kernel);
size_t cpu_kernel_scratch(const cpu_kernel *kernel);  // bytes, 64-byte aligned

calx_status *cpu_kernel_run(const cpu_kernel *kernel, cpu_threads *pool,
                            const void *lhs, const void *rhs, void *out,
                            void *scratch) CALX_MUST_USE;

// The sizes of the operands and the result in bytes, for checks.
void cpu_kernel_sizes(const cpu_kernel *kernel, size_t *lhs, size_t *rhs,
                      size_t *out);
// What runs it: "dnnl_sgemm", "convolution jit:avx512_core nhwc", "loops".
const char *cpu_kernel_name(const cpu_kernel *kernel);
double cpu_kernel_flops(const cpu_kernel_desc *desc);

#endif
