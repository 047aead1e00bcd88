// train/run: from a call of the program to the ranks, and back. What the first
// rank of the process leaves becomes the trainer's when all have ended.
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/text.h"
#include "launcher/spawn.h"
#include "lazy/lazy.h"
#include "train/internal.h"
#include "world/world.h"

// ---- what is there ----------------------------------------------------------

// What a stage is called, and which step and loader it takes.
typedef struct run_kind {
  const char *name;
  calx_trainer_step_fn *step;
  bool is_step_wanted;
  const char *step_name;
  const calx_loader *loader;
  calx_trainer_loader_fn *made;  // of the data module; NULL: none
} run_kind;

static run_kind kind_of(const calx_lightning_module *m,
                        const calx_trainer_data *d, cx_train_stage stage)
{
  const calx_lightning_data_module *dm = d->datamodule;
  switch (stage) {
    case CX_TRAIN_VALIDATING:
      return (run_kind){ "validate",
                         m->validation_step,
                         true,
                         "validation_step",
                         d->val_dataloader,
                         dm != NULL ? dm->val_dataloader : NULL };
    case CX_TRAIN_TESTING:
      return (run_kind){
        "test",      m->test_step,       true,
        "test_step", d->test_dataloader, dm != NULL ? dm->test_dataloader : NULL
      };
    case CX_TRAIN_PREDICTING:
      return (run_kind){ "predict",
                         m->predict_step,
                         false,
                         "predict_step",
                         d->predict_dataloader,
                         dm != NULL ? dm->predict_dataloader : NULL };
    default:
      return (run_kind){ "fit",
                         m->training_step,
                         true,
                         "training_step",
                         d->train_dataloader,
                         dm != NULL ? dm->train_dataloader : NULL };
  }
}

static calx_status *check_functions(const calx_lightning_module *m,
                                    const run_kind *k, bool fits)
{
  if (m->configure_model == NULL) {
    return cx_invalid(
        "No `configure_model()` method defined: each rank makes its model "
        "there");
  }
  if (fits && (m->training_step == NULL || m->configure_optimizers == NULL)) {
    return cx_invalid(
        "No `%s()` method defined. Lightning `Trainer` expects as minimum "
        "`training_step()`, `configure_model()` and `configure_optimizers()` to "
        "be defined.",
        m->training_step == NULL ? "training_step" : "configure_optimizers");
  }
  if (k->step != NULL || !k->is_step_wanted) return NULL;
  return cx_invalid("No `%s()` method defined to run `Trainer.%s`.",
                    k->step_name, k->name);
}

static calx_status *check_loaders(const calx_trainer_data *d, const run_kind *k,
                                  bool fits)
{
  if (d->n_dataloaders > 0 && d->dataloaders == NULL) {
    return cx_invalid("trainer: n_dataloaders is %zu and dataloaders is NULL",
                      d->n_dataloaders);
  }
  if (k->loader != NULL || k->made != NULL) return NULL;
  if (fits) {
    return cx_invalid(
        "An invalid dataloader was passed to `Trainer.fit(train_dataloader=...)`"
        ": it is NULL");
  }
  return d->n_dataloaders > 0
             ? NULL
             : cx_invalid("`Trainer.%s` has no dataloader", k->name);
}

// What automatic optimisation does is the step's own business with manual one.
static calx_status *check_manual(const calx_trainer *t,
                                 const calx_lightning_module *m)
{
  if (!m->manual_optimization) return NULL;
  if (t->config.clip > 0) {
    return cx_invalid(
        "Automatic gradient clipping is not supported for manual optimization. "
        "Remove `Trainer(gradient_clip_val=%g)` or switch to automatic "
        "optimization.",
        t->config.clip);
  }
  if (t->config.accumulate != 1) {
    return cx_invalid(
        "Automatic gradient accumulation is not supported for manual "
        "optimization. Remove `Trainer(accumulate_grad_batches=%lld)` or switch "
        "to automatic optimization.",
        (long long)t->config.accumulate);
  }
  return NULL;
}

static calx_status *check(const calx_trainer *t, const calx_lightning_module *m,
                          const calx_trainer_data *d, cx_train_stage stage)
{
  const bool fits = stage == CX_TRAIN_FITTING;
  const run_kind kind = kind_of(m, d, stage);
  CALX_TRY(calx_trainer_error(t));
  CALX_TRY(check_functions(m, &kind, fits));
  CALX_TRY(check_loaders(d, &kind, fits));
  return fits ? check_manual(t, m) : NULL;
}

// ---- what the program gives -------------------------------------------------

static calx_status *take_module(const calx_lightning_module *given,
                                calx_lightning_module *out)
{
  if (given == NULL) return cx_invalid("trainer: the module is NULL");
  if (given->size == 0) {
    return cx_invalid(
        "trainer: the module has no size: make it with CALX_LIGHTNING_MODULE()");
  }
  return cx_options_take("lightning_module", given, out, sizeof *out);
}

// `*out` points to `*dm` where there is a data module.
static calx_status *take_data(const calx_trainer_data *given,
                              calx_trainer_data *out,
                              calx_lightning_data_module *dm)
{
  CALX_TRY(cx_options_take("trainer", given, out, sizeof *out));
  if (out->datamodule == NULL) return NULL;
  if (out->datamodule->size == 0) {
    return cx_invalid(
        "trainer: the data module has no size: make it with "
        "CALX_LIGHTNING_DATA_MODULE()");
  }
  CALX_TRY(cx_options_take("lightning_data_module", out->datamodule, dm,
                           sizeof *dm));
  out->datamodule = dm;
  return NULL;
}

// ---- ranks ------------------------------------------------------------------

// One device needs no launch, and the program may use it before and after.
static calx_status *is_single(const calx_trainer *t, bool *out)
{
  cx_world_info info;
  int processes;
  CALX_TRY(cx_world_find(&info));
  CALX_TRY(cx_launcher_processes(0, &processes));
  *out = false;
  if (info.launcher != CX_WORLD_LAUNCHER_NONE || processes > 1) return NULL;
  *out = t->config.devices == 1 ||
         (t->config.devices == 0 && cx_lazy_devices_are_open() &&
          calx_device_count() == 1);
  return NULL;
}

// Ranks of other processes have callbacks of their own.
static calx_status *make_room(calx_trainer *t)
{
  enum { MOST_DEVICES = 1024 };
  for (size_t i = 0; i < t->n_callbacks; i++) {
    calx_callback *c = t->callbacks[i];
    if (c->selves != NULL) continue;
    c->selves = cx_calloc(MOST_DEVICES, sizeof *c->selves);
    if (c->selves == NULL) return cx_out_of_memory();
    c->n_selves = MOST_DEVICES;
  }
  return NULL;
}

// On the device that was asked for by its number, else the current one.
static calx_status *run_alone(cx_train_job *job)
{
  const int index = job->trainer->config.device_index;
  if (index < 0) return cx_train_run_rank(0, job);
  char name[32];
  calx_device *before = calx_device_current(), *device;
  if (before == NULL) return calx_scope_take_error();
  snprintf(name, sizeof name, "xla:%d", index);
  CALX_TRY(calx_device_open(name, &device));
  calx_device_set_current(device);
  calx_status *status = cx_train_run_rank(0, job);
  calx_device_set_current(before);
  return status;
}

// The engine reads it when its client is made, XLA when it is loaded; both keep
// it.
static void make_deterministic(const calx_trainer *t)
{
  static const char flag[] = "--xla_gpu_deterministic_ops=true";
  const char *flags = getenv("XLA_FLAGS");
  if (!t->config.deterministic || getenv("CALX_DETERMINISTIC") != NULL) return;
  if (cx_lazy_devices_are_open()) {
    cx_log(
        "`deterministic` comes too late: a device was used before. Set "
        "CALX_DETERMINISTIC=1 instead");
    return;
  }
  setenv("CALX_DETERMINISTIC", "1", 1);
  if (t->config.accelerator != CX_TRAIN_CUDA) return;
  cx_text all = { 0 };
  cx_text_format(&all, "%s%s%s", flags != NULL ? flags : "",
                 flags != NULL ? " " : "", flag);
  if (!cx_text_failed(&all)) setenv("XLA_FLAGS", cx_text_str(&all), 1);
  cx_text_free(&all);
}

static calx_status *launch(calx_trainer *t, cx_train_job *job)
{
  bool single;
  CALX_TRY(is_single(t, &single));
  const bool detected = cx_lazy_debug_on(CX_LAZY_DEBUG_ANOMALY);
  const bool reports_each = cx_lazy_debug_on(CX_LAZY_DEBUG_RECOMPILES);
  if (t->config.detect_anomaly) calx_set_detect_anomaly(true);
  if (t->config.is_debug) cx_lazy_debug_set(CX_LAZY_DEBUG_RECOMPILES, true);
  job->is_alone = single;
  calx_status *status = single ? run_alone(job)
                               : calx_launch(cx_train_run_rank, job,
                                             .devices = t->config.devices);
  calx_set_detect_anomaly(detected);
  cx_lazy_debug_set(CX_LAZY_DEBUG_RECOMPILES, reports_each);
  return status;
}

static calx_status *run(calx_trainer *t, const calx_lightning_module *module,
                        const calx_trainer_data *given, cx_train_stage stage,
                        calx_value **out_predictions)
{
  calx_trainer_data data;
  calx_lightning_module taken;
  calx_lightning_data_module dm;
  CALX_TRY(calx_trainer_error(t));
  t->exit_code = 1;  // until the run has ended well
  CALX_TRY(take_module(module, &taken));
  CALX_TRY(take_data(given, &data, &dm));
  CALX_TRY(check(t, &taken, &data, stage));
  CALX_TRY(cx_train_check_expected(t));
  CALX_TRY(make_room(t));
  cx_train_job job = { .trainer = t,
                       .module = &taken,
                       .data = &data,
                       .stage = stage,
                       .site = *cx_site() };
  make_deterministic(t);
  cx_train_signals_begin();
  calx_status *status = cx_train_return_begin(&job);
  if (status == NULL) status = launch(t, &job);
  status = cx_train_return_end(&job, status);
  if (job.has_left) cx_train_move_state(&job.left, t);
  t->exit_code = cx_train_signals_end(status);
  if (status == NULL && out_predictions != NULL) {
    *out_predictions = job.predictions;
  } else {
    calx_value_free(job.predictions);
  }
  return status;
}

calx_status *calx_trainer_fit_with(calx_trainer *t,
                                   const calx_lightning_module *module,
                                   const calx_trainer_data *data)
{
  return run(t, module, data, CX_TRAIN_FITTING, NULL);
}

calx_status *calx_trainer_validate_with(calx_trainer *t,
                                        const calx_lightning_module *module,
                                        const calx_trainer_data *data)
{
  return run(t, module, data, CX_TRAIN_VALIDATING, NULL);
}

calx_status *calx_trainer_test_with(calx_trainer *t,
                                    const calx_lightning_module *module,
                                    const calx_trainer_data *data)
{
  return run(t, module, data, CX_TRAIN_TESTING, NULL);
}

calx_status *calx_trainer_predict_with(calx_trainer *t,
                                       const calx_lightning_module *module,
                                       calx_value **out_predictions,
                                       const calx_trainer_data *data)
{
  if (out_predictions == NULL) {
    if (t != NULL) t->exit_code = 1;
    return cx_invalid("trainer_predict: out_predictions is NULL");
  }
  *out_predictions = NULL;
  return run(t, module, data, CX_TRAIN_PREDICTING, out_predictions);
}
