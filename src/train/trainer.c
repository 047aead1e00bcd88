// train/trainer: the trainer's life and what its functions may ask of it.
#include "calx/trainer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "train/internal.h"

static calx_trainer nil;  // without memory

static calx_status *take_callbacks(calx_trainer *t,
                                   const calx_trainer_options *o)
{
  const size_t n = o->n_callbacks;
  if (n > 0 && o->callbacks == NULL) {
    return cx_invalid("trainer: n_callbacks is %zu and callbacks is NULL", n);
  }
  t->callbacks = cx_calloc(n + 1, sizeof(calx_callback *));
  if (t->callbacks == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    calx_callback *c = o->callbacks[i];
    if (c == NULL) return cx_invalid("trainer: callback %zu is NULL", i);
    if (c->error != NULL) return cx_status_copy(c->error);
    if (c->options.size == 0) return cx_out_of_memory();
    t->callbacks[t->n_callbacks++] = c;
  }
  return NULL;
}

static calx_status *take_loggers(calx_trainer *t, const calx_trainer_options *o)
{
  const size_t n = o->n_loggers;
  if (n > 0 && o->loggers == NULL) {
    return cx_invalid("trainer: n_loggers is %zu and loggers is NULL", n);
  }
  t->loggers = cx_calloc(n + 1, sizeof(calx_logger *));
  if (t->loggers == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    if (o->loggers[i] == NULL)
      return cx_invalid("trainer: logger %zu is NULL", i);
    const calx_status *error = calx_logger_error(o->loggers[i]);
    if (error != NULL) return cx_status_copy(error);
    t->loggers[t->n_loggers++] = o->loggers[i];
  }
  return NULL;
}

calx_trainer *calx_trainer_new_with(const calx_trainer_options *options)
{
  calx_trainer *t = cx_calloc(1, sizeof *t);
  if (t == NULL) return &nil;
  calx_trainer_options o;
  t->error = cx_options_take("trainer", options, &o, sizeof o);
  if (t->error == NULL) t->error = cx_train_configure(&o, &t->config);
  if (t->error == NULL) t->error = take_callbacks(t, &o);
  if (t->error == NULL) t->error = take_loggers(t, &o);
  return t;
}

void cx_train_free_metrics(calx_trainer *t)
{
  for (size_t i = 0; i < t->n_metrics; i++) {
    calx_release(t->metrics[i].tensor);
    cx_free(t->metrics[i].name);
  }
  cx_free(t->metrics);
  t->metrics = NULL;
  t->n_metrics = t->metrics_capacity = 0;
}

void calx_trainer_free(calx_trainer *t)
{
  if (t == NULL || t == &nil) return;
  cx_train_free_metrics(t);
  calx_value_free(t->weights);
  cx_free(t->callbacks);
  cx_free(t->loggers);
  calx_status_free(t->error);
  cx_free(t);
}

calx_status *calx_trainer_error(const calx_trainer *t)
{
  if (t == NULL) return cx_invalid("the trainer is NULL");
  return t == &nil ? cx_out_of_memory() : cx_status_copy(t->error);
}

// ---- state ------------------------------------------------------------------

int64_t calx_trainer_current_epoch(const calx_trainer *t)
{
  return t != NULL ? t->epoch : 0;
}

int64_t calx_trainer_global_step(const calx_trainer *t)
{
  return t != NULL ? t->global_step : 0;
}

bool calx_trainer_is_global_zero(const calx_trainer *t)
{
  (void)t;
  return calx_global_ordinal() == 0;
}

bool calx_trainer_sanity_checking(const calx_trainer *t)
{
  return t != NULL && t->sanity_checking;
}

int calx_trainer_dataloader_idx(const calx_trainer *t)
{
  return t != NULL ? t->dataloader_idx : 0;
}

int64_t calx_trainer_num_training_batches(const calx_trainer *t)
{
  return t != NULL ? t->train.batches : 0;
}

void *calx_trainer_user(const calx_trainer *t)
{
  return t != NULL && t->module != NULL ? t->module->user : NULL;
}

calx_module *calx_trainer_model(const calx_trainer *t)
{
  return t != NULL ? t->model : NULL;
}

calx_optimizer *calx_trainer_optimizer(const calx_trainer *t, size_t i)
{
  return t != NULL && i < t->n_optimizers ? t->optimizers[i].optimizer : NULL;
}

void calx_trainer_stop(calx_trainer *t)
{
  if (t != NULL && t != &nil) t->should_stop = true;
}

void calx_trainer_skip_epoch(calx_trainer *t)
{
  if (t != NULL && t != &nil) t->skip_epoch = true;
}

calx_status *calx_trainer_load_weights(const calx_trainer *t,
                                       calx_module *model)
{
  if (t == NULL || t->weights == NULL) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "trainer_load_weights: the trainer %s",
                    t == NULL ? "is NULL" : "has trained nothing yet");
  }
  return calx_module_load_state_dict(model, t->weights);
}

// ---- optimisers -------------------------------------------------------------

static calx_status *take_schedule(const calx_trainer_optimizer_options *o,
                                  cx_train_optimizer *out)
{
  const char *interval = o->interval != NULL ? o->interval : "epoch";
  const bool each_step = strcmp(interval, "step") == 0;
  if (!each_step && strcmp(interval, "epoch") != 0) {
    return cx_invalid(
        "The \"interval\" key in lr scheduler dict must be \"step\" or "
        "\"epoch\" but is \"%s\"",
        interval);
  }
  if (o->frequency < 0) {
    return cx_invalid(
        "add_optimizer: the frequency is %lld, at least 1 is "
        "wanted",
        (long long)o->frequency);
  }
  out->interval = each_step ? CX_TRAIN_EACH_STEP : CX_TRAIN_EACH_EPOCH;
  out->frequency = o->frequency != 0 ? o->frequency : 1;
  out->scheduler = o->lr_scheduler;
  if (o->monitor == NULL) return NULL;
  out->monitor = cx_strdup(o->monitor);
  return out->monitor != NULL ? NULL : cx_out_of_memory();
}

static calx_status *add_optimizer(calx_trainer *t, calx_optimizer *optimizer,
                                  const calx_trainer_optimizer_options *given)
{
  calx_trainer_optimizer_options o;
  if (t == NULL) return cx_invalid("add_optimizer: the trainer is NULL");
  CALX_TRY(cx_options_take("add_optimizer", given, &o, sizeof o));
  CALX_TRY(calx_optimizer_error(optimizer));
  if (o.lr_scheduler != NULL) CALX_TRY(calx_lr_scheduler_error(o.lr_scheduler));
  if (!cx_grow(&t->optimizers, &t->optimizers_capacity, t->n_optimizers + 1,
               sizeof *t->optimizers)) {
    return cx_out_of_memory();
  }
  cx_train_optimizer *a = &t->optimizers[t->n_optimizers++];
  *a = (cx_train_optimizer){ .optimizer = optimizer };
  return take_schedule(&o, a);
}

void calx_trainer_add_optimizer_with(
    calx_trainer *t, calx_optimizer *optimizer,
    const calx_trainer_optimizer_options *options)
{
  cx_lazy_scope_pin(add_optimizer(t, optimizer, options));
}
