// lazy/cache/cache: see cache.h. A process that writes files removes old ones,
// so the bound holds without a process that watches.
#include "lazy/cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "base/thread.h"

#define SECOND INT64_C(1000000000)
static const uint64_t default_limit = (uint64_t)2 << 30;

// ---- settings ---------------------------------------------------------------

// Digits, and K, M or G.
static bool read_bytes(const char *s, uint64_t *out)
{
  if (*s < '0' || *s > '9') return false;  // strtoull takes signs and blanks
  char *end;
  errno = 0;
  unsigned long long n = strtoull(s, &end, 10);
  const char *units = "KMG";
  const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
  int shift = unit != NULL ? 10 * (int)(unit - units + 1) : 0;
  if (errno != 0 || end[unit != NULL] != '\0' || n > UINT64_MAX >> shift) {
    return false;
  }
  *out = (uint64_t)n << shift;
  return true;
}

uint64_t cx_lazy_cache_limit(void)
{
  const char *set = getenv("CALX_CACHE_SIZE");
  uint64_t limit = default_limit;
  if (set != NULL && *set != '\0' && !read_bytes(set, &limit)) {
    cx_log_once_per_site("cache",
                         "CALX_CACHE_SIZE wants bytes, as 500M or 2G, found "
                         "'%s': 2G is taken",
                         set);
  }
  return limit;
}

// ---- the folder -------------------------------------------------------------

static calx_status *no_folder(const char *path)
{
  int error = errno;
  return cx_error(error == EACCES ? CALX_PERMISSION_DENIED : CALX_NOT_FOUND,
                  "there is no folder '%s': %s", path, strerror(error));
}

calx_status *cx_lazy_cache_folder(const char *path, bool readonly)
{
  struct stat info;
  if (!readonly) CALX_TRY(cx_folder_make(path, 0700));
  bool there = stat(path, &info) == 0;
  if (there && !S_ISDIR(info.st_mode)) {
    there = false;
    errno = ENOTDIR;
  }
  return there ? cx_file_check_owner(path, &info, readonly) : no_folder(path);
}

// Whether a file is called as ours are: KEY.calxprog, KEY.calxprog.claim,
// KEY.calxprog.PID-N.
static bool own_name(const char *name, cx_lazy_cache_file *out)
{
  const char *digits = "0123456789";
  size_t suffix = strlen(CX_LAZY_CACHE_SUFFIX);
  if (strspn(name, "0123456789abcdef") != 32 ||
      strncmp(name + 32, CX_LAZY_CACHE_SUFFIX, suffix) != 0) {
    return false;
  }
  const char *p = name + 32 + suffix;
  out->claim = strcmp(p, CX_LAZY_CACHE_CLAIM) == 0;
  out->unfinished = *p != '\0';
  if (*p == '\0' || out->claim) return true;
  if (*p++ != '.') return false;
  size_t pid = strspn(p, digits);
  if (pid == 0 || p[pid] != '-') return false;
  p += pid + 1;
  size_t n = strspn(p, digits);
  return n != 0 && p[n] == '\0';
}

// Nanoseconds since 1970; a file's time may be anything.
static int64_t nanoseconds(struct timespec t)
{
  int64_t most = INT64_MAX / SECOND - 1;
  int64_t s = t.tv_sec < 0 ? 0 : t.tv_sec > most ? most : t.tv_sec;
  return s * SECOND + t.tv_nsec;
}

static int by_use(const void *a, const void *b)
{
  const cx_lazy_cache_file *x = a, *y = b;
  if (x->used != y->used) return x->used < y->used ? -1 : 1;
  return strcmp(x->name, y->name);
}

static calx_status *list_files(cx_lazy_cache *c)
{
  for (struct dirent *e; (e = readdir(c->folder)) != NULL;) {
    cx_lazy_cache_file file = { 0 };
    struct stat info;
    size_t n = strlen(e->d_name);
    if (n >= sizeof file.name || !own_name(e->d_name, &file) ||
        fstatat(dirfd(c->folder), e->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode)) {
      continue;
    }
    memcpy(file.name, e->d_name, n + 1);
    file.size = (uint64_t)info.st_size;
    file.used = nanoseconds(info.st_mtim);
    if (!cx_grow(&c->files, &c->capacity, c->n + 1, sizeof file)) {
      return cx_out_of_memory();
    }
    c->files[c->n++] = file;
  }
  if (c->n != 0) qsort(c->files, c->n, sizeof *c->files, by_use);
  return NULL;
}

calx_status *cx_lazy_cache_open(const char *path, cx_lazy_cache *out)
{
  *out = (cx_lazy_cache){ 0 };
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  out->now = nanoseconds(now);
  out->folder = opendir(path);
  struct stat info;
  if (out->folder == NULL || fstat(dirfd(out->folder), &info) != 0) {
    return no_folder(path);
  }
  CALX_TRY(cx_file_check_owner(path, &info, false));
  return list_files(out);
}

void cx_lazy_cache_close(cx_lazy_cache *c)
{
  if (c->folder != NULL) closedir(c->folder);
  cx_free(c->files);
  *c = (cx_lazy_cache){ 0 };
}

bool cx_lazy_cache_stale(const cx_lazy_cache *c, const cx_lazy_cache_file *file)
{
  return file->unfinished && file->used < c->now - 3600 * SECOND;
}

bool cx_lazy_cache_remove(const cx_lazy_cache *c,
                          const cx_lazy_cache_file *file)
{
  if (file->claim) return cx_lazy_cache_claim_remove(c, file);
  return unlinkat(dirfd(c->folder), file->name, 0) == 0 || errno == ENOENT;
}

// ---- writing ----------------------------------------------------------------

// What this process may write before it reads the folder again, which takes a
// call for each file. Processes that write at once do not see each other's
// files until then, so each may exceed the limit by this much.
enum { UNSEEN = 16 };  // a part of the limit
static struct {
  cx_mutex lock;
  dev_t device;
  ino_t inode;
  uint64_t limit, left;
} room = { .lock = CX_MUTEX_INIT };

static bool take_room(const struct stat *folder, uint64_t limit, uint64_t size)
{
  cx_lock(&room.lock);
  bool fits = room.device == folder->st_dev && room.inode == folder->st_ino &&
              room.limit == limit && size <= room.left;
  if (fits) room.left -= size;
  cx_unlock(&room.lock);
  return fits;
}

static void set_room(const struct stat *folder, uint64_t limit, uint64_t left)
{
  cx_lock(&room.lock);
  room.device = folder->st_dev;
  room.inode = folder->st_ino;
  room.limit = limit;
  room.left = left < limit / UNSEEN ? left : limit / UNSEEN;
  cx_unlock(&room.lock);
}

// Leaves at most so many bytes besides the file that is to be replaced; returns
// how many more could be written.
static uint64_t make_room(const cx_lazy_cache *c, const char *name,
                          uint64_t most)
{
  uint64_t total = 0;
  for (size_t i = 0; i < c->n; i++) {
    const cx_lazy_cache_file *f = &c->files[i];
    if (!f->unfinished && strcmp(f->name, name) != 0) total += f->size;
  }
  for (size_t i = 0; i < c->n; i++) {
    const cx_lazy_cache_file *f = &c->files[i];
    if (f->unfinished) {
      if (cx_lazy_cache_stale(c, f)) cx_lazy_cache_remove(c, f);
    } else if (total > most && strcmp(f->name, name) != 0 &&
               cx_lazy_cache_remove(c, f)) {
      total -= f->size;
    }
  }
  return total < most ? most - total : 0;
}

static calx_status *find_room(const char *path, const char *name,
                              uint64_t limit, uint64_t size)
{
  struct stat info;
  if (stat(path, &info) != 0) return no_folder(path);
  CALX_TRY(cx_file_check_owner(path, &info, false));
  if (take_room(&info, limit, size)) return NULL;
  cx_lazy_cache cache;
  calx_status *status = cx_lazy_cache_open(path, &cache);
  if (status == NULL) {
    set_room(&info, limit, make_room(&cache, name, limit - size));
  }
  cx_lazy_cache_close(&cache);
  return status;
}

calx_status *cx_lazy_cache_keep(const char *path, const char *name,
                                const cx_text *data)
{
  uint64_t limit = cx_lazy_cache_limit();
  if (data->size > limit) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "it has %zu bytes, CALX_CACHE_SIZE is %llu", data->size,
                    (unsigned long long)limit);
  }
  CALX_TRY(find_room(path, name, limit, data->size));
  cx_text file = { 0 };
  cx_text_format(&file, "%s/%s", path, name);
  calx_status *status =
      cx_text_failed(&file)
          ? cx_out_of_memory()
          : cx_file_write_private(file.data, data->data, data->size);
  cx_text_free(&file);
  return status;
}
