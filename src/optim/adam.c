// optim/adam: Adam (D. Kingma and J. Ba, 2014) and AdamW (I. Loshchilov and
// F. Hutter, 2017), as torch.optim rounds them. At step t, with gradient g:
//
//   m = m + (1 - beta1)(g - m)          v = beta2 v + (1 - beta2) g g
//   d = sqrt(v) / sqrt(1 - beta2^t) + eps; amsgrad: of the greatest v so far
//   p = p - lr / (1 - beta1^t) m / d
//
// weight_decay: Adam adds weight_decay p to g; AdamW first scales p by
// 1 - lr weight_decay. State begins as zeros; those of the first step are not
// recorded.
#include <math.h>

#include "base/options.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

enum { EXP_AVG, EXP_AVG_SQ, MAX_EXP_AVG_SQ };

typedef struct adam {
  cx_optim_group base;
  double beta1, beta2, eps;
  bool amsgrad;
  // The numbers of the step that is being recorded.
  cx_optim_lerp_weight first;
  calx_tensor *by_beta2, *by_rest2, *root_correction, *plus_eps, *step_size;
} adam;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  adam *a = (adam *)g;
  double correction1 = 1 - pow(a->beta1, (double)step);
  double correction2 = 1 - pow(a->beta2, (double)step);
  a->first = cx_optim_lerp_by(g, d, 1 - a->beta1);
  a->by_beta2 = cx_optim_number(g->opt, d, a->beta2);
  a->by_rest2 = cx_optim_number(g->opt, d, 1 - a->beta2);
  a->root_correction = cx_optim_number(g->opt, d, sqrt(correction2));
  a->plus_eps = cx_optim_number(g->opt, d, a->eps);
  a->step_size = cx_optim_number(g->opt, d, g->lr / correction1);
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const adam *a = (const adam *)g;
  calx_tensor *m = cx_optim_lerp(a->first, p->state[EXP_AVG], grad);
  calx_tensor *v = cx_optim_square_average(a->by_beta2, a->by_rest2,
                                           p->state[EXP_AVG_SQ], grad);
  out->state[EXP_AVG] = m;
  out->state[EXP_AVG_SQ] = v;
  if (a->amsgrad) {
    // At the first step the greatest value equals v but must have a buffer of
    // its own. With one buffer for both, the second program would have one
    // parameter and the third two.
    calx_tensor *most = p->state[MAX_EXP_AVG_SQ];
    v = calx_maximum(most != NULL ? most : v, v);
    out->state[MAX_EXP_AVG_SQ] = v;
  }
  calx_tensor *d = calx_add_with(calx_div(calx_sqrt(v), a->root_correction),
                                 a->plus_eps, NULL);
  calx_tensor *change = calx_mul(calx_div(m, d), a->step_size);
  out->value = calx_sub_with(value, change, NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(adam, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "betas", offsetof(adam, beta1), CX_OPTIM_FRACTION, CX_OPTIM_FRACTION },
  { "eps", offsetof(adam, eps), CX_OPTIM_POSITIVE, 0 },
  { "weight_decay", offsetof(adam, base.weight_decay), CX_OPTIM_POSITIVE, 0 },
  { "amsgrad", offsetof(adam, amsgrad), CX_OPTIM_FLAG, 0 },
  { "maximize", offsetof(adam, base.maximize), CX_OPTIM_FLAG, 0 },
  { "decoupled_weight_decay", offsetof(adam, base.decoupled), CX_OPTIM_FLAG,
    0 },
  { NULL, 0, 0, 0 }
};

#define RULE(text)                                                         \
  {                                                                        \
    .name = text, .states = { "exp_avg", "exp_avg_sq", "max_exp_avg_sq" }, \
    .fields = fields, .group_bytes = sizeof(adam), .has_step = true,       \
    .prepare = prepare, .update = update                                   \
  }
static const cx_optim_rule adam_rule = RULE("adam");
static const cx_optim_rule adamw_rule = RULE("adamw");

static calx_optimizer *make(calx_module *model, const cx_optim_rule *rule,
                            const calx_adam_options *options, bool decoupled)
{
  calx_adam_options o;
  calx_status *status = cx_options_take(rule->name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  adam *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 1e-3);
  a->base.weight_decay = cx_or_default(o.weight_decay, decoupled ? 0.01 : 0);
  a->base.maximize = o.maximize;
  a->base.decoupled = decoupled;
  a->beta1 = cx_or_default(o.betas[0], 0.9);
  a->beta2 = cx_or_default(o.betas[1], 0.999);
  a->eps = cx_or_default(o.eps, 1e-8);
  a->amsgrad = o.amsgrad;
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}

calx_optimizer *calx_adam_with(calx_module *model,
                               const calx_adam_options *options)
{
  return make(model, &adam_rule, options, false);
}

calx_optimizer *calx_adamw_with(calx_module *model,
                                const calx_adam_options *options)
{
  return make(model, &adamw_rule, options, true);
}
