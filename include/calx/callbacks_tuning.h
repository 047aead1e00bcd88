/**
 * calx/callbacks_tuning.h: callbacks that find a learning rate or a batch size
 * before training begins, with Lightning's names. As those of calx/callbacks.h;
 * they run before all others.
 *
 * They run steps of training, which leave nothing behind: weights, optimisers,
 * random numbers and the order of the samples are then what they were.
 *
 * @source lightning.pytorch.tuner.Tuner
 */
#ifndef CALX_CALLBACKS_TUNING_H
#define CALX_CALLBACKS_TUNING_H

#include "calx/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zero means default. */
typedef struct CALX_OPTIONS calx_learning_rate_finder_options {
  CALX_NAMED size_t size;
  CALX_NAMED double min_lr;              /* the first rate; 0 = 1e-8 */
  CALX_NAMED double max_lr;              /* the last one; 0 = 1 */
  CALX_NAMED int64_t num_training_steps; /* 0 = 100 */
  /* how the rate grows: "exponential"; "linear" */
  CALX_NAMED const char *mode;
  /* ends where the smoothed loss is so many times the least one; 4; 0: never */
  CALX_NAMED double early_stop_threshold;
  CALX_NAMED bool no_update_attr; /* the rate is found, not set */
} calx_learning_rate_finder_options;
/**
 * Trains some steps with a growing rate before the run and takes the rate at
 * which the loss falls fastest: every group's rate, from which a schedule
 * begins too. On several ranks by the first one's loss.
 * @errors INVALID_ARGUMENT a rate or a number out of range, another mode; in
 *         the run: another number of optimisers than one; those of the steps
 * @source lightning.pytorch.callbacks.LearningRateFinder; L. Smith (2017)
 */
CALX_API calx_callback *calx_learning_rate_finder_with(
    const calx_learning_rate_finder_options *options);
/** The rate that it found last; NaN: none. */
CALX_API double calx_learning_rate_finder_suggestion(const calx_callback *cb);
/** The rates that were tried, and the smoothed loss with each.
 *  @param out_lrs,out_losses  as many as are returned; owned by the callback
 *         until its next run */
CALX_API size_t calx_learning_rate_finder_results(const calx_callback *cb,
                                                  const double **out_lrs,
                                                  const double **out_losses);
/** The losses over the rates as an SVG file, with the rate that was found.
 *  @errors FAILED_PRECONDITION nothing was tried; those of writing a file
 *  @source _LRFinder.plot */
CALX_API calx_status *calx_learning_rate_finder_plot(
    const calx_callback *cb, const char *path) CALX_MUST_USE;

/** Zero means default. */
typedef struct CALX_OPTIONS calx_batch_size_finder_options {
  CALX_NAMED size_t size;
  /* "power": doubles the size until it fails; "binsearch": then looks between
     the last two */
  CALX_NAMED const char *mode;
  CALX_NAMED int64_t steps_per_trial; /* 0 = 3 */
  CALX_NAMED int64_t init_val;        /* the first size; 0 = 2 */
  CALX_NAMED int64_t max_trials;      /* 0 = 25 */
  CALX_NAMED double margin;           /* of binsearch: takes less; 0.05 */
  CALX_NAMED int64_t max_val;         /* the largest size; 0 = 8192 */
} calx_batch_size_finder_options;
/**
 * Finds the largest batch size with which training has enough memory, and
 * trains with it: the training loader's description stays, and its batches
 * get that size. Not where there are several ranks.
 * @errors INVALID_ARGUMENT a number out of range, another mode; in the run:
 *         several ranks, a batch sampler  UNIMPLEMENTED worker processes; those
 *         of the steps, but for a lack of memory
 * @source lightning.pytorch.callbacks.BatchSizeFinder
 */
CALX_API calx_callback *calx_batch_size_finder_with(
    const calx_batch_size_finder_options *options);
/** The size that it found last; init_val before that.
 *  @source optimal_batch_size */
CALX_API int64_t calx_batch_size_finder_optimal(const calx_callback *cb);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_learning_rate_finder_options_ \
  .early_stop_threshold = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_learning_rate_finder_options,
              calx_written_(&o->early_stop_threshold);)
#define CALX_UNWRITTEN_calx_batch_size_finder_options_ \
  .margin = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_batch_size_finder_options, calx_written_(&o->margin);)
#endif
#ifdef __cplusplus
}
#else
#define CALX_LEARNING_RATE_FINDER_(...)               \
  (CALX_TRAINER_SITE_ calx_learning_rate_finder_with( \
      CALX_WRITE_(calx_learning_rate_finder_options, __VA_ARGS__)))
#define calx_learning_rate_finder(...)                                      \
  CALX_LEARNING_RATE_FINDER_(.size =                                        \
                                 sizeof(calx_learning_rate_finder_options), \
                             __VA_ARGS__)
#define CALX_BATCH_SIZE_FINDER_(...)               \
  (CALX_TRAINER_SITE_ calx_batch_size_finder_with( \
      CALX_WRITE_(calx_batch_size_finder_options, __VA_ARGS__)))
#define calx_batch_size_finder(...)                                       \
  CALX_BATCH_SIZE_FINDER_(.size = sizeof(calx_batch_size_finder_options), \
                          __VA_ARGS__)
#endif
#endif
