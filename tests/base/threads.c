// Threads, and the counters and timers that all of them touch.
#include <stdatomic.h>

#include "base/futex.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "check.h"

// ---- threads ----------------------------------------------------------------

static void set_flag(void *user)
{
  atomic_store((atomic_int *)user, 1);
}

static void test_thread(void **state)
{
  (void)state;
  atomic_int flag = 0;
  cx_thread t = { 0 };
  cx_thread_join(&t);
  check_ok(cx_thread_start(&t, set_flag, &flag));
  cx_thread_join(&t);
  assert_int_equal(atomic_load(&flag), 1);
  cx_thread_join(&t);
  cx_alloc_fail_at(0);
  check_fails(cx_thread_start(&t, set_flag, &flag), CALX_RESOURCE_EXHAUSTED,
              "memory");
  cx_thread_join(&t);
}

typedef struct gate {
  cx_mutex lock;
  cx_cond changed;
  int waiting;
  bool open;
} gate;

static void wait_at(void *user)
{
  gate *g = user;
  cx_lock(&g->lock);
  g->waiting++;
  cx_cond_broadcast(&g->changed);
  while (!g->open) cx_cond_wait(&g->changed, &g->lock);
  cx_unlock(&g->lock);
}

static void test_conditions(void **state)
{
  (void)state;
  gate g = { .waiting = 0 };
  cx_mutex_init(&g.lock);
  cx_cond_init(&g.changed);
  cx_thread threads[3] = { { 0 } };
  for (int i = 0; i < 3; i++)
    check_ok(cx_thread_start(&threads[i], wait_at, &g));
  cx_lock(&g.lock);
  while (g.waiting < 3) {
    assert_true(cx_cond_wait_ms(&g.changed, &g.lock, 600000));
  }
  // Nobody signals: the time runs out, and it is that much later.
  int64_t before = cx_now_ns();
  while (cx_cond_wait_ms(&g.changed, &g.lock, 20)) {
  }
  assert_true(cx_now_ns() - before >= 20 * 1000000);
  g.open = true;
  cx_cond_broadcast(&g.changed);
  cx_unlock(&g.lock);
  for (int i = 0; i < 3; i++) cx_thread_join(&threads[i]);
  cx_cond_free(&g.changed);
  cx_mutex_free(&g.lock);
}

typedef struct baton {
  _Atomic uint32_t turn;
  cx_futex_scope scope;
} baton;

// Waits for each second turn from `next` on and passes it on.
static void take_turns(baton *b, uint32_t next)
{
  for (; next < 200; next += 2) {
    for (uint32_t turn; (turn = atomic_load(&b->turn)) != next;) {
      cx_futex_wait(&b->turn, turn, -1, b->scope);
    }
    atomic_store(&b->turn, next + 1);
    cx_futex_wake(&b->turn, b->scope);
  }
}

static void take_odd_turns(void *user)
{
  take_turns(user, 1);
}

static void test_futex(void **state)
{
  (void)state;
  for (int i = 0; i < 2; i++) {
    baton b = { .scope = i == 0 ? CX_FUTEX_PRIVATE : CX_FUTEX_SHARED };
    cx_thread other = { 0 };
    // The word has another value than expected: no sleep.
    cx_futex_wait(&b.turn, 1, -1, b.scope);
    check_ok(cx_thread_start(&other, take_odd_turns, &b));
    take_turns(&b, 0);
    cx_thread_join(&other);
    assert_int_equal(atomic_load(&b.turn), 200);
    // Nobody wakes: the time runs out.
    const int64_t before = cx_now_ns();
    while (cx_now_ns() - before < 20 * 1000000) {
      cx_futex_wait(&b.turn, 200, 20, b.scope);
    }
  }
}

// ---- metrics ----------------------------------------------------------------

CX_COUNTER(apples, "Apples");
CX_COUNTER(pears, "Pears");
CX_METRIC(weight, "Weight", CX_UNIT_BYTES);

static void test_counter(void **state)
{
  (void)state;
  cx_metrics_clear();
  assert_null(cx_counter_find("Apples"));
  cx_counter_add(&apples, 2);
  cx_counter_add(&apples, 3);
  assert_int_equal(atomic_load(&cx_counter_find("Apples")->value), 5);
  assert_null(cx_counter_find("Pears"));
  assert_null(cx_counter_find("Apple"));
  cx_metrics_clear();
  assert_null(cx_counter_find("Apples"));
  cx_counter_add(&apples, 1);
  assert_int_equal(atomic_load(&cx_counter_find("Apples")->value), 1);
}

static void test_metric(void **state)
{
  (void)state;
  cx_metrics_clear();
  assert_null(cx_metric_find("Weight"));
  for (int i = 0; i < 3000; i++) cx_metric_add(&weight, i);
  cx_metric *m = cx_metric_find("Weight");
  assert_ptr_equal(m, &weight);
  assert_int_equal(m->count, 3000);
  assert_true(m->accumulator == 3000.0 * 2999 / 2);
  // The newest 1,024 are kept, each at its place of the ring.
  for (int i = 3000 - CX_METRIC_SAMPLES; i < 3000; i++) {
    assert_true(m->samples[i % CX_METRIC_SAMPLES] == i);
  }
  cx_metrics_clear();
  assert_null(cx_metric_find("Weight"));
  cx_metric_add(&weight, 7);
  assert_int_equal(m->count, 1);
  assert_true(m->accumulator == 7 && m->samples[0] == 7);
}

// Apples count 1, pears 10, the weight 100.
static int seen_now(void)
{
  int seen = 0;
  for (cx_metric_entry *e = cx_metrics_next(CX_COUNTERS, NULL); e != NULL;
       e = cx_metrics_next(CX_COUNTERS, e)) {
    seen += strcmp(e->name, "Apples") == 0;
    seen += 10 * (strcmp(e->name, "Pears") == 0);
  }
  for (cx_metric_entry *e = cx_metrics_next(CX_METRICS, NULL); e != NULL;
       e = cx_metrics_next(CX_METRICS, e)) {
    seen += 100 * (strcmp(e->name, "Weight") == 0);
  }
  return seen;
}

static void test_next(void **state)
{
  (void)state;
  cx_metrics_clear();
  assert_int_equal(seen_now(), 0);
  cx_counter_add(&pears, 0);
  cx_metric_add(&weight, 1);
  assert_int_equal(seen_now(), 110);
}

// The first count may come from several threads at once.
static void count_much(void *user)
{
  (void)user;
  for (int i = 0; i < 10000; i++) {
    cx_counter_add(&apples, 1);
    cx_metric_add(&weight, 2);
  }
}

static void test_many_threads(void **state)
{
  (void)state;
  for (int round = 0; round < 3; round++) {
    cx_metrics_clear();
    cx_thread threads[4] = { { 0 } };
    for (int i = 0; i < 4; i++) {
      check_ok(cx_thread_start(&threads[i], count_much, NULL));
    }
    for (int i = 0; i < 4; i++) cx_thread_join(&threads[i]);
    assert_int_equal(atomic_load(&apples.value), 40000);
    assert_int_equal(weight.count, 40000);
    assert_true(weight.accumulator == 80000);
    assert_int_equal(seen_now(), 101);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_thread),       CHECK_TEST(test_conditions),
    cmocka_unit_test(test_futex),  CHECK_TEST(test_counter),
    CHECK_TEST(test_metric),       CHECK_TEST(test_next),
    CHECK_TEST(test_many_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
