// nn/init: initial values of layers. Those that a user chooses are public:
// calx/init.h.
#ifndef CX_NN_INIT_H
#define CX_NN_INIT_H

#include "calx/init.h"
#include "calx/ops.h"

// Uniform in +-1/sqrt(fan_in), drawn from the device's default stream, the same
// on every rank: PyTorch's values for linear and convolution layers, Kaiming's
// rule with a = sqrt(5). fan_in 0: zeros.
calx_tensor *cx_nn_uniform(calx_dims shape, double fan_in, calx_dtype dtype);
// Normal, mean 0 and variance 1, the same on every rank.
calx_tensor *cx_nn_normal(calx_dims shape, calx_dtype dtype);
// All 1, or all 0.
calx_tensor *cx_nn_filled(calx_dims shape, bool one, calx_dtype dtype);

#endif
