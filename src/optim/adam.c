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
  calx_optimizer base;
  double beta1, beta2, eps, weight_decay;
  bool amsgrad, maximize, decoupled;
  // The numbers of the step that is being recorded.
  calx_tensor *by_beta1, *by_rest1;  // one of them, see first_moment()
  calx_tensor *by_beta2, *by_rest2, *root_correction, *plus_eps, *step_size;
  calx_tensor *by_decay;  // NULL: no weight decay
} adam;

static void prepare(calx_optimizer *opt, int64_t step, calx_dtype d)
{
  adam *a = (adam *)opt;
  double correction1 = 1 - pow(a->beta1, (double)step);
  double correction2 = 1 - pow(a->beta2, (double)step);
  a->by_beta1 = 1 - a->beta1 < 0.5 ? NULL : cx_optim_number(opt, d, a->beta1);
  a->by_rest1 =
      1 - a->beta1 < 0.5 ? cx_optim_number(opt, d, 1 - a->beta1) : NULL;
  a->by_beta2 = cx_optim_number(opt, d, a->beta2);
  a->by_rest2 = cx_optim_number(opt, d, 1 - a->beta2);
  a->root_correction = cx_optim_number(opt, d, sqrt(correction2));
  a->plus_eps = cx_optim_number(opt, d, a->eps);
  a->step_size = cx_optim_number(opt, d, opt->lr / correction1);
  double decay = a->decoupled ? 1 - opt->lr * a->weight_decay : a->weight_decay;
  a->by_decay = a->weight_decay != 0 ? cx_optim_number(opt, d, decay) : NULL;
}

static calx_tensor *sum(calx_tensor *a, calx_tensor *b)
{
  return calx_add_with(a, b, NULL);
}

static calx_tensor *difference(calx_tensor *a, calx_tensor *b)
{
  return calx_sub_with(a, b, NULL);
}

// torch.lerp(m, g, 1 - beta1): computed from the operand that the weight is
// nearer to, as PyTorch does.
static calx_tensor *first_moment(const adam *a, calx_tensor *m, calx_tensor *g)
{
  calx_tensor *way = m != NULL ? difference(g, m) : g;
  if (a->by_rest1 == NULL) return difference(g, calx_mul(way, a->by_beta1));
  calx_tensor *part = calx_mul(way, a->by_rest1);
  return m != NULL ? sum(m, part) : part;
}

static calx_tensor *second_moment(const adam *a, calx_tensor *v, calx_tensor *g)
{
  calx_tensor *fresh = calx_mul(calx_mul(g, g), a->by_rest2);
  return v != NULL ? sum(calx_mul(v, a->by_beta2), fresh) : fresh;
}

static void update(calx_optimizer *opt, const cx_optim_param *p, calx_tensor *g,
                   cx_optim_update *out)
{
  const adam *a = (const adam *)opt;
  calx_tensor *value = p->tensor;
  if (a->maximize) g = calx_neg(g);
  if (a->by_decay != NULL) {
    calx_tensor *scaled = calx_mul(value, a->by_decay);
    if (a->decoupled) {
      value = scaled;
    } else {
      g = sum(g, scaled);
    }
  }
  calx_tensor *m = first_moment(a, p->state[EXP_AVG], g);
  calx_tensor *v = second_moment(a, p->state[EXP_AVG_SQ], g);
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
  calx_tensor *d = sum(calx_div(calx_sqrt(v), a->root_correction), a->plus_eps);
  out->value = difference(value, calx_mul(calx_div(m, d), a->step_size));
}

static const cx_optim_field fields[] = {
  { "lr", CX_OPTIM_NUMBER, offsetof(adam, base.lr) },
  { "betas", CX_OPTIM_PAIR, offsetof(adam, beta1) },
  { "eps", CX_OPTIM_NUMBER, offsetof(adam, eps) },
  { "weight_decay", CX_OPTIM_NUMBER, offsetof(adam, weight_decay) },
  { "amsgrad", CX_OPTIM_FLAG, offsetof(adam, amsgrad) },
  { "maximize", CX_OPTIM_FLAG, offsetof(adam, maximize) },
  { "decoupled_weight_decay", CX_OPTIM_FLAG, offsetof(adam, decoupled) },
  { NULL, CX_OPTIM_FLAG, 0 }
};

#define STATES                                \
  {                                           \
    "exp_avg", "exp_avg_sq", "max_exp_avg_sq" \
  }
static const cx_optim_rule adam_rule = { .name = "adam",
                                         .states = STATES,
                                         .fields = fields,
                                         .has_step = true,
                                         .prepare = prepare,
                                         .update = update };
static const cx_optim_rule adamw_rule = { .name = "adamw",
                                          .states = STATES,
                                          .fields = fields,
                                          .has_step = true,
                                          .prepare = prepare,
                                          .update = update };

static calx_status *check(const calx_optimizer *opt, const calx_adam_options *o)
{
  const adam *a = (const adam *)opt;
  const char *name = opt->rule->name;
  CALX_TRY(cx_options_check(name, o->size, sizeof *o));
  CALX_TRY(cx_optim_check_positive(opt, "lr", opt->lr));
  CALX_TRY(cx_optim_check_positive(opt, "eps", a->eps));
  CALX_TRY(cx_optim_check_positive(opt, "weight_decay", a->weight_decay));
  if (a->beta1 >= 0 && a->beta1 < 1 && a->beta2 >= 0 && a->beta2 < 1) {
    return NULL;
  }
  return cx_invalid("%s: betas %g and %g, numbers in [0, 1) are wanted", name,
                    a->beta1, a->beta2);
}

static calx_optimizer *make(calx_module *model, const cx_optim_rule *rule,
                            const calx_adam_options *options, bool decoupled)
{
  static const calx_adam_options none = { .size = sizeof none };
  const calx_adam_options *o = options != NULL ? options : &none;
  calx_optimizer *opt = cx_optim_new(sizeof(adam), rule, model);
  if (!cx_optim_is_real(opt)) return opt;
  adam *a = (adam *)opt;
  opt->lr = cx_or_default(o->lr, 1e-3);
  opt->keep_gradients = o->keep_gradients;
  a->beta1 = cx_or_default(o->betas[0], 0.9);
  a->beta2 = cx_or_default(o->betas[1], 0.999);
  a->eps = cx_or_default(o->eps, 1e-8);
  a->weight_decay = cx_or_default(o->weight_decay, decoupled ? 0.01 : 0);
  a->amsgrad = o->amsgrad;
  a->maximize = o->maximize;
  a->decoupled = decoupled;
  cx_optim_fail(opt, check(opt, o));
  return opt;
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
