// loggers/folder: SAVE_DIR/NAME/version_N.
#include "loggers/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "base/text.h"

// ---- names ------------------------------------------------------------------

calx_status *cx_loggers_folder_init(cx_loggers_folder *folder, const char *what,
                                    const char *save_dir, const char *name,
                                    const char *version, const char *sub_dir)
{
  if (save_dir == NULL) {
    return cx_invalid(
        "%s: save_dir is NULL: the folder that the files go to is wanted, \".\" "
        "is the working directory",
        what);
  }
  if (version != NULL && *version == '\0') {
    return cx_invalid(
        "%s: .version is empty: a number, a folder's name or NULL is wanted",
        what);
  }
  folder->save_dir = cx_strdup(save_dir);
  folder->name = cx_strdup(name == NULL ? "lightning_logs" : name);
  if (version != NULL) folder->version = cx_strdup(version);
  if (sub_dir != NULL) folder->sub_dir = cx_strdup(sub_dir);
  bool complete = folder->save_dir != NULL && folder->name != NULL &&
                  (version == NULL || folder->version != NULL) &&
                  (sub_dir == NULL || folder->sub_dir != NULL);
  return complete ? NULL : cx_out_of_memory();
}

void cx_loggers_folder_free(cx_loggers_folder *folder)
{
  cx_free(folder->save_dir);
  cx_free(folder->name);
  cx_free(folder->version);
  cx_free(folder->sub_dir);
  cx_free(folder->path);
}

// os.path.join() of relative parts.
static void join(cx_text *path, const char *part)
{
  if (part == NULL || *part == '\0') return;
  if (path->size > 0 && path->data[path->size - 1] != '/') {
    cx_text_char(path, '/');
  }
  cx_text_append(path, part);
}

char *cx_loggers_folder_file(const cx_loggers_folder *folder, const char *file)
{
  cx_text path = { 0 };
  join(&path, folder->path);
  join(&path, file);
  char *out = cx_text_take(&path);
  cx_text_free(&path);
  return out;
}

// ---- versions ---------------------------------------------------------------

// The N of "version_N" and of "version_N_TEXT", as Lightning reads them; -1: it
// is none.
static int64_t version_of(const char *name)
{
  static const char head[] = "version_";
  char digits[20];
  int64_t n;
  if (strncmp(name, head, sizeof head - 1) != 0) return -1;
  name += sizeof head - 1;
  size_t size = strcspn(name, "_");
  if (size == 0 || size >= sizeof digits ||
      strspn(name, "0123456789") != size) {
    return -1;
  }
  memcpy(digits, name, size);
  digits[size] = '\0';
  return cx_read_int(digits, 0, INT64_MAX - 1, &n) ? n : -1;
}

static bool is_folder(DIR *dir, const char *name)
{
  struct stat info;
  return fstatat(dirfd(dir), name, &info, 0) == 0 && S_ISDIR(info.st_mode);
}

// A folder that is not there, or that is none, has no versions.
static calx_status *next_version(const char *path, int64_t *out)
{
  *out = 0;
  DIR *dir = opendir(*path == '\0' ? "." : path);
  if (dir == NULL) {
    bool none = errno == ENOENT || errno == ENOTDIR;
    return none ? NULL : cx_file_failed("list", path);
  }
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    int64_t n = version_of(e->d_name);
    if (n >= *out && is_folder(dir, e->d_name)) *out = n + 1;
  }
  closedir(dir);
  return NULL;
}

static calx_status *find_version(cx_loggers_folder *folder)
{
  cx_text text = { 0 };
  int64_t n;
  join(&text, folder->save_dir);
  join(&text, folder->name);
  calx_status *status = next_version(cx_text_str(&text), &n);
  if (status == NULL) {
    cx_text_clear(&text);
    cx_text_int(&text, n);
    folder->version = cx_text_take(&text);
    if (folder->version == NULL) status = cx_out_of_memory();
  }
  cx_text_free(&text);
  return status;
}

calx_status *cx_loggers_folder_resolve(cx_loggers_folder *folder)
{
  if (folder->path != NULL) return NULL;
  if (folder->version == NULL) CALX_TRY(find_version(folder));
  const char *version = folder->version;
  const bool number = version[strspn(version, "0123456789")] == '\0';
  cx_text text = { 0 }, last = { 0 };
  cx_text_format(&last, "%s%s", number ? "version_" : "", version);
  join(&text, folder->save_dir);
  join(&text, folder->name);
  join(&text, cx_text_str(&last));
  join(&text, folder->sub_dir);
  text.failed |= last.failed;
  folder->path = cx_text_take(&text);
  cx_text_free(&text);
  cx_text_free(&last);
  return folder->path != NULL ? NULL : cx_out_of_memory();
}

// ---- on the disk ------------------------------------------------------------

static bool has_files(const char *path)
{
  DIR *dir = opendir(path);
  bool found = false;
  if (dir == NULL) return false;
  for (struct dirent *e; !found && (e = readdir(dir)) != NULL;) {
    found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  }
  closedir(dir);
  return found;
}

static calx_status *clear(const cx_loggers_folder *folder, const char *file)
{
  if (!has_files(folder->path)) return NULL;
  cx_log(
      "Experiment logs directory %s exists and is not empty. Previous log "
      "files in this directory will be deleted when the new ones are saved!",
      folder->path);
  char *path = cx_loggers_folder_file(folder, file);
  if (path == NULL) return cx_out_of_memory();
  calx_status *status = NULL;
  if (unlink(path) != 0 && errno != ENOENT) {
    status = cx_file_failed("remove", path);
  }
  cx_free(path);
  return status;
}

calx_status *cx_loggers_folder_make(cx_loggers_folder *folder, const char *file)
{
  CALX_TRY(cx_loggers_folder_resolve(folder));
  if (file != NULL) CALX_TRY(clear(folder, file));
  return cx_annotate(cx_folder_make(folder->path, 0777),
                     "the folder of a logger: save_dir '%s', name '%s'",
                     folder->save_dir, folder->name);
}

static calx_status *append(int fd, const char *path, const void *data,
                           size_t size)
{
  struct stat info;
  if (fstat(fd, &info) != 0) return cx_file_failed("look at", path);
  calx_status *status = cx_file_put(fd, path, data, size);
  if (status != NULL && S_ISREG(info.st_mode) &&
      ftruncate(fd, info.st_size) != 0) {
    status = cx_annotate(status, "the file ends with a part of a line");
  }
  return status;
}

calx_status *cx_loggers_append(const char *path, const void *data, size_t size,
                               bool create)
{
  if (path == NULL) return cx_out_of_memory();
  cx_file_keep_standard();
  int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY;
  int fd = open(path, flags | (create ? O_CREAT : 0), 0666);
  if (fd < 0) return cx_file_failed("open", path);
  calx_status *status = append(fd, path, data, size);
  if (close(fd) != 0 && status == NULL) status = cx_file_failed("close", path);
  return status;
}
