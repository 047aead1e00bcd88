// train/defaults: the logger and the callbacks that a program need not give.
#include <string.h>

#include "base/alloc.h"
#include "calx/callbacks.h"
#include "train/internal.h"

static size_t count(const calx_trainer *t, cx_train_callback_kind kind,
                    const calx_callback **out_first)
{
  size_t n = 0;
  *out_first = NULL;
  for (size_t i = 0; i < t->n_callbacks; i++) {
    if (t->callbacks[i]->kind != kind) continue;
    if (n++ == 0) *out_first = t->callbacks[i];
  }
  return n;
}

// Adds one of the trainer's own, behind those of the program.
static calx_status *add_own(calx_trainer *t, calx_callback *callback)
{
  const size_t n = t->n_callbacks;
  calx_callback **all = cx_calloc(n + 2, sizeof(calx_callback *));
  calx_status *status = cx_status_copy(callback->error);
  if (all == NULL || callback->options.size == 0 || status != NULL) {
    cx_free(all);
    calx_callback_free(callback);
    return status != NULL ? status : cx_out_of_memory();
  }
  for (size_t i = 0; i < n; i++) all[i] = t->callbacks[i];
  all[n] = callback;
  cx_free(t->callbacks);
  t->callbacks = all;
  t->n_callbacks = n + 1;
  t->own_callbacks[t->n_own_callbacks++] = callback;
  return NULL;
}

static calx_status *add_progress_bar(calx_trainer *t)
{
  const calx_callback *given;
  const size_t n = count(t, CX_TRAIN_CALLBACK_PROGRESS, &given);
  if (n > 1) {
    return cx_invalid(
        "You added multiple progress bar callbacks to the Trainer, but "
        "currently only one progress bar is supported.");
  }
  if (t->config.no_progress_bar && n > 0) {
    return cx_invalid(
        "Trainer was configured with `enable_progress_bar=False` but found `%s` "
        "in callbacks list.",
        given->name);
  }
  if (t->config.no_progress_bar || n > 0) return NULL;
  return add_own(t, calx_tqdm_progress_bar(.refresh_rate = 1));
}

// Its shape is that of the progress bar.
static calx_status *add_model_summary(calx_trainer *t)
{
  const calx_callback *bar, *given;
  if (t->config.no_model_summary ||
      count(t, CX_TRAIN_CALLBACK_SUMMARY, &given) > 0) {
    return NULL;
  }
  count(t, CX_TRAIN_CALLBACK_PROGRESS, &bar);
  const bool is_rich = bar != NULL && strcmp(bar->name, "RichProgressBar") == 0;
  return add_own(t, is_rich ? calx_rich_model_summary(.max_depth = 1)
                            : calx_model_summary(.max_depth = 1));
}

calx_status *cx_train_add_defaults(calx_trainer *t)
{
  if (t->config.no_logger) t->n_loggers = 0;
  CALX_TRY(add_progress_bar(t));
  return add_model_summary(t);
}
