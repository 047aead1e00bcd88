// train/save: what a checkpoint has of a run, how it becomes a file, and how a
// run gets it back.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "io/rank.h"
#include "io/value.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"
#include "train/internal.h"

// Of a data module, as of a class of Lightning's without a name of its own.
#define DATA_MODULE "LightningDataModule"

// ---- what goes in -----------------------------------------------------------

// The model's state dict on the host.
static calx_status *put_weights(calx_trainer *t, calx_value *out)
{
  calx_value *dict, *copy = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(out, "state_dict", copy));
  CALX_TRY(calx_module_state_dict(t->model, &dict));
  calx_status *status = NULL;
  for (size_t i = 0; status == NULL && i < calx_value_count(dict); i++) {
    calx_tensor *tensor = calx_value_as_tensor(calx_value_item(dict, i));
    status = calx_value_set(copy, calx_value_key(dict, i),
                            calx_value_tensor(calx_cpu(tensor)));
  }
  calx_value_free(dict);
  return cx_status_first(status, calx_scope_take_error());
}

// A state that is empty is left out.
static calx_status *put_state(calx_trainer *t, const char *key,
                              calx_trainer_state_dict_fn *state_dict,
                              void *self, calx_value *out)
{
  calx_value *state = calx_value_container(CALX_KIND_DICT);
  if (state == NULL) return cx_out_of_memory();
  state_dict(t, self, state);
  if (calx_value_count(state) > 0) return calx_value_set(out, key, state);
  calx_value_free(state);
  return NULL;
}

static calx_status *put_callbacks(calx_trainer *t, calx_value *out)
{
  calx_value *states = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(out, "callbacks", states));
  for (size_t i = 0; i < t->n_callbacks; i++) {
    const calx_callback *c = t->callbacks[i];
    if (c->options.state_dict == NULL) continue;
    CALX_TRY(put_state(t, c->state_key, c->options.state_dict,
                       t->callback_selves[i], states));
  }
  return NULL;
}

static calx_status *put_data_module(calx_trainer *t, calx_value *out)
{
  const calx_lightning_data_module *d = t->data->datamodule;
  if (d == NULL || d->state_dict == NULL) return NULL;
  return put_state(t, DATA_MODULE, d->state_dict, t->data_self, out);
}

static calx_status *put_all(calx_trainer *t, bool weights_only, calx_value *out)
{
  const cx_train_hook *hook = CX_TRAIN_HOOK(on_save_checkpoint, NOT);
  CALX_TRY(put_weights(t, out));
  if (!weights_only) CALX_TRY(put_callbacks(t, out));
  CALX_TRY(put_data_module(t, out));
  if (!weights_only) cx_train_call_callbacks(t, hook, out);
  cx_train_call_module(t, hook, out);
  return calx_scope_take_error();
}

calx_status *cx_train_dump(calx_trainer *t, bool weights_only, calx_value **out)
{
  *out = calx_value_container(CALX_KIND_DICT);
  if (*out == NULL) return cx_out_of_memory();
  calx_status *status = put_all(t, weights_only, *out);
  if (status == NULL) return NULL;
  calx_value_free(*out);
  *out = NULL;
  return status;
}

// What is spread over the ranks can't be joined where one of them has failed. A
// signal ends all of them after the same batch.
bool cx_train_can_save(const calx_trainer *t)
{
  if (t->model == NULL || t->config.fast_dev_run > 0) return false;
  if (calx_world_size() == 1 ||
      calx_status_code(t->exception) == CALX_CANCELLED) {
    return true;
  }
  for (size_t i = 0; i < t->n_optimizers; i++) {
    const calx_optimizer *o = t->optimizers[i].optimizer;
    if (o->sharded || (o->inner != NULL && o->inner->sharded)) return false;
  }
  return true;
}

// ---- files ------------------------------------------------------------------

static calx_status *make_folder(const char *path)
{
  const char *slash = strrchr(path, '/');
  if (slash == NULL || slash == path) return NULL;
  char *folder = cx_strndup(path, (size_t)(slash - path));
  if (folder == NULL) return cx_out_of_memory();
  calx_status *status = cx_folder_make(folder, 0777);
  cx_free(folder);
  return status;
}

static bool has_weights_alone(const char *path)
{
  const char *end = strrchr(path, '.');
  return end != NULL && strcmp(end, ".safetensors") == 0;
}

// By the first rank of all.
static calx_status *write_file(const calx_value *checkpoint, const char *path)
{
  if (cx_io_rank() != 0) return NULL;
  CALX_TRY(make_folder(path));
  if (has_weights_alone(path)) {
    return calx_save(calx_value_get(checkpoint, "state_dict"), path);
  }
  return calx_save(checkpoint, path, .format = CALX_FORMAT_PT);
}

static calx_status *save_now(calx_trainer *t, const char *path,
                             bool weights_only)
{
  calx_value *checkpoint;
  calx_scope *scope = calx_scope_begin();
  calx_status *status = cx_train_dump(t, weights_only, &checkpoint);
  if (status == NULL) {
    t->computed = t->position;
    status = write_file(checkpoint, path);
    calx_value_free(checkpoint);
  }
  return cx_status_first(status, calx_scope_end(scope));
}

// What only a fit needs is taken out meanwhile.
static calx_status *save_left(calx_value *checkpoint, const char *path,
                              bool weights_only)
{
  static const char *const keys[] = { "callbacks", "optimizer_states",
                                      "lr_schedulers" };
  enum { KEYS = sizeof keys / sizeof *keys };
  calx_value *taken[KEYS] = { NULL };
  for (size_t i = 0; i < KEYS && weights_only; i++) {
    taken[i] = calx_value_get(checkpoint, keys[i]);
    cx_io_take_back(checkpoint, taken[i]);
  }
  calx_status *status = write_file(checkpoint, path);
  for (size_t i = 0; i < KEYS; i++) {
    if (taken[i] == NULL) continue;
    status =
        cx_status_first(status, calx_value_set(checkpoint, keys[i], taken[i]));
  }
  return status;
}

calx_status *calx_trainer_save_checkpoint_with(
    calx_trainer *t, const char *path, const calx_trainer_save_options *options)
{
  calx_trainer_save_options o;
  CALX_TRY(cx_options_take("trainer_save_checkpoint", options, &o, sizeof o));
  if (t == NULL || path == NULL || *path == '\0') {
    return cx_invalid("trainer_save_checkpoint: the %s",
                      t == NULL ? "trainer is NULL" : "file has no name");
  }
  if (t->model == NULL && t->checkpoint == NULL) {
    return cx_error(
        CALX_FAILED_PRECONDITION,
        "Saving a checkpoint is only possible if a model is attached to the "
        "Trainer. Did you call `Trainer.save_checkpoint()` before calling "
        "`Trainer.{fit,validate,test,predict}`?");
  }
  const bool weights_only = o.weights_only || has_weights_alone(path);
  if (t->model == NULL) return save_left(t->checkpoint, path, weights_only);
  cx_train_profile_begin(t, NULL, "save_checkpoint");
  calx_status *status = save_now(t, path, weights_only);
  cx_train_profile_end(t);
  return status;
}

// ---- what comes back --------------------------------------------------------

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
  const calx_value *state = calx_value_get(checkpoint, DATA_MODULE);
  if (d == NULL || d->load_state_dict == NULL || state == NULL) return;
  d->load_state_dict(t, t->data_self, state);
}

calx_status *cx_train_restore_model(calx_trainer *t, calx_value *checkpoint)
{
  cx_train_call_module(t, CX_TRAIN_HOOK(on_load_checkpoint, NOT), checkpoint);
  CALX_TRY(calx_scope_take_error());
  CALX_TRY(calx_module_load_state_dict(
      t->model, calx_value_get(checkpoint, "state_dict")));
  restore_data_module(t, checkpoint);
  restore_callbacks(t, checkpoint);
  return calx_scope_take_error();
}

calx_status *cx_train_restore_training(calx_trainer *t,
                                       const calx_value *checkpoint)
{
  (void)t, (void)checkpoint;
  return NULL;
}
