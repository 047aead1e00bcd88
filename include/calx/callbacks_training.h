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

#ifdef __cplusplus
}
#else
#define CALX_CALLBACK_(fn, O, ...) (CALX_TRAINER_SITE_ fn(&(O){ __VA_ARGS__ }))
#define CALX_TIMER_(...) \
  CALX_CALLBACK_(calx_timer_with, calx_timer_options, __VA_ARGS__)
#define calx_timer(...) \
  CALX_TIMER_(.size = sizeof(calx_timer_options), __VA_ARGS__)
#endif
#endif
