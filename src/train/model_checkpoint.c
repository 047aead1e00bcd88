// train/model_checkpoint: when a fit is saved, and in which folder.
#include "train/model_checkpoint.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "lazy/lazy.h"
#include "train/internal.h"

// ---- the folder -------------------------------------------------------------

// SAVE_DIR/NAME/version_N of the first logger.
static void put_logger(cx_text *out, const calx_trainer *t)
{
  calx_logger *logger = t->loggers[0];
  const char *save_dir = calx_logger_save_dir(logger);
  const char *version = calx_logger_version(logger);
  cx_train_join_path(out, save_dir != NULL ? save_dir : t->default_root_dir);
  cx_train_join_path(out, calx_logger_name(logger));
  if (version == NULL) return;
  const bool number = version[strspn(version, "0123456789")] == '\0';
  cx_train_join_path(out, number ? "version_" : version);
  if (number) cx_text_append(out, version);
}

static calx_status *choose_folder(const calx_trainer *t, const char *given,
                                  char **out)
{
  cx_text text = { 0 };
  if (given != NULL) {
    cx_text_append(&text, given);
  } else if (t->n_loggers > 0) {
    put_logger(&text, t);
  } else {
    cx_train_join_path(&text, t->default_root_dir);
  }
  if (given == NULL) cx_train_join_path(&text, "checkpoints");
  calx_status *status = cx_text_failed(&text)
                            ? cx_out_of_memory()
                            : cx_train_real_path(cx_text_str(&text), out);
  cx_text_free(&text);
  return status;
}

// It stays the same in later runs.
static calx_status *find_folder(calx_trainer *t, cx_train_saver *c)
{
  if (c->dirpath == NULL && calx_trainer_is_global_zero(t)) {
    CALX_TRY(choose_folder(t, c->plan->o.dirpath, &c->dirpath));
  }
  CALX_TRY(cx_train_broadcast_text(t, "ModelCheckpoint: dirpath", &c->dirpath));
  if (t->asked == CX_TRAIN_FITTING && t->config.fast_dev_run == 0 &&
      c->plan->o.save_top_k != 0 && calx_trainer_is_global_zero(t) &&
      cx_train_folder_is_used(c->dirpath)) {
    cx_log("Checkpoint directory %s exists and is not empty.", c->dirpath);
  }
  return NULL;
}

// ---- when -------------------------------------------------------------------

static bool skips(const calx_trainer *t, const cx_train_saver *c)
{
  return t->config.fast_dev_run > 0 || t->asked != CX_TRAIN_FITTING ||
         t->sanity_checking || c->saved_step == t->position.global_step ||
         calx_scope_error() != NULL;
}

static bool saves_on_epoch_end(const calx_trainer *t, const cx_train_saver *c)
{
  const cx_train_limit *interval = &t->config.val_check;
  if (c->plan->on_epoch_end >= 0) return c->plan->on_epoch_end == 1;
  if (t->config.val_check_seconds > 0) return false;
  if (t->config.check_val_every_n_epoch != 1) return false;
  if (!cx_train_has_evaluation(t)) return true;
  return interval->is_share && interval->value == 1;
}

// Whether a validation follows the running batch, the last one of an epoch.
static bool is_validated_next(const calx_trainer *t)
{
  const int64_t every = t->config.check_val_every_n_epoch;
  return t->position.batch == t->train.batches && cx_train_has_evaluation(t) &&
         (every < 0 || (t->position.epoch + 1) % every == 0);
}

bool cx_train_is_interval_over(double *last, double interval, double now)
{
  if (isnan(*last) || now - *last < interval) return false;
  *last = now;
  return true;
}

static double seconds_now(void)
{
  return (double)cx_now_ns() * 1e-9;
}

// By time all ranks take the first one's clock.
static calx_status *is_due(calx_trainer *t, cx_train_saver *c, bool *out)
{
  const int64_t every = c->plan->o.every_n_train_steps;
  *out = every >= 1 && t->position.global_step % every == 0;
  if (c->plan->o.train_time_interval == NULL) return NULL;
  double over =
      cx_train_is_interval_over(&c->checked, c->plan->seconds, seconds_now());
  CALX_TRY(
      cx_train_broadcast_numbers(t, "ModelCheckpoint: the time", &over, 1));
  if (over != 0) *out = true;
  return NULL;
}

static calx_status *save_both(calx_trainer *t, cx_train_saver *c)
{
  CALX_TRY(cx_train_checkpoint_save_top_k(t, c));
  return cx_train_checkpoint_save_last(t, c);
}

// A value that validation logs is waited for.
static calx_status *after_batch(calx_trainer *t, cx_train_saver *c)
{
  bool due;
  const char *monitor = c->plan->o.monitor;
  if (t->config.fast_dev_run > 0) return NULL;
  CALX_TRY(is_due(t, c, &due));
  if (!due) return NULL;
  if (monitor != NULL &&
      (!cx_train_checkpoint_knows(t, monitor) ||
       (!saves_on_epoch_end(t, c) && is_validated_next(t)))) {
    c->defers = true;
    return NULL;
  }
  return skips(t, c) ? NULL : save_both(t, c);
}

static calx_status *after_epoch(calx_trainer *t, cx_train_saver *c)
{
  const int64_t every = c->plan->o.every_n_epochs;
  if (every >= 1 && (t->position.epoch + 1) % every == 0) {
    CALX_TRY(cx_train_checkpoint_save_top_k(t, c));
  }
  if (c->saved_step == t->position.global_step ||
      (c->plan->o.save_last == CALX_SAVE_LAST_LINK && c->saved_path != NULL)) {
    return cx_train_checkpoint_save_last(t, c);
  }
  return NULL;
}

static calx_status *after_validation(calx_trainer *t, cx_train_saver *c)
{
  if (!c->defers) return after_epoch(t, c);
  c->defers = false;
  return save_both(t, c);
}

// ---- errors -----------------------------------------------------------------

static calx_status *after_exception(calx_trainer *t, cx_train_saver *c)
{
  if (!c->plan->o.save_on_exception || t->asked != CX_TRAIN_FITTING ||
      skips(t, c) || !cx_train_can_save(t)) {
    return NULL;
  }
  return cx_train_checkpoint_save_now(t, c);
}

// ---- hooks ------------------------------------------------------------------

static void setup(calx_trainer *t, void *self)
{
  cx_lazy_scope_pin(find_folder(t, self));
}

static void on_train_start(calx_trainer *t, void *self)
{
  (void)t;
  cx_train_saver *c = self;
  c->checked = seconds_now();
}

static void on_train_batch_end(calx_trainer *t, void *self,
                               const calx_batch *batch, int64_t batch_idx)
{
  (void)batch, (void)batch_idx;
  cx_lazy_scope_pin(after_batch(t, self));
}

static void on_train_epoch_end(calx_trainer *t, void *self)
{
  if (skips(t, self) || !saves_on_epoch_end(t, self)) return;
  cx_lazy_scope_pin(after_epoch(t, self));
}

static void on_validation_end(calx_trainer *t, void *self)
{
  if (skips(t, self) || saves_on_epoch_end(t, self)) return;
  cx_lazy_scope_pin(after_validation(t, self));
}

static void on_train_end(calx_trainer *t, void *self)
{
  const cx_train_saver *c = self;
  if (t->config.fast_dev_run > 0 || c->saved_path != NULL) return;
  cx_lazy_scope_pin(cx_train_checkpoint_save_last(t, self));
}

static void on_exception(calx_trainer *t, void *self)
{
  cx_log_failure("ModelCheckpoint: save_on_exception",
                 after_exception(t, self));
}

const calx_trainer_hooks cx_train_checkpoint_hooks = {
  .setup = setup,
  .on_train_start = on_train_start,
  .on_train_batch_end = on_train_batch_end,
  .on_train_epoch_end = on_train_epoch_end,
  .on_validation_end = on_validation_end,
  .on_train_end = on_train_end,
  .on_exception = on_exception,
};
