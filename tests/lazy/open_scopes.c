// open_scopes: scopes that a loop leaves open are told of, and cost a sync
// nothing; what is pending in outer scopes is found all the same.
#include <time.h>

#include "fixture.h"

// The calling thread's time of n steps, whose scopes stay open.
static double time_of(int n, calx_tensor *w)
{
  calx_scope *outer = calx_scope_begin();
  struct timespec a, b;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
  for (int i = 0; i < n; i++) {
    calx_scope_begin();
    calx_tensor *x = calx_neg(w);
    calx_assign(w, x);
    calx_sync(NULL);
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
  CHECK_STATUS_OK(calx_scope_end(outer));
  return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
}

// Eight times the steps cost about eight times as much; quadratic: 64 times.
static void test_linear(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  time_of(100, w);
  double few = time_of(3750, w), many = time_of(30000, w);
  if (many > 24 * few) fail_msg("3750: %g s, 30000: %g s", few, many);
  calx_release(w);
}

// Temporaries of the root scope cost a sync nothing either.
static void test_root(void **state)
{
  (void)state;
  double times[2];
  for (int many = 0; many < 2; many++) {
    calx_tensor *w = lazy_durable(4, 1);
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (int i = 0; i < (many ? 30000 : 3750); i++) {
      calx_assign(w, calx_neg(w));
      calx_sync(NULL);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    times[many] =
        (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    calx_release(w);
    calx_shutdown();
  }
  if (times[1] > 24 * times[0]) {
    fail_msg("3750: %g s, 30000: %g s", times[0], times[1]);
  }
}

static void test_line(void **state)
{
  (void)state;
  calx_scope *outer = calx_scope_begin();
  for (int i = 0; i < 98; i++) calx_scope_begin();
  assert_int_equal(lines_with("scopes are open at once"), 0);
  int line = __LINE__ + 1;
  for (int i = 0; i < 500; i++) calx_scope_begin();
  char where[64];
  snprintf(where, sizeof where, "lazy/open_scopes.c:%d: is its", line);
  assert_int_equal(lines_with("100 scopes are open at once"), 1);
  assert_int_equal(lines_with(where), 1);
  CHECK_STATUS_OK(calx_scope_end(outer));
}

// Temporaries of an outer scope that are assigned in inner ones, in changing
// order, have their values after each sync; one program serves all steps.
static void test_outer_values(void **state)
{
  (void)state;
  calx_scope *outer = calx_scope_begin();
  calx_tensor *a = lazy_vector(4, 1), *b = lazy_vector(4, 10);
  calx_tensor *kept = calx_retain(lazy_vector(4, 20));
  long compiles = lazy_compiles();
  for (int i = 0; i < 6; i++) {
    calx_scope *s = calx_scope_begin();
    calx_tensor *x = calx_neg(a), *y = calx_neg(b);
    calx_assign(i % 2 != 0 ? a : b, i % 2 != 0 ? x : y);
    calx_assign(i % 2 != 0 ? b : a, i % 2 != 0 ? y : x);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
    assert_true(calx_is_ready(a) && calx_is_ready(b));
  }
  assert_int_equal(lazy_compiles(), compiles + 1);
  // Durable no more, it is the outer scope's temporary again.
  calx_scope *s = calx_scope_begin();
  calx_assign(kept, calx_neg(kept));
  calx_release(kept);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  assert_true(calx_is_ready(kept));
  // A scope's tensors can be taken from anywhere in it.
  calx_take(a);
  s = calx_scope_begin();
  calx_assign(b, calx_neg(b));
  calx_assign(a, calx_neg(a));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  assert_true(calx_is_ready(a) && calx_is_ready(b));
  CHECK_STATUS_OK(calx_scope_end(outer));
  calx_release(a);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_linear),
    LAZY_TEST(test_root),
    LAZY_TEST(test_line),
    LAZY_TEST(test_outer_values),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
