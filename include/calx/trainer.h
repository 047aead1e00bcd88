/**
 * calx/trainer.h: the training loop, with Lightning's names.
 *
 * A calx_lightning_module says what a model computes in a step. The trainer
 * runs the loop, on one device or on several: batches, backward pass, sums over
 * the ranks, optimiser, schedules, validation, logged values, callbacks,
 * checkpoints. Every rank has a copy of the trainer and a model of its own.
 *
 * @source Lightning 2.6: lightning.pytorch.Trainer
 */
#ifndef CALX_TRAINER_H
#define CALX_TRAINER_H

#include "calx/dist.h"
#include "calx/lightning_module.h"
#include "calx/loggers.h"
#include "calx/trainer_step.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- options ----------------------------------------------------------------

/** Lightning's options; what is not written has Lightning's default. */
typedef struct CALX_OPTIONS calx_trainer_options {
  CALX_NAMED size_t size;

  /* "auto", "cpu", "tpu", "gpu", "cuda": the plugin's platform must be that
     one; "auto" takes any */
  CALX_NAMED const char *accelerator;
  /* "auto", "xla", "single_xla", "ddp"; "xla_debug" also prints the metrics
     report at the end; old names: "tpu_spawn", "tpu_spawn_debug", "single_tpu"
   */
  CALX_NAMED const char *strategy;
  /* devices of this process, a rank each; 0, -1: all */
  CALX_NAMED int devices;
  /* instead of it, as Lightning's text: "auto", "8", or one device by its
     number, counted from 0: "[2]", "2," */
  CALX_NAMED const char *device_ids;
  /* the same as 1.x had it: 1 or 8 cores of a TPU */
  CALX_NAMED int tpu_cores;
  /* the same as a text: "8", or one core by its number, counted from 1: "[5]",
     "5" */
  CALX_NAMED const char *tpu_core_ids;
  CALX_NAMED int num_nodes; /* hosts that there must be; 0: any number */
  /* "32-true", "32", "64-true", "64", "bf16-true", "bf16-mixed", "bf16", "16"
     (is bf16-mixed) */
  CALX_NAMED const char *precision;

  CALX_NAMED int64_t max_epochs; /* 1000; -1: no limit */
  CALX_NAMED int64_t min_epochs;
  CALX_NAMED int64_t max_steps; /* of the optimiser; -1: no limit */
  CALX_NAMED int64_t min_steps;
  CALX_NAMED const char *max_time; /* "DD:HH:MM:SS"; NULL: no limit */

  /* batches of each rank: below 1 a share of them, from 1 on a number; 0: none;
     INFINITY, or not written: all */
  CALX_NAMED double limit_train_batches;
  CALX_NAMED double limit_val_batches;
  CALX_NAMED double limit_test_batches;
  CALX_NAMED double limit_predict_batches;
  /* the same few batches of training and validation, in their order; as the
     limits; not written, 0: off */
  CALX_NAMED double overfit_batches;
  /* n batches of each loop, one epoch; no sanity check, loggers, checkpoints,
     and callbacks that stop are off */
  CALX_NAMED int64_t fast_dev_run;

  /* validation after so many batches; below 1: after that share of an epoch;
     not written: at the end of an epoch */
  CALX_NAMED double val_check_interval;
  /* the same by time: "DD:HH:MM:SS"; NULL: not */
  CALX_NAMED const char *val_check_time;
  /* 1; -1 (Lightning's None): val_check_interval counts the batches of all
     epochs */
  CALX_NAMED int64_t check_val_every_n_epoch;
  CALX_NAMED int64_t num_sanity_val_steps; /* 2; -1: all */

  CALX_NAMED int64_t accumulate_grad_batches;     /* 1 */
  CALX_NAMED double gradient_clip_val;            /* not written, 0: none */
  CALX_NAMED const char *gradient_clip_algorithm; /* "norm"; "value" */
  /* batches whose steps are one program; 1. Hooks of a batch run when it is
     recorded; the last program of an epoch may have fewer */
  CALX_NAMED int64_t steps_per_execution;

  CALX_NAMED uint64_t seed; /* of models, draws and the order of samples */
  /* nothing is chosen by measured times, from here on in this process; before
     a device is used */
  CALX_NAMED bool deterministic;
  CALX_NAMED bool detect_anomaly;   /* the op that made a NaN is an error */
  CALX_NAMED bool terminate_on_nan; /* a loss or parameter that is not finite
                                       is an error; each step is waited for */
  CALX_NAMED bool
      no_distributed_sampler; /* ranks read the loaders as they are */
  /* "simple": a table of where time goes, printed at the end; "xla": a profile
     of it all in default_root_dir; NULL: none */
  CALX_NAMED const char *profiler;

  /* of logs and checkpoints; NULL = ".". "~/" is the home folder */
  CALX_NAMED const char *default_root_dir;
  /* copied; the loggers stay. The first rank of all writes to them. None: a
     TensorBoard logger in default_root_dir */
  CALX_NAMED calx_logger *const *loggers;
  CALX_NAMED size_t n_loggers;
  CALX_NAMED bool no_logger;
  CALX_NAMED int64_t log_every_n_steps;       /* of the steps' values; 50 */
  CALX_NAMED calx_callback *const *callbacks; /* copied; the callbacks stay */
  CALX_NAMED size_t n_callbacks;
  CALX_NAMED bool no_checkpointing; /* no ModelCheckpoint where none is given */
  CALX_NAMED bool no_progress_bar;
  CALX_NAMED bool no_model_summary;
  CALX_NAMED bool barebones; /* all of these off, to measure the trainer */
  /* the logger in default_root_dir, where `loggers` has none: "tensorboard",
     "csv", "json" */
  CALX_NAMED const char *logger;
  CALX_NAMED bool no_environment; /* CALX_TRAINER_* are not read */
} calx_trainer_options;

/** A trainer. What is not written has the value of CALX_TRAINER_NAME, as of
 *  CALX_TRAINER_MAX_EPOCHS, where there is that variable. Never NULL:
 *  calx_trainer_error() says what is wrong with the options.
 *  @errors INVALID_ARGUMENT Lightning's texts */
CALX_API calx_trainer *calx_trainer_new_with(
    const calx_trainer_options *options);
/** NULL is accepted. */
CALX_API void calx_trainer_free(calx_trainer *trainer);
/** What is wrong with its options; NULL: nothing. The caller frees it. */
CALX_API calx_status *calx_trainer_error(const calx_trainer *trainer)
    CALX_MUST_USE;

// ---- runs -------------------------------------------------------------------

/** The data of a run. Loaders are descriptions: each rank reads its share by a
 *  loader of its own. */
typedef struct CALX_OPTIONS calx_trainer_data {
  CALX_NAMED size_t size;
  CALX_NAMED const calx_loader *train_dataloader;
  CALX_NAMED const calx_loader *val_dataloader;
  CALX_NAMED const calx_loader *test_dataloader;
  CALX_NAMED const calx_loader *predict_dataloader;
  /* instead of that of validation, test or prediction */
  CALX_NAMED const calx_loader *const *dataloaders;
  CALX_NAMED size_t n_dataloaders;
  CALX_NAMED const calx_lightning_data_module *datamodule;
  /* a checkpoint to begin with: a path; "best", of the first ModelCheckpoint;
     "last", the newest last*.ckpt of theirs or file of a failed run; "hpc", the
     highest hpc_ckpt_N.ckpt in default_root_dir. Of fit all of its state, else
     the weights; NULL: what the trainer's last run left, but for a fit after a
     failed one with an OnExceptionCheckpoint, or in a job that Slurm has
     started again */
  CALX_NAMED const char *ckpt_path;
  CALX_NAMED bool not_verbose; /* validate and test print no table */
} calx_trainer_data;

/**
 * Trains. A second call goes on from the first one's weights, epoch and step.
 * @errors the trainer's own; INVALID_ARGUMENT no training_step, optimiser or
 *         loader; those of the model, of the data, of the checkpoint, of
 *         calx_launch(); CANCELLED a signal ended it: see
 *         calx_trainer_exit_code()
 */
CALX_API calx_status *calx_trainer_fit_with(
    calx_trainer *trainer, const calx_lightning_module *module,
    const calx_trainer_data *data) CALX_MUST_USE;
/** One pass over the validation data with the weights that the last run of this
 *  trainer left; prints the table of results. @errors as calx_trainer_fit */
CALX_API calx_status *calx_trainer_validate_with(
    calx_trainer *trainer, const calx_lightning_module *module,
    const calx_trainer_data *data) CALX_MUST_USE;
/** The same with the test data. @errors as calx_trainer_fit */
CALX_API calx_status *calx_trainer_test_with(
    calx_trainer *trainer, const calx_lightning_module *module,
    const calx_trainer_data *data) CALX_MUST_USE;
/**
 * What predict_step makes of each sample, of all ranks, in the order of the
 * samples, each once.
 * @param out_predictions  a list with a tensor of the host for each loader; on
 *        the first rank of each process; the caller frees it
 * @shape (samples, …) of each tensor
 * @errors as calx_trainer_fit; INVALID_ARGUMENT predictions that have not a
 *         row for each sample of the batch, or differ in shape or dtype
 */
CALX_API calx_status *calx_trainer_predict_with(
    calx_trainer *trainer, const calx_lightning_module *module,
    calx_value **out_predictions, const calx_trainer_data *data) CALX_MUST_USE;
/** What a program that ends after the last run returns: 0; 1 an error or
 *  SIGINT, 143 SIGTERM. */
CALX_API int calx_trainer_exit_code(const calx_trainer *trainer);

// ---- checkpoints ------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_trainer_save_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool weights_only; /* without what only a resumed fit needs */
} calx_trainer_save_options;
/**
 * Saves a checkpoint, which calx_trainer_fit(.ckpt_path) goes on from and
 * Lightning can load; a name that ends in .safetensors has the weights alone.
 * In a run all ranks call it, and the first one writes; after a run it is what
 * that left.
 * @errors FAILED_PRECONDITION no run yet; those of calx_save()
 * @source Trainer.save_checkpoint
 */
CALX_API calx_status *calx_trainer_save_checkpoint_with(
    calx_trainer *trainer, const char *path,
    const calx_trainer_save_options *options) CALX_MUST_USE;
/** Gives a model the weights that the last run left.
 *  @errors FAILED_PRECONDITION no run yet; those of the state dict */
CALX_API calx_status *calx_trainer_load_weights(
    const calx_trainer *trainer, calx_module *model) CALX_MUST_USE;
/** Gives a model the weights of a file: a checkpoint of a trainer's,
 * Lightning's too, or a state dict. .prefix = "net.", .not_strict = true takes
 * a part of a larger model's.
 *  @errors those of calx_load() and of calx_module_load_state_dict()
 *  @source LightningModule.load_from_checkpoint */
CALX_API calx_status *calx_module_load_from_checkpoint_with(
    calx_module *model, const char *path,
    const calx_load_state_dict_options *options) CALX_MUST_USE;

/** Changes the limit of the fits to come: so many epochs in all, those of
 *  earlier fits among them; -1: no limit. A fit after another one goes on to
 *  there.
 *  @errors INVALID_ARGUMENT the trainer is NULL, a number below -1; the
 *          trainer's own
 *  @source trainer.fit_loop.max_epochs */
CALX_API calx_status *calx_trainer_set_max_epochs(
    calx_trainer *trainer, int64_t max_epochs) CALX_MUST_USE;

// ---- state: of the rank, inside a run; of the first rank, after it ----------

/** What runs: "fit", "validate", "test", "predict"; "": nothing. */
CALX_API const char *calx_trainer_stage(const calx_trainer *trainer);
/** Epochs that are over. */
CALX_API int64_t calx_trainer_current_epoch(const calx_trainer *trainer);
/** Steps of the optimiser so far. */
CALX_API int64_t calx_trainer_global_step(const calx_trainer *trainer);
/** Whether this rank is the first of all. */
CALX_API bool calx_trainer_is_global_zero(const calx_trainer *trainer);
/** Whether the validation before the first epoch runs. */
CALX_API bool calx_trainer_sanity_checking(const calx_trainer *trainer);
/** Which of several loaders is read. */
CALX_API int calx_trainer_dataloader_idx(const calx_trainer *trainer);
/** Batches of an epoch of training on this rank; -1: not known. */
CALX_API int64_t calx_trainer_num_training_batches(const calx_trainer *trainer);
/** Steps of the optimiser that the fit will have when it ends by max_epochs or
 *  max_steps, for the length of a schedule; -1: not known, or without end.
 *  @source trainer.estimated_stepping_batches */
CALX_API int64_t
calx_trainer_estimated_stepping_batches(const calx_trainer *trainer);
/** Batches of loader i of the evaluation on this rank, in a sanity check those
 *  that it takes; -1: not known. */
CALX_API int64_t calx_trainer_num_eval_batches(const calx_trainer *trainer,
                                               size_t i);
/** The module's `user`. */
CALX_API void *calx_trainer_user(const calx_trainer *trainer);
/** The module's `self` of this rank; NULL outside of a run. */
CALX_API void *calx_trainer_lightning_module(const calx_trainer *trainer);
/** The data module's `self` of this rank; NULL: none. */
CALX_API void *calx_trainer_datamodule(const calx_trainer *trainer);
/** The rank's model; NULL outside of a run. */
CALX_API calx_module *calx_trainer_model(const calx_trainer *trainer);
/** In the hooks of a batch's end: what the step returned; NULL: nothing.
 *  @shape any @errors none @source outputs of on_train_batch_end */
CALX_API calx_tensor *calx_trainer_step_output(const calx_trainer *trainer);
/** Logger i; NULL: none. */
CALX_API calx_logger *calx_trainer_logger(const calx_trainer *trainer,
                                          size_t i);
/** The first logger's folder, else default_root_dir. @source trainer.log_dir */
CALX_API const char *calx_trainer_log_dir(const calx_trainer *trainer);
CALX_API const char *calx_trainer_default_root_dir(const calx_trainer *trainer);
/** The newest value that was logged under a name, NaN: none. A value that is
 * not computed yet is waited for. @source trainer.callback_metrics */
CALX_API double calx_trainer_callback_metric(calx_trainer *trainer,
                                             const char *name);
/** Whether there is a value of this name. */
CALX_API bool calx_trainer_has_metric(const calx_trainer *trainer,
                                      const char *name);
/** Ends training after this batch, once min_epochs and min_steps are over. On
 *  several ranks all of them must call it at the same batch.
 *  @source trainer.should_stop */
CALX_API void calx_trainer_stop(calx_trainer *trainer);
/** Whether that was called. */
CALX_API bool calx_trainer_should_stop(const calx_trainer *trainer);
/** In on_train_batch_start: leaves out the rest of this epoch.
 *  @source on_train_batch_start's -1 */
CALX_API void calx_trainer_skip_epoch(calx_trainer *trainer);
/** From the next batch on gradients are summed over so many batches; of the
 *  callback that schedules it.  @errors through the scope: INVALID_ARGUMENT
 *  less than 1, manual optimisation
 *  @source trainer.accumulate_grad_batches */
CALX_API void calx_trainer_set_accumulate_grad_batches(calx_trainer *trainer,
                                                       int64_t batches);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_trainer_options_                                   \
  .max_epochs = CALX_UNWRITTEN_INT_, .max_steps = CALX_UNWRITTEN_INT_,         \
  .limit_train_batches = CALX_UNWRITTEN_,                                      \
  .limit_val_batches = CALX_UNWRITTEN_, .limit_test_batches = CALX_UNWRITTEN_, \
  .limit_predict_batches = CALX_UNWRITTEN_,                                    \
  .val_check_interval = CALX_UNWRITTEN_,                                       \
  .num_sanity_val_steps = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_trainer_options, calx_written_int_(&o->max_epochs);
              calx_written_int_(&o->max_steps);
              calx_written_(&o->limit_train_batches);
              calx_written_(&o->limit_val_batches);
              calx_written_(&o->limit_test_batches);
              calx_written_(&o->limit_predict_batches);
              calx_written_(&o->val_check_interval);
              calx_written_int_(&o->num_sanity_val_steps);)
#endif
#ifdef __cplusplus
}
#else
#define CALX_TRAINER_NEW_(...)               \
  (CALX_TRAINER_SITE_ calx_trainer_new_with( \
      CALX_WRITE_(calx_trainer_options, __VA_ARGS__)))
#define calx_trainer_new(...) \
  CALX_TRAINER_NEW_(.size = sizeof(calx_trainer_options), __VA_ARGS__)
#define CALX_TRAINER_RUN_(fn, trainer, module, ...) \
  (CALX_TRAINER_SITE_ fn(trainer, module, &(calx_trainer_data){ __VA_ARGS__ }))
#define calx_trainer_fit(trainer, ...)                           \
  CALX_TRAINER_RUN_(calx_trainer_fit_with, trainer, __VA_ARGS__, \
                    .size = sizeof(calx_trainer_data))
#define calx_trainer_validate(trainer, ...)                           \
  CALX_TRAINER_RUN_(calx_trainer_validate_with, trainer, __VA_ARGS__, \
                    .size = sizeof(calx_trainer_data))
#define calx_trainer_test(trainer, ...)                           \
  CALX_TRAINER_RUN_(calx_trainer_test_with, trainer, __VA_ARGS__, \
                    .size = sizeof(calx_trainer_data))
#define CALX_TRAINER_PREDICT_(trainer, module, out, ...) \
  (CALX_TRAINER_SITE_ calx_trainer_predict_with(         \
      trainer, module, out, &(calx_trainer_data){ __VA_ARGS__ }))
#define calx_trainer_predict(trainer, module, ...)    \
  CALX_TRAINER_PREDICT_(trainer, module, __VA_ARGS__, \
                        .size = sizeof(calx_trainer_data))
#define CALX_MODULE_LOAD_FROM_CHECKPOINT_(model, path, ...)  \
  (CALX_TRAINER_SITE_ calx_module_load_from_checkpoint_with( \
      model, path, &(calx_load_state_dict_options){ __VA_ARGS__ }))
#define calx_module_load_from_checkpoint(model, ...) \
  CALX_MODULE_LOAD_FROM_CHECKPOINT_(                 \
      model, __VA_ARGS__, .size = sizeof(calx_load_state_dict_options))
#define CALX_TRAINER_SAVE_(trainer, path, ...)           \
  (CALX_TRAINER_SITE_ calx_trainer_save_checkpoint_with( \
      trainer, path, &(calx_trainer_save_options){ __VA_ARGS__ }))
#define calx_trainer_save_checkpoint(trainer, ...) \
  CALX_TRAINER_SAVE_(trainer, __VA_ARGS__,         \
                     .size = sizeof(calx_trainer_save_options))
#endif
#endif
