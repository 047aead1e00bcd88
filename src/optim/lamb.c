// optim/lamb: LAMB (Y. You et al., 2019, algorithm 2, with phi(x) = x). At step
// t, with gradient g:
//
//   m = m + (1 - beta1)(g - m)          v = beta2 v + (1 - beta2) g g
//   r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p
//   p = p - lr |p| / |r| r; where |p| or |r| is 0: p - lr r
#include <math.h>

#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

typedef struct lamb {
  cx_optim_group base;
  double beta1, beta2, eps;
  // Of the step that is being recorded; decay is NULL without it.
  cx_optim_lerp_weight first;
  calx_tensor *by_lr, *by_beta2, *by_rest2, *correction1, *correction2;
  calx_tensor *plus_eps, *decay;
} lamb;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  lamb *a = (lamb *)g;
  double t = (double)step;
  a->first = cx_optim_lerp_by(g, d, 1 - a->beta1);
  a->by_lr = cx_optim_number(g->opt, d, g->lr);
  a->by_beta2 = cx_optim_number(g->opt, d, a->beta2);
  a->by_rest2 = cx_optim_number(g->opt, d, 1 - a->beta2);
  a->correction1 = cx_optim_number(g->opt, d, 1 - pow(a->beta1, t));
  a->correction2 = cx_optim_number(g->opt, d, 1 - pow(a->beta2, t));
  a->plus_eps = cx_optim_number(g->opt, d, a->eps);
  a->decay = cx_optim_number_or_none(g->opt, d, g->weight_decay);
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const lamb *a = (const lamb *)g;
  calx_tensor *m = cx_optim_lerp(a->first, p->state[0], grad);
  calx_tensor *v =
      cx_optim_square_average(a->by_beta2, a->by_rest2, p->state[1], grad);
  out->state[0] = m;
  out->state[1] = v;
  calx_tensor *d = calx_sqrt(calx_div(v, a->correction2));
  d = calx_add_with(d, a->plus_eps, NULL);
  calx_tensor *r = calx_div(calx_div(m, a->correction1), d);
  // Without eps an element that had no gradient yet is 0 / 0: it stays.
  if (a->eps == 0) {
    calx_tensor *zero = cx_optim_number(g->opt, calx_tensor_dtype(m), 0);
    r = calx_where(calx_eq(m, zero), zero, r);
  }
  if (a->decay != NULL) r = cx_optim_add_scaled(r, a->decay, value);
  calx_tensor *ratio =
      cx_optim_ratio(g, cx_optim_norm(g, value), cx_optim_norm(g, r), NULL);
  r = calx_mul(r, calx_mul(ratio, a->by_lr));
  out->value = calx_sub_with(value, r, NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(lamb, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "betas", offsetof(lamb, beta1), CX_OPTIM_FRACTION, CX_OPTIM_FRACTION },
  { "eps", offsetof(lamb, eps), CX_OPTIM_POSITIVE, 0 },
  { "weight_decay", offsetof(lamb, base.weight_decay), CX_OPTIM_POSITIVE, 0 },
  { "maximize", offsetof(lamb, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "lamb",
                                    .states = { "exp_avg", "exp_avg_sq" },
                                    .fields = fields,
                                    .group_bytes = sizeof(lamb),
                                    .has_step = true,
                                    .own_decay = true,
                                    .needs_all = true,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_lamb_with(calx_module *model,
                               const calx_lamb_options *options)
{
  calx_lamb_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  lamb *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 1e-3);
  a->base.weight_decay = o.weight_decay;
  a->base.maximize = o.maximize;
  a->beta1 = cx_or_default(o.betas[0], 0.9);
  a->beta2 = cx_or_default(o.betas[1], 0.999);
  a->eps = cx_or_default(o.eps, 1e-6);
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
