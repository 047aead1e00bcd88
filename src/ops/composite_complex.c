// ops/composite_complex: functions of complex numbers, composed of public ops.
#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"

static calx_tensor *not_pairs(const char *op, const calx_tensor *x,
                              const char *wanted)
{
  return cx_ops_invalid("%s: %s, %s is wanted", op,
                        cx_graph_shape_str(cx_lazy_tensor_shape(x)), wanted);
}

static bool is_complex(const calx_tensor *x)
{
  return cx_dtype_is_complex(cx_lazy_tensor_shape(x)->dtype);
}

calx_tensor *calx_polar(calx_tensor *abs, calx_tensor *angle)
{
  CX_OPS_COMPOSITE_COMPLEX("polar");
  calx_tensor *in[2] = { abs, angle }, *bad;
  if (cx_ops_unfit("polar", in, 2, &bad)) return bad;
  const cx_graph_shape *a = cx_lazy_tensor_shape(abs);
  const cx_graph_shape *b = cx_lazy_tensor_shape(angle);
  if (a->dtype != b->dtype || (a->dtype != CALX_F32 && a->dtype != CALX_F64)) {
    return cx_ops_invalid(
        "polar: %s and %s: both f32 or both f64 are wanted; convert with "
        "calx_to_dtype",
        cx_graph_shape_str(a), cx_graph_shape_str(b));
  }
  return calx_complex(calx_mul(abs, calx_cos(angle)),
                      calx_mul(abs, calx_sin(angle)));
}

calx_tensor *calx_view_as_real(calx_tensor *x)
{
  CX_OPS_COMPOSITE_COMPLEX("view_as_real");
  calx_tensor *bad;
  if (cx_ops_unfit("view_as_real", &x, 1, &bad)) return bad;
  if (!is_complex(x)) return not_pairs("view_as_real", x, "a complex tensor");
  calx_tensor *parts[2] = { calx_real(x), calx_imag(x) };
  return calx_stack(parts, 2, -1);
}

calx_tensor *calx_view_as_complex(calx_tensor *x)
{
  CX_OPS_COMPOSITE_COMPLEX("view_as_complex");
  calx_tensor *bad;
  if (cx_ops_unfit("view_as_complex", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if ((s->dtype != CALX_F32 && s->dtype != CALX_F64) || s->rank == 0 ||
      s->dims[s->rank - 1] != 2) {
    return not_pairs("view_as_complex", x,
                     "f32 or f64 with a last dimension of size 2");
  }
  return calx_complex(calx_select(x, -1, 0), calx_select(x, -1, 1));
}

// Of real numbers: 0, pi where they are below 0, NaN of NaN; gradient 0.
static calx_tensor *angle_of_real(calx_tensor *x)
{
  x = cx_lazy_tensor_detached(x);
  if (!cx_dtype_is_float(cx_lazy_tensor_shape(x)->dtype)) {
    x = calx_to_dtype(x, CALX_F32);
  }
  calx_tensor *zero = cx_ops_zeros_like(x);
  calx_tensor *y = calx_where(calx_lt(x, cx_ops_number(0)),
                              cx_ops_plus(zero, cx_ops_number(M_PI)), zero);
  return calx_where(calx_isnan(x), x, y);
}

calx_tensor *calx_angle(calx_tensor *x)
{
  CX_OPS_COMPOSITE_COMPLEX("angle");
  calx_tensor *bad;
  if (cx_ops_unfit("angle", &x, 1, &bad)) return bad;
  if (!is_complex(x)) return angle_of_real(x);
  // 1 in place of 0, so that the gradient there is 0 and not NaN.
  calx_tensor *none = calx_eq(x, cx_ops_number(0));
  calx_tensor *z = calx_where(none, cx_ops_number(1), x);
  calx_tensor *zero = cx_lazy_tensor_detached(x);
  return calx_where(none, calx_atan2(calx_imag(zero), calx_real(zero)),
                    calx_atan2(calx_imag(z), calx_real(z)));
}
