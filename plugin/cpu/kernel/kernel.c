// kernel/kernel: describes operations, and makes and runs kernels.
#include "kernel/kernel.h"

#include <string.h>

#include "base/alloc.h"
#include "kernel/attention.h"
#include "kernel/internal.h"

const char cpu_kernel_target[] = "calx.kernel";

// How many of its buffers, the last ones, the kernel writes.
static size_t results_of(const cpu_kernel_desc *desc)
{
  cpu_kernel_attention_desc attention;
  if (desc->words[0] != CPU_KERNEL_ATTENTION) return 1;
  memcpy(&attention, desc, sizeof attention);
  return attention.backward != 0 ? 3 : 1;
}

// Whether the call has as many operands and results as the kernel, each as
// large.
static bool fits_call(const cx_hlo_op *op, const cpu_kernel_desc *desc)
{
  size_t sizes[CPU_KERNEL_BUFFERS];
  const size_t n = desc->words[0] == CPU_KERNEL_DOT
                       ? cpu_kernel_dot_sizes(desc, sizes)
                       : cpu_kernel_attention_sizes(desc, sizes);
  if (n == 0 || n != cx_hlo_op_n_types(op) ||
      op->n_results != results_of(desc)) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_any *type = cx_hlo_op_type(op, i);
    const int64_t bytes =
        type->non_tensor != NULL ? -1 : cx_hlo_type_bytes(&type->tensor);
    if (bytes < 0 || (uint64_t)bytes != sizes[i]) return false;
  }
  return true;
}

// Programs of users may have such a call too.
static bool describe_call(const cx_hlo_op *op, cpu_kernel_desc *out)
{
  const cx_hlo_attr *name = cx_hlo_op_attr(op, CX_HLO_A_CALL_TARGET_NAME);
  const cx_hlo_attr *config = cx_hlo_op_attr(op, CX_HLO_A_BACKEND_CONFIG);
  if (name == NULL || name->kind != CX_HLO_ATTR_STRING ||
      !cx_hlo_str_equal(name->as.text, cpu_kernel_target) || config == NULL ||
      config->kind != CX_HLO_ATTR_STRING || config->as.text.n != sizeof *out) {
    return false;
  }
  memcpy(out, config->as.text.s, sizeof *out);
  return fits_call(op, out);
}

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
  } else if (op->kind == CX_HLO_OP_CUSTOM_CALL) {
    described =
        describe_call(op, &k.desc) || cpu_kernel_lapack_describe(op, &k.lapack);
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
    case CPU_KERNEL_ATTENTION: return cpu_kernel_attention_flops(desc);
    case CPU_KERNEL_LAPACK: return cpu_lapack_flops(&k.lapack);
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
    case CPU_KERNEL_ATTENTION: return cpu_kernel_attention_new(k);
    case CPU_KERNEL_LAPACK: return cpu_kernel_lapack_new(k);
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
                            void *const *buffers)
{
  if (cpu_threads_size(pool) != kernel->threads) {
    return cx_invalid(
        "the kernel %s was made for a pool of %d threads, this one has %d",
        kernel->name, kernel->threads, cpu_threads_size(pool));
  }
  return kernel->run_buffers != NULL
             ? kernel->run_buffers(kernel, pool, buffers)
             : kernel->run(kernel, pool, buffers[0], buffers[1], buffers[2],
                           buffers[3]);
}

size_t cpu_kernel_buffers(const cpu_kernel *kernel,
                          size_t sizes[CPU_KERNEL_BUFFERS])
{
  memcpy(sizes, kernel->bytes, sizeof kernel->bytes);
  return kernel->run_buffers != NULL ? (size_t)kernel->n_buffers : 3;
}

const char *cpu_kernel_name(const cpu_kernel *kernel)
{
  return kernel->name;
}
