// lazy/cache/claim: of the processes that want the same new program one
// compiles, the others wait for it.
//
// The claim is a lock on KEY.calxprog.claim. It ends with its process, for
// whatever reason the process ends. The holder removes the file before it
// unlocks it. So a process that gets the lock after a wait sees in the file's
// number of links how the claim ended. None: the holder finished (the program
// is kept, or cannot be). One: the holder died, and the claim is this
// process's.
//
// The lock belongs to the open file, not to the process, so that it works
// between threads too. It is polled, because a wait for a lock has no limit in
// time.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "base/thread.h"
#include "lazy/cache/cache.h"
#include "world/world.h"

enum { FIRST_PAUSE_US = 500, LONGEST_PAUSE_US = 20000 };

typedef enum lock_attempt { TAKEN, HELD, NO_LOCKS } lock_attempt;

static lock_attempt try_lock(int fd)
{
  struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
  if (fcntl(fd, F_OFD_SETLK, &whole) == 0) return TAKEN;
  return errno == EAGAIN || errno == EACCES || errno == EINTR ? HELD : NO_LOCKS;
}

// ---- waiting ----------------------------------------------------------------

// For people.
static void sign(int fd)
{
  char text[32];
  int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
  // The claim holds without it.
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n) return;
}

static long signature_of(int fd)
{
  char text[32] = "";
  long pid = 0;
  if (pread(fd, text, sizeof text - 1, 0) <= 0 ||
      sscanf(text, "%ld", &pid) != 1) {
    return 0;
  }
  return pid;
}

static CX_COLD void report_late(int fd, int64_t wait_ms)
{
  cx_log(
      "the program that process %ld compiles was waited for %lld s: it is "
      "compiled here too",
      signature_of(fd), (long long)(wait_ms / 1000));
}

// No process of a failed job is waited for.
static bool job_failed(void)
{
  calx_status *failure = cx_world_failure();
  bool lost = failure != NULL;
  calx_status_free(failure);
  return lost;
}

static lock_attempt wait_for_lock(int fd, int64_t wait_ms)
{
  int64_t until = cx_now_ns() + wait_ms * 1000000;
  for (long us = FIRST_PAUSE_US;; us = us < LONGEST_PAUSE_US ? 2 * us : us) {
    lock_attempt a = try_lock(fd);
    if (a != HELD || job_failed()) return a;
    if (cx_now_ns() >= until) {
      if (wait_ms > 0) report_late(fd, wait_ms);
      return HELD;
    }
    struct timespec pause = { .tv_nsec = us * 1000 };
    nanosleep(&pause, NULL);
  }
}

// ---- claims -----------------------------------------------------------------

// Whether the open file is still the one of its name.
static bool is_linked(int fd)
{
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink != 0;
}

// Whether it may be waited for and written to. A file with a second name is
// something else's.
static bool is_own(int fd, const char *path)
{
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink > 1) {
    return false;
  }
  calx_status *status = cx_file_check_owner(path, &info, false);
  bool own = status == NULL;
  calx_status_free(status);
  return own;
}

bool cx_lazy_cache_claim(const char *folder, const char *name, int64_t wait_ms,
                         cx_lazy_cache_lock *out)
{
  *out = (cx_lazy_cache_lock){ .fd = -1 };
  cx_text_format(&out->path, "%s/%s" CX_LAZY_CACHE_CLAIM, folder, name);
  if (cx_text_failed(&out->path)) return false;
  int fd = open(
      out->path.data,
      O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd < 0) return false;
  if (!is_own(fd, out->path.data)) {
    close(fd);
    return false;
  }
  lock_attempt a = wait_for_lock(fd, wait_ms);
  if (a != TAKEN || !is_linked(fd)) {
    if (a == NO_LOCKS) unlink(out->path.data);  // a claim that nobody can hold
    close(fd);
    return false;
  }
  sign(fd);
  out->fd = fd;
  return true;
}

void cx_lazy_cache_claim_end(cx_lazy_cache_lock *claim)
{
  if (claim->fd >= 0) {
    unlink(claim->path.data);
    close(claim->fd);
  }
  cx_text_free(&claim->path);
  *claim = (cx_lazy_cache_lock){ .fd = -1 };
}

// ---- what others left -------------------------------------------------------

static int open_claim(const cx_lazy_cache *c, const cx_lazy_cache_file *file)
{
  return openat(dirfd(c->folder), file->name,
                O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

bool cx_lazy_cache_claim_held(const cx_lazy_cache *c,
                              const cx_lazy_cache_file *file, long *out_pid)
{
  *out_pid = 0;
  int fd = open_claim(c, file);
  if (fd < 0) return false;
  struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
  bool held = fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
  if (held) *out_pid = signature_of(fd);
  close(fd);
  return held;
}

bool cx_lazy_cache_claim_remove(const cx_lazy_cache *c,
                                const cx_lazy_cache_file *file)
{
  int fd = open_claim(c, file);
  if (fd < 0) return errno == ENOENT;
  bool removed = true;
  if (try_lock(fd) != HELD && is_linked(fd)) {
    removed = unlinkat(dirfd(c->folder), file->name, 0) == 0 || errno == ENOENT;
  }
  int error = errno;
  close(fd);
  errno = error;
  return removed;
}
