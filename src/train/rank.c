// train/rank: a run of one rank: model, optimisers and data, then the loops. It
// works on a copy of the trainer, which does not change meanwhile.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "calx/debug.h"
#include "lazy/lazy.h"
#include "train/internal.h"

// ---- what is there ----------------------------------------------------------

static calx_status *check_nodes(const calx_trainer *t)
{
  const int wanted = t->config.num_nodes, there = calx_host_count();
  if (wanted == 0 || wanted == there) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "`num_nodes=%d` was asked for, and the job has %d: start it "
                  "on as many hosts, by `calx run --hosts a,b`, mpirun or srun",
                  wanted, there);
}

// ---- data -------------------------------------------------------------------

static calx_status *prepare(calx_prepare_data_fn *fn, void *user)
{
  return fn != NULL ? fn(user) : NULL;
}

// Once on each host; the other ranks wait.
static calx_status *prepare_data(const calx_trainer *t)
{
  const calx_lightning_data_module *d = t->data->datamodule;
  if (t->module->prepare_data == NULL &&
      (d == NULL || d->prepare_data == NULL)) {
    return NULL;
  }
  calx_status *status = NULL;
  if (calx_local_ordinal() == 0) {
    if (d != NULL) status = prepare(d->prepare_data, d->user);
    if (status == NULL) {
      status = prepare(t->module->prepare_data, t->module->user);
    }
  }
  if (status != NULL || calx_world_size() == 1) return status;
  return calx_rendezvous("trainer: prepare_data", NULL, 0, NULL, NULL);
}

static void call_data(calx_trainer *t, calx_trainer_hook_fn *fn)
{
  if (t->data_self != NULL && fn != NULL) fn(t, t->data_self);
}

static calx_status *make_selves(calx_trainer *t)
{
  const calx_lightning_data_module *d = t->data->datamodule;
  t->self = cx_train_self_new(t->module->self_size);
  t->callback_selves = cx_calloc(t->n_callbacks + 1, sizeof(void *));
  if (t->self == NULL || t->callback_selves == NULL) return cx_out_of_memory();
  if (d != NULL) {
    t->data_self = cx_train_self_new(d->self_size);
    if (t->data_self == NULL) return cx_out_of_memory();
  }
  for (size_t i = 0; i < t->n_callbacks; i++) {
    CALX_TRY(cx_train_callback_self(t->callbacks[i], cx_train_device_index(t),
                                    &t->callback_selves[i]));
  }
  return NULL;
}

// ---- the model --------------------------------------------------------------

static void count(void *user, const char *path, calx_entry_kind kind,
                  calx_tensor *parameter)
{
  (void)path, (void)kind, (void)parameter;
  ++*(int64_t *)user;
}

static int64_t count_parameters(calx_module *model)
{
  int64_t n = 0;
  calx_module_parameters(model, count, &n);
  return n;
}

// Ties that a hook or a conversion broke would train as two parameters.
static void report_layers(const calx_trainer *t, int64_t before)
{
  const int64_t after = count_parameters(t->model);
  if (after <= before || !calx_trainer_is_global_zero(t)) return;
  cx_log(
      "The model layers do not match after moving to the target device. If your "
      "model employs weight sharing on TPU, please tie your weights using the "
      "`on_post_move_to_device` model hook.\nLayer count: [Before: %lld After: "
      "%lld]",
      (long long)before, (long long)after);
}

static calx_status *make_model(calx_trainer *t)
{
  if (t->config.seed != 0 || calx_world_size() > 1) {
    calx_manual_seed(t->config.seed);
  }
  t->model = t->module->configure_model(t, t->self);
  CALX_TRY(
      cx_train_self_check(t->self, t->module->self_size, "configure_model"));
  if (t->model == NULL) {
    CALX_TRY(calx_scope_take_error());
    return cx_invalid("`configure_model()` returned NULL");
  }
  CALX_TRY(calx_module_error(t->model));
  const int64_t before = count_parameters(t->model);
  if (t->config.dtype != CALX_DTYPE_DEFAULT) {
    calx_module_to(t->model, t->config.dtype);
  }
  cx_train_call(t, CX_TRAIN_HOOK(on_post_move_to_device, NOT));
  report_layers(t, before);
  return calx_scope_take_error();
}

// A file's checkpoint, or the weights that the last run left.
static calx_status *load_model(calx_trainer *t, const cx_train_job *job,
                               calx_value *loaded)
{
  const calx_value *left = job->trainer->checkpoint;
  if (loaded != NULL) {
    CALX_TRY(cx_train_restore_model(t, loaded));
  } else if (left != NULL) {
    CALX_TRY(calx_module_load_state_dict(t->model,
                                         calx_value_get(left, "state_dict")));
  }
  if (calx_world_size() > 1) calx_broadcast_master_param(t->model);
  return calx_scope_take_error();
}

static calx_status *make_optimizers(calx_trainer *t)
{
  if (t->asked != CX_TRAIN_FITTING) return NULL;
  t->module->configure_optimizers(t, t->self);
  calx_at_(&t->site);
  CALX_TRY(calx_scope_take_error());
  if (t->module->manual_optimization || t->n_optimizers == 1) return NULL;
  if (t->n_optimizers == 0) {
    return cx_invalid(
        "`configure_optimizers()` added no optimiser: "
        "calx_trainer_add_optimizer() takes one");
  }
  return cx_invalid(
      "Training with multiple optimizers is only supported with manual "
      "optimization. `configure_optimizers()` added %zu. Set "
      "`.manual_optimization = true`, then access your optimizers in "
      "`training_step` with `calx_trainer_optimizer(trainer, i)`",
      t->n_optimizers);
}

static bool has_val_loaders(const calx_trainer_data *d)
{
  return d->val_dataloader != NULL || d->n_dataloaders > 0 ||
         (d->datamodule != NULL && d->datamodule->val_dataloader != NULL);
}

static calx_status *open_stages(calx_trainer *t)
{
  if (t->asked == CX_TRAIN_FITTING) {
    CALX_TRY(cx_train_open_training(t));
    if (t->module->validation_step == NULL) return NULL;
  }
  return cx_train_open_evaluation(t);
}

static calx_status *open_loaders(calx_trainer *t)
{
  CALX_TRY(open_stages(t));
  cx_train_report_data(t, has_val_loaders(t->data));
  return NULL;
}

// ---- the run ----------------------------------------------------------------

static calx_status *run_loops(calx_trainer *t, cx_train_job *job)
{
  if (t->asked == CX_TRAIN_FITTING) return cx_train_fit(t);
  if (!cx_train_has_evaluation(t)) return NULL;
  CALX_TRY(cx_train_evaluate(t));
  if (t->asked == CX_TRAIN_PREDICTING) {
    calx_value *joined = NULL;
    CALX_TRY(cx_train_join_predictions(t, &joined));
    if (joined != NULL) job->predictions = joined;
    return NULL;
  }
  if (calx_trainer_is_global_zero(t) && !t->data->not_verbose) {
    cx_train_print_results(t);
  }
  return NULL;
}

// What callbacks add to the optimisers in on_fit_start a checkpoint may have a
// state of.
static calx_status *restore_training(calx_trainer *t, const calx_value *loaded)
{
  if (t->asked != CX_TRAIN_FITTING) return NULL;
  cx_train_call(t, CX_TRAIN_HOOK(on_fit_start, NOT));
  CALX_TRY(cx_train_log_hyperparameters(t));
  CALX_TRY(calx_scope_take_error());
  return loaded != NULL ? cx_train_restore_training(t, loaded) : NULL;
}

static calx_status *run_from(calx_trainer *t, cx_train_job *job,
                             calx_value *loaded)
{
  CALX_TRY(make_model(t));
  calx_at_(&t->site);
  CALX_TRY(load_model(t, job, loaded));
  CALX_TRY(open_loaders(t));  // schedules are as long as the data say
  CALX_TRY(make_optimizers(t));
  CALX_TRY(restore_training(t, loaded));
  if (loaded != NULL) cx_train_report_restored(t);
  return run_loops(t, job);
}

static calx_status *run_stage(calx_trainer *t, cx_train_job *job)
{
  const calx_lightning_data_module *d = t->data->datamodule;
  calx_at_(&t->site);
  CALX_TRY(cx_train_check_accelerator(t));
  cx_train_announce(t);
  CALX_TRY(check_nodes(t));
  CALX_TRY(prepare_data(t));
  if (d != NULL) {
    call_data(t, d->setup);
    CALX_TRY(cx_train_self_check(t->data_self, d->self_size, "setup"));
  }
  cx_train_call(t, CX_TRAIN_HOOK(setup, NOT));
  CALX_TRY(calx_scope_take_error());
  calx_value *loaded = NULL;
  CALX_TRY(cx_train_find_checkpoint(t, &loaded));
  calx_status *status = run_from(t, job, loaded);
  calx_value_free(loaded);
  return status;
}

// ---- what a run leaves ------------------------------------------------------

void cx_train_move_state(calx_trainer *from, calx_trainer *to)
{
  cx_train_free_metrics(to);
  if (from->checkpoint != NULL) {
    calx_value_free(to->checkpoint);
    to->checkpoint = from->checkpoint;
  }
  to->metrics = from->metrics;
  to->n_metrics = from->n_metrics;
  to->metrics_capacity = from->metrics_capacity;
  to->position = from->position;
  from->checkpoint = NULL;
  from->metrics = NULL;
  from->n_metrics = from->metrics_capacity = 0;
}

// An evaluation changes no weights: what the last fit left stays, unless a
// checkpoint gave others.
static bool has_other_weights(const calx_trainer *t, const cx_train_job *job)
{
  return t->asked == CX_TRAIN_FITTING || t->ckpt_path != NULL ||
         job->trainer->checkpoint == NULL;
}

// All ranks call it: states that are spread over them are joined.
static calx_status *leave(calx_trainer *t, cx_train_job *job)
{
  if (has_other_weights(t, job)) {
    CALX_TRY(
        cx_train_dump_host(t, t->asked != CX_TRAIN_FITTING, &t->checkpoint));
  }
  if (cx_train_device_index(t) != 0) return NULL;
  for (size_t i = 0; i < t->n_metrics; i++) {
    calx_trainer_callback_metric(t, t->metrics[i].name);
  }
  CALX_TRY(cx_train_return_write(t, job));
  cx_train_move_state(t, &job->left);
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
  cx_train_free_predictions(t);
  cx_train_set_output(t, NULL);
  cx_train_bar_free(t);
  cx_train_free_signals(t);
  cx_train_free_optimizers(t);
  calx_module_free(t->model);
  calx_value_free(t->hyperparameters);
  cx_train_free_metrics(t);
  cx_train_free_own_metrics(t);
  calx_value_free(t->checkpoint);
  cx_free(t->ckpt_path);
  cx_free(t->source);
  cx_free(t->callback_selves);
  cx_free(t->data_self);
  cx_free(t->self);
}

static void report_metrics(const calx_trainer *t)
{
  if (!t->config.is_debug || !calx_trainer_is_global_zero(t)) return;
  char *report = calx_metrics_report();
  if (report != NULL) fputs(report, stderr);
  calx_string_free(report);
}

static void begin_rank(const cx_train_job *job, calx_trainer *out)
{
  const calx_trainer *from = job->trainer;
  *out = (calx_trainer){ .config = from->config,
                         .default_root_dir = from->default_root_dir,
                         .callbacks = from->callbacks,
                         .n_callbacks = from->n_callbacks,
                         .loggers = from->loggers,
                         .n_loggers = from->n_loggers,
                         .module = job->module,
                         .data = job->data,
                         .site = job->site,
                         .asked = job->stage,
                         .stage = job->stage,
                         .is_alone = job->is_alone,
                         .accumulate = from->config.accumulate,
                         .position = from->position };
}

static void call_exception(calx_trainer *t, const calx_status *status)
{
  t->exception = status;
  cx_train_call(t, CX_TRAIN_HOOK(on_exception, NOT));
  if (t->data->datamodule != NULL) {
    call_data(t, t->data->datamodule->on_exception);
  }
}

// Who is lost the launcher says; how far training was only the others can. Two
// of them say it, as the first may be the one that is lost.
static void report_lost(const calx_trainer *t, const calx_status *status)
{
  if (calx_status_code(status) != CALX_ABORTED || calx_process_count() == 1 ||
      calx_global_ordinal() > 1) {
    return;
  }
  cx_log("the run ends at epoch %lld, global step %lld: %s",
         (long long)t->position.epoch, (long long)t->position.global_step,
         calx_status_message(status));
}

calx_status *cx_train_run_rank(int index, void *user)
{
  (void)index;
  cx_train_job *job = user;
  calx_trainer t;
  begin_rank(job, &t);
  calx_scope *scope = calx_scope_begin();
  calx_status *status = make_selves(&t);
  const bool has_selves = status == NULL;
  if (status == NULL) status = cx_train_profile_new(&t);
  if (status == NULL) status = run_stage(&t, job);
  if (status == NULL) status = calx_scope_take_error();
  if (status != NULL) report_lost(&t, status);
  if (status != NULL && has_selves) call_exception(&t, status);
  if (status == NULL) status = leave(&t, job);
  if (has_selves && t.data->datamodule != NULL) {
    call_data(&t, t.data->datamodule->teardown);
  }
  if (has_selves) cx_train_call(&t, CX_TRAIN_HOOK(teardown, NOT));
  status = cx_status_first(status, cx_train_finish_loggers(&t, status == NULL));
  cx_train_profile_report(&t);
  report_metrics(&t);
  free_rank(&t);
  return cx_status_first(status, calx_scope_end(scope));
}
