// Very long graphs: no recursion and nothing quadratic. A quadratic step in any
// of these runs for hours.
#include "fixture.h"
#include "lazy/lazy.h"

enum { MILLION = 1000000 };

static calx_tensor *chain(calx_tensor *t, int n)
{
  for (int i = 0; i < n; i++) t = calx_neg(t);
  return t;
}

// Recorded and dropped, in one scope.
static void test_dropped(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  chain(lazy_vector(4, 1), MILLION);
  assert_int_equal(cx_graph_node_live(), MILLION + 1);
  CHECK_STATUS_OK(calx_scope_end(scope));
  assert_int_equal(cx_graph_node_live(), 0);
}

// Held by its end alone: the chain falls when that goes.
static void test_held_by_its_end(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *end = calx_retain(chain(lazy_vector(4, 1), MILLION));
  CHECK_STATUS_OK(calx_scope_end(scope));
  assert_int_equal(cx_graph_node_live(), MILLION + 1);
  assert_int_equal(cx_lazy_tensor_live(), 1);
  calx_release(end);
  assert_int_equal(cx_graph_node_live(), 0);
}

// Compiled, run, compiled no second time.
static void test_synced(void **state)
{
  (void)state;
  for (int i = 0; i < 2; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *end = chain(lazy_vector(4, 1), MILLION);
    calx_sync(end);
    assert_true(lazy_holds(end, 1));
    CHECK_STATUS_OK(calx_scope_end(scope));
  }
  assert_int_equal(calx_counter_value("UncachedCompile"), 1);
  assert_true(lazy_sum("TensorsGraphSize") == 2.0 * MILLION);
}

// A failed step drops a long graph.
static void test_failed(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_scope *scope = calx_scope_begin();
  calx_assign(w, chain(w, MILLION));
  calx_reshape(w, CALX_SHAPE(3));
  calx_sync(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), "reshape");
  assert_int_equal(cx_graph_node_live(), 1);
  assert_true(lazy_holds(w, 1));
  calx_release(w);
}

// One after the other in place, each reading two: as many owners as ops.
static void test_updates(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_scope *scope = calx_scope_begin();
  for (int i = 0; i < MILLION / 10; i++) calx_assign(w, calx_add(w, w));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(scope));
  assert_true(lazy_holds(w, 1));
  calx_release(w);
}

// Many results of one step, many parameters of one program, many numbers.
static void test_wide(void **state)
{
  (void)state;
  enum { N = 20000 };
  calx_tensor **w = test_malloc(N * sizeof *w);
  for (int i = 0; i < N; i++) w[i] = lazy_durable(4, (float)(i % 50));
  for (int k = 0; k < 2; k++) {
    calx_scope *scope = calx_scope_begin();
    for (int i = 0; i < N; i++) calx_assign(w[i], calx_mul(w[i], 0.5 + i));
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(scope));
  }
  assert_int_equal(calx_counter_value("UncachedCompile"), 1);
  assert_true(lazy_sum("InputOutputAliasCount") == 2.0 * N);
  for (int i = 0; i < N; i++) {
    assert_true(lazy_holds(w[i], (float)(i % 50)));
    calx_release(w[i]);
  }
  test_free(w);
}

// A poison goes through a long chain as it is.
static void test_poisoned(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *bad = calx_reshape(lazy_vector(4, 1), CALX_SHAPE(3));
  chain(bad, MILLION / 10);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), "reshape");
}

int main(void)
{
  setenv("CALX_PENDING_LIMIT", "0", 1);
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_dropped),  LAZY_TEST(test_held_by_its_end),
    LAZY_TEST(test_synced),   LAZY_TEST(test_failed),
    LAZY_TEST(test_updates),  LAZY_TEST(test_wide),
    LAZY_TEST(test_poisoned),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
