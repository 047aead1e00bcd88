// optim/nadam: NAdam (T. Dozat, 2016), as torch.optim.NAdam rounds it. At step
// t, with gradient g and weight decay in it or, decoupled, in p:
//
//   mu(t) = beta1 (1 - 0.96^(t momentum_decay) / 2), f = mu(1) … mu(t)
//   m = m + (1 - beta1)(g - m)          v = beta2 v + (1 - beta2) g g
//   d = sqrt(v / (1 - beta2^t)) + eps
//   p = p - lr (1 - mu(t)) / (1 - f) g / d
//         - lr mu(t + 1) / (1 - f mu(t + 1)) m / d
//
// f is an f32 number of the host, as PyTorch keeps it.
#include <math.h>

#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

typedef struct nadam {
  cx_optim_group base;
  double beta1, beta2, eps, momentum_decay;
  // Of the step that is being recorded.
  cx_optim_lerp_weight first;
  calx_tensor *by_beta2, *by_rest2, *correction, *plus_eps;
  calx_tensor *by_grad, *by_moment;
} nadam;

static double mu_of(const nadam *a, int64_t step)
{
  return a->beta1 * (1 - 0.5 * pow(0.96, (double)step * a->momentum_decay));
}

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  nadam *a = (nadam *)g;
  double mu = mu_of(a, step), mu_next = mu_of(a, step + 1);
  float before = step == 1 ? 1 : g->number[0];
  g->next[0] = before * (float)mu;
  double product = (double)g->next[0];
  a->first = cx_optim_lerp_by(g, d, 1 - a->beta1);
  a->by_beta2 = cx_optim_number(g->opt, d, a->beta2);
  a->by_rest2 = cx_optim_number(g->opt, d, 1 - a->beta2);
  double correction = 1 - pow(a->beta2, (double)step);
  a->correction = cx_optim_number(g->opt, d, correction);
  a->plus_eps = cx_optim_number(g->opt, d, a->eps);
  a->by_grad = cx_optim_number(g->opt, d, g->lr * (1 - mu) / (1 - product));
  a->by_moment =
      cx_optim_number(g->opt, d, g->lr * mu_next / (1 - product * mu_next));
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const nadam *a = (const nadam *)g;
  calx_tensor *m = cx_optim_lerp(a->first, p->state[0], grad);
  calx_tensor *v =
      cx_optim_square_average(a->by_beta2, a->by_rest2, p->state[1], grad);
  out->state[0] = m;
  out->state[1] = v;
  calx_tensor *d = calx_sqrt(calx_div(v, a->correction));
  d = calx_add_with(d, a->plus_eps, NULL);
  value = calx_sub_with(value, calx_div(calx_mul(grad, a->by_grad), d), NULL);
  out->value =
      calx_sub_with(value, calx_div(calx_mul(m, a->by_moment), d), NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(nadam, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "betas", offsetof(nadam, beta1), CX_OPTIM_FRACTION, CX_OPTIM_FRACTION },
  { "eps", offsetof(nadam, eps), CX_OPTIM_POSITIVE, 0 },
  { "weight_decay", offsetof(nadam, base.weight_decay), CX_OPTIM_POSITIVE, 0 },
  { "momentum_decay", offsetof(nadam, momentum_decay), CX_OPTIM_POSITIVE, 0 },
  { "decoupled_weight_decay", offsetof(nadam, base.decoupled), CX_OPTIM_FLAG,
    0 },
  { "maximize", offsetof(nadam, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "nadam",
                                    .states = { "exp_avg", "exp_avg_sq" },
                                    .numbers = { "mu_product" },
                                    .fields = fields,
                                    .group_bytes = sizeof(nadam),
                                    .has_step = true,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_nadam_with(calx_module *model,
                                const calx_nadam_options *options)
{
  calx_nadam_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  nadam *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 2e-3);
  a->base.weight_decay = o.weight_decay;
  a->base.decoupled = o.decoupled_weight_decay;
  a->base.maximize = o.maximize;
  a->beta1 = cx_or_default(o.betas[0], 0.9);
  a->beta2 = cx_or_default(o.betas[1], 0.999);
  a->eps = cx_or_default(o.eps, 1e-8);
  a->momentum_decay = cx_or_default(o.momentum_decay, 4e-3);
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
