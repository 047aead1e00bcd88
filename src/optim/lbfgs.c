// optim/lbfgs: L-BFGS (J. Nocedal, 1980), with the decisions and numbers of
// torch.optim.LBFGS.
#include "optim/lbfgs.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "calx/optimizers.h"
#include "lazy/lazy.h"

static const char *const choices[] = { "", "strong_wolfe", NULL };

static void add(size_t n, double *x, double by, const double *y)
{
  for (size_t i = 0; i < n; i++) x[i] += by * y[i];
}

// ---- the direction ----------------------------------------------------------

static void forget_oldest(cx_optim_lbfgs_state *s)
{
  cx_free(s->old_dirs[0]);
  cx_free(s->old_stps[0]);
  size_t rest = --s->n_old;
  memmove(s->old_dirs, s->old_dirs + 1, rest * sizeof *s->old_dirs);
  memmove(s->old_stps, s->old_stps + 1, rest * sizeof *s->old_stps);
  memmove(s->ro, s->ro + 1, rest * sizeof *s->ro);
}

// Keeps how the gradient changed on the last step.
static calx_status *remember(cx_optim_lbfgs *l, size_t most)
{
  cx_optim_lbfgs_state *s = &l->s;
  double ys = 0, yy = 0;
  for (size_t i = 0; i < l->size; i++) {
    double y = l->grad[i] - s->prev_flat_grad[i];
    ys += y * (s->d[i] * s->t);
    yy += y * y;
  }
  if (!(ys > 1e-10)) return NULL;
  while (s->n_old >= most) forget_oldest(s);
  if (!cx_optim_lbfgs_grow(s, l->size)) return cx_out_of_memory();
  double *dir = s->old_dirs[s->n_old - 1], *way = s->old_stps[s->n_old - 1];
  for (size_t i = 0; i < l->size; i++) {
    dir[i] = l->grad[i] - s->prev_flat_grad[i];
    way[i] = s->d[i] * s->t;
  }
  s->ro[s->n_old - 1] = 1 / ys;
  s->h_diag = ys / yy;
  return NULL;
}

// d = -H grad by the recursion of two loops.
static calx_status *find_direction(cx_optim_lbfgs *l)
{
  cx_optim_lbfgs_state *s = &l->s;
  double *al = cx_calloc(s->n_old + 1, sizeof *al);
  if (al == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < l->size; i++) s->d[i] = -l->grad[i];
  for (size_t i = s->n_old; i-- > 0;) {
    al[i] = cx_optim_dot(l->size, s->old_stps[i], s->d) * s->ro[i];
    add(l->size, s->d, -al[i], s->old_dirs[i]);
  }
  for (size_t i = 0; i < l->size; i++) s->d[i] *= s->h_diag;
  for (size_t i = 0; i < s->n_old; i++) {
    double be = cx_optim_dot(l->size, s->old_dirs[i], s->d) * s->ro[i];
    add(l->size, s->d, al[i] - be, s->old_stps[i]);
  }
  cx_free(al);
  return NULL;
}

static calx_status *begin_iteration(cx_optim_lbfgs *l, size_t history)
{
  cx_optim_lbfgs_state *s = &l->s;
  if (s->d == NULL) s->d = cx_calloc(l->size, sizeof *s->d);
  if (s->prev_flat_grad == NULL) {
    s->prev_flat_grad = cx_calloc(l->size, sizeof *s->prev_flat_grad);
  }
  if (s->d == NULL || s->prev_flat_grad == NULL) return cx_out_of_memory();
  if (s->n_iter == 1) {
    while (s->n_old != 0) forget_oldest(s);
    s->h_diag = 1;
  } else {
    CALX_TRY(remember(l, history));
  }
  CALX_TRY(find_direction(l));
  memcpy(s->prev_flat_grad, l->grad, l->size * sizeof *l->grad);
  return NULL;
}

// ---- a step -----------------------------------------------------------------

// PyTorch's first step length: not further than 1 in all.
static double first_length(const cx_optim_lbfgs *l, double lr)
{
  double sum = 0;
  if (l->s.n_iter != 1) return lr;
  for (size_t i = 0; i < l->size; i++) sum += fabs(l->grad[i]);
  double by = 1 / sum;
  return (by < 1 ? by : 1) * lr;
}

// One iteration; *out_ends: it is the last one.
static calx_status *iterate(cx_optim_lbfgs *l, int64_t n, double *loss,
                            bool *out_ends)
{
  const cx_optim_lbfgs_group *g =
      (const cx_optim_lbfgs_group *)l->base.groups[0];
  cx_optim_lbfgs_state *s = &l->s;
  bool last = n == (int64_t)g->max_iter;
  *out_ends = true;
  CALX_TRY(begin_iteration(l, (size_t)g->history_size));
  s->prev_loss = *loss;
  s->t = first_length(l, g->base.lr);
  cx_optim_point at = { s->t, *loss, cx_optim_dot(l->size, l->grad, s->d),
                        l->grad };
  if (at.slope > -g->tolerance_change) return NULL;
  if (g->line_search != 0) {
    double left = g->max_eval - (double)l->evals;
    CALX_TRY(cx_optim_strong_wolfe(l, &at, left > 0 ? (int64_t)left : 0));
    s->t = at.t;
    *loss = at.loss;
  }
  CALX_TRY(cx_optim_lbfgs_assign(l, s->t, s->d));
  cx_optim_lbfgs_advance(l, s->t, s->d);
  if (g->line_search == 0 && !last) {
    CALX_TRY(cx_optim_lbfgs_evaluate(l, loss, l->grad));
    l->evals++;
  }
  double way = fabs(s->t) * cx_optim_greatest(l->size, s->d);
  *out_ends = last || l->evals >= (int64_t)g->max_eval ||
              cx_optim_greatest(l->size, l->grad) <= g->tolerance_grad ||
              way <= g->tolerance_change ||
              fabs(*loss - s->prev_loss) < g->tolerance_change;
  return NULL;
}

static calx_status *iterate_all(cx_optim_lbfgs *l, double *first_loss)
{
  const cx_optim_lbfgs_group *g =
      (const cx_optim_lbfgs_group *)l->base.groups[0];
  double loss;
  CALX_TRY(cx_optim_lbfgs_evaluate(l, &loss, l->grad));
  CALX_TRY(cx_optim_lbfgs_read(l));
  *first_loss = loss;
  l->evals = 1;
  bool ends = cx_optim_greatest(l->size, l->grad) <= g->tolerance_grad;
  for (int64_t n = 1; !ends && n <= (int64_t)g->max_iter; n++) {
    l->s.n_iter++;
    calx_status *status = iterate(l, n, &loss, &ends);
    if (status == NULL) continue;
    l->s.n_iter--;
    calx_status_free(cx_optim_lbfgs_assign(l, 0, NULL));
    return status;
  }
  return NULL;
}

static bool take_room(cx_optim_lbfgs *l)
{
  bool all = true;
  l->x = cx_calloc(l->size, sizeof *l->x);
  l->grad = cx_calloc(l->size, sizeof *l->grad);
  l->staging = cx_calloc(l->size, sizeof(double));
  for (int i = 0; i < 4; i++) {
    l->search[i] = cx_calloc(l->size, sizeof(double));
    all &= l->search[i] != NULL;
  }
  return all && l->x != NULL && l->grad != NULL && l->staging != NULL;
}

static void give_room(cx_optim_lbfgs *l)
{
  cx_free(l->x);
  cx_free(l->grad);
  cx_free(l->staging);
  for (int i = 0; i < 4; i++) cx_free(l->search[i]);
}

static calx_status *step(calx_optimizer *opt, calx_loss_closure_fn *closure,
                         void *user, calx_tensor **out_loss)
{
  cx_optim_lbfgs *l = (cx_optim_lbfgs *)opt;
  if (l->closure != NULL) {
    return cx_invalid("lbfgs: the closure makes a step itself");
  }
  l->closure = closure;
  l->user = user;
  double loss = (double)NAN;
  calx_status *status =
      take_room(l) ? iterate_all(l, &loss) : cx_out_of_memory();
  give_room(l);
  l->closure = NULL;
  if (status != NULL) return status;
  opt->confirmed_steps = ++opt->steps;
  *out_loss = cx_optim_number(opt, l->dtype, loss);
  return NULL;
}

static calx_status *step_without(calx_optimizer *opt)
{
  (void)opt;
  return cx_invalid(
      "optimizer_step: lbfgs evaluates the loss several times in a step: call "
      "calx_optimizer_step_closure");
}

static calx_status *add_group(calx_optimizer *opt, const cx_optim_group *group,
                              const calx_param_group_options *options)
{
  (void)opt;
  (void)group;
  (void)options;
  return cx_invalid(
      "lbfgs: LBFGS doesn't support per-parameter options (parameter groups)");
}

static calx_status *check(const cx_optim_group *g)
{
  if (((const cx_optim_lbfgs_group *)g)->history_size >= 1) return NULL;
  return cx_invalid(
      "lbfgs: history_size 0, a whole number of 1 or more is "
      "wanted");
}

static void free_all(calx_optimizer *opt)
{
  cx_optim_lbfgs_state_free(&((cx_optim_lbfgs *)opt)->s);
}

// ---- making -----------------------------------------------------------------

#define AT(member) offsetof(cx_optim_lbfgs_group, member)
static const cx_optim_field fields[] = {
  { "lr", AT(base.lr), CX_OPTIM_POSITIVE, 0 },
  { "max_iter", AT(max_iter), CX_OPTIM_COUNT, 0 },
  { "max_eval", AT(max_eval), CX_OPTIM_COUNT, 0 },
  { "tolerance_grad", AT(tolerance_grad), CX_OPTIM_ANY, 0 },
  { "tolerance_change", AT(tolerance_change), CX_OPTIM_ANY, 0 },
  { "history_size", AT(history_size), CX_OPTIM_COUNT, 0 },
  { "line_search_fn", AT(line_search), CX_OPTIM_NAME, 0 },
  { NULL, 0, 0, 0 }
};

static const cx_optim_rule rule = { .name = "lbfgs",
                                    .fields = fields,
                                    .choices = choices,
                                    .bytes = sizeof(cx_optim_lbfgs),
                                    .group_bytes = sizeof(cx_optim_lbfgs_group),
                                    .needs_shape = true,
                                    .check = check,
                                    .step = step_without,
                                    .step_closure = step,
                                    .add_group = add_group,
                                    .free = free_all };

cx_optim_lbfgs *cx_optim_as_lbfgs(calx_optimizer *opt)
{
  return opt->rule == &rule ? (cx_optim_lbfgs *)opt : NULL;
}

static void measure(cx_optim_lbfgs *l)
{
  l->dtype = CALX_F32;
  for (size_t i = 0; i < l->base.n; i++) {
    const calx_tensor *p = l->base.params[i].tensor;
    l->size += (size_t)calx_tensor_numel(p);
    if (calx_tensor_dtype(p) == CALX_F64) l->dtype = CALX_F64;
  }
}

calx_optimizer *calx_lbfgs_with(calx_module *model,
                                const calx_lbfgs_options *options)
{
  calx_lbfgs_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  bool known =
      o.line_search_fn == NULL || strcmp(o.line_search_fn, choices[1]) == 0;
  if (status == NULL && !known) {
    status = cx_invalid(
        "lbfgs: line_search_fn '%s', only 'strong_wolfe' is "
        "supported",
        o.line_search_fn);
  }
  calx_optimizer *opt = cx_optim_new(
      &rule, status, (cx_optim_choice){ model, o.params, o.n_params });
  cx_optim_lbfgs_group *g = cx_optim_first_group(opt);
  if (g == NULL) return opt;
  int64_t iterations = o.max_iter != 0 ? o.max_iter : 20;
  int64_t evals = o.max_eval != 0 ? o.max_eval : iterations * 5 / 4;
  g->base.lr = cx_or_default(o.lr, 1);
  g->max_iter = (double)iterations;
  g->max_eval = (double)evals;
  g->tolerance_grad = cx_or_default(o.tolerance_grad, 1e-7);
  g->tolerance_change = cx_or_default(o.tolerance_change, 1e-9);
  g->history_size = o.history_size != 0 ? (double)o.history_size : 100;
  g->line_search = o.line_search_fn != NULL;
  measure((cx_optim_lbfgs *)opt);
  return cx_optim_ready(opt, true, false);
}
