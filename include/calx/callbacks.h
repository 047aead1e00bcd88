/**
 * calx/callbacks.h: callbacks of the trainer, with Lightning's names. Each is
 * one trainer's at a time and must outlive its runs; calx_callback_free() frees
 * it. Never NULL: what is wrong with the options is an error of the trainer's.
 */
#ifndef CALX_CALLBACKS_H
#define CALX_CALLBACKS_H

#include "calx/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zero means default. */
typedef struct CALX_OPTIONS calx_early_stopping_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *monitor; /* a logged name; wanted */
  CALX_NAMED double min_delta;    /* what counts as an improvement */
  CALX_NAMED int64_t patience;    /* checks without one; 3; 0 = at the first */
  CALX_NAMED const char *mode;    /* "min", "max" */
  CALX_NAMED bool not_strict;     /* a missing value is no error */
  CALX_NAMED bool no_check_finite;
  /* stops as soon as the value is better, or worse, than these */
  CALX_NAMED double stopping_threshold;
  CALX_NAMED double divergence_threshold;
  CALX_NAMED bool check_on_train_epoch_end; /* else after each validation */
  CALX_NAMED bool verbose;
} calx_early_stopping_options;
/**
 * Ends training when a value stops improving. Where one rank stops, all do.
 * @errors INVALID_ARGUMENT no monitor, another mode, a negative patience; in
 * the run: NOT_FOUND nothing was logged under the name
 * @source lightning.pytorch.callbacks.EarlyStopping
 */
CALX_API calx_callback *calx_early_stopping_with(
    const calx_early_stopping_options *options);
/** The epoch at whose end it stopped training; 0: it did not. */
CALX_API int64_t calx_early_stopping_stopped_epoch(const calx_callback *cb);
/** The best value so far; infinite before the first. */
CALX_API double calx_early_stopping_best_score(const calx_callback *cb);
/** Checks since then. */
CALX_API int64_t calx_early_stopping_wait_count(const calx_callback *cb);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_early_stopping_options_                       \
  .patience = CALX_UNWRITTEN_INT_, .stopping_threshold = CALX_UNWRITTEN_, \
  .divergence_threshold = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_early_stopping_options, calx_written_int_(&o->patience);
              calx_written_(&o->stopping_threshold);
              calx_written_(&o->divergence_threshold);)
#endif
#ifdef __cplusplus
}
#else
#define CALX_EARLY_STOPPING_(...)               \
  (CALX_TRAINER_SITE_ calx_early_stopping_with( \
      CALX_WRITE_(calx_early_stopping_options, __VA_ARGS__)))
#define calx_early_stopping(...) \
  CALX_EARLY_STOPPING_(.size = sizeof(calx_early_stopping_options), __VA_ARGS__)
#endif
#endif
