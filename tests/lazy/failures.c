// Steps that fail: nothing changes. Failures that come late find their step,
// and only so many steps are under way.
#include <stdatomic.h>
#include <unistd.h>

#include "fixture.h"
#include "lazy/lazy.h"

#define LAUNCH "PJRT_LoadedExecutable_Execute"

// ---- at once ----------------------------------------------------------------

// A sync whose scope holds an error runs nothing and puts values back.
static void test_failed_scope(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1), *v = lazy_durable(4, 5);
  calx_scope *step = calx_scope_begin();
  calx_assign(w, calx_add(w, 1));
  calx_assign(v, calx_add(v, w));
  calx_assign(v, calx_add(v, w));
  calx_tensor *fresh = calx_retain(calx_neg(w));
  calx_add(w, lazy_vector(3, 0));
  long launches = lazy_launches();
  calx_sync(NULL);
  assert_int_equal(lazy_launches(), launches);
  assert_int_equal(calx_counter_value("MarkStep"), 0);
  assert_true(calx_is_ready(w) && calx_is_ready(v));
  assert_true(lazy_holds(w, 1) && lazy_holds(v, 5));
  assert_non_null(
      strstr(calx_status_message(calx_tensor_error(fresh)), "has no value"));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(step), "add: ");
  assert_true(lazy_holds(w, 1) && lazy_holds(v, 5));
  // The next step runs as if that one had not been.
  step = calx_scope_begin();
  calx_assign(w, calx_add(w, v));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_true(lazy_holds(w, 1));
  calx_release(w);
  calx_release(v);
  calx_release(fresh);
}

// A scope that ends with an error before any sync changes nothing either.
static void test_failed_without_sync(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_scope *step = calx_scope_begin();
  calx_assign(w, calx_neg(lazy_vector(4, 9)));
  calx_add(w, lazy_vector(3, 0));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(step), "add: ");
  calx_sync(NULL);
  assert_true(lazy_holds(w, 1));
  calx_release(w);
}

// So does one whose inner scope failed in a step that is not over: the outer
// scope's own step goes on.
static void test_failed_inner(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_scope *step = calx_scope_begin();
  calx_assign(w, calx_neg(lazy_vector(4, 9)));
  calx_scope *inner = calx_scope_begin();
  calx_add(w, lazy_vector(3, 0));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(inner), "add: ");
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_true(lazy_holds(w, 9));
  calx_release(w);
}

static void check_failing(const char *settings, calx_code code,
                          const char *text)
{
  calx_tensor *w = lazy_durable(4, 1);
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = lazy_vector(4, 9);
  calx_assign(w, calx_add(x, w));
  lazy_set(settings);
  int line = __LINE__ + 1;
  calx_sync(NULL);
  char where[64];
  snprintf(where, sizeof where, "failures.c:%d: in check_failing: ", line);
  CHECK_STATUS(code, calx_scope_end(step), where, text);
  assert_true(lazy_holds(w, 1));
  step = calx_scope_begin();
  x = lazy_vector(4, 9);
  calx_assign(w, calx_add(x, w));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_true(lazy_holds(w, 9));
  calx_release(w);
}

static void test_launch_fails(void **state)
{
  (void)state;
  check_failing("fail=" LAUNCH "@1:8:out of device memory",
                CALX_RESOURCE_EXHAUSTED, "out of device memory");
}

static void test_compile_fails(void **state)
{
  (void)state;
  check_failing("fail=PJRT_Client_Compile@1:12:not of mine", CALX_UNIMPLEMENTED,
                "not of mine");
}

static void test_number_upload_fails(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_scope *step = calx_scope_begin();
  calx_assign(w, calx_add(w, 0.5));
  lazy_set("fail=PJRT_Client_BufferFromHostBuffer@1:14:link down");
  calx_sync(NULL);
  CHECK_STATUS(CALX_UNAVAILABLE, calx_scope_end(step), "link down");
  assert_true(lazy_holds(w, 1));
  calx_assign(w, calx_add(w, 0.5));
  calx_sync(NULL);
  assert_null(calx_scope_error());
  calx_release(w);
}

// A model that was never synced keeps what it begins with.
static void test_keeps_initial(void **state)
{
  (void)state;
  calx_tensor *w = calx_take(calx_neg(lazy_vector(4, 1)));
  cx_lazy_tensor_mark(w, CX_LAZY_T_KEEP_INITIAL);
  calx_scope *step = calx_scope_begin();
  calx_assign(w, calx_add(w, 1));
  calx_add(w, lazy_vector(3, 0));
  calx_sync(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(step), "add: ");
  assert_null(calx_tensor_error(w));
  calx_sync(NULL);
  assert_true(calx_is_ready(w));
  assert_true(lazy_holds(w, 1));
  calx_release(w);
}

// ---- late -------------------------------------------------------------------

static void late_step(calx_tensor *w, int *out_line)
{
  calx_scope *step = calx_scope_begin();
  calx_assign(w, calx_neg(w));
  *out_line = __LINE__ + 1;
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(step));
}

// Waits until the plugin has done all that it was given: its jobs are done in
// order, and an upload returns when its own is.
static void drain(void)
{
  lazy_set("hold=0");
  lazy_vector(1, 0);
}

typedef enum ending { AT_SYNC, AT_ITEM, AT_END, AT_WAIT } ending;

static void check_late(ending how)
{
  calx_tensor *w = lazy_durable(4, 1);
  int line;
  lazy_set("async=1;hold=1;late=1:13:the chip is hot");
  late_step(w, &line);
  drain();
  char where[64];
  snprintf(where, sizeof where, "failures.c:%d: in late_step: sync: ", line);
  calx_scope *next = calx_scope_begin();
  calx_tensor *fresh = calx_neg(lazy_vector(4, 0));
  if (how == AT_SYNC) calx_sync(fresh);
  if (how == AT_ITEM) calx_item(calx_sum(fresh));
  calx_status *status =
      how == AT_WAIT ? calx_device_wait(NULL) : calx_scope_end(next);
  const calx_site *site = calx_status_site(status);
  assert_int_equal(site->line, line);
  CHECK_STATUS(CALX_INTERNAL, status, where, "the chip is hot", "restore",
               "save");
  if (how == AT_WAIT) CHECK_STATUS_OK(calx_scope_end(next));
  // Its outputs are poisoned, and whoever uses them is told the same.
  calx_relu(w);
  CHECK_STATUS(CALX_INTERNAL, calx_scope_take_error(), "relu: ", where,
               "the chip is hot");
  float data[4];
  CHECK_STATUS(CALX_INTERNAL, calx_tensor_read(w, data, sizeof data), where,
               "the chip is hot");
  calx_release(w);
}

static void test_late_at_sync(void **state)
{
  (void)state;
  check_late(AT_SYNC);
}

static void test_late_at_item(void **state)
{
  (void)state;
  check_late(AT_ITEM);
}

static void test_late_at_end(void **state)
{
  (void)state;
  check_late(AT_END);
}

static void test_late_at_wait(void **state)
{
  (void)state;
  check_late(AT_WAIT);
}

// Where nothing was donated there is nothing to restore.
static void test_late_without_donation(void **state)
{
  (void)state;
  calx_tensor *x = lazy_durable(4, 1);
  lazy_set("async=1;late=1:13:the chip is hot");
  calx_tensor *n = calx_take(calx_neg(x));
  calx_sync(NULL);
  calx_status *status = calx_device_wait(NULL);
  assert_null(strstr(calx_status_message(status), "restore"));
  CHECK_STATUS(CALX_INTERNAL, status, "the chip is hot");
  assert_true(lazy_holds(x, 1));
  assert_non_null(calx_tensor_error(n));
  calx_release(n);
  calx_release(x);
}

// The value itself is asked for before the failure is known: the read waits,
// and tells the step's failure with its site, not the transfer's.
static void test_late_at_read(void **state)
{
  (void)state;
  calx_tensor *x = lazy_durable(4, 1);
  lazy_set("async=1;late=1:13:the chip is hot");
  calx_tensor *n = calx_take(calx_neg(x));
  int line = __LINE__ + 1;
  calx_sync(NULL);
  float data[4];
  calx_status *status = calx_tensor_read(n, data, sizeof data);
  assert_int_equal(calx_status_site(status)->line, line);
  CHECK_STATUS(CALX_INTERNAL, status, "sync: the step failed",
               "the chip is hot");
  CHECK_STATUS_OK(calx_device_wait(NULL));
  calx_release(n);
  calx_release(x);
}

// The second of three steps fails: the third, which needs it, fails too, and
// the first failure is told.
static void test_late_in_the_middle(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  int first, second, third;
  lazy_set("async=1;hold=1;late=2:13:the chip is hot");
  late_step(w, &first);
  calx_scope *step = calx_scope_begin();
  calx_assign(w, calx_relu(w));
  second = __LINE__ + 1;
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(step));
  late_step(w, &third);
  lazy_set("hold=0");
  calx_status *status = calx_device_wait(NULL);
  assert_int_equal(calx_status_site(status)->line, second);
  CHECK_STATUS(CALX_INTERNAL, status, "the chip is hot");
  CHECK_STATUS_OK(calx_device_wait(NULL));
  calx_relu(w);
  CHECK_STATUS(CALX_INTERNAL, calx_scope_take_error(), "the chip is hot");
  calx_release(w);
}

// The step after a late failure runs nothing, and values from before stay.
static void test_late_stops_the_next(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1), *v = lazy_durable(4, 7);
  int line;
  lazy_set("async=1;hold=1;late=1:13:the chip is hot");
  late_step(w, &line);
  drain();
  calx_scope *step = calx_scope_begin();
  calx_assign(v, calx_neg(lazy_vector(4, 9)));
  long launches = lazy_launches();
  calx_sync(NULL);
  assert_int_equal(lazy_launches(), launches);
  CHECK_STATUS(CALX_INTERNAL, calx_scope_end(step), "the chip is hot");
  assert_true(lazy_holds(v, 7));
  // Told once: the next step is free to go.
  step = calx_scope_begin();
  calx_assign(v, calx_neg(lazy_vector(4, 9)));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_true(lazy_holds(v, 9));
  calx_release(w);
  calx_release(v);
}

// A read's own late failure.
static void test_late_read(void **state)
{
  (void)state;
  lazy_set("async=1;late=1:13:the chip is hot");
  calx_tensor *n = calx_sum(lazy_vector(4, 1));
  double item = calx_item(n);
  assert_true(item != item);
  CHECK_STATUS(CALX_INTERNAL, calx_scope_take_error(), "the chip is hot",
               "failures.c:");
  assert_non_null(calx_tensor_error(n));
}

// Its value is nobody's: a later sync or read that needs it fails with the same
// reason, and changes nothing.
static void test_late_read_used(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_scope *step = calx_scope_begin();
  calx_tensor *n = calx_neg(lazy_vector(4, 5));
  calx_tensor *kept = calx_retain(calx_detach(n)), *e = calx_exp(n);
  lazy_set("async=1;hold=0;late=1:13:the chip is hot");
  float data[4];
  CHECK_STATUS(CALX_INTERNAL, calx_tensor_read(n, data, sizeof data),
               "the chip is hot");
  long launches = lazy_launches();
  CHECK_STATUS(CALX_INTERNAL, calx_tensor_read(e, data, sizeof data),
               "the chip is hot");
  calx_assign(w, e);
  calx_sync(NULL);
  assert_int_equal(lazy_launches(), launches);
  CHECK_STATUS(CALX_INTERNAL, calx_scope_end(step), "the chip is hot");
  assert_true(lazy_holds(w, 1));
  assert_non_null(calx_tensor_error(kept));
  calx_release(kept);
  calx_release(w);
}

// Shutting down with failures that nobody asked for.
static void test_late_forgotten(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  int line;
  lazy_set("async=1;hold=1;late=1:13:the chip is hot");
  late_step(w, &line);
  lazy_set("hold=0");
  calx_release(w);
}

// ---- how many ---------------------------------------------------------------

typedef struct runner {
  calx_tensor *w;
  int count;
  atomic_int done;
} runner;

static void *run_steps(void *user)
{
  runner *r = user;
  for (int i = 0; i < r->count; i++) {
    int line;
    late_step(r->w, &line);
    atomic_fetch_add(&r->done, 1);
  }
  return NULL;
}

// With all held, exactly so many syncs return; the next one waits.
static void check_in_flight(const char *limit, int wanted)
{
  if (limit != NULL) setenv("CALX_MAX_STEPS_IN_FLIGHT", limit, 1);
  runner r = { .w = lazy_durable(4, 1), .count = wanted + 3 };
  int line;
  late_step(r.w, &line);  // compiled
  CHECK_STATUS_OK(calx_device_wait(NULL));
  long launches = lazy_launches();
  lazy_set("async=1;hold=1");
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run_steps, &r), 0);
  for (int i = 0; i < 10000 && atomic_load(&r.done) < wanted; i++) usleep(1000);
  for (int i = 0; i < 30; i++) usleep(1000);
  int done = atomic_load(&r.done);
  long launched = lazy_launches() - launches;
  lazy_set("hold=0");
  pthread_join(thread, NULL);
  assert_int_equal(done, wanted);
  assert_int_equal(launched, wanted);
  assert_int_equal(atomic_load(&r.done), r.count);
  lazy_set("async=0");
  unsetenv("CALX_MAX_STEPS_IN_FLIGHT");
  calx_release(r.w);
}

static void test_in_flight(void **state)
{
  (void)state;
  check_in_flight(NULL, 4);
  check_in_flight("1", 1);
  check_in_flight("7", 7);
  check_in_flight("-5", 1);
  check_in_flight("1000000", 64);
}

static void test_bad_limit(void **state)
{
  (void)state;
  setenv("CALX_MAX_STEPS_IN_FLIGHT", "many", 1);
  calx_tensor *w = lazy_durable(4, 1);
  for (int i = 0; i < 3; i++) {
    int line;
    late_step(w, &line);
  }
  unsetenv("CALX_MAX_STEPS_IN_FLIGHT");
  assert_int_equal(
      lines_with("CALX_MAX_STEPS_IN_FLIGHT: 'many' is not a number; 4"), 1);
  calx_release(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_failed_scope),        LAZY_TEST(test_failed_without_sync),
    LAZY_TEST(test_failed_inner),        LAZY_TEST(test_launch_fails),
    LAZY_TEST(test_compile_fails),       LAZY_TEST(test_number_upload_fails),
    LAZY_TEST(test_keeps_initial),       LAZY_TEST(test_late_at_sync),
    LAZY_TEST(test_late_at_item),        LAZY_TEST(test_late_at_end),
    LAZY_TEST(test_late_at_wait),        LAZY_TEST(test_late_without_donation),
    LAZY_TEST(test_late_at_read),        LAZY_TEST(test_late_in_the_middle),
    LAZY_TEST(test_late_stops_the_next), LAZY_TEST(test_late_read),
    LAZY_TEST(test_late_read_used),      LAZY_TEST(test_late_forgotten),
    LAZY_TEST(test_in_flight),           LAZY_TEST(test_bad_limit),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
