// optim/adamax: Adamax (D. Kingma and J. Ba, 2014), as torch.optim.Adamax
// rounds it. At step t, with gradient g and weight decay in it:
//
//   m = m + (1 - beta1)(g - m)          u = max(beta2 u, |g| + eps)
//   p = p - lr / (1 - beta1^t) m / u
#include <math.h>

#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

typedef struct adamax {
  cx_optim_group base;
  double beta1, beta2, eps;
  // Of the step that is being recorded.
  cx_optim_lerp_weight first;
  calx_tensor *by_beta2, *plus_eps, *step_size;
} adamax;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  adamax *a = (adamax *)g;
  a->first = cx_optim_lerp_by(g, d, 1 - a->beta1);
  a->by_beta2 = cx_optim_number(g->opt, d, a->beta2);
  a->plus_eps = cx_optim_number(g->opt, d, a->eps);
  double correction = 1 - pow(a->beta1, (double)step);
  a->step_size = cx_optim_number(g->opt, d, g->lr / correction);
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const adamax *a = (const adamax *)g;
  calx_tensor *m = cx_optim_lerp(a->first, p->state[0], grad);
  calx_tensor *u = calx_add_with(calx_abs(grad), a->plus_eps, NULL);
  if (p->state[1] != NULL) {
    u = calx_maximum(calx_mul(p->state[1], a->by_beta2), u);
  }
  out->state[0] = m;
  out->state[1] = u;
  calx_tensor *change = calx_mul(calx_div(m, u), a->step_size);
  out->value = calx_sub_with(value, change, NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(adamax, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "betas", offsetof(adamax, beta1), CX_OPTIM_FRACTION, CX_OPTIM_FRACTION },
  { "eps", offsetof(adamax, eps), CX_OPTIM_POSITIVE, 0 },
  { "weight_decay", offsetof(adamax, base.weight_decay), CX_OPTIM_POSITIVE, 0 },
  { "maximize", offsetof(adamax, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "adamax",
                                    .states = { "exp_avg", "exp_inf" },
                                    .fields = fields,
                                    .group_bytes = sizeof(adamax),
                                    .has_step = true,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_adamax_with(calx_module *model,
                                 const calx_adamax_options *options)
{
  calx_adamax_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  adamax *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 2e-3);
  a->base.weight_decay = o.weight_decay;
  a->base.maximize = o.maximize;
  a->beta1 = cx_or_default(o.betas[0], 0.9);
  a->beta2 = cx_or_default(o.betas[1], 0.999);
  a->eps = cx_or_default(o.eps, 1e-8);
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
