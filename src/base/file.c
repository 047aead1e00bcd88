// base/file: whole files. A write is seen whole or not at all.
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"

static calx_code code_of(int error)
{
  if (error == ENOENT || error == ENOTDIR) return CALX_NOT_FOUND;
  if (error == EACCES || error == EPERM || error == EROFS) {
    return CALX_PERMISSION_DENIED;
  }
  if (error == ENOSPC || error == ENOMEM) return CALX_RESOURCE_EXHAUSTED;
  return CALX_DATA_LOSS;
}

static calx_status *failed(const char *what, const char *path)
{
  int error = errno;
  return cx_error(code_of(error), "cannot %s '%s': %s", what, path,
                  strerror(error));
}

// Appends what is left of fd, at most `limit` bytes (0 = all there is).
static calx_status *read_all(int fd, const char *path, size_t limit,
                             cx_text *out)
{
  char piece[65536];
  for (;;) {
    ssize_t n = read(fd, piece, sizeof piece);
    if (n == 0) return NULL;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("read", path);
    cx_text_append_n(out, piece, (size_t)n);
    if (cx_text_failed(out)) return cx_out_of_memory();
    if (limit != 0 && out->size > limit) {
      return cx_error(CALX_RESOURCE_EXHAUSTED,
                      "'%s' has more than the %zu bytes that are allowed", path,
                      limit);
    }
  }
}

calx_status *cx_file_read(const char *path, size_t limit, char **out_data,
                          size_t *out_size)
{
  *out_data = NULL;
  *out_size = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed("open", path);
  cx_text text = { 0 };
  struct stat info;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
      (limit == 0 || (size_t)info.st_size <= limit)) {
    text.failed =
        !cx_grow(&text.data, &text.capacity, (size_t)info.st_size + 1, 1);
  }
  calx_status *status = read_all(fd, path, limit, &text);
  close(fd);
  size_t size = text.size;
  if (status == NULL && (*out_data = cx_text_take(&text)) == NULL) {
    status = cx_out_of_memory();
  }
  if (status != NULL) {
    cx_text_free(&text);
    return status;
  }
  *out_size = size;
  return NULL;
}

static calx_status *write_all(int fd, const char *path, const char *data,
                              size_t size)
{
  while (size > 0) {
    ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("write", path);
    data += n;
    size -= (size_t)n;
  }
  return fsync(fd) == 0 ? NULL : failed("sync", path);
}

// A new file beside the path, with the mode that the user's umask gives: -1
// with errno set, or with the name's failure.
static int open_beside(const char *path, cx_text *name)
{
  static atomic_uint counter;
  int fd = -1;
  errno = ENOMEM;
  for (int tries = 0; tries < 100 && fd < 0; tries++) {
    cx_text_clear(name);
    cx_text_format(name, "%s.%ld-%u", path, (long)getpid(),
                   atomic_fetch_add(&counter, 1));
    if (cx_text_failed(name)) return -1;
    fd = open(name->data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) return -1;
  }
  return fd;
}

calx_status *cx_file_write(const char *path, const void *data, size_t size)
{
  cx_text name = { 0 };
  calx_status *status = NULL;
  int fd = open_beside(path, &name);
  if (fd < 0) {
    status = failed("create a file beside", path);
  } else {
    status = write_all(fd, path, data, size);
    if (close(fd) != 0 && status == NULL) status = failed("close", path);
    if (status == NULL && rename(name.data, path) != 0) {
      status = failed("replace", path);
    }
    if (status != NULL) unlink(name.data);
  }
  cx_text_free(&name);
  return status;
}

bool cx_file_exists(const char *path)
{
  return access(path, F_OK) == 0;
}

calx_status *cx_folder_make(const char *path, unsigned mode)
{
  if (*path == '\0') {
    return cx_error(CALX_INVALID_ARGUMENT, "a folder's name is empty");
  }
  char *copy = cx_strdup(path);
  if (copy == NULL) return cx_out_of_memory();
  calx_status *status = NULL;
  for (char *p = copy + 1; status == NULL; p++) {
    bool end = *p == '\0';
    if (!end && *p != '/') continue;
    *p = '\0';
    if (mkdir(copy, (mode_t)mode) != 0 && errno != EEXIST) {
      status = failed("make folder", copy);
    }
    if (end) break;
    *p = '/';
  }
  cx_free(copy);
  return status;
}
