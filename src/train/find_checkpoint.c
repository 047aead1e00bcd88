// train/find_checkpoint: the file that a run begins with. The first rank looks
// for it, and all read the same one.
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/file.h"
#include "base/options.h"
#include "train/internal.h"
#include "train/model_checkpoint.h"

// ---- "best" -----------------------------------------------------------------

static calx_status *find_best(const calx_trainer *t, char **out)
{
  const char *fn = calx_trainer_stage(t);
  const cx_train_saver *first = NULL;
  size_t count = 0;
  for (size_t i = 0; i < t->n_callbacks; i++) {
    const cx_train_saver *c =
        cx_train_saver_of(t->callbacks[i], t->callback_selves[i]);
    count += c != NULL;
    if (first == NULL) first = c;
  }
  if (count > 1) {
    cx_log(
        "`.%s(ckpt_path=\"best\")` is called with Trainer configured with "
        "multiple `ModelCheckpoint` callbacks. It will use the best checkpoint "
        "path from first checkpoint callback.",
        fn);
  }
  if (first != NULL && first->best_path != NULL) {
    return cx_train_set_text(out, first->best_path);
  }
  if (t->config.fast_dev_run > 0) {
    return cx_invalid(
        "You cannot execute `.%s(ckpt_path=\"best\")` with "
        "`fast_dev_run=True`. Please pass an exact checkpoint path to "
        "`.%s(ckpt_path=...)`",
        fn, fn);
  }
  return cx_invalid(
      "`.%s(ckpt_path=\"best\")` is set but `ModelCheckpoint` is not "
      "configured%s.",
      fn, first != NULL ? " to save the best model" : "");
}

// ---- "last" -----------------------------------------------------------------

// None is no error: the first run of a program has none.
static calx_status *find_last(const calx_trainer *t, char **out)
{
  calx_status *status = cx_train_find_last(t, out);
  if (status == NULL && *out == NULL) {
    cx_log(
        ".%s(ckpt_path=\"last\") is set, but there is no last checkpoint "
        "available. No checkpoint will be loaded. HINT: Set "
        "`ModelCheckpoint(..., save_last=True)`.",
        calx_trainer_stage(t));
  }
  return status;
}

// ---- "hpc" ------------------------------------------------------------------

// N of hpc_ckpt_N.ckpt; -1: it is none.
static int64_t number_of(const char *name)
{
  static const char head[] = "hpc_ckpt_";
  char digits[20];
  int64_t number;
  if (strncmp(name, head, sizeof head - 1) != 0) return -1;
  name += sizeof head - 1;
  const size_t n = strspn(name, "0123456789");
  if (n == 0 || n >= sizeof digits || strcmp(name + n, CX_TRAIN_CKPT) != 0) {
    return -1;
  }
  memcpy(digits, name, n);
  digits[n] = '\0';
  return cx_read_int(digits, 0, INT64_MAX - 1, &number) ? number : -1;
}

int64_t cx_train_hpc_number(const char *folder)
{
  int64_t most = -1;
  DIR *dir = opendir(folder);
  if (dir == NULL) return -1;
  for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
    const int64_t n = number_of(e->d_name);
    if (n > most) most = n;
  }
  closedir(dir);
  return most;
}

calx_status *cx_train_hpc_path(const calx_trainer *t, int64_t number,
                               char **out)
{
  cx_text path = { 0 };
  cx_train_join_path(&path, t->default_root_dir);
  cx_train_join_path(&path, "hpc_ckpt_");
  cx_text_int(&path, number);
  cx_text_append(&path, CX_TRAIN_CKPT);
  *out = cx_text_take(&path);
  return *out != NULL ? NULL : cx_out_of_memory();
}

static calx_status *find_hpc(const calx_trainer *t, char **out)
{
  const int64_t number = cx_train_hpc_number(t->default_root_dir);
  const char *fn = calx_trainer_stage(t);
  if (number >= 0) return cx_train_hpc_path(t, number, out);
  return cx_invalid(
      "`.%s(ckpt_path=\"hpc\")` is set but no HPC checkpoint was found. Please "
      "pass an exact checkpoint path to `.%s(ckpt_path=...)`",
      fn, fn);
}

// ---- which one --------------------------------------------------------------

// A job that Slurm started, not a shell in it.
// Source: SLURMEnvironment.detect.
static bool is_slurm(void)
{
  const char *name = cx_env_text("SLURM_JOB_NAME");
  const bool is_shell = name != NULL && (strcmp(name, "bash") == 0 ||
                                         strcmp(name, "interactive") == 0);
  return cx_env_text("SLURM_NTASKS") != NULL && !is_shell;
}

// Whether the launcher has started the job again, after a rank was lost.
static const char restarted[] = "restarted";
static bool is_restarted(void)
{
  const char *count = cx_env_text("CALX_RESTART");
  return count != NULL && strcmp(count, "0") != 0;
}

static bool has_exception_file(const calx_trainer *t)
{
  for (size_t i = 0; i < t->n_callbacks; i++) {
    const char *file = cx_train_exception_path(t->callbacks[i]);
    if (file != NULL && cx_file_exists(file)) return true;
  }
  return false;
}

// What a fit goes on from where the program names nothing: a requeued job from
// what the job before left, a run after a failed one from that.
static const char *asked_for(const calx_trainer *t)
{
  const bool begins = t->position.epoch == 0 && t->position.global_step == 0;
  if (t->data->ckpt_path != NULL || t->asked != CX_TRAIN_FITTING) {
    return t->data->ckpt_path;
  }
  if (begins && is_slurm() && cx_train_hpc_number(t->default_root_dir) >= 0) {
    return "hpc";
  }
  if (begins && is_restarted()) return restarted;
  if (!has_exception_file(t)) return NULL;
  cx_log(
      "`.fit(ckpt_path=None)` was called without a model. The last model of the "
      "previous `fit` call will be used. You can pass `fit(ckpt_path='best')` to "
      "use the best model or `fit(ckpt_path='last')` to use the last model. If "
      "you pass a value, this warning will be silenced.");
  return "last";
}

static calx_status *choose(const calx_trainer *t, char **out)
{
  const char *asked = asked_for(t);
  if (asked == NULL) return NULL;
  if (strcmp(asked, "best") == 0) return find_best(t, out);
  if (strcmp(asked, "last") == 0) return find_last(t, out);
  if (strcmp(asked, "hpc") == 0) return find_hpc(t, out);
  if (asked == restarted) return cx_train_find_newest(t, out);
  return cx_train_set_text(out, asked);
}

// Whether there is anything to look for, on all ranks alike.
static bool may_have_one(const calx_trainer *t)
{
  bool may = t->data->ckpt_path != NULL || is_slurm() || is_restarted();
  for (size_t i = 0; i < t->n_callbacks && !may; i++) {
    may = cx_train_exception_path(t->callbacks[i]) != NULL;
  }
  return may;
}

calx_status *cx_train_find_checkpoint(calx_trainer *t, calx_value **out)
{
  *out = NULL;
  if (!may_have_one(t)) return NULL;
  if (calx_trainer_is_global_zero(t)) CALX_TRY(choose(t, &t->ckpt_path));
  CALX_TRY(cx_train_broadcast_text(t, "trainer: ckpt_path", &t->ckpt_path));
  if (t->ckpt_path == NULL) return NULL;
  if (!cx_file_exists(t->ckpt_path)) {
    return cx_error(CALX_NOT_FOUND, "Checkpoint file not found: %s",
                    t->ckpt_path);
  }
  CALX_TRY(cx_train_real_path(t->ckpt_path, &t->source));
  if (calx_trainer_is_global_zero(t)) {
    cx_log("Restoring states from the checkpoint path at %s", t->ckpt_path);
  }
  return calx_load(t->ckpt_path, out);
}

void cx_train_report_restored(const calx_trainer *t)
{
  if (!calx_trainer_is_global_zero(t)) return;
  cx_log("%s from the checkpoint at %s",
         t->asked == CX_TRAIN_FITTING ? "Restored all states"
                                      : "Loaded model weights",
         t->ckpt_path);
}
