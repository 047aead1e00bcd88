// train/fit: the epochs of a training and their batches.
#include "base/dtype.h"
#include "base/thread.h"
#include "calx/optim.h"
#include "calx/pointwise.h"
#include "lazy/lazy.h"
#include "profiler/profiler.h"
#include "train/internal.h"

// ---- when it ends -----------------------------------------------------------

static bool may_stop(const calx_trainer *t)
{
  return t->should_stop && t->position.epoch >= t->config.min_epochs &&
         t->position.global_step >= t->config.min_steps;
}

static bool has_all_steps(const calx_trainer *t)
{
  return t->config.max_steps != -1 &&
         t->position.global_step >= t->config.max_steps;
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
  if (c->max_epochs != -1 && t->position.epoch >= c->max_epochs) {
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

static double seconds(void)
{
  return (double)cx_now_ns() * 1e-9;
}

// By time all ranks take the first one's clock.
static calx_status *is_time_over(calx_trainer *t, bool *out)
{
  double over = seconds() - t->last_validation >= t->config.val_check_seconds;
  CALX_TRY(cx_train_broadcast_numbers(t, "trainer: val_check_time", &over, 1));
  *out = over != 0;
  return NULL;
}

static calx_status *is_validation_due(calx_trainer *t, int64_t batch_idx,
                                      bool is_last, int64_t interval, bool *out)
{
  const int64_t every = t->config.check_val_every_n_epoch;
  *out = false;
  if (!validates(t)) return NULL;
  if (every > 0 && (t->position.epoch + 1) % every != 0) return NULL;
  if (t->config.val_check_seconds > 0) return is_time_over(t, out);
  if (may_stop(t)) {
    *out = true;
  } else if (interval < 0) {
    *out = is_last;
  } else {
    *out =
        (every < 0 ? t->position.batches_seen : batch_idx + 1) % interval == 0;
  }
  return NULL;
}

// Gradients of a begun accumulation stay; others need no memory meanwhile.
static calx_status *validate(calx_trainer *t)
{
  if (!t->has_gradients) {
    for (size_t i = 0; i < t->n_optimizers && !t->module->manual_optimization;
         i++) {
      calx_optimizer_zero_grad(t->optimizers[i].optimizer);
    }
    cx_train_call(t, CX_TRAIN_HOOK(on_validation_model_zero_grad, NOT));
  }
  t->has_validated = true;
  CALX_TRY(cx_train_evaluate(t));
  t->last_validation = seconds();
  return NULL;
}

// What it draws does not change what training draws.
static calx_status *check_sanity(calx_trainer *t)
{
  if (t->config.sanity_steps == 0 || t->position.epoch > 0 ||
      t->position.global_step > 0 || !validates(t)) {
    return NULL;
  }
  uint64_t seed, draws;
  calx_device *device = calx_device_current();
  cx_lazy_random_state(device, &seed, &draws);
  t->sanity_checking = true;
  cx_train_call(t, CX_TRAIN_HOOK(on_sanity_check_start, NOT));
  calx_status *status = calx_scope_take_error();
  if (status == NULL) status = cx_train_evaluate(t);
  cx_train_call(t, CX_TRAIN_HOOK(on_sanity_check_end, NOT));
  status = cx_status_first(status, calx_scope_take_error());
  t->sanity_checking = false;
  cx_lazy_random_restore(device, seed, draws);
  return status;
}

// ---- what must be finite ----------------------------------------------------

// 0, or NaN where an element is not finite.
static calx_tensor *zero_of(calx_tensor *x)
{
  return calx_sum_with(calx_mul(x, calx_scalar(0)), NULL);
}

static void add_parameter(void *user, const char *path, calx_entry_kind kind,
                          calx_tensor *parameter)
{
  (void)path, (void)kind;
  calx_tensor **sum = user;
  if (!cx_dtype_is_float(calx_tensor_dtype(parameter))) return;
  *sum = calx_add_with(*sum, zero_of(parameter), NULL);
}

static void name_parameter(void *user, const char *path, calx_entry_kind kind,
                           calx_tensor *parameter)
{
  (void)kind;
  if (!cx_dtype_is_float(calx_tensor_dtype(parameter))) return;
  if (calx_item(zero_of(parameter)) == 0) return;
  cx_lazy_scope_pin(cx_invalid(
      "Detected nan and/or inf values in `%s`. Check your forward pass for "
      "numerically unstable operations.",
      path));
  (void)user;
}

static double read(calx_tensor *number)
{
  cx_profiler_own_read();  // no habit of the program's
  return calx_item(number);
}

static void check_finite(calx_trainer *t)
{
  if (!t->config.terminate_on_nan) return;
  const double loss = t->output != NULL ? read(t->output) : 0;
  if (!isfinite(loss)) {
    cx_lazy_scope_pin(cx_invalid(
        "The loss returned in `training_step` is nan. It is %g, at step %lld",
        loss, (long long)t->position.global_step));
    return;
  }
  calx_tensor *sum = calx_scalar(0);
  calx_module_parameters(t->model, add_parameter, &sum);
  if (read(sum) == 0) return;
  calx_module_parameters(t->model, name_parameter, NULL);
}

// ---- batches ----------------------------------------------------------------

// Schedules, logged values and what else follows the steps of a batch.
static void finish_batch(calx_trainer *t, bool stepped, bool is_last)
{
  if (stepped) {
    cx_lazy_scope_pin(cx_train_schedule(t, CX_TRAIN_EACH_STEP, false));
  }
  if (is_last) {
    cx_lazy_scope_pin(cx_train_schedule(t, CX_TRAIN_EACH_EPOCH, false));
  }
  if (stepped) cx_lazy_scope_pin(cx_train_log_step(t, &t->train_results));
  t->position.batches_stepped += stepped;
  t->is_batch_counted = stepped;
  cx_lazy_scope_pin(cx_train_results_step(t, &t->train_results));
}

// Where it fails the weights are those of before, and so is the position.
static void compute(calx_trainer *t)
{
  calx_sync(NULL);
  if (calx_scope_error() == NULL) {
    t->computed = t->position;
  } else {
    t->position = t->computed;
  }
}

static calx_status *run_batch(calx_trainer *t, const calx_batch *given,
                              int64_t i, bool is_last, bool *out_stepped)
{
  *out_stepped = false;
  calx_scope *scope = calx_scope_begin();
  calx_batch batch;
  cx_train_receive(t, given, &batch);
  t->batch_size = batch.size;
  cx_train_call_batch(t, CX_TRAIN_HOOK(on_train_batch_start, STEP), &batch, i);
  if (t->skip_epoch) return calx_scope_end(scope);
  const bool stepped = cx_train_step(t, &batch, i, is_last);
  if (calx_scope_error() != NULL) return calx_scope_end(scope);
  *out_stepped = stepped;
  t->position.batches_seen++;
  t->position.batch = i + 1;
  t->position.is_epoch_end = is_last;
  t->position.samples = calx_loader_state(t->train.loader).samples;
  const bool is_due = is_last || (i + 1) % t->config.steps_per_execution == 0;
  if (stepped && is_due) cx_train_record_signals(t);
  if (is_due) compute(t);
  if (calx_scope_error() != NULL) return calx_scope_end(scope);
  check_finite(t);
  finish_batch(t, stepped, is_last);
  cx_train_call_batch(t, CX_TRAIN_HOOK(on_train_batch_end, STEP), &batch, i);
  t->is_batch_counted = false;
  cx_train_set_output(t, NULL);
  return calx_scope_end(scope);
}

// An epoch of unknown length may end inside of an accumulation.
static calx_status *finish_accumulation(calx_trainer *t)
{
  if (!t->has_gradients) return NULL;
  calx_scope *scope = calx_scope_begin();
  cx_train_update(t);
  compute(t);
  t->position.batches_stepped++;
  calx_status *status = cx_train_schedule(t, CX_TRAIN_EACH_STEP, false);
  return cx_status_first(status, calx_scope_end(scope));
}

// What follows the last batch where that was not known to be it.
static calx_status *finish_unknown(calx_trainer *t, int64_t batches,
                                   int64_t interval)
{
  bool due;
  CALX_TRY(finish_accumulation(t));
  CALX_TRY(cx_train_schedule(t, CX_TRAIN_EACH_EPOCH, false));
  if (interval >= 0) return NULL;
  CALX_TRY(is_validation_due(t, batches, true, interval, &due));
  return due ? validate(t) : NULL;
}

static bool next_batch(calx_trainer *t, calx_batch *out)
{
  cx_train_profile_begin(t, "[_TrainingEpochLoop]", "train_dataloader_next");
  const bool is_there = calx_loader_next(t->train.loader, out);
  cx_train_profile_end(t);
  return is_there;
}

static calx_status *run_batches(calx_trainer *t)
{
  calx_batch batch;
  int64_t interval;
  bool stepped, due, is_ended = false;
  calx_at_(&t->site);
  CALX_TRY(check_interval(t, &interval));
  const int64_t most = t->train.batches;
  int64_t i = t->position.batch;
  for (; i != most && !has_all_steps(t) && !may_stop(t); i++) {
    is_ended = !next_batch(t, &batch);
    if (is_ended) break;
    const bool is_last = i + 1 == most;
    cx_train_profile_begin(t, NULL, "run_training_batch");
    CALX_TRY(run_batch(t, &batch, i, is_last, &stepped));
    cx_train_profile_end(t);
    if (t->skip_epoch) break;
    CALX_TRY(is_validation_due(t, i, is_last, interval, &due));
    if (due) CALX_TRY(validate(t));
    if (stepped) CALX_TRY(cx_train_schedule(t, CX_TRAIN_EACH_STEP, true));
    CALX_TRY(cx_train_check_signals(t));
  }
  CALX_TRY(calx_scope_take_error());
  return is_ended ? finish_unknown(t, i, interval) : NULL;
}

// ---- epochs -----------------------------------------------------------------

// One that a checkpoint was taken in goes on after its last batch.
static void begin_epoch(calx_trainer *t)
{
  t->skip_epoch = t->has_gradients = false;
  cx_train_results_begin(&t->train_results);
  if (t->resumes_epoch) {
    t->resumes_epoch = false;
    return;
  }
  t->position.batch = t->position.samples = 0;
  calx_loader_set_epoch(t->train.loader, t->position.epoch);
  cx_train_call(t, CX_TRAIN_HOOK(on_train_epoch_start, EPOCH));
}

static calx_status *epoch(calx_trainer *t)
{
  begin_epoch(t);
  t->computed = t->position;
  calx_status *status = run_batches(t);
  calx_loader_end_epoch(t->train.loader);
  t->batch_size = 0;
  if (status != NULL) return status;
  t->position.is_epoch_end = true;
  CALX_TRY(cx_train_results_end(t, &t->train_results));
  cx_train_call(t, CX_TRAIN_HOOK(on_train_epoch_end, EPOCH));
  CALX_TRY(cx_train_results_end(t, &t->train_results));
  cx_train_call_late(t);
  CALX_TRY(cx_train_schedule(t, CX_TRAIN_EACH_EPOCH, true));
  t->position.epoch++;
  t->position.batch = t->position.samples = 0;
  t->position.is_epoch_end = false;
  return NULL;
}

// What the hooks of an epoch make ends with it.
static calx_status *run_epoch(calx_trainer *t)
{
  calx_scope *scope = calx_scope_begin();
  cx_train_profile_begin(t, NULL, "run_training_epoch");
  calx_status *status = epoch(t);
  cx_train_profile_end(t);
  return cx_status_first(status, calx_scope_end(scope));
}

calx_status *cx_train_fit(calx_trainer *t)
{
  CALX_TRY(check_sanity(t));
  t->last_validation = seconds();
  cx_train_call(t, CX_TRAIN_HOOK(on_train_start, EPOCH));
  CALX_TRY(calx_scope_take_error());
  while (!is_over(t)) CALX_TRY(run_epoch(t));
  cx_train_call(t, CX_TRAIN_HOOK(on_train_end, NOT));
  cx_train_call(t, CX_TRAIN_HOOK(on_fit_end, NOT));
  CALX_TRY(cx_train_forget_signal(t));
  return calx_scope_take_error();
}
