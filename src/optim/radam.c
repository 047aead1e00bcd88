// optim/radam: RAdam (L. Liu et al., 2019), as torch.optim.RAdam rounds it. At
// step t, with gradient g and weight decay in it or, decoupled, in p:
//
//   m = m + (1 - beta1)(g - m)          v = beta2 v + (1 - beta2) g g
//   n = 2 / (1 - beta2) - 1, k = n - 2 t beta2^t / (1 - beta2^t)
//   r = sqrt((k - 4)(k - 2) n / ((n - 4)(n - 2) k)) sqrt(1 - beta2^t)
//   p = p - lr / (1 - beta1^t) m r / (sqrt(v) + eps), where k > 5
//   p = p - lr / (1 - beta1^t) m, else
//
// Both cases are one program: which one it is, is a number.
#include <math.h>

#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

typedef struct radam {
  cx_optim_group base;
  double beta1, beta2, eps;
  // Of the step that is being recorded.
  cx_optim_lerp_weight first;
  calx_tensor *by_beta2, *by_rest2, *plus_eps, *step_size, *one;
  calx_tensor *is_rectified;  // a bool
} radam;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  radam *a = (radam *)g;
  a->first = cx_optim_lerp_by(g, d, 1 - a->beta1);
  a->by_beta2 = cx_optim_number(g->opt, d, a->beta2);
  a->by_rest2 = cx_optim_number(g->opt, d, 1 - a->beta2);
  a->plus_eps = cx_optim_number(g->opt, d, a->eps);
  double t = (double)step, power = pow(a->beta2, t), rest = 1 - power;
  double n = 2 / (1 - a->beta2) - 1, k = n - 2 * t * power / rest, r = 1;
  if (k > 5) {
    r = sqrt((k - 4) * (k - 2) * n / ((n - 4) * (n - 2) * k)) * sqrt(rest);
  }
  a->one = cx_optim_number(g->opt, d, 1);
  a->is_rectified = calx_gt(cx_optim_number(g->opt, d, k > 5 ? 2 : 0), a->one);
  double rate = g->lr / (1 - pow(a->beta1, t));
  a->step_size = cx_optim_number(g->opt, d, rate * r);
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const radam *a = (const radam *)g;
  calx_tensor *m = cx_optim_lerp(a->first, p->state[0], grad);
  calx_tensor *v =
      cx_optim_square_average(a->by_beta2, a->by_rest2, p->state[1], grad);
  out->state[0] = m;
  out->state[1] = v;
  calx_tensor *d = calx_add_with(calx_sqrt(v), a->plus_eps, NULL);
  d = calx_where(a->is_rectified, d, a->one);
  calx_tensor *change = calx_div(calx_mul(m, a->step_size), d);
  out->value = calx_sub_with(value, change, NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(radam, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "betas", offsetof(radam, beta1), CX_OPTIM_FRACTION, CX_OPTIM_FRACTION },
  { "eps", offsetof(radam, eps), CX_OPTIM_POSITIVE, 0 },
  { "weight_decay", offsetof(radam, base.weight_decay), CX_OPTIM_POSITIVE, 0 },
  { "decoupled_weight_decay", offsetof(radam, base.decoupled), CX_OPTIM_FLAG,
    0 },
  { "maximize", offsetof(radam, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "radam",
                                    .states = { "exp_avg", "exp_avg_sq" },
                                    .fields = fields,
                                    .group_bytes = sizeof(radam),
                                    .has_step = true,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_radam_with(calx_module *model,
                                const calx_radam_options *options)
{
  calx_radam_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  radam *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 1e-3);
  a->base.weight_decay = o.weight_decay;
  a->base.decoupled = o.decoupled_weight_decay;
  a->base.maximize = o.maximize;
  a->beta1 = cx_or_default(o.betas[0], 0.9);
  a->beta2 = cx_or_default(o.betas[1], 0.999);
  a->eps = cx_or_default(o.eps, 1e-8);
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
