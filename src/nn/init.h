// nn/init: initial values of layers.
#ifndef CX_NN_INIT_H
#define CX_NN_INIT_H

#include "calx/ops.h"

// Uniform in +-1/sqrt(fan_in), drawn from the device's default stream, the same
// on every rank: PyTorch's values for linear and convolution layers, Kaiming's
// rule with a = sqrt(5). fan_in 0: zeros.
calx_tensor *cx_nn_uniform(calx_dims shape, double fan_in, calx_dtype dtype);
// All `value`.
calx_tensor *cx_nn_filled(calx_dims shape, bool one, calx_dtype dtype);

#endif
