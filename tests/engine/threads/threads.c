// The pool: loops cover their range once, teams run at once, forks work.
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "support/skip.h"
#include "threads/threads.h"

#define MANY 10007

static cpu_threads *make(int threads)
{
  cpu_threads *pool;
  assert_null(cpu_threads_new(threads, &pool));
  return pool;
}

// ---- loops ------------------------------------------------------------------

typedef struct cover {
  int times[MANY];
  int rank[MANY];
  int64_t shortest;
  _Atomic int pieces;
} cover;

static void mark(void *user, int64_t lo, int64_t hi)
{
  cover *c = user;
  atomic_fetch_add(&c->pieces, 1);
  for (int64_t i = lo; i < hi; i++) {
    c->times[i]++;
    c->rank[i] = cpu_threads_here().rank;
  }
}

static void loops_cover_their_range_once(void **state)
{
  (void)state;
  static const int64_t sizes[] = { 0, 1, 2, 3, 64, 1000, MANY };
  static const int64_t grains[] = { 1, 7, 64, 5000 };
  for (int threads = 1; threads <= 5; threads++) {
    cpu_threads *pool = make(threads);
    for (size_t s = 0; s < 7; s++) {
      for (size_t g = 0; g < 4; g++) {
        cover *c = calloc(1, sizeof *c);
        cpu_threads_for(pool, sizes[s], grains[g], mark, c);
        for (int64_t i = 0; i < MANY; i++) {
          assert_int_equal(c->times[i], i < sizes[s]);
        }
        int64_t most = sizes[s] / grains[g];
        assert_true(c->pieces <= (most > 1 ? most : 1));
        assert_true(c->pieces <= 8 * threads);
        free(c);
      }
    }
    cpu_threads_free(pool);
  }
}

// The first piece waits until all others are done: a thread that is held up
// keeps its piece and no more.
typedef struct held {
  _Atomic int64_t done;
  int64_t n;
} held;

static void wait_in_the_first(void *user, int64_t lo, int64_t hi)
{
  held *h = user;
  if (lo > 0) {
    h->done += hi - lo;
    return;
  }
  while (h->done < h->n - hi) continue;
}

static void others_do_the_work_of_one_that_is_held_up(void **state)
{
  (void)state;
  for (int threads = 2; threads <= 4; threads++) {
    cpu_threads *pool = make(threads);
    assert_null(cpu_threads_start(pool));
    held h = { .n = 1000 };
    cpu_threads_for(pool, h.n, 1, wait_in_the_first, &h);
    assert_true(h.done < h.n && h.done >= h.n - h.n / threads);
    cpu_threads_free(pool);
  }
}

// ---- teams ------------------------------------------------------------------

#define ROUNDS 200

typedef struct race {
  int members;
  _Atomic int at_work;
  int slots[8][2];  // by rank and the round's parity
  _Atomic int bad;
} race;

// Every member sees what every other wrote before the barrier.
static void step(void *user, int rank)
{
  race *r = user;
  cpu_threads_position here = cpu_threads_here();
  if (here.rank != rank || here.size != r->members) r->bad++;
  atomic_fetch_add(&r->at_work, 1);
  for (int i = 0; i < ROUNDS; i++) {
    r->slots[rank][i & 1] = i;
    cpu_threads_barrier();
    for (int k = 0; k < r->members; k++) r->bad += r->slots[k][i & 1] != i;
    cpu_threads_barrier();
  }
}

static void teams_run_at_once(void **state)
{
  (void)state;
  for (int threads = 1; threads <= 4; threads++) {
    cpu_threads *pool = make(threads);
    assert_null(cpu_threads_start(pool));
    for (int members = 1; members <= threads; members++) {
      race r = { .members = members };
      cpu_threads_parallel(pool, members, step, &r);
      assert_int_equal(r.at_work, members);
      assert_int_equal(r.bad, 0);
    }
    cpu_threads_free(pool);
  }
}

static void sleepers_wake(void **state)
{
  (void)state;
  cpu_threads *pool = make(3);
  for (int i = 0; i < 20; i++) {
    usleep(2000);  // longer than a worker spins
    race r = { .members = 3 };
    cpu_threads_parallel(pool, 3, step, &r);
    assert_int_equal(r.at_work, 3);
  }
  cpu_threads_free(pool);
}

typedef struct nest {
  cpu_threads *pool;
  _Atomic int64_t loops;
  _Atomic int teams, alone;
} nest;

static void inner_member(void *user, int rank)
{
  nest *n = user;
  cpu_threads_position here = cpu_threads_here();
  atomic_fetch_add(&n->teams, 1);
  atomic_fetch_add(&n->alone, rank == 0 && here.size == 1);
  cpu_threads_barrier();
}

static void inner_loop(void *user, int64_t lo, int64_t hi)
{
  nest *n = user;
  atomic_fetch_add(&n->loops, hi - lo);
}

static void outer(void *user, int rank)
{
  nest *n = user;
  (void)rank;
  cpu_threads_for(n->pool, 10, 1, inner_loop, n);
  cpu_threads_parallel(n->pool, 2, inner_member, n);
  cpu_threads_barrier();
}

static void nested_regions_are_of_one(void **state)
{
  (void)state;
  nest n = { .pool = make(2) };
  cpu_threads_parallel(n.pool, 2, outer, &n);
  assert_int_equal(n.loops, 20);
  assert_int_equal(n.teams, 2);
  assert_int_equal(n.alone, 2);
  cpu_threads_free(n.pool);
}

static void entered_pool_is_told(void **state)
{
  (void)state;
  cpu_threads *a = make(2), *b = make(2);
  assert_null(cpu_threads_here().threads);
  cpu_threads_enter(a);
  cpu_threads_enter(b);
  assert_ptr_equal(cpu_threads_here().threads, a);
  cpu_threads_leave();
  assert_ptr_equal(cpu_threads_here().threads, a);
  cpu_threads_leave();
  assert_null(cpu_threads_here().threads);
  assert_int_equal(cpu_threads_here().size, 1);
  cpu_threads_free(a);
  cpu_threads_free(b);
}

static void sizes_out_of_range(void **state)
{
  (void)state;
  cpu_threads *pool;
  static const int bad[] = { 0, -1, 1 << 20 };
  for (size_t i = 0; i < 3; i++) {
    calx_status *status = cpu_threads_new(bad[i], &pool);
    assert_int_equal(calx_status_code(status), CALX_INVALID_ARGUMENT);
    assert_null(pool);
    calx_status_free(status);
  }
  cpu_threads_free(NULL);
}

// ---- several users ----------------------------------------------------------

static void use_pool(void *user)
{
  cpu_threads *pool = user;
  for (int i = 0; i < 50; i++) {
    cover *c = calloc(1, sizeof *c);
    cpu_threads_for(pool, 1000, 1, mark, c);
    for (int k = 0; k < 1000; k++) assert_int_equal(c->times[k], 1);
    free(c);
    race r = { .members = 2 };
    cpu_threads_parallel(pool, 2, step, &r);
    assert_int_equal(r.at_work, 2);
  }
}

static void two_users_of_one_pool(void **state)
{
  (void)state;
  cpu_threads *pool = make(2);
  cx_thread other;
  assert_null(cx_thread_start(&other, use_pool, pool));
  use_pool(pool);
  cx_thread_join(&other);
  cpu_threads_free(pool);
}

// The thread sanitizer starts no threads after a fork of several.
#if !defined(__SANITIZE_THREAD__)
static void a_forked_child_has_its_own_workers(void **state)
{
  (void)state;
  cpu_threads *pool = make(3);
  race before = { .members = 3 };
  cpu_threads_parallel(pool, 3, step, &before);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    race r = { .members = 3 };
    cpu_threads_parallel(pool, 3, step, &r);
    cpu_threads_free(pool);
    _exit(r.at_work == 3 && r.bad == 0 ? 0 : 1);
  }
  int result;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result));
  assert_int_equal(WEXITSTATUS(result), 0);
  race after = { .members = 3 };
  cpu_threads_parallel(pool, 3, step, &after);
  assert_int_equal(after.at_work, 3);
  // A child that frees a pool whose workers are the parent's.
  child = fork();
  if (child == 0) {
    alarm(20);
    cpu_threads_free(pool);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
  cpu_threads_free(pool);
}
#endif

// ---- cores ------------------------------------------------------------------

typedef struct member {
  pthread_t thread;
  int core;
} member;

static void note_core(void *user, int rank)
{
  member *m = (member *)user + rank;
  m->core = sched_getcpu();
  m->thread = pthread_self();
}

static void allow(pthread_t thread, const cpu_set_t *cores)
{
  assert_int_equal(pthread_setaffinity_np(thread, sizeof *cores, cores), 0);
}

// Linux may leave a thread on the core where it was, beside the caller.
static void members_of_a_job_have_cores_of_their_own(void **state)
{
  (void)state;
  if (cpu_threads_cores() < 2) SKIP_HERE("one core only");
  cpu_threads *pool = make(2);
  member m[2];
  cpu_threads_parallel(pool, 2, note_core, m);
  pthread_t worker = m[1].thread;
  cpu_set_t all, one, found;
  assert_int_equal(pthread_getaffinity_np(worker, sizeof all, &all), 0);
  CPU_ZERO(&one);
  CPU_SET(m[0].core, &one);
  allow(pthread_self(), &one);
  allow(worker, &one);
  cpu_threads_parallel(pool, 2, note_core, m);
  assert_int_equal(m[1].core, m[0].core);  // it may run nowhere else
  allow(worker, &all);
  cpu_threads_parallel(pool, 2, note_core, m);
  assert_int_not_equal(m[1].core, m[0].core);
  assert_int_equal(pthread_getaffinity_np(worker, sizeof found, &found), 0);
  assert_true(CPU_EQUAL(&found, &all));
  allow(pthread_self(), &all);
  cpu_threads_free(pool);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(loops_cover_their_range_once),
    cmocka_unit_test(others_do_the_work_of_one_that_is_held_up),
    cmocka_unit_test(teams_run_at_once),
    cmocka_unit_test(sleepers_wake),
    cmocka_unit_test(nested_regions_are_of_one),
    cmocka_unit_test(entered_pool_is_told),
    cmocka_unit_test(sizes_out_of_range),
    cmocka_unit_test(two_users_of_one_pool),
    cmocka_unit_test(members_of_a_job_have_cores_of_their_own),
#if !defined(__SANITIZE_THREAD__)
    cmocka_unit_test(a_forked_child_has_its_own_workers),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
