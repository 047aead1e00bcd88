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
#include "train/checkpoint.h"
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
  bool is_reduced;  // its gradients are those of all ranks
} cx_train_optimizer;

// A loader of a rank.
typedef struct cx_train_loader {
  const calx_loader *from;  // of which it was made
  calx_loader *loader;
  calx_sampler *sampler;  // the trainer's own; NULL: the loader's
  int64_t batches;        // to take; -1: to the end
  int64_t samples;        // of the dataset; -1: not known
  bool is_shared_out;     // this rank reads a share of it
  bool is_off;            // no rank takes a batch of it
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
  bool is_alone;         // on one device, which need not be the first one
  void *self;
  void *data_self;
  void **callback_selves;
  calx_module *model;
  calx_value *hyperparameters;  // a dict; NULL: none
  cx_train_optimizer *optimizers;
  size_t n_optimizers, optimizers_capacity;
  calx_tensor **frozen;  // owned: what a toggled optimiser leaves out
  size_t n_frozen, frozen_capacity;
  cx_train_loader train;
  cx_train_loader *evaluated;
  size_t n_evaluated;
  int dataloader_idx;
  bool sanity_checking, should_stop, skip_epoch, reported_minimum;
  bool reported_none;  // that a step of training returned nothing
  bool has_validated;  // since the run began, a sanity check aside
  bool resumes_epoch;  // the first epoch of the run is one that was begun
  const cx_train_hook *hook;  // that runs
  calx_site site;             // of the call that began the run
  int64_t batch_size;         // of the batch that is under way; 0: none
  bool is_batch_counted;      // it is one of position.batches_stepped
  int64_t accumulate;         // of the running epoch
  bool has_gradients;         // automatic optimisation has not stepped with
  calx_tensor *output;        // owned: of the step under way; NULL: none
  double last_validation;     // the time of it, in seconds
  cx_train_results train_results, evaluation_results;
  calx_metric **own_metrics;  // that the module gave it to free
  size_t n_own_metrics, own_metrics_capacity;
  cx_train_bar_value *bar;  // what the progress bar shows
  size_t n_bar, bar_capacity;
  cx_train_row *rows, *rows_end;       // that loggers have not got yet
  bool has_rows_to_save;               // loggers have got some since their save
  struct cx_train_profiler *profiler;  // NULL: none is made
  struct cx_train_predictions *predictions;
  calx_tensor *signals[CX_TRAIN_NEWEST];  // owned: of the newest programs
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

// A trainer with this error, which it takes.
calx_trainer *cx_train_refused(calx_status *error);

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
  bool is_alone;            // it runs in the calling thread, on whatever device
  calx_site site;           // of the program's call
  char *return_path;  // the file through which a started process gives it; or
                      // NULL
} cx_train_job;

// Before the ranks start: whether the accelerator that is wanted can be there.
// Nothing is loaded for it.
calx_status *cx_train_check_expected(const calx_trainer *t) CALX_MUST_USE;
// On a device: whether it is the accelerator that is wanted.
calx_status *cx_train_check_accelerator(const calx_trainer *t) CALX_MUST_USE;
// On the first rank the lines "GPU available: …" and "TPU available: …".
void cx_train_announce(const calx_trainer *t);
calx_status *cx_train_run_rank(int index, void *job) CALX_MUST_USE;
// The rank's place in its process.
int cx_train_device_index(const calx_trainer *t);
// What the next run begins with moves from one trainer to another.
void cx_train_move_state(calx_trainer *from, calx_trainer *to);

// Where the ranks will be processes that calx_launch() starts.
calx_status *cx_train_return_begin(cx_train_job *job) CALX_MUST_USE;
calx_status *cx_train_return_write(const calx_trainer *t,
                                   cx_train_job *job) CALX_MUST_USE;
// Takes the run's status and returns it, or what failed in reading.
calx_status *cx_train_return_end(cx_train_job *job,
                                 calx_status *status) CALX_MUST_USE;

// The loops.
calx_status *cx_train_fit(calx_trainer *t) CALX_MUST_USE;
calx_status *cx_train_evaluate(calx_trainer *t) CALX_MUST_USE;  // one pass
void cx_train_print_results(calx_trainer *t);

// Records a batch of training. True: an optimiser steps with it: with automatic
// optimisation after each `accumulate` batches and after the last one of an
// epoch.
bool cx_train_step(calx_trainer *t, const calx_batch *batch, int64_t batch_idx,
                   bool is_last);
// Keeps what a step returned until its batch is over.
void cx_train_set_output(calx_trainer *t, calx_tensor *output);
// The training step's result for a batch: the loss.
calx_tensor *cx_train_loss(calx_trainer *t, const calx_batch *batch,
                           int64_t batch_idx);
// The optimiser's step with the gradients that there are.
void cx_train_update(calx_trainer *t);
// Whether a fit runs; and whether there is this optimiser. `call` is for
// messages.
calx_status *cx_train_check_fit(const calx_trainer *t,
                                const char *call) CALX_MUST_USE;
calx_status *cx_train_check_optimizer(const calx_trainer *t, const char *call,
                                      size_t i) CALX_MUST_USE;
// Its gradients become the means over the ranks, unless they are that already.
void cx_train_reduce_gradients(calx_trainer *t, size_t i);
// The step of one optimiser, with the sums over the ranks and the hooks.
void cx_train_step_optimizer(calx_trainer *t, size_t i);

void cx_train_free_optimizers(calx_trainer *t);

// Steps the schedules of an interval: those with a monitor, or all others. With
// manual optimisation the program does.
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

// The optimisers and schedules of a run as two lists.
typedef struct cx_train_state_lists {
  calx_optimizer **optimizers;
  calx_lr_scheduler **schedulers;
  cx_train_states states;  // of both and the model
} cx_train_state_lists;
calx_status *cx_train_list_states(const calx_trainer *t,
                                  cx_train_state_lists *out) CALX_MUST_USE;
void cx_train_free_lists(cx_train_state_lists *l);

// Under which a data module's state is in a checkpoint, as of a class of
// Lightning's without a name of its own.
#define CX_TRAIN_DATA_MODULE "LightningDataModule"
// A copy with its tensors on the host.
calx_status *cx_train_copy_value(const calx_value *v,
                                 calx_value **out) CALX_MUST_USE;
// All that a fit needs to go on, as a dict of tensors on the host. A
// collective.
calx_status *cx_train_dump(calx_trainer *t, bool weights_only,
                           calx_value **out) CALX_MUST_USE;
// The same with copies on the host, on the first rank of a process; else NULL.
calx_status *cx_train_dump_host(calx_trainer *t, bool weights_only,
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

// Of the run that a program names "last"; NULL: there is none.
calx_status *cx_train_find_last(const calx_trainer *t,
                                char **out) CALX_MUST_USE;
// Of a job that its launcher has started again.
calx_status *cx_train_find_newest(const calx_trainer *t,
                                  char **out) CALX_MUST_USE;

// ---- signals ----------------------------------------------------------------

// Takes SIGTERM, SIGINT and Slurm's SIGUSR1 while a run lasts.
void cx_train_signals_begin(void);
// Gives them back; the exit code of a program that ends with this status.
int cx_train_signals_end(const calx_status *status);
// In the last step of a program, where it updates: what this rank has received
// becomes known to all.
void cx_train_record_signals(calx_trainer *t);
void cx_train_free_signals(calx_trainer *t);
// The file in which SIGTERM leaves a run.
calx_status *cx_train_signal_path(const calx_trainer *t,
                                  char **out) CALX_MUST_USE;
// After a batch of training: where a signal came to any rank the run is saved,
// and ends with what is returned.
calx_status *cx_train_check_signals(calx_trainer *t) CALX_MUST_USE;
// At the end of a fit that went on from what a signal had left.
calx_status *cx_train_forget_signal(const calx_trainer *t) CALX_MUST_USE;
// The same in a run that only evaluates, for this process.
calx_status *cx_train_check_evaluation_signals(const calx_trainer *t)
    CALX_MUST_USE;

// ---- hyperparameters --------------------------------------------------------

// When training starts.
calx_status *cx_train_log_hyperparameters(calx_trainer *t) CALX_MUST_USE;

// ---- what a module's functions keep
// ------------------------------------------

// A `self` of zeros, with a guard behind it; freed with cx_free().
void *cx_train_self_new(size_t size);
// Whether a function wrote over the guard.
calx_status *cx_train_self_check(const void *self, size_t size,
                                 const char *function) CALX_MUST_USE;

// ---- what it says of the data -----------------------------------------------

void cx_train_report_data(const calx_trainer *t, bool has_val_loaders);

// ---- defaults and profiles --------------------------------------------------

// The logger and the callbacks that a program need not give.
calx_status *cx_train_add_defaults(calx_trainer *t) CALX_MUST_USE;
// The timer of max_time.
calx_callback *cx_train_timer_new(double seconds);
// The logger that `logger` names, in default_root_dir. Never NULL.
calx_logger *cx_train_new_logger(const calx_trainer *t);
// Measures an action, by name, where a profile is made. The name lives as long
// as the process.
void cx_train_profile_begin(calx_trainer *t, const char *who, const char *what);
void cx_train_profile_end(calx_trainer *t);
calx_status *cx_train_profile_new(calx_trainer *t) CALX_MUST_USE;
// Prints the table on the first rank, and frees the profile.
void cx_train_profile_report(calx_trainer *t);
#endif
