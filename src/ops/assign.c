// ops/assign: a handle takes another value. There are no views, so nothing else
// has to be written to.
#include "ops/ops.h"

static bool is_trained_leaf(const calx_tensor *t)
{
  return cx_tensor_is_leaf(t) && cx_tensor_requires_grad(t);
}

static bool broadcasts(const cx_shape *from, const cx_shape *to)
{
  if (from->rank > to->rank) return false;
  for (uint32_t i = 0; i < from->rank; i++) {
    int64_t have = from->dims[i];
    if (have != 1 && have != to->dims[to->rank - from->rank + i]) return false;
  }
  return true;
}

void calx_assign(calx_tensor *tensor, calx_tensor *value)
{
  calx_tensor *in[2] = { tensor, value }, *bad;
  if (cx_op_unfit("assign", in, 2, &bad)) return;
  if (cx_grad_mode() && is_trained_leaf(tensor)) {
    cx_scope_pin(cx_error(CALX_INVALID_ARGUMENT,
                          "assign: the tensor is a leaf that requires a "
                          "gradient; assign in a no-grad region"));
    return;
  }
  const cx_shape *s = cx_tensor_shape(tensor);
  value = cx_tensor_is_weak(value)
              ? cx_weak_as(value, s->dtype, calx_tensor_device(tensor))
              : calx_to_dtype(value, s->dtype);
  if (cx_tensor_poisoned(value)) return;
  if (!broadcasts(cx_tensor_shape(value), s)) {
    cx_scope_pin(cx_error(CALX_INVALID_ARGUMENT,
                          "assign: the value %s does not broadcast to the "
                          "tensor's %s; the tensor keeps its sizes",
                          cx_shape_str(cx_tensor_shape(value)),
                          cx_shape_str(s)));
    return;
  }
  value = calx_expand(value, cx_dims_of(s));
  if (cx_tensor_poisoned(value)) return;
  if (calx_tensor_device(value) != calx_tensor_device(tensor)) {
    cx_scope_pin(cx_error(CALX_INVALID_ARGUMENT,
                          "assign: the value is on %s, the tensor on %s",
                          calx_device_name(calx_tensor_device(value)),
                          calx_device_name(calx_tensor_device(tensor))));
    return;
  }
  // A leaf's gradient comes through an op that has it as its operand.
  if (cx_grad_mode() && is_trained_leaf(value)) {
    value = cx_record(&cx_op_reshape, &value, 1, s);
    if (cx_tensor_poisoned(value)) return;
  }
  cx_tensor_set_value(tensor, value);
}
