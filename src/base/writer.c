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
  uint64_t size;
  size_t gathered;  // bytes in piece
  char path[PATH_MAX];
  char temporary[PATH_MAX];
  unsigned char piece[PIECE];
};

// ---- opening ----------------------------------------------------------------

// The file that is to be replaced: where a link leads to, never a device.
static calx_status *resolve(const char *path, char out[PATH_MAX])
{
  struct stat info;
  if (path == NULL || *path == '\0') {
    return cx_error(CALX_INVALID_ARGUMENT, "the name of the file is empty");
  }
  if (strlen(path) + TAIL > PATH_MAX) {
    return cx_error(CALX_INVALID_ARGUMENT, "the name '%.40s…' is too long",
                    path);
  }
  if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
    if (realpath(path, out) == NULL)
      return cx_file_failed("follow the link", path);
    if (strlen(out) + TAIL > PATH_MAX || stat(out, &info) != 0) {
      return cx_file_failed("replace", path);
    }
  } else {
    memcpy(out, path, strlen(path) + 1);
    if (lstat(path, &info) != 0) return NULL;
  }
  if (S_ISREG(info.st_mode)) return NULL;
  return cx_error(CALX_INVALID_ARGUMENT,
                  "cannot replace '%s': it is no regular file", path);
}

static void folder_of(const char *path, char out[PATH_MAX])
{
  const char *slash = strrchr(path, '/');
  size_t n = slash == NULL ? 0 : (size_t)(slash - path);
  if (slash == path) n = 1;
  memcpy(out, n != 0 ? path : ".", n != 0 ? n : 1);
  out[n != 0 ? n : 1] = '\0';
}

static int open_nameless(const char *path)
{
  char folder[PATH_MAX];
  if (access("/proc/self/fd", X_OK) != 0) return -1;
  folder_of(path, folder);
  return open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
}

static calx_status *open_temporary(cx_writer *w)
{
  char folder[PATH_MAX];
  folder_of(w->path, folder);
  w->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (w->folder < 0) return cx_file_failed("open the folder of", w->path);
  cx_temporary_sweep(folder);
  w->fd = open_nameless(w->path);
  for (int tries = 0; tries < 100 && w->fd < 0; tries++) {
    cx_temporary_name(w->path, w->temporary);
    w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (w->fd < 0 && errno != EEXIST) break;
    w->named = w->fd >= 0;
  }
  return w->fd >= 0 ? NULL : cx_file_failed("create a file beside", w->path);
}

calx_status *cx_writer_open(const char *path, cx_writer **out_writer)
{
  *out_writer = NULL;
  cx_writer *w = cx_alloc(sizeof *w);
  if (w == NULL) return cx_out_of_memory();
  w->fd = w->folder = -1;
  w->named = false;
  w->size = 0;
  w->gathered = 0;
  calx_status *status = resolve(path, w->path);
  if (status == NULL) status = open_temporary(w);
  if (status != NULL) {
    cx_writer_abandon(w);
    return status;
  }
  *out_writer = w;
  return NULL;
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
