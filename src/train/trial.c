// train/trial: some steps of training that leave nothing behind, for tuners.
//
// What the steps change is copied to the host before and loaded after: on the
// device it would take the memory that a batch size is tried with.
#include "train/trial.h"

#include "base/alloc.h"
#include "data/loader.h"
#include "lazy/lazy.h"

// ---- what is kept -----------------------------------------------------------

typedef struct trial_state {
  calx_value *weights;
  calx_value **optimizers;         // of each
  calx_lr_scheduler **schedulers;  // taken from each
  uint64_t seed, draws;
  cx_train_position position, computed;
  cx_train_results results;
  size_t n_callbacks, n_loggers;
  int64_t batch_size, accumulate;
  bool should_stop, skip_epoch;
} trial_state;

// Takes the value, whose tensors are on the device.
static calx_status *fetch(calx_status *status, calx_value *from,
                          calx_value **out)
{
  if (status == NULL) status = cx_train_copy_value(from, out);
  calx_value_free(from);
  return cx_status_first(status, cx_status_copy(calx_scope_error()));
}

static calx_status *copy_states(calx_trainer *t, trial_state *s)
{
  calx_value *dict = NULL;
  calx_status *status = calx_module_state_dict(t->model, &dict);
  CALX_TRY(fetch(status, dict, &s->weights));
  for (size_t i = 0; i < t->n_optimizers; i++) {
    dict = NULL;
    status = calx_optimizer_state_dict(t->optimizers[i].optimizer, &dict);
    CALX_TRY(fetch(status, dict, &s->optimizers[i]));
  }
  return NULL;
}

static calx_status *keep(calx_trainer *t, trial_state *s)
{
  *s = (trial_state){ .position = t->position,
                      .computed = t->computed,
                      .results = t->train_results,
                      .n_callbacks = t->n_callbacks,
                      .n_loggers = t->n_loggers,
                      .batch_size = t->batch_size,
                      .accumulate = t->accumulate,
                      .should_stop = t->should_stop,
                      .skip_epoch = t->skip_epoch };
  s->optimizers = cx_calloc(t->n_optimizers + 1, sizeof *s->optimizers);
  s->schedulers = cx_calloc(t->n_optimizers + 1, sizeof *s->schedulers);
  if (s->optimizers == NULL || s->schedulers == NULL) {
    return cx_out_of_memory();
  }
  cx_lazy_random_state(calx_device_current(), &s->seed, &s->draws);
  return copy_states(t, s);
}

static void free_state(const calx_trainer *t, trial_state *s)
{
  for (size_t i = 0; s->optimizers != NULL && i < t->n_optimizers; i++) {
    calx_value_free(s->optimizers[i]);
  }
  calx_value_free(s->weights);
  cx_free(s->optimizers);
  cx_free(s->schedulers);
}

static void set_apart(calx_trainer *t, trial_state *s)
{
  t->n_callbacks = t->n_loggers = 0;
  t->train_results = (cx_train_results){ 0 };
  for (size_t i = 0; i < t->n_optimizers; i++) {
    s->schedulers[i] = t->optimizers[i].scheduler;
    t->optimizers[i].scheduler = NULL;
  }
}

static calx_status *put_back(calx_trainer *t, const trial_state *s)
{
  cx_train_results_drop(&t->train_results);
  cx_train_results_free(&t->train_results);
  t->position = s->position;
  t->computed = s->computed;
  t->train_results = s->results;
  t->n_callbacks = s->n_callbacks;
  t->n_loggers = s->n_loggers;
  t->batch_size = s->batch_size;
  t->accumulate = s->accumulate;
  t->should_stop = s->should_stop;
  t->skip_epoch = s->skip_epoch;
  cx_lazy_random_restore(calx_device_current(), s->seed, s->draws);
  calx_status *status = calx_module_load_state_dict(t->model, s->weights);
  for (size_t i = 0; i < t->n_optimizers; i++) {
    cx_train_optimizer *o = &t->optimizers[i];
    o->scheduler = s->schedulers[i];
    calx_optimizer_zero_grad(o->optimizer);
    status = cx_status_first(
        status, calx_optimizer_load_state_dict(o->optimizer, s->optimizers[i]));
  }
  return status;
}

// ---- the steps --------------------------------------------------------------

static bool is_stepping(const calx_trainer *t, int64_t i, bool is_last)
{
  return t->module->manual_optimization || is_last ||
         (i + 1) % t->accumulate == 0;
}

static calx_status *run_batch(calx_trainer *t, const cx_train_trial *trial,
                              const calx_batch *given, int64_t i, bool is_last,
                              bool *out_stepped, bool *out_goes_on)
{
  calx_scope *scope = calx_scope_begin();
  calx_batch batch;
  cx_train_receive(t, given, &batch);
  t->batch_size = batch.size;
  cx_train_call_batch(t, CX_TRAIN_HOOK(on_train_batch_start, STEP), &batch, i);
  if (trial->before != NULL && is_stepping(t, i, is_last)) {
    trial->before(t, trial->user);
  }
  *out_stepped = cx_train_step(t, &batch, i, is_last);
  calx_sync(t->output);
  cx_train_call_batch(t, CX_TRAIN_HOOK(on_train_batch_end, STEP), &batch, i);
  if (*out_stepped && trial->after != NULL && calx_scope_error() == NULL) {
    *out_goes_on = trial->after(t, trial->user);
  }
  cx_train_set_output(t, NULL);
  cx_train_results_drop(&t->train_results);
  return calx_scope_end(scope);
}

// Steps of one epoch, or as many as are left.
static calx_status *run_epoch(calx_trainer *t, const cx_train_trial *trial,
                              cx_train_loader *from, int64_t *left)
{
  calx_batch batch;
  bool goes_on = true;
  const int64_t before = *left;
  calx_loader_set_epoch(from->loader, t->position.epoch);
  cx_train_call(t, CX_TRAIN_HOOK(on_train_epoch_start, EPOCH));
  for (int64_t i = 0; goes_on && *left > 0 && i != from->batches; i++) {
    bool stepped = false;
    if (!calx_loader_next(from->loader, &batch)) break;
    CALX_TRY(run_batch(t, trial, &batch, i, i + 1 == from->batches, &stepped,
                       &goes_on));
    *left -= stepped;
  }
  calx_loader_end_epoch(from->loader);
  if (!goes_on || *left == before) *left = 0;
  t->position.epoch++;
  return calx_scope_take_error();
}

static calx_status *run_steps(calx_trainer *t, const cx_train_trial *trial)
{
  cx_train_loader from;
  int64_t left = trial->steps;
  calx_status *status = cx_train_reopen_training(t, trial->batch_size, &from);
  if (status == NULL) {
    from.loader->per_execution = 1;
    cx_train_call(t, CX_TRAIN_HOOK(on_train_start, EPOCH));
    status = calx_scope_take_error();
  }
  while (status == NULL && left > 0) {
    calx_scope *scope = calx_scope_begin();
    status = run_epoch(t, trial, &from, &left);
    status = cx_status_first(status, calx_scope_end(scope));
  }
  cx_train_close_loader(&from);
  return status;
}

calx_status *cx_train_try(calx_trainer *t, const cx_train_trial *trial)
{
  trial_state s;
  calx_status *status = keep(t, &s);
  if (status == NULL) {
    set_apart(t, &s);
    status = run_steps(t, trial);
    status = cx_status_first(status, put_back(t, &s));
  }
  free_state(t, &s);
  return status;
}
