// train/save: what a checkpoint has of a run, and files of it.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "pjrt/pjrt.h"
#include "train/checkpoint.h"
#include "train/internal.h"

// ---- copies on the host -----------------------------------------------------

static calx_status *copy_value(const calx_value *v, calx_value **out);

static calx_status *copy_item(const calx_value *from, size_t i, calx_value *to)
{
  calx_value *item;
  CALX_TRY(copy_value(calx_value_item(from, i), &item));
  if (calx_value_kind(from) != CALX_KIND_DICT) {
    return calx_value_append(to, item);
  }
  const char *key = calx_value_key(from, i);
  return key != NULL
             ? calx_value_set(to, key, item)
             : calx_value_set_at(to, calx_value_key_number(from, i), item);
}

static calx_status *copy_value(const calx_value *v, calx_value **out)
{
  const calx_kind kind = calx_value_kind(v);
  switch (kind) {
    case CALX_KIND_NONE: *out = calx_value_none(); break;
    case CALX_KIND_BOOL: *out = calx_value_bool(calx_value_as_bool(v)); break;
    case CALX_KIND_INT: *out = calx_value_int(calx_value_as_int(v)); break;
    case CALX_KIND_FLOAT:
      *out = calx_value_float(calx_value_as_float(v));
      break;
    case CALX_KIND_STRING:
      *out = calx_value_string(calx_value_as_string(v));
      break;
    case CALX_KIND_BYTES:
      *out = calx_value_bytes(calx_value_as_string(v), calx_value_count(v));
      break;
    case CALX_KIND_TENSOR:
      *out = calx_value_tensor(calx_cpu(calx_value_as_tensor(v)));
      break;
    default: *out = calx_value_container(kind);
  }
  if (*out == NULL) return cx_out_of_memory();
  const bool is_container = kind >= CALX_KIND_LIST;
  for (size_t i = 0; is_container && i < calx_value_count(v); i++) {
    calx_status *status = copy_item(v, i, *out);
    if (status == NULL) continue;
    calx_value_free(*out);
    *out = NULL;
    return status;
  }
  return NULL;
}

// ---- the parts --------------------------------------------------------------

calx_status *cx_train_list_states(const calx_trainer *t,
                                  cx_train_state_lists *out)
{
  const size_t n = t->n_optimizers;
  *out =
      (cx_train_state_lists){ .optimizers = cx_calloc(n + 1, sizeof(void *)),
                              .schedulers = cx_calloc(n + 1, sizeof(void *)) };
  if (out->optimizers == NULL || out->schedulers == NULL) {
    cx_free(out->optimizers);
    cx_free(out->schedulers);
    return cx_out_of_memory();
  }
  size_t schedulers = 0;
  for (size_t i = 0; i < n; i++) {
    out->optimizers[i] = t->optimizers[i].optimizer;
    if (t->optimizers[i].scheduler == NULL) continue;
    out->schedulers[schedulers++] = t->optimizers[i].scheduler;
  }
  out->states = (cx_train_states){ .model = t->model,
                                   .optimizers = out->optimizers,
                                   .n_optimizers = n,
                                   .schedulers = out->schedulers,
                                   .n_schedulers = schedulers };
  return NULL;
}

void cx_train_free_lists(cx_train_state_lists *l)
{
  cx_free(l->optimizers);
  cx_free(l->schedulers);
}

static cx_train_progress progress_of(const calx_trainer *t)
{
  const cx_train_position *p = &t->position;
  return (cx_train_progress){ .epoch = p->epoch,
                              .batch_idx = p->batch,
                              .is_epoch_end = p->is_epoch_end,
                              .global_step = p->global_step,
                              .batches_seen = p->batches_seen,
                              .batches_stepped = p->batches_stepped,
                              .accumulate = t->accumulate,
                              .is_manual = t->module->manual_optimization };
}

// Ranks that share the samples are equally far.
static int64_t sharing_ranks(const calx_trainer *t)
{
  return t->train.is_shared_out ? calx_world_size() : 1;
}

// The kernels that were measured, so that a run that goes on elsewhere runs the
// same ones.
static calx_status *put_choices(calx_value *checkpoint)
{
  int64_t *numbers;
  size_t count;
  CALX_TRY(cx_pjrt_choices_save(&numbers, &count));
  calx_tensor *tensor = calx_host_tensor(
      numbers, CALX_I64, calx_dims_of((const int64_t[]){ (int64_t)count }, 1));
  cx_free(numbers);
  return calx_value_set(calx_value_get(checkpoint, "calx"), "kernel_choices",
                        calx_value_tensor(tensor));
}

static calx_status *put_own(const calx_trainer *t, calx_value *checkpoint)
{
  cx_train_own own = { .loader = { .epoch = t->position.epoch,
                                   .samples =
                                       t->position.samples * sharing_ranks(t) },
                       .ranks = calx_world_size() };
  cx_lazy_random_state(calx_device_current(), &own.seed, &own.draws);
  CALX_TRY(cx_train_own_put(&own, checkpoint));
  return put_choices(checkpoint);
}

static calx_status *put_states(const calx_trainer *t, bool weights_only,
                               calx_value *checkpoint)
{
  cx_train_state_lists lists;
  CALX_TRY(cx_train_list_states(t, &lists));
  calx_status *status =
      cx_train_states_put(&lists.states, weights_only, checkpoint);
  cx_train_free_lists(&lists);
  return status;
}

static calx_status *put_hyperparameters(const calx_trainer *t,
                                        calx_value *checkpoint)
{
  if (t->hyperparameters == NULL) return NULL;
  calx_value *copy;
  CALX_TRY(copy_value(t->hyperparameters, &copy));
  CALX_TRY(calx_value_set(checkpoint, "hyper_parameters", copy));
  return calx_value_set(checkpoint, "hparams_name",
                        calx_value_string("kwargs"));
}

static calx_status *put_all(calx_trainer *t, bool weights_only,
                            calx_value *checkpoint)
{
  const cx_train_progress progress = progress_of(t);
  CALX_TRY(cx_train_loops_put(&progress, checkpoint));
  CALX_TRY(put_states(t, weights_only, checkpoint));
  CALX_TRY(put_hyperparameters(t, checkpoint));
  if (!weights_only) CALX_TRY(put_own(t, checkpoint));
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

calx_status *cx_train_dump_host(calx_trainer *t, bool weights_only,
                                calx_value **out)
{
  calx_value *dumped;
  *out = NULL;
  CALX_TRY(cx_train_dump(t, weights_only, &dumped));
  calx_status *status = NULL;
  if (cx_train_device_index(t) == 0) status = copy_value(dumped, out);
  calx_value_free(dumped);
  return cx_status_first(status, calx_scope_take_error());
}

// ---- files ------------------------------------------------------------------

static calx_status *make_folder_of(const char *path)
{
  const char *slash = strrchr(path, '/');
  if (slash == NULL || slash == path) return NULL;
  char *folder = cx_strndup(path, (size_t)(slash - path));
  if (folder == NULL) return cx_out_of_memory();
  calx_status *status = cx_folder_make(folder, 0777);
  cx_free(folder);
  return status;
}

static bool is_safetensors(const char *path)
{
  static const char end[] = ".safetensors";
  const size_t length = strlen(path), n = sizeof end - 1;
  return length >= n && strcmp(path + length - n, end) == 0;
}

// The first rank of all writes.
static calx_status *write_file(const calx_value *checkpoint, const char *path)
{
  if (calx_global_ordinal() != 0) return NULL;
  CALX_TRY(make_folder_of(path));
  if (is_safetensors(path)) {
    return calx_save(calx_value_get(checkpoint, "state_dict"), path);
  }
  return calx_save(checkpoint, path, .format = CALX_FORMAT_PT);
}

calx_status *calx_trainer_save_checkpoint_with(
    calx_trainer *t, const char *path, const calx_trainer_save_options *given)
{
  calx_trainer_save_options o;
  CALX_TRY(cx_options_take("save_checkpoint", given, &o, sizeof o));
  if (t == NULL || path == NULL) {
    return cx_invalid("save_checkpoint: the %s is NULL",
                      t == NULL ? "trainer" : "path");
  }
  if (t->model == NULL && t->checkpoint == NULL) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "save_checkpoint: the trainer has run nothing yet");
  }
  if (t->model == NULL) return write_file(t->checkpoint, path);
  calx_value *checkpoint;
  CALX_TRY(cx_train_dump(t, o.weights_only, &checkpoint));
  calx_status *status = write_file(checkpoint, path);
  calx_value_free(checkpoint);
  return status;
}
