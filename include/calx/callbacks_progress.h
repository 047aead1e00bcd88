/**
 * calx/callbacks_progress.h: what a run shows on a terminal: progress bars and
 * the model's summary. Callbacks as those of calx/callbacks.h.
 */
#ifndef CALX_CALLBACKS_PROGRESS_H
#define CALX_CALLBACKS_PROGRESS_H

#include "calx/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- progress bars ----------------------------------------------------------

/** Zero means default, but where it is written. */
typedef struct CALX_OPTIONS calx_tqdm_progress_bar_options {
  CALX_NAMED size_t size;
  /* batches from one drawing to the next; 1; the variable TQDM_MINITERS is the
     least; 0 = no bar */
  CALX_NAMED int64_t refresh_rate;
  /* the bar is two lines lower for each, below other processes' bars */
  CALX_NAMED int process_position;
  CALX_NAMED bool leave; /* each epoch's bar stays on the terminal */
} calx_tqdm_progress_bar_options;
/**
 * Shows how far a run is, in tqdm's shape, on the standard output of the first
 * rank: the trainer's own unless another one is given or .no_progress_bar is.
 * A validation has a bar below that of the epoch, which goes with its end. On a
 * terminal it is drawn at most ten times a second, at the last batch always.
 * Elsewhere about ten lines an epoch are printed; a validation in a fit prints
 * one only where nothing was printed for ten seconds. Behind the bar are the
 * loggers' version and the values that were logged with .prog_bar, each two
 * steps old at most: only one that is older is waited for. A locale without
 * UTF-8 makes a bar of ASCII characters.
 * @errors INVALID_ARGUMENT a negative option, TQDM_MINITERS is no number
 * @source lightning.pytorch.callbacks.TQDMProgressBar
 */
CALX_API calx_callback *calx_tqdm_progress_bar_with(
    const calx_tqdm_progress_bar_options *options);

/** Zero means default, but where it is written. */
typedef struct CALX_OPTIONS calx_rich_progress_bar_options {
  CALX_NAMED size_t size;
  /* drawings a second, at most; 10; 0 = no bar */
  CALX_NAMED int64_t refresh_rate;
  CALX_NAMED bool leave; /* each epoch's bar stays on the terminal */
} calx_rich_progress_bar_options;
/** The same in Rich's shape and in colours.
 *  @errors INVALID_ARGUMENT a negative option
 *  @source lightning.pytorch.callbacks.RichProgressBar */
CALX_API calx_callback *calx_rich_progress_bar_with(
    const calx_rich_progress_bar_options *options);

// ---- the model's summary ----------------------------------------------------

/** Zero means default, but where it is written. */
typedef struct CALX_OPTIONS calx_model_summary_options {
  CALX_NAMED size_t size;
  CALX_NAMED int max_depth; /* of the modules shown; 1; -1: all; 0: no table */
  /* the shape of the model's first argument: then the table has sizes and
     floating-point operations, as calx_summary() counts them; not written:
     neither */
  CALX_NAMED calx_dims example_input;
  CALX_NAMED calx_dtype example_dtype; /* of it; f32 */
} calx_model_summary_options;
/**
 * When a fit begins, prints a table of the model's modules on the standard
 * error of the first rank: names, types, parameters, modes. The trainer's own
 * unless another one is given or .no_model_summary is. A parameter that several
 * modules share counts once in the totals.
 * @errors INVALID_ARGUMENT max_depth is less than -1; in the run: those of the
 *         model's forward
 * @source lightning.pytorch.callbacks.ModelSummary
 */
CALX_API calx_callback *calx_model_summary_with(
    const calx_model_summary_options *options);
/** The same in Rich's shape, on the standard output. It is the trainer's own
 *  where calx_rich_progress_bar() is given. @errors as calx_model_summary
 *  @source lightning.pytorch.callbacks.RichModelSummary */
CALX_API calx_callback *calx_rich_model_summary_with(
    const calx_model_summary_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_tqdm_progress_bar_options_ \
  .refresh_rate = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_tqdm_progress_bar_options,
              calx_written_int_(&o->refresh_rate);)
#define CALX_UNWRITTEN_calx_rich_progress_bar_options_ \
  .refresh_rate = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_rich_progress_bar_options,
              calx_written_int_(&o->refresh_rate);)
#define CALX_UNWRITTEN_calx_model_summary_options_ \
  .max_depth = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_model_summary_options, calx_written_dim_(&o->max_depth);)
#endif
#ifdef __cplusplus
}
#else
#define CALX_TQDM_PROGRESS_BAR_(...)               \
  (CALX_TRAINER_SITE_ calx_tqdm_progress_bar_with( \
      CALX_WRITE_(calx_tqdm_progress_bar_options, __VA_ARGS__)))
#define calx_tqdm_progress_bar(...)                                       \
  CALX_TQDM_PROGRESS_BAR_(.size = sizeof(calx_tqdm_progress_bar_options), \
                          __VA_ARGS__)
#define CALX_RICH_PROGRESS_BAR_(...)               \
  (CALX_TRAINER_SITE_ calx_rich_progress_bar_with( \
      CALX_WRITE_(calx_rich_progress_bar_options, __VA_ARGS__)))
#define calx_rich_progress_bar(...)                                       \
  CALX_RICH_PROGRESS_BAR_(.size = sizeof(calx_rich_progress_bar_options), \
                          __VA_ARGS__)
#define CALX_MODEL_SUMMARY_(...)               \
  (CALX_TRAINER_SITE_ calx_model_summary_with( \
      CALX_WRITE_(calx_model_summary_options, __VA_ARGS__)))
#define calx_model_summary(...) \
  CALX_MODEL_SUMMARY_(.size = sizeof(calx_model_summary_options), __VA_ARGS__)
#define CALX_RICH_MODEL_SUMMARY_(...)               \
  (CALX_TRAINER_SITE_ calx_rich_model_summary_with( \
      CALX_WRITE_(calx_model_summary_options, __VA_ARGS__)))
#define calx_rich_model_summary(...)                                   \
  CALX_RICH_MODEL_SUMMARY_(.size = sizeof(calx_model_summary_options), \
                           __VA_ARGS__)
#endif
#endif
