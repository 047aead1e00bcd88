// base/thread: the thin layer over POSIX threads.
#ifndef CX_BASE_THREAD_H
#define CX_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calx/status.h"

typedef pthread_mutex_t cx_mutex;
typedef pthread_cond_t cx_cond;
#define CX_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER

static inline void cx_mutex_init(cx_mutex *m)
{
  pthread_mutex_init(m, NULL);
}
static inline void cx_mutex_free(cx_mutex *m)
{
  pthread_mutex_destroy(m);
}
static inline void cx_lock(cx_mutex *m)
{
  pthread_mutex_lock(m);
}
static inline bool cx_trylock(cx_mutex *m)  // false: it is locked
{
  return pthread_mutex_trylock(m) == 0;
}
static inline void cx_unlock(cx_mutex *m)
{
  pthread_mutex_unlock(m);
}

void cx_cond_init(cx_cond *c);  // waits are measured on the monotonic clock
static inline void cx_cond_free(cx_cond *c)
{
  pthread_cond_destroy(c);
}
static inline void cx_cond_wait(cx_cond *c, cx_mutex *m)
{
  pthread_cond_wait(c, m);
}
// False: the time ran out.
bool cx_cond_wait_ms(cx_cond *c, cx_mutex *m, int64_t timeout_ms);
static inline void cx_cond_signal(cx_cond *c)
{
  pthread_cond_signal(c);
}
static inline void cx_cond_broadcast(cx_cond *c)
{
  pthread_cond_broadcast(c);
}

typedef struct cx_thread {
  pthread_t handle;
  bool running;
} cx_thread;

calx_status *cx_thread_start(cx_thread *t, void (*fn)(void *user),
                             void *user) CALX_MUST_USE;
// With a stack of this size instead of the system's default.
calx_status *cx_thread_start_stack(cx_thread *t, size_t stack_bytes,
                                   void (*fn)(void *user),
                                   void *user) CALX_MUST_USE;
void cx_thread_join(cx_thread *t);  // nothing for one that was never started

int64_t cx_now_ns(void);  // monotonic
int64_t cx_now_ms(void);  // the same clock, rounded down

#endif
