// ops/composite_poisson: draws from Poisson's distribution.
#include <math.h>

#include "calx/creation.h"

#include "base/dtype.h"
#include "ops/composite.h"

// Means below SMALL are drawn by the inverse of the distribution, of which
// TERMS numbers are tried: beyond them lies 1e-27. Others by rejection: one
// draw is accepted with a probability above 0.78, so that ROUNDS of them fail
// with 3e-11.
enum { SMALL = 10, TERMS = 64, ROUNDS = 16 };

static calx_tensor *number(double value)
{
  return cx_ops_number(value);
}

// Uniform in [0, 1), f64.
static calx_tensor *uniform_like(calx_tensor *x)
{
  calx_create_options u = { .size = sizeof u,
                            .dtype = CALX_F64,
                            .device = calx_tensor_device(x) };
  return calx_rand_with(calx_tensor_shape(x), &u);
}

// How many of the sums of probabilities the draw reaches.
static calx_tensor *inverse_of(calx_tensor *mean)
{
  calx_tensor *u = uniform_like(mean), *p = calx_exp(calx_neg(mean)), *sum = p;
  calx_tensor *count = calx_to_dtype(calx_ge(u, sum), CALX_F64);
  for (int k = 1; k < TERMS; k++) {
    p = calx_mul(p, calx_mul(mean, number(1.0 / k)));
    sum = cx_ops_plus(sum, p);
    count = cx_ops_plus(count, calx_to_dtype(calx_ge(u, sum), CALX_F64));
  }
  return count;
}

typedef struct rejection {
  calx_tensor *mean, *log_mean, *a, *b, *log_alpha, *v_r;
} rejection;

static rejection rejection_of(calx_tensor *mean)
{
  rejection r = { .mean = mean, .log_mean = calx_log(mean) };
  r.b = cx_ops_plus(calx_mul(calx_sqrt(mean), number(2.53)), number(0.931));
  r.a = cx_ops_minus(calx_mul(r.b, number(0.02483)), number(0.059));
  calx_tensor *by = calx_reciprocal(cx_ops_minus(r.b, number(3.4)));
  r.log_alpha =
      calx_log(cx_ops_plus(calx_mul(by, number(1.1328)), number(1.1239)));
  by = calx_reciprocal(cx_ops_minus(r.b, number(2)));
  r.v_r = cx_ops_minus(number(0.9277), calx_mul(by, number(3.6224)));
  return r;
}

// One draw, and whether it is accepted.
static calx_tensor *drawn(const rejection *r, calx_tensor **accepted)
{
  calx_tensor *u = cx_ops_minus(uniform_like(r->mean), number(0.5));
  calx_tensor *v = uniform_like(r->mean);
  calx_tensor *us = cx_ops_minus(number(0.5), calx_abs(u));
  calx_tensor *k = calx_div(cx_ops_plus(r->a, r->a), us);
  k = calx_mul(cx_ops_plus(k, r->b), u);
  k = calx_floor(cx_ops_plus(cx_ops_plus(k, r->mean), number(0.43)));
  calx_tensor *at_once =
      calx_logical_and(calx_ge(us, number(0.07)), calx_le(v, r->v_r));
  calx_tensor *never =
      calx_logical_and(calx_lt(us, number(0.013)), calx_gt(v, us));
  never = calx_logical_or(never, calx_lt(k, number(0)));
  calx_tensor *hat =
      calx_log(cx_ops_plus(calx_div(r->a, calx_square(us)), r->b));
  hat = cx_ops_minus(cx_ops_plus(calx_log(v), r->log_alpha), hat);
  calx_tensor *density = cx_ops_minus(calx_mul(k, r->log_mean), r->mean);
  density = cx_ops_minus(density, calx_lgamma(cx_ops_plus(k, number(1))));
  calx_tensor *below =
      calx_logical_and(calx_le(hat, density), calx_logical_not(never));
  *accepted = calx_logical_or(at_once, below);
  return k;
}

static calx_tensor *rejected_of(calx_tensor *mean)
{
  const rejection r = rejection_of(mean);
  calx_tensor *result = calx_floor(mean);
  for (int i = 0; i < ROUNDS; i++) {
    calx_tensor *accepted, *k = drawn(&r, &accepted);
    result = calx_where(accepted, k, result);
  }
  return result;
}

calx_tensor *calx_poisson(calx_tensor *x)
{
  CX_OPS_COMPOSITE("poisson");
  calx_tensor *bad;
  if (cx_ops_unfit("poisson", &x, 1, &bad)) return bad;
  const calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  if (!cx_dtype_is_float(dtype)) {
    return cx_ops_invalid("poisson: %s, means of a floating type are wanted",
                          cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  cx_lazy_no_grad_begin();
  x = calx_to_dtype(cx_lazy_tensor_detached(x), CALX_F64);
  calx_tensor *small = calx_lt(x, number(SMALL));
  calx_tensor *good = calx_logical_and(calx_ge(x, number(0)), calx_isfinite(x));
  calx_tensor *low = calx_where(calx_logical_and(small, good), x, number(0));
  calx_tensor *high = calx_where(calx_logical_or(small, calx_logical_not(good)),
                                 number(SMALL), x);
  calx_tensor *y = calx_where(small, inverse_of(low), rejected_of(high));
  y = calx_to_dtype(calx_where(good, y, number((double)NAN)), dtype);
  cx_lazy_no_grad_end();
  return y;
}
