// ops/composite_draw: dropout of channels, slopes and choices that are drawn,
// composed of public ops.
#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"

static calx_tensor *number(double value)
{
  return cx_ops_number(value);
}

static calx_create_options like(const calx_tensor *x, calx_dtype dtype)
{
  return (calx_create_options){ .size = sizeof(calx_create_options),
                                .dtype = dtype,
                                .device = calx_tensor_device(x) };
}

// What one draw decides: an element, or the elements behind the first `kept`
// dimensions.
static calx_dims draw_shape(const calx_tensor *x, uint32_t kept)
{
  calx_dims shape = calx_tensor_shape(x);
  for (size_t i = kept; i < shape.count; i++) shape.values[i] = 1;
  return shape;
}

// NULL: x is floating and can be asked, and *out_p is the probability.
static calx_tensor *check(const char *op, calx_tensor *x,
                          const calx_feature_dropout_options *o, double *out_p)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op, &x, 1, &bad)) return bad;
  *out_p = cx_is_default(o->p) ? 0.5 : o->p;
  if (!(*out_p >= 0 && *out_p <= 1)) {
    return cx_ops_invalid("%s: the probability %g is not in [0, 1]", op, o->p);
  }
  if (cx_dtype_is_float(cx_lazy_tensor_shape(x)->dtype)) return NULL;
  return cx_ops_invalid("%s: %s, a floating operand is wanted", op,
                        cx_graph_shape_str(cx_lazy_tensor_shape(x)));
}

static calx_tensor *drop_channels(const char *op, uint32_t n, calx_tensor *x,
                                  const calx_feature_dropout_options *o)
{
  double p;
  calx_tensor *bad = check(op, x, o, &p);
  if (bad != NULL) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank != n + 1 && s->rank != n + 2) {
    return cx_ops_invalid(
        "%s: %s, %u spatial dimensions behind N and C, or C, "
        "are wanted",
        op, cx_graph_shape_str(s), n);
  }
  if (o->eval || p == 0) return x;
  calx_create_options create = like(x, s->dtype);
  calx_dropout_options drop = { .size = sizeof drop, .p = p };
  calx_dims shape = draw_shape(x, s->rank - n);
  return calx_mul(x, calx_dropout_with(calx_ones_with(shape, &create), &drop));
}

#define DROPOUT(n)                                                            \
  calx_tensor *calx_dropout##n##d_with(calx_tensor *x,                        \
                                       const calx_feature_dropout_options *o) \
  {                                                                           \
    CX_OPS_COMPOSITE("dropout" #n "d");                                       \
    CX_OPS_TAKE_OPTIONS(feature_dropout, o, x);                               \
    return drop_channels("dropout" #n "d", n, x, o);                          \
  }
DROPOUT(1)
DROPOUT(2)
DROPOUT(3)

// a (x keep + alpha' (1 - keep)) + b, with alpha' selu's limit at -infinity and
// a, b such that mean and variance stay. Of the first `kept` dimensions each
// index has a draw of its own; 0: all.
static calx_tensor *drop_alpha(const char *op, uint32_t kept, calx_tensor *x,
                               const calx_feature_dropout_options *o)
{
  static const double alpha = -1.7580993408473766;
  double p;
  calx_tensor *bad = check(op, x, o, &p);
  if (bad != NULL) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank < kept) {
    return cx_ops_invalid("%s: %s, (N, C, …) is wanted", op,
                          cx_graph_shape_str(s));
  }
  if (o->eval || p == 0) return x;
  if (p == 1) return calx_mul(x, number(0));
  double a = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
  calx_create_options create = like(x, CALX_F32);
  calx_dims shape = draw_shape(x, kept != 0 ? kept : s->rank);
  calx_tensor *keep = calx_ge(calx_rand_with(shape, &create), calx_scalar(p));
  calx_tensor *y = calx_where(keep, x, number(alpha));
  y = calx_mul(y, calx_scalar(a));
  return cx_ops_plus(y, calx_scalar(-a * alpha * p));
}

calx_tensor *calx_alpha_dropout_with(calx_tensor *x,
                                     const calx_feature_dropout_options *o)
{
  CX_OPS_COMPOSITE("alpha_dropout");
  CX_OPS_TAKE_OPTIONS(feature_dropout, o, x);
  return drop_alpha("alpha_dropout", 0, x, o);
}

calx_tensor *calx_feature_alpha_dropout_with(
    calx_tensor *x, const calx_feature_dropout_options *o)
{
  CX_OPS_COMPOSITE("feature_alpha_dropout");
  CX_OPS_TAKE_OPTIONS(feature_dropout, o, x);
  return drop_alpha("feature_alpha_dropout", 2, x, o);
}

calx_tensor *calx_rrelu_with(calx_tensor *x, const calx_rrelu_options *o)
{
  CX_OPS_COMPOSITE("rrelu");
  CX_OPS_TAKE_OPTIONS(rrelu, o, x);
  if (cx_ops_unfit("rrelu", &x, 1, &x)) return x;
  double lower = cx_or_default(o->lower, 1.0 / 8);
  double upper = cx_or_default(o->upper, 1.0 / 3);
  if (!(lower <= upper)) {
    return cx_ops_invalid("rrelu: lower %g is not below upper %g", lower,
                          upper);
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (!cx_dtype_is_float(s->dtype)) {
    return cx_ops_invalid("rrelu: %s, a floating operand is wanted",
                          cx_graph_shape_str(s));
  }
  calx_tensor *slope = calx_scalar((lower + upper) / 2);
  if (o->training) {
    calx_create_options create = like(x, s->dtype);
    slope = calx_rand_with(calx_tensor_shape(x), &create);
    slope = calx_mul(slope, calx_scalar(upper - lower));
    slope = cx_ops_plus(slope, calx_scalar(lower));
  }
  return calx_where(calx_gt(x, number(0)), x, calx_mul(x, slope));
}

calx_tensor *calx_gumbel_softmax_with(calx_tensor *logits, int dim,
                                      const calx_gumbel_softmax_options *o)
{
  CX_OPS_COMPOSITE("gumbel_softmax");
  CX_OPS_TAKE_OPTIONS(gumbel_softmax, o, logits);
  if (cx_ops_unfit("gumbel_softmax", &logits, 1, &logits)) return logits;
  const cx_graph_shape *s = cx_lazy_tensor_shape(logits);
  double tau = o->tau != 0 ? o->tau : 1;
  uint32_t along;
  if (!cx_dtype_is_float(s->dtype) || !(tau > 0)) {
    return cx_ops_invalid(
        "gumbel_softmax: floating logits and a positive tau "
        "are wanted, got %s and %g",
        cx_graph_shape_str(s), tau);
  }
  if (!cx_ops_dim(dim, s->rank, &along)) {
    return cx_ops_no_dim("gumbel_softmax", "dim", dim, s->rank, s);
  }
  // -log(-log(u)); 1 - u of u in [0, 1) is never 0, of which -log is infinite.
  calx_create_options create = like(logits, CALX_F32);
  calx_tensor *u = calx_rand_with(calx_tensor_shape(logits), &create);
  calx_tensor *e = calx_neg(calx_log(cx_ops_minus(number(1), u)));
  e = calx_clamp_min(e, number(1e-37));
  calx_tensor *g = calx_to_dtype(calx_neg(calx_log(e)), s->dtype);
  calx_tensor *y = calx_softmax(
      calx_div_with(cx_ops_plus(logits, g), calx_scalar(tau), NULL), dim);
  if (!o->hard || s->rank == 0) return y;
  int64_t at = along;
  calx_reduce_options reduce = { .size = sizeof reduce,
                                 .dims = calx_dims_of(&at, 1),
                                 .keepdim = true };
  calx_tensor *best = calx_argmax_with(y, &reduce);
  calx_tensor *one = cx_ops_points_at(best, along, s->dims[along], s->rank);
  one = calx_to_dtype(one, s->dtype);
  return cx_ops_plus(cx_ops_minus(one, calx_detach(y)), y);
}
