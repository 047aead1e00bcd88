// kernel/kernel: describes operations, and makes and runs kernels.
#include "kernel/kernel.h"

#include "base/alloc.h"
#include "kernel/internal.h"

bool cpu_kernel_describe(const cx_hlo_op *op, cpu_kernel_desc *out)
{
  cpu_kernel k = { .desc = { { 0 } } };
  bool described = false;
  if (op->kind == CX_HLO_OP_DOT_GENERAL || op->kind == CX_HLO_OP_DOT) {
    described = cpu_kernel_dot_describe(op, &k.dot);
  } else if (op->kind == CX_HLO_OP_CONVOLUTION) {
    described = cpu_kernel_conv_describe(op, &k.conv);
  } else if (op->kind == CX_HLO_OP_CHOLESKY ||
             op->kind == CX_HLO_OP_TRIANGULAR_SOLVE) {
    described = cpu_kernel_linalg_describe(op, &k.linalg);
  } else if (op->kind == CX_HLO_OP_FFT) {
    described = cpu_kernel_fft_describe(op, &k.fft);
  } else if (op->kind == CX_HLO_OP_SORT) {
    described = cpu_kernel_sort_describe(op, &k.sort);
  }
  *out = k.desc;
  return described;
}

double cpu_kernel_flops(const cpu_kernel_desc *desc)
{
  const cpu_kernel k = { .desc = *desc };
  switch (desc->words[0]) {
    case CPU_KERNEL_DOT: return cpu_kernel_dot_flops(&k.dot);
    case CPU_KERNEL_CONV: return cpu_kernel_conv_flops(&k.conv);
    case CPU_KERNEL_CHOLESKY:
    case CPU_KERNEL_SOLVE: return cpu_kernel_linalg_flops(&k.linalg);
    case CPU_KERNEL_FFT: return cpu_kernel_fft_flops(&k.fft);
    case CPU_KERNEL_SORT: return cpu_kernel_sort_flops(&k.sort);
    default: return 0;
  }
}

static calx_status *new_of_kind(cpu_kernel *k, cpu_threads *pool, bool tune)
{
  switch (k->desc.words[0]) {
    case CPU_KERNEL_DOT: return cpu_kernel_dot_new(k, pool, tune);
    case CPU_KERNEL_CONV: return cpu_kernel_conv_new(k, pool, tune);
    case CPU_KERNEL_CHOLESKY:
    case CPU_KERNEL_SOLVE: return cpu_kernel_linalg_new(k);
    case CPU_KERNEL_FFT: return cpu_kernel_fft_new(k);
    case CPU_KERNEL_SORT: return cpu_kernel_sort_new(k);
    default:
      return cx_invalid("a kernel's description is of the unknown kind %lld",
                        (long long)k->desc.words[0]);
  }
}

calx_status *cpu_kernel_new(cpu_kernel_desc *desc, cpu_threads *pool, bool tune,
                            cpu_kernel **out)
{
  *out = NULL;
  cpu_kernel *k = cx_calloc(1, sizeof *k);
  if (k == NULL) return cx_out_of_memory();
  k->desc = *desc;
  k->threads = cpu_threads_size(pool);
  calx_status *status = new_of_kind(k, pool, tune);
  if (status == NULL && k->scratch == SIZE_MAX) {
    status = cx_error(CALX_RESOURCE_EXHAUSTED,
                      "a kernel needs more scratch memory than there can be");
  }
  if (status != NULL) {
    cpu_kernel_free(k);
    return status;
  }
  *desc = k->desc;
  *out = k;
  return NULL;
}

void cpu_kernel_free(cpu_kernel *kernel)
{
  if (kernel == NULL) return;
  if (kernel->free_plan != NULL) kernel->free_plan(kernel->plan);
  cx_free(kernel);
}

size_t cpu_kernel_scratch(const cpu_kernel *kernel)
{
  return kernel->scratch;
}

void cpu_kernel_keep(cpu_kernel_desc *desc, size_t result, int64_t first)
{
  cpu_kernel k = { .desc = *desc };
  if (desc->words[0] != CPU_KERNEL_SORT || first >= k.sort.n) return;
  k.sort.keep[result] = first;
  *desc = k.desc;
}

bool cpu_kernel_reads(const cpu_kernel_desc *desc, size_t operand)
{
  const cpu_kernel k = { .desc = *desc };
  return desc->words[0] != CPU_KERNEL_SORT || operand == 0 ||
         k.sort.payload != CPU_KERNEL_SORT_POSITIONS;
}

calx_status *cpu_kernel_run(const cpu_kernel *kernel, cpu_threads *pool,
                            const void *lhs, const void *rhs, void *out,
                            void *scratch)
{
  return cpu_kernel_run_pair(kernel, pool, lhs, rhs, out, NULL, scratch);
}

calx_status *cpu_kernel_run_pair(const cpu_kernel *kernel, cpu_threads *pool,
                                 const void *lhs, const void *rhs, void *out,
                                 void *second, void *scratch)
{
  if (cpu_threads_size(pool) != kernel->threads) {
    return cx_invalid(
        "the kernel %s was made for a pool of %d threads, this one has %d",
        kernel->name, kernel->threads, cpu_threads_size(pool));
  }
  return kernel->run_pair != NULL
             ? kernel->run_pair(kernel, pool, lhs, rhs, out, second, scratch)
             : kernel->run(kernel, pool, lhs, rhs, out, scratch);
}

void cpu_kernel_sizes(const cpu_kernel *kernel, size_t *lhs, size_t *rhs,
                      size_t *out)
{
  *lhs = kernel->bytes[0];
  *rhs = kernel->bytes[1];
  *out = kernel->bytes[2];
}

size_t cpu_kernel_second_size(const cpu_kernel *kernel)
{
  return kernel->second;
}

const char *cpu_kernel_name(const cpu_kernel *kernel)
{
  return kernel->name;
}
