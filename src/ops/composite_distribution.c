// ops/composite_distribution: draws from named distributions, made from uniform
// and normal numbers.
#include <math.h>

#include "calx/creation.h"

#include "base/dtype.h"
#include "ops/composite.h"

// Whether a draw of this type and these options can be made. False: *out is
// what the function returns.
static bool draw_fits(const char *op, calx_dims shape,
                      const calx_create_options *o, calx_tensor **out)
{
  calx_dtype dtype =
      o != NULL && o->dtype != CALX_DTYPE_DEFAULT ? o->dtype : CALX_F32;
  if (!cx_ops_good_shape(op, shape, dtype, o, out)) return false;
  if (cx_dtype_is_float(dtype)) return true;
  *out = cx_ops_invalid("%s: .dtype %s, a floating one is wanted", op,
                        calx_dtype_name(dtype));
  return false;
}

// Uniform in (0, 1], as f64: the logarithm is finite.
static calx_tensor *uniform(calx_dims shape, const calx_create_options *o)
{
  calx_create_options u = { .size = sizeof u,
                            .dtype = CALX_F64,
                            .device = o != NULL ? o->device : NULL };
  return cx_ops_minus(cx_ops_number(1), calx_rand_with(shape, &u));
}

// The draw of the options' type, and a leaf.
static calx_tensor *finish(calx_tensor *x, const calx_create_options *o)
{
  bool typed = o != NULL && o->dtype != CALX_DTYPE_DEFAULT;
  x = calx_to_dtype(x, typed ? o->dtype : CALX_F32);
  if (o == NULL || !o->requires_grad || cx_lazy_tensor_poisoned(x)) return x;
  x = cx_lazy_tensor_detached(x);
  if (!cx_lazy_tensor_poisoned(x)) cx_lazy_tensor_set_requires_grad(x, true);
  return x;
}

calx_tensor *calx_cauchy_with(double median, double sigma, calx_dims shape,
                              const calx_create_options *o)
{
  CX_OPS_COMPOSITE("cauchy");
  calx_tensor *bad;
  if (!draw_fits("cauchy", shape, o, &bad)) return bad;
  if (!(sigma > 0) || !isfinite(median)) {
    return cx_ops_invalid(
        "cauchy: median %g, sigma %g: a sigma above 0 is wanted", median,
        sigma);
  }
  calx_tensor *turn = cx_ops_minus(uniform(shape, o), cx_ops_number(0.5));
  calx_tensor *x = calx_tan(calx_mul(turn, cx_ops_number(M_PI)));
  x = calx_mul(x, calx_scalar(sigma));
  return finish(cx_ops_plus(x, calx_scalar(median)), o);
}

calx_tensor *calx_exponential_with(double lambd, calx_dims shape,
                                   const calx_create_options *o)
{
  CX_OPS_COMPOSITE("exponential");
  calx_tensor *bad;
  if (!draw_fits("exponential", shape, o, &bad)) return bad;
  if (!(lambd > 0)) {
    return cx_ops_invalid("exponential: lambd %g, a rate above 0 is wanted",
                          lambd);
  }
  calx_tensor *x = calx_neg(calx_log(uniform(shape, o)));
  return finish(calx_div(x, calx_scalar(lambd)), o);
}

calx_tensor *calx_geometric_with(double p, calx_dims shape,
                                 const calx_create_options *o)
{
  CX_OPS_COMPOSITE("geometric");
  calx_tensor *bad;
  if (!draw_fits("geometric", shape, o, &bad)) return bad;
  if (!(p > 0 && p < 1)) {
    return cx_ops_invalid("geometric: p %g, a number in (0, 1) is wanted", p);
  }
  calx_tensor *x =
      calx_div(calx_log(uniform(shape, o)), calx_scalar(log1p(-p)));
  return finish(calx_maximum(calx_ceil(x), cx_ops_number(1)), o);
}

calx_tensor *calx_log_normal_with(double mean, double std, calx_dims shape,
                                  const calx_create_options *o)
{
  CX_OPS_COMPOSITE("log_normal");
  calx_tensor *bad;
  if (!draw_fits("log_normal", shape, o, &bad)) return bad;
  if (!(std > 0) || !isfinite(mean)) {
    return cx_ops_invalid(
        "log_normal: mean %g, std %g: a std above 0 is wanted", mean, std);
  }
  calx_create_options n = { .size = sizeof n,
                            .dtype = CALX_F64,
                            .device = o != NULL ? o->device : NULL };
  calx_tensor *x = calx_mul(calx_randn_with(shape, &n), calx_scalar(std));
  return finish(calx_exp(cx_ops_plus(x, calx_scalar(mean))), o);
}

calx_tensor *calx_randint_like_with(calx_tensor *x, int64_t low, int64_t high,
                                    const calx_create_options *o)
{
  CX_OPS_COMPOSITE("randint_like");
  calx_tensor *bad;
  if (cx_ops_unfit("randint_like", &x, 1, &bad)) return bad;
  calx_create_options like = { .size = sizeof like };
  if (o != NULL &&
      !cx_ops_options_take("randint_like", o, &like, sizeof like, &bad)) {
    return bad;
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (like.dtype == CALX_DTYPE_DEFAULT) like.dtype = s->dtype;
  if (like.device == NULL) like.device = calx_tensor_device(x);
  return calx_randint_with(low, high, cx_ops_dims_of(s), &like);
}
