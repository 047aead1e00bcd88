// train/save: what a checkpoint has of a run, and how a run gets it back.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "lazy/lazy.h"
#include "train/internal.h"

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

calx_status *cx_train_dump(calx_trainer *t, bool weights_only, calx_value **out)
{
  (void)weights_only;
  *out = calx_value_container(CALX_KIND_DICT);
  if (*out == NULL) return cx_out_of_memory();
  calx_status *status = put_weights(t, *out);
  if (status == NULL) return NULL;
  calx_value_free(*out);
  *out = NULL;
  return status;
}

calx_status *cx_train_restore_model(calx_trainer *t, calx_value *checkpoint)
{
  return calx_module_load_state_dict(t->model,
                                     calx_value_get(checkpoint, "state_dict"));
}

calx_status *cx_train_restore_training(calx_trainer *t,
                                       const calx_value *checkpoint)
{
  (void)t, (void)checkpoint;
  return NULL;
}

calx_status *cx_train_find_checkpoint(const calx_trainer *t, calx_value **out)
{
  *out = NULL;
  if (t->data->ckpt_path == NULL) return NULL;
  return calx_load(t->data->ckpt_path, out);
}

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

calx_status *calx_trainer_save_checkpoint_with(
    calx_trainer *t, const char *path, const calx_trainer_save_options *options)
{
  (void)options;
  calx_value *checkpoint;
  CALX_TRY(make_folder_of(path));
  CALX_TRY(cx_train_dump(t, false, &checkpoint));
  calx_status *status = calx_save(checkpoint, path);
  calx_value_free(checkpoint);
  return status;
}
