// ops/assign: a handle takes another value. There are no views, so nothing else
// has to be written to.
#include "ops/ops.h"

void calx_assign(calx_tensor *tensor, calx_tensor *value)
{
  calx_tensor *in[2] = { tensor, value }, *bad;
  if (cx_op_unfit("assign", in, 2, &bad)) return;
  if (cx_grad_mode() && cx_tensor_requires_grad(tensor)) {
    cx_scope_pin(cx_error(CALX_INVALID_ARGUMENT,
                          "assign: the tensor requires a gradient; assign in a "
                          "no-grad region"));
    return;
  }
  const cx_shape *s = cx_tensor_shape(tensor);
  value = cx_tensor_is_weak(value)
              ? cx_weak_as(value, s->dtype, calx_tensor_device(tensor))
              : calx_to_dtype(value, s->dtype);
  if (!cx_tensor_poisoned(value)) value = calx_expand(value, cx_dims_of(s));
  if (cx_tensor_poisoned(value)) return;
  if (calx_tensor_device(value) != calx_tensor_device(tensor)) {
    cx_scope_pin(cx_error(CALX_INVALID_ARGUMENT,
                          "assign: the value is on %s, the tensor on %s",
                          calx_device_name(calx_tensor_device(value)),
                          calx_device_name(calx_tensor_device(tensor))));
    return;
  }
  cx_tensor_set_value(tensor, cx_tensor_value(value));
}
