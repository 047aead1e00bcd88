// kernels/conv: a described convolution becomes a kernel.
#include "kernels/conv.h"

#include <string.h>

static calx_status *run_empty(const cx_kernel *kernel, cx_pool *pool,
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

calx_status *cx_conv_new(cx_kernel *kernel, cx_pool *pool, bool tune)
{
  cx_conv_desc d;
  memcpy(&d, &kernel->desc, sizeof d);
  if (!cx_conv_is_sound(&d) || !cx_conv_size(kernel, &d)) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "a description of a convolution contradicts itself");
  }
  if (kernel->bytes[0] == 0 || kernel->bytes[1] == 0 || kernel->bytes[2] == 0) {
    kernel->run = run_empty;
    memcpy(kernel->name, "zeros", 6);
    return NULL;
  }
  if (tune && d.choice == CX_CONV_CHOICE_NONE) {
    CALX_TRY(cx_conv_tune(kernel, pool, &d.choice));
    memcpy(&kernel->desc, &d, sizeof d);
  }
  bool taken;
  CALX_TRY(cx_conv_prepare(kernel, pool, &taken));
  return taken ? NULL : cx_conv_loops_new(kernel);
}
