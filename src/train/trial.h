// train/trial: some steps of training that leave nothing behind, for tuners.
#ifndef CX_TRAIN_TRIAL_H
#define CX_TRAIN_TRIAL_H

#include "train/internal.h"

// Before and after a batch after which an optimiser steps; t->output is then
// the step's result. `after` returns false: the trial is over.
typedef void cx_train_trial_before_fn(calx_trainer *t, void *user);
typedef bool cx_train_trial_after_fn(calx_trainer *t, void *user);

typedef struct cx_train_trial {
  int64_t batch_size;                // 0: the loader's
  int64_t steps;                     // of the optimiser
  cx_train_trial_before_fn *before;  // NULL: nothing
  cx_train_trial_after_fn *after;
  void *user;
} cx_train_trial;

// Runs the steps with the module's hooks of training, without callbacks,
// loggers, schedules and validation, as many epochs as they need. Weights,
// optimisers, random numbers and the trainer's place are then what they were,
// also where it fails. In on_fit_start.
calx_status *cx_train_try(calx_trainer *t,
                          const cx_train_trial *trial) CALX_MUST_USE;

#endif
