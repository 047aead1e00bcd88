/**
 * calx/trainer_step.h: what steps and hooks of a module or a callback call.
 *
 * @errors of all: through the scope
 * @threads the rank's own
 */
#ifndef CALX_TRAINER_STEP_H
#define CALX_TRAINER_STEP_H

#include "calx/lightning_module.h"
#include "calx/loggers.h"
#include "calx/lr_scheduler.h"
#include "calx/metrics.h"
#include "calx/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- optimisers -------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_trainer_optimizer_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_lr_scheduler *lr_scheduler;
  CALX_NAMED const char *interval; /* "epoch", "step" */
  CALX_NAMED int64_t frequency;    /* 0 = 1 */
  CALX_NAMED const char *monitor;  /* of ReduceLROnPlateau; copied */
  CALX_NAMED bool not_strict;      /* a missing monitor is no error */
} calx_trainer_optimizer_options;
/** In configure_optimizers: the trainer takes the optimiser and its schedule,
 *  and steps both; with manual optimisation the training step does.
 *  @errors those of both */
CALX_API void calx_trainer_add_optimizer_with(
    calx_trainer *trainer, calx_optimizer *optimizer,
    const calx_trainer_optimizer_options *options);

/** In the order of calx_trainer_add_optimizer(); NULL: none. */
CALX_API calx_optimizer *calx_trainer_optimizer(const calx_trainer *trainer,
                                                size_t i);
/** The schedule of optimiser i; NULL: none. */
CALX_API calx_lr_scheduler *calx_trainer_lr_scheduler(
    const calx_trainer *trainer, size_t i);

// ---- manual optimisation ----------------------------------------------------

/** The gradients of a loss, with the hooks of a backward pass.
 *  @shape one element
 *  @errors FAILED_PRECONDITION the module has no manual_optimization
 *  @source LightningModule.manual_backward */
CALX_API void calx_trainer_manual_backward(calx_trainer *trainer,
                                           calx_tensor *loss);
/** Optimiser i steps with the mean of the gradients over the ranks, and counts
 *  as a step.
 *  @errors FAILED_PRECONDITION as above  INVALID_ARGUMENT no such optimiser
 *  @source LightningOptimizer.step */
CALX_API void calx_trainer_optimizer_step(calx_trainer *trainer, size_t i);
/** Until calx_trainer_untoggle_optimizer() the parameters of all other
 *  optimisers collect no gradients.
 *  @errors INVALID_ARGUMENT no such optimiser
 *  @source LightningModule.toggle_optimizer */
CALX_API void calx_trainer_toggle_optimizer(calx_trainer *trainer, size_t i);
/** @source LightningModule.untoggle_optimizer */
CALX_API void calx_trainer_untoggle_optimizer(calx_trainer *trainer, size_t i);
/** Clips the gradients of optimiser i. @param value  0 or less: nothing
 *  @param algorithm  "norm", "value"; NULL = "norm"
 *  @errors INVALID_ARGUMENT no such optimiser, another algorithm
 *  @source LightningModule.clip_gradients */
CALX_API void calx_trainer_clip_gradients(calx_trainer *trainer, size_t i,
                                          double value, const char *algorithm);

// ---- hyperparameters --------------------------------------------------------

/**
 * What the run was started with: the first rank gives it to the loggers when
 * training starts, and checkpoints have it as `hyper_parameters`. In
 * configure_model or a setup; a name that is given again replaces the value.
 * @param values  copied
 * @errors INVALID_ARGUMENT a name that is NULL
 * @source LightningModule.save_hyperparameters
 */
CALX_API void calx_trainer_save_hyperparameters(
    calx_trainer *trainer, const calx_hyperparameter *values, size_t count);

// ---- logged values ----------------------------------------------------------

/** What is shown of a step's values, and how they become one of an epoch. */
typedef struct CALX_OPTIONS calx_trainer_log_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool prog_bar;
  CALX_NAMED bool no_logger;
  /* not written: as the hook has it. 1: yes, 0: no */
  CALX_NAMED int on_step;
  CALX_NAMED int on_epoch;
  CALX_NAMED const char *reduce_fx;  /* "mean", "sum", "min", "max" */
  CALX_NAMED bool sync_dist;         /* over the ranks too */
  CALX_NAMED int64_t batch_size;     /* weight of a mean; 0 = the batch's */
  CALX_NAMED bool no_dataloader_idx; /* the name without the loader's number */
} calx_trainer_log_options;
/**
 * Logs a value of this step or epoch. It is read when it is there: a step never
 * waits for one.
 * @shape value one element
 * @errors INVALID_ARGUMENT more elements, another reduction, both levels off, a
 *         hook in which nothing can be logged, a name that was logged with
 *         other options in this hook
 * @source LightningModule.log
 */
CALX_API void calx_trainer_log_with(calx_trainer *trainer, const char *name,
                                    calx_tensor *value,
                                    const calx_trainer_log_options *options);
/**
 * The same of a number of the host's, for hooks of an epoch and callbacks.
 * @errors as calx_trainer_log
 */
CALX_API void calx_trainer_log_number_with(
    calx_trainer *trainer, const char *name, double value,
    const calx_trainer_log_options *options);
/**
 * In configure_model or a setup: the trainer takes a metric of this rank, which
 * it frees after the run.
 * @return the metric, for the steps; NULL: it could not be taken, and is freed
 * @errors that of the metric; FAILED_PRECONDITION outside of a run
 */
CALX_API calx_metric *calx_trainer_add_metric(calx_trainer *trainer,
                                              calx_metric *metric);
/**
 * Logs a metric that this step has updated: at the end of the epoch its value
 * over all updates and ranks, after which it is reset. On steps, where on_step
 * is 1, `value` of calx_metric_forward().
 * @param metric  must live until the end of the run, as one that
 *        calx_trainer_add_metric() took
 * @param value  of this batch; NULL where on_step is not 1
 * @shape value one element
 * @errors as calx_trainer_log; those of the metric
 * @source LightningModule.log of a torchmetrics.Metric
 */
CALX_API void calx_trainer_log_metric_with(
    calx_trainer *trainer, const char *name, calx_metric *metric,
    calx_tensor *value, const calx_trainer_log_options *options);

#ifndef __cplusplus
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
#define calx_trainer_manual_backward(trainer, loss) \
  (CALX_TRAINER_SITE_ calx_trainer_manual_backward(trainer, loss))
#define calx_trainer_optimizer_step(trainer, i) \
  (CALX_TRAINER_SITE_ calx_trainer_optimizer_step(trainer, i))
#endif
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
#define CALX_TRAINER_LOG_NUMBER_(trainer, name, value, ...) \
  (CALX_TRAINER_SITE_ calx_trainer_log_number_with(         \
      trainer, name, value,                                 \
      CALX_WRITE_(calx_trainer_log_options, __VA_ARGS__)))
#define calx_trainer_log_number(trainer, name, ...)    \
  CALX_TRAINER_LOG_NUMBER_(trainer, name, __VA_ARGS__, \
                           .size = sizeof(calx_trainer_log_options))
#define CALX_TRAINER_LOG_METRIC_(trainer, name, metric, value, ...) \
  (CALX_TRAINER_SITE_ calx_trainer_log_metric_with(                 \
      trainer, name, metric, value,                                 \
      CALX_WRITE_(calx_trainer_log_options, __VA_ARGS__)))
#define calx_trainer_log_metric(trainer, name, metric, ...)    \
  CALX_TRAINER_LOG_METRIC_(trainer, name, metric, __VA_ARGS__, \
                           .size = sizeof(calx_trainer_log_options))
#endif
#endif
