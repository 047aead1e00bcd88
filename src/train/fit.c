// train/fit: the epochs of a training and their batches.
#include <stdio.h>

#include "lazy/lazy.h"
#include "train/internal.h"

// ---- when it ends -----------------------------------------------------------

static bool may_stop(const calx_trainer *t)
{
  return t->should_stop && t->epoch >= t->config.min_epochs &&
         t->global_step >= t->config.min_steps;
}

static bool has_all_steps(const calx_trainer *t)
{
  return t->config.max_steps != -1 && t->global_step >= t->config.max_steps;
}

static void report_minimum(calx_trainer *t)
{
  if (!t->should_stop || may_stop(t) || t->reported_minimum) return;
  t->reported_minimum = true;
  if (!calx_trainer_is_global_zero(t)) return;
  cx_log(
      "Trainer was signaled to stop but the required `min_epochs=%lld` or "
      "`min_steps=%lld` has not been met. Training will continue...",
      (long long)t->config.min_epochs, (long long)t->config.min_steps);
}

static bool is_over(calx_trainer *t)
{
  const cx_train_config *c = &t->config;
  const bool reports = calx_trainer_is_global_zero(t);
  if (t->train.batches == 0) {
    if (reports) cx_log("`Trainer.fit` stopped: No training batches.");
    return true;
  }
  if (has_all_steps(t)) {
    if (reports) {
      cx_log("`Trainer.fit` stopped: `max_steps=%lld` reached.",
             (long long)c->max_steps);
    }
    return true;
  }
  if (c->max_epochs != -1 && t->epoch >= c->max_epochs) {
    if (reports) {
      cx_log("`Trainer.fit` stopped: `max_epochs=%lld` reached.",
             (long long)c->max_epochs);
    }
    return true;
  }
  report_minimum(t);
  return may_stop(t);
}

// ---- validation -------------------------------------------------------------

static bool validates(const calx_trainer *t)
{
  return t->module->validation_step != NULL && cx_train_has_evaluation(t);
}

// Batches from one validation to the next; -1: at the end of an epoch.
static calx_status *check_interval(const calx_trainer *t, int64_t *out)
{
  const cx_train_limit *interval = &t->config.val_check;
  const int64_t batches = t->train.batches;
  *out = -1;
  if (interval->is_share && interval->value == 1) return NULL;
  if (interval->is_share && batches < 0) {
    return cx_invalid(
        "When using an IterableDataset for `train_dataloader`, "
        "`Trainer(val_check_interval)` must be `1.0` or an int. An int k "
        "specifies checking validation every k training batches.");
  }
  *out = interval->is_share ? (int64_t)((double)batches * interval->value)
                            : (int64_t)interval->value;
  if (*out < 1) *out = 1;
  if (batches < 0 || *out <= batches || t->config.check_val_every_n_epoch < 0) {
    return NULL;
  }
  return cx_invalid(
      "`val_check_interval` (%lld) must be less than or equal to the number of "
      "the training batches (%lld). If you want to disable validation set "
      "`limit_val_batches` to 0.0 instead. If you want to validate based on the "
      "total training batches, set `check_val_every_n_epoch=-1`.",
      (long long)*out, (long long)batches);
}

static bool is_validation_due(const calx_trainer *t, int64_t batch_idx,
                              bool is_last, int64_t interval)
{
  const int64_t every = t->config.check_val_every_n_epoch;
  if (every > 0 && (t->epoch + 1) % every != 0) return false;
  if (may_stop(t)) return true;
  if (interval < 0) return is_last;
  return (every < 0 ? t->batches_seen : batch_idx + 1) % interval == 0;
}

static calx_status *check_sanity(calx_trainer *t)
{
  if (t->config.sanity_steps == 0 || t->epoch > 0 || t->global_step > 0) {
    return NULL;
  }
  t->sanity_checking = true;
  cx_train_call(t, CX_TRAIN_HOOK(on_sanity_check_start, NOT));
  calx_status *status = cx_train_evaluate(t);
  cx_train_call(t, CX_TRAIN_HOOK(on_sanity_check_end, NOT));
  t->sanity_checking = false;
  return status;
}

// ---- batches ----------------------------------------------------------------

static calx_status *run_batch(calx_trainer *t, const calx_batch *batch,
                              int64_t i, bool is_last, bool *out_pending)
{
  calx_scope *scope = calx_scope_begin();
  calx_batch converted;
  cx_train_convert(t, batch, &converted);
  batch = &converted;
  t->batch_size = batch->size;
  cx_train_call_batch(t, CX_TRAIN_HOOK(on_train_batch_start, STEP), batch, i);
  if (t->skip_epoch) return calx_scope_end(scope);
  const bool stepped = cx_train_step(t, batch, i, is_last);
  *out_pending = !stepped;
  t->batches_seen++;
  calx_sync(NULL);
  if (stepped) {
    cx_lazy_scope_pin(cx_train_schedule(t, CX_TRAIN_EACH_STEP, false));
  }
  if (is_last) {
    cx_lazy_scope_pin(cx_train_schedule(t, CX_TRAIN_EACH_EPOCH, false));
  }
  if (stepped) cx_lazy_scope_pin(cx_train_log_step(t, &t->train_results));
  t->batches_stepped += stepped;
  cx_lazy_scope_pin(cx_train_results_step(t, &t->train_results));
  cx_train_call_batch(t, CX_TRAIN_HOOK(on_train_batch_end, STEP), batch, i);
  if (t->progress != NULL) {
    calx_progress_step(t->progress, batch->size * calx_world_size());
  }
  return calx_scope_end(scope);
}

// An epoch of unknown length may end inside of an accumulation.
static calx_status *finish_accumulation(calx_trainer *t)
{
  calx_scope *scope = calx_scope_begin();
  cx_train_update(t);
  calx_sync(NULL);
  return calx_scope_end(scope);
}

static calx_status *run_batches(calx_trainer *t)
{
  calx_batch batch;
  int64_t interval;
  bool pending = false;
  CALX_TRY(check_interval(t, &interval));
  const int64_t most = t->train.batches;
  for (int64_t i = 0; i != most && !has_all_steps(t) && !may_stop(t); i++) {
    if (!calx_loader_next(t->train.loader, &batch)) break;
    const bool is_last = i + 1 == most;
    CALX_TRY(run_batch(t, &batch, i, is_last, &pending));
    if (t->skip_epoch) break;
    if (validates(t) && is_validation_due(t, i, is_last, interval)) {
      CALX_TRY(cx_train_evaluate(t));
    }
    CALX_TRY(cx_train_schedule(t, CX_TRAIN_EACH_STEP, true));
  }
  CALX_TRY(calx_scope_take_error());
  if (most >= 0) return NULL;
  if (pending) CALX_TRY(finish_accumulation(t));
  CALX_TRY(cx_train_schedule(t, CX_TRAIN_EACH_EPOCH, false));
  const bool due = is_validation_due(t, 0, true, interval) && interval < 0;
  return validates(t) && due ? cx_train_evaluate(t) : NULL;
}

// ---- epochs -----------------------------------------------------------------

static calx_status *epoch(calx_trainer *t)
{
  char label[32];
  snprintf(label, sizeof label, "Epoch %lld", (long long)t->epoch);
  calx_loader_set_epoch(t->train.loader, t->epoch);
  cx_train_results_begin(&t->train_results);
  t->skip_epoch = false;
  cx_train_call(t, CX_TRAIN_HOOK(on_train_epoch_start, EPOCH));
  t->progress =
      t->config.no_progress_bar
          ? NULL
          : calx_progress_new(label, t->train.batches, .unit = "samples");
  calx_status *status = run_batches(t);
  calx_loader_end_epoch(t->train.loader);
  calx_progress_end(t->progress);
  t->progress = NULL;
  t->batch_size = 0;
  if (status != NULL) return status;
  CALX_TRY(cx_train_results_end(t, &t->train_results));
  cx_train_call(t, CX_TRAIN_HOOK(on_train_epoch_end, EPOCH));
  CALX_TRY(cx_train_results_end(t, &t->train_results));
  CALX_TRY(cx_train_schedule(t, CX_TRAIN_EACH_EPOCH, true));
  t->epoch++;
  return NULL;
}

// What the hooks of an epoch make ends with it.
static calx_status *run_epoch(calx_trainer *t)
{
  calx_scope *scope = calx_scope_begin();
  calx_status *status = epoch(t);
  return cx_status_first(status, calx_scope_end(scope));
}

calx_status *cx_train_fit(calx_trainer *t)
{
  cx_train_call(t, CX_TRAIN_HOOK(on_fit_start, NOT));
  if (validates(t)) CALX_TRY(check_sanity(t));
  cx_train_call(t, CX_TRAIN_HOOK(on_train_start, EPOCH));
  while (!is_over(t)) CALX_TRY(run_epoch(t));
  cx_train_call(t, CX_TRAIN_HOOK(on_train_end, NOT));
  cx_train_call(t, CX_TRAIN_HOOK(on_fit_end, NOT));
  return calx_scope_take_error();
}
