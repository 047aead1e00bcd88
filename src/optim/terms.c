// optim/terms: what the formulas of several optimisers have in common.
#include "calx/collective.h"
#include "lazy/lazy.h"
#include "ops/ops.h"
#include "optim/optimizer.h"
#include "world/world.h"

// calx_scalar() would not do: a weak number is recorded again for each operand
// whose type is not f32.
calx_tensor *cx_optim_number(const calx_optimizer *opt, calx_dtype dtype,
                             double value)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = dtype,
                            .device = opt->device };
  return calx_full_with(CALX_SCALAR, value, &o);
}

calx_tensor *cx_optim_number_or_none(const calx_optimizer *opt, calx_dtype d,
                                     double x)
{
  return x != 0 ? cx_optim_number(opt, d, x) : NULL;
}

calx_tensor *cx_optim_add_scaled(calx_tensor *x, calx_tensor *by,
                                 calx_tensor *y)
{
  calx_tensor *part = by != NULL ? calx_mul(y, by) : y;
  return x != NULL ? calx_add_with(x, part, NULL) : part;
}

cx_optim_lerp_weight cx_optim_lerp_by(const cx_optim_group *g, calx_dtype d,
                                      double rest)
{
  cx_optim_lerp_weight w = { .from_end = !(rest < 0.5) };
  w.by = cx_optim_number(g->opt, d, w.from_end ? 1 - rest : rest);
  return w;
}

calx_tensor *cx_optim_lerp(cx_optim_lerp_weight w, calx_tensor *average,
                           calx_tensor *x)
{
  calx_tensor *way = average != NULL ? calx_sub_with(x, average, NULL) : x;
  if (w.from_end) return calx_sub_with(x, calx_mul(way, w.by), NULL);
  return cx_optim_add_scaled(average, w.by, way);
}

calx_tensor *cx_optim_square_average(calx_tensor *by, calx_tensor *rest,
                                     calx_tensor *x, calx_tensor *y)
{
  calx_tensor *fresh = calx_mul(calx_mul(y, y), rest);
  return x != NULL ? calx_add_with(calx_mul(x, by), fresh, NULL) : fresh;
}

calx_tensor *cx_optim_sum(const cx_optim_group *g, calx_tensor *x)
{
  calx_tensor *sum = calx_sum_with(x, NULL);
  if (!g->opt->sharded || cx_world_size(cx_world_self()) <= 1) return sum;
  return calx_all_reduce_with(sum, CALX_REDUCE_SUM, NULL);
}

calx_tensor *cx_optim_norm(const cx_optim_group *g, calx_tensor *x)
{
  return calx_sqrt(cx_optim_sum(g, calx_mul(x, x)));
}

calx_tensor *cx_optim_ratio(const cx_optim_group *g, calx_tensor *x,
                            calx_tensor *y, calx_tensor *below)
{
  calx_dtype d = calx_tensor_dtype(x);
  calx_tensor *zero = cx_optim_number(g->opt, d, 0);
  calx_tensor *both = calx_gt(calx_minimum(x, y), zero);
  calx_tensor *ratio = calx_div(x, below != NULL ? below : y);
  return calx_where(both, ratio, cx_optim_number(g->opt, d, 1));
}
