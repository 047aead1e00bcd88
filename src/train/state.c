// train/state: what a program, its hooks and callbacks may ask of a trainer.
#include <stdio.h>

#include "lazy/lazy.h"
#include "train/internal.h"

int64_t calx_trainer_current_epoch(const calx_trainer *t)
{
  return t != NULL ? t->position.epoch : 0;
}

int64_t calx_trainer_global_step(const calx_trainer *t)
{
  return t != NULL ? t->position.global_step : 0;
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

int64_t calx_trainer_estimated_stepping_batches(const calx_trainer *t)
{
  if (t == NULL) return 0;
  const int64_t batches = t->train.batches, k = t->config.accumulate;
  const int64_t max_epochs = t->config.max_epochs, most = t->config.max_steps;
  if (batches < 0 || max_epochs < 0) return most;
  const int64_t steps = batches / k + (batches % k != 0);  // of an epoch
  const int64_t epochs = max_epochs > 0 ? max_epochs : 1;
  if (steps > 0 && epochs > INT64_MAX / steps) return most;
  return most >= 0 && most < steps * epochs ? most : steps * epochs;
}

void *calx_trainer_user(const calx_trainer *t)
{
  return t != NULL && t->module != NULL ? t->module->user : NULL;
}

calx_module *calx_trainer_model(const calx_trainer *t)
{
  return t != NULL ? t->model : NULL;
}

int64_t calx_trainer_num_eval_batches(const calx_trainer *t, size_t i)
{
  if (t == NULL || i >= t->n_evaluated) return 0;
  const int64_t batches = t->evaluated[i].batches;
  const int64_t sanity = t->config.sanity_steps;
  const bool is_cut =
      t->sanity_checking && sanity >= 0 && (batches < 0 || sanity < batches);
  return is_cut ? sanity : batches;
}

const char *calx_trainer_stage(const calx_trainer *t)
{
  static const char *const names[] = { "", "fit", "validate", "test",
                                       "predict" };
  return names[t != NULL ? t->asked : CX_TRAIN_NONE];
}

void *calx_trainer_lightning_module(const calx_trainer *t)
{
  return t != NULL ? t->self : NULL;
}

void *calx_trainer_datamodule(const calx_trainer *t)
{
  return t != NULL ? t->data_self : NULL;
}

calx_tensor *calx_trainer_step_output(const calx_trainer *t)
{
  return t != NULL ? t->output : NULL;
}

calx_logger *calx_trainer_logger(const calx_trainer *t, size_t i)
{
  return t != NULL && i < t->n_loggers ? t->loggers[i] : NULL;
}

const char *calx_trainer_default_root_dir(const calx_trainer *t)
{
  return t != NULL && t->default_root_dir != NULL ? t->default_root_dir : "";
}

const char *calx_trainer_log_dir(const calx_trainer *t)
{
  const char *dir =
      t != NULL && t->n_loggers > 0 ? calx_logger_log_dir(t->loggers[0]) : NULL;
  return dir != NULL ? dir : calx_trainer_default_root_dir(t);
}

int calx_trainer_exit_code(const calx_trainer *t)
{
  return t != NULL ? t->exit_code : 1;
}

// The one without memory is shared, and stays as it is.
void calx_trainer_stop(calx_trainer *t)
{
  if (t != NULL && t->module != NULL) t->should_stop = true;
}

bool calx_trainer_should_stop(const calx_trainer *t)
{
  return t != NULL && t->should_stop;
}

void calx_trainer_skip_epoch(calx_trainer *t)
{
  if (t != NULL && t->module != NULL) t->skip_epoch = true;
}

// ---- ranks ------------------------------------------------------------------

int cx_train_device_index(const calx_trainer *t)
{
  int index = 0;
  if (t->is_alone || t->config.device_index >= 0) return 0;
  const char *name = calx_device_name(calx_device_current());
  return sscanf(name, "xla:%d", &index) == 1 ? index : 0;
}
