// train/internal: the structs behind the trainer's handles.
//
// The program's trainer has the options and what the last run left. Each rank
// of a run works on a copy, so ranks share nothing that changes.
#ifndef CX_TRAIN_INTERNAL_H
#define CX_TRAIN_INTERNAL_H

#include <math.h>
#include <stddef.h>

#include "base/status.h"
#include "base/text.h"
#include "calx/io.h"
#include "calx/loggers.h"
#include "calx/trainer.h"
#include "train/config.h"
#include "train/hooks.h"
#include "train/results.h"

// ---- the trainer ------------------------------------------------------------

typedef enum cx_train_stage {
  CX_TRAIN_NONE,
  CX_TRAIN_FITTING,
  CX_TRAIN_VALIDATING,
  CX_TRAIN_TESTING,
  CX_TRAIN_PREDICTING
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
  bool not_strict;
} cx_train_optimizer;

// A loader of a rank.
typedef struct cx_train_loader {
  const calx_loader *from;  // of which it was made
  calx_loader *loader;
  calx_sampler *sampler;  // the trainer's own; NULL: the loader's
  int64_t batches;        // to take; -1: to the end
  int64_t samples;        // of the dataset; -1: not known
  bool is_shared_out;     // this rank reads a share of it
} cx_train_loader;

// How far training is. What a checkpoint keeps of it.
typedef struct cx_train_position {
  int64_t epoch;            // epochs that are over
  int64_t global_step;      // of the optimisers
  int64_t batch;            // batches of the running epoch that are over
  int64_t batches_seen;     // in all epochs
  int64_t batches_stepped;  // those after which the optimiser stepped
  int64_t samples;          // of the running epoch, of this rank
  bool is_epoch_end;        // all batches of the epoch are over
} cx_train_position;

struct calx_trainer {
  calx_status *error;
  cx_train_config config;
  char *default_root_dir;
  calx_callback **callbacks;  // in the order of their running
  size_t n_callbacks;
  calx_logger **loggers;
  size_t n_loggers;
  calx_callback *own_callbacks[4];  // those of `callbacks` that it made itself
  size_t n_own_callbacks;
  calx_logger *own_logger;  // the same of `loggers`; NULL: none

  // Of a run.
  const calx_lightning_module *module;
  const calx_trainer_data *data;
  cx_train_stage asked;  // which function runs
  cx_train_stage stage;  // what it does at the moment
  void *self;
  void *data_self;
  void **callback_selves;
  calx_module *model;
  cx_train_optimizer *optimizers;
  size_t n_optimizers, optimizers_capacity;
  calx_tensor **frozen;  // owned: what a toggled optimiser leaves out
  size_t n_frozen, frozen_capacity;
  cx_train_loader train;
  cx_train_loader *evaluated;
  size_t n_evaluated;
  int dataloader_idx;
  bool sanity_checking, should_stop, skip_epoch, reported_minimum;
  bool has_validated;  // since the run began, a sanity check aside
  bool resumes_epoch;  // the first epoch of the run is one that was begun
  const cx_train_hook *hook;  // that runs
  int64_t batch_size;         // of the batch that is under way; 0: none
  bool is_batch_counted;      // it is one of position.batches_stepped
  int64_t accumulate;         // of the running epoch
  calx_tensor *output;        // of the step that is under way; NULL: none
  double last_validation;     // the time of it, in seconds
  cx_train_results train_results, evaluation_results;
  cx_train_bar_value *bar;  // what the progress bar shows
  size_t n_bar, bar_capacity;
  cx_train_row *rows, *rows_end;       // that loggers have not got yet
  struct cx_train_profiler *profiler;  // NULL: none is made
  struct cx_train_predictions *predictions;
  struct cx_train_signals *signals;
  char *ckpt_path, *source;  // the file that it began with, and where that is
  const calx_status *exception;  // why it ends; NULL: nothing is wrong

  // What a run leaves.
  cx_train_position position;
  // At the last sync that succeeded: that of the weights where the next fails.
  cx_train_position computed;
  cx_train_metric *metrics;
  size_t n_metrics, metrics_capacity;
  calx_value *checkpoint;  // of the host; NULL: nothing ran yet
  int exit_code;
};

// ---- data -------------------------------------------------------------------

// Of one loop over a loader, with one loader's name for messages.
calx_status *cx_train_open_loader(calx_trainer *t, const calx_loader *from,
                                  bool trains, const cx_train_limit *limit,
                                  const char *name,
                                  cx_train_loader *out) CALX_MUST_USE;
void cx_train_close_loader(cx_train_loader *l);
// The loaders of the run: the data module's, or those that were given.
calx_status *cx_train_open_training(calx_trainer *t) CALX_MUST_USE;
// The loader of training once more, with batches of this size; 0: its own.
calx_status *cx_train_reopen_training(calx_trainer *t, int64_t batch_size,
                                      cx_train_loader *out) CALX_MUST_USE;
calx_status *cx_train_open_evaluation(calx_trainer *t) CALX_MUST_USE;
void cx_train_close_evaluation(calx_trainer *t);
bool cx_train_has_evaluation(const calx_trainer *t);  // any batch of it
// The batch with its floating tensors in the precision of the model, and as
// on_after_batch_transfer leaves it.
void cx_train_receive(calx_trainer *t, const calx_batch *from, calx_batch *out);

// ---- a run of a rank --------------------------------------------------------

// What a run is, for each of its ranks.
typedef struct cx_train_job {
  const calx_trainer *trainer;  // the program's
  const calx_lightning_module *module;
  const calx_trainer_data *data;
  cx_train_stage stage;
  calx_trainer left;  // by the first rank of this process
  bool has_left;
  calx_value *predictions;  // of the first rank of this process
  struct cx_train_signals *signals;
} cx_train_job;

calx_status *cx_train_run_rank(int index, void *job) CALX_MUST_USE;
// The rank's place in its process.
int cx_train_device_index(const calx_trainer *t);
// What the next run begins with moves from one trainer to another.
void cx_train_move_state(calx_trainer *from, calx_trainer *to);

// The loops.
calx_status *cx_train_fit(calx_trainer *t) CALX_MUST_USE;
calx_status *cx_train_evaluate(calx_trainer *t) CALX_MUST_USE;  // one pass
void cx_train_print_results(calx_trainer *t);

// Records a batch of training. True: an optimiser steps with it: with automatic
// optimisation after each `accumulate` batches and after the last one of an
// epoch.
bool cx_train_step(calx_trainer *t, const calx_batch *batch, int64_t batch_idx,
                   bool is_last);
// The training step's result for a batch: the loss.
calx_tensor *cx_train_loss(calx_trainer *t, const calx_batch *batch,
                           int64_t batch_idx);
// The optimiser's step with the gradients that there are.
void cx_train_update(calx_trainer *t);
// The step of one optimiser, with the sums over the ranks and the hooks.
void cx_train_step_optimizer(calx_trainer *t, size_t i);

void cx_train_free_optimizers(calx_trainer *t);

// Steps the schedules of an interval: those with a monitor, or all others.
calx_status *cx_train_schedule(calx_trainer *t, cx_train_interval interval,
                               bool monitors) CALX_MUST_USE;

// ---- predictions ------------------------------------------------------------

// Keeps what predict_step returned for a batch.
calx_status *cx_train_keep_prediction(calx_trainer *t, const calx_batch *batch,
                                      calx_tensor *rows) CALX_MUST_USE;
// All ranks' predictions in the order of the samples; NULL on other ranks than
// the first of a process.
calx_status *cx_train_join_predictions(calx_trainer *t,
                                       calx_value **out) CALX_MUST_USE;
void cx_train_free_predictions(calx_trainer *t);

// ---- ranks ------------------------------------------------------------------

// The first rank's numbers become everybody's. In all three a failed run's
// ranks keep what they have.
calx_status *cx_train_broadcast_numbers(const calx_trainer *t, const char *tag,
                                        double *values,
                                        size_t count) CALX_MUST_USE;
// The same of a text, which may be NULL; freed with cx_free().
calx_status *cx_train_broadcast_text(const calx_trainer *t, const char *tag,
                                     char **text) CALX_MUST_USE;
// Whether all ranks say yes; the number is the first one's.
calx_status *cx_train_agree(const calx_trainer *t, const char *tag, bool *yes,
                            double *number) CALX_MUST_USE;

// ---- states of callbacks ----------------------------------------------------

// A text as Python's repr() has it; NULL: None.
void cx_train_put_quoted(cx_text *out, const char *text);
// A tensor of one element on the host; NULL: no memory.
calx_value *cx_train_put_scalar(double number);
// Of a tensor or a number; NaN: it is neither.
double cx_train_take_scalar(const calx_value *value);

// ---- checkpoints ------------------------------------------------------------

// All that a fit needs to go on, as a dict of tensors on the host. A
// collective.
calx_status *cx_train_dump(calx_trainer *t, bool weights_only,
                           calx_value **out) CALX_MUST_USE;
// Before the optimisers are made: hooks, weights, the data module's state, and
// of fit the callbacks' states.
calx_status *cx_train_restore_model(calx_trainer *t,
                                    calx_value *checkpoint) CALX_MUST_USE;
// After that: optimisers, schedules, position, random numbers.
calx_status *cx_train_restore_training(
    calx_trainer *t, const calx_value *checkpoint) CALX_MUST_USE;
// The checkpoint that the run is to begin with; NULL: none.
calx_status *cx_train_find_checkpoint(calx_trainer *t,
                                      calx_value **out) CALX_MUST_USE;
// The highest N of hpc_ckpt_N.ckpt in a folder; -1: there is none.
int64_t cx_train_hpc_number(const char *folder);
// That file in default_root_dir; freed with cx_free().
calx_status *cx_train_hpc_path(const calx_trainer *t, int64_t number,
                               char **out) CALX_MUST_USE;
// Says that all of it is restored.
void cx_train_report_restored(const calx_trainer *t);
// Whether cx_train_dump() gives a checkpoint where an error ends the run.
bool cx_train_can_save(const calx_trainer *t);

// ---- signals ----------------------------------------------------------------

// Takes SIGTERM, SIGINT and Slurm's SIGUSR1 while a run lasts.
calx_status *cx_train_signals_begin(struct cx_train_signals **out)
    CALX_MUST_USE;
// Gives them back; the exit code of a program that ends with this status.
int cx_train_signals_end(struct cx_train_signals *s, const calx_status *status);
// After a batch of training: whether a signal came to any rank, as all of them
// agree two batches later at most. Then the run ends with what is returned.
calx_status *cx_train_check_signals(calx_trainer *t) CALX_MUST_USE;

// ---- defaults and profiles --------------------------------------------------

// The logger and the callbacks that a program need not give.
calx_status *cx_train_add_defaults(calx_trainer *t) CALX_MUST_USE;
// The timer of max_time.
calx_callback *cx_train_timer_new(double seconds);
// Measures an action, by name, where a profile is made. The name lives as long
// as the process.
void cx_train_profile_begin(calx_trainer *t, const char *who, const char *what);
void cx_train_profile_end(calx_trainer *t);
calx_status *cx_train_profile_new(calx_trainer *t) CALX_MUST_USE;
// Prints the table on the first rank, and frees the profile.
void cx_train_profile_report(calx_trainer *t);
#endif
