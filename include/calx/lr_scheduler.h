/**
 * calx/lr_scheduler.h: learning-rate schedules, with PyTorch's rules and names:
 * StepLR is calx_step_lr.
 *
 * A schedule sets the rate of each parameter group when it is made and at each
 * step, which follows calx_optimizer_step() once an epoch, or once a batch. A
 * rate is no part of a compiled program. Schedules of one optimiser multiply,
 * as PyTorch's chainable forms do. The optimiser must outlive its schedules; a
 * group that is added after them keeps its own rate. Each function gives a
 * schedule, never NULL: see calx_lr_scheduler_error().
 *
 * @errors   INVALID_ARGUMENT  an optimiser that failed, an option out of range
 * @threads  thread-compatible
 */
#ifndef CALX_LR_SCHEDULER_H
#define CALX_LR_SCHEDULER_H

#include "calx/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A schedule and where it is. */
typedef struct calx_lr_scheduler calx_lr_scheduler;

/** NULL is accepted. A SequentialLR or ChainedScheduler frees its own. */
CALX_API void calx_lr_scheduler_free(calx_lr_scheduler *scheduler);
/** What is wrong with its options; NULL: nothing. The caller frees it. */
CALX_API calx_status *calx_lr_scheduler_error(
    const calx_lr_scheduler *scheduler) CALX_MUST_USE;
/** Sets the rates of the next epoch. @errors through the scope: a failed
 *  schedule @source LRScheduler.step */
CALX_API void calx_lr_scheduler_step(calx_lr_scheduler *scheduler);
/** CosineAnnealingWarmRestarts: those of this epoch, of which a part may be
 * over.
 *  @errors through the scope: epoch negative, another schedule */
CALX_API void calx_lr_scheduler_step_at(calx_lr_scheduler *scheduler,
                                        double epoch);
/** ReduceLROnPlateau: with the epoch's metric, a loss for example.
 *  @errors through the scope: another schedule */
CALX_API void calx_lr_scheduler_step_metric(calx_lr_scheduler *scheduler,
                                            double metric);
/** The rate of a group that the schedule set last; NaN: no such group.
 *  @source get_last_lr */
CALX_API double calx_lr_scheduler_last_lr(const calx_lr_scheduler *scheduler,
                                          size_t group);
/** Epochs so far. */
CALX_API int64_t
calx_lr_scheduler_last_epoch(const calx_lr_scheduler *scheduler);

// ---- by a function ----------------------------------------------------------

/** A factor for a group at an epoch. */
typedef double calx_lr_fn(void *user, size_t group, int64_t epoch);
/** The first rate times the function's factor. A state dict has no function.
 *  @source torch.optim.lr_scheduler.LambdaLR */
CALX_API calx_lr_scheduler *calx_lambda_lr(calx_optimizer *opt, calx_lr_fn *fn,
                                           void *user);
/** The rate before times the function's factor.
 *  @source torch.optim.lr_scheduler.MultiplicativeLR */
CALX_API calx_lr_scheduler *calx_multiplicative_lr(calx_optimizer *opt,
                                                   calx_lr_fn *fn, void *user);

// ---- by the epoch -----------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_step_lr_options {
  CALX_NAMED size_t size;
  CALX_NAMED double gamma; /* 0 = 0.1, CALX_ZERO = 0 */
} calx_step_lr_options;
/** gamma times as much every step_size epochs.
 *  @source torch.optim.lr_scheduler.StepLR */
CALX_API calx_lr_scheduler *calx_step_lr_with(
    calx_optimizer *opt, int64_t step_size,
    const calx_step_lr_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_multi_step_lr_options {
  CALX_NAMED size_t size;
  CALX_NAMED double gamma; /* 0 = 0.1, CALX_ZERO = 0 */
} calx_multi_step_lr_options;
/** gamma times as much at each of these epochs; one that stands twice counts
 *  twice. @source torch.optim.lr_scheduler.MultiStepLR */
CALX_API calx_lr_scheduler *calx_multi_step_lr_with(
    calx_optimizer *opt, calx_dims milestones,
    const calx_multi_step_lr_options *options);

/** gamma times as much every epoch.
 *  @source torch.optim.lr_scheduler.ExponentialLR */
CALX_API calx_lr_scheduler *calx_exponential_lr(calx_optimizer *opt,
                                                double gamma);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_constant_lr_options {
  CALX_NAMED size_t size;
  CALX_NAMED double factor;       /* in (0, 1]; 0 = 1/3 */
  CALX_NAMED int64_t total_iters; /* 0 = 5 */
} calx_constant_lr_options;
/** factor times as much until epoch total_iters.
 *  @source torch.optim.lr_scheduler.ConstantLR */
CALX_API calx_lr_scheduler *calx_constant_lr_with(
    calx_optimizer *opt, const calx_constant_lr_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_linear_lr_options {
  CALX_NAMED size_t size;
  CALX_NAMED double start_factor; /* in (0, 1]; 0 = 1/3 */
  CALX_NAMED double end_factor;   /* in [0, 1]; 0 = 1, CALX_ZERO = 0 */
  CALX_NAMED int64_t total_iters; /* 0 = 5 */
} calx_linear_lr_options;
/** A factor that goes straight from start_factor to end_factor, at epoch
 *  total_iters: a warm-up. @source torch.optim.lr_scheduler.LinearLR */
CALX_API calx_lr_scheduler *calx_linear_lr_with(
    calx_optimizer *opt, const calx_linear_lr_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_polynomial_lr_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t total_iters; /* 0 = 5 */
  CALX_NAMED double power;        /* 0 = 1, CALX_ZERO = 0 */
} calx_polynomial_lr_options;
/** The factor (1 - epoch / total_iters)^power, 0 from then on.
 *  @source torch.optim.lr_scheduler.PolynomialLR */
CALX_API calx_lr_scheduler *calx_polynomial_lr_with(
    calx_optimizer *opt, const calx_polynomial_lr_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_cosine_annealing_lr_options {
  CALX_NAMED size_t size;
  CALX_NAMED double eta_min; /* the least rate */
} calx_cosine_annealing_lr_options;
/** Half a cosine from the first rate to eta_min in t_max epochs, and back.
 *  @source torch.optim.lr_scheduler.CosineAnnealingLR */
CALX_API calx_lr_scheduler *calx_cosine_annealing_lr_with(
    calx_optimizer *opt, int64_t t_max,
    const calx_cosine_annealing_lr_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_cosine_annealing_warm_restarts_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t t_mult; /* each period is so many times longer; 0 = 1 */
  CALX_NAMED double eta_min; /* the least rate */
} calx_cosine_annealing_warm_restarts_options;
/** Half a cosine from the first rate to eta_min, again and again; the first in
 *  t_0 epochs. @source torch.optim.lr_scheduler.CosineAnnealingWarmRestarts */
CALX_API calx_lr_scheduler *calx_cosine_annealing_warm_restarts_with(
    calx_optimizer *opt, int64_t t_0,
    const calx_cosine_annealing_warm_restarts_options *options);

// ---- cycles -----------------------------------------------------------------

/** How the cycles of a CyclicLR grow smaller. */
typedef enum calx_cyclic_mode {
  CALX_CYCLIC_TRIANGULAR = 0, /* they do not */
  CALX_CYCLIC_TRIANGULAR2,    /* each is half as high */
  CALX_CYCLIC_EXP_RANGE       /* by gamma every step */
} calx_cyclic_mode;
/** Zero means default. */
typedef struct CALX_OPTIONS calx_cyclic_lr_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t step_size_up;   /* steps that it rises; 0 = 2000 */
  CALX_NAMED int64_t step_size_down; /* and falls; 0 = as many */
  CALX_NAMED calx_cyclic_mode mode;
  CALX_NAMED double gamma; /* of EXP_RANGE; 0 = 1, CALX_ZERO = 0 */
  /* else momentum, or betas[0], goes the other way */
  CALX_NAMED bool no_cycle_momentum;
  CALX_NAMED double base_momentum; /* 0 = 0.8, CALX_ZERO = 0 */
  CALX_NAMED double max_momentum;  /* 0 = 0.9, CALX_ZERO = 0 */
} calx_cyclic_lr_options;
/** Between base_lr and max_lr, up and down. @errors also an optimiser without
 *  momentum or betas @source torch.optim.lr_scheduler.CyclicLR */
CALX_API calx_lr_scheduler *calx_cyclic_lr_with(
    calx_optimizer *opt, double base_lr, double max_lr,
    const calx_cyclic_lr_options *options);

/** How a rate goes to another one. */
typedef enum calx_anneal_strategy {
  CALX_ANNEAL_COS = 0, /* by half a cosine */
  CALX_ANNEAL_LINEAR
} calx_anneal_strategy;
/** Zero means default. */
typedef struct CALX_OPTIONS calx_one_cycle_lr_options {
  CALX_NAMED size_t size;
  CALX_NAMED double pct_start; /* the rising part; 0 = 0.3, CALX_ZERO = 0 */
  CALX_NAMED calx_anneal_strategy anneal_strategy;
  /* else momentum, or betas[0], goes the other way */
  CALX_NAMED bool no_cycle_momentum;
  CALX_NAMED double base_momentum;    /* 0 = 0.85, CALX_ZERO = 0 */
  CALX_NAMED double max_momentum;     /* 0 = 0.95, CALX_ZERO = 0 */
  CALX_NAMED double div_factor;       /* max_lr / the first rate; 0 = 25 */
  CALX_NAMED double final_div_factor; /* the first / the last rate; 0 = 1e4 */
  CALX_NAMED bool three_phase;        /* falls as fast as it rose */
} calx_one_cycle_lr_options;
/** Up to max_lr and down to nearly 0 in total_steps steps.
 *  @errors also an optimiser without momentum or betas; steps past the last,
 *          through the scope @source torch.optim.lr_scheduler.OneCycleLR */
CALX_API calx_lr_scheduler *calx_one_cycle_lr_with(
    calx_optimizer *opt, double max_lr, int64_t total_steps,
    const calx_one_cycle_lr_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_swa_lr_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t anneal_epochs; /* 0 = 10, CALX_ZERO_INT = 0 */
  CALX_NAMED calx_anneal_strategy anneal_strategy;
} calx_swa_lr_options;
/** From the rate that is there to swa_lr, which stays: for averaged weights.
 *  @source torch.optim.swa_utils.SWALR */
CALX_API calx_lr_scheduler *calx_swa_lr_with(
    calx_optimizer *opt, double swa_lr, const calx_swa_lr_options *options);

// ---- by a metric ------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_reduce_lr_on_plateau_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool maximize;    /* a greater metric is better */
  CALX_NAMED double factor;    /* below 1; 0 = 0.1, CALX_ZERO = 0 */
  CALX_NAMED int64_t patience; /* epochs; 0 = 10, CALX_ZERO_INT = 0 */
  CALX_NAMED double threshold; /* of being better; 0 = 1e-4, CALX_ZERO = 0 */
  CALX_NAMED bool absolute;    /* the threshold is a difference, no part */
  CALX_NAMED int64_t cooldown; /* epochs that do not count afterwards */
  CALX_NAMED double min_lr;    /* the least rate */
  CALX_NAMED double eps;       /* the least change; 0 = 1e-8, CALX_ZERO = 0 */
} calx_reduce_lr_on_plateau_options;
/** factor times as much when the metric has not become better in more than
 *  `patience` epochs. It is stepped by calx_lr_scheduler_step_metric().
 *  @source torch.optim.lr_scheduler.ReduceLROnPlateau */
CALX_API calx_lr_scheduler *calx_reduce_lr_on_plateau_with(
    calx_optimizer *opt, const calx_reduce_lr_on_plateau_options *options);

// ---- of others --------------------------------------------------------------

/** One schedule after the other: schedule k + 1 begins at milestone k. It owns
 *  them, also where it fails. @param milestones  n - 1 epochs
 *  @source torch.optim.lr_scheduler.SequentialLR */
CALX_API calx_lr_scheduler *calx_sequential_lr(
    calx_optimizer *opt, calx_lr_scheduler *const *schedulers, size_t n,
    calx_dims milestones);
/** All of them at each step. It owns them, also where it fails.
 *  @source torch.optim.lr_scheduler.ChainedScheduler */
CALX_API calx_lr_scheduler *calx_chained_scheduler(
    calx_lr_scheduler *const *schedulers, size_t n);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_step_lr_options_ .gamma = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_step_lr_options, calx_written_(&o->gamma);)
#define CALX_UNWRITTEN_calx_multi_step_lr_options_ .gamma = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_multi_step_lr_options, calx_written_(&o->gamma);)
#define CALX_UNWRITTEN_calx_linear_lr_options_ .end_factor = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_linear_lr_options, calx_written_(&o->end_factor);)
#define CALX_UNWRITTEN_calx_polynomial_lr_options_ .power = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_polynomial_lr_options, calx_written_(&o->power);)
#define CALX_UNWRITTEN_calx_cyclic_lr_options_                \
  .gamma = CALX_UNWRITTEN_, .base_momentum = CALX_UNWRITTEN_, \
  .max_momentum = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_cyclic_lr_options, calx_written_(&o->gamma);
              calx_written_(&o->base_momentum);
              calx_written_(&o->max_momentum);)
#define CALX_UNWRITTEN_calx_one_cycle_lr_options_                 \
  .pct_start = CALX_UNWRITTEN_, .base_momentum = CALX_UNWRITTEN_, \
  .max_momentum = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_one_cycle_lr_options, calx_written_(&o->pct_start);
              calx_written_(&o->base_momentum);
              calx_written_(&o->max_momentum);)
#define CALX_UNWRITTEN_calx_swa_lr_options_ \
  .anneal_epochs = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_swa_lr_options, calx_written_int_(&o->anneal_epochs);)
#define CALX_UNWRITTEN_calx_reduce_lr_on_plateau_options_     \
  .factor = CALX_UNWRITTEN_, .patience = CALX_UNWRITTEN_INT_, \
  .threshold = CALX_UNWRITTEN_, .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_reduce_lr_on_plateau_options, calx_written_(&o->factor);
              calx_written_int_(&o->patience); calx_written_(&o->threshold);
              calx_written_(&o->eps);)
#endif
#ifdef __cplusplus
}
#else
#define CALX_STEP_LR_(opt, step_size, ...) \
  calx_step_lr_with(opt, step_size,        \
                    CALX_WRITE_(calx_step_lr_options, __VA_ARGS__))
#define calx_step_lr(opt, ...) \
  CALX_STEP_LR_(opt, __VA_ARGS__, .size = sizeof(calx_step_lr_options))
#define CALX_MULTI_STEP_LR_(opt, milestones, ...) \
  calx_multi_step_lr_with(                        \
      opt, milestones, CALX_WRITE_(calx_multi_step_lr_options, __VA_ARGS__))
#define calx_multi_step_lr(opt, ...)    \
  CALX_MULTI_STEP_LR_(opt, __VA_ARGS__, \
                      .size = sizeof(calx_multi_step_lr_options))
#define CALX_CONSTANT_LR_(opt, ...) \
  calx_constant_lr_with(opt, &(calx_constant_lr_options){ __VA_ARGS__ })
#define calx_constant_lr(...) \
  CALX_CONSTANT_LR_(__VA_ARGS__, .size = sizeof(calx_constant_lr_options))
#define CALX_LINEAR_LR_(opt, ...) \
  calx_linear_lr_with(opt, CALX_WRITE_(calx_linear_lr_options, __VA_ARGS__))
#define calx_linear_lr(...) \
  CALX_LINEAR_LR_(__VA_ARGS__, .size = sizeof(calx_linear_lr_options))
#define CALX_POLYNOMIAL_LR_(opt, ...) \
  calx_polynomial_lr_with(            \
      opt, CALX_WRITE_(calx_polynomial_lr_options, __VA_ARGS__))
#define calx_polynomial_lr(...) \
  CALX_POLYNOMIAL_LR_(__VA_ARGS__, .size = sizeof(calx_polynomial_lr_options))
#define CALX_COSINE_ANNEALING_LR_(opt, t_max, ...) \
  calx_cosine_annealing_lr_with(                   \
      opt, t_max, &(calx_cosine_annealing_lr_options){ __VA_ARGS__ })
#define calx_cosine_annealing_lr(opt, ...)    \
  CALX_COSINE_ANNEALING_LR_(opt, __VA_ARGS__, \
                            .size = sizeof(calx_cosine_annealing_lr_options))
#define CALX_COSINE_WARM_(opt, t_0, ...)    \
  calx_cosine_annealing_warm_restarts_with( \
      opt, t_0, &(calx_cosine_annealing_warm_restarts_options){ __VA_ARGS__ })
#define calx_cosine_annealing_warm_restarts(opt, ...) \
  CALX_COSINE_WARM_(                                  \
      opt, __VA_ARGS__,                               \
      .size = sizeof(calx_cosine_annealing_warm_restarts_options))
#define CALX_CYCLIC_LR_(opt, base_lr, max_lr, ...) \
  calx_cyclic_lr_with(opt, base_lr, max_lr,        \
                      CALX_WRITE_(calx_cyclic_lr_options, __VA_ARGS__))
#define calx_cyclic_lr(opt, base_lr, ...)    \
  CALX_CYCLIC_LR_(opt, base_lr, __VA_ARGS__, \
                  .size = sizeof(calx_cyclic_lr_options))
#define CALX_ONE_CYCLE_LR_(opt, max_lr, total_steps, ...) \
  calx_one_cycle_lr_with(opt, max_lr, total_steps,        \
                         CALX_WRITE_(calx_one_cycle_lr_options, __VA_ARGS__))
#define calx_one_cycle_lr(opt, max_lr, ...)    \
  CALX_ONE_CYCLE_LR_(opt, max_lr, __VA_ARGS__, \
                     .size = sizeof(calx_one_cycle_lr_options))
#define CALX_SWA_LR_(opt, swa_lr, ...) \
  calx_swa_lr_with(opt, swa_lr, CALX_WRITE_(calx_swa_lr_options, __VA_ARGS__))
#define calx_swa_lr(opt, ...) \
  CALX_SWA_LR_(opt, __VA_ARGS__, .size = sizeof(calx_swa_lr_options))
#define CALX_REDUCE_LR_ON_PLATEAU_(opt, ...) \
  calx_reduce_lr_on_plateau_with(            \
      opt, CALX_WRITE_(calx_reduce_lr_on_plateau_options, __VA_ARGS__))
#define calx_reduce_lr_on_plateau(...) \
  CALX_REDUCE_LR_ON_PLATEAU_(          \
      __VA_ARGS__, .size = sizeof(calx_reduce_lr_on_plateau_options))
#endif
#endif
