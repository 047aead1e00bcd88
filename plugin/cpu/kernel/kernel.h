// kernel/kernel: matrix products, convolutions, linear algebra, Fourier
// transforms and sorts.
//
// A kernel is made from a description without pointers, so that an executable
// can store it, with the choice that measuring made. f32 (and f16, widened) run
// on oneDNN, on the device's thread pool; so does bf16, as it is where that is
// faster (matmul.h), else widened. Small products,
// convolutions with few channels, other types, and everything if there is no
// oneDNN, run in loops of this module. libdnnl is loaded for the first kernel
// that needs it. Several threads may run a kernel at the same time, each with
// its own scratch.
#ifndef CPU_KERNEL_KERNEL_H
#define CPU_KERNEL_KERNEL_H

#include "hlo/module.h"
#include "threads/threads.h"

#define CPU_KERNEL_WORDS 128
// Describes a kernel completely: integers in a layout that only this module
// knows. Equal descriptions are equal bytes.
typedef struct cpu_kernel_desc {
  int64_t words[CPU_KERNEL_WORDS];
} cpu_kernel_desc;

typedef struct cpu_kernel cpu_kernel;

// The description of a verified dot, dot_general, convolution, cholesky,
// triangular_solve, fft or sort, or of a custom_call (of cpu_kernel_target, or
// of a target of lapack/table.c);
// false: no kernel computes the operation.
bool cpu_kernel_describe(const cx_hlo_op *op, cpu_kernel_desc *out);
// Of this result of a sort only the first elements of each line are wanted; the
// rest of it need not be written.
void cpu_kernel_keep(cpu_kernel_desc *desc, size_t result, int64_t first);
// Whether the kernel reads the operand; else it knows what it holds.
bool cpu_kernel_reads(const cpu_kernel_desc *desc, size_t operand);

// Images that convolutions of few channels compute at a time.
#define CPU_KERNEL_LANES 16
// Whether this convolution, of two spatial dimensions, certainly does that.
// It would copy nothing if the images lay in the order of opt/lanes.h.
bool cpu_kernel_runs_in_lanes(const cpu_kernel_desc *convolution);

// Whether the product's right operand can be packed before.
bool cpu_kernel_dot_packs(const cpu_kernel_desc *product);
// Describes the kernel that packs it, and makes the product one of the packed
// operand: of so many f32, which is returned.
int64_t cpu_kernel_dot_pack_of(cpu_kernel_desc *io_product,
                               cpu_kernel_desc *out_pack);

// A custom_call of this target is a kernel. Its backend_config has the bytes of
// the description, which fits its operands and results.
extern const char cpu_kernel_target[];

// Makes the kernel for pools of cpu_threads_size(pool) threads. The description
// is checked, because it may come from a file. If it has a choice, that is
// used. Else, with `tune`, times the candidates for a convolution, and once
// bf16 against f32, on arbitrary data and writes the choice to `desc`. Without
// `tune`, and for other products, a rule decides.
calx_status *cpu_kernel_new(cpu_kernel_desc *desc, cpu_threads *pool, bool tune,
                            cpu_kernel **out) CALX_MUST_USE;
void cpu_kernel_free(cpu_kernel *kernel);
size_t cpu_kernel_scratch(const cpu_kernel *kernel);  // bytes, 64-byte aligned

// The buffers of a kernel are its operands (lhs, which is rhs too where there
// is one operand), its results, and scratch. Gives the sizes of all but
// scratch, and how many these are.
#define CPU_KERNEL_BUFFERS 10
size_t cpu_kernel_buffers(const cpu_kernel *kernel,
                          size_t sizes[CPU_KERNEL_BUFFERS]);
calx_status *cpu_kernel_run(const cpu_kernel *kernel, cpu_threads *pool,
                            void *const *buffers) CALX_MUST_USE;
// The implementation: "dnnl_sgemm", "convolution jit:avx512_core nhwc",
// "loops".
const char *cpu_kernel_name(const cpu_kernel *kernel);
double cpu_kernel_flops(const cpu_kernel_desc *desc);

// Bytes of the vectors that this processor's loops use: 64 (AVX-512), 32 (AVX2,
// FMA and F16C) or 16 (any other).
int cpu_kernel_vector_bytes(void);

#endif
