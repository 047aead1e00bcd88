// train/model_checkpoint: the parts of ModelCheckpoint.
#ifndef CX_TRAIN_MODEL_CHECKPOINT_H
#define CX_TRAIN_MODEL_CHECKPOINT_H

#include "base/status.h"
#include "base/text.h"
#include "calx/callbacks.h"
#include "train/files.h"

// ---- file names -------------------------------------------------------------

// The value of a name; of one that is not known, the whole number 0.
typedef calx_logged_value cx_train_value_fn(void *user, const char *name);
// Whether all fields of a name have their form.
calx_status *cx_train_check_name(const char *name) CALX_MUST_USE;
// "{epoch}-{val_loss:.2f}" as "epoch=3-val_loss=0.25", or as "3-0.25".
// INVALID_ARGUMENT: a value that its field's format is not for.
calx_status *cx_train_put_name(cx_text *out, const char *name,
                               bool inserts_names, cx_train_value_fn *value_of,
                               void *user) CALX_MUST_USE;

// ---- the k best -------------------------------------------------------------

typedef struct cx_train_kept {
  char *path;
  double score;  // the first rank's, by which all ranks put them in order
  double own;    // this rank's, to which its next value is compared
} cx_train_kept;

// Checkpoints in the order of their saving.
typedef struct cx_train_top_k {
  int64_t k;    // -1: all
  double sign;  // 1: less is better; -1: more is
  cx_train_kept *items;
  size_t count, capacity;
} cx_train_top_k;

// The worst or best one; NULL: there is none. Of equals the oldest.
const cx_train_kept *cx_train_top_k_worst(const cx_train_top_k *top);
const cx_train_kept *cx_train_top_k_best(const cx_train_top_k *top);
// Whether a value is among the k best. NaN is worse than all others.
bool cx_train_top_k_admits(const cx_train_top_k *top, double own);
// Takes the worst one out where there are k. The caller frees it; NULL: none.
char *cx_train_top_k_pop(cx_train_top_k *top);
// A file that is there already is replaced: its value is the new one.
calx_status *cx_train_top_k_add(cx_train_top_k *top, const char *path,
                                double score, double own) CALX_MUST_USE;
// NaN as the worst value.
double cx_train_top_k_score(const cx_train_top_k *top, double value);
void cx_train_top_k_clear(cx_train_top_k *top);

// ---- the callback -----------------------------------------------------------

// The options with texts of its own.
typedef struct cx_train_checkpoint_plan {
  calx_model_checkpoint_options o;
  double seconds;    // of train_time_interval
  int on_epoch_end;  // 1, 0; -1: as validation goes
} cx_train_checkpoint_plan;

// Of a rank.
typedef struct cx_train_saver {
  const cx_train_checkpoint_plan *plan;  // the callback's
  char *dirpath;                         // NULL before the first run
  cx_train_top_k top;
  char *best_path, *last_path, *saved_path;  // NULL: none
  double best_score, current_score;          // NaN: none
  int64_t saved_step;                        // the last one with a file
  double checked;                            // when, in seconds; NaN: never
  bool defers;  // a save waits for the values of the next validation
  bool has_warned;
} cx_train_saver;

extern const calx_trainer_hooks cx_train_checkpoint_hooks;
// Whether an interval is over since the last save, which is now then.
bool cx_train_is_interval_over(double *last, double interval, double now);
void cx_train_checkpoint_put_state(calx_trainer *t, void *self,
                                   calx_value *state);
void cx_train_checkpoint_take_state(calx_trainer *t, void *self,
                                    const calx_value *state);
// Whether there is a value of a name, be it "epoch" or "step".
bool cx_train_checkpoint_knows(const calx_trainer *t, const char *name);
// The newest one, or that of the monitor where it is among the k best.
calx_status *cx_train_checkpoint_save_top_k(calx_trainer *t,
                                            cx_train_saver *c) CALX_MUST_USE;
// last.ckpt, where it is asked for.
calx_status *cx_train_checkpoint_save_last(calx_trainer *t,
                                           cx_train_saver *c) CALX_MUST_USE;
// Where an error ends the run: both, whatever values and files there are.
calx_status *cx_train_checkpoint_save_now(calx_trainer *t,
                                          cx_train_saver *c) CALX_MUST_USE;
// Frees an old text; `*text` becomes a copy of the new one, which may be NULL.
calx_status *cx_train_set_text(char **text, const char *value) CALX_MUST_USE;

// The rank's state of a callback where it is a ModelCheckpoint; else NULL.
const cx_train_saver *cx_train_saver_of(const calx_callback *callback,
                                        const void *self);
// The file of an OnExceptionCheckpoint; else NULL.
const char *cx_train_exception_path(const calx_callback *callback);

#endif
