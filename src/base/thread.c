// base/thread: POSIX threads under shorter names.
#include "base/thread.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/status.h"

void cx_cond_init(cx_cond *c)
{
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(c, &attributes);
  pthread_condattr_destroy(&attributes);
}

bool cx_cond_wait_ms(cx_cond *c, cx_mutex *m, int64_t timeout_ms)
{
  int64_t until = cx_now_ns() + timeout_ms * 1000000;
  struct timespec at = { .tv_sec = (time_t)(until / 1000000000),
                         .tv_nsec = (int32_t)(until % 1000000000) };
  return pthread_cond_timedwait(c, m, &at) != ETIMEDOUT;
}

typedef struct start {
  void (*fn)(void *user);
  void *user;
} start;

static void *run(void *argument)
{
  start s = *(start *)argument;
  cx_free(argument);
  s.fn(s.user);
  return NULL;
}

calx_status *cx_thread_start_stack(cx_thread *t, size_t stack_bytes,
                                   void (*fn)(void *user), void *user)
{
  t->running = false;
  start *s = cx_alloc(sizeof *s);
  if (s == NULL) return cx_out_of_memory();
  *s = (start){ fn, user };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  int error = 0;
  if (stack_bytes != 0) {
    error = pthread_attr_setstacksize(&attributes, stack_bytes);
  }
  if (error == 0) error = pthread_create(&t->handle, &attributes, run, s);
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    cx_free(s);
    return cx_error(CALX_RESOURCE_EXHAUSTED, "cannot start a thread: %s",
                    strerror(error));
  }
  t->running = true;
  return NULL;
}

calx_status *cx_thread_start(cx_thread *t, void (*fn)(void *user), void *user)
{
  return cx_thread_start_stack(t, 0, fn, user);
}

void cx_thread_join(cx_thread *t)
{
  if (!t->running) return;
  pthread_join(t->handle, NULL);
  t->running = false;
}

int64_t cx_now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t cx_now_ms(void)
{
  return cx_now_ns() / 1000000;
}
