// train/run: from a call of the program to the ranks, and back. Each rank works
// on a copy of the trainer, which does not change meanwhile; what the first one
// of the process leaves becomes the trainer's when all have ended.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "calx/debug.h"
#include "launcher/spawn.h"
#include "lazy/lazy.h"
#include "train/internal.h"
#include "world/world.h"

typedef struct run_job {
  const calx_trainer *trainer;  // the program's
  const calx_lightning_module *module;
  const calx_trainer_data *data;
  cx_train_stage stage;
  calx_trainer left;  // by the first rank of this process
  bool has_left;
} run_job;

// ---- what is there ----------------------------------------------------------

static calx_status *check_fit(const calx_lightning_module *m,
                              const calx_trainer_data *d)
{
  if (m->training_step == NULL || m->configure_optimizers == NULL) {
    return cx_invalid(
        "No `%s()` method defined. Lightning `Trainer` expects as minimum "
        "`training_step()`, `configure_model()` and `configure_optimizers()` to "
        "be defined.",
        m->training_step == NULL ? "training_step" : "configure_optimizers");
  }
  if (d->train_dataloader != NULL) return NULL;
  return cx_invalid(
      "An invalid dataloader was passed to `Trainer.fit(train_dataloader=...)`: "
      "it is NULL");
}

static calx_status *check_pass(const calx_lightning_module *m,
                               const calx_trainer_data *d, bool is_test)
{
  const char *name = is_test ? "test" : "validat";
  if ((is_test ? m->test_step : m->validation_step) == NULL) {
    return cx_invalid("No `%s_step()` method defined to run `Trainer.%s`.",
                      is_test ? "test" : "validation",
                      is_test ? "test" : "validate");
  }
  const calx_loader *one = is_test ? d->test_dataloader : d->val_dataloader;
  if (one != NULL || d->n_dataloaders > 0) return NULL;
  return cx_invalid("`Trainer.%s%s` has no dataloader", name,
                    is_test ? "" : "e");
}

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

static calx_status *check(const calx_trainer *t, const calx_lightning_module *m,
                          const calx_trainer_data *d, cx_train_stage stage)
{
  CALX_TRY(calx_trainer_error(t));
  if (m->configure_model == NULL) {
    return cx_invalid(
        "No `configure_model()` method defined: each rank makes its model there");
  }
  if (d->n_dataloaders > 0 && d->dataloaders == NULL) {
    return cx_invalid("trainer: n_dataloaders is %zu and dataloaders is NULL",
                      d->n_dataloaders);
  }
  if (stage == CX_TRAIN_FITTING) return check_fit(m, d);
  return check_pass(m, d, stage == CX_TRAIN_TESTING);
}

// ---- a rank -----------------------------------------------------------------

// The rank's place in its process.
static int device_index(void)
{
  int index = 0;
  const char *name = calx_device_name(calx_device_current());
  return sscanf(name, "xla:%d", &index) == 1 ? index : 0;
}

// Once on each host; the other ranks wait.
static calx_status *prepare_data(const calx_trainer *t)
{
  if (t->module->prepare_data == NULL) return NULL;
  calx_status *status = NULL;
  if (calx_local_ordinal() == 0) {
    status = t->module->prepare_data(t->module->user);
  }
  if (status != NULL || calx_world_size() == 1) return status;
  return calx_rendezvous("trainer: prepare_data", NULL, 0, NULL, NULL);
}

// The platform is the plugin's, which the environment chooses.
static calx_status *check_accelerator(const calx_trainer *t)
{
  static const char *const names[] = { "cpu", "tpu", "cuda" };
  const char *platform = calx_device_platform(calx_device_current());
  const char *here = strstr(platform, "cpu") != NULL ? "cpu" : platform;
  const int wanted = t->config.accelerator;
  if (wanted == CX_TRAIN_ANY || strcmp(here, names[wanted]) == 0) return NULL;
  if (t->config.is_tpu_cores) {
    return cx_error(CALX_FAILED_PRECONDITION, "No TPU devices were found.");
  }
  return cx_error(
      CALX_FAILED_PRECONDITION,
      "`accelerator='%s'` can not run on your system since the accelerator is "
      "not available. The following accelerator(s) is available and can be "
      "passed into `accelerator` argument of `Trainer`: ['%s']. PJRT_DEVICE or "
      "CALX_PLUGIN choose another plugin",
      names[wanted], here);
}

static calx_status *make_model(calx_trainer *t, const calx_trainer *from)
{
  if (t->config.seed != 0 || calx_world_size() > 1) {
    calx_manual_seed(t->config.seed);
  }
  t->model = t->module->configure_model(t, t->self);
  if (t->model == NULL) {
    CALX_TRY(calx_scope_take_error());
    return cx_invalid("`configure_model()` returned NULL");
  }
  CALX_TRY(calx_module_error(t->model));
  if (t->config.dtype != CALX_DTYPE_DEFAULT) {
    calx_module_to(t->model, t->config.dtype);
  }
  if (from->weights != NULL) {
    CALX_TRY(calx_module_load_state_dict(t->model, from->weights));
  }
  if (calx_world_size() > 1) calx_broadcast_master_param(t->model);
  return calx_scope_take_error();
}

static calx_status *make_optimizers(calx_trainer *t)
{
  if (t->asked != CX_TRAIN_FITTING) return NULL;
  t->module->configure_optimizers(t, t->self);
  CALX_TRY(calx_scope_take_error());
  if (t->n_optimizers == 1) return NULL;
  return cx_invalid(
      "`configure_optimizers()` added %zu optimisers: one is wanted. Training "
      "with several is not there yet",
      t->n_optimizers);
}

static calx_status *make_selves(calx_trainer *t)
{
  t->self = cx_calloc(1, t->module->self_size + 1);
  t->callback_selves = cx_calloc(t->n_callbacks + 1, sizeof(void *));
  if (t->self == NULL || t->callback_selves == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < t->n_callbacks; i++) {
    CALX_TRY(cx_train_callback_self(t->callbacks[i], device_index(),
                                    &t->callback_selves[i]));
  }
  return NULL;
}

static calx_status *open_loaders(calx_trainer *t)
{
  if (t->asked == CX_TRAIN_FITTING) {
    CALX_TRY(cx_train_open_loader(t, t->data->train_dataloader, true,
                                  &t->config.train, "train_dataloader",
                                  &t->train));
    if (t->module->validation_step == NULL) return NULL;
  }
  return cx_train_open_evaluation(t);
}

static calx_status *run_stage(calx_trainer *t, const calx_trainer *from)
{
  CALX_TRY(make_selves(t));
  CALX_TRY(check_accelerator(t));
  CALX_TRY(prepare_data(t));
  cx_train_call(t, CX_TRAIN_HOOK(setup, NOT));
  CALX_TRY(make_model(t, from));
  CALX_TRY(make_optimizers(t));
  CALX_TRY(open_loaders(t));
  if (t->asked == CX_TRAIN_FITTING) return cx_train_fit(t);
  if (!cx_train_has_evaluation(t)) return NULL;
  CALX_TRY(cx_train_evaluate(t));
  if (calx_trainer_is_global_zero(t)) cx_train_print_results(t);
  return NULL;
}

// ---- what a run leaves ------------------------------------------------------

// The model's state dict on the host.
static calx_status *copy_weights(calx_trainer *t, calx_value **out)
{
  calx_value *dict, *copy = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_module_state_dict(t->model, &dict));
  calx_status *status = NULL;
  for (size_t i = 0; status == NULL && i < calx_value_count(dict); i++) {
    calx_tensor *tensor = calx_value_as_tensor(calx_value_item(dict, i));
    status = calx_value_set(copy, calx_value_key(dict, i),
                            calx_value_tensor(calx_cpu(tensor)));
  }
  calx_value_free(dict);
  if (status == NULL) status = calx_scope_take_error();
  if (status != NULL) {
    calx_value_free(copy);
    copy = NULL;
  }
  *out = copy;
  return status;
}

// What the next run begins with moves from one trainer to another.
static void move_state(calx_trainer *from, calx_trainer *to)
{
  calx_value_free(to->weights);
  cx_train_free_metrics(to);
  to->weights = from->weights;
  to->metrics = from->metrics;
  to->n_metrics = from->n_metrics;
  to->metrics_capacity = from->metrics_capacity;
  to->epoch = from->epoch;
  to->global_step = from->global_step;
  to->batches_seen = from->batches_seen;
  to->batches_stepped = from->batches_stepped;
  from->weights = NULL;
  from->metrics = NULL;
  from->n_metrics = from->metrics_capacity = 0;
}

static calx_status *leave(calx_trainer *t, run_job *job)
{
  if (device_index() != 0) return NULL;
  CALX_TRY(copy_weights(t, &t->weights));
  for (size_t i = 0; i < t->n_metrics; i++) {
    calx_trainer_callback_metric(t, t->metrics[i].name);
  }
  move_state(t, &job->left);
  job->has_left = true;
  return calx_scope_take_error();
}

static void free_rank(calx_trainer *t)
{
  cx_train_close_loader(&t->train);
  cx_train_close_evaluation(t);
  cx_train_drop_rows(t);
  cx_train_results_free(&t->train_results);
  cx_train_results_free(&t->evaluation_results);
  for (size_t i = 0; i < t->n_optimizers; i++) {
    calx_lr_scheduler_free(t->optimizers[i].scheduler);
    calx_optimizer_free(t->optimizers[i].optimizer);
    cx_free(t->optimizers[i].monitor);
  }
  cx_free(t->optimizers);
  calx_module_free(t->model);
  cx_train_free_metrics(t);
  cx_free(t->callback_selves);
  cx_free(t->self);
}

static void report_metrics(const calx_trainer *t)
{
  if (!t->config.reports_metrics || !calx_trainer_is_global_zero(t)) return;
  char *report = calx_metrics_report();
  if (report != NULL) fputs(report, stderr);
  calx_string_free(report);
}

static calx_status *run_rank(int index, void *user)
{
  (void)index;
  run_job *job = user;
  const calx_trainer *from = job->trainer;
  calx_trainer t = { .config = from->config,
                     .callbacks = from->callbacks,
                     .n_callbacks = from->n_callbacks,
                     .loggers = from->loggers,
                     .n_loggers = from->n_loggers,
                     .module = job->module,
                     .data = job->data,
                     .asked = job->stage,
                     .stage = job->stage,
                     .epoch = from->epoch,
                     .global_step = from->global_step,
                     .batches_seen = from->batches_seen,
                     .batches_stepped = from->batches_stepped };
  calx_scope *scope = calx_scope_begin();
  calx_status *status = run_stage(&t, from);
  if (status == NULL) status = calx_scope_take_error();
  if (status != NULL && t.callback_selves != NULL) {
    cx_train_call(&t, CX_TRAIN_HOOK(on_exception, NOT));
  }
  if (status == NULL) status = leave(&t, job);
  if (t.callback_selves != NULL) {
    cx_train_call(&t, CX_TRAIN_HOOK(teardown, NOT));
  }
  status = cx_status_first(status, cx_train_finish_loggers(&t, status == NULL));
  report_metrics(&t);
  free_rank(&t);
  return cx_status_first(status, calx_scope_end(scope));
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

static calx_status *run(calx_trainer *t, const calx_lightning_module *module,
                        const calx_trainer_data *given, cx_train_stage stage)
{
  calx_trainer_data data;
  calx_lightning_module taken;
  CALX_TRY(take_module(module, &taken));
  CALX_TRY(cx_options_take("trainer", given, &data, sizeof data));
  CALX_TRY(check(t, &taken, &data, stage));
  CALX_TRY(make_room(t));
  bool single;
  CALX_TRY(is_single(t, &single));
  run_job job = {
    .trainer = t, .module = &taken, .data = &data, .stage = stage
  };
  const bool detected = cx_lazy_debug_on(CX_LAZY_DEBUG_ANOMALY);
  if (t->config.detect_anomaly) calx_set_detect_anomaly(true);
  calx_status *status =
      single ? run_rank(0, &job)
             : calx_launch(run_rank, &job, .devices = t->config.devices);
  calx_set_detect_anomaly(detected);
  if (job.has_left) move_state(&job.left, t);
  return status;
}

calx_status *calx_trainer_fit_with(calx_trainer *t,
                                   const calx_lightning_module *module,
                                   const calx_trainer_data *data)
{
  return run(t, module, data, CX_TRAIN_FITTING);
}

calx_status *calx_trainer_validate_with(calx_trainer *t,
                                        const calx_lightning_module *module,
                                        const calx_trainer_data *data)
{
  return run(t, module, data, CX_TRAIN_VALIDATING);
}

calx_status *calx_trainer_test_with(calx_trainer *t,
                                    const calx_lightning_module *module,
                                    const calx_trainer_data *data)
{
  return run(t, module, data, CX_TRAIN_TESTING);
}
