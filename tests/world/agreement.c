// Agreements in one process: its ranks are threads that agree, differ, end,
// fail and wait.
#include <stdatomic.h>
#include <time.h>

#include "base/thread.h"
#include "check.h"
#include "world/local_store.h"
#include "world/state.h"

enum { MOST_RANKS = 8, LONG_MS = 60000 };

// ---- ranks that are threads -------------------------------------------------

typedef struct rank {
  cx_thread thread;
  int rank;
  void (*body)(struct rank *r);
  calx_status *status;  // of the body's last agreement
  int differs;
  int done;  // agreements that succeeded
} rank;

static void run_rank(void *user)
{
  rank *r = user;
  r->body(r);
  cx_world_rank_end(r->rank, NULL);
}

static void start_ranks(rank *ranks, int n, void (*body)(rank *r))
{
  check_ok(cx_world_join());
  check_ok(cx_world_ranks(n));
  for (int i = 0; i < n; i++) {
    ranks[i] = (rank){ .rank = i, .body = body, .differs = -1 };
    check_ok(cx_thread_start(&ranks[i].thread, run_rank, &ranks[i]));
  }
}

static void end_ranks(rank *ranks, int n)
{
  for (int i = 0; i < n; i++) cx_thread_join(&ranks[i].thread);
}

static bool agree(rank *r, uint64_t key, const char *what, int64_t timeout_ms)
{
  cx_world_proposal a = { .rank = r->rank, .key = { key, 1 }, .what = what };
  calx_status_free(r->status);
  r->status = cx_world_agree(&a, timeout_ms, &r->differs);
  r->done += r->status == NULL;
  return r->status == NULL;
}

// All ranks have the same text; freed.
static void check_all_fail(rank *ranks, int n, calx_code code,
                           const char *piece)
{
  for (int i = 1; i < n; i++) {
    if (ranks[0].status == NULL || ranks[i].status == NULL) continue;
    assert_string_equal(calx_status_message(ranks[i].status),
                        calx_status_message(ranks[0].status));
  }
  for (int i = 0; i < n; i++) check_fails(ranks[i].status, code, piece);
}

// ---- agreeing ---------------------------------------------------------------

enum { ROUNDS = 300 };
static atomic_int in_round[ROUNDS];
static atomic_int ranks_now;

static void many_rounds(rank *r)
{
  for (int i = 0; i < ROUNDS; i++) {
    atomic_fetch_add(&in_round[i], 1);
    if (!agree(r, (uint64_t)i, "many", LONG_MS)) return;
    // No rank returns before all have arrived.
    if (atomic_load(&in_round[i]) != atomic_load(&ranks_now)) return;
  }
}

static void test_agree(void **state)
{
  (void)state;
  for (int n = 1; n <= MOST_RANKS; n *= 2) {
    rank ranks[MOST_RANKS];
    for (int i = 0; i < ROUNDS; i++) atomic_store(&in_round[i], 0);
    atomic_store(&ranks_now, n);
    start_ranks(ranks, n, many_rounds);
    end_ranks(ranks, n);
    for (int i = 0; i < n; i++) {
      check_ok(ranks[i].status);
      assert_int_equal(ranks[i].done, ROUNDS);
      assert_int_equal(ranks[i].differs, -1);
    }
    cx_world_leave(NULL);
  }
}

static void test_second_launch(void **state)
{
  (void)state;
  rank ranks[2];
  check_ok(cx_world_join());
  for (int launch = 0; launch < 3; launch++) {
    for (int i = 0; i < ROUNDS; i++) atomic_store(&in_round[i], 0);
    atomic_store(&ranks_now, 2);
    if (launch == 0) check_ok(cx_world_ranks(2));
    for (int i = 0; i < 2; i++) {
      ranks[i] = (rank){ .rank = i, .body = many_rounds, .differs = -1 };
      check_ok(cx_thread_start(&ranks[i].thread, run_rank, &ranks[i]));
    }
    end_ranks(ranks, 2);
    for (int i = 0; i < 2; i++) assert_int_equal(ranks[i].done, ROUNDS);
    cx_world_agreement_reset();
  }
  cx_world_leave(NULL);
}

// The second failure returns once the first one is recorded.
typedef struct second {
  calx_segment_head head;
  calx_code found;
} second;

static void fail_as_second(void *user)
{
  second *s = user;
  cx_world_segment_fail(&s->head, CALX_INTERNAL, "second");
  s->found = cx_world_segment_failed(&s->head);
}

static void test_second_failure(void **state)
{
  (void)state;
  second s = { .head = { .magic = CALX_SEGMENT_MAGIC } };
  cx_thread thread = { 0 };
  atomic_store(&s.head.writing, 1);
  check_ok(cx_thread_start(&thread, fail_as_second, &s));
  // Time in which it must not return.
  nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
  snprintf(s.head.message, sizeof s.head.message, "first");
  atomic_store(&s.head.failed, CALX_DATA_LOSS);
  cx_thread_join(&thread);
  assert_int_equal(s.found, CALX_DATA_LOSS);
  assert_string_equal(s.head.message, "first");
}

static void test_alone(void **state)
{
  (void)state;
  cx_world_proposal a = { .rank = 0, .what = "alone" };
  int differs = 5;
  check_ok(cx_world_agree(&a, 0, &differs));  // before anything was joined
  assert_int_equal(differs, -1);
  check_ok(cx_world_join());
  check_ok(cx_world_ranks(1));
  check_ok(cx_world_agree(&a, 0, NULL));
  a.rank = 1;
  check_fails(cx_world_agree(&a, 0, NULL), CALX_INVALID_ARGUMENT,
              "alone: rank 1 is not of this process, which has 0 to 0");
  a.rank = 0;
  cx_world_rank_end(0, NULL);
  check_fails(cx_world_agree(&a, 0, NULL), CALX_FAILED_PRECONDITION,
              "rank 0 has ended");
  cx_world_agreement_reset();
  check_ok(cx_world_agree(&a, 0, NULL));
  check_fails(cx_world_ranks(0), CALX_INVALID_ARGUMENT, "0 ranks");
  cx_world_leave(NULL);
}

// ---- differing --------------------------------------------------------------

static void differ_at_third(rank *r)
{
  bool odd = r->rank == 1;
  for (int i = 0; i < 2; i++) {
    if (!agree(r, 7, "all_reduce at a.c:1", LONG_MS)) return;
  }
  if (!agree(r, odd ? 8 : 7,
             odd ? "all_gather at a.c:9" : "all_reduce at a.c:1", LONG_MS)) {
    agree(r, 7, "again", LONG_MS);  // the outcome stays
  }
}

static void test_other_key(void **state)
{
  (void)state;
  enum { N = 4 };
  rank ranks[N];
  start_ranks(ranks, N, differ_at_third);
  end_ranks(ranks, N);
  for (int i = 0; i < N; i++) {
    assert_int_equal(ranks[i].done, 2);
    assert_non_null(strstr(calx_status_message(ranks[i].status),
                           "rank 1 submits all_gather at a.c:9"));
  }
  check_all_fail(ranks, N, CALX_ABORTED, "all_reduce at a.c:1 (key 0");
  cx_world_leave(NULL);
}

static void differ_at_once(rank *r)
{
  agree(r, (uint64_t)r->rank, "graph", LONG_MS);
}

static void test_who_differs(void **state)
{
  (void)state;
  rank ranks[2];
  start_ranks(ranks, 2, differ_at_once);
  end_ranks(ranks, 2);
  assert_int_equal(ranks[0].differs, 1);
  assert_int_equal(ranks[1].differs, 0);
  check_all_fail(ranks, 2, CALX_ABORTED,
                 "in agreement 1: shapes or other ops before it differ");
  cx_world_leave(NULL);
}

static void wait_for(const char *key, rank *r)
{
  char *value = NULL;
  size_t size;
  r->status = cx_world_store_get(key, LONG_MS, &value, &size);
  cx_free(value);
}

static void differ_without_last(rank *r)
{
  if (r->rank == 2) {
    // Arrives only after the others have failed.
    wait_for("both failed", r);
    agree(r, 0, "late", LONG_MS);
    return;
  }
  agree(r, (uint64_t)r->rank, "graph", LONG_MS);
}

static void test_differ_at_once(void **state)
{
  (void)state;
  rank ranks[3];
  start_ranks(ranks, 3, differ_without_last);
  for (int i = 0; i < 2; i++) cx_thread_join(&ranks[i].thread);
  check_ok(cx_world_store_put("both failed", "", 0));
  cx_thread_join(&ranks[2].thread);
  cx_world_store_drop("both failed");
  check_all_fail(ranks, 3, CALX_ABORTED, "the ranks do not do the same");
  cx_world_leave(NULL);
}

// ---- ranks that end, fail or are late
// --------------------------------------------

static void end_early(rank *r)
{
  int rounds = r->rank == 2 ? 13 : 14;
  for (int i = 0; i < rounds; i++) {
    if (!agree(r, 3, "all_reduce at b.c:5", LONG_MS)) return;
  }
}

static void test_ended(void **state)
{
  (void)state;
  rank ranks[4];
  start_ranks(ranks, 4, end_early);
  end_ranks(ranks, 4);
  for (int i = 0; i < 4; i++) assert_int_equal(ranks[i].done, 13);
  assert_null(ranks[2].status);
  for (int i = 0; i < 4; i++) {
    if (i == 2) continue;
    assert_non_null(
        strstr(calx_status_message(ranks[i].status),
               "rank 2 has ended its function without an error after 13 "
               "agreements, but rank "));
    check_fails(ranks[i].status, CALX_ABORTED,
                " waits for it at all_reduce at b.c:5 (agreement 14): do the "
                "ranks have different numbers of batches?");
  }
  cx_world_leave(NULL);
}

static void fail_second(rank *r)
{
  if (!agree(r, 3, "all_reduce", LONG_MS)) return;
  if (r->rank == 0) {
    calx_status *why = calx_status_new(CALX_DATA_LOSS, "the file is short");
    cx_world_rank_end(0, why);
    calx_status_free(why);
    return;
  }
  agree(r, 3, "all_reduce", LONG_MS);
}

static void run_fail_second(void *user)
{
  rank *r = user;
  fail_second(r);
}

static void test_failed(void **state)
{
  (void)state;
  rank ranks[3];
  check_ok(cx_world_join());
  check_ok(cx_world_ranks(3));
  for (int i = 0; i < 3; i++) {
    ranks[i] = (rank){ .rank = i };
    check_ok(cx_thread_start(&ranks[i].thread, run_fail_second, &ranks[i]));
  }
  end_ranks(ranks, 3);
  assert_null(ranks[0].status);
  check_all_fail(ranks + 1, 2, CALX_ABORTED,
                 "rank 0 failed: the file is short");
  cx_world_leave(NULL);
}

static void be_late(rank *r)
{
  if (r->rank == 1 || r->rank == 3) {
    wait_for("gave up", r);  // the others did
  }
  agree(r, 3, "all_reduce", r->rank == 0 ? 50 : LONG_MS);
  if (r->rank == 0) {
    calx_status *status = cx_world_store_put("gave up", "", 0);
    if (status != NULL) abort();
  }
}

static void test_late(void **state)
{
  (void)state;
  rank ranks[4];
  start_ranks(ranks, 4, be_late);
  end_ranks(ranks, 4);
  check_all_fail(
      ranks, 4, CALX_DEADLINE_EXCEEDED,
      "ranks 1, 3 did not arrive in time at all_reduce, where rank 0 "
      "waited (agreement 1)");
  cx_world_leave(NULL);
}

static void wait_for_all(rank *r)
{
  if (r->rank == 0) agree(r, 3, "all_reduce", LONG_MS);
}

static void test_failure(void **state)
{
  (void)state;
  rank ranks[2];
  check_ok(cx_world_join());
  check_ok(cx_world_ranks(2));
  ranks[0] = (rank){ .rank = 0, .body = wait_for_all };
  check_ok(cx_thread_start(&ranks[0].thread, run_rank, &ranks[0]));
  check_ok(cx_world_failure());
  calx_status *why = calx_status_new(CALX_UNAVAILABLE, "process 3 was lost");
  cx_world_fail(CALX_ABORTED, calx_status_message(why));
  calx_status_free(why);
  cx_world_fail(CALX_ABORTED, "and another");
  cx_thread_join(&ranks[0].thread);
  check_fails(ranks[0].status, CALX_ABORTED, "process 3 was lost");
  check_fails(cx_world_failure(), CALX_ABORTED, "process 3 was lost");
  cx_world_leave(NULL);
  check_ok(cx_world_failure());
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_agree),          CHECK_TEST(test_second_launch),
    CHECK_TEST(test_second_failure), CHECK_TEST(test_alone),
    CHECK_TEST(test_other_key),      CHECK_TEST(test_who_differs),
    CHECK_TEST(test_differ_at_once), CHECK_TEST(test_ended),
    CHECK_TEST(test_failed),         CHECK_TEST(test_late),
    CHECK_TEST(test_failure),
  };
  return cmocka_run_group_tests_name("world: agreements", tests, NULL, NULL);
}
