// optim/adagrad: Adagrad (J. Duchi, E. Hazan and Y. Singer, 2011), as
// torch.optim.Adagrad rounds it. At step t, with gradient g:
//
//   g = gradient (its negative to maximize) + weight_decay p
//   s = s + g g, from initial_accumulator_value
//   p = p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)
#include "base/options.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

typedef struct adagrad {
  cx_optim_group base;
  double lr_decay, initial, eps;
  // The numbers of the step that is being recorded; NULL where the rule does
  // not use one.
  calx_tensor *by_lr, *first_sum, *plus_eps;
} adagrad;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  adagrad *a = (adagrad *)g;
  double lr = g->lr / (1 + (double)(step - 1) * a->lr_decay);
  a->by_lr = cx_optim_number(g->opt, d, lr);
  a->first_sum = cx_optim_number_or_none(g->opt, d, a->initial);
  a->plus_eps = cx_optim_number(g->opt, d, a->eps);
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const adagrad *a = (const adagrad *)g;
  calx_tensor *sum = p->state[0] != NULL ? p->state[0] : a->first_sum;
  out->state[0] = cx_optim_add_scaled(sum, NULL, calx_mul(grad, grad));
  calx_tensor *d = calx_add_with(calx_sqrt(out->state[0]), a->plus_eps, NULL);
  calx_tensor *change = calx_mul(calx_div(grad, d), a->by_lr);
  out->value = calx_sub_with(value, change, NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(adagrad, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "lr_decay", offsetof(adagrad, lr_decay), CX_OPTIM_POSITIVE, 0 },
  { "weight_decay", offsetof(adagrad, base.weight_decay), CX_OPTIM_POSITIVE,
    0 },
  { "initial_accumulator_value", offsetof(adagrad, initial), CX_OPTIM_POSITIVE,
    0 },
  { "eps", offsetof(adagrad, eps), CX_OPTIM_POSITIVE, 0 },
  { "maximize", offsetof(adagrad, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "adagrad",
                                    .states = { "sum" },
                                    .fields = fields,
                                    .group_bytes = sizeof(adagrad),
                                    .has_step = true,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_adagrad_with(calx_module *model,
                                  const calx_adagrad_options *options)
{
  calx_adagrad_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  adagrad *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 1e-2);
  a->base.weight_decay = o.weight_decay;
  a->base.maximize = o.maximize;
  a->lr_decay = o.lr_decay;
  a->initial = o.initial_accumulator_value;
  a->eps = cx_or_default(o.eps, 1e-10);
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
