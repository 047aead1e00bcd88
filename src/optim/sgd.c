// optim/sgd: stochastic gradient descent with momentum (torch.optim.SGD).
//
//   g = gradient (its negative to maximize) + weight_decay p
//   b = momentum b + (1 - dampening) g; at the first step b = g
//   p = p - lr (nesterov ? g + momentum b : b)
//
// Without momentum p = p - lr g, and there is no state.
#include "base/options.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

typedef struct sgd {
  cx_optim_group base;
  double momentum, dampening;
  bool nesterov;
  // The numbers of the step that is being recorded; NULL where the rule does
  // not use one.
  calx_tensor *by_lr, *by_momentum, *by_rest;
} sgd;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  (void)step;
  sgd *s = (sgd *)g;
  s->by_lr = cx_optim_number(g->opt, d, g->lr);
  s->by_momentum = cx_optim_number_or_none(g->opt, d, s->momentum);
  s->by_rest =
      s->dampening != 0 ? cx_optim_number(g->opt, d, 1 - s->dampening) : NULL;
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const sgd *s = (const sgd *)g;
  if (s->by_momentum != NULL) {
    calx_tensor *b = grad;
    if (p->state[0] != NULL) {
      b = cx_optim_add_scaled(calx_mul(p->state[0], s->by_momentum), s->by_rest,
                              grad);
    }
    out->state[0] = b;
    grad = s->nesterov ? cx_optim_add_scaled(grad, s->by_momentum, b) : b;
  }
  out->value = calx_sub_with(value, calx_mul(grad, s->by_lr), NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(sgd, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "momentum", offsetof(sgd, momentum), CX_OPTIM_POSITIVE, 0 },
  { "dampening", offsetof(sgd, dampening), CX_OPTIM_ANY, 0 },
  { "weight_decay", offsetof(sgd, base.weight_decay), CX_OPTIM_POSITIVE, 0 },
  { "nesterov", offsetof(sgd, nesterov), CX_OPTIM_FLAG, 0 },
  { "maximize", offsetof(sgd, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static calx_status *check(const cx_optim_group *g)
{
  const sgd *s = (const sgd *)g;
  if (!s->nesterov || (s->momentum > 0 && s->dampening == 0)) return NULL;
  return cx_invalid(
      "sgd: nesterov with momentum %g and dampening %g: it needs momentum and "
      "no dampening",
      s->momentum, s->dampening);
}

static const cx_optim_rule rule = { .name = "sgd",
                                    .states = { "momentum_buffer" },
                                    .fields = fields,
                                    .group_bytes = sizeof(sgd),
                                    .check = check,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_sgd_with(calx_module *model,
                              const calx_sgd_options *options)
{
  calx_sgd_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  sgd *s = cx_optim_first_group(opt);
  if (s == NULL) return opt;
  s->base.lr = cx_or_default(o.lr, 1e-3);
  s->base.weight_decay = o.weight_decay;
  s->base.maximize = o.maximize;
  s->momentum = o.momentum;
  s->dampening = o.dampening;
  s->nesterov = o.nesterov;
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
