// What all ranks launch together, on the fake plugin: one compilation, one
// launch for all, and a failure of either is everybody's and loses nothing.
// Run under the thread sanitizer too.
#include "fixture.h"
#include "support/ranks.h"

// A step that donates: w is replaced by its sum.
static calx_status *step_of(calx_tensor *w)
{
  calx_scope *step = calx_scope_begin();
  calx_assign(w, calx_all_reduce(w, CALX_REDUCE_SUM));
  calx_sync(NULL);
  return calx_scope_end(step);
}

static calx_status *steps(ranks_one *r)
{
  calx_tensor *w = calx_take(RANK_VECTOR(1, 2, 3));
  for (int i = 0; i < 5; i++) RANK_OK(r, step_of(w));
  RANK_VALUES(r, w, 0, 1, 2, 3);  // the fake's results are copies
  calx_release(w);
  return NULL;
}

static void test_one_launch_for_all(void **state)
{
  (void)state;
  for (int n = 2; n <= 4; n++) {
    long compiles = lazy_compiles(), launches = lazy_launches();
    calx_metrics_clear();
    ranks_run(n, steps, NULL);
    assert_int_equal(lazy_compiles() - compiles, 1);
    assert_int_equal(lazy_launches() - launches, 5);
    // Each rank's step is an execution of its own, and donates.
    assert_int_equal(lazy_samples("ExecuteTime"), 5 * n);
    assert_int_equal(lazy_samples("CompileTime"), 1);
    assert_int_equal((long)lazy_sum("InputOutputAliasCount"), 5 * n);
  }
}

// Ranks that do nothing together launch each its own.
static calx_status *apart(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  calx_tensor *t = calx_neg(RANK_VECTOR(1, 2, 3));
  for (int i = 0; i < r->rank; i++) t = calx_neg(t);
  calx_sync(t);
  return calx_scope_end(step);
}

static void test_apart(void **state)
{
  (void)state;
  long launches = lazy_launches();
  ranks_run(3, apart, NULL);
  assert_int_equal(lazy_launches() - launches, 3);
}

// ---- failures ---------------------------------------------------------------

// Runs fn on n ranks, whose `user` is a barrier for all of them.
static void run_with_barrier(int n, calx_status *(*fn)(ranks_one *r))
{
  pthread_barrier_t together;
  pthread_barrier_init(&together, NULL, (unsigned)n);
  ranks_run(n, fn, &together);
  pthread_barrier_destroy(&together);
}

// The launch fails: on all ranks, and their tensors are as they were.
static calx_status *launch_fails(ranks_one *r)
{
  calx_tensor *w = calx_take(RANK_VECTOR(1, 2, 3));
  RANK_OK(r, step_of(w));
  pthread_barrier_wait(r->user);
  if (r->rank == 0) {
    lazy_fake.set("fail=PJRT_LoadedExecutable_Execute@1:8:no room for it");
  }
  pthread_barrier_wait(r->user);
  RANK_STATUS(r, CALX_RESOURCE_EXHAUSTED, step_of(w), "no room for it");
  RANK_VALUES(r, w, 0, 1, 2, 3);
  RANK_OK(r, step_of(w));
  RANK_VALUES(r, w, 0, 1, 2, 3);
  calx_release(w);
  return NULL;
}

static void test_launch_fails(void **state)
{
  (void)state;
  for (int n = 2; n <= 4; n++) run_with_barrier(n, launch_fails);
}

// One thread's compilation fails; another's may not. Nobody launches, and
// everybody knows why.
static calx_status *compile_fails(ranks_one *r)
{
  calx_tensor *w = calx_take(RANK_VECTOR(1, 2, 3));
  calx_status *status = step_of(w);
  bool own = calx_status_code(status) == CALX_RESOURCE_EXHAUSTED;
  RANK_CHECK(r, own || calx_status_code(status) == CALX_ABORTED);
  RANK_CHECK(r, status != NULL &&
                    strstr(calx_status_message(status), "too large") != NULL);
  RANK_CHECK(r, own || strstr(calx_status_message(status),
                              "could not make its program") != NULL);
  calx_status_free(status);
  atomic_fetch_add((atomic_int *)r->user, own);
  RANK_VALUES(r, w, 0, 1, 2, 3);
  calx_release(w);
  return NULL;
}

static void test_compile_fails(void **state)
{
  (void)state;
  for (int n = 2; n <= 4; n++) {
    atomic_int own;
    atomic_init(&own, 0);
    long launches = lazy_launches();
    lazy_set("fail=PJRT_Client_Compile@1:8:it is too large");
    ranks_run(n, compile_fails, &own);
    assert_int_equal(atomic_load(&own), 1);
    assert_int_equal(lazy_launches(), launches);
  }
}

// One rank's numbers do not arrive, before it meets the others.
static calx_status *upload_fails(ranks_one *r)
{
  calx_tensor *w = calx_take(RANK_VECTOR(1, 2, 3));
  RANK_OK(r, step_of(w));
  for (int i = 0; i < 2; i++) {
    calx_scope *step = calx_scope_begin();
    calx_assign(w, calx_all_reduce(w, CALX_REDUCE_SUM, .scale = 2 + i));
    pthread_barrier_wait(r->user);
    if (i == 1 && r->rank == 0) {
      lazy_fake.set("fail=PJRT_Client_BufferFromHostBuffer@1:8:no room");
      calx_sync(NULL);
      calx_status *status = calx_scope_end(step);
      RANK_CHECK(r, calx_status_code(status) == CALX_RESOURCE_EXHAUSTED);
      calx_release(w);
      r->fails = true;
      pthread_barrier_wait(r->user);
      return status;
    }
    if (i == 1) pthread_barrier_wait(r->user);
    calx_sync(NULL);
    if (i == 0) {
      RANK_OK(r, calx_scope_end(step));
    } else {
      RANK_STATUS(r, CALX_ABORTED, calx_scope_end(step),
                  "rank 0 failed: ", "no room");
    }
  }
  RANK_VALUES(r, w, 0, 1, 2, 3);
  calx_release(w);
  return NULL;
}

static void test_upload_fails(void **state)
{
  (void)state;
  for (int n = 2; n <= 4; n++) run_with_barrier(n, upload_fails);
}

// The step fails when it runs, on rank 0's device: the others hear of it when
// rank 0 has ended.
static calx_status *late(ranks_one *r)
{
  calx_tensor *w = calx_take(RANK_VECTOR(1, 2, 3));
  RANK_OK(r, step_of(w));
  pthread_barrier_wait(r->user);
  if (r->rank == 0) lazy_fake.set("late=1:13:the device is gone");
  pthread_barrier_wait(r->user);
  calx_status *status = step_of(w);
  if (status == NULL) status = calx_device_wait(NULL);
  if (r->rank == 0) {
    calx_release(w);
    r->fails = true;
    RANK_CHECK(r, calx_status_code(status) == CALX_INTERNAL);
    RANK_CHECK(
        r, strstr(calx_status_message(status), "the device is gone") &&
               strstr(calx_status_message(status), "restore them from a save"));
    return status;
  }
  RANK_OK(r, status);
  RANK_STATUS(r, CALX_ABORTED, step_of(w),
              "rank 0 failed: ", "the device is gone");
  RANK_VALUES(r, w, 0, 1, 2, 3);
  calx_release(w);
  return NULL;
}

static void test_late_failure(void **state)
{
  (void)state;
  run_with_barrier(3, late);
}

// ---- a device that is no rank -----------------------------------------------

static calx_status *no_rank(ranks_one *r)
{
  calx_device *other;
  RANK_OK(r, calx_device_open("xla:3", &other));
  calx_device_set_current(other);
  calx_scope *step = calx_scope_begin();
  calx_all_reduce(RANK_VECTOR(1), CALX_REDUCE_SUM);
  RANK_STATUS(r, CALX_FAILED_PRECONDITION, calx_scope_end(step),
              "all_reduce: xla:3 is no rank of the world, which has 2");
  calx_device_set_current(r->device);
  return NULL;
}

static void test_no_rank(void **state)
{
  (void)state;
  ranks_run(2, no_rank, NULL);
}

static int begin(void **state)
{
  int failed = lazy_begin(state);
  lazy_set("devices=4");
  return failed;
}

static int setup(void **state)
{
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  if (ranks_setup(state) != 0) return 1;
  return lazy_setup(state);
}

#define LAUNCH_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, lazy_end)

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAUNCH_TEST(test_one_launch_for_all),
    LAUNCH_TEST(test_apart),
    LAUNCH_TEST(test_launch_fails),
    LAUNCH_TEST(test_compile_fails),
    LAUNCH_TEST(test_upload_fails),
    LAUNCH_TEST(test_late_failure),
    LAUNCH_TEST(test_no_rank),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
