// optim/rmsprop: RMSprop (T. Tieleman and G. Hinton, 2012), as
// torch.optim.RMSprop rounds it. With gradient g and weight decay in it:
//
//   s = alpha s + (1 - alpha) g g
//   a = a + (1 - alpha)(g - a), where it is centered
//   u = g / (sqrt(s - a a) + eps)
//   b = momentum b + u
//   p = p - lr b; without momentum p - lr u, and there is no b
#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

enum { SQUARE_AVG, BUFFER, GRAD_AVG };

typedef struct rmsprop {
  cx_optim_group base;
  double alpha, eps, momentum;
  bool centered;
  // Of the step that is being recorded; by_momentum is NULL without momentum.
  calx_tensor *by_lr, *by_alpha, *by_rest, *plus_eps, *by_momentum;
  cx_optim_lerp_weight average;
} rmsprop;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  (void)step;
  rmsprop *a = (rmsprop *)g;
  a->by_lr = cx_optim_number(g->opt, d, g->lr);
  a->by_alpha = cx_optim_number(g->opt, d, a->alpha);
  a->by_rest = cx_optim_number(g->opt, d, 1 - a->alpha);
  a->plus_eps = cx_optim_number(g->opt, d, a->eps);
  a->by_momentum = cx_optim_number_or_none(g->opt, d, a->momentum);
  if (a->centered) a->average = cx_optim_lerp_by(g, d, 1 - a->alpha);
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const rmsprop *a = (const rmsprop *)g;
  calx_tensor *s = cx_optim_square_average(a->by_alpha, a->by_rest,
                                           p->state[SQUARE_AVG], grad);
  out->state[SQUARE_AVG] = s;
  if (a->centered) {
    calx_tensor *average = cx_optim_lerp(a->average, p->state[GRAD_AVG], grad);
    out->state[GRAD_AVG] = average;
    s = calx_sub_with(s, calx_mul(average, average), NULL);
  }
  calx_tensor *change =
      calx_div(grad, calx_add_with(calx_sqrt(s), a->plus_eps, NULL));
  if (a->by_momentum != NULL) {
    calx_tensor *b = p->state[BUFFER];
    if (b != NULL) b = calx_mul(b, a->by_momentum);
    change = cx_optim_add_scaled(b, NULL, change);
    out->state[BUFFER] = change;
  }
  out->value = calx_sub_with(value, calx_mul(change, a->by_lr), NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(rmsprop, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "momentum", offsetof(rmsprop, momentum), CX_OPTIM_POSITIVE, 0 },
  { "alpha", offsetof(rmsprop, alpha), CX_OPTIM_POSITIVE, 0 },
  { "eps", offsetof(rmsprop, eps), CX_OPTIM_POSITIVE, 0 },
  { "centered", offsetof(rmsprop, centered), CX_OPTIM_FLAG, 0 },
  { "weight_decay", offsetof(rmsprop, base.weight_decay), CX_OPTIM_POSITIVE,
    0 },
  { "maximize", offsetof(rmsprop, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "rmsprop",
                                    .states = { "square_avg", "momentum_buffer",
                                                "grad_avg" },
                                    .fields = fields,
                                    .group_bytes = sizeof(rmsprop),
                                    .has_step = true,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_rmsprop_with(calx_module *model,
                                  const calx_rmsprop_options *options)
{
  calx_rmsprop_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  rmsprop *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 1e-2);
  a->base.weight_decay = o.weight_decay;
  a->base.maximize = o.maximize;
  a->alpha = cx_or_default(o.alpha, 0.99);
  a->eps = cx_or_default(o.eps, 1e-8);
  a->momentum = o.momentum;
  a->centered = o.centered;
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
