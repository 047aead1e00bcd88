/**
 * calx/callbacks.h: callbacks of the trainer, with Lightning's names. Each is
 * one trainer's at a time and must outlive its runs; calx_callback_free() frees
 * it. Never NULL: what is wrong with the options is an error of the trainer's.
 */
#ifndef CALX_CALLBACKS_H
#define CALX_CALLBACKS_H

#include "calx/callbacks_progress.h"
#include "calx/callbacks_training.h"
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

// ---- checkpoints ------------------------------------------------------------

/** Whether the newest checkpoint is also last.ckpt. `true` is
 *  CALX_SAVE_LAST_FILE. */
typedef enum calx_save_last {
  CALX_SAVE_LAST_NONE,
  CALX_SAVE_LAST_FILE,
  CALX_SAVE_LAST_LINK /* a link to it, of the folder's own */
} calx_save_last;

/** Zero means default. */
typedef struct CALX_OPTIONS calx_model_checkpoint_options {
  CALX_NAMED size_t size;
  /* NULL: checkpoints/ in the first logger's folder of this run, else in
     default_root_dir. "~/" is the home folder */
  CALX_NAMED const char *dirpath;
  /* a name with values, "{epoch}-{val_loss:.2f}" is epoch=3-val_loss=0.25.ckpt;
     formats are Python's; NULL: "{epoch}-{step}" */
  CALX_NAMED const char *filename;
  CALX_NAMED const char *monitor; /* a logged name; NULL: the newest is best */
  CALX_NAMED bool verbose;
  CALX_NAMED calx_save_last save_last; /* true; CALX_SAVE_LAST_LINK */
  CALX_NAMED int64_t save_top_k;       /* 1; -1: all; 0: none */
  CALX_NAMED bool save_on_exception;
  CALX_NAMED bool save_weights_only;
  CALX_NAMED const char *mode;                /* "min", "max" */
  CALX_NAMED bool no_auto_insert_metric_name; /* 3-0.25.ckpt */
  /* one of these three; not written: each epoch. 0: never */
  CALX_NAMED int64_t every_n_train_steps;
  CALX_NAMED const char *train_time_interval; /* "DD:HH:MM:SS" */
  CALX_NAMED int64_t every_n_epochs;
  /* 1: at the end of a training epoch, 0: after a validation; not written: the
     former where there is one validation, or none, at the end of each epoch */
  CALX_NAMED int save_on_train_epoch_end;
  /* a file that is there is replaced; else the new one is NAME-v1.ckpt */
  CALX_NAMED bool no_version_counter;
} calx_model_checkpoint_options;
/**
 * Saves checkpoints of a fit, and keeps the best of them. All ranks must find a
 * value better; the first one of all writes. A trainer without one makes one
 * with these defaults, unless .no_checkpointing.
 * @errors INVALID_ARGUMENT Lightning's texts; in the run: NOT_FOUND nothing was
 *         logged under the monitor's name; those of calx_save()
 * @source lightning.pytorch.callbacks.ModelCheckpoint
 */
CALX_API calx_callback *calx_model_checkpoint_with(
    const calx_model_checkpoint_options *options);
/** The file with the best value, without a monitor the newest one; "": none.
 *  Owned by the callback, until it saves again. */
CALX_API const char *calx_model_checkpoint_best_model_path(
    const calx_callback *cb);
/** Its value; NaN: none. */
CALX_API double calx_model_checkpoint_best_model_score(const calx_callback *cb);
/** The worst of the k best; "": none. */
CALX_API const char *calx_model_checkpoint_kth_best_model_path(
    const calx_callback *cb);
/** Its value; infinite where there are no k of them. */
CALX_API double calx_model_checkpoint_kth_value(const calx_callback *cb);
/** File i of the k best, in the order of their saving; NULL: no more.
 *  @param out_score  its value; may be NULL */
CALX_API const char *calx_model_checkpoint_best_k_model(const calx_callback *cb,
                                                        size_t i,
                                                        double *out_score);
/** The file last.ckpt, or its newest version; "": none. */
CALX_API const char *calx_model_checkpoint_last_model_path(
    const calx_callback *cb);
/** The trainer's first ModelCheckpoint, be it its own; NULL: none.
 *  @source trainer.checkpoint_callback */
CALX_API calx_callback *calx_trainer_checkpoint_callback(
    const calx_trainer *trainer);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_on_exception_checkpoint_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *filename; /* without .ckpt; NULL: "on_exception" */
} calx_on_exception_checkpoint_options;
/**
 * Saves a checkpoint where an error or a signal ends a run, from which the next
 * fit without a ckpt_path goes on. A run that ends well removes it.
 * @errors INVALID_ARGUMENT no dirpath, an empty filename
 * @source lightning.pytorch.callbacks.OnExceptionCheckpoint
 */
CALX_API calx_callback *calx_on_exception_checkpoint_with(
    const char *dirpath, const calx_on_exception_checkpoint_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_early_stopping_options_                       \
  .patience = CALX_UNWRITTEN_INT_, .stopping_threshold = CALX_UNWRITTEN_, \
  .divergence_threshold = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_early_stopping_options, calx_written_int_(&o->patience);
              calx_written_(&o->stopping_threshold);
              calx_written_(&o->divergence_threshold);)
#define CALX_UNWRITTEN_calx_model_checkpoint_options_ \
  .save_top_k = CALX_UNWRITTEN_INT_,                  \
  .every_n_train_steps = CALX_UNWRITTEN_INT_,         \
  .every_n_epochs = CALX_UNWRITTEN_INT_,              \
  .save_on_train_epoch_end = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_model_checkpoint_options, calx_written_int_(&o->save_top_k);
              calx_written_int_(&o->every_n_train_steps);
              calx_written_int_(&o->every_n_epochs);
              calx_written_dim_(&o->save_on_train_epoch_end);)
#endif
#ifdef __cplusplus
}
#else
#define CALX_EARLY_STOPPING_(...)               \
  (CALX_TRAINER_SITE_ calx_early_stopping_with( \
      CALX_WRITE_(calx_early_stopping_options, __VA_ARGS__)))
#define calx_early_stopping(...) \
  CALX_EARLY_STOPPING_(.size = sizeof(calx_early_stopping_options), __VA_ARGS__)
#define CALX_MODEL_CHECKPOINT_(...)               \
  (CALX_TRAINER_SITE_ calx_model_checkpoint_with( \
      CALX_WRITE_(calx_model_checkpoint_options, __VA_ARGS__)))
#define calx_model_checkpoint(...)                                      \
  CALX_MODEL_CHECKPOINT_(.size = sizeof(calx_model_checkpoint_options), \
                         __VA_ARGS__)
#define CALX_ON_EXCEPTION_CHECKPOINT_(dirpath, ...)      \
  (CALX_TRAINER_SITE_ calx_on_exception_checkpoint_with( \
      dirpath, &(calx_on_exception_checkpoint_options){ __VA_ARGS__ }))
#define calx_on_exception_checkpoint(...) \
  CALX_ON_EXCEPTION_CHECKPOINT_(          \
      __VA_ARGS__, .size = sizeof(calx_on_exception_checkpoint_options))
#endif
#endif
