// base/file: whole files, and what all that write files share.
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"

void cx_file_keep_standard(void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    int nothing = open("/dev/null", O_RDWR);
    // It is the lowest that is free. Another thread may have been faster.
    if (nothing > STDERR_FILENO) close(nothing);
  }
}

static calx_code code_of(int error)
{
  if (error == ENOENT || error == ENOTDIR) return CALX_NOT_FOUND;
  if (error == EACCES || error == EPERM || error == EROFS) {
    return CALX_PERMISSION_DENIED;
  }
  if (error == ENOSPC || error == ENOMEM || error == EDQUOT) {
    return CALX_RESOURCE_EXHAUSTED;
  }
  return CALX_DATA_LOSS;
}

calx_status *cx_file_failed(const char *what, const char *path)
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
    if (n < 0) return cx_file_failed("read", path);
    cx_text_append_n(out, piece, (size_t)n);
    if (cx_text_failed(out)) return cx_out_of_memory();
    if (limit != 0 && out->size > limit) {
      return cx_error(CALX_RESOURCE_EXHAUSTED,
                      "'%s' has more than the %zu bytes that are allowed", path,
                      limit);
    }
  }
}

static calx_status *read_open(int fd, const char *path, const struct stat *info,
                              size_t limit, char **out_data, size_t *out_size)
{
  cx_text text = { 0 };
  size_t expected = S_ISREG(info->st_mode) ? (size_t)info->st_size : 0;
  if (expected > 0 && (limit == 0 || expected <= limit)) {
    text.failed = !cx_grow(&text.data, &text.capacity, expected + 1, 1);
  }
  calx_status *status = read_all(fd, path, limit, &text);
  size_t size = text.size;
  if (status == NULL && (*out_data = cx_text_take(&text)) == NULL) {
    status = cx_out_of_memory();
  }
  if (status == NULL) *out_size = size;
  cx_text_free(&text);
  return status;
}

// Opens with further flags; check: refuses what was opened, NULL: nothing is.
static calx_status *read_checked(const char *path, int flags,
                                 calx_status *(*check)(const char *path,
                                                       const struct stat *info),
                                 size_t limit, char **out_data,
                                 size_t *out_size)
{
  struct stat info;
  *out_data = NULL;
  *out_size = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW) != 0) {
    return cx_error(CALX_PERMISSION_DENIED,
                    "'%s' is a link, which is not followed", path);
  }
  if (fd < 0) return cx_file_failed("open", path);
  calx_status *status =
      fstat(fd, &info) == 0 ? NULL : cx_file_failed("look at", path);
  if (status == NULL && check != NULL) status = check(path, &info);
  if (status == NULL) {
    status = read_open(fd, path, &info, limit, out_data, out_size);
  }
  close(fd);
  return status;
}

calx_status *cx_file_read(const char *path, size_t limit, char **out_data,
                          size_t *out_size)
{
  return read_checked(path, 0, NULL, limit, out_data, out_size);
}

static calx_status *check_regular(const char *path, const struct stat *info)
{
  if (S_ISREG(info->st_mode)) return NULL;
  const char *what = S_ISDIR(info->st_mode)    ? "directory"
                     : S_ISFIFO(info->st_mode) ? "pipe"
                                               : "device";
  return cx_invalid("'%s' is a %s; a regular file is wanted", path, what);
}

calx_status *cx_file_read_regular(const char *path, size_t limit,
                                  char **out_data, size_t *out_size)
{
  return read_checked(path, O_NONBLOCK | O_NOCTTY, check_regular, limit,
                      out_data, out_size);
}

// ---- files that are believed ------------------------------------------------

calx_status *cx_file_check_owner(const char *path, const struct stat *info,
                                 bool root_too)
{
  if (info->st_uid != geteuid() && !(root_too && info->st_uid == 0)) {
    return cx_error(CALX_PERMISSION_DENIED,
                    "'%s' is not this user's own: it belongs to user %lu, not "
                    "to %lu",
                    path, (unsigned long)info->st_uid,
                    (unsigned long)geteuid());
  }
  if ((info->st_mode & 022) != 0) {
    return cx_error(CALX_PERMISSION_DENIED,
                    "others may write it: '%s' has mode %04o; 'chmod go-w' "
                    "forbids it",
                    path, (unsigned)info->st_mode & 07777);
  }
  return NULL;
}

static calx_status *check_own(const char *path, const struct stat *info)
{
  if (S_ISREG(info->st_mode)) return cx_file_check_owner(path, info, false);
  return cx_error(CALX_PERMISSION_DENIED, "'%s' is no regular file", path);
}

static calx_status *check_own_or_root(const char *path, const struct stat *info)
{
  if (S_ISREG(info->st_mode)) return cx_file_check_owner(path, info, true);
  return check_own(path, info);
}

calx_status *cx_file_read_own(const char *path, size_t limit, bool root_too,
                              char **out_data, size_t *out_size)
{
  return read_checked(path, O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                      root_too ? check_own_or_root : check_own, limit, out_data,
                      out_size);
}

// ---- writing ----------------------------------------------------------------

calx_status *cx_file_put(int fd, const char *path, const void *data,
                         size_t size)
{
  const char *at = data;
  while (size > 0) {
    ssize_t n = write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cx_file_failed("write", path);
    at += n;
    size -= (size_t)n;
  }
  return NULL;
}

bool cx_file_exists(const char *path)
{
  return access(path, F_OK) == 0;
}

calx_status *cx_folder_make(const char *path, unsigned mode)
{
  if (*path == '\0') {
    return cx_invalid("a folder's name is empty");
  }
  char *copy = cx_strdup(path);
  if (copy == NULL) return cx_out_of_memory();
  calx_status *status = NULL;
  for (char *p = copy + 1; status == NULL; p++) {
    bool end = *p == '\0';
    if (!end && *p != '/') continue;
    *p = '\0';
    if (mkdir(copy, (mode_t)mode) != 0 && errno != EEXIST) {
      status = cx_file_failed("make folder", copy);
    }
    if (end) break;
    *p = '/';
  }
  cx_free(copy);
  return status;
}
