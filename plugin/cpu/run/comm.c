// run/comm: see comm.h. One lock protects the list of items. The number of
// items done is an atomic word too, which the device's thread polls for some
// microseconds before it sleeps.
//
// Invariants: `fn`, `user` and the items from `n_done` on change only under the
// lock. A thread belongs to one process (`generation`); a forked child makes
// lock and conditions anew, because the fork may have happened while they were
// in use.
#include "run/comm.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "threads/threads.h"

enum { SPINS = 1000 };

struct cpu_run_comm {
  cx_mutex lock;
  cx_cond begun, done;
  cx_thread thread;
  uint32_t generation;  // in which the thread was started
  bool stop, busy;
  cpu_run_comm_fn *fn;
  void *user;
  const void **items;
  size_t room;
  uint32_t n_begun;
  _Atomic uint32_t n_done;
  uint32_t known;       // items that the device's thread knows to be done
  calx_status *failed;  // error of item n_done - 1, the last one that is run
};

// ---- the thread ----

// Runs the next item. The caller holds the lock, which is released meanwhile.
static void do_next(cpu_run_comm *c)
{
  const void *item = c->items[atomic_load(&c->n_done)];
  cpu_run_comm_fn *fn = c->fn;
  void *user = c->user;
  c->busy = true;
  cx_unlock(&c->lock);
  calx_status *status = fn(user, item);
  cx_lock(&c->lock);
  c->busy = false;
  c->failed = status;
  atomic_fetch_add(&c->n_done, 1);
  cx_cond_signal(&c->done);
}

static void serve(void *user)
{
  cpu_run_comm *c = user;
  cx_lock(&c->lock);
  while (!c->stop) {
    if (c->failed == NULL && atomic_load(&c->n_done) < c->n_begun) {
      do_next(c);
    } else {
      cx_cond_wait(&c->begun, &c->lock);
    }
  }
  cx_unlock(&c->lock);
}

static void make(cpu_run_comm *c)
{
  cx_mutex_init(&c->lock);
  cx_cond_init(&c->begun);
  cx_cond_init(&c->done);
  c->generation = cpu_threads_generation();
  c->thread = (cx_thread){ .running = false };
  c->busy = false;
}

// ---- interface ----

calx_status *cpu_run_comm_new(cpu_run_comm **out)
{
  *out = cx_calloc(1, sizeof **out);
  if (*out == NULL) return cx_out_of_memory();
  make(*out);
  return NULL;
}

void cpu_run_comm_renew(cpu_run_comm *c)
{
  if (c->generation == cpu_threads_generation()) return;
  make(c);
  c->failed = NULL;
  c->n_begun = c->known = 0;
  atomic_store(&c->n_done, 0);
}

void cpu_run_comm_free(cpu_run_comm *c)
{
  if (c == NULL) return;
  cpu_run_comm_renew(c);
  cx_lock(&c->lock);
  c->stop = true;
  cx_cond_signal(&c->begun);
  cx_unlock(&c->lock);
  cx_thread_join(&c->thread);
  calx_status_free(c->failed);
  cx_cond_free(&c->begun);
  cx_cond_free(&c->done);
  cx_mutex_free(&c->lock);
  cx_free(c->items);
  cx_free(c);
}

calx_status *cpu_run_comm_begin(cpu_run_comm *c, cpu_run_comm_fn *fn,
                                void *user, const void *item)
{
  const bool alone = !c->thread.running;
  calx_status *none = alone ? cpu_threads_spawn(&c->thread, serve, c) : NULL;
  cx_lock(&c->lock);
  if (!cx_grow(&c->items, &c->room, (size_t)c->n_begun + 1, sizeof *c->items)) {
    cx_unlock(&c->lock);
    calx_status_free(none);
    return cx_out_of_memory();
  }
  c->fn = fn;
  c->user = user;
  c->items[c->n_begun++] = item;
  if (none != NULL) {
    if (c->failed == NULL) do_next(c);
  } else {
    cx_cond_signal(&c->begun);
  }
  cx_unlock(&c->lock);
  calx_status_free(none);
  return NULL;
}

calx_status *cpu_run_comm_wait(cpu_run_comm *c, uint32_t number)
{
  if (number < c->known) return NULL;
  for (int i = 0; i < SPINS; i++) {
    if (atomic_load_explicit(&c->n_done, memory_order_acquire) > number) break;
    cpu_threads_pause();
  }
  cx_lock(&c->lock);
  while (c->failed == NULL && atomic_load(&c->n_done) <= number) {
    cx_cond_wait(&c->done, &c->lock);
  }
  uint32_t good = atomic_load(&c->n_done) - (c->failed != NULL ? 1 : 0);
  calx_status *status = number < good ? NULL : cx_status_copy(c->failed);
  c->known = good;
  cx_unlock(&c->lock);
  return status;
}

calx_status *cpu_run_comm_drain(cpu_run_comm *c)
{
  return c->n_begun == 0 ? NULL : cpu_run_comm_wait(c, c->n_begun - 1);
}

void cpu_run_comm_finish(cpu_run_comm *c)
{
  if (c->n_begun == 0) return;
  cx_lock(&c->lock);
  const uint32_t n = atomic_load(&c->n_done);
  c->n_begun = n + (c->busy ? 1 : 0);
  while (c->busy) cx_cond_wait(&c->done, &c->lock);
  calx_status_free(c->failed);
  c->failed = NULL;
  c->n_begun = c->known = 0;
  atomic_store(&c->n_done, 0);
  cx_unlock(&c->lock);
}

uint32_t cpu_run_comm_open(const cpu_run_comm *c)
{
  return c->n_begun - c->known;
}
