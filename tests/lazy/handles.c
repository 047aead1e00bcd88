// CALX_DEBUG=handles: a handle that outlived its tensor is a poison that tells
// so. Such handles stay for ever, so that no later one has their address: this
// is a program of its own, and nothing is counted at its end.
#include "fixture.h"

static void test_after_scope(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *gone = calx_neg(lazy_vector(4, 1));
  CHECK_STATUS_OK(calx_scope_end(scope));
  assert_int_equal(cx_lazy_tensor_live(), 0);
  int line = __LINE__ + 1;
  calx_relu(gone);
  char where[80];
  snprintf(where, sizeof where,
           "handles.c:%d: in test_after_scope: relu: ", line);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), where,
               "released before", "near tests/lazy/", "retain it",
               "inside its scope");
  double item = calx_item(gone);
  assert_true(item != item);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), "released");
  calx_sync(gone);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), "released");
  calx_assign(gone, lazy_vector(4, 1));
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), "released");
  assert_int_equal(calx_tensor_rank(gone), 0);
  assert_null(calx_tensor_device(calx_cpu(gone)));
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), "released");
}

static void test_after_release(void **state)
{
  (void)state;
  calx_tensor *t = calx_take(lazy_vector(4, 1));
  calx_release(t);
  calx_release(t);
  calx_release(t);
  char data[16];
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_tensor_read(t, data, 16),
               "released before");
  calx_release(calx_retain(t));
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(),
               "retain: ", "released before");
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_tensor_read(t, data, 16),
               "released before");
}

// The root scope's tensors end with a shutdown.
static void test_after_shutdown(void **state)
{
  (void)state;
  calx_tensor *t = calx_neg(lazy_vector(4, 1));
  calx_shutdown();
  calx_add(t, lazy_vector(4, 1));
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(),
               "released before");
}

// What is used rightly is not affected.
static void test_right_use(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  for (int i = 0; i < 3; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_assign(w, calx_neg(calx_relu(w)));
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(scope));
  }
  assert_true(lazy_holds(w, 1));
  calx_release(w);
}

static int begin(void **state)
{
  setenv("CALX_DEBUG", "handles", 1);
  return lazy_begin(state);
}

#define HANDLES_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, NULL)

int main(void)
{
  const struct CMUnitTest tests[] = {
    HANDLES_TEST(test_after_scope),
    HANDLES_TEST(test_after_release),
    HANDLES_TEST(test_after_shutdown),
    HANDLES_TEST(test_right_use),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
