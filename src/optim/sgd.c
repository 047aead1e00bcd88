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
  calx_optimizer base;
  double momentum, dampening, weight_decay;
  bool nesterov, maximize;
  // The numbers of the step that is being recorded; NULL where the rule does
  // not use one.
  calx_tensor *by_lr, *by_momentum, *by_rest, *by_decay;
} sgd;

static void prepare(calx_optimizer *opt, int64_t step, calx_dtype d)
{
  (void)step;
  sgd *s = (sgd *)opt;
  s->by_lr = cx_optim_number(opt, d, opt->lr);
  s->by_momentum =
      s->momentum != 0 ? cx_optim_number(opt, d, s->momentum) : NULL;
  s->by_rest =
      s->dampening != 0 ? cx_optim_number(opt, d, 1 - s->dampening) : NULL;
  s->by_decay =
      s->weight_decay != 0 ? cx_optim_number(opt, d, s->weight_decay) : NULL;
}

static calx_tensor *sum(calx_tensor *a, calx_tensor *b)
{
  return calx_add_with(a, b, NULL);
}

static void update(calx_optimizer *opt, const cx_optim_param *p, calx_tensor *g,
                   cx_optim_update *out)
{
  const sgd *s = (const sgd *)opt;
  if (s->maximize) g = calx_neg(g);
  if (s->by_decay != NULL) g = sum(g, calx_mul(p->tensor, s->by_decay));
  if (s->by_momentum != NULL) {
    calx_tensor *b = g;
    if (p->state[0] != NULL) {
      calx_tensor *fresh = s->by_rest != NULL ? calx_mul(g, s->by_rest) : g;
      b = sum(calx_mul(p->state[0], s->by_momentum), fresh);
    }
    out->state[0] = b;
    g = s->nesterov ? sum(g, calx_mul(b, s->by_momentum)) : b;
  }
  out->value = calx_sub_with(p->tensor, calx_mul(g, s->by_lr), NULL);
}

static const cx_optim_field fields[] = {
  { "lr", CX_OPTIM_NUMBER, offsetof(sgd, base.lr) },
  { "momentum", CX_OPTIM_NUMBER, offsetof(sgd, momentum) },
  { "dampening", CX_OPTIM_NUMBER, offsetof(sgd, dampening) },
  { "weight_decay", CX_OPTIM_NUMBER, offsetof(sgd, weight_decay) },
  { "nesterov", CX_OPTIM_FLAG, offsetof(sgd, nesterov) },
  { "maximize", CX_OPTIM_FLAG, offsetof(sgd, maximize) },
  { NULL, CX_OPTIM_FLAG, 0 }
};

static const cx_optim_rule sgd_rule = { .name = "sgd",
                                        .states = { "momentum_buffer" },
                                        .fields = fields,
                                        .prepare = prepare,
                                        .update = update };

static calx_status *check(const calx_optimizer *opt, const calx_sgd_options *o)
{
  CALX_TRY(cx_options_check("sgd", o->size, sizeof *o));
  CALX_TRY(cx_optim_check_positive(opt, "lr", opt->lr));
  CALX_TRY(cx_optim_check_positive(opt, "momentum", o->momentum));
  CALX_TRY(cx_optim_check_positive(opt, "weight_decay", o->weight_decay));
  if (o->dampening != o->dampening) {
    return cx_invalid("sgd: dampening is NaN");
  }
  if (!o->nesterov || (o->momentum > 0 && o->dampening == 0)) return NULL;
  return cx_invalid(
      "sgd: nesterov with momentum %g and dampening %g: it needs momentum and "
      "no dampening",
      o->momentum, o->dampening);
}

calx_optimizer *calx_sgd_with(calx_module *model,
                              const calx_sgd_options *options)
{
  static const calx_sgd_options none = { .size = sizeof none };
  const calx_sgd_options *o = options != NULL ? options : &none;
  calx_optimizer *opt = cx_optim_new(sizeof(sgd), &sgd_rule, model);
  if (!cx_optim_is_real(opt)) return opt;
  sgd *s = (sgd *)opt;
  opt->lr = cx_or_default(o->lr, 1e-3);
  opt->keep_gradients = o->keep_gradients;
  s->momentum = o->momentum;
  s->dampening = o->dampening;
  s->weight_decay = o->weight_decay;
  s->nesterov = o->nesterov;
  s->maximize = o->maximize;
  cx_optim_fail(opt, check(opt, o));
  return opt;
}
