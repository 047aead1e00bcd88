// train/defaults: the logger and the callbacks that a program need not give,
// and the order of all.
#include <string.h>

#include "base/alloc.h"
#include "calx/callbacks.h"
#include "train/internal.h"

// That which the program names, or where it gives none a TensorBoard's.
static calx_status *add_logger(calx_trainer *t)
{
  const bool is_named = t->config.logger != CX_TRAIN_LOGGER_UNNAMED;
  if (t->config.no_logger) t->n_loggers = 0;
  if (t->config.no_logger || (t->n_loggers > 0 && !is_named)) return NULL;
  t->own_logger = cx_train_new_logger(t);
  const calx_status *error = calx_logger_error(t->own_logger);
  if (error != NULL) return cx_status_copy(error);
  t->loggers[t->n_loggers++] = t->own_logger;  // there is room for one
  return NULL;
}

// ---- callbacks --------------------------------------------------------------

static calx_status *add_callback(calx_trainer *t, calx_callback *callback)
{
  size_t capacity = 0;
  if (callback->options.size == 0 ||
      !cx_grow(&t->callbacks, &capacity, t->n_callbacks + 1,
               sizeof *t->callbacks)) {
    calx_callback_free(callback);
    return cx_out_of_memory();
  }
  t->own_callbacks[t->n_own_callbacks++] = callback;
  t->callbacks[t->n_callbacks++] = callback;
  return cx_status_copy(callback->error);
}

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
  return add_callback(t, calx_tqdm_progress_bar(.refresh_rate = 1));
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
  return add_callback(t, is_rich ? calx_rich_model_summary(.max_depth = 1)
                                 : calx_model_summary(.max_depth = 1));
}

static calx_status *add_checkpoint(calx_trainer *t)
{
  const cx_train_config *c = &t->config;
  const calx_callback *first;
  const size_t given = count(t, CX_TRAIN_CALLBACK_CHECKPOINT, &first);
  if (given > 0 && c->no_checkpointing && c->fast_dev_run == 0) {
    return cx_invalid(
        "Trainer was configured with `no_checkpointing` but found "
        "`ModelCheckpoint` in callbacks list.");
  }
  if (given > 0 || c->no_checkpointing) return NULL;
  return add_callback(t, calx_model_checkpoint());
}

static calx_status *add_timer(calx_trainer *t)
{
  if (t->config.max_seconds == 0) return NULL;
  for (size_t i = 0; i < t->n_callbacks; i++) {
    if (t->callbacks[i]->kind != CX_TRAIN_CALLBACK_TIMER) continue;
    cx_log(
        "Ignoring `Trainer(max_time=...)`, callbacks list already contains a "
        "Timer.");
    return NULL;
  }
  return add_callback(t, cx_train_timer_new(t->config.max_seconds));
}

// Tuners before all others, checkpoints after them.
static int order_of(const calx_callback *callback)
{
  if (callback->kind == CX_TRAIN_CALLBACK_TUNER) return 0;
  return callback->kind == CX_TRAIN_CALLBACK_CHECKPOINT ? 2 : 1;
}

static void sort(calx_trainer *t)
{
  for (size_t i = 1; i < t->n_callbacks; i++) {
    calx_callback *moved = t->callbacks[i];
    size_t to = i;
    for (; to > 0 && order_of(t->callbacks[to - 1]) > order_of(moved); to--) {
      t->callbacks[to] = t->callbacks[to - 1];
    }
    t->callbacks[to] = moved;
  }
}

// A checkpoint has one state under a key.
static calx_status *check_keys(const calx_trainer *t)
{
  for (size_t i = 0; i < t->n_callbacks; i++) {
    const calx_callback *a = t->callbacks[i];
    for (size_t j = 0; j < i && a->state_key != NULL; j++) {
      const calx_callback *b = t->callbacks[j];
      if (b->state_key == NULL || strcmp(a->state_key, b->state_key) != 0) {
        continue;
      }
      return cx_invalid(
          "Found more than one stateful callback of type `%s`. In the current "
          "configuration, this callback does not support being saved alongside "
          "other instances of the same type. The state keys of callbacks %zu "
          "and %zu are both %s: `state_key` must be unique among all callbacks "
          "in the Trainer.",
          a->name, j, i, a->state_key);
    }
  }
  return NULL;
}

calx_status *cx_train_add_defaults(calx_trainer *t)
{
  CALX_TRY(add_logger(t));
  CALX_TRY(add_progress_bar(t));
  CALX_TRY(add_model_summary(t));
  CALX_TRY(add_checkpoint(t));
  CALX_TRY(add_timer(t));
  sort(t);
  return check_keys(t);
}
