// metrics/count: counts and ratios, by operations on the device.
#include "metrics/count.h"

#include "base/dtype.h"

calx_tensor *cx_metrics_number(calx_tensor *x)
{
  const calx_dtype d = calx_tensor_dtype(x);
  return calx_to_dtype(
      x, cx_dtype_is_float(d) && d != CALX_F64 ? CALX_F32 : CALX_F64);
}

calx_tensor *cx_metrics_count(calx_tensor *mask)
{
  return calx_sum_with(mask, NULL);
}

calx_tensor *cx_metrics_sum_rows(calx_tensor *x)
{
  const calx_reduce_options o = { .size = sizeof o,
                                  .dims = { .count = 1, .values = { 0 } } };
  return calx_sum_with(x, &o);
}

// What the mask excludes has a bin of its own, the last, which is left out.
calx_tensor *cx_metrics_histogram(calx_tensor *index, calx_tensor *mask,
                                  int64_t n)
{
  const calx_bincount_options o = { .size = sizeof o, .limit = n + 1 };
  index = calx_where(mask, index, calx_scalar_int(n));
  index = calx_reshape(index, calx_dims_of((int64_t[]){ -1 }, 1));
  return calx_slice(calx_bincount_with(index, &o), 0, 0, n, 1);
}

calx_tensor *cx_metrics_ratio(calx_tensor *a, calx_tensor *b)
{
  a = calx_to_dtype(a, CALX_F64);
  b = calx_to_dtype(b, CALX_F64);
  return calx_where(calx_eq(b, calx_scalar(0)), calx_scalar(0), calx_div(a, b));
}
