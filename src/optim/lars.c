// optim/lars: LARS (Y. You, I. Gitman and B. Ginsburg, 2017, algorithm 1). With
// gradient g:
//
//   r = trust_coefficient |p| / (|g| + weight_decay |p| + eps); where |p| or
//   |g|
//       is 0: 1
//   b = momentum b + lr r (g + weight_decay p)
//   p = p - b
#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

typedef struct lars {
  cx_optim_group base;
  double momentum, trust, eps;
  // Of the step that is being recorded; decay is NULL without it.
  calx_tensor *by_lr, *by_momentum, *by_trust, *plus_eps, *decay;
} lars;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  (void)step;
  lars *a = (lars *)g;
  a->by_lr = cx_optim_number(g->opt, d, g->lr);
  a->by_momentum = cx_optim_number(g->opt, d, a->momentum);
  a->by_trust = cx_optim_number(g->opt, d, a->trust);
  a->plus_eps = cx_optim_number(g->opt, d, a->eps);
  a->decay = cx_optim_number_or_none(g->opt, d, g->weight_decay);
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const lars *a = (const lars *)g;
  calx_tensor *norm = cx_optim_norm(g, value),
              *of_grad = cx_optim_norm(g, grad);
  calx_tensor *below = calx_add_with(of_grad, a->plus_eps, NULL);
  if (a->decay != NULL) {
    below = cx_optim_add_scaled(below, a->decay, norm);
    grad = cx_optim_add_scaled(grad, a->decay, value);
  }
  calx_tensor *above = calx_mul(norm, a->by_trust);
  calx_tensor *ratio = cx_optim_ratio(g, above, of_grad, below);
  calx_tensor *b = calx_mul(grad, calx_mul(ratio, a->by_lr));
  if (p->state[0] != NULL) {
    b = calx_add_with(calx_mul(p->state[0], a->by_momentum), b, NULL);
  }
  out->state[0] = b;
  out->value = calx_sub_with(value, b, NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(lars, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "momentum", offsetof(lars, momentum), CX_OPTIM_POSITIVE, 0 },
  { "weight_decay", offsetof(lars, base.weight_decay), CX_OPTIM_POSITIVE, 0 },
  { "trust_coefficient", offsetof(lars, trust), CX_OPTIM_POSITIVE, 0 },
  { "eps", offsetof(lars, eps), CX_OPTIM_POSITIVE, 0 },
  { "maximize", offsetof(lars, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "lars",
                                    .states = { "momentum_buffer" },
                                    .fields = fields,
                                    .group_bytes = sizeof(lars),
                                    .has_step = true,
                                    .own_decay = true,
                                    .needs_all = true,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_lars_with(calx_module *model,
                               const calx_lars_options *options)
{
  calx_lars_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  lars *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 1e-3);
  a->base.weight_decay = o.weight_decay;
  a->base.maximize = o.maximize;
  a->momentum = cx_or_default(o.momentum, 0.9);
  a->trust = cx_or_default(o.trust_coefficient, 1e-3);
  a->eps = cx_or_default(o.eps, 1e-8);
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
