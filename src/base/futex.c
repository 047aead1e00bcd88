// base/futex: see futex.h.
#include "base/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// The system's flag tells it that no other process uses the word, which makes
// the call cheaper.
static int operation(int op, cx_futex_scope scope)
{
  return scope == CX_FUTEX_PRIVATE ? op | FUTEX_PRIVATE_FLAG : op;
}

void cx_futex_wait(_Atomic uint32_t *word, uint32_t expected,
                   int64_t timeout_ms, cx_futex_scope scope)
{
  struct timespec timeout = { .tv_sec = (time_t)(timeout_ms / 1000),
                              .tv_nsec =
                                  (int32_t)(timeout_ms % 1000) * 1000000 };
  (void)syscall(SYS_futex, (uint32_t *)word, operation(FUTEX_WAIT, scope),
                expected, timeout_ms < 0 ? NULL : &timeout, NULL, 0);
}

void cx_futex_wake(_Atomic uint32_t *word, cx_futex_scope scope)
{
  (void)syscall(SYS_futex, (uint32_t *)word, operation(FUTEX_WAKE, scope),
                INT_MAX, NULL, NULL, 0);
}
