// ops/composite_activation: activation functions, composed of public ops.
//
// Where a branch of calx_where() could overflow, its operand is replaced by 0
// for the elements that take the other branch: an infinity would make the
// gradient 0 * infinity = NaN there. Which branch an element at a limit takes
// decides the gradient there, and follows PyTorch.
#include <math.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/composite.h"

static calx_tensor *number(double value)
{
  return cx_ops_number(value);
}

// The first statements of an activation function of x, and of one with options
// o.
#define BEGIN(op)        \
  CX_OPS_COMPOSITE(#op); \
  if (!cx_ops_floating(#op, &x, 1, &x)) return x
#define BEGIN_WITH(op) \
  BEGIN(op);           \
  CX_OPS_TAKE_OPTIONS(op, o, x)

// x limited to [low, high], with gradient 1 at both ends.
static calx_tensor *limited(calx_tensor *x, double low, double high)
{
  x = calx_where(calx_lt(x, number(low)), number(low), x);
  return calx_where(calx_gt(x, number(high)), number(high), x);
}

// The same with gradient 0 at both ends.
static calx_tensor *cut(calx_tensor *x, calx_tensor *low, calx_tensor *high)
{
  calx_tensor *y = calx_where(calx_le(x, low), low, x);
  return calx_where(calx_ge(x, high), high, y);
}

// x below 0, else 0.
static calx_tensor *negative_part(calx_tensor *x)
{
  return calx_where(calx_gt(x, number(0)), number(0), x);
}

// x, below 0 `below`, which is made of negative_part(x).
static calx_tensor *two_parts(calx_tensor *x, calx_tensor *below)
{
  return calx_where(calx_gt(x, number(0)), x, below);
}

calx_tensor *calx_silu(calx_tensor *x)
{
  BEGIN(silu);
  return calx_mul(x, calx_sigmoid(x));
}

calx_tensor *calx_gelu_with(calx_tensor *x, const calx_gelu_options *o)
{
  BEGIN_WITH(gelu);
  if (o->approximate != CALX_GELU_NONE && o->approximate != CALX_GELU_TANH) {
    return cx_ops_invalid(
        "gelu: %d is no form of it; .approximate is "
        "CALX_GELU_NONE or CALX_GELU_TANH",
        (int)o->approximate);
  }
  calx_tensor *half = calx_mul(x, number(0.5));
  if (o->approximate == CALX_GELU_TANH) {
    calx_tensor *cube = calx_mul(calx_mul(x, x), x);
    calx_tensor *y = cx_ops_plus(x, calx_mul(cube, number(0.044715)));
    y = calx_tanh(calx_mul(y, number(M_2_SQRTPI * M_SQRT1_2)));
    return calx_mul(half, cx_ops_plus(y, number(1)));
  }
  // 1 + erf(y) = erfc(-y), which loses no digits where erf(y) is close to -1.
  return calx_mul(half, calx_erfc(calx_mul(x, number(-M_SQRT1_2))));
}

calx_tensor *calx_elu_with(calx_tensor *x, const calx_elu_options *o)
{
  BEGIN_WITH(elu);
  calx_tensor *below = calx_expm1(negative_part(x));
  return two_parts(x, calx_mul(below, cx_ops_given(o->alpha, 1)));
}

calx_tensor *calx_celu_with(calx_tensor *x, const calx_celu_options *o)
{
  BEGIN_WITH(celu);
  calx_tensor *alpha = cx_ops_given(o->alpha, 1);
  calx_tensor *below = calx_expm1(calx_div(negative_part(x), alpha));
  return two_parts(x, calx_mul(below, alpha));
}

calx_tensor *calx_selu(calx_tensor *x)
{
  static const double alpha = 1.6732632423543772848170429916717;
  static const double scale = 1.0507009873554804934193349852946;
  BEGIN(selu);
  calx_tensor *below = calx_expm1(negative_part(x));
  x = two_parts(x, calx_mul(below, number(alpha)));
  return calx_mul(x, number(scale));
}

calx_tensor *calx_leaky_relu_with(calx_tensor *x,
                                  const calx_leaky_relu_options *o)
{
  BEGIN_WITH(leaky_relu);
  return two_parts(x, calx_mul(x, cx_ops_given(o->negative_slope, 0.01)));
}

calx_tensor *calx_prelu(calx_tensor *x, calx_tensor *weight)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x, &weight);
  CX_OPS_COMPOSITE("prelu");
  calx_tensor *in[2] = { x, weight }, *bad;
  if (cx_ops_unfit("prelu", in, 2, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x),
                       *w = cx_lazy_tensor_shape(weight);
  int64_t n = cx_graph_shape_numel(w), dims[CALX_MAX_RANK];
  if (w->rank > 1 || (n != 1 && (s->rank < 2 || s->dims[1] != n))) {
    return cx_ops_invalid(
        "prelu: the weight is %s, one number or one for each "
        "channel of %s, its dimension 1, is wanted",
        cx_graph_shape_str(w), cx_graph_shape_str(s));
  }
  for (uint32_t i = 0; i < s->rank; i++) dims[i] = i == 1 ? n : 1;
  if (n != 1) weight = calx_reshape(weight, calx_dims_of(dims, s->rank));
  if (n == 1) weight = calx_reshape(weight, calx_dims_of(dims, 0));
  return two_parts(x, calx_mul(x, weight));
}

// The same of integers, which stay integers.
static calx_tensor *cut_integers(const char *op, calx_tensor *x, double low,
                                 double high)
{
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  if (dtype == CALX_BOOL || (cx_dtype_is_unsigned(dtype) && low < 0)) {
    return cx_ops_invalid(
        "%s: %s has no numbers from %g to %g; convert it with calx_to_dtype",
        op, cx_graph_shape_str(cx_lazy_tensor_shape(x)), low, high);
  }
  calx_tensor *limits[2] = { number(trunc(low)), number(trunc(high)) };
  for (int i = 0; i < 2; i++) {
    calx_status *status = cx_ops_check_weak(op, limits[i], dtype);
    if (status != NULL) return cx_lazy_tensor_poison(status);
    limits[i] = cx_ops_weak_as(limits[i], dtype, NULL);
  }
  return calx_minimum(calx_maximum(x, limits[0]), limits[1]);
}

static bool is_whole(const calx_tensor *x)
{
  return !cx_dtype_is_float(cx_lazy_tensor_shape(x)->dtype);
}

calx_tensor *calx_hardtanh_with(calx_tensor *x, const calx_hardtanh_options *o)
{
  CX_OPS_COMPOSITE("hardtanh");
  calx_tensor *bad;
  if (cx_ops_unfit("hardtanh", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(hardtanh, o, bad);
  if (is_whole(x)) {
    return cut_integers("hardtanh", x,
                        cx_is_default(o->min_val) ? -1 : o->min_val,
                        cx_is_default(o->max_val) ? 1 : o->max_val);
  }
  return cut(x, cx_ops_given(o->min_val, -1), cx_ops_given(o->max_val, 1));
}

calx_tensor *calx_relu6(calx_tensor *x)
{
  CX_OPS_COMPOSITE("relu6");
  calx_tensor *bad;
  if (cx_ops_unfit("relu6", &x, 1, &bad)) return bad;
  if (is_whole(x)) return cut_integers("relu6", x, 0, 6);
  return cut(x, number(0), number(6));
}

calx_tensor *calx_hardsigmoid(calx_tensor *x)
{
  BEGIN(hardsigmoid);
  x = cut(cx_ops_plus(x, number(3)), number(0), number(6));
  return calx_mul(x, number(1.0 / 6));
}

calx_tensor *calx_hardswish(calx_tensor *x)
{
  BEGIN(hardswish);
  calx_tensor *y = limited(cx_ops_plus(x, number(3)), 0, 6);
  return calx_mul(x, calx_mul(y, number(1.0 / 6)));
}

static calx_tensor *softplus(calx_tensor *x, calx_tensor *beta,
                             calx_tensor *threshold)
{
  calx_tensor *z = calx_mul(x, beta);
  calx_tensor *large = calx_gt(z, threshold);
  z = calx_log1p(calx_exp(calx_where(large, number(0), z)));
  return calx_where(large, x, calx_div(z, beta));
}

calx_tensor *calx_softplus_with(calx_tensor *x, const calx_softplus_options *o)
{
  BEGIN_WITH(softplus);
  return softplus(x, cx_ops_given(o->beta, 1), cx_ops_given(o->threshold, 20));
}

calx_tensor *calx_mish(calx_tensor *x)
{
  BEGIN(mish);
  return calx_mul(x, calx_tanh(softplus(x, number(1), number(20))));
}

calx_tensor *calx_logsigmoid(calx_tensor *x)
{
  BEGIN(logsigmoid);
  calx_tensor *rest = calx_log1p(calx_exp(calx_neg(calx_abs(x))));
  return cx_ops_minus(calx_minimum(x, number(0)), rest);
}

calx_tensor *calx_softsign(calx_tensor *x)
{
  BEGIN(softsign);
  return calx_div(x, cx_ops_plus(calx_abs(x), number(1)));
}

calx_tensor *calx_tanhshrink(calx_tensor *x)
{
  BEGIN(tanhshrink);
  return cx_ops_minus(x, calx_tanh(x));
}

calx_tensor *calx_hardshrink_with(calx_tensor *x,
                                  const calx_hardshrink_options *o)
{
  BEGIN_WITH(hardshrink);
  calx_tensor *small = calx_le(calx_abs(x), cx_ops_given(o->lambd, 0.5));
  return calx_where(small, number(0), x);
}

calx_tensor *calx_softshrink_with(calx_tensor *x,
                                  const calx_softshrink_options *o)
{
  BEGIN_WITH(softshrink);
  calx_tensor *lambd = cx_ops_given(o->lambd, 0.5);
  calx_tensor *below =
      calx_where(calx_lt(x, calx_neg(lambd)), cx_ops_plus(x, lambd), number(0));
  return calx_where(calx_gt(x, lambd), cx_ops_minus(x, lambd), below);
}

calx_tensor *calx_threshold(calx_tensor *x, calx_tensor *threshold,
                            calx_tensor *value)
{
  CX_OPS_COMPOSITE("threshold");
  return calx_where(calx_gt(x, threshold), x, value);
}

calx_tensor *calx_glu(calx_tensor *x, int dim)
{
  BEGIN(glu);
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  uint32_t d;
  if (s->rank == 0 || !cx_ops_dim(dim, s->rank, &d)) {
    return cx_ops_no_dim("glu", "dim", dim, s->rank, s);
  }
  int64_t n = s->dims[d];
  if (n % 2 != 0) {
    return cx_ops_invalid("glu: dimension %u of %s is not even", d,
                          cx_graph_shape_str(s));
  }
  calx_tensor *b = calx_slice(x, (int)d, n / 2, n, 1);
  return calx_mul(calx_slice(x, (int)d, 0, n / 2, 1), calx_sigmoid(b));
}

calx_tensor *calx_softmin(calx_tensor *x, int dim)
{
  CX_OPS_COMPOSITE("softmin");
  return calx_softmax(calx_neg(x), dim);
}
