// ops/factor: see factor.h.
#include "ops/factor.h"

#include "calx/creation.h"

bool cx_ops_is_matrix(const char *op, calx_tensor *x, bool square,
                      calx_tensor **out)
{
  if (cx_ops_unfit(op, &x, 1, out)) return false;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const bool wide = s->dtype == CALX_F32 || s->dtype == CALX_F64;
  if (wide && s->rank >= 2 &&
      (!square || s->dims[s->rank - 2] == s->dims[s->rank - 1])) {
    return true;
  }
  *out = cx_ops_invalid("%s: %s, %smatrices of f32 or f64 are wanted", op,
                        cx_graph_shape_str(s), square ? "square " : "");
  return false;
}

calx_tensor *cx_ops_eye(calx_tensor *x, int64_t n, int64_t m)
{
  if (cx_lazy_tensor_poisoned(x)) return x;
  calx_create_options o = { .size = sizeof o,
                            .dtype = cx_lazy_tensor_shape(x)->dtype,
                            .device = calx_tensor_device(x) };
  return calx_eye_with(n, m, &o);
}

calx_tensor *cx_ops_flat_batch(calx_tensor *x)
{
  if (cx_lazy_tensor_poisoned(x)) return x;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  cx_graph_shape flat = { .dtype = s->dtype, .rank = 3, .dims = { 1 } };
  for (uint32_t i = 0; i + 2 < s->rank; i++) flat.dims[0] *= s->dims[i];
  flat.dims[1] = s->dims[s->rank - 2];
  flat.dims[2] = s->dims[s->rank - 1];
  return cx_ops_reshape_to(x, &flat);
}

calx_tensor *cx_ops_unflat_batch(calx_tensor *y, const cx_graph_shape *x)
{
  if (cx_lazy_tensor_poisoned(y)) return y;
  const cx_graph_shape *s = cx_lazy_tensor_shape(y);
  cx_graph_shape to = *x;
  to.rank = x->rank - 2;
  for (uint32_t i = 1; i < s->rank; i++) to.dims[to.rank++] = s->dims[i];
  return cx_ops_reshape_to(y, &to);
}
