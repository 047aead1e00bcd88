// kernels/kernels: from an operation to its description, from that to a kernel.
#include "kernels/kernels.h"

#include <string.h>

#include "base/alloc.h"
#include "kernels/internal.h"

bool cx_kernel_describe(const cx_hlo_op *op, cx_kernel_desc *out)
{
  memset(out, 0, sizeof *out);
  if (op->kind == CX_HLO_OP_DOT_GENERAL || op->kind == CX_HLO_OP_DOT) {
    cx_dot_desc d;
    if (!cx_dot_describe(op, &d)) return false;
    memcpy(out, &d, sizeof d);
    return true;
  }
  if (op->kind == CX_HLO_OP_CONVOLUTION) {
    cx_conv_desc d;
    if (!cx_conv_describe(op, &d)) return false;
    memcpy(out, &d, sizeof d);
    return true;
  }
  return false;
}

double cx_kernel_flops(const cx_kernel_desc *desc)
{
  if (desc->words[0] == CX_KERNEL_DOT) {
    cx_dot_desc d;
    memcpy(&d, desc, sizeof d);
    return cx_dot_flops(&d);
  }
  if (desc->words[0] == CX_KERNEL_CONV) {
    cx_conv_desc d;
    memcpy(&d, desc, sizeof d);
    return cx_conv_flops(&d);
  }
  return 0;
}

calx_status *cx_kernel_new(cx_kernel_desc *desc, cx_pool *pool, bool tune,
                           cx_kernel **out)
{
  *out = NULL;
  cx_kernel *k = cx_calloc(1, sizeof *k);
  if (k == NULL) return cx_out_of_memory();
  k->desc = *desc;
  k->threads = cx_pool_size(pool);
  calx_status *status;
  if (desc->words[0] == CX_KERNEL_DOT) {
    status = cx_dot_new(k, pool, tune);
  } else if (desc->words[0] == CX_KERNEL_CONV) {
    status = cx_conv_new(k, pool, tune);
  } else {
    status = cx_error(CALX_INVALID_ARGUMENT,
                      "a kernel's description is of the unknown kind %lld",
                      (long long)desc->words[0]);
  }
  if (status == NULL && k->scratch == SIZE_MAX) {
    status = cx_error(CALX_RESOURCE_EXHAUSTED,
                      "a kernel needs more scratch memory than there can be");
  }
  if (status != NULL) {
    cx_kernel_free(k);
    return status;
  }
  *desc = k->desc;
  *out = k;
  return NULL;
}

void cx_kernel_free(cx_kernel *kernel)
{
  if (kernel == NULL) return;
  if (kernel->free_plan != NULL) kernel->free_plan(kernel->plan);
  cx_free(kernel);
}

size_t cx_kernel_scratch(const cx_kernel *kernel)
{
  return kernel->scratch;
}

calx_status *cx_kernel_run(const cx_kernel *kernel, cx_pool *pool,
                           const void *lhs, const void *rhs, void *out,
                           void *scratch)
{
  if (cx_pool_size(pool) != kernel->threads) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "the kernel %s was made for a pool of %d threads, this one "
                    "has %d",
                    kernel->name, kernel->threads, cx_pool_size(pool));
  }
  return kernel->run(kernel, pool, lhs, rhs, out, scratch);
}

void cx_kernel_sizes(const cx_kernel *kernel, size_t *lhs, size_t *rhs,
                     size_t *out)
{
  *lhs = kernel->bytes[0];
  *rhs = kernel->bytes[1];
  *out = kernel->bytes[2];
}

const char *cx_kernel_name(const cx_kernel *kernel)
{
  return kernel->name;
}
