// nn/init: initial values are recorded as ops and computed by the first sync,
// so making a model runs nothing.
#include "nn/init.h"

#include "ops/ops.h"

calx_tensor *cx_nn_filled(calx_dims shape, bool one, calx_dtype dtype)
{
  calx_create_options o = { .size = sizeof o, .dtype = dtype };
  return one ? calx_ones_with(shape, &o) : calx_zeros_with(shape, &o);
}

calx_tensor *cx_nn_uniform(calx_dims shape, double fan_in, calx_dtype dtype)
{
  calx_create_options o = { .size = sizeof o, .dtype = dtype };
  if (fan_in == 0) return calx_zeros_with(shape, &o);
  double bound = 1 / sqrt(fan_in);
  calx_tensor *u =
      calx_mul(cx_ops_rand_common(shape, &o), calx_scalar(2 * bound));
  return calx_sub_with(u, calx_scalar(bound), NULL);
}

calx_tensor *cx_nn_normal(calx_dims shape, calx_dtype dtype)
{
  calx_create_options o = { .size = sizeof o, .dtype = dtype };
  return cx_ops_randn_common(shape, &o);
}
