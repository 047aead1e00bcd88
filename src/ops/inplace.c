// ops/inplace: functions of an underscore: a value is computed, and the tensor
// takes it.
#include "base/dtype.h"
#include "ops/composite.h"

// Whether numbers of `from` may become `to` without being asked: not floats
// integers, not complex numbers real ones, and nothing but bool bool.
static bool may_become(calx_dtype from, calx_dtype to)
{
  if (cx_dtype_is_complex(from) || cx_dtype_is_complex(to)) {
    return cx_dtype_is_complex(to);
  }
  if (cx_dtype_is_float(to)) return true;
  if (cx_dtype_is_float(from)) return false;
  return to != CALX_BOOL || from == CALX_BOOL;
}

static calx_tensor *take(const char *op, calx_tensor *tensor,
                         calx_tensor *value)
{
  if (value == NULL || cx_lazy_tensor_poisoned(value)) return tensor;
  const cx_graph_shape *to = cx_lazy_tensor_shape(tensor);
  const cx_graph_shape *from = cx_lazy_tensor_shape(value);
  if (may_become(from->dtype, to->dtype)) {
    calx_assign(tensor, value);
  } else {
    cx_lazy_scope_pin(
        cx_invalid("%s: the result is %s, which %s does not take without a "
                   "calx_to_dtype",
                   op, cx_graph_shape_str(from), cx_graph_shape_str(to)));
  }
  return tensor;
}

calx_tensor *calx_copy_(calx_tensor *tensor, calx_tensor *value)
{
  CX_OPS_COMPOSITE_COMPLEX("copy_");
  calx_assign(tensor, value);
  return tensor;
}

calx_tensor *calx_fill_(calx_tensor *tensor, calx_tensor *value)
{
  CX_OPS_COMPOSITE_COMPLEX("fill_");
  calx_tensor *in[2] = { tensor, value }, *bad;
  if (cx_ops_unfit("fill_", in, 2, &bad)) return tensor;
  if (cx_lazy_tensor_shape(value)->rank == 0) {
    calx_assign(tensor, value);
  } else {
    cx_ops_invalid("fill_: the value is %s, rank 0 is wanted",
                   cx_graph_shape_str(cx_lazy_tensor_shape(value)));
  }
  return tensor;
}

calx_tensor *calx_zero_(calx_tensor *tensor)
{
  CX_OPS_COMPOSITE_COMPLEX("zero_");
  calx_assign(tensor, cx_ops_number(0));
  return tensor;
}

calx_tensor *calx_add__with(calx_tensor *tensor, calx_tensor *y,
                            const calx_add_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("add_");
  return take("add_", tensor, calx_add_with(tensor, y, o));
}

calx_tensor *calx_sub__with(calx_tensor *tensor, calx_tensor *y,
                            const calx_add_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("sub_");
  return take("sub_", tensor, calx_sub_with(tensor, y, o));
}

calx_tensor *calx_mul_(calx_tensor *tensor, calx_tensor *y)
{
  CX_OPS_COMPOSITE_COMPLEX("mul_");
  return take("mul_", tensor, calx_mul(tensor, y));
}

calx_tensor *calx_div__with(calx_tensor *tensor, calx_tensor *y,
                            const calx_div_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("div_");
  return take("div_", tensor, calx_div_with(tensor, y, o));
}

calx_tensor *calx_clamp_(calx_tensor *tensor, calx_tensor *min,
                         calx_tensor *max)
{
  CX_OPS_COMPOSITE("clamp_");
  return take("clamp_", tensor, calx_clamp(tensor, min, max));
}
