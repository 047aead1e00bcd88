// base/writer: a file that is written piece by piece and seen whole or not at
// all.
//
// The content goes to a file without a name in the path's folder (O_TMPFILE),
// which vanishes with a process that is killed; only a committed one gets a
// name, and at once the path's (open(2), linkat(2)). Where the file system has
// no such files, it has a name beside the path from the start. The order is
// write, fsync, rename, fsync of the folder: the new name is never seen before
// its content is on the disk, and the name itself is there when commit returns.
#include "base/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "base/temporary.h"

enum {
  PIECE = 1 << 18,  // smaller puts are gathered up to this many bytes
  TAIL = 64         // more bytes than a temporary name is longer by
};

struct cx_writer {
  int fd;
  int folder;  // of the path: what can't be synced is not replaced
  bool named;  // the temporary file has its name
  bool keeps;  // the mode and owner of `old`, which is replaced
  bool private;
  struct stat old;
  uint64_t size;
  size_t gathered;  // bytes in piece
  char path[PATH_MAX];
  char temporary[PATH_MAX];
  unsigned char piece[PIECE];
};

// ---- opening ----------------------------------------------------------------

static calx_status *check_name(const char *path)
{
  if (path == NULL || *path == '\0') {
    return cx_invalid("the name of the file is empty");
  }
  if (strlen(path) + TAIL > PATH_MAX) {
    return cx_invalid("the name '%.40s…' is too long", path);
  }
  return NULL;
}

// Root may write all; who took the right to write from a file means root too.
static calx_status *check_writable(const char *path, const struct stat *info)
{
  if ((info->st_mode & 0222) == 0) {
    return cx_error(CALX_PERMISSION_DENIED,
                    "cannot replace '%s': it is read-only (mode %04o); 'chmod "
                    "u+w' makes it writable, another name leaves it as it is",
                    path, (unsigned)info->st_mode & 07777);
  }
  if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0) return NULL;
  return cx_file_failed("replace", path);
}

// The file that is to be replaced: where a link leads to, never a device.
static calx_status *resolve(const char *path, cx_writer *w)
{
  char *out = w->path;
  if (lstat(path, &w->old) == 0 && S_ISLNK(w->old.st_mode)) {
    if (realpath(path, out) == NULL)
      return cx_file_failed("follow the link", path);
    if (strlen(out) + TAIL > PATH_MAX || stat(out, &w->old) != 0) {
      return cx_file_failed("replace", path);
    }
  } else {
    memcpy(out, path, strlen(path) + 1);
    if (lstat(path, &w->old) != 0) return NULL;
  }
  if (!S_ISREG(w->old.st_mode)) {
    return cx_invalid("cannot replace '%s': it is no regular file", path);
  }
  w->keeps = true;
  return check_writable(path, &w->old);
}

static void folder_of(const char *path, char out[PATH_MAX])
{
  const char *slash = strrchr(path, '/');
  size_t n = slash == NULL ? 0 : (size_t)(slash - path);
  if (slash == path) n = 1;
  memcpy(out, n != 0 ? path : ".", n != 0 ? n : 1);
  out[n != 0 ? n : 1] = '\0';
}

static int open_nameless(const char *path, mode_t mode)
{
  char folder[PATH_MAX];
  if (access("/proc/self/fd", X_OK) != 0) return -1;
  folder_of(path, folder);
  return open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
}

// The replaced file's owner, group and mode, as far as this user may give them.
// Where the group is another one, it may do no more than all may.
static calx_status *take_over(const cx_writer *w)
{
  struct stat info;
  const struct stat *old = &w->old;
  mode_t mode = w->private ? 0600 : old->st_mode & 0777;
  if (fstat(w->fd, &info) != 0) return cx_file_failed("look at", w->path);
  if (w->keeps && (info.st_uid != old->st_uid || info.st_gid != old->st_gid) &&
      fchown(w->fd, old->st_uid, old->st_gid) != 0 &&
      fchown(w->fd, (uid_t)-1, old->st_gid) != 0) {
    mode &= (mode_t)(0707 | (mode & 07) << 3);
  }
  // A file system that has no modes says so: then none is wider than it was.
  if (fchmod(w->fd, mode) == 0 || (info.st_mode & 0777 & ~mode) == 0) {
    return NULL;
  }
  return cx_file_failed("set the mode of", w->path);
}

static calx_status *open_temporary(cx_writer *w)
{
  char folder[PATH_MAX];
  folder_of(w->path, folder);
  w->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (w->folder < 0) return cx_file_failed("open the folder of", w->path);
  cx_temporary_sweep(folder);
  mode_t mode = w->keeps || w->private ? 0600 : 0666;
  w->fd = open_nameless(w->path, mode);
  for (int tries = 0; tries < 100 && w->fd < 0; tries++) {
    cx_temporary_name(w->path, w->temporary);
    w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (w->fd < 0 && errno != EEXIST) break;
    w->named = w->fd >= 0;
  }
  if (w->fd < 0) return cx_file_failed("create a file beside", w->path);
  return w->keeps || w->private ? take_over(w) : NULL;
}

static calx_status *open_writer(const char *path, bool private,
                                cx_writer **out_writer)
{
  *out_writer = NULL;
  CALX_TRY(check_name(path));
  cx_file_keep_standard();
  cx_writer *w = cx_alloc(sizeof *w);
  if (w == NULL) return cx_out_of_memory();
  w->fd = w->folder = -1;
  w->named = w->keeps = false;
  w->private = private;
  w->size = 0;
  w->gathered = 0;
  calx_status *status = NULL;
  if (private) {
    memcpy(w->path, path, strlen(path) + 1);
  } else {
    status = resolve(path, w);
  }
  if (status == NULL) status = open_temporary(w);
  if (status != NULL) {
    cx_writer_abandon(w);
    return status;
  }
  *out_writer = w;
  return NULL;
}

calx_status *cx_writer_open(const char *path, cx_writer **out_writer)
{
  return open_writer(path, false, out_writer);
}

// ---- writing ----------------------------------------------------------------

static calx_status *flush(cx_writer *w)
{
  size_t n = w->gathered;
  w->gathered = 0;
  return cx_file_put(w->fd, w->path, w->piece, n);
}

calx_status *cx_writer_put(cx_writer *w, const void *data, size_t size)
{
  if (size == 0) return NULL;
  if (size > PIECE - w->gathered) CALX_TRY(flush(w));
  w->size += size;
  if (size > PIECE) return cx_file_put(w->fd, w->path, data, size);
  memcpy(w->piece + w->gathered, data, size);
  w->gathered += size;
  return NULL;
}

uint64_t cx_writer_size(const cx_writer *w)
{
  return w->size;
}

// ---- ending -----------------------------------------------------------------

static calx_status *name_it(cx_writer *w)
{
  char self[40];
  snprintf(self, sizeof self, "/proc/self/fd/%d", w->fd);
  for (int tries = 0; tries < 100 && !w->named; tries++) {
    cx_temporary_name(w->path, w->temporary);
    w->named =
        linkat(AT_FDCWD, self, AT_FDCWD, w->temporary, AT_SYMLINK_FOLLOW) == 0;
    if (!w->named && errno != EEXIST) break;
  }
  return w->named ? NULL : cx_file_failed("name the new content of", w->path);
}

static calx_status *sync_folder(const cx_writer *w)
{
  // A file system that can't sync folders says so; there is no other way there.
  bool done = fsync(w->folder) == 0 || errno == EINVAL || errno == ENOTSUP;
  return done ? NULL : cx_file_failed("sync the folder of", w->path);
}

static calx_status *commit(cx_writer *w)
{
  CALX_TRY(flush(w));
  if (fsync(w->fd) != 0) return cx_file_failed("sync", w->path);
  CALX_TRY(name_it(w));
  int fd = w->fd;
  w->fd = -1;
  if (close(fd) != 0) return cx_file_failed("close", w->path);
  if (rename(w->temporary, w->path) != 0)
    return cx_file_failed("replace", w->path);
  w->named = false;
  return sync_folder(w);
}

calx_status *cx_writer_commit(cx_writer *w)
{
  calx_status *status = commit(w);
  cx_writer_abandon(w);
  return status;
}

void cx_writer_abandon(cx_writer *w)
{
  if (w == NULL) return;
  if (w->fd >= 0) close(w->fd);
  if (w->folder >= 0) close(w->folder);
  if (w->named) unlink(w->temporary);
  cx_free(w);
}

// ---- whole files ------------------------------------------------------------

// What can't be replaced, or must not be: a log that standard output goes to
// has others' lines.
bool cx_file_is_stream(const char *path)
{
  static const char *const names[] = { "/dev/stdout", "/dev/stderr", "/dev/fd/",
                                       "/proc/self/fd/" };
  struct stat info;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strncmp(path, names[i], strlen(names[i])) == 0) return true;
  }
  return stat(path, &info) == 0 &&
         (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode));
}

static calx_status *write_stream(const char *path, const void *data,
                                 size_t size)
{
  int fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return cx_file_failed("open", path);
  calx_status *status = cx_file_put(fd, path, data, size);
  if (close(fd) != 0 && status == NULL) status = cx_file_failed("close", path);
  return status;
}

static calx_status *write_all(const char *path, bool private, const void *data,
                              size_t size)
{
  cx_writer *w;
  CALX_TRY(open_writer(path, private, &w));
  calx_status *status = cx_writer_put(w, data, size);
  if (status == NULL) return cx_writer_commit(w);
  cx_writer_abandon(w);
  return status;
}

calx_status *cx_file_write(const char *path, const void *data, size_t size)
{
  if (cx_file_is_stream(path)) return write_stream(path, data, size);
  return write_all(path, false, data, size);
}

calx_status *cx_file_write_text(const char *path, const cx_text *text)
{
  if (path == NULL || cx_text_failed(text)) return cx_out_of_memory();
  return cx_file_write(path, cx_text_str(text), text->size);
}

calx_status *cx_file_write_private(const char *path, const void *data,
                                   size_t size)
{
  return write_all(path, true, data, size);
}
