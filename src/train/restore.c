// train/restore: a run gets back what a checkpoint has of it.
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/loader.h"
#include "lazy/lazy.h"
#include "pjrt/pjrt.h"
#include "train/checkpoint.h"
#include "train/internal.h"

// ---- the model and its surroundings -----------------------------------------

// States of callbacks that this run has not.
static void report_unknown(const calx_trainer *t, const calx_value *states)
{
  cx_text names = { 0 };
  for (size_t i = 0; i < calx_value_count(states); i++) {
    const char *key = calx_value_key(states, i);
    bool known = key == NULL;
    for (size_t k = 0; k < t->n_callbacks && !known; k++) {
      const char *own = t->callbacks[k]->state_key;
      known = own != NULL && strcmp(own, key) == 0;
    }
    if (known) continue;
    cx_text_append(&names, names.size > 0 ? ", " : "");
    cx_train_put_quoted(&names, key);
  }
  if (names.size > 0 && calx_trainer_is_global_zero(t)) {
    cx_log(
        "Be aware that when using `ckpt_path`, callbacks used to create the "
        "checkpoint need to be provided during `Trainer` instantiation. Please "
        "add the following callbacks: [%s].",
        cx_text_str(&names));
  }
  cx_text_free(&names);
}

static void restore_callbacks(calx_trainer *t, calx_value *checkpoint)
{
  const calx_value *states = calx_value_get(checkpoint, "callbacks");
  if (states == NULL || t->asked != CX_TRAIN_FITTING) return;
  report_unknown(t, states);
  cx_train_call_callbacks(t, CX_TRAIN_HOOK(on_load_checkpoint, NOT),
                          checkpoint);
  for (size_t i = 0; i < t->n_callbacks; i++) {
    const calx_callback *c = t->callbacks[i];
    if (c->state_key == NULL || c->options.load_state_dict == NULL) continue;
    const calx_value *state = calx_value_get(states, c->state_key);
    if (state == NULL) continue;
    c->options.load_state_dict(t, t->callback_selves[i], state);
  }
}

static void restore_data_module(calx_trainer *t, const calx_value *checkpoint)
{
  const calx_lightning_data_module *d = t->data->datamodule;
  const calx_value *state = calx_value_get(checkpoint, CX_TRAIN_DATA_MODULE);
  if (d == NULL || d->load_state_dict == NULL || state == NULL) return;
  d->load_state_dict(t, t->data_self, state);
}

calx_status *cx_train_restore_model(calx_trainer *t, calx_value *checkpoint)
{
  cx_train_call_module(t, CX_TRAIN_HOOK(on_load_checkpoint, NOT), checkpoint);
  CALX_TRY(calx_scope_take_error());
  const cx_train_states states = { .model = t->model };
  CALX_TRY(cx_train_states_get(&states, true, checkpoint));
  restore_data_module(t, checkpoint);
  restore_callbacks(t, checkpoint);
  return calx_scope_take_error();
}

// ---- where training goes on -------------------------------------------------

static calx_status *check_epoch(const calx_trainer *t)
{
  const int64_t most = t->config.max_epochs;
  if (most == -1 || t->position.epoch <= most) return NULL;
  return cx_invalid(
      "You restored a checkpoint with current_epoch=%lld, but you have set "
      "Trainer(max_epochs=%lld).",
      (long long)t->position.epoch, (long long)most);
}

// In samples of this rank: another number of ranks, or another batch size, goes
// on at the same sample. Where a lower limit has no batch after it the epoch is
// over.
static calx_status *resume_epoch(calx_trainer *t, int64_t batches,
                                 int64_t samples)
{
  if (batches == 0 && samples == 0) return NULL;
  CALX_TRY(calx_loader_load_state(
      t->train.loader, (calx_loader_position){ .epoch = t->position.epoch,
                                               .samples = samples }));
  if (t->train.batches >= 0 && batches >= t->train.batches) {
    t->position.epoch++;
    return NULL;
  }
  t->resumes_epoch = true;
  t->position.batch = batches;
  t->position.samples = samples;
  return NULL;
}

static calx_status *restore_choices(const calx_value *checkpoint)
{
  enum { MOST = 1 << 20 };
  static int64_t empty;
  const calx_value *own = calx_value_get(checkpoint, "calx");
  calx_tensor *tensor =
      calx_value_as_tensor(calx_value_get(own, "kernel_choices"));
  if (tensor == NULL || calx_tensor_dtype(tensor) != CALX_I64) return NULL;
  const int64_t count = calx_tensor_numel(tensor);
  if (count > MOST) return NULL;
  int64_t *numbers =
      count > 0 ? cx_calloc((size_t)count, sizeof *numbers) : &empty;
  if (numbers == NULL) return cx_out_of_memory();
  calx_status *status =
      calx_tensor_read(tensor, numbers, (size_t)count * sizeof *numbers);
  if (status == NULL) status = cx_pjrt_choices_load(numbers, (size_t)count);
  if (numbers != &empty) cx_free(numbers);
  return status;
}

// The samples of this rank that are over, and how many of this run's batches
// they are. A file of Lightning's has batches alone.
static void find_position(const calx_trainer *t, const cx_train_progress *p,
                          const cx_train_own *own, int64_t *out_batches,
                          int64_t *out_samples)
{
  const calx_loader *l = t->train.loader;
  const int64_t ranks = t->train.is_shared_out ? calx_world_size() : 1;
  *out_batches = p->batch_idx;
  if (own->ranks > 0) {
    *out_samples = own->loader.samples / ranks;
    if (l->batch_size > 0) *out_batches = *out_samples / l->batch_size;
  } else if (p->batch_idx < l->batches) {
    *out_samples = p->batch_idx * l->batch_size;
  } else {
    *out_samples = p->batch_idx == l->batches ? l->samples : INT64_MAX;
  }
}

static calx_status *restore_position(calx_trainer *t,
                                     const calx_value *checkpoint)
{
  cx_train_progress p;
  cx_train_own own;
  bool is_ours;
  CALX_TRY(cx_train_loops_get(checkpoint, &p));
  CALX_TRY(cx_train_own_get(checkpoint, &own, &is_ours));
  t->position = (cx_train_position){ .epoch = p.epoch,
                                     .global_step = p.global_step,
                                     .batches_seen = p.batches_seen,
                                     .batches_stepped = p.batches_stepped };
  CALX_TRY(check_epoch(t));
  int64_t batches = 0, samples = 0;
  if (p.batch_idx > 0) find_position(t, &p, &own, &batches, &samples);
  CALX_TRY(resume_epoch(t, batches, samples));
  if (!is_ours) return NULL;
  cx_lazy_random_restore(calx_device_current(), own.seed, own.draws);
  return restore_choices(checkpoint);
}

calx_status *cx_train_restore_training(calx_trainer *t,
                                       const calx_value *checkpoint)
{
  cx_train_state_lists lists;
  CALX_TRY(cx_train_list_states(t, &lists));
  // The weights are restored, and callbacks may have changed them since.
  lists.states.model = NULL;
  calx_status *status = cx_train_states_get(&lists.states, false, checkpoint);
  cx_train_free_lists(&lists);
  return status != NULL ? status : restore_position(t, checkpoint);
}
