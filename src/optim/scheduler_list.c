// optim/scheduler_list: SequentialLR and ChainedScheduler, which step others
// (torch.optim.lr_scheduler).
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "optim/scheduler.h"

static calx_status *check_one(const calx_lr_scheduler *s, size_t i,
                              const calx_lr_scheduler *one)
{
  calx_status *status = calx_lr_scheduler_error(one);
  if (status != NULL) {
    return cx_annotate(status, "so it is no schedule %zu of %s", i,
                       s->rule->name);
  }
  if (one->rule->next == NULL && one->n_inner == 0) {
    return cx_invalid("%s: schedule %zu is %s, whose steps take a metric",
                      s->rule->name, i, one->rule->name);
  }
  if (one->opt == s->opt) return NULL;
  return cx_invalid("%s: schedule %zu is of another optimiser", s->rule->name,
                    i);
}

// Takes the schedules, also where it fails.
static void take(calx_lr_scheduler *s, calx_lr_scheduler *const *schedulers,
                 size_t n)
{
  if (n == 0 || schedulers == NULL) {
    cx_optim_scheduler_fail(s, cx_invalid("%s: no schedules", s->rule->name));
    return;
  }
  for (size_t i = 0; i < n && !cx_optim_scheduler_failed(s); i++) {
    cx_optim_scheduler_fail(s, check_one(s, i, schedulers[i]));
  }
  calx_lr_scheduler **own = cx_alloc(n * sizeof *own);
  if (own == NULL || cx_optim_scheduler_is_nil(s)) {
    cx_free(own);
    for (size_t i = 0; i < n; i++) calx_lr_scheduler_free(schedulers[i]);
    cx_optim_scheduler_fail(s, cx_out_of_memory());
    return;
  }
  memcpy(own, schedulers, n * sizeof *own);
  s->inner = own;
  s->n_inner = n;
}

static void keep_rates(calx_lr_scheduler *s)
{
  for (size_t i = 0; i < s->n_groups; i++) {
    s->last[i] = calx_optimizer_option(s->opt, i, "lr");
  }
}

// ---- SequentialLR -----------------------------------------------------------

static void count_sequential(calx_lr_scheduler *s, double epoch)
{
  (void)epoch;
  s->last_epoch++;
  size_t k = cx_optim_scheduler_passed(s, s->last_epoch);
  if (k > 0 && s->milestones[k - 1] == s->last_epoch) {
    cx_optim_scheduler_restart(s->inner[k]);
  } else {
    calx_lr_scheduler_step(s->inner[k]);
  }
  keep_rates(s);
}

// Takes back the epoch that making a schedule began.
static void undo(calx_lr_scheduler *s)
{
  for (size_t i = 0; i < s->n_inner; i++) undo(s->inner[i]);
  if (s->n_inner == 0) s->last_epoch--;
}

calx_lr_scheduler *calx_sequential_lr(calx_optimizer *opt,
                                      calx_lr_scheduler *const *schedulers,
                                      size_t n, calx_dims milestones)
{
  static const cx_optim_schedule rule = { .name = "SequentialLR",
                                          .count = count_sequential };
  calx_lr_scheduler *s = cx_optim_scheduler_new(&rule, opt);
  take(s, schedulers, n);
  if (milestones.count + 1 != n) {
    cx_optim_scheduler_fail(
        s, cx_invalid("SequentialLR: %zu schedules want %zu milestones, got "
                      "%zu",
                      n, n - 1, milestones.count));
  }
  cx_optim_scheduler_milestones(s, milestones);
  if (cx_optim_scheduler_failed(s)) return s;
  for (size_t i = 0; i < s->n_groups; i++) {
    cx_optim_scheduler_set(s, i, s->base[i]);
  }
  for (size_t i = 0; i < n; i++) undo(s->inner[i]);
  s->last_epoch = 0;
  s->step_count = 1;
  (void)cx_optim_scheduler_begin(s->inner[cx_optim_scheduler_passed(s, 0)]);
  keep_rates(s);
  return s;
}

// ---- ChainedScheduler -------------------------------------------------------

static void count_chained(calx_lr_scheduler *s, double epoch)
{
  (void)epoch;
  s->last_epoch++;
  for (size_t i = 0; i < s->n_inner; i++) calx_lr_scheduler_step(s->inner[i]);
  keep_rates(s);
}

calx_lr_scheduler *calx_chained_scheduler(calx_lr_scheduler *const *schedulers,
                                          size_t n)
{
  static const cx_optim_schedule rule = { .name = "ChainedScheduler",
                                          .count = count_chained };
  bool any = n != 0 && schedulers != NULL && schedulers[0] != NULL;
  calx_lr_scheduler *s =
      cx_optim_scheduler_new(&rule, any ? schedulers[0]->opt : NULL);
  take(s, schedulers, n);
  if (cx_optim_scheduler_failed(s)) return s;
  s->last_epoch = 0;
  s->step_count = 1;
  keep_rates(s);
  return s;
}
