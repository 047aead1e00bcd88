// train/find_newest: the newest of the checkpoints that runs have left.
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "train/internal.h"
#include "train/model_checkpoint.h"

// The newest file so far; of equally new ones the later version.
typedef struct newest_file {
  char *path;
  struct timespec time;
} newest_file;

static bool is_newer(const newest_file *n, const struct timespec *time,
                     const char *path)
{
  if (n->path == NULL) return true;
  if (time->tv_sec != n->time.tv_sec) return time->tv_sec > n->time.tv_sec;
  if (time->tv_nsec != n->time.tv_nsec) return time->tv_nsec > n->time.tv_nsec;
  const size_t a = strlen(path), b = strlen(n->path);
  return a != b ? a > b : strcmp(path, n->path) > 0;
}

static calx_status *consider(newest_file *n, const char *path)
{
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) ||
      !is_newer(n, &info.st_mtim, path)) {
    return NULL;
  }
  n->time = info.st_mtim;
  return cx_train_set_text(&n->path, path);
}

static bool is_checkpoint(const char *name)
{
  const size_t n = strlen(name), end = strlen(CX_TRAIN_CKPT);
  return n > end && strcmp(name + n - end, CX_TRAIN_CKPT) == 0;
}

// "last.ckpt", "last-v1.ckpt"
static bool is_last(const char *name)
{
  return strncmp(name, "last", 4) == 0 && is_checkpoint(name);
}

static calx_status *consider_folder(newest_file *n, const char *folder,
                                    bool (*is_wanted)(const char *name))
{
  DIR *dir = opendir(folder);
  if (dir == NULL) return NULL;
  calx_status *status = NULL;
  for (const struct dirent *e; status == NULL && (e = readdir(dir)) != NULL;) {
    if (!is_wanted(e->d_name)) continue;
    cx_text path = { 0 };
    cx_train_join_path(&path, folder);
    cx_train_join_path(&path, e->d_name);
    status = cx_text_failed(&path) ? cx_out_of_memory()
                                   : consider(n, cx_text_str(&path));
    cx_text_free(&path);
  }
  closedir(dir);
  return status;
}

// ---- the last one -----------------------------------------------------------

// Where a signal saves a run.
calx_status *cx_train_signal_path(const calx_trainer *t, char **out)
{
  cx_text path = { 0 };
  cx_train_join_path(&path, t->default_root_dir);
  cx_train_join_path(&path, "on_exception" CX_TRAIN_CKPT);
  *out = cx_text_take(&path);
  return *out != NULL ? NULL : cx_out_of_memory();
}

static calx_status *consider_signal(const calx_trainer *t, newest_file *n)
{
  char *path;
  CALX_TRY(cx_train_signal_path(t, &path));
  calx_status *status = consider(n, path);
  calx_string_free(path);
  return status;
}

static calx_status *look_for_last(const calx_trainer *t, newest_file *n)
{
  if (t->asked == CX_TRAIN_FITTING) CALX_TRY(consider_signal(t, n));
  for (size_t i = 0; i < t->n_callbacks; i++) {
    const calx_callback *callback = t->callbacks[i];
    const char *file = cx_train_exception_path(callback);
    const cx_train_saver *c =
        cx_train_saver_of(callback, t->callback_selves[i]);
    if (file != NULL) CALX_TRY(consider(n, file));
    if (c != NULL) CALX_TRY(consider_folder(n, c->dirpath, is_last));
  }
  return NULL;
}

calx_status *cx_train_find_last(const calx_trainer *t, char **out)
{
  newest_file n = { 0 };
  calx_status *status = look_for_last(t, &n);
  *out = n.path;
  return status;
}

// ---- of a job that was started again ----------------------------------------

// ROOT/NAME/version_3/checkpoints has its like in version_0 to version_2: each
// start of a job writes to a version of its own.
static calx_status *consider_versions(newest_file *n, const char *dirpath)
{
  static const char end[] = "/checkpoints";
  const size_t length = strlen(dirpath), k = sizeof end - 1;
  const char *version = strstr(dirpath, "/version_");
  if (version == NULL || length < k || strcmp(dirpath + length - k, end) != 0) {
    return consider_folder(n, dirpath, is_checkpoint);
  }
  char *root = cx_strndup(dirpath, (size_t)(version - dirpath));
  if (root == NULL) return cx_out_of_memory();
  DIR *dir = opendir(root);
  calx_status *status = NULL;
  for (const struct dirent *e;
       dir != NULL && status == NULL && (e = readdir(dir)) != NULL;) {
    if (strncmp(e->d_name, "version_", 8) != 0) continue;
    cx_text path = { 0 };
    cx_text_format(&path, "%s/%s%s", root, e->d_name, end);
    status = cx_text_failed(&path)
                 ? cx_out_of_memory()
                 : consider_folder(n, cx_text_str(&path), is_checkpoint);
    cx_text_free(&path);
  }
  if (dir != NULL) closedir(dir);
  cx_free(root);
  return status;
}

calx_status *cx_train_find_newest(const calx_trainer *t, char **out)
{
  newest_file n = { 0 };
  calx_status *status = look_for_last(t, &n);
  for (size_t i = 0; status == NULL && i < t->n_callbacks; i++) {
    const cx_train_saver *c =
        cx_train_saver_of(t->callbacks[i], t->callback_selves[i]);
    if (c != NULL) status = consider_versions(&n, c->dirpath);
  }
  *out = n.path;
  return status;
}
