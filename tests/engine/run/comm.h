// comm: work for a communication thread, shared by the tests of it.
#ifndef TESTS_ENGINE_RUN_COMM_H
#define TESTS_ENGINE_RUN_COMM_H

#include <stdatomic.h>
#include <unistd.h>

#include "run/comm.h"
#include "support/support.h"

typedef struct work {
  int log[64];
  _Atomic int n;
  _Atomic bool held;  // items wait
  int fails;          // this one
} work;

static inline calx_status *take(void *user, const void *item)
{
  work *w = user;
  const int i = *(const int *)item;
  while (atomic_load(&w->held)) usleep(100);
  w->log[atomic_fetch_add(&w->n, 1)] = i;
  return i == w->fails ? cx_error(CALX_ABORTED, "item %d", i) : NULL;
}

static const int comm_items[] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static inline void begin(cpu_run_comm *c, work *w, int n)
{
  for (int i = 0; i < n; i++) {
    CHECK_STATUS_OK(cpu_run_comm_begin(c, take, w, &comm_items[i]));
  }
}

static inline void in_order(cpu_run_comm *c, work *w)
{
  atomic_store(&w->n, 0);
  w->fails = -1;
  begin(c, w, 8);
  CHECK_STATUS_OK(cpu_run_comm_wait(c, 3));
  assert_true(atomic_load(&w->n) >= 4);
  CHECK_STATUS_OK(cpu_run_comm_drain(c));
  assert_int_equal(cpu_run_comm_open(c), 0);
  cpu_run_comm_finish(c);
  assert_int_equal(atomic_load(&w->n), 8);
  for (int i = 0; i < 8; i++) assert_int_equal(w->log[i], i);
}

#endif
