// world/segment: an anonymous file, mapped by each process of a host.
//
// A memfd leaves nothing behind however its processes end. It is sparse: the
// engine's part may use any offset, and pages exist once they are touched.
// Whoever maps it checks size and magic first, since the descriptor's number
// comes from the environment or from the store.
#include "world/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOMENTS = 200 };  // of 10 ms: for another's news to be whole

// ---- bells ------------------------------------------------------------------

// Not FUTEX_PRIVATE: the word may lie in memory that processes share.
static void wake_all(_Atomic uint32_t *word)
{
  syscall(SYS_futex, (uint32_t *)word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void cx_world_wake_all(cx_world_wake_word *bell)
{
  atomic_fetch_add(&bell->rung, 1);
  if (atomic_load(&bell->sleepers) != 0) wake_all(&bell->rung);
}

void cx_world_wake_wait(cx_world_wake_word *bell, uint32_t read,
                        int64_t most_ms)
{
  struct timespec most = { .tv_sec = (time_t)(most_ms / 1000),
                           .tv_nsec = (int32_t)(most_ms % 1000) * 1000000 };
  atomic_fetch_add(&bell->sleepers, 1);
  syscall(SYS_futex, (uint32_t *)&bell->rung, FUTEX_WAIT, read, &most, NULL, 0);
  atomic_fetch_sub(&bell->sleepers, 1);
}

// ---- news -------------------------------------------------------------------

// Somebody else writes them, unless it died of it.
static void wait_for_news(calx_window *head)
{
  const struct timespec moment = { .tv_nsec = 10000000 };
  for (int i = 0; i < MOMENTS && cx_world_segment_failed(head) == CALX_OK;
       i++) {
    syscall(SYS_futex, (uint32_t *)&head->failed, FUTEX_WAIT, 0, &moment, NULL,
            0);
  }
}

void cx_world_segment_fail(calx_window *head, calx_code code, const char *news)
{
  uint32_t nobody = 0;
  if (!atomic_compare_exchange_strong(&head->writing, &nobody, 1)) {
    wait_for_news(head);
    return;
  }
  snprintf(head->news, sizeof head->news, "%s", news);
  atomic_store(&head->failed,
               (uint32_t)(code != CALX_OK ? code : CALX_ABORTED));
  wake_all(&head->failed);
}

// ---- memory -----------------------------------------------------------------

static calx_status *map(int fd, cx_world_segment *out)
{
  void *at =
      mmap(NULL, CALX_WINDOW_ENGINE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "the memory that the processes of this host share cannot "
                    "be mapped: %s",
                    strerror(errno));
  }
  *out = (cx_world_segment){ .head = at, .fd = fd };
  return NULL;
}

calx_status *cx_world_segment_create(int processes, cx_world_segment *out)
{
  *out = (cx_world_segment){ .fd = -1 };
  int fd = memfd_create("calx", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, (off_t)CALX_WINDOW_BYTES) != 0) {
    int error = errno;
    if (fd >= 0) close(fd);
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "memory for the processes of this host to share cannot be "
                    "made: %s",
                    strerror(error));
  }
  calx_status *status = map(fd, out);
  if (status != NULL) {
    close(fd);
    return status;
  }
  out->head->magic = CALX_WINDOW_MAGIC;
  out->head->processes = (uint32_t)processes;
  return NULL;
}

static calx_status *check(int fd, int processes, cx_world_segment *out)
{
  struct stat file;
  if (fstat(fd, &file) != 0) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "descriptor %d is no window that processes share: %s", fd,
                    strerror(errno));
  }
  if (!S_ISREG(file.st_mode) || file.st_size != (off_t)CALX_WINDOW_BYTES) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "descriptor %d is no window that processes share: a file "
                    "of %lld bytes",
                    fd, (long long)file.st_size);
  }
  CALX_TRY(map(fd, out));
  const calx_window *head = out->head;
  if (head->magic == CALX_WINDOW_MAGIC &&
      head->processes == (uint32_t)processes) {
    return NULL;
  }
  calx_status *status = cx_error(
      CALX_FAILED_PRECONDITION,
      "descriptor %d is no window of %d processes: it starts with %08x and "
      "%u processes",
      fd, processes, (unsigned)head->magic, (unsigned)head->processes);
  cx_world_segment_close(&(cx_world_segment){ .head = out->head, .fd = -1 });
  return status;
}

calx_status *cx_world_segment_open(int fd, int processes, cx_world_segment *out)
{
  calx_status *status = check(fd, processes, out);
  if (status != NULL) *out = (cx_world_segment){ .fd = -1 };
  if (status == NULL) fcntl(fd, F_SETFD, FD_CLOEXEC);
  return status;
}

calx_status *cx_world_segment_open_of(int64_t pid, int fd, int processes,
                                      cx_world_segment *out)
{
  *out = (cx_world_segment){ .fd = -1 };
  char path[64];
  snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)pid, fd);
  int own = open(path, O_RDWR | O_CLOEXEC);
  if (own < 0) {
    return cx_error(CALX_FAILED_PRECONDITION, "cannot open '%s': %s", path,
                    strerror(errno));
  }
  calx_status *status = cx_world_segment_open(own, processes, out);
  if (status != NULL) close(own);
  return status;
}

void cx_world_segment_close(cx_world_segment *window)
{
  if (window->head != NULL) munmap(window->head, CALX_WINDOW_ENGINE);
  if (window->fd >= 0) close(window->fd);
  *window = (cx_world_segment){ .fd = -1 };
}
