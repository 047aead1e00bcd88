// threads/threads: loops and teams over threads that spin, then sleep.
//
// A loop is cut into more pieces than there are threads. Each thread has a lot
// of them, the same for the same n, and helps with the others' when it is done:
// a thread that another program keeps from its core holds up one piece at most,
// and one that has not begun when nothing is left, is not waited for.
//
// Each worker has a mailbox of its own: its ticket counts the jobs posted to
// it. So a region wakes, and waits for, only the workers that take part, and
// no worker reads a job that is not its own. Who waits (a worker for a job, the
// caller for the workers, a member at a barrier) spins for some microseconds
// and then sleeps on a futex; who changes the word wakes the sleepers that have
// said so. Both sides write first and look then, sequentially consistent, so
// none is missed.
//
// What must stay true: `fn`, `user` and `members` change only while the pool is
// owned and no worker has an unfinished job; a pool's workers belong to one
// process (`born`): in a forked child there are none until they are started.
#include "threads/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/futex.h"
#include "base/thread.h"

#define SPIN_NS 20000
#define CACHE_LINES 128  // bytes that two words must be apart, with prefetching

// A futex word and how many sleep on it.
typedef struct word {
  _Atomic uint32_t value;
  _Atomic uint32_t sleepers;
  char apart[CACHE_LINES - 8];
} word;

typedef struct worker {
  word ticket;
  // The last job that was begun or called off: by this worker, or its owner.
  _Atomic uint32_t claimed;
  cpu_threads *pool;
  int rank;
  cx_thread thread;
  char apart[CACHE_LINES];
} worker;

struct cpu_threads {
  int threads;
  int started;    // workers that run
  uint32_t born;  // the generation of processes that started them
  int64_t spin_ns;
  _Atomic bool stop;
  cpu_threads_member *fn;  // the job
  void *user;
  int members;
  char apart[CACHE_LINES];
  word owner;    // 0: free; else the owner's generation of processes
  word left;     // workers that have not finished the job
  word arrived;  // at the barrier
  word round;    // barriers so far
  worker workers[];
};

// 1, and one more in each forked child.
static _Atomic uint32_t generation = 1;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local cpu_threads_position here = { NULL, 0, 1 };
static _Thread_local bool inside;  // of a region of any pool
static _Thread_local int entered;

static void count_child(void)
{
  atomic_fetch_add(&generation, 1);
}

static void watch_forks(void)
{
  pthread_atfork(NULL, NULL, count_child);
}

uint32_t cpu_threads_generation(void)
{
  pthread_once(&once, watch_forks);
  return atomic_load_explicit(&generation, memory_order_relaxed);
}

void cpu_threads_yield(void)
{
  sched_yield();
}

// ---- waiting ----------------------------------------------------------------

// Returns once the word is no longer `old`.
static void await_change(word *w, uint32_t old, int64_t spin_ns)
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
static void wake(word *w)
{
  if (atomic_load(&w->sleepers) != 0) {
    cx_futex_wake(&w->value, CX_FUTEX_PRIVATE);
  }
}

static void reset(word *w)
{
  atomic_store(&w->value, 0);
  atomic_store(&w->sleepers, 0);
}

// ---- workers ----------------------------------------------------------------

static void work(void *user)
{
  worker *me = user;
  cpu_threads *pool = me->pool;
  inside = true;
  for (uint32_t seen = 0;; seen++) {
    await_change(&me->ticket, seen, pool->spin_ns);
    if (pool->stop) return;
    uint32_t before = seen;
    if (!atomic_compare_exchange_strong(&me->claimed, &before, seen + 1)) {
      continue;  // called off
    }
    here = (cpu_threads_position){ pool, me->rank, pool->members };
    pool->fn(pool->user, me->rank);
    here = (cpu_threads_position){ NULL, 0, 1 };
    if (atomic_fetch_sub(&pool->left.value, 1) == 1) wake(&pool->left);
  }
}

// Spinning only helps where every thread has a core.
static int64_t spin_of(int threads)
{
  return threads > cpu_threads_cores() ? 0 : SPIN_NS;
}

// The owner starts the workers that are missing; how many run after that.
static calx_status *start_workers(cpu_threads *pool)
{
  uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);
  if (pool->started == pool->threads - 1 && pool->born == now) return NULL;
  if (pool->born != now) {
    // A fork may have come at any point of a region.
    pool->started = 0;
    pool->born = now;
    pool->spin_ns = spin_of(pool->threads);
    reset(&pool->left);
    reset(&pool->arrived);
    reset(&pool->round);
  }
  // The program's signals are for its own threads.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  calx_status *status = NULL;
  while (status == NULL && pool->started < pool->threads - 1) {
    worker *w = &pool->workers[pool->started];
    reset(&w->ticket);
    atomic_store(&w->claimed, 0);
    w->pool = pool;
    w->rank = pool->started + 1;
    status = cx_thread_start(&w->thread, work, w);
    if (status == NULL) pool->started++;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return status;
}

static bool try_own(cpu_threads *pool)
{
  uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);
  uint32_t owner =
      atomic_load_explicit(&pool->owner.value, memory_order_relaxed);
  // One of another generation is the parent's, and not in this process.
  return owner != now &&
         atomic_compare_exchange_strong(&pool->owner.value, &owner, now);
}

static void own(cpu_threads *pool)
{
  while (!try_own(pool)) {
    uint32_t owner = atomic_load(&pool->owner.value);
    if (owner != 0) await_change(&pool->owner, owner, pool->spin_ns);
  }
}

static void disown(cpu_threads *pool)
{
  atomic_store(&pool->owner.value, 0);
  wake(&pool->owner);
}

// Calls the job off for workers that have not begun.
static void call_off(cpu_threads *pool, int members)
{
  for (int i = 0; i < members - 1; i++) {
    worker *w = &pool->workers[i];
    uint32_t job = atomic_load_explicit(&w->ticket.value, memory_order_relaxed);
    uint32_t before = job - 1;
    if (atomic_compare_exchange_strong(&w->claimed, &before, job)) {
      atomic_fetch_sub(&pool->left.value, 1);
    }
  }
}

// The owner runs fn on itself and `members` - 1 workers: all of them, or, where
// the first to end leaves nothing to do, those that come in time.
static void run_job(cpu_threads *pool, int members, cpu_threads_member *fn,
                    void *user, bool all)
{
  cpu_threads_position outside = here;
  pool->fn = fn;
  pool->user = user;
  pool->members = members;
  atomic_store_explicit(&pool->left.value, (uint32_t)members - 1,
                        memory_order_relaxed);
  for (int i = 0; i < members - 1; i++) {
    atomic_fetch_add(&pool->workers[i].ticket.value, 1);
    wake(&pool->workers[i].ticket);
  }
  here = (cpu_threads_position){ pool, 0, members };
  inside = true;
  fn(user, 0);
  inside = false;
  here = outside;
  if (!all) call_off(pool, members);
  for (uint32_t left; (left = atomic_load(&pool->left.value)) != 0;) {
    await_change(&pool->left, left, pool->spin_ns);
  }
}

// ---- interface --------------------------------------------------------------

calx_status *cpu_threads_new(int threads, cpu_threads **out)
{
  *out = NULL;
  if (threads < 1 || threads > 4096) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "a pool has 1 to 4096 threads, %d were asked for", threads);
  }
  pthread_once(&once, watch_forks);
  size_t n = (size_t)threads - 1;
  cpu_threads *pool = cx_calloc(1, sizeof *pool + n * sizeof(worker));
  if (pool == NULL) return cx_out_of_memory();
  pool->threads = threads;
  pool->born = atomic_load(&generation);
  pool->spin_ns = spin_of(threads);
  *out = pool;
  return NULL;
}

void cpu_threads_free(cpu_threads *pool)
{
  if (pool == NULL) return;
  if (pool->born == atomic_load(&generation)) {
    pool->stop = true;
    for (int i = 0; i < pool->started; i++) {
      atomic_fetch_add(&pool->workers[i].ticket.value, 1);
      wake(&pool->workers[i].ticket);
    }
    for (int i = 0; i < pool->started; i++) {
      cx_thread_join(&pool->workers[i].thread);
    }
  }
  cx_free(pool);
}

int cpu_threads_size(const cpu_threads *pool)
{
  return pool->threads;
}

calx_status *cpu_threads_start(cpu_threads *pool)
{
  if (pool->threads == 1 || inside) return NULL;
  own(pool);
  calx_status *status = start_workers(pool);
  disown(pool);
  return status;
}

void cpu_threads_team(cpu_threads *pool, int n, cpu_threads_member *fn,
                      void *user)
{
  if (n > pool->threads) n = pool->threads;
  if (n <= 1 || inside) {
    cpu_threads_position outside = here;
    here.rank = 0;
    here.size = 1;
    fn(user, 0);
    here = outside;
    return;
  }
  own(pool);
  calx_status_free(start_workers(pool));
  if (n > pool->started + 1) n = pool->started + 1;
  run_job(pool, n, fn, user, true);
  disown(pool);
}

// ---- loops ------------------------------------------------------------------

#define PIECES_PER_THREAD 4
#define LOTS 64

// Pieces [next, end) are still to be done.
typedef struct lot {
  _Atomic int64_t next;
  int64_t end;
  char apart[CACHE_LINES - 16];
} lot;

typedef struct loop {
  cpu_threads_body *body;
  void *user;
  int64_t n, pieces;
  int n_lots;
  lot *lots;
} loop;

// The start of piece p: their sizes differ by one at most.
static int64_t start_of(const loop *l, int64_t p)
{
  int64_t each = l->n / l->pieces, rest = l->n % l->pieces;
  return p * each + (p < rest ? p : rest);
}

static void run_pieces(void *user, int rank)
{
  loop *l = user;
  for (int k = 0; k < l->n_lots; k++) {
    lot *at = &l->lots[(rank + k) % l->n_lots];
    int64_t p;
    while ((p = atomic_fetch_add_explicit(&at->next, 1, memory_order_relaxed)) <
           at->end) {
      l->body(l->user, start_of(l, p), start_of(l, p + 1));
    }
  }
}

void cpu_threads_for(cpu_threads *pool, int64_t n, int64_t grain,
                     cpu_threads_body *body, void *user)
{
  if (n <= 0) return;
  int64_t pieces = grain > 1 ? n / grain : n;
  int members = pieces < pool->threads ? (int)pieces : pool->threads;
  if (members <= 1 || inside || !try_own(pool)) {
    body(user, 0, n);
    return;
  }
  calx_status_free(start_workers(pool));
  if (members > pool->started + 1) members = pool->started + 1;
  if (pieces > (int64_t)members * PIECES_PER_THREAD) {
    pieces = (int64_t)members * PIECES_PER_THREAD;
  }
  const int n_lots = members < LOTS ? members : LOTS;
  lot lots[LOTS];
  for (int i = 0; i < n_lots; i++) {
    atomic_init(&lots[i].next, pieces * i / n_lots);
    lots[i].end = pieces * (i + 1) / n_lots;
  }
  loop l = { body, user, n, pieces, n_lots, lots };
  run_job(pool, members, run_pieces, &l, false);
  disown(pool);
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
  cpu_threads *pool = here.pool;
  uint32_t round = atomic_load(&pool->round.value);
  if (atomic_fetch_add(&pool->arrived.value, 1) + 1 == (uint32_t)here.size) {
    atomic_store(&pool->arrived.value, 0);
    atomic_fetch_add(&pool->round.value, 1);
    wake(&pool->round);
  } else {
    await_change(&pool->round, round, pool->spin_ns);
  }
}

void cpu_threads_enter(cpu_threads *pool)
{
  if (entered++ == 0 && !inside) here.pool = pool;
}

void cpu_threads_leave(void)
{
  if (--entered == 0 && !inside) here.pool = NULL;
}
