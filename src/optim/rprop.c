// optim/rprop: resilient backpropagation (M. Riedmiller and H. Braun, 1993), as
// torch.optim.Rprop has it. With gradient g, the one before it in b, and each
// element's step size s, at first lr:
//
//   s = s etas[1] where g b > 0, s etas[0] where g b < 0; within step_sizes
//   g = 0 where g b < 0
//   p = p - sign(g) s,  b = g
#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"
#include "ops/ops.h"
#include "optim/optimizer.h"

typedef struct rprop {
  cx_optim_group base;
  double eta_minus, eta_plus, least, most;
  // Of the step that is being recorded.
  calx_tensor *first, *by_minus, *by_plus, *low, *high, *zero, *one;
} rprop;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  (void)step;
  rprop *a = (rprop *)g;
  a->first = cx_optim_number(g->opt, d, g->lr);
  a->by_minus = cx_optim_number(g->opt, d, a->eta_minus);
  a->by_plus = cx_optim_number(g->opt, d, a->eta_plus);
  a->low = cx_optim_number(g->opt, d, a->least);
  a->high = cx_optim_number(g->opt, d, a->most);
  a->zero = cx_optim_number(g->opt, d, 0);
  a->one = cx_optim_number(g->opt, d, 1);
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const rprop *a = (const rprop *)g;
  calx_tensor *size = p->state[1];
  if (p->state[0] != NULL && size != NULL) {
    calx_tensor *product = calx_mul(grad, p->state[0]);
    calx_tensor *turned = calx_lt(product, a->zero);
    calx_tensor *by = calx_where(calx_gt(product, a->zero), a->by_plus, a->one);
    size = calx_mul(size, calx_where(turned, a->by_minus, by));
    grad = calx_where(turned, a->zero, grad);
  } else {
    size = calx_add_with(cx_ops_zeros_like(grad), a->first, NULL);
  }
  size = calx_minimum(calx_maximum(size, a->low), a->high);
  // A handle of its own: the gradient may be kept or consumed.
  out->state[0] = calx_add_with(grad, a->zero, NULL);
  out->state[1] = size;
  out->value = calx_sub_with(value, calx_mul(calx_sign(grad), size), NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(rprop, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "etas", offsetof(rprop, eta_minus), CX_OPTIM_INSIDE, CX_OPTIM_ABOVE_ONE },
  { "step_sizes", offsetof(rprop, least), CX_OPTIM_ANY, CX_OPTIM_ANY },
  { "maximize", offsetof(rprop, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "rprop",
                                    .states = { "prev", "step_size" },
                                    .fields = fields,
                                    .group_bytes = sizeof(rprop),
                                    .has_step = true,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_rprop_with(calx_module *model,
                                const calx_rprop_options *options)
{
  calx_rprop_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  rprop *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 1e-2);
  a->base.maximize = o.maximize;
  a->eta_minus = cx_or_default(o.etas[0], 0.5);
  a->eta_plus = cx_or_default(o.etas[1], 1.2);
  a->least = cx_or_default(o.step_sizes[0], 1e-6);
  a->most = cx_or_default(o.step_sizes[1], 50);
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
