// wait: for what other threads still do. The limit is for a machine that hangs,
// not for a slow one: a test that passes never comes near it.
#ifndef CX_TESTS_SUPPORT_WAIT_H
#define CX_TESTS_SUPPORT_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { WAIT_LIMIT_S = 60 };

static inline int64_t wait_seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

static inline void wait_moment(void)
{
  nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

// Until the condition holds, or the limit: whoever comes back looks again.
#define WAIT_UNTIL(condition)                                         \
  do {                                                                \
    int64_t wait_end_ = wait_seconds() + WAIT_LIMIT_S;                \
    while (!(condition) && wait_seconds() < wait_end_) wait_moment(); \
  } while (0)

#endif
