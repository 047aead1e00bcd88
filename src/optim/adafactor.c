// optim/adafactor: Adafactor (N. Shazeer and M. Stern, 2018), as
// torch.optim.Adafactor has it. At step t, with gradient g (…, m, n):
//
//   w = t^beta2_decay
//   r = r + w (mean of g g over n - r)    c = c + w (mean of g g over m - c)
//   v = r c / max(mean of r over m, eps1)
//   u = g / sqrt(max(v, eps1^2)), then u / max(1, |u| / (sqrt(elements) d))
//   p = p (1 - lr weight_decay)
//         - max(eps2, |p| / sqrt(elements)) min(lr, 1 / sqrt(t)) u
//
// |p| is that before the decay. Of a vector v itself is kept.
#include <math.h>

#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

enum { ROW, COLUMN, VARIANCE };

typedef struct adafactor {
  cx_optim_group base;
  double beta2_decay, eps1, eps2, d;  // eps1 NaN: the type's
  // Of the step that is being recorded.
  calx_tensor *by_rest, *by_w, *least, *least_square, *least_scale;
  calx_tensor *by_rate, *most, *one;
} adafactor;

static double epsilon_of(calx_dtype d)
{
  switch (d) {
    case CALX_F64: return 0x1p-52;
    case CALX_BF16: return 0x1p-7;
    case CALX_F16: return 0x1p-10;
    default: return 0x1p-23;
  }
}

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  adafactor *a = (adafactor *)g;
  double w = pow((double)step, a->beta2_decay);
  double e = isnan(a->eps1) ? epsilon_of(g->dtype) : a->eps1;
  a->by_rest = cx_optim_number(g->opt, d, 1 - w);
  a->by_w = cx_optim_number(g->opt, d, w);
  a->least = cx_optim_number(g->opt, d, e);
  a->least_square = cx_optim_number(g->opt, d, e * e);
  a->least_scale = cx_optim_number(g->opt, d, a->eps2);
  double rate = fmin(g->lr, 1 / sqrt((double)step));
  a->by_rate = cx_optim_number(g->opt, d, rate);
  a->most = cx_optim_number(g->opt, d, a->d);
  a->one = cx_optim_number(g->opt, d, 1);
}

static calx_tensor *mean_over(calx_tensor *x, int64_t dim)
{
  calx_reduce_options o = { .size = sizeof o,
                            .dims = calx_dims_of(&dim, 1),
                            .keepdim = true };
  return calx_mean_with(x, &o);
}

static calx_tensor *root_mean_square(calx_tensor *x)
{
  return calx_sqrt(calx_mean_with(calx_mul(x, x), NULL));
}

static calx_tensor *average(const adafactor *a, calx_tensor *old,
                            calx_tensor *x)
{
  if (old != NULL) old = calx_mul(old, a->by_rest);
  return cx_optim_add_scaled(old, a->by_w, x);
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const adafactor *a = (const adafactor *)g;
  calx_tensor *square = calx_mul(grad, grad), *v;
  if (calx_tensor_rank(grad) > 1) {
    calx_tensor *row = average(a, p->state[ROW], mean_over(square, -1));
    calx_tensor *column = average(a, p->state[COLUMN], mean_over(square, -2));
    out->state[ROW] = row;
    out->state[COLUMN] = column;
    v = calx_div(calx_mul(row, column),
                 calx_maximum(mean_over(row, -2), a->least));
  } else {
    v = average(a, p->state[VARIANCE], square);
    out->state[VARIANCE] = v;
  }
  calx_tensor *u = calx_rsqrt(calx_maximum(v, a->least_square));
  u = calx_mul(u, grad);
  calx_tensor *denom =
      calx_maximum(calx_div(root_mean_square(u), a->most), a->one);
  calx_tensor *scale =
      calx_maximum(root_mean_square(p->tensor), a->least_scale);
  scale = calx_div(calx_mul(scale, a->by_rate), denom);
  out->value = calx_sub_with(value, calx_mul(u, scale), NULL);
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(adafactor, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "beta2_decay", offsetof(adafactor, beta2_decay), CX_OPTIM_NEGATIVE, 0 },
  { "eps", offsetof(adafactor, eps1), CX_OPTIM_NONE_POSITIVE,
    CX_OPTIM_POSITIVE },
  { "d", offsetof(adafactor, d), CX_OPTIM_FROM_ONE, 0 },
  { "weight_decay", offsetof(adafactor, base.weight_decay), CX_OPTIM_POSITIVE,
    0 },
  { "maximize", offsetof(adafactor, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

// A state that the parameter does not have gets the rank -1.
static void state_shape(int k, cx_graph_shape *shape)
{
  bool matrix = shape->rank > 1;
  if (matrix == (k == VARIANCE)) {
    shape->rank = -1;
  } else if (matrix) {
    shape->dims[shape->rank - (k == ROW ? 1 : 2)] = 1;
  }
}

static const cx_optim_rule rule = { .name = "adafactor",
                                    .states = { "row_var", "col_var",
                                                "variance" },
                                    .fields = fields,
                                    .group_bytes = sizeof(adafactor),
                                    .has_step = true,
                                    .needs_shape = true,
                                    .state_shape = state_shape,
                                    .prepare = prepare,
                                    .update = update };

calx_optimizer *calx_adafactor_with(calx_module *model,
                                    const calx_adafactor_options *options)
{
  calx_adafactor_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  adafactor *a = cx_optim_first_group(opt);
  if (a == NULL) return opt;
  a->base.lr = cx_or_default(o.lr, 1e-2);
  a->base.weight_decay = o.weight_decay;
  a->base.maximize = o.maximize;
  a->base.decoupled = true;
  a->beta2_decay = cx_or_default(o.beta2_decay, -0.8);
  a->eps1 = cx_or_default(o.eps[0], (double)NAN);
  a->eps2 = cx_or_default(o.eps[1], 1e-3);
  a->d = cx_or_default(o.d, 1);
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
