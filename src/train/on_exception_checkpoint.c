// train/on_exception_checkpoint: a checkpoint of a run that an error or a
// signal ends.
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "train/internal.h"
#include "train/model_checkpoint.h"

static void on_exception(calx_trainer *t, void *self)
{
  const char *path = *(const char **)self;
  if (t->asked != CX_TRAIN_FITTING || !cx_train_can_save(t)) return;
  const calx_trainer_save_options o = { .size = sizeof o };
  cx_log_failure("OnExceptionCheckpoint",
                 calx_trainer_save_checkpoint_with(t, path, &o));
}

// A run that ended well needs it no more.
static void teardown(calx_trainer *t, void *self)
{
  const char *path = *(const char **)self;
  if (t->exception != NULL || t->asked != CX_TRAIN_FITTING ||
      !calx_trainer_is_global_zero(t) || !cx_file_exists(path)) {
    return;
  }
  if (unlink(path) != 0) cx_lazy_scope_pin(cx_file_failed("remove", path));
}

static void begin(void *self, void *user)
{
  *(const char **)self = user;
}

static calx_status *make_path(const char *dirpath,
                              const calx_on_exception_checkpoint_options *given,
                              char **out)
{
  calx_on_exception_checkpoint_options o;
  char *folder;
  CALX_TRY(cx_options_take("on_exception_checkpoint", given, &o, sizeof o));
  if (dirpath == NULL) {
    return cx_invalid("on_exception_checkpoint: the dirpath is NULL");
  }
  if (o.filename != NULL && *o.filename == '\0') {
    return cx_invalid("on_exception_checkpoint: The filename cannot be empty");
  }
  CALX_TRY(cx_train_expand_home(dirpath, &folder));
  cx_text path = { 0 };
  cx_train_join_path(&path, folder);
  cx_train_join_path(&path, o.filename != NULL ? o.filename : "on_exception");
  cx_text_append(&path, CX_TRAIN_CKPT);
  cx_free(folder);
  *out = cx_text_take(&path);
  return *out != NULL ? NULL : cx_out_of_memory();
}

calx_callback *calx_on_exception_checkpoint_with(
    const char *dirpath, const calx_on_exception_checkpoint_options *options)
{
  char *path = NULL;
  calx_status *status = make_path(dirpath, options, &path);
  calx_callback *c = calx_callback_new(.self_size = sizeof(char *),
                                       .user = path, .begin = begin,
                                       .hooks = { .on_exception = on_exception,
                                                  .teardown = teardown });
  return cx_train_callback_finish(c, "OnExceptionCheckpoint",
                                  CX_TRAIN_CALLBACK_CHECKPOINT, status, path,
                                  cx_free);
}

const char *cx_train_exception_path(const calx_callback *callback)
{
  const bool is_one = strcmp(callback->name, "OnExceptionCheckpoint") == 0;
  return is_one ? callback->own : NULL;
}
