// closures: what runs after a step, at once and on a thread.
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

typedef struct call {
  atomic_int count, hold;  // a call waits while hold is 1
  atomic_int entered;
  int64_t numel;
  size_t n;
  bool ready, fails, on_other_thread;
  pthread_t caller;
  double number;
} call;

static calx_status *note(void *user, calx_tensor *const *tensors, size_t n)
{
  call *c = user;
  atomic_fetch_add(&c->entered, 1);
  while (atomic_load(&c->hold) != 0) sched_yield();
  c->n = n;
  c->ready = true;
  for (size_t i = 0; i < n; i++) c->ready &= calx_is_ready(tensors[i]);
  c->on_other_thread = !pthread_equal(pthread_self(), c->caller);
  if (n != 0) {
    float x[64];
    size_t bytes = (size_t)calx_tensor_numel(tensors[0]) * sizeof *x;
    calx_status *status = calx_tensor_read(tensors[0], x, bytes);
    if (status != NULL) return status;
    c->number = (double)x[0];
  }
  atomic_fetch_add(&c->count, 1);
  return c->fails ? cx_error(CALX_DATA_LOSS, "the closure broke") : NULL;
}

#define CALL                 \
  {                          \
    .caller = pthread_self() \
  }

// ---- at once ----------------------------------------------------------------

// The tensor materialises by the sync, though nobody names it, and the closure
// is through when the sync returns. It runs once.
static void test_at_once(void **state)
{
  (void)state;
  call c = CALL;
  calx_tensor *w = lazy_durable(4, 5);
  calx_scope *step = calx_scope_begin();
  calx_tensor *loss = calx_neg(w);  // the fake copies
  calx_tensor *both[] = { loss, w };
  calx_add_step_closure(note, &c, both, 2);
  assert_int_equal(atomic_load(&c.count), 0);
  long launches = lazy_launches();
  calx_sync(NULL);
  assert_int_equal(lazy_launches(), launches + 1);
  assert_int_equal(atomic_load(&c.count), 1);
  assert_true(c.ready && !c.on_other_thread);
  assert_int_equal(c.n, 2);
  assert_true(c.number == 5);
  calx_sync(NULL);
  assert_int_equal(atomic_load(&c.count), 1);
  CHECK_STATUS_OK(calx_scope_end(step));
  calx_add_step_closure(note, &c, NULL, 0);
  calx_sync(NULL);
  assert_int_equal(atomic_load(&c.count), 2);
  CHECK_STATUS_OK(calx_wait_step_closures());
  calx_release(w);
}

static calx_status *fail_in_scope(void *user, calx_tensor *const *tensors,
                                  size_t n)
{
  (void)user, (void)tensors, (void)n;
  cx_lazy_scope_pin(cx_error(CALX_ABORTED, "left in the scope"));
  return NULL;
}

// Its failure is the sync's, with the place of the add; those after it are
// dropped.
static void test_failure(void **state)
{
  (void)state;
  call bad = CALL, after = CALL;
  bad.fails = true;
  calx_scope *step = calx_scope_begin();
  calx_add_step_closure(note, &bad, NULL, 0);
  calx_add_step_closure(note, &after, NULL, 0);
  assert_null(calx_scope_error());
  calx_sync(NULL);
  CHECK_STATUS(CALX_DATA_LOSS, calx_scope_end(step), "the closure broke",
               "added at tests/lazy/closures.c:");
  assert_int_equal(atomic_load(&bad.count), 1);
  step = calx_scope_begin();
  calx_sync(NULL);
  assert_int_equal(atomic_load(&after.count), 0);
  calx_add_step_closure(fail_in_scope, NULL, NULL, 0);
  calx_sync(NULL);
  CHECK_STATUS(CALX_ABORTED, calx_scope_end(step), "left in the scope");
}

// A step that fails drops its closures, and a failed scope takes none.
static void test_failed_step(void **state)
{
  (void)state;
  call c = CALL;
  calx_tensor *w = lazy_durable(4, 5);
  for (int how = 0; how < 3; how++) {
    calx_scope *step = calx_scope_begin();
    if (how == 2) cx_lazy_scope_pin(cx_error(CALX_ABORTED, "it broke"));
    calx_tensor *loss = calx_neg(w);
    calx_add_step_closure(note, &c, &loss, 1, .run_async = how == 0);
    if (how == 0) lazy_set("fail=PJRT_LoadedExecutable_Execute@1:10:it broke");
    if (how == 1) cx_lazy_scope_pin(cx_error(CALX_ABORTED, "it broke"));
    calx_sync(loss);
    CHECK_STATUS(CALX_ABORTED, calx_scope_end(step), "it broke");
    calx_sync(NULL);
    assert_int_equal(atomic_load(&c.count), 0);
  }
  CHECK_STATUS_OK(calx_wait_step_closures());
  calx_release(w);
}

// A closure may sync and add, which is for the next sync but one.
static calx_status *add_again(void *user, calx_tensor *const *tensors, size_t n)
{
  (void)n;
  calx_add_step_closure(note, user, tensors, 1);
  return calx_wait_step_closures();
}

static void test_nested(void **state)
{
  (void)state;
  call c = CALL, async = CALL;
  calx_tensor *w = lazy_durable(4, 5);
  calx_add_step_closure(add_again, &c, &w, 1);
  calx_add_step_closure(note, &async, NULL, 0, .run_async = true);
  calx_sync(NULL);
  assert_int_equal(atomic_load(&c.count), 0);
  calx_sync(NULL);
  assert_int_equal(atomic_load(&c.count), 1);
  CHECK_STATUS_OK(calx_wait_step_closures());
  assert_int_equal(atomic_load(&async.count), 1);
  calx_release(w);
}

static void test_refused(void **state)
{
  (void)state;
  call c = CALL;
  const struct {
    calx_closure_fn *fn;
    size_t n;
    size_t size;
    const char *why;
  } cases[] = {
    { NULL, 0, sizeof(calx_step_closure_options), "the function is NULL" },
    { note, 1, sizeof(calx_step_closure_options), "tensor 0 is NULL" },
    { note, 0, 1, "set .size" },
  };
  calx_scope *no_list = calx_scope_begin();
  calx_add_step_closure(note, &c, NULL, 2);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(no_list),
               "2 tensors at NULL");
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *none = NULL;
    calx_add_step_closure_with(
        cases[k].fn, &c, &none, cases[k].n,
        &(calx_step_closure_options){ .size = cases[k].size });
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), cases[k].why);
  }
  calx_sync(NULL);
  assert_int_equal(atomic_load(&c.count), 0);
}

// ---- on a thread ------------------------------------------------------------

// The sync does not wait for it; it has the step's values, whatever its tensors
// are given later.
static void test_async(void **state)
{
  (void)state;
  call c = CALL;
  atomic_store(&c.hold, 1);
  calx_tensor *w = lazy_durable(4, 5);
  calx_add_step_closure(note, &c, &w, 1, .run_async = true);
  calx_sync(NULL);
  assert_int_equal(atomic_load(&c.count), 0);
  calx_scope *step = calx_scope_begin();
  for (int i = 0; i < 3; i++) {
    calx_assign(w, lazy_vector(4, 70));
    calx_assign(w, calx_neg(w));
    calx_sync(NULL);
  }
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_true(lazy_holds(w, 70));
  atomic_store(&c.hold, 0);
  CHECK_STATUS_OK(calx_wait_step_closures());
  assert_int_equal(atomic_load(&c.count), 1);
  assert_true(c.ready && c.on_other_thread);
  assert_true(c.number == 5);
  calx_release(w);
}

// The next asynchronous add tells the failure and is not run; then all is well
// again. A closure at once does not tell it.
static void test_async_failure(void **state)
{
  (void)state;
  call bad = CALL, next = CALL, plain = CALL;
  bad.fails = true;
  calx_add_step_closure(note, &bad, NULL, 0, .run_async = true);
  calx_sync(NULL);
  while (atomic_load(&bad.count) == 0) sched_yield();
  // The closure has returned or is about to: the thread is told by the next.
  bool told = false;
  int ran = 0;
  while (!told) {
    calx_scope *scope = calx_scope_begin();
    calx_add_step_closure(note, &plain, NULL, 0);
    assert_null(calx_scope_error());
    ran = atomic_load(&next.count);
    calx_add_step_closure(note, &next, NULL, 0, .run_async = true);
    calx_status *status = calx_scope_end(scope);
    told = status != NULL;
    if (told) {
      CHECK_STATUS(CALX_DATA_LOSS, status, "the closure broke",
                   "earlier asynchronous step closure");
    }
    calx_sync(NULL);
  }
  assert_int_equal(atomic_load(&next.count), ran);
  assert_true(atomic_load(&plain.count) > 0);
  calx_add_step_closure(note, &next, NULL, 0, .run_async = true);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_wait_step_closures());
  assert_int_equal(atomic_load(&next.count), ran + 1);
  calx_add_step_closure(note, &bad, NULL, 0, .run_async = true);
  calx_sync(NULL);
  CHECK_STATUS(CALX_DATA_LOSS, calx_wait_step_closures(), "the closure broke");
  CHECK_STATUS_OK(calx_wait_step_closures());
}

typedef struct in_order {
  atomic_int next;
  bool right;
} in_order;

static calx_status *count_up(void *user, calx_tensor *const *tensors, size_t n)
{
  in_order *o = user;
  float x;
  (void)n;
  calx_status *status = calx_tensor_read(tensors[0], &x, sizeof x);
  if (status != NULL) return status;
  o->right &= x == (float)atomic_fetch_add(&o->next, 1);
  return NULL;
}

// Far more than fit the queue, in their order; with pending ones at the end.
static void test_many(void **state)
{
  (void)state;
  in_order o = { .right = true };
  for (int i = 0; i < 500; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *t = lazy_vector(1, (float)i);
    calx_add_step_closure(count_up, &o, &t, 1, .run_async = true);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  CHECK_STATUS_OK(calx_wait_step_closures());
  assert_int_equal(atomic_load(&o.next), 500);
  assert_true(o.right);
}

// The queue is full and a sync waits for room when a closure fails: what is
// queued is dropped, and the sync goes on.
static void *let_go(void *user)
{
  call *c = user;
  // The sync is about to wait, or does; either way it must not stay.
  for (int i = 0; i < 20000; i++) sched_yield();
  atomic_store(&c->hold, 0);
  return NULL;
}

static void test_failure_with_a_full_queue(void **state)
{
  (void)state;
  call bad = CALL, next = CALL;
  bad.fails = true;
  atomic_store(&bad.hold, 1);
  calx_add_step_closure(note, &bad, NULL, 0, .run_async = true);
  calx_sync(NULL);
  while (atomic_load(&bad.entered) == 0) sched_yield();
  for (int i = 0; i < 100; i++) {
    calx_add_step_closure(note, &next, NULL, 0, .run_async = true);
  }
  calx_sync(NULL);  // now there is no room
  calx_add_step_closure(note, &next, NULL, 0, .run_async = true);
  pthread_t helper;
  assert_int_equal(pthread_create(&helper, NULL, let_go, &bad), 0);
  calx_sync(NULL);
  pthread_join(helper, NULL);
  CHECK_STATUS(CALX_DATA_LOSS, calx_wait_step_closures(), "the closure broke");
}

// It would wait for itself.
static calx_status *wait_inside(void *user, calx_tensor *const *tensors,
                                size_t n)
{
  (void)user, (void)tensors, (void)n;
  calx_shutdown();  // is refused
  return calx_wait_step_closures();
}

static void test_waiting_inside(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 5);
  calx_add_step_closure(wait_inside, NULL, &w, 1, .run_async = true);
  calx_sync(NULL);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_wait_step_closures(),
               "called in an asynchronous step closure");
  assert_true(lazy_holds(w, 5));
  calx_release(w);
}

// What is queued runs before the device goes; what waits for a sync is dropped.
static void test_shutdown(void **state)
{
  (void)state;
  call queued = CALL, waiting = CALL;
  calx_tensor *w = lazy_durable(4, 5);
  calx_add_step_closure(note, &queued, &w, 1, .run_async = true);
  calx_sync(NULL);
  calx_add_step_closure(note, &waiting, &w, 1);
  calx_release(w);
  calx_shutdown();
  assert_int_equal(atomic_load(&queued.count), 1);
  assert_int_equal(atomic_load(&waiting.count), 0);
}

// The thread sanitizer starts no threads after a fork of several.
#if !defined(__SANITIZE_THREAD__)
static calx_status *exit_late(void *user, calx_tensor *const *tensors, size_t n)
{
  (void)user, (void)tensors, (void)n;
  for (int i = 0; i < 100; i++) sched_yield();
  _exit(7);
}

static calx_status *exit_inside(void *user, calx_tensor *const *tensors,
                                size_t n)
{
  (void)user, (void)tensors, (void)n;
  exit(9);
}

// A closure may end the program: nothing waits for it.
static void test_exit_inside(void **state)
{
  (void)state;
  pid_t child = fork();
  if (child == 0) {
    calx_add_step_closure(exit_inside, NULL, NULL, 0, .run_async = true);
    calx_sync(NULL);
    for (;;) pause();
  }
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 9);
}

// A program that ends with closures in the queue runs them first.
static void test_exit(void **state)
{
  (void)state;
  pid_t child = fork();
  if (child == 0) {
    calx_add_step_closure(exit_late, NULL, NULL, 0, .run_async = true);
    calx_sync(NULL);
    exit(3);
  }
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 7);
}
#endif

// Whichever allocation fails: an error, and nothing left.
static void test_no_memory(void **state)
{
  (void)state;
  call c = CALL;
  calx_tensor *w = lazy_durable(4, 5);
  calx_sync(NULL);
  for (long n = 0; n < 20; n++) {
    calx_scope *scope = calx_scope_begin();
    cx_alloc_fail_at(n);
    calx_add_step_closure(note, &c, &w, 1, .run_async = true);
    calx_sync(NULL);
    cx_alloc_fail_at(-1);
    calx_status *status = calx_scope_end(scope);
    calx_status *later = calx_wait_step_closures();
    if (status != NULL) {
      CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, status, "memory");
    }
    if (later != NULL) CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, later, "memory");
  }
  calx_release(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
#if !defined(__SANITIZE_THREAD__)
    LAZY_TEST(test_exit),
    LAZY_TEST(test_exit_inside),
#endif
    LAZY_TEST(test_at_once),
    LAZY_TEST(test_failure),
    LAZY_TEST(test_failed_step),
    LAZY_TEST(test_nested),
    LAZY_TEST(test_refused),
    LAZY_TEST(test_async),
    LAZY_TEST(test_async_failure),
    LAZY_TEST(test_many),
    LAZY_TEST(test_failure_with_a_full_queue),
    LAZY_TEST(test_waiting_inside),
    LAZY_TEST(test_shutdown),
    LAZY_TEST(test_no_memory),
  };
  return cmocka_run_group_tests_name("lazy_closures", tests, lazy_setup, NULL);
}
