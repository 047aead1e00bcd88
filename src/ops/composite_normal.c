// ops/composite_normal: the logarithm and the inverse of the normal
// distribution.
#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"

// Terms of the asymptotic series, which begins at FAR: the last one is 3e-16.
enum { TERMS = 18, FAR = 7, NEWTON_STEPS = 3 };

static calx_tensor *number(double value)
{
  return cx_ops_number(value);
}

// ---- log_ndtr ---------------------------------------------------------------

// log(erfc(t) / 2) of t >= FAR: e^(-t^2) / (2 t sqrt(pi)) times
// 1 - 1/(2 t^2) (1 - 3/(2 t^2) (1 - …)).
static calx_tensor *far_log(calx_tensor *t)
{
  calx_tensor *square = calx_square(t), *sum = number(1);
  calx_tensor *by = calx_reciprocal(cx_ops_plus(square, square));
  for (int n = TERMS; n >= 1; n--) {
    sum = calx_mul(calx_mul(by, number(2 * n - 1)), sum);
    sum = cx_ops_minus(number(1), sum);
  }
  calx_tensor *y = calx_neg(calx_log(calx_mul(t, number(2 * sqrt(M_PI)))));
  return cx_ops_plus(cx_ops_minus(y, square), calx_log(sum));
}

// Of f32 or f64. What another branch computes is of a number in its range, so
// that its gradient is finite.
static calx_tensor *log_of(calx_tensor *x)
{
  calx_tensor *t = calx_mul(x, number(-M_SQRT1_2));
  calx_tensor *is_far = calx_gt(t, number(FAR));
  calx_tensor *is_low = calx_gt(t, number(M_SQRT1_2));
  calx_tensor *far = far_log(calx_where(is_far, t, number(FAR)));
  calx_tensor *low = calx_where(is_low, t, number(1));
  low = calx_where(is_far, number(FAR), low);
  low = calx_log(calx_mul(calx_erfc(low), number(0.5)));
  calx_tensor *high = calx_neg(calx_where(is_low, number(0), t));
  high = calx_log1p(calx_mul(calx_erfc(high), number(-0.5)));
  return calx_where(is_far, far, calx_where(is_low, low, high));
}

// x as f32 or f64. False: *out is what the function returns.
static bool take(const char *op, calx_tensor **x, calx_dtype *dtype,
                 calx_tensor **out)
{
  if (!cx_ops_floating(op, x, 1, out)) return false;
  *dtype = cx_lazy_tensor_shape(*x)->dtype;
  if (calx_dtype_size(*dtype) < 4) *x = calx_to_dtype(*x, CALX_F32);
  return true;
}

calx_tensor *calx_log_ndtr(calx_tensor *x)
{
  CX_OPS_COMPOSITE("log_ndtr");
  calx_tensor *bad;
  calx_dtype dtype;
  if (!take("log_ndtr", &x, &dtype, &bad)) return bad;
  return calx_to_dtype(log_of(x), dtype);
}

// ---- ndtri ------------------------------------------------------------------

// Operands: x and the result, which was computed without gradient.
static calx_status *infer_ndtri(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 1);
  return NULL;
}

static void emit_ndtri(cx_graph_emit *e)
{
  e->out[0] = e->in[1];
}

// One over the density at the result.
static void grad_ndtri(cx_lazy_tape *t)
{
  calx_tensor *y = cx_lazy_tape_out(t, 0);
  calx_tensor *by = calx_exp(calx_mul(calx_square(y), number(0.5)));
  t->in_grads[0] =
      calx_mul(t->out_grads[0], calx_mul(by, number(sqrt(2 * M_PI))));
}

CX_OPS_DEFINE(ndtri, .infer = infer_ndtri, .grad = grad_ndtri,
              .emit = emit_ndtri)

// Of p in (0, 1/2]: Newton's steps on the logarithm, which is concave, from
// erfinv, or in the tail from the first terms of its asymptotic expansion.
static calx_tensor *lower_half(calx_tensor *p)
{
  calx_tensor *log_p = calx_log(p);
  calx_tensor *w = calx_sqrt(calx_mul(log_p, number(-2)));
  w = calx_maximum(w, number(1));
  calx_tensor *less = cx_ops_plus(calx_log(w), number(0.5 * log(2 * M_PI)));
  calx_tensor *tail = cx_ops_minus(calx_div(less, w), w);
  calx_tensor *middle = cx_ops_minus(cx_ops_plus(p, p), number(1));
  middle = calx_mul(calx_erfinv(middle), number(M_SQRT2));
  calx_tensor *x = calx_where(calx_gt(p, number(0.02)), middle, tail);
  for (int i = 0; i < NEWTON_STEPS; i++) {
    calx_tensor *log_x = log_of(x);
    calx_tensor *slope = calx_mul(calx_square(x), number(-0.5));
    slope =
        cx_ops_minus(cx_ops_minus(slope, log_x), number(0.5 * log(2 * M_PI)));
    x = cx_ops_minus(
        x, calx_mul(cx_ops_minus(log_x, log_p), calx_exp(calx_neg(slope))));
  }
  return x;
}

calx_tensor *calx_ndtri(calx_tensor *x)
{
  CX_OPS_COMPOSITE("ndtri");
  calx_tensor *bad;
  calx_dtype dtype;
  if (!take("ndtri", &x, &dtype, &bad)) return bad;
  cx_lazy_no_grad_begin();
  calx_tensor *p = cx_lazy_tensor_detached(x), *half = number(0.5);
  calx_tensor *is_low = calx_le(p, half);
  calx_tensor *less = calx_where(is_low, p, cx_ops_minus(number(1), p));
  calx_tensor *y = lower_half(calx_where(calx_gt(less, number(0)), less, half));
  calx_tensor *end = calx_where(calx_eq(less, number(0)),
                                number(-(double)INFINITY), number((double)NAN));
  y = calx_where(calx_gt(less, number(0)), y, end);
  calx_tensor *in[2] = { x, calx_where(is_low, y, calx_neg(y)) };
  cx_lazy_no_grad_end();
  if (cx_lazy_tensor_poisoned(in[1])) return in[1];
  return calx_to_dtype(cx_ops_record(&cx_ops_ndtri, in, 2, NULL), dtype);
}
