// Threads: recording on shared operands, syncing own devices, compiling once.
// Run under the thread sanitizer too.
#include <stdatomic.h>
#include <unistd.h>

#include "fixture.h"
#include "lazy/lazy.h"

enum { THREADS = 4 };

typedef struct worker {
  int index;
  calx_tensor *shared;
  calx_device *device;
  pthread_barrier_t *together;
  bool right;
} worker;

static void run_all(worker workers[THREADS], calx_tensor *shared,
                    void *(*fn)(void *))
{
  pthread_t threads[THREADS];
  pthread_barrier_t together;
  pthread_barrier_init(&together, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    workers[i] =
        (worker){ .index = i, .shared = shared, .together = &together };
    workers[i].device = NULL;
    if (calx_device_count() == THREADS) {
      char name[16];
      snprintf(name, sizeof name, "xla:%d", i);
      CHECK_STATUS_OK(calx_device_open(name, &workers[i].device));
    }
    assert_int_equal(pthread_create(&threads[i], NULL, fn, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&together);
  for (int i = 0; i < THREADS; i++) assert_true(workers[i].right);
}

// No cmocka in a thread: whether all went well.
static bool finish(calx_scope *scope)
{
  calx_status *status = calx_scope_end(scope);
  if (status != NULL) printf("%s\n", calx_status_message(status));
  bool right = status == NULL;
  calx_status_free(status);
  return right;
}

// ---- recording --------------------------------------------------------------

static void *record_shared(void *user)
{
  worker *w = user;
  w->right = true;
  for (int i = 0; i < 200; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *t = w->shared;
    for (int k = 0; k < 20; k++) t = calx_add(calx_mul(t, w->shared), 0.5);
    calx_retain(w->shared);
    calx_tensor *d = calx_detach(w->shared);
    w->right &= calx_tensor_numel(d) == 4 && calx_tensor_error(t) == NULL;
    calx_release(w->shared);
    w->right &= finish(scope);
  }
  return NULL;
}

// Four threads record on one operand, which is materialised.
static void test_shared_operand(void **state)
{
  (void)state;
  worker workers[THREADS];
  calx_tensor *shared = lazy_durable(4, 1);
  run_all(workers, shared, record_shared);
  assert_true(lazy_holds(shared, 1));
  calx_release(shared);
  assert_int_equal(cx_lazy_tensor_live(), 0);
  assert_int_equal(cx_graph_node_live(), 0);
}

// … or pending: then each thread's read may be the one that computes it.
static void *read_shared(void *user)
{
  worker *w = user;
  pthread_barrier_wait(w->together);
  calx_scope *scope = calx_scope_begin();
  calx_tensor *t = calx_neg(w->shared);
  double item = calx_item(calx_sum(t));
  w->right = item == 0;
  calx_item(calx_sum(w->shared));
  w->right &= finish(scope);
  return NULL;
}

static void test_shared_pending(void **state)
{
  (void)state;
  worker workers[THREADS];
  for (int i = 0; i < 20; i++) {
    calx_tensor *shared = calx_take(calx_exp(lazy_vector(4, 1)));
    run_all(workers, shared, read_shared);
    assert_true(lazy_holds(shared, 1));
    calx_release(shared);
  }
}

// ---- syncing ----------------------------------------------------------------

static bool train(calx_tensor *w, int steps)
{
  bool right = true;
  for (int i = 0; i < steps; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *h = calx_relu(calx_mul(w, 0.5 + i % 3));
    calx_assign(w, calx_sub(w, h));
    calx_tensor *loss = calx_sum(h);
    calx_sync(loss);
    calx_item(loss);
    right &= finish(step);
  }
  return right;
}

static void *train_own(void *user)
{
  worker *w = user;
  calx_device_set_current(w->device);
  calx_tensor *t = lazy_durable(4, (float)w->index);
  w->right = calx_tensor_device(t) ==
             (w->device != NULL ? w->device : calx_device_current());
  pthread_barrier_wait(w->together);
  w->right &= train(t, 50);
  calx_release(t);
  return NULL;
}

// Threads with a device each, compiling once for all.
static void test_own_devices(void **state)
{
  (void)state;
  setenv("CPU_NUM_DEVICES", "4", 1);
  lazy_set("devices=4;platform=cpu;async=1");
  worker workers[THREADS];
  assert_int_equal(calx_device_count(), THREADS);
  run_all(workers, NULL, train_own);
  assert_int_equal(lazy_compiles() - 0 >= 1, true);
  assert_int_equal(calx_counter_value("UncachedCompile"), 1);
  assert_int_equal(calx_counter_value("CachedCompile"), THREADS * 50 - 1);
  unsetenv("CPU_NUM_DEVICES");
}

// Threads that share a device take turns, each with the steps of its own.
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *take_turns(void *user)
{
  worker *w = user;
  calx_tensor *t = lazy_durable(4, (float)w->index);
  w->right = true;
  for (int i = 0; i < 50; i++) {
    pthread_mutex_lock(&turn);
    w->right &= train(t, 1);
    pthread_mutex_unlock(&turn);
  }
  calx_release(t);
  return NULL;
}

static void test_taking_turns(void **state)
{
  (void)state;
  lazy_set("async=1");
  worker workers[THREADS];
  run_all(workers, NULL, take_turns);
  assert_int_equal(calx_counter_value("MarkStep"), THREADS * 50);
  assert_int_equal(calx_counter_value("UncachedCompile"), 1);
}

// Without turns one's sync takes the other's half step along: that one may
// fail, since what it reads was updated in place, but with a status, and
// nothing worse.
static void *take_no_turns(void *user)
{
  worker *w = user;
  calx_tensor *t = lazy_durable(4, (float)w->index);
  w->right = true;
  for (int i = 0; i < 50; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *h = calx_neg(t);
    calx_assign(t, calx_sub(t, h));
    calx_sync(calx_sum(h));
    calx_status *status = calx_scope_end(step);
    w->right &= status == NULL ||
                strstr(calx_status_message(status), "donated") != NULL;
    calx_status_free(status);
  }
  calx_release(t);
  return NULL;
}

static void test_no_turns(void **state)
{
  (void)state;
  lazy_set("async=1");
  worker workers[THREADS];
  run_all(workers, NULL, take_no_turns);
}

// ---- compiling once ---------------------------------------------------------

static void *same_program(void *user)
{
  worker *w = user;
  calx_device_set_current(w->device);
  w->right = true;
  for (int64_t n = 1; n <= 10; n++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *t =
        calx_neg(calx_slice(lazy_vector(n + 4, 0), 0, n % 3, n % 3 + 2, 1));
    pthread_barrier_wait(w->together);
    calx_sync(t);
    w->right &= finish(step);
  }
  return NULL;
}

static void test_compiled_once(void **state)
{
  (void)state;
  setenv("CPU_NUM_DEVICES", "4", 1);
  lazy_set("devices=4;platform=cpu");
  worker workers[THREADS];
  assert_int_equal(calx_device_count(), THREADS);
  long compiles = lazy_compiles();
  run_all(workers, NULL, same_program);
  assert_int_equal(lazy_compiles() - compiles, 10);
  assert_int_equal(calx_counter_value("UncachedCompile"), 10);
  unsetenv("CPU_NUM_DEVICES");
}

// The compilation that all wait for fails: one tells it, the next tries again.
static atomic_int failures;

static void *failing_program(void *user)
{
  worker *w = user;
  calx_device_set_current(w->device);
  calx_scope *step = calx_scope_begin();
  calx_tensor *t = calx_neg(lazy_vector(4, 0));
  pthread_barrier_wait(w->together);
  calx_sync(t);
  calx_status *status = calx_scope_end(step);
  if (status != NULL) {
    atomic_fetch_add(&failures, 1);
    w->right = strstr(calx_status_message(status), "no luck") != NULL;
  } else {
    w->right = true;
  }
  calx_status_free(status);
  return NULL;
}

static void test_compile_fails_once(void **state)
{
  (void)state;
  setenv("CPU_NUM_DEVICES", "4", 1);
  lazy_set("devices=4;platform=cpu");
  worker workers[THREADS];
  assert_int_equal(calx_device_count(), THREADS);
  atomic_store(&failures, 0);
  lazy_set("fail=PJRT_Client_Compile@1:13:no luck");
  run_all(workers, NULL, failing_program);
  assert_int_equal(atomic_load(&failures), 1);
  unsetenv("CPU_NUM_DEVICES");
}

// ---- other shared things ----------------------------------------------------

static void *draw_numbers(void *user)
{
  worker *w = user;
  w->right = true;
  for (int i = 0; i < 50; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *t = calx_rand(CALX_SHAPE(4));
    calx_sync(t);
    w->right &= finish(scope);
  }
  return NULL;
}

static void test_random_streams(void **state)
{
  (void)state;
  worker workers[THREADS];
  run_all(workers, NULL, draw_numbers);
  assert_int_equal(calx_counter_value("UncachedCompile"), 1);
}

static void *open_device(void *user)
{
  worker *w = user;
  pthread_barrier_wait(w->together);
  w->right = calx_device_current() != NULL;
  calx_scope *scope = calx_scope_begin();
  calx_sync(calx_neg(lazy_vector(4, 0)));
  w->right &= finish(scope);
  return NULL;
}

// The first use may come from all threads at once.
static void test_opened_once(void **state)
{
  (void)state;
  worker workers[THREADS];
  pthread_t threads[THREADS];
  pthread_barrier_t together;
  calx_shutdown();
  long before = lazy_fake.calls("PJRT_Client_Create");
  pthread_barrier_init(&together, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){ .index = i, .together = &together };
    pthread_create(&threads[i], NULL, open_device, &workers[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&together);
  for (int i = 0; i < THREADS; i++) assert_true(workers[i].right);
  assert_int_equal(lazy_fake.calls("PJRT_Client_Create"), before + 1);
}

// A late failure is told to the threads that take steps, not to others.
static void *other_thread(void *user)
{
  worker *w = user;
  calx_scope *scope = calx_scope_begin();
  calx_scalar(1);
  w->right = finish(scope);
  return NULL;
}

static void test_news_of_a_failure(void **state)
{
  (void)state;
  lazy_set("late=1:13:the chip is hot");
  calx_tensor *w = lazy_durable(4, 1);
  calx_assign(w, calx_neg(w));
  calx_sync(NULL);
  worker workers[THREADS];
  run_all(workers, NULL, other_thread);
  CHECK_STATUS(CALX_INTERNAL, calx_device_wait(NULL), "the chip is hot");
  calx_release(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_shared_operand),     LAZY_TEST(test_shared_pending),
    LAZY_TEST(test_own_devices),        LAZY_TEST(test_taking_turns),
    LAZY_TEST(test_no_turns),           LAZY_TEST(test_compiled_once),
    LAZY_TEST(test_compile_fails_once), LAZY_TEST(test_random_streams),
    LAZY_TEST(test_opened_once),        LAZY_TEST(test_news_of_a_failure),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
