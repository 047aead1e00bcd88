// world/segment: the memory that the processes of a host share, and its bell.
//
// A calx_window (abi/calx_window.h) lies in front: the job's news, which the
// engine watches too. The board's part follows at CALX_WINDOW_BOARD.
//
// A bell is a 32-bit word that threads and processes sleep on. It is rung by
// whoever changed something that others wait for; a sleeper reads the bell
// first, looks at what it waits for, and sleeps only if the bell still has the
// value that it read, so no ring is lost.
#ifndef CX_WORLD_SEGMENT_H
#define CX_WORLD_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/calx_window.h"
#include "base/status.h"

typedef struct cx_world_wake_word {
  _Atomic uint32_t rung;
  _Atomic uint32_t sleepers;
} cx_world_wake_word;

static inline uint32_t cx_world_wake_read(cx_world_wake_word *bell)
{
  return atomic_load(&bell->rung);
}
void cx_world_wake_all(cx_world_wake_word *bell);
// Until the bell is not `read` any more, or `most_ms` passed; may return early.
void cx_world_wake_wait(cx_world_wake_word *bell, uint32_t read,
                        int64_t most_ms);

typedef struct cx_world_segment {
  calx_window *head;  // CALX_WINDOW_ENGINE bytes; NULL: no window
  int fd;
} cx_world_segment;

// A new anonymous file for the processes of a host, mapped; its descriptor is
// not inherited by exec until its owner says so.
calx_status *cx_world_segment_create(int processes,
                                     cx_world_segment *out) CALX_MUST_USE;
// The window in an open file, which it owns from here unless this fails.
calx_status *cx_world_segment_open(int fd, int processes,
                                   cx_world_segment *out) CALX_MUST_USE;
// The window that another process of this user made and holds open as `fd`.
calx_status *cx_world_segment_open_of(int64_t pid, int fd, int processes,
                                      cx_world_segment *out) CALX_MUST_USE;
void cx_world_segment_close(cx_world_segment *window);

// The job has failed: the first news stays. `failed` becomes the code; those
// that wait on it are woken. On return somebody's news are there, except where
// who was first died in the middle.
void cx_world_segment_fail(calx_window *head, calx_code code, const char *news);
// CALX_OK while all is well; then head->news may be read.
static inline calx_code cx_world_segment_failed(const calx_window *head)
{
  return (calx_code)atomic_load(&head->failed);
}

#endif
