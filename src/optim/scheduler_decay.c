// optim/scheduler_decay: schedules by a formula of the epoch
// (torch.optim.lr_scheduler). Each computes a rate from the one before.
#include <math.h>

#include "base/status.h"
#include "optim/scheduler.h"

static double base(const calx_lr_scheduler *s, size_t group)
{
  return s->base[group];
}

// ---- LambdaLR, MultiplicativeLR ---------------------------------------------

static double next_lambda(calx_lr_scheduler *s, size_t group, double lr)
{
  (void)lr;
  return s->base[group] * s->fn(s->user, group, s->last_epoch);
}

static double next_multiplicative(calx_lr_scheduler *s, size_t group, double lr)
{
  if (s->is_initial) return lr;
  return lr * s->fn(s->user, group, s->last_epoch);
}

static calx_lr_scheduler *of_function(const cx_optim_schedule *rule,
                                      calx_optimizer *opt, calx_lr_fn *fn,
                                      void *user)
{
  calx_lr_scheduler *s = cx_optim_scheduler_new(rule, opt);
  if (fn == NULL) {
    cx_optim_scheduler_fail(s, cx_invalid("%s: no function", rule->name));
  }
  if (cx_optim_scheduler_failed(s)) return s;
  s->fn = fn;
  s->user = user;
  return cx_optim_scheduler_begin(s);
}

calx_lr_scheduler *calx_lambda_lr(calx_optimizer *opt, calx_lr_fn *fn,
                                  void *user)
{
  static const cx_optim_schedule rule = { .name = "LambdaLR",
                                          .next = next_lambda };
  return of_function(&rule, opt, fn, user);
}

calx_lr_scheduler *calx_multiplicative_lr(calx_optimizer *opt, calx_lr_fn *fn,
                                          void *user)
{
  static const cx_optim_schedule rule = { .name = "MultiplicativeLR",
                                          .next = next_multiplicative };
  return of_function(&rule, opt, fn, user);
}

// ---- StepLR, MultiStepLR, ExponentialLR -------------------------------------

static double next_step(calx_lr_scheduler *s, size_t group, double lr)
{
  (void)group;
  bool stays = s->last_epoch == 0 || s->last_epoch % (int64_t)s->number[0] != 0;
  return stays ? lr : lr * s->number[1];
}

calx_lr_scheduler *calx_step_lr_with(calx_optimizer *opt, int64_t step_size,
                                     const calx_step_lr_options *options)
{
  static const cx_optim_schedule rule = { .name = "StepLR",
                                          .numbers = { "#step_size", "gamma" },
                                          .next = next_step,
                                          .first = base };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  calx_step_lr_options o = { .size = 0 };
  CX_OPTIM_SCHEDULER_TAKE(s, o);
  cx_optim_scheduler_need(s, step_size > 0, "step_size", (double)step_size,
                          "1 or more");
  if (cx_optim_scheduler_failed(s)) return s;
  s->number[0] = (double)step_size;
  s->number[1] = cx_or_default(o.gamma, 0.1);
  return cx_optim_scheduler_begin(s);
}

static double next_multi_step(calx_lr_scheduler *s, size_t group, double lr)
{
  (void)group;
  size_t before = cx_optim_scheduler_passed(s, s->last_epoch - 1);
  size_t here = cx_optim_scheduler_passed(s, s->last_epoch) - before;
  return here == 0 ? lr : lr * pow(s->number[0], (double)here);
}

static double first_multi_step(const calx_lr_scheduler *s, size_t group)
{
  size_t passed = cx_optim_scheduler_passed(s, 0);
  return s->base[group] * pow(s->number[0], (double)passed);
}

calx_lr_scheduler *calx_multi_step_lr_with(
    calx_optimizer *opt, calx_dims milestones,
    const calx_multi_step_lr_options *options)
{
  static const cx_optim_schedule rule = { .name = "MultiStepLR",
                                          .numbers = { "gamma" },
                                          .next = next_multi_step,
                                          .first = first_multi_step };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  calx_multi_step_lr_options o = { .size = 0 };
  CX_OPTIM_SCHEDULER_TAKE(s, o);
  cx_optim_scheduler_milestones(s, milestones);
  if (cx_optim_scheduler_failed(s)) return s;
  s->number[0] = cx_or_default(o.gamma, 0.1);
  return cx_optim_scheduler_begin(s);
}

static double next_exponential(calx_lr_scheduler *s, size_t group, double lr)
{
  (void)group;
  return s->is_initial ? lr : lr * s->number[0];
}

calx_lr_scheduler *calx_exponential_lr(calx_optimizer *opt, double gamma)
{
  static const cx_optim_schedule rule = { .name = "ExponentialLR",
                                          .numbers = { "gamma" },
                                          .next = next_exponential,
                                          .first = base };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  cx_optim_scheduler_need(s, !isnan(gamma), "gamma", gamma, "a number");
  if (cx_optim_scheduler_failed(s)) return s;
  s->number[0] = gamma;
  return cx_optim_scheduler_begin(s);
}

// ---- ConstantLR, LinearLR, PolynomialLR -------------------------------------

static double next_constant(calx_lr_scheduler *s, size_t group, double lr)
{
  (void)group;
  if (s->last_epoch == 0) return lr * s->number[0];
  return (double)s->last_epoch == s->number[1] ? lr * (1 / s->number[0]) : lr;
}

static double first_constant(const calx_lr_scheduler *s, size_t group)
{
  return s->base[group] * (s->number[1] <= 0 ? 1 : s->number[0]);
}

calx_lr_scheduler *calx_constant_lr_with(
    calx_optimizer *opt, const calx_constant_lr_options *options)
{
  static const cx_optim_schedule rule = { .name = "ConstantLR",
                                          .numbers = { "factor",
                                                       "#total_iters" },
                                          .next = next_constant,
                                          .first = first_constant };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  calx_constant_lr_options o = { .size = 0 };
  CX_OPTIM_SCHEDULER_TAKE(s, o);
  double factor = cx_or_default(o.factor, 1.0 / 3);
  cx_optim_scheduler_need(s, factor > 0 && factor <= 1, "factor", factor,
                          "a number in (0, 1]");
  if (cx_optim_scheduler_failed(s)) return s;
  s->number[0] = factor;
  s->number[1] = o.total_iters == 0 ? 5 : (double)o.total_iters;
  return cx_optim_scheduler_begin(s);
}

static double next_linear(calx_lr_scheduler *s, size_t group, double lr)
{
  (void)group;
  const double start = s->number[0], end = s->number[1], n = s->number[2];
  double epoch = (double)s->last_epoch;
  if (s->last_epoch == 0) return lr * start;
  if (epoch > n) return lr;
  return lr * (1 + (end - start) / (n * start + (epoch - 1) * (end - start)));
}

static double first_linear(const calx_lr_scheduler *s, size_t group)
{
  return s->base[group] * s->number[0];
}

calx_lr_scheduler *calx_linear_lr_with(calx_optimizer *opt,
                                       const calx_linear_lr_options *options)
{
  static const cx_optim_schedule rule = {
    .name = "LinearLR",
    .numbers = { "start_factor", "end_factor", "#total_iters" },
    .next = next_linear,
    .first = first_linear
  };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  calx_linear_lr_options o = { .size = 0 };
  CX_OPTIM_SCHEDULER_TAKE(s, o);
  double start = cx_or_default(o.start_factor, 1.0 / 3),
         end = cx_or_default(o.end_factor, 1);
  cx_optim_scheduler_need(s, start > 0 && start <= 1, "start_factor", start,
                          "a number in (0, 1]");
  cx_optim_scheduler_need(s, end >= 0 && end <= 1, "end_factor", end,
                          "a number in [0, 1]");
  cx_optim_scheduler_need(s, o.total_iters >= 0, "total_iters",
                          (double)o.total_iters, "1 or more");
  if (cx_optim_scheduler_failed(s)) return s;
  s->number[0] = start;
  s->number[1] = end;
  s->number[2] = o.total_iters == 0 ? 5 : (double)o.total_iters;
  return cx_optim_scheduler_begin(s);
}

static double next_polynomial(calx_lr_scheduler *s, size_t group, double lr)
{
  (void)group;
  double epoch = (double)s->last_epoch, n = s->number[0];
  if (s->is_initial || epoch > n) return lr;
  return lr * pow((1 - epoch / n) / (1 - (epoch - 1) / n), s->number[1]);
}

calx_lr_scheduler *calx_polynomial_lr_with(
    calx_optimizer *opt, const calx_polynomial_lr_options *options)
{
  static const cx_optim_schedule rule = { .name = "PolynomialLR",
                                          .numbers = { "#total_iters",
                                                       "power" },
                                          .next = next_polynomial,
                                          .first = base };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  calx_polynomial_lr_options o = { .size = 0 };
  CX_OPTIM_SCHEDULER_TAKE(s, o);
  cx_optim_scheduler_need(s, o.total_iters >= 0, "total_iters",
                          (double)o.total_iters, "1 or more");
  if (cx_optim_scheduler_failed(s)) return s;
  s->number[0] = o.total_iters == 0 ? 5 : (double)o.total_iters;
  s->number[1] = cx_or_default(o.power, 1);
  return cx_optim_scheduler_begin(s);
}

// ---- CosineAnnealingLR, CosineAnnealingWarmRestarts -------------------------

static double next_cosine(calx_lr_scheduler *s, size_t group, double lr)
{
  const double n = s->number[0], least = s->number[1];
  const double epoch = (double)s->last_epoch, span = s->base[group] - least;
  if (s->is_initial) return lr;
  if (s->step_count == 1 && epoch > 0) {
    return least + span * (1 + cos(epoch * M_PI / n)) / 2;
  }
  if (fmod(epoch - 1 - n, 2 * n) == 0) {
    return lr + span * (1 - cos(M_PI / n)) / 2;
  }
  return (1 + cos(M_PI * epoch / n)) / (1 + cos(M_PI * (epoch - 1) / n)) *
             (lr - least) +
         least;
}

calx_lr_scheduler *calx_cosine_annealing_lr_with(
    calx_optimizer *opt, int64_t t_max,
    const calx_cosine_annealing_lr_options *options)
{
  static const cx_optim_schedule rule = { .name = "CosineAnnealingLR",
                                          .numbers = { "#T_max", "eta_min" },
                                          .next = next_cosine,
                                          .first = base };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  calx_cosine_annealing_lr_options o = { .size = 0 };
  CX_OPTIM_SCHEDULER_TAKE(s, o);
  cx_optim_scheduler_need(s, t_max > 0, "T_max", (double)t_max, "1 or more");
  if (cx_optim_scheduler_failed(s)) return s;
  s->number[0] = (double)t_max;
  s->number[1] = o.eta_min;
  return cx_optim_scheduler_begin(s);
}

enum { T_0, T_I, T_MULT, ETA_MIN, T_CUR };

static double next_warm(calx_lr_scheduler *s, size_t group, double lr)
{
  (void)lr;
  const double *n = s->number;
  return n[ETA_MIN] + (s->base[group] - n[ETA_MIN]) *
                          (1 + cos(M_PI * n[T_CUR] / n[T_I])) / 2;
}

// Goes to an epoch, of which a part may be over.
static void count_to(double *n, double epoch)
{
  n[T_I] = n[T_0];
  n[T_CUR] = epoch;
  if (epoch < n[T_0]) return;
  if (n[T_MULT] == 1) {
    n[T_CUR] = fmod(epoch, n[T_0]);
    return;
  }
  double periods =
      floor(log(epoch / n[T_0] * (n[T_MULT] - 1) + 1) / log(n[T_MULT]));
  double grown = pow(n[T_MULT], periods);
  n[T_CUR] = epoch - n[T_0] * (grown - 1) / (n[T_MULT] - 1);
  n[T_I] = n[T_0] * grown;
}

static void count_warm(calx_lr_scheduler *s, double epoch)
{
  double *n = s->number;
  if (epoch >= 0) {
    count_to(n, epoch);
    s->last_epoch = (int64_t)epoch;
    return;
  }
  s->last_epoch++;
  n[T_CUR]++;
  if (n[T_CUR] < n[T_I]) return;
  n[T_CUR] -= n[T_I];
  n[T_I] *= n[T_MULT];
}

calx_lr_scheduler *calx_cosine_annealing_warm_restarts_with(
    calx_optimizer *opt, int64_t t_0,
    const calx_cosine_annealing_warm_restarts_options *options)
{
  static const cx_optim_schedule rule = {
    .name = "CosineAnnealingWarmRestarts",
    .numbers = { "#T_0", "#T_i", "#T_mult", "eta_min", "T_cur" },
    .next = next_warm,
    .count = count_warm
  };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  calx_cosine_annealing_warm_restarts_options o = { .size = 0 };
  CX_OPTIM_SCHEDULER_TAKE(s, o);
  cx_optim_scheduler_need(s, t_0 > 0, "T_0", (double)t_0, "1 or more");
  cx_optim_scheduler_need(s, o.t_mult >= 0, "T_mult", (double)o.t_mult,
                          "1 or more");
  if (cx_optim_scheduler_failed(s)) return s;
  s->number[T_0] = s->number[T_I] = (double)t_0;
  s->number[T_MULT] = o.t_mult == 0 ? 1 : (double)o.t_mult;
  s->number[ETA_MIN] = o.eta_min;
  return cx_optim_scheduler_begin(s);
}
