// optim/scheduler: making, stepping and asking any schedule.
#include "optim/scheduler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "lazy/lazy.h"

static const cx_optim_schedule no_rule = { .name = "lr_scheduler" };
static calx_lr_scheduler nil = { .rule = &no_rule };

// ---- making -----------------------------------------------------------------

void cx_optim_scheduler_fail(calx_lr_scheduler *s, calx_status *status)
{
  if (status == NULL) return;
  if (s != &nil && s->status == NULL) {
    s->status = status;
  } else {
    calx_status_free(status);
  }
}

bool cx_optim_scheduler_is_nil(const calx_lr_scheduler *s)
{
  return s == &nil;
}

bool cx_optim_scheduler_failed(const calx_lr_scheduler *s)
{
  return s == &nil || s->status != NULL;
}

void cx_optim_scheduler_need(calx_lr_scheduler *s, bool good, const char *name,
                             double value, const char *wanted)
{
  if (good) return;
  cx_optim_scheduler_fail(s, cx_invalid("%s: %s %g, %s is wanted",
                                        s->rule->name, name, value, wanted));
}

static calx_status *take_groups(calx_lr_scheduler *s)
{
  if (s->opt == NULL) return cx_invalid("%s: no optimiser", s->rule->name);
  CALX_TRY(cx_annotate(calx_optimizer_error(s->opt), "so it has no schedule"));
  size_t n = calx_optimizer_param_groups(s->opt);
  s->base = cx_calloc(2 * n + 1, sizeof *s->base);
  if (s->base == NULL) return cx_out_of_memory();
  s->last = s->base + n;
  s->n_groups = n;
  for (size_t i = 0; i < n; i++) {
    cx_optim_group *g = cx_optim_group_at(s->opt, i);
    if (!g->has_initial_lr) g->initial_lr = g->lr;
    g->has_initial_lr = true;
    s->base[i] = g->initial_lr;
    s->last[i] = g->lr;
  }
  return NULL;
}

calx_lr_scheduler *cx_optim_scheduler_new(const cx_optim_schedule *rule,
                                          calx_optimizer *opt)
{
  calx_lr_scheduler *s = cx_calloc(1, sizeof *s);
  if (s == NULL) return &nil;
  s->rule = rule;
  s->opt = opt;
  s->last_epoch = -1;
  cx_optim_scheduler_fail(s, take_groups(s));
  return s;
}

void calx_lr_scheduler_free(calx_lr_scheduler *s)
{
  if (s == NULL || s == &nil) return;
  for (size_t i = 0; i < s->n_inner; i++) calx_lr_scheduler_free(s->inner[i]);
  cx_free(s->inner);
  cx_free(s->milestones);
  cx_free(s->base);
  calx_status_free(s->status);
  cx_free(s);
}

static int compare(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

void cx_optim_scheduler_milestones(calx_lr_scheduler *s, calx_dims milestones)
{
  if (s == &nil) return;
  size_t n = milestones.count;
  s->milestones = cx_alloc((n + 1) * sizeof *s->milestones);
  if (s->milestones == NULL) {
    cx_optim_scheduler_fail(s, cx_out_of_memory());
    return;
  }
  memcpy(s->milestones, milestones.values, n * sizeof *s->milestones);
  qsort(s->milestones, n, sizeof *s->milestones, compare);
  s->n_milestones = n;
}

size_t cx_optim_scheduler_passed(const calx_lr_scheduler *s, int64_t epoch)
{
  size_t n = 0;
  while (n < s->n_milestones && s->milestones[n] <= epoch) n++;
  return n;
}

void cx_optim_scheduler_find_momentum(calx_lr_scheduler *s)
{
  static const char *const names[] = { "betas[0]", "momentum" };
  for (int i = 0; i < 2 && s->momentum == NULL; i++) {
    if (!isnan(calx_optimizer_option(s->opt, 0, names[i])))
      s->momentum = names[i];
  }
  if (s->momentum != NULL || s->status != NULL) return;
  cx_optim_scheduler_fail(
      s,
      cx_invalid("%s: the optimiser has neither momentum nor betas to cycle; "
                 ".no_cycle_momentum = true leaves them alone",
                 s->rule->name));
}

calx_status *calx_lr_scheduler_error(const calx_lr_scheduler *s)
{
  if (s == NULL) return cx_invalid("lr_scheduler: it is NULL");
  return s == &nil ? cx_out_of_memory() : cx_status_copy(s->status);
}

// ---- stepping ---------------------------------------------------------------

void cx_optim_scheduler_set(calx_lr_scheduler *s, size_t group, double lr)
{
  // A formula's 0 may be rounded to a negative number.
  if (lr < 0 && -lr < 1e-12 * s->base[group]) lr = 0;
  calx_optimizer_set_option(s->opt, group, "lr", lr);
  s->last[group] = calx_optimizer_option(s->opt, group, "lr");
}

static void set_all(calx_lr_scheduler *s, bool restarts)
{
  for (size_t i = 0; i < s->n_groups; i++) {
    double lr = calx_optimizer_option(s->opt, i, "lr");
    lr = restarts && s->rule->first != NULL ? s->rule->first(s, i)
                                            : s->rule->next(s, i, lr);
    cx_optim_scheduler_set(s, i, lr);
  }
}

void cx_optim_scheduler_restart(calx_lr_scheduler *s)
{
  s->last_epoch = 0;
  if (s->rule->count != NULL) s->rule->count(s, 0);
  set_all(s, true);
}

calx_lr_scheduler *cx_optim_scheduler_begin(calx_lr_scheduler *s)
{
  if (cx_optim_scheduler_failed(s)) return s;
  s->is_initial = true;
  s->step_count = 1;
  s->last_epoch++;
  if (s->rule->next != NULL) set_all(s, false);
  s->is_initial = false;
  return s;
}

static void step(calx_lr_scheduler *s, double epoch)
{
  calx_status *status = calx_lr_scheduler_error(s);
  if (status == NULL && s->rule->next == NULL && s->n_inner == 0) {
    status = cx_invalid("%s: it steps by calx_lr_scheduler_step_metric",
                        s->rule->name);
  }
  if (status == NULL && epoch >= 0 && s->rule->count == NULL) {
    status = cx_invalid(
        "%s: calx_lr_scheduler_step_at is of "
        "CosineAnnealingWarmRestarts alone",
        s->rule->name);
  }
  if (status != NULL) {
    cx_lazy_scope_pin(status);
    return;
  }
  s->step_count++;
  if (s->rule->count != NULL) {
    s->rule->count(s, epoch);
  } else {
    s->last_epoch++;
  }
  if (s->rule->next != NULL) set_all(s, false);
}

void calx_lr_scheduler_step(calx_lr_scheduler *s)
{
  step(s, -1);
}

void calx_lr_scheduler_step_at(calx_lr_scheduler *s, double epoch)
{
  if (!(epoch >= 0)) {
    cx_lazy_scope_pin(
        cx_invalid("%s: epoch %g, a number of 0 or more is wanted",
                   s != NULL ? s->rule->name : "lr_scheduler", epoch));
    return;
  }
  step(s, epoch);
}

// ---- asking -----------------------------------------------------------------

double calx_lr_scheduler_last_lr(const calx_lr_scheduler *s, size_t group)
{
  return s != NULL && group < s->n_groups ? s->last[group] : (double)NAN;
}

int64_t calx_lr_scheduler_last_epoch(const calx_lr_scheduler *s)
{
  return s != NULL ? s->last_epoch : -1;
}
