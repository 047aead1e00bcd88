// ops/composite_conv: the public convolutions, by their number of spatial
// dimensions. `address` is & where an option is one number, not a list.
#include "ops/composite.h"
#include "ops/conv.h"

#define CONVOLUTION(name, n_spatial, address)                     \
  calx_tensor *calx_##name##_with(calx_tensor *x, calx_tensor *w, \
                                  const calx_##name##_options *o) \
  {                                                               \
    CX_OPS_COMPOSITE(#name);                                      \
    CX_OPS_TAKE_OPTIONS(name, o, x);                              \
    return cx_ops_convolve(                                       \
        x, w,                                                     \
        &(cx_ops_conv_options){ .op = #name,                      \
                                .n = n_spatial,                   \
                                .bias = o->bias,                  \
                                .stride = address o->stride,      \
                                .padding = address o->padding,    \
                                .dilation = address o->dilation,  \
                                .groups = o->groups });           \
  }
CONVOLUTION(conv1d, 1, &)
CONVOLUTION(conv2d, 2, )
CONVOLUTION(conv3d, 3, )

#define TRANSPOSED(name, n_spatial, address)                                 \
  calx_tensor *calx_##name##_with(calx_tensor *x, calx_tensor *w,            \
                                  const calx_##name##_options *o)            \
  {                                                                          \
    CX_OPS_COMPOSITE(#name);                                                 \
    CX_OPS_TAKE_OPTIONS(name, o, x);                                         \
    return cx_ops_convolve(                                                  \
        x, w,                                                                \
        &(cx_ops_conv_options){ .op = #name,                                 \
                                .n = n_spatial,                              \
                                .transposed = true,                          \
                                .bias = o->bias,                             \
                                .stride = address o->stride,                 \
                                .padding = address o->padding,               \
                                .dilation = address o->dilation,             \
                                .output_padding = address o->output_padding, \
                                .groups = o->groups });                      \
  }
TRANSPOSED(conv_transpose1d, 1, &)
TRANSPOSED(conv_transpose2d, 2, )
TRANSPOSED(conv_transpose3d, 3, )
