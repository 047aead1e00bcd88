// optim/scheduler: what the learning-rate schedules share.
//
// A schedule's rule computes a group's next rate from its current one, as
// PyTorch's get_lr() does, so that several schedules of one optimiser multiply.
#ifndef CX_OPTIM_SCHEDULER_H
#define CX_OPTIM_SCHEDULER_H

#include "base/options.h"
#include "calx/lr_scheduler.h"
#include "optim/optimizer.h"

enum { CX_OPTIM_SCHEDULE_NUMBERS = 12 };

typedef struct cx_optim_schedule {
  const char *name;  // "StepLR"
  // PyTorch's names of number[], for state dicts; "" ends them.
  const char *numbers[CX_OPTIM_SCHEDULE_NUMBERS + 1];
  // The rate of a group at last_epoch; `lr` is its rate now.
  double (*next)(calx_lr_scheduler *s, size_t group, double lr);
  // That of epoch 0 for a schedule that begins in the middle of a run; NULL:
  // `next` computes it.
  double (*first)(const calx_lr_scheduler *s, size_t group);
  // Goes on by an epoch, or to `epoch` where it is 0 or more; NULL: counts.
  void (*count)(calx_lr_scheduler *s, double epoch);
} cx_optim_schedule;

struct calx_lr_scheduler {
  const cx_optim_schedule *rule;
  calx_optimizer *opt;
  calx_status *status;
  double number[CX_OPTIM_SCHEDULE_NUMBERS];
  int64_t last_epoch, step_count;
  bool is_initial;  // the first rates are being computed
  size_t n_groups;
  double *base, *last;  // the rates of the groups, at first and now
  calx_lr_fn *fn;
  void *user;
  calx_anneal_strategy anneal;
  calx_cyclic_mode mode;
  const char *momentum;  // the option that is cycled; NULL: none
  int64_t *milestones;   // sorted; owned
  size_t n_milestones;
  calx_lr_scheduler **inner;  // owned
  size_t n_inner;
};

// A schedule of the optimiser's groups, whose rates begin as they are. Never
// NULL: without memory it is one that does nothing.
calx_lr_scheduler *cx_optim_scheduler_new(const cx_optim_schedule *rule,
                                          calx_optimizer *opt);
// Records a failure, or NULL, and owns it. The first one is kept.
void cx_optim_scheduler_fail(calx_lr_scheduler *s, calx_status *status);
// Whether it must not be changed: it failed, or there was no memory for it.
bool cx_optim_scheduler_failed(const calx_lr_scheduler *s);
bool cx_optim_scheduler_is_nil(const calx_lr_scheduler *s);  // no memory
// The failure "StepLR: gamma nan, a number is wanted" unless it is good.
void cx_optim_scheduler_need(calx_lr_scheduler *s, bool good, const char *name,
                             double value, const char *wanted);
// Takes the caller's `options` (NULL: all are 0) into o.
#define CX_OPTIM_SCHEDULER_TAKE(s, o) \
  cx_optim_scheduler_fail(            \
      s, cx_options_take((s)->rule->name, options, &(o), sizeof(o)))
// Sets the rates of epoch 0. Returns s.
calx_lr_scheduler *cx_optim_scheduler_begin(calx_lr_scheduler *s);
// Begins at epoch 0 again, from the groups' first rates.
void cx_optim_scheduler_restart(calx_lr_scheduler *s);
// Sets a group's rate, and keeps it as the last one.
void cx_optim_scheduler_set(calx_lr_scheduler *s, size_t group, double lr);
// Copies milestones, sorted.
void cx_optim_scheduler_milestones(calx_lr_scheduler *s, calx_dims milestones);
// How many milestones are at most `epoch`.
size_t cx_optim_scheduler_passed(const calx_lr_scheduler *s, int64_t epoch);
// Finds the option that is cycled with the rate: "betas[0]" or "momentum".
void cx_optim_scheduler_find_momentum(calx_lr_scheduler *s);

#endif
