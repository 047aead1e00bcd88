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
  calx_optimizer base;
  double lr_decay, weight_decay, initial, eps;
  bool maximize;
  // The numbers of the step that is being recorded; NULL where the rule does
  // not use one.
  calx_tensor *by_lr, *by_decay, *first_sum, *plus_eps;
} adagrad;

static void prepare(calx_optimizer *opt, int64_t step, calx_dtype d)
{
  adagrad *a = (adagrad *)opt;
  double lr = opt->lr / (1 + (double)(step - 1) * a->lr_decay);
  a->by_lr = cx_optim_number(opt, d, lr);
  a->by_decay =
      a->weight_decay != 0 ? cx_optim_number(opt, d, a->weight_decay) : NULL;
  a->first_sum = a->initial != 0 ? cx_optim_number(opt, d, a->initial) : NULL;
  a->plus_eps = cx_optim_number(opt, d, a->eps);
}

static calx_tensor *add(calx_tensor *x, calx_tensor *y)
{
  return calx_add_with(x, y, NULL);
}

static void update(calx_optimizer *opt, const cx_optim_param *p, calx_tensor *g,
                   cx_optim_update *out)
{
  const adagrad *a = (const adagrad *)opt;
  if (a->maximize) g = calx_neg(g);
  if (a->by_decay != NULL) g = add(g, calx_mul(p->tensor, a->by_decay));
  calx_tensor *sum = p->state[0] != NULL ? p->state[0] : a->first_sum;
  calx_tensor *square = calx_mul(g, g);
  out->state[0] = sum != NULL ? add(sum, square) : square;
  calx_tensor *d = add(calx_sqrt(out->state[0]), a->plus_eps);
  calx_tensor *change = calx_mul(calx_div(g, d), a->by_lr);
  out->value = calx_sub_with(p->tensor, change, NULL);
}

static const cx_optim_field fields[] = {
  { "lr", CX_OPTIM_NUMBER, offsetof(adagrad, base.lr) },
  { "lr_decay", CX_OPTIM_NUMBER, offsetof(adagrad, lr_decay) },
  { "weight_decay", CX_OPTIM_NUMBER, offsetof(adagrad, weight_decay) },
  { "initial_accumulator_value", CX_OPTIM_NUMBER, offsetof(adagrad, initial) },
  { "eps", CX_OPTIM_NUMBER, offsetof(adagrad, eps) },
  { "maximize", CX_OPTIM_FLAG, offsetof(adagrad, maximize) },
  { NULL, CX_OPTIM_FLAG, 0 }
};

static const cx_optim_rule rule = { .name = "adagrad",
                                    .states = { "sum" },
                                    .fields = fields,
                                    .has_step = true,
                                    .prepare = prepare,
                                    .update = update };

static calx_status *check(const calx_optimizer *opt,
                          const calx_adagrad_options *o)
{
  const adagrad *a = (const adagrad *)opt;
  CALX_TRY(cx_options_check("adagrad", o->size, sizeof *o));
  CALX_TRY(cx_optim_check_positive(opt, "lr", opt->lr));
  CALX_TRY(cx_optim_check_positive(opt, "lr_decay", a->lr_decay));
  CALX_TRY(cx_optim_check_positive(opt, "weight_decay", a->weight_decay));
  CALX_TRY(
      cx_optim_check_positive(opt, "initial_accumulator_value", a->initial));
  return cx_optim_check_positive(opt, "eps", a->eps);
}

calx_optimizer *calx_adagrad_with(calx_module *model,
                                  const calx_adagrad_options *options)
{
  static const calx_adagrad_options none = { .size = sizeof none };
  const calx_adagrad_options *o = options != NULL ? options : &none;
  calx_optimizer *opt = cx_optim_new(sizeof(adagrad), &rule, model);
  if (!cx_optim_is_real(opt)) return opt;
  adagrad *a = (adagrad *)opt;
  opt->lr = cx_or_default(o->lr, 1e-2);
  opt->keep_gradients = o->keep_gradients;
  a->lr_decay = o->lr_decay;
  a->weight_decay = o->weight_decay;
  a->initial = o->initial_accumulator_value;
  a->eps = cx_or_default(o->eps, 1e-10);
  a->maximize = o->maximize;
  cx_optim_fail(opt, check(opt, o));
  return opt;
}
