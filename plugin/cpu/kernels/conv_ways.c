// kernels/conv_ways: makes what runs a convolution, by its choice or by rule.
#include "kernels/conv.h"

#include <string.h>

calx_status *cx_conv_prepare(cx_kernel *kernel, cx_pool *pool, bool *out_taken)
{
  cx_conv_desc d;
  memcpy(&d, &kernel->desc, sizeof d);
  const bool none = d.choice == CX_CONV_CHOICE_NONE;
  *out_taken = false;
  if (none || d.choice == CX_CONV_CHOICE_DOT) {
    CALX_TRY(cx_conv_dot_new(kernel, pool, out_taken));
    if (*out_taken) return NULL;
  }
  if (none || d.choice == CX_CONV_CHOICE_LANES) {
    CALX_TRY(cx_conv_lanes_new(kernel, out_taken));
    if (!*out_taken) CALX_TRY(cx_conv_depthwise_new(kernel, !none, out_taken));
  }
  if (*out_taken || d.choice == CX_CONV_CHOICE_LOOPS) return NULL;
  return cx_conv_onednn_new(kernel, pool, out_taken);
}
