// ops/composite_loss: losses that compare a prediction with a target
// elementwise, composed of public ops.
#include <math.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/composite.h"

static calx_tensor *number(double value)
{
  return cx_ops_number(value);
}

// 1 - x
static calx_tensor *rest_of(calx_tensor *x)
{
  return cx_ops_minus(number(1), x);
}

calx_tensor *cx_ops_reduce_losses(const char *op, calx_tensor *losses,
                                  calx_reduction reduction)
{
  switch (reduction) {
    case CALX_REDUCTION_DEFAULT:
    case CALX_MEAN: return calx_mean_with(losses, NULL);
    case CALX_SUM: return calx_sum_with(losses, NULL);
    case CALX_NONE: return losses;
    case CALX_BATCH_MEAN: break;
  }
  return cx_ops_invalid(
      "%s: reduction %d is none of CALX_MEAN, CALX_SUM, "
      "CALX_NONE",
      op, (int)reduction);
}

// The first statements of a loss of x and target with options o.
#define BEGIN_AS(op, kind)                            \
  CX_OPS_COMPOSITE(#op);                              \
  CX_OPS_AUTOCAST(CX_OPS_F32, &x, &target);           \
  calx_tensor *in[2] = { x, target }, *bad;           \
  if (!cx_ops_floating(#op, in, 2, &bad)) return bad; \
  x = in[0];                                          \
  target = in[1];                                     \
  CX_OPS_TAKE_OPTIONS(kind, o, bad)
#define BEGIN(op) BEGIN_AS(op, op)

// A target of other sizes broadcasts by accident more often than not: refused,
// but for a number. False: *out is what the function returns.
static bool same_sizes(const char *op, calx_tensor *x, calx_tensor *target,
                       calx_tensor **out)
{
  calx_tensor *in[2] = { x, target };
  if (cx_ops_unfit(op, in, 2, out)) return false;
  if (cx_lazy_tensor_is(target, CX_LAZY_T_WEAK)) return true;
  const cx_graph_shape *a = cx_lazy_tensor_shape(x);
  const cx_graph_shape *b = cx_lazy_tensor_shape(target);
  bool same = a->rank == b->rank;
  for (uint32_t i = 0; same && i < a->rank; i++) {
    same = a->dims[i] == b->dims[i];
  }
  if (same) return true;
  *out = cx_ops_invalid("%s: the target %s must have the sizes of %s", op,
                        cx_graph_shape_str(b), cx_graph_shape_str(a));
  return false;
}

#define BEGIN_SAME(op)                                   \
  calx_tensor *other;                                    \
  if (!same_sizes(#op, x, target, &other)) return other; \
  BEGIN(op)

calx_tensor *calx_mse_loss_with(calx_tensor *x, calx_tensor *target,
                                const calx_loss_options *o)
{
  BEGIN_AS(mse_loss, loss);
  calx_tensor *losses = calx_square(cx_ops_minus(x, target));
  return cx_ops_reduce_losses("mse_loss", losses, o->reduction);
}

calx_tensor *calx_l1_loss_with(calx_tensor *x, calx_tensor *target,
                               const calx_loss_options *o)
{
  BEGIN_AS(l1_loss, loss);
  return cx_ops_reduce_losses("l1_loss", calx_abs(cx_ops_minus(x, target)),
                              o->reduction);
}

calx_tensor *calx_smooth_l1_loss_with(calx_tensor *x, calx_tensor *target,
                                      const calx_smooth_l1_loss_options *o)
{
  BEGIN(smooth_l1_loss);
  double beta = cx_is_default(o->beta) ? 1 : o->beta;
  calx_tensor *error = calx_abs(cx_ops_minus(x, target));
  if (beta == 0)
    return cx_ops_reduce_losses("smooth_l1_loss", error, o->reduction);
  calx_tensor *b = calx_scalar(beta);
  calx_tensor *square = calx_mul(calx_square(error), calx_scalar(0.5 / beta));
  calx_tensor *line = cx_ops_minus(error, calx_scalar(beta / 2));
  return cx_ops_reduce_losses("smooth_l1_loss",
                              calx_where(calx_lt(error, b), square, line),
                              o->reduction);
}

calx_tensor *calx_huber_loss_with(calx_tensor *x, calx_tensor *target,
                                  const calx_huber_loss_options *o)
{
  BEGIN(huber_loss);
  double delta = cx_is_default(o->delta) ? 1 : o->delta;
  calx_tensor *d = calx_scalar(delta);
  calx_tensor *error = calx_abs(cx_ops_minus(x, target));
  calx_tensor *square = calx_mul(calx_square(error), number(0.5));
  calx_tensor *line = calx_mul(cx_ops_minus(error, calx_scalar(delta / 2)), d);
  return cx_ops_reduce_losses(
      "huber_loss", calx_where(calx_le(error, d), square, line), o->reduction);
}

// log(x), at least -100, without an infinity that would spoil the gradient.
static calx_tensor *bounded_log(calx_tensor *x)
{
  calx_tensor *zero = calx_eq(x, number(0));
  calx_tensor *log = calx_log(calx_where(zero, number(1), x));
  return calx_where(zero, number(-100), calx_clamp_min(log, number(-100)));
}

calx_tensor *calx_binary_cross_entropy_with(
    calx_tensor *x, calx_tensor *target,
    const calx_binary_cross_entropy_options *o)
{
  BEGIN_SAME(binary_cross_entropy);
  calx_tensor *losses =
      cx_ops_plus(calx_mul(target, bounded_log(x)),
                  calx_mul(rest_of(target), bounded_log(rest_of(x))));
  losses = calx_neg(losses);
  if (o->weight != NULL) losses = calx_mul(losses, o->weight);
  return cx_ops_reduce_losses("binary_cross_entropy", losses, o->reduction);
}

calx_tensor *calx_binary_cross_entropy_with_logits_with(
    calx_tensor *x, calx_tensor *target,
    const calx_binary_cross_entropy_with_logits_options *o)
{
  BEGIN_SAME(binary_cross_entropy_with_logits);
  calx_tensor *log = cx_ops_plus(calx_log1p(calx_exp(calx_neg(calx_abs(x)))),
                                 calx_maximum(calx_neg(x), number(0)));
  if (o->pos_weight != NULL) {
    calx_tensor *more = cx_ops_minus(o->pos_weight, number(1));
    log = calx_mul(log, cx_ops_plus(calx_mul(more, target), number(1)));
  }
  calx_tensor *losses = cx_ops_plus(calx_mul(rest_of(target), x), log);
  if (o->weight != NULL) losses = calx_mul(losses, o->weight);
  return cx_ops_reduce_losses("binary_cross_entropy_with_logits", losses,
                              o->reduction);
}

calx_tensor *calx_kl_div_with(calx_tensor *x, calx_tensor *target,
                              const calx_kl_div_options *o)
{
  BEGIN(kl_div);
  calx_tensor *losses =
      o->log_target
          ? calx_mul(calx_exp(target), cx_ops_minus(target, x))
          : cx_ops_minus(calx_xlogy(target, target), calx_mul(target, x));
  if (o->reduction != CALX_BATCH_MEAN) {
    return cx_ops_reduce_losses("kl_div", losses, o->reduction);
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  double n = s->rank != 0 ? (double)s->dims[0] : 1;
  return calx_div(calx_sum_with(losses, NULL), number(n));
}

calx_tensor *calx_poisson_nll_loss_with(calx_tensor *x, calx_tensor *target,
                                        const calx_poisson_nll_loss_options *o)
{
  BEGIN(poisson_nll_loss);
  calx_tensor *losses;
  if (o->no_log_input) {
    calx_tensor *log = calx_log(cx_ops_plus(x, cx_ops_given(o->eps, 1e-8)));
    losses = cx_ops_minus(x, calx_mul(target, log));
  } else {
    losses = cx_ops_minus(calx_exp(x), calx_mul(target, x));
  }
  if (o->full) {
    // Stirling's approximation of log(target!), for targets above 1.
    calx_tensor *large = calx_gt(target, number(1));
    calx_tensor *t = calx_where(large, target, number(1));
    calx_tensor *stirling = cx_ops_minus(calx_mul(t, calx_log(t)), t);
    calx_tensor *log = calx_log(calx_mul(t, number(2 * M_PI)));
    stirling = cx_ops_plus(stirling, calx_mul(log, number(0.5)));
    losses = cx_ops_plus(losses, calx_where(large, stirling, number(0)));
  }
  return cx_ops_reduce_losses("poisson_nll_loss", losses, o->reduction);
}

calx_tensor *calx_soft_margin_loss_with(calx_tensor *x, calx_tensor *target,
                                        const calx_loss_options *o)
{
  BEGIN_AS(soft_margin_loss, loss);
  calx_tensor *losses = calx_softplus_with(calx_neg(calx_mul(target, x)), NULL);
  return cx_ops_reduce_losses("soft_margin_loss", losses, o->reduction);
}

calx_tensor *calx_hinge_embedding_loss_with(
    calx_tensor *x, calx_tensor *target,
    const calx_hinge_embedding_loss_options *o)
{
  BEGIN(hinge_embedding_loss);
  calx_tensor *margin = cx_ops_given(o->margin, 1);
  calx_tensor *apart = calx_clamp_min(cx_ops_minus(margin, x), number(0));
  calx_tensor *losses =
      cx_ops_plus(calx_where(calx_eq(target, number(1)), number(0), apart),
                  calx_where(calx_eq(target, number(-1)), number(0), x));
  return cx_ops_reduce_losses("hinge_embedding_loss", losses, o->reduction);
}
