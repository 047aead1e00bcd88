// train/hooks: the hooks of modules and callbacks, and what a callback is.
#ifndef CX_TRAIN_HOOKS_H
#define CX_TRAIN_HOOKS_H

#include <stddef.h>

#include "base/status.h"
#include "calx/callbacks.h"

// On which levels a value may be logged in a hook, and by default.
typedef enum cx_train_levels {
  CX_TRAIN_NOT,         // on none
  CX_TRAIN_STEP,        // on both; on the step's
  CX_TRAIN_EVALUATION,  // on both; on the epoch's
  CX_TRAIN_EPOCH        // on the epoch's only
} cx_train_levels;

typedef struct cx_train_hook {
  const char *name;
  size_t offset;  // in calx_trainer_hooks
  cx_train_levels levels;
} cx_train_hook;

#define CX_TRAIN_HOOK(name, levels)                                   \
  (&(const cx_train_hook){ #name, offsetof(calx_trainer_hooks, name), \
                           CX_TRAIN_##levels })
// Calls the callbacks' hooks and then the module's.
void cx_train_call(calx_trainer *t, const cx_train_hook *hook);
// on_train_epoch_end of early stopping and checkpoints, which see what the
// others' has logged.
void cx_train_call_late(calx_trainer *t);
void cx_train_call_batch(calx_trainer *t, const cx_train_hook *hook,
                         const calx_batch *batch, int64_t batch_idx);
void cx_train_call_transfer(calx_trainer *t, calx_batch *batch);
// A checkpoint's hook of the module, or those of the callbacks.
void cx_train_call_module(calx_trainer *t, const cx_train_hook *hook,
                          calx_value *checkpoint);
void cx_train_call_callbacks(calx_trainer *t, const cx_train_hook *hook,
                             calx_value *checkpoint);

// Callbacks that the trainer knows something of.
typedef enum cx_train_callback_kind {
  CX_TRAIN_CALLBACK_OTHER,
  CX_TRAIN_CALLBACK_TUNER,       // runs before all others
  CX_TRAIN_CALLBACK_PROGRESS,    // of which there is one
  CX_TRAIN_CALLBACK_SUMMARY,     // the model's summary
  CX_TRAIN_CALLBACK_TIMER,       // ends a run, which needs no max_epochs then
  CX_TRAIN_CALLBACK_MONITOR,     // runs after the module where an epoch ends
  CX_TRAIN_CALLBACK_CHECKPOINT,  // the same, and after all others
} cx_train_callback_kind;

struct calx_callback {
  calx_status *error;
  calx_callback_functions options;
  char *state_key;   // NULL: none
  const char *name;  // Lightning's name of its class; "Callback": a program's
  cx_train_callback_kind kind;
  void *own;  // options of one of the library's
  void (*free_own)(void *own);
  void **selves;  // of the ranks of this process
  int n_selves;
};

// Makes a callback of the library's from calx_callback_new()'s: `own` and the
// status are taken, `own` is freed by free_own().
calx_callback *cx_train_callback_finish(calx_callback *callback,
                                        const char *name,
                                        cx_train_callback_kind kind,
                                        calx_status *status, void *own,
                                        void (*free_own)(void *own));
// The callback's self of the rank's place in its process, made where it is new.
calx_status *cx_train_callback_self(calx_callback *callback, int rank,
                                    void **out) CALX_MUST_USE;
// The names of metrics that there are, as `a`, `b`; for messages.
char *cx_train_metric_names(const calx_trainer *t, char quote);
#endif
