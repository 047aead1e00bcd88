// data/download: see the header.
#include "data/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "data/http.h"
#include "data/sha256.h"

const cx_data_web_file cx_data_mnist_files[4] = {
  { "train-images-idx3-ubyte.gz", 9912422,
    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609" },
  { "train-labels-idx1-ubyte.gz", 28881,
    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c" },
  { "t10k-images-idx3-ubyte.gz", 1648877,
    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6" },
  { "t10k-labels-idx1-ubyte.gz", 4542,
    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6" },
};

typedef struct names_of {
  cx_text url, path, part;
} names_of;

// The checksum of what a descriptor has, from its beginning.
static calx_status *sum(int fd, const char *path, char out[65])
{
  cx_data_sha256 s;
  cx_data_sha256_begin(&s);
  unsigned char block[16384];
  uint64_t at = 0;
  for (;;) {
    ssize_t n = pread(fd, block, sizeof block, (off_t)at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cx_file_failed("read", path);
    if (n == 0) break;
    cx_data_sha256_add(&s, block, (size_t)n);
    at += (uint64_t)n;
  }
  cx_data_sha256_end(&s, out);
  return NULL;
}

// Whether the file is there with its size and checksum.
static calx_status *is_whole(const char *path, const cx_data_web_file *file,
                             bool *out)
{
  *out = false;
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return NULL;
  calx_status *status = NULL;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
      (uint64_t)info.st_size == file->bytes) {
    char found[65];
    status = sum(fd, path, found);
    *out = status == NULL && strcmp(found, file->sha256) == 0;
  }
  close(fd);
  return status;
}

// Opens the part for this process alone, however long another one has it.
static calx_status *open_part(const char *part, int *out_fd)
{
  for (;;) {
    int fd =
        open(part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_APPEND, 0666);
    if (fd < 0) return cx_file_failed("open", part);
    while (flock(fd, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      close(fd);
      return cx_file_failed("lock", part);
    }
    // The other one may have renamed or removed it meanwhile.
    struct stat mine, named;
    if (fstat(fd, &mine) == 0 && stat(part, &named) == 0 &&
        mine.st_ino == named.st_ino && mine.st_dev == named.st_dev) {
      *out_fd = fd;
      return NULL;
    }
    close(fd);
  }
}

static calx_status *check(const names_of *n, int fd, uint64_t bytes,
                          const cx_data_web_file *file)
{
  char found[65];
  if (bytes != file->bytes) {
    return cx_error(CALX_DATA_LOSS, "'%s' has %llu bytes, %llu are expected",
                    cx_text_str(&n->url), (unsigned long long)bytes,
                    (unsigned long long)file->bytes);
  }
  CALX_TRY(sum(fd, cx_text_str(&n->part), found));
  if (strcmp(found, file->sha256) == 0) return NULL;
  return cx_error(CALX_DATA_LOSS,
                  "'%s' is not the file that is expected: its SHA-256 is %s "
                  "instead of %s",
                  cx_text_str(&n->url), found, file->sha256);
}

static calx_status *fetch(const names_of *n, int fd,
                          const cx_data_web_file *file)
{
  const char *part = cx_text_str(&n->part);
  struct stat info;
  if (fstat(fd, &info) != 0) return cx_file_failed("ask for the size of", part);
  uint64_t at = (uint64_t)info.st_size;
  if (at > file->bytes) {
    if (ftruncate(fd, 0) != 0) return cx_file_failed("empty", part);
    at = 0;
  }
  calx_status *status = NULL;
  if (at < file->bytes) {
    status = cx_data_http_get(cx_text_str(&n->url), fd, part, file->bytes, &at);
  }
  if (status == NULL) status = check(n, fd, at, file);
  if (calx_status_code(status) == CALX_DATA_LOSS) unlink(part);
  if (status != NULL) return status;
  if (fsync(fd) != 0) return cx_file_failed("write", part);
  if (rename(part, cx_text_str(&n->path)) == 0) return NULL;
  return cx_file_failed("rename", part);
}

static calx_status *download(const names_of *n, const cx_data_web_file *file)
{
  bool whole;
  int fd = -1;
  CALX_TRY(is_whole(cx_text_str(&n->path), file, &whole));
  if (whole) return NULL;
  CALX_TRY(open_part(cx_text_str(&n->part), &fd));
  calx_status *status = is_whole(cx_text_str(&n->path), file, &whole);
  if (status == NULL && whole) {
    unlink(cx_text_str(&n->part));  // another process has made the file
  } else if (status == NULL) {
    status = fetch(n, fd, file);
  }
  close(fd);
  return status;
}

calx_status *cx_data_download(const char *folder, const char *mirror,
                              const cx_data_web_file *file)
{
  names_of n = { 0 };
  size_t length = strlen(mirror);
  bool has_slash = length > 0 && mirror[length - 1] == '/';
  cx_text_format(&n.url, "%s%s%s", mirror, has_slash ? "" : "/", file->name);
  cx_text_format(&n.path, "%s/%s", folder, file->name);
  cx_text_format(&n.part, "%s/%s.part", folder, file->name);
  bool good = !cx_text_failed(&n.url) && !cx_text_failed(&n.path) &&
              !cx_text_failed(&n.part);
  calx_status *status = good ? download(&n, file) : cx_out_of_memory();
  cx_text_free(&n.url);
  cx_text_free(&n.path);
  cx_text_free(&n.part);
  return status;
}

// Whether the file is there without ".gz": it is taken as it is.
static bool is_unpacked(const char *folder, const char *name)
{
  char path[4096];
  size_t length = strlen(name);
  if (length > 3 && strcmp(name + length - 3, ".gz") == 0) length -= 3;
  int n = snprintf(path, sizeof path, "%s/%.*s", folder, (int)length, name);
  return n > 0 && (size_t)n < sizeof path && cx_file_exists(path);
}

calx_status *cx_data_download_all(const char *folder, const char *mirror,
                                  const cx_data_web_file *files, size_t count)
{
  CALX_TRY(cx_folder_make(folder, 0777));
  for (size_t i = 0; i < count; i++) {
    if (is_unpacked(folder, files[i].name)) continue;
    CALX_TRY(cx_data_download(folder, mirror, &files[i]));
  }
  return NULL;
}
