// kernel/conv: makes the kernel of a convolution from its description.
#include "kernel/conv.h"

#include <string.h>

static calx_status *run_empty(const cpu_kernel *kernel, cpu_threads *pool,
                              const void *lhs, const void *rhs, void *out,
                              unsigned char *scratch)
{
  (void)pool;
  (void)lhs;
  (void)rhs;
  (void)scratch;
  memset(out, 0, kernel->bytes[2]);
  return NULL;
}

calx_status *cpu_kernel_conv_new(cpu_kernel *kernel, cpu_threads *pool,
                                 bool tune)
{
  cpu_kernel_conv_desc *d = &kernel->conv;
  if (!cpu_kernel_conv_is_sound(d) || !cpu_kernel_conv_size(kernel, d)) {
    return cx_invalid("a description of a convolution contradicts itself");
  }
  if (kernel->bytes[0] == 0 || kernel->bytes[1] == 0 || kernel->bytes[2] == 0) {
    kernel->run = run_empty;
    memcpy(kernel->name, "zeros", 6);
    return NULL;
  }
  if (tune && d->choice == CPU_KERNEL_CONV_CHOICE_NONE) {
    CALX_TRY(cpu_kernel_conv_tune(kernel, pool, &d->choice));
  }
  bool taken;
  CALX_TRY(cpu_kernel_conv_prepare(kernel, pool, &taken));
  return taken ? NULL : cpu_kernel_conv_loops_new(kernel);
}
