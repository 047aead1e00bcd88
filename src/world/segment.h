// world/segment: the memory that the processes of a host share, and its wake
// words.
//
// It begins with a calx_segment_head (abi/calx_segment.h): the job's failure,
// which the engine watches too. The agreement's memory follows at
// CALX_SEGMENT_AGREEMENT.
//
// A wake word is a counter that threads and processes sleep on. A thread that
// changes what others wait for wakes it. A thread that waits reads the word,
// then checks its condition, and sleeps only if the word is still the same; so
// no wake is missed.
#ifndef CX_WORLD_SEGMENT_H
#define CX_WORLD_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/calx_segment.h"
#include "base/status.h"

typedef struct cx_world_wake_word {
  _Atomic uint32_t count;
  _Atomic uint32_t sleepers;
} cx_world_wake_word;

static inline uint32_t cx_world_wake_read(cx_world_wake_word *word)
{
  return atomic_load(&word->count);
}
void cx_world_wake_all(cx_world_wake_word *word);
// Sleeps until the word differs from `read` or the time has passed; may return
// early.
void cx_world_wake_wait(cx_world_wake_word *word, uint32_t read,
                        int64_t timeout_ms);

typedef struct cx_world_segment {
  calx_segment_head *head;  // CALX_SEGMENT_ENGINE bytes; NULL: no segment
  int fd;
} cx_world_segment;

// Creates and maps an anonymous file. Its descriptor is close-on-exec.
calx_status *cx_world_segment_create(int processes,
                                     cx_world_segment *out) CALX_MUST_USE;
// Maps the segment in an open file. On success it owns `fd`.
calx_status *cx_world_segment_open(int fd, int processes,
                                   cx_world_segment *out) CALX_MUST_USE;
// Maps the segment that another process of this user holds open as `fd`.
calx_status *cx_world_segment_open_of(int64_t pid, int fd, int processes,
                                      cx_world_segment *out) CALX_MUST_USE;
void cx_world_segment_close(cx_world_segment *segment);

// Records the job's failure and wakes all that wait for it. The first failure
// stays. On return one is recorded, unless the process that was writing it
// died.
void cx_world_segment_fail(calx_segment_head *head, calx_code code,
                           const char *message);
// CALX_OK while the job has not failed; else head->message may be read.
static inline calx_code cx_world_segment_failed(const calx_segment_head *head)
{
  return (calx_code)atomic_load(&head->failed);
}

#endif
