// threads/threads: see threads.h.
//
// Each worker has a counter of the jobs posted to it, `posted`. So a job wakes,
// and waits for, only the workers that take part, and no worker reads a job
// that is not its own. A thread that waits (a worker for a job, the caller for
// the workers, a member at a barrier) spins for some microseconds and then
// sleeps on a futex. The thread that changes the word wakes it. The waiter
// counts itself as a sleeper and then reads the word, the other thread changes
// the word and then reads the count, both sequentially consistent, so no
// wake-up is lost.
//
// Invariants: `fn`, `user` and `members` change only while the pool is owned
// and no worker has an unfinished job. A pool's workers belong to one process
// (`generation`); a forked child has none until it starts them.
#include "threads/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/futex.h"
#include "base/thread.h"
#include "threads/job.h"
#include "threads/spread.h"

#define SPIN_NS 20000
#define CACHE_LINES 128  // between words of different threads, with prefetching

// A futex and the number of threads that sleep on it.
typedef struct wake_word {
  _Atomic uint32_t value;
  _Atomic uint32_t sleepers;
  char apart[CACHE_LINES - 8];
} wake_word;

typedef struct worker {
  wake_word posted;
  // The last job that was begun by the worker or cancelled by the owner.
  _Atomic uint32_t claimed;
  _Atomic int core;  // on which it was at its last job; -1: it had none
  cpu_threads *threads;
  int rank;
  cx_thread thread;
  char apart[CACHE_LINES];
} worker;

struct cpu_threads {
  int size;
  int started;          // workers
  uint32_t generation;  // in which they were started
  int64_t spin_ns;
  _Atomic bool stop;
  cpu_threads_parallel_fn *fn;  // the job
  void *user;
  int members;  // threads that take part, with the caller
  char apart[CACHE_LINES];
  wake_word owner;    // 0: free; else the owner's generation of processes
  wake_word left;     // workers that have not finished the job
  wake_word arrived;  // at the barrier
  wake_word round;    // barriers so far
  worker workers[];
};

// 1, and one more in each forked child.
static _Atomic uint32_t process_generation = 1;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local cpu_threads_position here = { NULL, 0, 1 };
static _Thread_local bool inside;  // of a region of any pool
static _Thread_local int entered;

static void count_child(void)
{
  atomic_fetch_add(&process_generation, 1);
}

static void watch_forks(void)
{
  pthread_atfork(NULL, NULL, count_child);
}

static uint32_t generation(void)
{
  return atomic_load_explicit(&process_generation, memory_order_relaxed);
}

uint32_t cpu_threads_generation(void)
{
  pthread_once(&once, watch_forks);
  return generation();
}

void cpu_threads_yield(void)
{
  sched_yield();
}

// ---- waiting ----------------------------------------------------------------

// Returns once the word is no longer `old`.
static void wait_for_change(wake_word *w, uint32_t old, int64_t spin_ns)
{
  int64_t until = 0;
  while (spin_ns != 0) {
    for (int i = 0; i < 64; i++) {
      if (atomic_load_explicit(&w->value, memory_order_acquire) != old) return;
      cpu_threads_pause();
    }
    int64_t now = cx_now_ns();
    if (until == 0) until = now + spin_ns;
    if (now >= until) break;
  }
  atomic_fetch_add(&w->sleepers, 1);
  while (atomic_load(&w->value) == old) {
    cx_futex_wait(&w->value, old, -1, CX_FUTEX_PRIVATE);
  }
  atomic_fetch_sub(&w->sleepers, 1);
}

// After a change of the word.
static void wake(wake_word *w)
{
  if (atomic_load(&w->sleepers) != 0) {
    cx_futex_wake(&w->value, CX_FUTEX_PRIVATE);
  }
}

static void reset(wake_word *w)
{
  atomic_store(&w->value, 0);
  atomic_store(&w->sleepers, 0);
}

// ---- workers ----------------------------------------------------------------

static void work(void *user)
{
  worker *me = user;
  cpu_threads *t = me->threads;
  inside = true;
  for (uint32_t seen = 0;; seen++) {
    wait_for_change(&me->posted, seen, t->spin_ns);
    if (t->stop) return;
    uint32_t before = seen;
    if (!atomic_compare_exchange_strong(&me->claimed, &before, seen + 1)) {
      continue;  // cancelled
    }
    atomic_store_explicit(&me->core, sched_getcpu(), memory_order_relaxed);
    here = (cpu_threads_position){ t, me->rank, t->members };
    t->fn(t->user, me->rank);
    here = (cpu_threads_position){ NULL, 0, 1 };
    if (atomic_fetch_sub(&t->left.value, 1) == 1) wake(&t->left);
  }
}

// Spinning only helps where every thread has a core.
static int64_t spin_time(int threads)
{
  return threads > cpu_threads_cores() ? 0 : SPIN_NS;
}

calx_status *cpu_threads_spawn(cx_thread *thread, void (*fn)(void *user),
                               void *user)
{
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  calx_status *status = cx_thread_start(thread, fn, user);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return status;
}

// Starts the workers that are missing. The caller owns the pool.
static calx_status *start_workers(cpu_threads *t)
{
  const uint32_t now = generation();
  if (t->started == t->size - 1 && t->generation == now) return NULL;
  if (t->generation != now) {
    // The fork may have happened at any point of a job.
    t->started = 0;
    t->generation = now;
    t->spin_ns = spin_time(t->size);
    reset(&t->left);
    reset(&t->arrived);
    reset(&t->round);
  }
  calx_status *status = NULL;
  while (status == NULL && t->started < t->size - 1) {
    worker *w = &t->workers[t->started];
    reset(&w->posted);
    atomic_store(&w->claimed, 0);
    atomic_store(&w->core, -1);
    w->threads = t;
    w->rank = t->started + 1;
    status = cpu_threads_spawn(&w->thread, work, w);
    if (status == NULL) t->started++;
  }
  return status;
}

static bool try_own(cpu_threads *t)
{
  const uint32_t now = generation();
  uint32_t owner = atomic_load_explicit(&t->owner.value, memory_order_relaxed);
  // An owner of another generation is a thread of the parent process.
  return owner != now &&
         atomic_compare_exchange_strong(&t->owner.value, &owner, now);
}

static void own(cpu_threads *t)
{
  while (!try_own(t)) {
    uint32_t owner = atomic_load(&t->owner.value);
    if (owner != 0) wait_for_change(&t->owner, owner, t->spin_ns);
  }
}

static void disown(cpu_threads *t)
{
  atomic_store(&t->owner.value, 0);
  wake(&t->owner);
}

// Posts a job to worker i, or the end.
static void post(cpu_threads *t, int i)
{
  atomic_fetch_add(&t->workers[i].posted.value, 1);
  wake(&t->workers[i].posted);
}

// Posts the job to the workers of all members. One that shares its core with
// another member is moved, where each may have a core of its own.
static void post_job(cpu_threads *t, int members)
{
  if (t->spin_ns == 0) {
    for (int i = 0; i < members - 1; i++) post(t, i);
    return;
  }
  cpu_set_t cores;
  CPU_ZERO(&cores);
  cpu_threads_add_core(&cores, sched_getcpu());
  for (int i = 0; i < members - 1; i++) {
    worker *w = &t->workers[i];
    int core = atomic_load_explicit(&w->core, memory_order_relaxed);
    cpu_set_t allowed;
    bool moved = !cpu_threads_add_core(&cores, core) &&
                 cpu_threads_keep_off(w->thread.handle, &cores, &allowed);
    post(t, i);
    if (moved) cpu_threads_allow(w->thread.handle, &allowed);
  }
}

// Cancels the job for workers that have not begun.
static void cancel(cpu_threads *t, int members)
{
  for (int i = 0; i < members - 1; i++) {
    worker *w = &t->workers[i];
    uint32_t job = atomic_load_explicit(&w->posted.value, memory_order_relaxed);
    uint32_t before = job - 1;
    if (atomic_compare_exchange_strong(&w->claimed, &before, job)) {
      atomic_fetch_sub(&t->left.value, 1);
    }
  }
}

// Runs fn on the caller, which owns the pool, and on `members` - 1 workers.
// `all`: each of them must run it; else those that begin before the caller is
// done.
static void run_job(cpu_threads *t, int members, cpu_threads_parallel_fn *fn,
                    void *user, bool all)
{
  cpu_threads_position outside = here;
  t->fn = fn;
  t->user = user;
  t->members = members;
  atomic_store_explicit(&t->left.value, (uint32_t)members - 1,
                        memory_order_relaxed);
  post_job(t, members);
  here = (cpu_threads_position){ t, 0, members };
  inside = true;
  fn(user, 0);
  inside = false;
  here = outside;
  if (!all) cancel(t, members);
  for (uint32_t left; (left = atomic_load(&t->left.value)) != 0;) {
    wait_for_change(&t->left, left, t->spin_ns);
  }
}

// ---- interface --------------------------------------------------------------

calx_status *cpu_threads_new(int threads, cpu_threads **out)
{
  *out = NULL;
  if (threads < 1 || threads > 4096) {
    return cx_invalid("a pool has 1 to 4096 threads, %d were asked for",
                      threads);
  }
  pthread_once(&once, watch_forks);
  size_t n = (size_t)threads - 1;
  cpu_threads *t = cx_calloc(1, sizeof *t + n * sizeof(worker));
  if (t == NULL) return cx_out_of_memory();
  t->size = threads;
  t->generation = atomic_load(&process_generation);
  t->spin_ns = spin_time(threads);
  *out = t;
  return NULL;
}

void cpu_threads_free(cpu_threads *t)
{
  if (t == NULL) return;
  if (t->generation == atomic_load(&process_generation)) {
    t->stop = true;
    for (int i = 0; i < t->started; i++) post(t, i);
    for (int i = 0; i < t->started; i++) {
      cx_thread_join(&t->workers[i].thread);
    }
  }
  cx_free(t);
}

int cpu_threads_size(const cpu_threads *t)
{
  return t->size;
}

calx_status *cpu_threads_start(cpu_threads *t)
{
  if (t->size == 1 || inside) return NULL;
  own(t);
  calx_status *status = start_workers(t);
  disown(t);
  return status;
}

void cpu_threads_parallel(cpu_threads *t, int n, cpu_threads_parallel_fn *fn,
                          void *user)
{
  if (n > t->size) n = t->size;
  if (n <= 1 || inside) {
    cpu_threads_position outside = here;
    here.rank = 0;
    here.size = 1;
    fn(user, 0);
    here = outside;
    return;
  }
  own(t);
  calx_status_free(start_workers(t));
  if (n > t->started + 1) n = t->started + 1;
  run_job(t, n, fn, user, true);
  disown(t);
}

int cpu_threads_try_take(cpu_threads *t, int members)
{
  if (inside || !try_own(t)) return 0;
  calx_status_free(start_workers(t));
  return members > t->started + 1 ? t->started + 1 : members;
}

void cpu_threads_run_taken(cpu_threads *t, int members,
                           cpu_threads_parallel_fn *fn, void *user)
{
  run_job(t, members, fn, user, false);
  disown(t);
}

cpu_threads_position cpu_threads_here(void)
{
  return here;
}

bool cpu_threads_inside(void)
{
  return inside;
}

void cpu_threads_barrier(void)
{
  if (here.size <= 1) return;
  cpu_threads *t = here.threads;
  uint32_t round = atomic_load(&t->round.value);
  if (atomic_fetch_add(&t->arrived.value, 1) + 1 == (uint32_t)here.size) {
    atomic_store(&t->arrived.value, 0);
    atomic_fetch_add(&t->round.value, 1);
    wake(&t->round);
  } else {
    wait_for_change(&t->round, round, t->spin_ns);
  }
}

void cpu_threads_enter(cpu_threads *t)
{
  if (entered++ == 0 && !inside) here.threads = t;
}

void cpu_threads_leave(void)
{
  if (--entered == 0 && !inside) here.threads = NULL;
}
