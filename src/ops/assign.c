// ops/assign: calx_assign: a handle takes another value. No tensor is a view of
// another, so no other handle changes.
#include "ops/ops.h"

static bool is_trained_leaf(const calx_tensor *t)
{
  return cx_lazy_tensor_is_leaf(t) && cx_lazy_tensor_requires_grad(t);
}

static bool broadcasts(const cx_graph_shape *from, const cx_graph_shape *to)
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
  if (cx_ops_unfit("assign", in, 2, &bad)) return;
  if (cx_lazy_grad_mode() && is_trained_leaf(tensor)) {
    cx_lazy_scope_pin(cx_invalid(
        "assign: the tensor is a leaf that requires a gradient; assign in a "
        "no-grad region"));
    return;
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(tensor);
  calx_status *status = cx_ops_check_weak("assign", value, s->dtype);
  if (status != NULL) {
    cx_lazy_scope_pin(status);
    return;
  }
  value = cx_lazy_tensor_is(value, CX_LAZY_T_WEAK)
              ? cx_ops_weak_as(value, s->dtype, calx_tensor_device(tensor))
              : calx_to_dtype(value, s->dtype);
  if (cx_lazy_tensor_poisoned(value)) return;
  if (!broadcasts(cx_lazy_tensor_shape(value), s)) {
    cx_lazy_scope_pin(cx_invalid(
        "assign: the value %s does not broadcast to the tensor's %s; the "
        "tensor keeps its sizes",
        cx_graph_shape_str(cx_lazy_tensor_shape(value)),
        cx_graph_shape_str(s)));
    return;
  }
  value = calx_expand(value, cx_ops_dims_of(s));
  if (cx_lazy_tensor_poisoned(value)) return;
  if (calx_tensor_device(value) != calx_tensor_device(tensor)) {
    cx_lazy_scope_pin(cx_invalid("assign: the value is on %s, the tensor on %s",
                                 calx_device_name(calx_tensor_device(value)),
                                 calx_device_name(calx_tensor_device(tensor))));
    return;
  }
  // A gradient reaches a leaf only through an op that has the leaf as operand.
  if (cx_lazy_grad_mode() && is_trained_leaf(value)) {
    value = cx_ops_record(&cx_ops_reshape, &value, 1, s);
    if (cx_lazy_tensor_poisoned(value)) return;
  }
  cx_lazy_tensor_set_value(tensor, value);
}
