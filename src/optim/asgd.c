// optim/asgd: averaged stochastic gradient descent (B. Polyak and A. Juditsky,
// 1992), as torch.optim.ASGD has it. At step t, with gradient g and weight
// decay in it:
//
//   p = p (1 - lambd eta) - eta g
//   a = a + mu (p - a), and p itself where mu is 1
//   eta = lr / (1 + lambd lr t)^alpha, at first lr
//   mu = 1 / max(1, t - t0), at first 1
//
// eta and mu are f32 numbers of the host, as PyTorch keeps them.
#include <math.h>

#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

enum { ETA, MU };

typedef struct asgd {
  cx_optim_group base;
  double lambd, alpha, t0;
  // Of the step that is being recorded.
  calx_tensor *by_decay, *by_eta, *by_mu;
  calx_tensor *is_average;  // a bool: mu is not 1
} asgd;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  asgd *a = (asgd *)g;
  double eta = step == 1 ? (double)(float)g->lr : (double)g->number[ETA];
  double mu = step == 1 ? 1 : (double)g->number[MU];
  a->by_decay = cx_optim_number(g->opt, d, 1 - a->lambd * eta);
  a->by_eta = cx_optim_number(g->opt, d, eta);
  a->by_mu = cx_optim_number(g->opt, d, mu);
  a->is_average = calx_ne(a->by_mu, cx_optim_number(g->opt, d, 1));
  double t = (double)step;
  g->next[ETA] = (float)(g->lr / pow(1 + a->lambd * g->lr * t, a->alpha));
  g->next[MU] = (float)(1 / fmax(1, t - a->t0));
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const asgd *a = (const asgd *)g;
  value = calx_mul(value, a->by_decay);
  value = calx_sub_with(value, calx_mul(grad, a->by_eta), NULL);
  out->value = value;
  calx_tensor *ax = p->state[0];
  if (ax != NULL) {
    calx_tensor *way = calx_mul(calx_sub_with(value, ax, NULL), a->by_mu);
    value = calx_where(a->is_average, calx_add_with(ax, way, NULL), value);
  }
  out->state[0] = value;
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(asgd, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "lambd", offsetof(asgd, lambd), CX_OPTIM_ANY, 0 },
  { "alpha", offsetof(asgd, alpha), CX_OPTIM_ANY, 0 },
  { "t0", offsetof(asgd, t0), CX_OPTIM_ANY, 0 },
  { "weight_decay", offsetof(asgd, base.weight_decay), CX_OPTIM_POSITIVE, 0 },
  { "maximize", offsetof(asgd, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "asgd",
                                    .states = { "ax" },
                                    .numbers = { "eta", "mu" },
                                    .fields = fields,
                                    .group_bytes = sizeof(asgd),
                                    .has_step = true,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_asgd_with(calx_module *model,
                               const calx_asgd_options *options)
{
  calx_asgd_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  asgd *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 1e-2);
  a->base.weight_decay = o.weight_decay;
  a->base.maximize = o.maximize;
  a->lambd = cx_or_default(o.lambd, 1e-4);
  a->alpha = cx_or_default(o.alpha, 0.75);
  a->t0 = cx_or_default(o.t0, 1e6);
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
