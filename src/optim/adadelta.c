// optim/adadelta: Adadelta (M. Zeiler, 2012), as torch.optim.Adadelta rounds
// it. With gradient g and weight decay in it:
//
//   s = rho s + (1 - rho) g g
//   c = sqrt(a + eps) / sqrt(s + eps) g
//   a = rho a + (1 - rho) c c
//   p = p - lr c
#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

typedef struct adadelta {
  cx_optim_group base;
  double rho, eps;
  // Of the step that is being recorded.
  calx_tensor *by_lr, *by_rho, *by_rest, *plus_eps;
} adadelta;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  (void)step;
  adadelta *a = (adadelta *)g;
  a->by_lr = cx_optim_number(g->opt, d, g->lr);
  a->by_rho = cx_optim_number(g->opt, d, a->rho);
  a->by_rest = cx_optim_number(g->opt, d, 1 - a->rho);
  a->plus_eps = cx_optim_number(g->opt, d, a->eps);
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const adadelta *a = (const adadelta *)g;
  calx_tensor *s =
      cx_optim_square_average(a->by_rho, a->by_rest, p->state[0], grad);
  calx_tensor *std = calx_sqrt(calx_add_with(s, a->plus_eps, NULL));
  calx_tensor *change =
      calx_sqrt(cx_optim_add_scaled(p->state[1], NULL, a->plus_eps));
  change = calx_mul(calx_div(change, std), grad);
  out->state[0] = s;
  out->state[1] =
      cx_optim_square_average(a->by_rho, a->by_rest, p->state[1], change);
  out->value = calx_sub_with(value, calx_mul(change, a->by_lr), NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(adadelta, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "rho", offsetof(adadelta, rho), CX_OPTIM_UNIT, 0 },
  { "eps", offsetof(adadelta, eps), CX_OPTIM_POSITIVE, 0 },
  { "weight_decay", offsetof(adadelta, base.weight_decay), CX_OPTIM_POSITIVE,
    0 },
  { "maximize", offsetof(adadelta, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "adadelta",
                                    .states = { "square_avg", "acc_delta" },
                                    .fields = fields,
                                    .group_bytes = sizeof(adadelta),
                                    .has_step = true,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_adadelta_with(calx_module *model,
                                   const calx_adadelta_options *options)
{
  calx_adadelta_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  adadelta *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 1);
  a->base.weight_decay = o.weight_decay;
  a->base.maximize = o.maximize;
  a->rho = cx_or_default(o.rho, 0.9);
  a->eps = cx_or_default(o.eps, 1e-6);
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
