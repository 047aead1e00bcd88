// optim/muon: Muon (K. Jordan et al., 2024), as torch.optim.Muon has it. Of a
// parameter (m, n), with gradient g:
//
//   b = b + (1 - momentum)(g - b)
//   u = g + momentum (b - g), or b without Nesterov
//   x = u / max(|u|, eps), its transpose where m > n, in bf16
//   ns_steps times: a = x x^T    x = c0 x + (c1 a + c2 a a) x
//   p = p (1 - lr weight_decay) - lr adjusted(m, n) x
//
// Each product and its sum is rounded to bf16 once, as PyTorch's addmm does.
#include <math.h>
#include <string.h>

#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

enum { ORIGINAL_BY_DEFAULT, ORIGINAL, MATCH_RMS_ADAMW };
static const char *const choices[] = { "", "original", "match_rms_adamw",
                                       NULL };

typedef struct muon {
  cx_optim_group base;
  double momentum, eps, steps, adjust, coefficient[3];
  bool nesterov;
  // Of the step that is being recorded.
  cx_optim_lerp_weight by_rest, by_momentum;
  calx_tensor *by[3], *least;
} muon;

static void prepare(cx_optim_group *g, int64_t step, calx_dtype d)
{
  (void)step;
  muon *m = (muon *)g;
  m->by_rest = cx_optim_lerp_by(g, d, 1 - m->momentum);
  m->by_momentum = cx_optim_lerp_by(g, d, m->momentum);
  for (int i = 0; i < 3; i++) {
    m->by[i] = cx_optim_number(g->opt, CALX_F32, m->coefficient[i]);
  }
  m->least = cx_optim_number(g->opt, CALX_F32, m->eps);
}

static calx_tensor *narrow(calx_tensor *x)
{
  return calx_to_dtype(calx_to_dtype(x, CALX_BF16), CALX_F32);
}

// The values are those of bf16, in tensors of f32.
static calx_tensor *orthogonal(const muon *m, calx_tensor *u)
{
  bool tall = calx_tensor_dim(u, 0) > calx_tensor_dim(u, 1);
  calx_tensor *x = narrow(u);
  if (tall) x = calx_transpose(x, 0, 1);
  calx_tensor *norm = calx_sqrt(calx_sum_with(calx_mul(x, x), NULL));
  x = narrow(calx_div(x, narrow(calx_maximum(narrow(norm), m->least))));
  for (int i = 0; i < (int)m->steps; i++) {
    calx_tensor *a = narrow(calx_matmul(x, calx_transpose(x, 0, 1)));
    calx_tensor *square = calx_mul(calx_matmul(a, a), m->by[2]);
    a = narrow(calx_add_with(calx_mul(a, m->by[1]), square, NULL));
    calx_tensor *next = calx_matmul(a, x);
    x = narrow(calx_add_with(calx_mul(x, m->by[0]), next, NULL));
  }
  return tall ? calx_transpose(x, 0, 1) : x;
}

static double adjusted(const muon *m, const calx_tensor *t)
{
  double rows = (double)calx_tensor_dim(t, 0);
  double columns = (double)calx_tensor_dim(t, 1);
  if ((int)m->adjust == MATCH_RMS_ADAMW) {
    return 0.2 * sqrt(fmax(rows, columns)) * m->base.lr;
  }
  return m->base.lr * sqrt(fmax(1, rows / columns));
}

static void update(const cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *value, calx_tensor *grad, cx_optim_update *out)
{
  const muon *m = (const muon *)g;
  calx_dtype d = calx_tensor_dtype(value);
  calx_tensor *b = cx_optim_lerp(m->by_rest, p->state[0], grad);
  calx_tensor *u = m->nesterov ? cx_optim_lerp(m->by_momentum, grad, b) : b;
  out->state[0] = b;
  calx_tensor *rate = cx_optim_number(g->opt, d, adjusted(m, value));
  calx_tensor *way = calx_to_dtype(orthogonal(m, u), d);
  out->value = calx_sub_with(value, calx_mul(way, rate), NULL);
}

static calx_status *check_param(const calx_tensor *t)
{
  size_t rank = calx_tensor_rank(t);
  if (rank == 2) return NULL;
  return cx_invalid(
      "muon: Muon only supports 2D parameters whereas we found a parameter of "
      "rank %zu, %s: give .params, and the others to another optimiser",
      rank, cx_graph_shape_str(cx_lazy_tensor_shape(t)));
}

static const cx_optim_field fields[] = {
  { "lr", offsetof(muon, base.lr), CX_OPTIM_POSITIVE, 0 },
  { "weight_decay", offsetof(muon, base.weight_decay), CX_OPTIM_POSITIVE, 0 },
  { "momentum", offsetof(muon, momentum), CX_OPTIM_POSITIVE, 0 },
  { "nesterov", offsetof(muon, nesterov), CX_OPTIM_FLAG, 0 },
  { "ns_coefficients", offsetof(muon, coefficient), CX_OPTIM_ANY,
    CX_OPTIM_TRIPLE },
  { "eps", offsetof(muon, eps), CX_OPTIM_POSITIVE, 0 },
  { "ns_steps", offsetof(muon, steps), CX_OPTIM_STEPS, 0 },
  { "adjust_lr_fn", offsetof(muon, adjust), CX_OPTIM_NAME, 0 },
  { "maximize", offsetof(muon, base.maximize), CX_OPTIM_FLAG, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "muon",
                                    .states = { "momentum_buffer" },
                                    .fields = fields,
                                    .choices = choices,
                                    .group_bytes = sizeof(muon),
                                    .needs_shape = true,
                                    .check_param = check_param,
                                    .prepare = prepare,
                                    .update = update };

static calx_status *find_choice(const char *name, double *out)
{
  *out = ORIGINAL_BY_DEFAULT;
  for (size_t i = 0; name != NULL && choices[i] != NULL; i++) {
    if (strcmp(name, choices[i]) != 0) continue;
    *out = (double)i;
    return NULL;
  }
  if (name == NULL) return NULL;
  return cx_invalid(
      "muon: Adjust learning rate function '%s' is not supported, 'original' "
      "and 'match_rms_adamw' are",
      name);
}

calx_optimizer *calx_muon_with(calx_module *model,
                               const calx_muon_options *options)
{
  static const double coefficients[3] = { 3.4445, -4.7750, 2.0315 };
  calx_muon_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  double adjust = 0;
  if (status == NULL) status = find_choice(o.adjust_lr_fn, &adjust);
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  muon *m = cx_optim_first_group(opt);
  if (m == NULL) return opt;
  m->base.lr = cx_or_default(o.lr, 1e-3);
  m->base.weight_decay = cx_or_default(o.weight_decay, 0.1);
  m->base.maximize = o.maximize;
  m->base.decoupled = true;
  m->momentum = cx_or_default(o.momentum, 0.95);
  m->nesterov = !o.no_nesterov;
  m->eps = cx_or_default(o.eps, 1e-7);
  m->steps = o.ns_steps != 0 ? (double)o.ns_steps : 5;
  m->adjust = adjust;
  for (int i = 0; i < 3; i++) {
    m->coefficient[i] = cx_or_default(o.ns_coefficients[i], coefficients[i]);
  }
  return cx_optim_ready(opt, o.keep_gradients, o.master_weights);
}
