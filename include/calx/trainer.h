/**
 * calx/trainer.h: the training loop, with Lightning's names.
 *
 * A calx_lightning_module says what a model computes in a step. The trainer
 * runs the loop, on one device or on several: batches, backward pass, sums over
 * the ranks, optimiser, schedules, validation, logged values, callbacks.
 *
 * Every rank has a copy of the trainer, a model and a `self` of its own, and
 * its functions get those of their rank. The ranks of a process are threads, so
 * what `user` points to is shared by them: it is read only.
 *
 * @source Lightning 2.6: lightning.pytorch.Trainer, LightningModule, Callback
 */
#ifndef CALX_TRAINER_H
#define CALX_TRAINER_H

#include "calx/data.h"
#include "calx/dist.h"
#include "calx/loggers.h"
#include "calx/lr_scheduler.h"
#include "calx/nn.h"
#include "calx/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct calx_trainer calx_trainer;
typedef struct calx_callback calx_callback;

// ---- what the program gives -------------------------------------------------

/** A hook. @param self  the module's or the callback's, of this rank */
typedef void calx_trainer_hook_fn(calx_trainer *trainer, void *self);
/** A hook of a batch, whose tensors are on the rank's device. */
typedef void calx_trainer_batch_hook_fn(calx_trainer *trainer, void *self,
                                        const calx_batch *batch,
                                        int64_t batch_idx);
/** A step: of training it returns the loss, which the trainer minimises; NULL
 *  leaves the update out. The others may return NULL. @shape one element */
typedef calx_tensor *calx_trainer_step_fn(calx_trainer *trainer, void *self,
                                          const calx_batch *batch,
                                          int64_t batch_idx);

/** Makes the rank's model on its device and returns its root, which the trainer
 *  frees. */
typedef calx_module *calx_configure_model_fn(calx_trainer *trainer, void *self);
/** Downloads and the like, before any rank reads the data. */
typedef calx_status *calx_prepare_data_fn(void *user);

/** What modules and callbacks may do beside the loop; NULL: nothing. A
 *  callback's hook runs before the module's. Errors go to the scope, and end
 * the run. */
typedef struct CALX_OPTIONS calx_trainer_hooks {
  CALX_NAMED calx_trainer_hook_fn *setup;
  CALX_NAMED calx_trainer_hook_fn *on_fit_start;
  CALX_NAMED calx_trainer_hook_fn *on_sanity_check_start;
  CALX_NAMED calx_trainer_hook_fn *on_sanity_check_end;
  CALX_NAMED calx_trainer_hook_fn *on_train_start;
  CALX_NAMED calx_trainer_hook_fn *on_train_epoch_start;
  CALX_NAMED calx_trainer_batch_hook_fn *on_train_batch_start;
  CALX_NAMED calx_trainer_hook_fn *on_before_zero_grad;
  CALX_NAMED calx_trainer_hook_fn *on_before_backward;
  CALX_NAMED calx_trainer_hook_fn *on_after_backward;
  CALX_NAMED calx_trainer_hook_fn *on_before_optimizer_step;
  CALX_NAMED calx_trainer_batch_hook_fn *on_train_batch_end;
  CALX_NAMED calx_trainer_hook_fn *on_train_epoch_end;
  CALX_NAMED calx_trainer_hook_fn *on_train_end;
  CALX_NAMED calx_trainer_hook_fn *on_validation_model_eval;
  CALX_NAMED calx_trainer_hook_fn *on_validation_start;
  CALX_NAMED calx_trainer_hook_fn *on_validation_epoch_start;
  CALX_NAMED calx_trainer_batch_hook_fn *on_validation_batch_start;
  CALX_NAMED calx_trainer_batch_hook_fn *on_validation_batch_end;
  CALX_NAMED calx_trainer_hook_fn *on_validation_epoch_end;
  CALX_NAMED calx_trainer_hook_fn *on_validation_end;
  CALX_NAMED calx_trainer_hook_fn *on_validation_model_train;
  CALX_NAMED calx_trainer_hook_fn *on_test_model_eval;
  CALX_NAMED calx_trainer_hook_fn *on_test_start;
  CALX_NAMED calx_trainer_hook_fn *on_test_epoch_start;
  CALX_NAMED calx_trainer_batch_hook_fn *on_test_batch_start;
  CALX_NAMED calx_trainer_batch_hook_fn *on_test_batch_end;
  CALX_NAMED calx_trainer_hook_fn *on_test_epoch_end;
  CALX_NAMED calx_trainer_hook_fn *on_test_end;
  CALX_NAMED calx_trainer_hook_fn *on_test_model_train;
  CALX_NAMED calx_trainer_hook_fn *on_exception;
  CALX_NAMED calx_trainer_hook_fn *on_fit_end;
  CALX_NAMED calx_trainer_hook_fn *teardown;
} calx_trainer_hooks;

/** A model and what it does in each step. Made by CALX_LIGHTNING_MODULE(…); it
 *  must outlive the runs of the trainer. */
typedef struct CALX_OPTIONS calx_lightning_module {
  CALX_NAMED size_t size;
  /* of `self`, which the trainer makes for each rank, of zeros */
  CALX_NAMED size_t self_size;
  CALX_NAMED void *user; /* calx_trainer_user(); shared by the ranks */
  /* makes the rank's model on its device and returns its root, which the
     trainer frees; wanted */
  CALX_NAMED calx_module *(*configure_model)(calx_trainer *trainer, void *self);
  /* calls calx_trainer_add_optimizer(); wanted by calx_trainer_fit() */
  CALX_NAMED calx_trainer_hook_fn *configure_optimizers;
  CALX_NAMED calx_trainer_step_fn *training_step; /* wanted by the same */
  CALX_NAMED calx_trainer_step_fn *validation_step;
  CALX_NAMED calx_trainer_step_fn *test_step;
  /* called once on each host, with `user`, before the ranks' setup */
  CALX_NAMED calx_prepare_data_fn *prepare_data;
  CALX_NAMED calx_trainer_hooks hooks;
} calx_lightning_module;

/** Fills a callback's new `self`. */
typedef void calx_callback_begin_fn(void *self, void *user);
/** Gives back what a callback's `self` has, before it is freed. */
typedef void calx_callback_end_fn(void *self);
/** A callback of the program's: hooks that know nothing of the model. */
typedef struct CALX_OPTIONS calx_callback_functions {
  CALX_NAMED size_t size;
  CALX_NAMED size_t self_size; /* of `self`, one for each rank, of zeros */
  CALX_NAMED void *user;       /* for `begin`; shared by the ranks */
  CALX_NAMED calx_callback_begin_fn *begin; /* before the first hook */
  CALX_NAMED calx_callback_end_fn *end;
  CALX_NAMED calx_trainer_hooks hooks;
} calx_callback_functions;
/** Never NULL. It is one trainer's at a time, and must outlive its runs. */
CALX_API calx_callback *calx_callback_new_with(
    const calx_callback_functions *options);
/** NULL is accepted. */
CALX_API void calx_callback_free(calx_callback *callback);
/** Its `self` on the first rank of this process; NULL before the first run. */
CALX_API void *calx_callback_self(const calx_callback *callback);

// ---- the trainer ------------------------------------------------------------

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
  /* the same as 1.x had it: 1 or 8 cores of a TPU */
  CALX_NAMED int tpu_cores;
  /* "32-true", "32", "64-true", "64", "bf16-true", "bf16-mixed", "bf16", "16"
     (is bf16-mixed) */
  CALX_NAMED const char *precision;
  CALX_NAMED int64_t max_epochs; /* 1000; -1: no limit */
  CALX_NAMED int64_t min_epochs;
  CALX_NAMED int64_t max_steps; /* of the optimiser; -1: no limit */
  CALX_NAMED int64_t min_steps;
  /* batches of each rank: below 1 a share of them, from 1 on a number; 0: none;
     all where it is not written */
  CALX_NAMED double limit_train_batches;
  CALX_NAMED double limit_val_batches;
  CALX_NAMED double limit_test_batches;
  /* n batches of each loop, one epoch; no sanity check, callbacks that stop are
     off */
  CALX_NAMED int64_t fast_dev_run;
  /* validation after so many batches; below 1: after that share of an epoch;
     not written: at the end of an epoch */
  CALX_NAMED double val_check_interval;
  /* 1; -1 (Lightning's None): val_check_interval counts the batches of all
     epochs */
  CALX_NAMED int64_t check_val_every_n_epoch;
  CALX_NAMED int64_t num_sanity_val_steps;        /* 2; -1: all */
  CALX_NAMED int64_t accumulate_grad_batches;     /* 1 */
  CALX_NAMED double gradient_clip_val;            /* not written, 0: none */
  CALX_NAMED const char *gradient_clip_algorithm; /* "norm"; "value" */
  CALX_NAMED bool
      no_distributed_sampler; /* ranks read the loaders as they are */
  CALX_NAMED bool no_progress_bar;
  CALX_NAMED bool detect_anomaly;
  CALX_NAMED uint64_t seed; /* of models, draws and the order of samples */
  CALX_NAMED calx_callback *const *callbacks; /* copied; the callbacks stay */
  CALX_NAMED size_t n_callbacks;
  /* copied; the loggers stay. The first rank of all writes to them */
  CALX_NAMED calx_logger *const *loggers;
  CALX_NAMED size_t n_loggers;
  CALX_NAMED int64_t log_every_n_steps; /* of the steps' values; 50 */
} calx_trainer_options;

/** A trainer. Never NULL: calx_trainer_error() says what is wrong with the
 *  options. @errors INVALID_ARGUMENT Lightning's texts */
CALX_API calx_trainer *calx_trainer_new_with(
    const calx_trainer_options *options);
/** NULL is accepted. */
CALX_API void calx_trainer_free(calx_trainer *trainer);
/** What is wrong with its options; NULL: nothing. The caller frees it. */
CALX_API calx_status *calx_trainer_error(const calx_trainer *trainer)
    CALX_MUST_USE;

/** The loaders of a run. They are descriptions: each rank reads its share by a
 *  loader of its own. */
typedef struct CALX_OPTIONS calx_trainer_data {
  CALX_NAMED size_t size;
  CALX_NAMED const calx_loader *train_dataloader;
  CALX_NAMED const calx_loader *val_dataloader;
  CALX_NAMED const calx_loader *test_dataloader;
  /* instead of val_dataloader or test_dataloader */
  CALX_NAMED const calx_loader *const *dataloaders;
  CALX_NAMED size_t n_dataloaders;
} calx_trainer_data;

/**
 * Trains. A second call goes on from the first one's weights, epoch and step.
 * @errors the trainer's own; INVALID_ARGUMENT no training_step, optimiser or
 *         loader; those of the model, of the data, of calx_launch()
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

// ---- state: of the rank, inside a run; of the first rank, after it ----------

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
/** The module's `user`. */
CALX_API void *calx_trainer_user(const calx_trainer *trainer);
/** The rank's model; NULL outside of a run on several ranks. */
CALX_API calx_module *calx_trainer_model(const calx_trainer *trainer);
/** In the order of calx_trainer_add_optimizer(); NULL: none. */
CALX_API calx_optimizer *calx_trainer_optimizer(const calx_trainer *trainer,
                                                size_t i);
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
/** In on_train_batch_start: leaves out the rest of this epoch.
 *  @source on_train_batch_start's -1 */
CALX_API void calx_trainer_skip_epoch(calx_trainer *trainer);
/** Gives a model the weights that the last run left.
 *  @errors FAILED_PRECONDITION no run yet; those of the state dict */
CALX_API calx_status *calx_trainer_load_weights(
    const calx_trainer *trainer, calx_module *model) CALX_MUST_USE;

// ---- in hooks and steps -----------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_trainer_optimizer_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_lr_scheduler *lr_scheduler;
  CALX_NAMED const char *interval; /* "epoch", "step" */
  CALX_NAMED int64_t frequency;    /* 0 = 1 */
  CALX_NAMED const char *monitor;  /* of ReduceLROnPlateau; copied */
} calx_trainer_optimizer_options;
/** In configure_optimizers: the trainer takes the optimiser and its schedule.
 *  @errors through the scope: those of both */
CALX_API void calx_trainer_add_optimizer_with(
    calx_trainer *trainer, calx_optimizer *optimizer,
    const calx_trainer_optimizer_options *options);

/** What is shown of a step's values, and how they become one of an epoch. */
typedef struct CALX_OPTIONS calx_trainer_log_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool prog_bar;
  CALX_NAMED bool no_logger;
  /* not written: as the hook has it. 1: yes, 0: no */
  CALX_NAMED int on_step;
  CALX_NAMED int on_epoch;
  CALX_NAMED const char *reduce_fx; /* "mean", "sum", "min", "max" */
  CALX_NAMED bool sync_dist;        /* over the ranks too */
  CALX_NAMED int64_t batch_size;    /* weight of a mean; 0 = the batch's */
} calx_trainer_log_options;
/**
 * Logs a value of this step or epoch. It is read when it is there: a step never
 * waits for one.
 * @shape value one element
 * @errors through the scope: INVALID_ARGUMENT more elements, another reduction,
 *         both levels off, a hook in which nothing can be logged, a name that
 *         was logged with other options in this hook
 * @source LightningModule.log
 */
CALX_API void calx_trainer_log_with(calx_trainer *trainer, const char *name,
                                    calx_tensor *value,
                                    const calx_trainer_log_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_trainer_options_                                   \
  .max_epochs = CALX_UNWRITTEN_INT_, .max_steps = CALX_UNWRITTEN_INT_,         \
  .limit_train_batches = CALX_UNWRITTEN_,                                      \
  .limit_val_batches = CALX_UNWRITTEN_, .limit_test_batches = CALX_UNWRITTEN_, \
  .val_check_interval = CALX_UNWRITTEN_,                                       \
  .num_sanity_val_steps = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_trainer_options, calx_written_int_(&o->max_epochs);
              calx_written_int_(&o->max_steps);
              calx_written_(&o->limit_train_batches);
              calx_written_(&o->limit_val_batches);
              calx_written_(&o->limit_test_batches);
              calx_written_(&o->val_check_interval);
              calx_written_int_(&o->num_sanity_val_steps);)
#define CALX_UNWRITTEN_calx_trainer_log_options_ \
  .on_step = CALX_UNWRITTEN_INT_, .on_epoch = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_trainer_log_options, calx_written_dim_(&o->on_step);
              calx_written_dim_(&o->on_epoch);)
#endif
#ifdef __cplusplus
}
#else
#ifdef CALX_NO_SITES
#define CALX_TRAINER_SITE_
#else
#define CALX_TRAINER_SITE_ calx_at_(CALX_HERE),
#endif
#define CALX_LIGHTNING_MODULE(...)                     \
  {                                                    \
    .size = sizeof(calx_lightning_module), __VA_ARGS__ \
  }
#define CALX_CALLBACK_NEW_(...) \
  calx_callback_new_with(&(calx_callback_functions){ __VA_ARGS__ })
#define calx_callback_new(...) \
  CALX_CALLBACK_NEW_(.size = sizeof(calx_callback_functions), __VA_ARGS__)
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
#define CALX_TRAINER_ADD_(trainer, optimizer, ...)     \
  (CALX_TRAINER_SITE_ calx_trainer_add_optimizer_with( \
      trainer, optimizer, &(calx_trainer_optimizer_options){ __VA_ARGS__ }))
#define calx_trainer_add_optimizer(trainer, ...) \
  CALX_TRAINER_ADD_(trainer, __VA_ARGS__,        \
                    .size = sizeof(calx_trainer_optimizer_options))
#define CALX_TRAINER_LOG_(trainer, name, value, ...) \
  (CALX_TRAINER_SITE_ calx_trainer_log_with(         \
      trainer, name, value,                          \
      CALX_WRITE_(calx_trainer_log_options, __VA_ARGS__)))
#define calx_trainer_log(trainer, name, ...)    \
  CALX_TRAINER_LOG_(trainer, name, __VA_ARGS__, \
                    .size = sizeof(calx_trainer_log_options))
#endif
#endif
