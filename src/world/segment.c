// world/segment: an anonymous file, mapped by each process of a host.
//
// A memfd disappears with its processes, however they end. It is sparse: the
// engine's part may use any offset, and pages exist once they are written. The
// descriptor's number comes from the environment or the store, so size and
// magic are checked first.
#include "world/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/futex.h"

enum { WAITS = 200, WAIT_MS = 10 };  // for a failure that another one writes

// ---- wake words -------------------------------------------------------------

void cx_world_wake_all(cx_world_wake_word *word)
{
  atomic_fetch_add(&word->count, 1);
  if (atomic_load(&word->sleepers) != 0) {
    cx_futex_wake(&word->count, CX_FUTEX_SHARED);
  }
}

void cx_world_wake_wait(cx_world_wake_word *word, uint32_t read,
                        int64_t timeout_ms)
{
  atomic_fetch_add(&word->sleepers, 1);
  cx_futex_wait(&word->count, read, timeout_ms, CX_FUTEX_SHARED);
  atomic_fetch_sub(&word->sleepers, 1);
}

// ---- the job's failure ------------------------------------------------------

void cx_world_segment_fail(calx_segment_head *head, calx_code code,
                           const char *message)
{
  uint32_t nobody = 0;
  if (!atomic_compare_exchange_strong(&head->writing, &nobody, 1)) {
    // Another process writes its failure, unless it has died.
    for (int i = 0; i < WAITS && cx_world_segment_failed(head) == CALX_OK;
         i++) {
      cx_futex_wait(&head->failed, 0, WAIT_MS, CX_FUTEX_SHARED);
    }
    return;
  }
  snprintf(head->message, sizeof head->message, "%s", message);
  atomic_store(&head->failed,
               (uint32_t)(code != CALX_OK ? code : CALX_ABORTED));
  cx_futex_wake(&head->failed, CX_FUTEX_SHARED);
}

// ---- memory -----------------------------------------------------------------

static calx_status *map(int fd, cx_world_segment *out)
{
  void *at = mmap(NULL, CALX_SEGMENT_ENGINE, PROT_READ | PROT_WRITE, MAP_SHARED,
                  fd, 0);
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
  if (fd < 0 || ftruncate(fd, (off_t)CALX_SEGMENT_BYTES) != 0) {
    int error = errno;
    if (fd >= 0) close(fd);
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "memory for the processes of this host to share cannot be "
                    "created: %s",
                    strerror(error));
  }
  calx_status *status = map(fd, out);
  if (status != NULL) {
    close(fd);
    return status;
  }
  out->head->magic = CALX_SEGMENT_MAGIC;
  out->head->processes = (uint32_t)processes;
  return NULL;
}

static calx_status *check(int fd, int processes, cx_world_segment *out)
{
  struct stat file;
  if (fstat(fd, &file) != 0) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "descriptor %d is no segment that processes share: %s", fd,
                    strerror(errno));
  }
  if (!S_ISREG(file.st_mode) || file.st_size != (off_t)CALX_SEGMENT_BYTES) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "descriptor %d is no segment that processes share: a file "
                    "of %lld bytes",
                    fd, (long long)file.st_size);
  }
  CALX_TRY(map(fd, out));
  const calx_segment_head *head = out->head;
  if (head->magic == CALX_SEGMENT_MAGIC &&
      head->processes == (uint32_t)processes) {
    return NULL;
  }
  calx_status *status = cx_error(
      CALX_FAILED_PRECONDITION,
      "descriptor %d is no segment of %d processes: it starts with %08x and "
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

void cx_world_segment_close(cx_world_segment *segment)
{
  if (segment->head != NULL) munmap(segment->head, CALX_SEGMENT_ENGINE);
  if (segment->fd >= 0) close(segment->fd);
  *segment = (cx_world_segment){ .fd = -1 };
}
