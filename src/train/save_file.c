// train/save_file: a run's checkpoint on the host, and as a file.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "io/value.h"
#include "lazy/lazy.h"
#include "train/internal.h"

// ---- on the host ------------------------------------------------------------

calx_status *cx_train_dump_host(calx_trainer *t, bool weights_only,
                                calx_value **out)
{
  calx_value *dumped;
  *out = NULL;
  CALX_TRY(cx_train_dump(t, weights_only, &dumped));
  calx_status *status = NULL;
  if (cx_train_device_index(t) == 0) status = cx_train_copy_value(dumped, out);
  calx_value_free(dumped);
  return cx_status_first(status, calx_scope_take_error());
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
  if (calx_global_ordinal() != 0) return NULL;
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
