// ops/composite_window: windows of signal processing, composed of public ops.
#include <math.h>

#include "calx/creation.h"

#include "base/dtype.h"
#include "ops/composite.h"

static calx_tensor *number(double value)
{
  return cx_ops_number(value);
}

static double given(double option, double or_else)
{
  return cx_is_default(option) ? or_else : option;
}

// The numbers of the samples. A periodic window is one of n + 1 samples less
// the last; *last is the number of that one, 0 of a single sample. False: *out
// is what the function returns.
static bool samples(const char *op, int64_t n, const calx_window_options *o,
                    double *last, calx_tensor **out)
{
  calx_create_options wide = { .size = sizeof wide, .device = o->device };
  calx_dtype dtype = o->dtype != CALX_DTYPE_DEFAULT ? o->dtype : CALX_F32;
  if (!cx_ops_good_shape(op, calx_dims_of(&n, 1), dtype, &wide, out)) {
    return false;
  }
  if (!cx_dtype_is_float(dtype)) {
    *out = cx_ops_invalid("%s: .dtype %s, a floating one is wanted", op,
                          calx_dtype_name(dtype));
    return false;
  }
  *last = n == 1 ? 0 : (double)(o->symmetric ? n - 1 : n);
  wide.dtype = dtype == CALX_F64 ? CALX_F64 : CALX_F32;
  *out = calx_arange_with(0, (double)n, 1, &wide);
  return true;
}

// The window of the options' type, and a leaf. A single sample is 1.
static calx_tensor *finish(calx_tensor *w, double last,
                           const calx_window_options *o)
{
  if (last == 0) w = calx_eq(w, w);
  w = calx_to_dtype(w, o->dtype != CALX_DTYPE_DEFAULT ? o->dtype : CALX_F32);
  if (!o->requires_grad || cx_lazy_tensor_poisoned(w)) return w;
  w = cx_lazy_tensor_detached(w);
  if (!cx_lazy_tensor_poisoned(w)) cx_lazy_tensor_set_requires_grad(w, true);
  return w;
}

// cos(2 pi k / last)
static calx_tensor *wave(calx_tensor *at, double last)
{
  double turn = last != 0 ? 2 * M_PI / last : 0;
  return calx_cos(calx_mul(at, number(turn)));
}

// a - b cos(2 pi k / last)
static calx_tensor *raised_cosine(calx_tensor *at, double last, double a,
                                  double b)
{
  return cx_ops_minus(number(a), calx_mul(wave(at, last), number(b)));
}

calx_tensor *calx_bartlett_window_with(int64_t n, const calx_window_options *o)
{
  CX_OPS_COMPOSITE("bartlett_window");
  calx_tensor *at;
  double last;
  CX_OPS_TAKE_OPTIONS(window, o, at);
  if (!samples("bartlett_window", n, o, &last, &at)) return at;
  double half = last != 0 ? last / 2 : 1;
  at = calx_abs(cx_ops_minus(calx_div(at, number(half)), number(1)));
  return finish(cx_ops_minus(number(1), at), last, o);
}

calx_tensor *calx_hann_window_with(int64_t n, const calx_window_options *o)
{
  CX_OPS_COMPOSITE("hann_window");
  calx_tensor *at;
  double last;
  CX_OPS_TAKE_OPTIONS(window, o, at);
  if (!samples("hann_window", n, o, &last, &at)) return at;
  return finish(raised_cosine(at, last, 0.5, 0.5), last, o);
}

calx_tensor *calx_hamming_window_with(int64_t n, const calx_window_options *o)
{
  CX_OPS_COMPOSITE("hamming_window");
  calx_tensor *at;
  double last;
  CX_OPS_TAKE_OPTIONS(window, o, at);
  if (!samples("hamming_window", n, o, &last, &at)) return at;
  return finish(
      raised_cosine(at, last, given(o->alpha, 0.54), given(o->beta, 0.46)),
      last, o);
}

calx_tensor *calx_blackman_window_with(int64_t n, const calx_window_options *o)
{
  CX_OPS_COMPOSITE("blackman_window");
  calx_tensor *at;
  double last;
  CX_OPS_TAKE_OPTIONS(window, o, at);
  if (!samples("blackman_window", n, o, &last, &at)) return at;
  calx_tensor *w = raised_cosine(at, last, 0.42, 0.5);
  calx_tensor *fast = calx_mul(wave(at, last / 2), number(0.08));
  return finish(cx_ops_plus(w, fast), last, o);
}

calx_tensor *calx_kaiser_window_with(int64_t n, const calx_window_options *o)
{
  CX_OPS_COMPOSITE("kaiser_window");
  calx_tensor *at;
  double last;
  CX_OPS_TAKE_OPTIONS(window, o, at);
  if (!samples("kaiser_window", n, o, &last, &at)) return at;
  double beta = given(o->beta, 12), half = last != 0 ? last / 2 : 1;
  calx_tensor *from = cx_ops_minus(calx_div(at, number(half)), number(1));
  calx_tensor *rest = cx_ops_minus(number(1), calx_square(from));
  rest = calx_sqrt(calx_maximum(rest, number(0)));
  // I0(b r) / I0(b), without the overflow of either.
  calx_tensor *shape = calx_i0e(calx_mul(rest, number(beta)));
  calx_tensor *whole =
      calx_i0e(cx_ops_plus(calx_mul(rest, number(0)), number(beta)));
  calx_tensor *fall =
      calx_exp(calx_mul(cx_ops_minus(rest, number(1)), number(fabs(beta))));
  return finish(calx_mul(calx_div(shape, whole), fall), last, o);
}
