/**
 * calx/callbacks_training.h: callbacks of the trainer that change how it
 * trains, or watch it, with Lightning's names. As those of calx/callbacks.h.
 */
#ifndef CALX_CALLBACKS_TRAINING_H
#define CALX_CALLBACKS_TRAINING_H

#include "calx/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- time -------------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_timer_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *duration; /* "DD:HH:MM:SS"; NULL: no limit */
  CALX_NAMED const char *interval; /* of looking: "step"; "epoch" */
  CALX_NAMED bool not_verbose;     /* does not say that the time is over */
} calx_timer_options;
/**
 * Measures training, and ends it when its time is over; what a checkpoint's run
 * has used counts. All ranks stop at the same batch, by the first one's clock:
 * at most a second late where there are several.
 * @errors INVALID_ARGUMENT another form of the duration, another interval
 * @source lightning.pytorch.callbacks.Timer
 */
CALX_API calx_callback *calx_timer_with(const calx_timer_options *options);
/** Seconds that a stage took, or has taken so far; with those of the run that a
 *  checkpoint was saved in, of training. NaN: no such stage.
 *  @param stage  "train", "validate", "test"; NULL = "train" */
CALX_API double calx_timer_time_elapsed(const calx_callback *cb,
                                        const char *stage);
/** Seconds of the duration that are left; infinite without one. */
CALX_API double calx_timer_time_remaining(const calx_callback *cb);

// ---- what is logged ---------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_learning_rate_monitor_options {
  CALX_NAMED size_t size;
  /* "step", "epoch"; NULL: each schedule at its own interval, and optimisers
     without one at both */
  CALX_NAMED const char *logging_interval;
  CALX_NAMED bool log_momentum; /* or the first of the betas */
  CALX_NAMED bool log_weight_decay;
} calx_learning_rate_monitor_options;
/**
 * Writes learning rates to the loggers and among the callbacks' metrics:
 * "lr-Adam"; "lr-Adam-1" is a second Adam; "lr-Adam/pg1" the first of several
 * groups; "lr-Adam-momentum", "lr-Adam-weight_decay".
 * @errors INVALID_ARGUMENT another interval; in the run: no logger
 * @source lightning.pytorch.callbacks.LearningRateMonitor
 */
CALX_API calx_callback *calx_learning_rate_monitor_with(
    const calx_learning_rate_monitor_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_device_stats_monitor_options {
  CALX_NAMED size_t size;
  /* of the host: 1: yes, 0: no; not written: where the device is a CPU */
  CALX_NAMED int cpu_stats;
} calx_device_stats_monitor_options;
/**
 * Writes to the loggers, where a step is logged, what the first rank's device
 * says of its memory: "DeviceStatsMonitor.on_train_batch_end/bytes_in_use",
 * "peak_bytes_in_use", "bytes_limit"; the same of on_train_batch_start and of
 * the batches of validation and test. Of the host: "cpu_percent" since the row
 * before, "cpu_vm_percent" of its memory, "cpu_swap_percent".
 * @errors in the run: INVALID_ARGUMENT no logger
 * @source lightning.pytorch.callbacks.DeviceStatsMonitor
 */
CALX_API calx_callback *calx_device_stats_monitor_with(
    const calx_device_stats_monitor_options *options);

// ---- how training goes on ---------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_gradient_accumulation_scheduler_options {
  CALX_NAMED size_t size;
  /* from epoch epochs.values[i] on gradients are summed over factors.values[i]
     batches; before the first of them over one */
  CALX_NAMED calx_dims epochs;
  CALX_NAMED calx_dims factors;
} calx_gradient_accumulation_scheduler_options;
/**
 * Changes over how many batches gradients are summed: .epochs = CALX_DIMS(0,
 * 4), .factors = CALX_DIMS(1, 8) is Lightning's {0: 1, 4: 8}.
 * @errors INVALID_ARGUMENT no epochs, another number of factors, a negative
 *         epoch, a factor below 1; in the run: manual optimisation, a trainer
 *         with accumulate_grad_batches
 * @source lightning.pytorch.callbacks.GradientAccumulationScheduler
 */
CALX_API calx_callback *calx_gradient_accumulation_scheduler_with(
    const calx_gradient_accumulation_scheduler_options *options);

// ---- fine-tuning ------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_finetuning_freeze_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool no_train_bn; /* freezes BatchNorm layers too */
} calx_finetuning_freeze_options;
/**
 * Freezes a module and all below it; BatchNorm layers train on, or stop and
 * keep their running statistics. Before the optimiser is made: in
 * on_post_move_to_device.
 * @errors through the scope: INVALID_ARGUMENT no module
 * @source lightning.pytorch.callbacks.BaseFinetuning.freeze
 */
CALX_API void calx_finetuning_freeze_with(
    calx_module *module, const calx_finetuning_freeze_options *options);
/** Makes a module and all below it trainable.
 *  @errors as calx_finetuning_freeze @source BaseFinetuning.make_trainable */
CALX_API void calx_finetuning_make_trainable(calx_module *module);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_finetuning_unfreeze_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr; /* that of the first group / initial_denom_lr */
  CALX_NAMED double initial_denom_lr; /* 0 = 10 */
  CALX_NAMED bool no_train_bn;        /* BatchNorm layers get no updates */
} calx_finetuning_unfreeze_options;
/**
 * Makes a module trainable and its parameters a new group of the optimiser; one
 * that it has already is left out, which a line tells.
 * @return the group's number; SIZE_MAX: none was added
 * @errors through the scope: INVALID_ARGUMENT no module, a rate out of range
 * @source BaseFinetuning.unfreeze_and_add_param_group
 */
CALX_API size_t calx_finetuning_unfreeze_and_add_param_group_with(
    calx_module *module, calx_optimizer *optimizer,
    const calx_finetuning_unfreeze_options *options);

/** A factor of the rate at an epoch, which counts from 1. */
typedef double calx_finetuning_fn(void *user, int64_t epoch);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_backbone_finetuning_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *backbone; /* its path in the model; "backbone" */
  CALX_NAMED int64_t unfreeze_backbone_at_epoch; /* 10 */
  /* by which the rate grows each epoch from then on: 2, or what the function
     says */
  CALX_NAMED double multiplier;
  CALX_NAMED calx_finetuning_fn *lambda_func;
  CALX_NAMED void *user; /* of lambda_func */
  /* the first rate; 0: that of the first group * backbone_initial_ratio_lr */
  CALX_NAMED double backbone_initial_lr;
  CALX_NAMED double backbone_initial_ratio_lr; /* 0 = 0.1 */
  CALX_NAMED bool no_align;    /* the rate may exceed that of the first group */
  CALX_NAMED bool no_train_bn; /* BatchNorm layers get no updates */
  CALX_NAMED bool verbose;
} calx_backbone_finetuning_options;
/**
 * Freezes a part of the model, but for its BatchNorm layers, until an epoch,
 * from which on it trains with a rate of its own: as the last group of the
 * optimiser.
 * @errors INVALID_ARGUMENT a negative number; in the run: no such module
 * @source lightning.pytorch.callbacks.BackboneFinetuning
 */
CALX_API calx_callback *calx_backbone_finetuning_with(
    const calx_backbone_finetuning_options *options);

// ---- averages of weights ----------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_ema_weight_averaging_options {
  CALX_NAMED size_t size;
  CALX_NAMED double decay;    /* in [0, 1]; 0.999 */
  CALX_NAMED bool no_buffers; /* buffers are copied, not averaged */
  CALX_NAMED int64_t update_every_n_steps; /* of the optimiser; 1; 0: none */
  CALX_NAMED int64_t update_starting_at_step;
  /* also at the end of each epoch from this one on; not written: of none */
  CALX_NAMED int64_t update_starting_at_epoch;
} calx_ema_weight_averaging_options;
/**
 * Keeps an exponential average of the weights, decay * average + (1 - decay) *
 * weights; the first value is copied. Validation sees the average, and so does
 * a checkpoint, which has the weights beside it; when training ends it becomes
 * the model's weights. An update is a part of a step's program.
 * @errors INVALID_ARGUMENT a decay out of range, a negative number
 * @source lightning.pytorch.callbacks.EMAWeightAveraging
 */
CALX_API calx_callback *calx_ema_weight_averaging_with(
    const calx_ema_weight_averaging_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_stochastic_weight_averaging_options {
  CALX_NAMED size_t size;
  CALX_NAMED double swa_lrs; /* the rate of all groups; wanted */
  /* below 1: after that share of max_epochs; from 1 on: at that epoch, counted
     from 1; 0.8 */
  CALX_NAMED double swa_epoch_start;
  CALX_NAMED int64_t annealing_epochs; /* from the rate that is there; 10 */
  CALX_NAMED const char *annealing_strategy; /* "cos"; "linear" */
} calx_stochastic_weight_averaging_options;
/**
 * Stochastic weight averaging: from an epoch on the learning rate goes to
 * swa_lrs and stays, and when the last epoch is over the model gets the mean of
 * the weights that these epochs began with. BatchNorm layers get the statistics
 * of one more pass over the data, which calls training_step without gradients.
 * @errors INVALID_ARGUMENT no rate, an option out of range; in the run: several
 *         optimisers, a share of epochs without end  UNIMPLEMENTED BatchNorm
 *         and manual optimisation
 * @source lightning.pytorch.callbacks.StochasticWeightAveraging; P. Izmailov et
 *         al. (2018)
 */
CALX_API calx_callback *calx_stochastic_weight_averaging_with(
    const calx_stochastic_weight_averaging_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_backbone_finetuning_options_ \
  .unfreeze_backbone_at_epoch = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_backbone_finetuning_options,
              calx_written_int_(&o->unfreeze_backbone_at_epoch);)
#define CALX_UNWRITTEN_calx_stochastic_weight_averaging_options_ \
  .swa_epoch_start = CALX_UNWRITTEN_, .annealing_epochs = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_stochastic_weight_averaging_options,
              calx_written_(&o->swa_epoch_start);
              calx_written_int_(&o->annealing_epochs);)
#define CALX_UNWRITTEN_calx_ema_weight_averaging_options_                \
  .decay = CALX_UNWRITTEN_, .update_every_n_steps = CALX_UNWRITTEN_INT_, \
  .update_starting_at_epoch = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_ema_weight_averaging_options, calx_written_(&o->decay);
              calx_written_int_(&o->update_every_n_steps);
              calx_written_int_(&o->update_starting_at_epoch);)
#define CALX_UNWRITTEN_calx_device_stats_monitor_options_ \
  .cpu_stats = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_device_stats_monitor_options,
              calx_written_dim_(&o->cpu_stats);)
#endif
#ifdef __cplusplus
}
#else
#define CALX_CALLBACK_(fn, O, ...) (CALX_TRAINER_SITE_ fn(&(O){ __VA_ARGS__ }))
#define CALX_BACKBONE_FINETUNING_(...)               \
  (CALX_TRAINER_SITE_ calx_backbone_finetuning_with( \
      CALX_WRITE_(calx_backbone_finetuning_options, __VA_ARGS__)))
#define calx_backbone_finetuning(...)                                         \
  CALX_BACKBONE_FINETUNING_(.size = sizeof(calx_backbone_finetuning_options), \
                            __VA_ARGS__)
#define CALX_FINETUNING_FREEZE_(module, ...)       \
  (CALX_TRAINER_SITE_ calx_finetuning_freeze_with( \
      module, &(calx_finetuning_freeze_options){ __VA_ARGS__ }))
#define calx_finetuning_freeze(...)    \
  CALX_FINETUNING_FREEZE_(__VA_ARGS__, \
                          .size = sizeof(calx_finetuning_freeze_options))
#define CALX_FINETUNING_UNFREEZE_(module, optimizer, ...)                \
  (CALX_TRAINER_SITE_ calx_finetuning_unfreeze_and_add_param_group_with( \
      module, optimizer, &(calx_finetuning_unfreeze_options){ __VA_ARGS__ }))
#define calx_finetuning_unfreeze_and_add_param_group(module, ...) \
  CALX_FINETUNING_UNFREEZE_(module, __VA_ARGS__,                  \
                            .size = sizeof(calx_finetuning_unfreeze_options))
#define CALX_DEVICE_STATS_MONITOR_(...)               \
  (CALX_TRAINER_SITE_ calx_device_stats_monitor_with( \
      CALX_WRITE_(calx_device_stats_monitor_options, __VA_ARGS__)))
#define calx_device_stats_monitor(...)                                      \
  CALX_DEVICE_STATS_MONITOR_(.size =                                        \
                                 sizeof(calx_device_stats_monitor_options), \
                             __VA_ARGS__)
#define CALX_EMA_WEIGHT_AVERAGING_(...)               \
  (CALX_TRAINER_SITE_ calx_ema_weight_averaging_with( \
      CALX_WRITE_(calx_ema_weight_averaging_options, __VA_ARGS__)))
#define calx_ema_weight_averaging(...)                                      \
  CALX_EMA_WEIGHT_AVERAGING_(.size =                                        \
                                 sizeof(calx_ema_weight_averaging_options), \
                             __VA_ARGS__)
#define CALX_STOCHASTIC_WEIGHT_AVERAGING_(...)               \
  (CALX_TRAINER_SITE_ calx_stochastic_weight_averaging_with( \
      CALX_WRITE_(calx_stochastic_weight_averaging_options, __VA_ARGS__)))
#define calx_stochastic_weight_averaging(...)                       \
  CALX_STOCHASTIC_WEIGHT_AVERAGING_(                                \
          .size = sizeof(calx_stochastic_weight_averaging_options), \
          __VA_ARGS__)
#define CALX_GRADIENT_ACCUMULATION_SCHEDULER_(...)          \
  CALX_CALLBACK_(calx_gradient_accumulation_scheduler_with, \
                 calx_gradient_accumulation_scheduler_options, __VA_ARGS__)
#define calx_gradient_accumulation_scheduler(...)                       \
  CALX_GRADIENT_ACCUMULATION_SCHEDULER_(                                \
          .size = sizeof(calx_gradient_accumulation_scheduler_options), \
          __VA_ARGS__)
#define CALX_LEARNING_RATE_MONITOR_(...)          \
  CALX_CALLBACK_(calx_learning_rate_monitor_with, \
                 calx_learning_rate_monitor_options, __VA_ARGS__)
#define calx_learning_rate_monitor(...)                                       \
  CALX_LEARNING_RATE_MONITOR_(.size =                                         \
                                  sizeof(calx_learning_rate_monitor_options), \
                              __VA_ARGS__)
#define CALX_TIMER_(...) \
  CALX_CALLBACK_(calx_timer_with, calx_timer_options, __VA_ARGS__)
#define calx_timer(...) \
  CALX_TIMER_(.size = sizeof(calx_timer_options), __VA_ARGS__)
#endif
#endif
