// optim/lion: Lion (X. Chen et al., 2023, algorithm 2). With gradient g, and p
// scaled by 1 - lr weight_decay:
//
//   p = p - lr sign(beta1 m + (1 - beta1) g)
//   m = beta2 m + (1 - beta2) g
#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

typedef struct lion {
  cx_optim_group base;
  double beta1, beta2;
  // Of the step that is being recorded.
  calx_tensor *by_lr;
  cx_optim_lerp_weight now, later;
} lion;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  (void)step;
  lion *a = (lion *)g;
  a->by_lr = cx_optim_number(g->opt, d, g->lr);
  a->now = cx_optim_lerp_by(g, d, 1 - a->beta1);
  a->later = cx_optim_lerp_by(g, d, 1 - a->beta2);
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const lion *a = (const lion *)g;
  calx_tensor *sign = calx_sign(cx_optim_lerp(a->now, p->state[0], grad));
  out->state[0] = cx_optim_lerp(a->later, p->state[0], grad);
  out->value = calx_sub_with(value, calx_mul(sign, a->by_lr), NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(lion, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "betas", offsetof(lion, beta1), CX_OPTIM_FRACTION, CX_OPTIM_FRACTION },
  { "weight_decay", offsetof(lion, base.weight_decay), CX_OPTIM_POSITIVE, 0 },
  { "maximize", offsetof(lion, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "lion",
                                    .states = { "exp_avg" },
                                    .fields = fields,
                                    .group_bytes = sizeof(lion),
                                    .has_step = true,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_lion_with(calx_module *model,
                               const calx_lion_options *options)
{
  calx_lion_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  lion *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 1e-4);
  a->base.weight_decay = o.weight_decay;
  a->base.maximize = o.maximize;
  a->base.decoupled = true;
  a->beta1 = cx_or_default(o.betas[0], 0.9);
  a->beta2 = cx_or_default(o.betas[1], 0.99);
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
