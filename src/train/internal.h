// train/internal: the structs behind the trainer's handles.
//
// The program's trainer has the options and what the last run left. Each rank
// of a run works on a copy, so ranks share nothing that changes.
#ifndef CX_TRAIN_INTERNAL_H
#define CX_TRAIN_INTERNAL_H

#include <math.h>
#include <stddef.h>

#include "base/status.h"
#include "calx/io.h"
#include "calx/loggers.h"
#include "calx/progress.h"
#include "calx/trainer.h"

// ---- options ----------------------------------------------------------------

// How many batches of a loop: a number, or a share of what there is.
typedef struct cx_train_limit {
  bool is_share;
  double value;
} cx_train_limit;

// What the plugin must be; the order of the names in run.c.
typedef enum cx_train_accelerator {
  CX_TRAIN_ANY = -1,
  CX_TRAIN_CPU,
  CX_TRAIN_TPU,
  CX_TRAIN_CUDA
} cx_train_accelerator;

// The options with their defaults.
typedef struct cx_train_config {
  cx_train_accelerator accelerator;
  bool is_tpu_cores;  // which was asked for by the option of 1.x
  int devices;        // of this process; 0: all
  bool reports_metrics;
  calx_dtype dtype;     // of the model's parameters; DEFAULT: as they are made
  calx_dtype autocast;  // DEFAULT: none
  int64_t max_epochs, min_epochs, max_steps, min_steps;  // of max: -1 no limit
  cx_train_limit train, val, test;
  int64_t fast_dev_run;
  cx_train_limit val_check;  // a share of an epoch, or batches
  int64_t check_val_every_n_epoch, sanity_steps, accumulate, log_every_n_steps;
  double clip;  // 0: none
  bool clips_values;
  bool no_distributed_sampler, no_progress_bar;
  bool detect_anomaly;
  uint64_t seed;
} cx_train_config;

calx_status *cx_train_configure(const calx_trainer_options *options,
                                cx_train_config *out) CALX_MUST_USE;
// Of `batches` that there are; -1: not known, which a number replaces.
calx_status *cx_train_limited(const cx_train_limit *limit, const char *loader,
                              int64_t batches, int64_t *out) CALX_MUST_USE;

// ---- hooks ------------------------------------------------------------------

// On which levels a value may be logged in a hook, and by default.
typedef enum cx_train_levels {
  CX_TRAIN_NOT,         // on none
  CX_TRAIN_STEP,        // on both; on the step's
  CX_TRAIN_EVALUATION,  // on both; on the epoch's
  CX_TRAIN_EPOCH        // on the epoch's only
} cx_train_levels;

typedef struct cx_train_hook {
  const char *name;
  size_t offset;  // in calx_trainer_hooks
  cx_train_levels levels;
} cx_train_hook;

#define CX_TRAIN_HOOK(name, levels)                                   \
  (&(const cx_train_hook){ #name, offsetof(calx_trainer_hooks, name), \
                           CX_TRAIN_##levels })
// Calls the callbacks' hooks and then the module's.
void cx_train_call(calx_trainer *t, const cx_train_hook *hook);
void cx_train_call_batch(calx_trainer *t, const cx_train_hook *hook,
                         const calx_batch *batch, int64_t batch_idx);

struct calx_callback {
  calx_status *error;
  calx_callback_functions options;
  bool monitors;  // runs after the module at the end of a training epoch
  void *own;      // options of one of the library's; freed with it
  void **selves;  // of the ranks of this process
  int n_selves;
};

// A callback of the library's: `own` and the status are taken.
calx_callback *cx_train_callback_finish(calx_callback *callback,
                                        calx_status *status, void *own);
// The callback's self of the rank's place in its process, made where it is new.
calx_status *cx_train_callback_self(calx_callback *callback, int rank,
                                    void **out) CALX_MUST_USE;

// ---- logged values ----------------------------------------------------------

typedef enum cx_train_reduction {
  CX_TRAIN_MEAN,
  CX_TRAIN_SUM,
  CX_TRAIN_MIN,
  CX_TRAIN_MAX
} cx_train_reduction;

// One name in one hook.
typedef struct cx_train_logged {
  char *name;
  const char *hook;
  int dataloader;  // -1: there is one loader
  bool prog_bar, logger, on_step, on_epoch, sync_dist;
  cx_train_reduction reduction;
  calx_tensor *latest;  // the step's value, owned
  calx_tensor *total;   // of the epoch so far, owned; f32, or f64 of f64
  double weight;        // of the epoch so far
  bool is_set;          // in this epoch
} cx_train_logged;

// A value that is known by a name, on the device until somebody asks for it.
typedef struct cx_train_metric {
  char *name;
  calx_tensor *tensor;  // owned; NULL: `value` is it
  double value;
} cx_train_metric;

typedef struct cx_train_row cx_train_row;

typedef struct cx_train_results {
  cx_train_logged *logged;
  size_t n_logged, logged_capacity;
} cx_train_results;

// Before an epoch of a loop.
void cx_train_results_begin(cx_train_results *r);
// Reduces the epoch's values, over the ranks too, and makes them metrics.
calx_status *cx_train_results_end(calx_trainer *t,
                                  cx_train_results *r) CALX_MUST_USE;
// After a batch: its values become metrics, and go to the line of progress.
calx_status *cx_train_results_step(calx_trainer *t,
                                   cx_train_results *r) CALX_MUST_USE;
void cx_train_results_free(cx_train_results *r);
void cx_train_free_metrics(calx_trainer *t);
// The name under which a level of a value is known: "loss_step".
void cx_train_full_name(const cx_train_logged *l, const char *level, char *out,
                        size_t size);

// ---- loggers ----------------------------------------------------------------

// After a batch of training, before its values are forgotten.
calx_status *cx_train_log_step(calx_trainer *t,
                               const cx_train_results *r) CALX_MUST_USE;
// The epoch's values: that of logged[i] is values[i * stride].
calx_status *cx_train_log_epoch(calx_trainer *t, const cx_train_results *r,
                                const double *values,
                                size_t stride) CALX_MUST_USE;
// Writes the rows whose values are there; waits: all.
calx_status *cx_train_write_rows(calx_trainer *t, bool waits) CALX_MUST_USE;
void cx_train_drop_rows(calx_trainer *t);
calx_status *cx_train_finish_loggers(calx_trainer *t,
                                     bool succeeded) CALX_MUST_USE;
// Takes the tensor's reference; NULL: the value.
calx_status *cx_train_set_metric(calx_trainer *t, const char *name,
                                 calx_tensor *tensor,
                                 double value) CALX_MUST_USE;

// ---- the trainer ------------------------------------------------------------

typedef enum cx_train_stage {
  CX_TRAIN_NONE,
  CX_TRAIN_FITTING,
  CX_TRAIN_VALIDATING,
  CX_TRAIN_TESTING
} cx_train_stage;

typedef enum cx_train_interval {
  CX_TRAIN_EACH_STEP,
  CX_TRAIN_EACH_EPOCH
} cx_train_interval;

typedef struct cx_train_optimizer {
  calx_optimizer *optimizer;
  calx_lr_scheduler *scheduler;  // NULL: none
  cx_train_interval interval;
  int64_t frequency;
  char *monitor;
} cx_train_optimizer;

// A loader of a rank.
typedef struct cx_train_loader {
  calx_loader *loader;
  calx_sampler *sampler;  // the trainer's own; NULL: the loader's
  int64_t batches;        // to take; -1: to the end
} cx_train_loader;

struct calx_trainer {
  calx_status *error;
  cx_train_config config;
  calx_callback **callbacks;
  size_t n_callbacks;
  calx_logger **loggers;
  size_t n_loggers;

  // Of a run.
  const calx_lightning_module *module;
  const calx_trainer_data *data;
  cx_train_stage asked;  // which function runs
  cx_train_stage stage;  // what it does at the moment
  void *self;
  void **callback_selves;
  calx_module *model;
  cx_train_optimizer *optimizers;
  size_t n_optimizers, optimizers_capacity;
  cx_train_loader train;
  cx_train_loader *evaluated;
  size_t n_evaluated;
  int dataloader_idx;
  bool sanity_checking, should_stop, skip_epoch, reported_minimum;
  const cx_train_hook *hook;  // that runs
  int64_t batch_size;         // of the batch that is under way; 0: none
  cx_train_results train_results, evaluation_results;
  calx_progress *progress;
  cx_train_row *rows, *rows_end;  // that loggers have not got yet

  // What a run leaves.
  int64_t epoch, global_step;
  int64_t batches_seen;     // of training, in all epochs
  int64_t batches_stepped;  // those after which the optimiser stepped
  cx_train_metric *metrics;
  size_t n_metrics, metrics_capacity;
  calx_value *weights;
};

// Of one loop over a loader, with one loader's name for messages.
calx_status *cx_train_open_loader(calx_trainer *t, const calx_loader *from,
                                  bool trains, const cx_train_limit *limit,
                                  const char *name,
                                  cx_train_loader *out) CALX_MUST_USE;
void cx_train_close_loader(cx_train_loader *l);
// The batch with its floating tensors in the precision of the model.
void cx_train_convert(const calx_trainer *t, const calx_batch *from,
                      calx_batch *out);

// The loops of a rank.
calx_status *cx_train_fit(calx_trainer *t) CALX_MUST_USE;
calx_status *cx_train_evaluate(calx_trainer *t) CALX_MUST_USE;  // one pass
calx_status *cx_train_open_evaluation(calx_trainer *t) CALX_MUST_USE;
void cx_train_close_evaluation(calx_trainer *t);
bool cx_train_has_evaluation(const calx_trainer *t);  // any batch of it
void cx_train_print_results(calx_trainer *t);
// Records a batch of training. True: the optimiser steps with it, which happens
// after each `accumulate` batches and after the last one of an epoch.
bool cx_train_step(calx_trainer *t, const calx_batch *batch, int64_t batch_idx,
                   bool is_last);
// The optimiser's step with the gradients that there are.
void cx_train_update(calx_trainer *t);

// Steps the schedules of an interval: those with a monitor, or all others.
calx_status *cx_train_schedule(calx_trainer *t, cx_train_interval interval,
                               bool monitors) CALX_MUST_USE;
#endif
