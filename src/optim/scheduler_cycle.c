// optim/scheduler_cycle: CyclicLR, OneCycleLR, SWALR and ReduceLROnPlateau
// (torch.optim.lr_scheduler, torch.optim.swa_utils).
#include <math.h>

#include "base/status.h"
#include "lazy/lazy.h"
#include "optim/scheduler.h"

// Makes `lr` the first rate of every group.
static void set_first(calx_lr_scheduler *s, double lr)
{
  for (size_t i = 0; i < s->n_groups; i++) {
    cx_optim_group_at(s->opt, i)->initial_lr = s->base[i] = lr;
    cx_optim_scheduler_set(s, i, lr);
  }
}

// From `start`, at 0, to `end`, at 1.
static double anneal(const calx_lr_scheduler *s, double start, double end,
                     double at)
{
  if (s->anneal == CALX_ANNEAL_LINEAR) return (end - start) * at + start;
  return end + (start - end) / 2 * (cos(M_PI * at) + 1);
}

// ---- CyclicLR ---------------------------------------------------------------

enum {
  BASE_LR,
  MAX_LR,
  SIZE_UP,
  SIZE_DOWN,
  GAMMA,
  BASE_MOMENTUM,
  MAX_MOMENTUM
};

static double cyclic_scale(const calx_lr_scheduler *s, double cycle)
{
  switch (s->mode) {
    case CALX_CYCLIC_TRIANGULAR2: return 1 / pow(2, cycle - 1);
    case CALX_CYCLIC_EXP_RANGE:
      return pow(s->number[GAMMA], (double)s->last_epoch);
    default: return 1;
  }
}

static double next_cyclic(calx_lr_scheduler *s, size_t group, double lr)
{
  (void)lr;
  const double *n = s->number;
  const double size = n[SIZE_UP] + n[SIZE_DOWN], ratio = n[SIZE_UP] / size;
  const double epoch = (double)s->last_epoch;
  const double cycle = floor(1 + epoch / size), x = 1 + epoch / size - cycle;
  const double height =
      (x <= ratio ? x / ratio : (x - 1) / (ratio - 1)) * cyclic_scale(s, cycle);
  if (s->momentum != NULL) {
    double range = n[MAX_MOMENTUM] - n[BASE_MOMENTUM];
    calx_optimizer_set_option(s->opt, group, s->momentum,
                              n[MAX_MOMENTUM] - range * height);
  }
  return n[BASE_LR] + (n[MAX_LR] - n[BASE_LR]) * height;
}

calx_lr_scheduler *calx_cyclic_lr_with(calx_optimizer *opt, double base_lr,
                                       double max_lr,
                                       const calx_cyclic_lr_options *options)
{
  static const cx_optim_schedule rule = {
    .name = "CyclicLR",
    .numbers = { "base_lr", "max_lr", "#step_size_up", "#step_size_down",
                 "gamma", "base_momentum", "max_momentum" },
    .next = next_cyclic
  };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  calx_cyclic_lr_options o = { .size = 0 };
  CX_OPTIM_SCHEDULER_TAKE(s, o);
  cx_optim_scheduler_need(s, base_lr >= 0, "base_lr", base_lr, "0 or more");
  cx_optim_scheduler_need(s, !isnan(max_lr), "max_lr", max_lr, "a number");
  cx_optim_scheduler_need(s, o.step_size_up >= 0, "step_size_up",
                          (double)o.step_size_up, "1 or more");
  cx_optim_scheduler_need(s, o.step_size_down >= 0, "step_size_down",
                          (double)o.step_size_down, "1 or more");
  if (cx_optim_scheduler_failed(s)) return s;
  double *n = s->number;
  n[BASE_LR] = base_lr;
  n[MAX_LR] = max_lr;
  n[SIZE_UP] = o.step_size_up == 0 ? 2000 : (double)o.step_size_up;
  n[SIZE_DOWN] = o.step_size_down == 0 ? n[SIZE_UP] : (double)o.step_size_down;
  n[GAMMA] = cx_or_default(o.gamma, 1);
  n[BASE_MOMENTUM] = cx_or_default(o.base_momentum, 0.8);
  n[MAX_MOMENTUM] = cx_or_default(o.max_momentum, 0.9);
  s->mode = o.mode;
  if (!o.no_cycle_momentum) cx_optim_scheduler_find_momentum(s);
  if (cx_optim_scheduler_failed(s)) return s;
  set_first(s, base_lr);
  return cx_optim_scheduler_begin(s);
}

// ---- OneCycleLR -------------------------------------------------------------

enum {
  TOTAL,
  INITIAL,
  HIGHEST,
  LEAST,
  PCT_START,
  LOW_MOMENTUM,
  HIGH_MOMENTUM,
  THREE_PHASE
};

typedef struct phase {
  double end;  // its last step
  double lr[2], momentum[2];
} phase;

// Where the rate goes: up, down, and in three phases down again.
static int make_phases(const double *n, phase out[3])
{
  const double low = n[LOW_MOMENTUM], high = n[HIGH_MOMENTUM];
  out[0] = (phase){ n[PCT_START] * n[TOTAL] - 1,
                    { n[INITIAL], n[HIGHEST] },
                    { high, low } };
  if (n[THREE_PHASE] == 0) {
    out[1] = (phase){ n[TOTAL] - 1, { n[HIGHEST], n[LEAST] }, { low, high } };
    return 2;
  }
  out[1] = (phase){ 2 * n[PCT_START] * n[TOTAL] - 2,
                    { n[HIGHEST], n[INITIAL] },
                    { low, high } };
  out[2] = (phase){ n[TOTAL] - 1, { n[INITIAL], n[LEAST] }, { high, high } };
  return 3;
}

static double next_one_cycle(calx_lr_scheduler *s, size_t group, double lr)
{
  phase phases[3];
  const int count = make_phases(s->number, phases);
  const double epoch = (double)s->last_epoch;
  if (epoch > s->number[TOTAL]) {
    cx_lazy_scope_pin(
        cx_invalid("OneCycleLR: step %g, it was made for %g in "
                   "all; the rate stays",
                   epoch, s->number[TOTAL]));
    return lr;
  }
  int k = 0;
  while (k < count - 1 && epoch > phases[k].end) k++;
  const double start = k == 0 ? 0 : phases[k - 1].end;
  const double at = (epoch - start) / (phases[k].end - start);
  const phase *p = &phases[k];
  if (s->momentum != NULL) {
    calx_optimizer_set_option(s->opt, group, s->momentum,
                              anneal(s, p->momentum[0], p->momentum[1], at));
  }
  return anneal(s, p->lr[0], p->lr[1], at);
}

calx_lr_scheduler *calx_one_cycle_lr_with(
    calx_optimizer *opt, double max_lr, int64_t total_steps,
    const calx_one_cycle_lr_options *options)
{
  static const cx_optim_schedule rule = {
    .name = "OneCycleLR",
    .numbers = { "#total_steps", "initial_lr", "max_lr", "min_lr", "pct_start",
                 "base_momentum", "max_momentum", "#three_phase" },
    .next = next_one_cycle
  };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  calx_one_cycle_lr_options o = { .size = 0 };
  CX_OPTIM_SCHEDULER_TAKE(s, o);
  double pct = cx_or_default(o.pct_start, 0.3),
         div = cx_or_default(o.div_factor, 25);
  double final = cx_or_default(o.final_div_factor, 1e4);
  cx_optim_scheduler_need(s, max_lr >= 0, "max_lr", max_lr, "0 or more");
  cx_optim_scheduler_need(s, total_steps > 0, "total_steps",
                          (double)total_steps, "1 or more");
  cx_optim_scheduler_need(s, pct >= 0 && pct <= 1, "pct_start", pct,
                          "a number in [0, 1]");
  cx_optim_scheduler_need(s, div > 0, "div_factor", div, "a number above 0");
  cx_optim_scheduler_need(s, final > 0, "final_div_factor", final,
                          "a number above 0");
  if (cx_optim_scheduler_failed(s)) return s;
  double *n = s->number;
  n[TOTAL] = (double)total_steps;
  n[INITIAL] = max_lr / div;
  n[HIGHEST] = max_lr;
  n[LEAST] = n[INITIAL] / final;
  n[PCT_START] = pct;
  n[LOW_MOMENTUM] = cx_or_default(o.base_momentum, 0.85);
  n[HIGH_MOMENTUM] = cx_or_default(o.max_momentum, 0.95);
  n[THREE_PHASE] = o.three_phase;
  s->anneal = o.anneal_strategy;
  if (!o.no_cycle_momentum) cx_optim_scheduler_find_momentum(s);
  if (cx_optim_scheduler_failed(s)) return s;
  set_first(s, n[INITIAL]);
  return cx_optim_scheduler_begin(s);
}

// ---- SWALR ------------------------------------------------------------------

static double swa_share(const calx_lr_scheduler *s, double step)
{
  double epochs = fmax(1, s->number[1]);
  double t = fmax(0, fmin(1, step / epochs));
  return s->anneal == CALX_ANNEAL_LINEAR ? t : (1 - cos(M_PI * t)) / 2;
}

static double next_swa(calx_lr_scheduler *s, size_t group, double lr)
{
  (void)group;
  const double swa_lr = s->number[0];
  double step = (double)s->step_count - 1;
  if (s->number[1] == 0) step = fmax(1, step);
  const double before = swa_share(s, step - 1), now = swa_share(s, step);
  const double first =
      before == 1 ? swa_lr : (lr - before * swa_lr) / (1 - before);
  return swa_lr * now + first * (1 - now);
}

calx_lr_scheduler *calx_swa_lr_with(calx_optimizer *opt, double swa_lr,
                                    const calx_swa_lr_options *options)
{
  static const cx_optim_schedule rule = {
    .name = "SWALR", .numbers = { "swa_lr", "#anneal_epochs" }, .next = next_swa
  };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  calx_swa_lr_options o = { .size = 0 };
  CX_OPTIM_SCHEDULER_TAKE(s, o);
  cx_optim_scheduler_need(s, swa_lr >= 0, "swa_lr", swa_lr, "0 or more");
  cx_optim_scheduler_need(
      s, o.anneal_epochs >= 0 || o.anneal_epochs == CALX_ZERO_INT,
      "anneal_epochs", (double)o.anneal_epochs, "0 or more");
  if (cx_optim_scheduler_failed(s)) return s;
  s->number[0] = swa_lr;
  s->number[1] = o.anneal_epochs == 0               ? 10
                 : o.anneal_epochs == CALX_ZERO_INT ? 0
                                                    : (double)o.anneal_epochs;
  s->anneal = o.anneal_strategy;
  return cx_optim_scheduler_begin(s);
}

// ---- ReduceLROnPlateau ------------------------------------------------------

enum {
  FACTOR,
  PATIENCE,
  THRESHOLD,
  COOLDOWN,
  MIN_LR,
  EPS,
  BEST,
  BAD_EPOCHS,
  COOLDOWN_LEFT,
  MAXIMIZE,
  ABSOLUTE
};

static bool is_better(const double *n, double metric)
{
  double sign = n[MAXIMIZE] != 0 ? 1 : -1;
  double bound = n[ABSOLUTE] != 0 ? n[BEST] + sign * n[THRESHOLD]
                                  : n[BEST] * (1 + sign * n[THRESHOLD]);
  return n[MAXIMIZE] != 0 ? metric > bound : metric < bound;
}

static void reduce(calx_lr_scheduler *s)
{
  const double *n = s->number;
  for (size_t i = 0; i < s->n_groups; i++) {
    double old = calx_optimizer_option(s->opt, i, "lr");
    double lr = fmax(old * n[FACTOR], n[MIN_LR]);
    if (old - lr > n[EPS]) cx_optim_scheduler_set(s, i, lr);
  }
}

void calx_lr_scheduler_step_metric(calx_lr_scheduler *s, double metric)
{
  calx_status *status = calx_lr_scheduler_error(s);
  if (status == NULL && (s->rule->next != NULL || s->n_inner != 0)) {
    status = cx_invalid(
        "%s: it steps by calx_lr_scheduler_step, without a "
        "metric",
        s->rule->name);
  }
  if (status != NULL) {
    cx_lazy_scope_pin(status);
    return;
  }
  double *n = s->number;
  s->last_epoch++;
  if (is_better(n, metric)) {
    n[BEST] = metric;
    n[BAD_EPOCHS] = 0;
  } else {
    n[BAD_EPOCHS]++;
  }
  if (n[COOLDOWN_LEFT] > 0) {
    n[COOLDOWN_LEFT]--;
    n[BAD_EPOCHS] = 0;
  }
  if (n[BAD_EPOCHS] > n[PATIENCE]) {
    reduce(s);
    n[COOLDOWN_LEFT] = n[COOLDOWN];
    n[BAD_EPOCHS] = 0;
  }
  for (size_t i = 0; i < s->n_groups; i++) {
    s->last[i] = calx_optimizer_option(s->opt, i, "lr");
  }
}

calx_lr_scheduler *calx_reduce_lr_on_plateau_with(
    calx_optimizer *opt, const calx_reduce_lr_on_plateau_options *options)
{
  static const cx_optim_schedule rule = {
    .name = "ReduceLROnPlateau",
    .numbers = { "factor", "#patience", "threshold", "#cooldown", "min_lr",
                 "eps", "best", "#num_bad_epochs", "#cooldown_counter",
                 "#maximize", "#absolute" }
  };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  calx_reduce_lr_on_plateau_options o = { .size = 0 };
  CX_OPTIM_SCHEDULER_TAKE(s, o);
  double factor = cx_or_default(o.factor, 0.1);
  cx_optim_scheduler_need(s, factor < 1, "factor", factor, "less than 1");
  cx_optim_scheduler_need(s, o.cooldown >= 0, "cooldown", (double)o.cooldown,
                          "0 or more");
  if (cx_optim_scheduler_failed(s)) return s;
  double *n = s->number;
  n[FACTOR] = factor;
  n[PATIENCE] = o.patience == 0               ? 10
                : o.patience == CALX_ZERO_INT ? 0
                                              : (double)o.patience;
  n[THRESHOLD] = cx_or_default(o.threshold, 1e-4);
  n[COOLDOWN] = (double)o.cooldown;
  n[MIN_LR] = o.min_lr;
  n[EPS] = cx_or_default(o.eps, 1e-8);
  n[MAXIMIZE] = o.maximize;
  n[ABSOLUTE] = o.absolute;
  n[BEST] = o.maximize ? -(double)INFINITY : (double)INFINITY;
  s->last_epoch = 0;
  return s;
}
