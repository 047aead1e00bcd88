// Scopes: who owns temporaries, which error is told, what ends with a scope.
#include <pthread.h>

#include "fixture.h"
#include "lazy/internal.h"

// A result that cannot be.
static calx_tensor *fail_add(void)
{
  return calx_add(lazy_vector(3, 0), lazy_vector(4, 0));
}

static void *on_thread(void *fn)
{
  void (*run)(void);
  memcpy(&run, fn, sizeof run);
  run();
  return NULL;
}

static void run_on_thread(void (*fn)(void))
{
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, on_thread, &fn), 0);
  pthread_join(thread, NULL);
}

// ---- temporaries ------------------------------------------------------------

static void test_nesting(void **state)
{
  (void)state;
  long before = cx_lazy_tensor_live();
  calx_scope *outer = calx_scope_begin();
  calx_tensor *a = lazy_vector(4, 1);
  calx_scope *inner = calx_scope_begin();
  calx_tensor *b = calx_neg(a);
  calx_relu(b);
  assert_int_equal(cx_lazy_tensor_live() - before, 3);
  CHECK_STATUS_OK(calx_scope_end(inner));
  assert_int_equal(cx_lazy_tensor_live() - before, 1);
  assert_true(lazy_holds(a, 1));
  CHECK_STATUS_OK(calx_scope_end(outer));
  assert_int_equal(cx_lazy_tensor_live(), before);
}

// A handle whose scope ended says so until the thread's next scope ends, also
// where new tensors would take its memory.
static void test_use_after_end(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *t = calx_neg(lazy_vector(4, 1));
  CHECK_STATUS_OK(calx_scope_end(scope));
  for (int i = 0; i < 100; i++) calx_neg(lazy_vector(4, 2));
  calx_relu(t);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(),
               "scopes.c:", "relu: operand 0", "scope has ended",
               "calx_retain");
  double item = calx_item(t);
  assert_true(item != item);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(),
               "scope has ended");
  calx_assign(t, lazy_vector(4, 1));
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(),
               "scope has ended");
  calx_release(t);  // is nobody's any more
  calx_tensor *kept = calx_take(t);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(),
               "retain: ", "scope has ended");
  calx_release(kept);
  long blocks = cx_alloc_live();
  CHECK_STATUS_OK(calx_scope_end(calx_scope_begin()));
  assert_true(cx_alloc_live() < blocks);  // its memory is given back
}

static void test_forgotten(void **state)
{
  (void)state;
  long tensors = cx_lazy_tensor_live(), scopes = cx_lazy_scope_live();
  calx_scope *outer = calx_scope_begin();
  for (int i = 0; i < 5; i++) {
    calx_scope_begin();
    calx_neg(lazy_vector(4, 1));
  }
  CHECK_STATUS_OK(calx_scope_end(outer));
  assert_int_equal(cx_lazy_tensor_live(), tensors);
  assert_true(cx_lazy_scope_live() <= scopes + 1);  // the root may be new
}

static void test_retained_outlives(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *kept = calx_retain(lazy_vector(4, 1));
  CHECK_STATUS_OK(calx_scope_end(scope));
  assert_true(lazy_holds(kept, 1));
  calx_release(kept);
}

// A taken tensor is in no scope any more; the others keep their places.
static void test_take(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *list[6], *taken[3];
  for (int i = 0; i < 6; i++) list[i] = lazy_vector(4, (float)i);
  taken[0] = calx_take(list[0]);
  taken[1] = calx_take(list[3]);
  taken[2] = calx_take(list[5]);
  assert_ptr_equal(taken[1], list[3]);
  CHECK_STATUS_OK(calx_scope_end(scope));
  assert_int_equal(cx_lazy_tensor_live(), 3);
  assert_true(lazy_holds(taken[0], 0));
  assert_true(lazy_holds(taken[1], 3));
  assert_true(lazy_holds(taken[2], 5));
  for (int i = 0; i < 3; i++) calx_release(taken[i]);
}

static void test_take_twice(void **state)
{
  (void)state;
  calx_tensor *t = calx_take(lazy_vector(4, 1));
  assert_ptr_equal(calx_take(t), t);
  calx_release(t);
  assert_true(lazy_holds(t, 1));
  calx_release(t);
  assert_int_equal(cx_lazy_tensor_live(), 0);
}

// A release by somebody who is no owner frees nothing of the scope's.
static void test_release_too_often(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *t = lazy_vector(4, 1);
  calx_release(t);
  calx_release(t);
  assert_true(lazy_holds(t, 1));
  calx_release(NULL);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

// Absent tensors are no crash: retaining gives a poisoned one.
static void test_retain_null(void **state)
{
  (void)state;
  calx_tensor *t = calx_retain(NULL);
  assert_non_null(t);
  assert_non_null(calx_tensor_error(t));
  calx_release(t);
  t = calx_take(NULL);
  assert_non_null(t);
  calx_release(t);
}

// ---- errors -----------------------------------------------------------------

static void test_first_error(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  assert_null(calx_scope_error());
  calx_tensor *three = lazy_vector(3, 0), *four = lazy_vector(4, 0);
  int line = __LINE__ + 1;
  calx_add(three, four);
  calx_reshape(lazy_vector(3, 0), CALX_SHAPE(2, 2));
  const calx_site *site = calx_status_site(calx_scope_error());
  assert_non_null(strstr(site->file, "scopes.c"));
  assert_string_equal(site->func, "test_first_error");
  assert_int_equal(site->line, line);
  char where[64];
  snprintf(where, sizeof where,
           "scopes.c:%d: in test_first_error: add: ", line);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), where, "f32[3]",
               "f32[4]");
  assert_null(calx_scope_error());
}

static void test_take_error(void **state)
{
  (void)state;
  assert_null(calx_scope_take_error());
  fail_add();
  assert_non_null(calx_scope_error());
  assert_non_null(calx_scope_error());
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "add: ");
  assert_null(calx_scope_take_error());
  calx_reshape(lazy_vector(3, 0), CALX_SHAPE(2, 2));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "reshape: ");
}

// An inner scope's error is told by its own end and by no other.
static void test_inner_error(void **state)
{
  (void)state;
  calx_scope *outer = calx_scope_begin();
  calx_scope *inner = calx_scope_begin();
  fail_add();
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(inner), "add: ");
  assert_null(calx_scope_error());
  calx_neg(lazy_vector(2, 0));
  CHECK_STATUS_OK(calx_scope_end(outer));
}

// Of a forgotten scope and the one around it, which failed before it began.
static void test_forgotten_error(void **state)
{
  (void)state;
  calx_scope *outer = calx_scope_begin();
  calx_scope_begin();
  fail_add();
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(outer), "add: ");
  outer = calx_scope_begin();
  calx_reshape(lazy_vector(3, 0), CALX_SHAPE(2, 2));
  calx_scope_begin();
  fail_add();
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(outer), "reshape: ");
}

static void test_end_twice(void **state)
{
  (void)state;
  calx_scope *outer = calx_scope_begin();
  calx_scope *inner = calx_scope_begin();
  CHECK_STATUS_OK(calx_scope_end(outer));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(inner), "not open",
               "ended twice");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(outer), "not open");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(NULL), "not open");
}

static calx_scope *shared;

static void end_shared(void)
{
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(shared), "this thread");
}

static void test_other_thread(void **state)
{
  (void)state;
  shared = calx_scope_begin();
  calx_neg(lazy_vector(4, 0));
  run_on_thread(end_shared);
  CHECK_STATUS_OK(calx_scope_end(shared));
}

// ---- the root ---------------------------------------------------------------

static void test_root(void **state)
{
  (void)state;
  calx_tensor *t = calx_neg(lazy_vector(4, 3));
  calx_sync(t);
  assert_true(lazy_holds(t, 3));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(cx_lazy_scope_current()),
               "root scope");
  assert_null(calx_scope_error());
}

// A thread's scopes end with it, the open ones too.
static void leave_things(void)
{
  calx_neg(lazy_vector(4, 1));
  fail_add();
  calx_scope_begin();
  calx_neg(lazy_vector(4, 1));
  calx_scope_begin();
  fail_add();
  calx_no_grad_begin();
}

static void test_thread_end(void **state)
{
  (void)state;
  calx_device_current();
  long scopes = cx_lazy_scope_live(), statuses = cx_status_live();
  run_on_thread(leave_things);
  assert_int_equal(cx_lazy_tensor_live(), 0);
  assert_int_equal(cx_graph_node_live(), 0);
  assert_int_equal(cx_lazy_scope_live(), scopes);
  assert_int_equal(cx_status_live(), statuses);
}

static void test_root_fills(void **state)
{
  (void)state;
  for (int i = 0; i < 10010; i++) calx_scalar_int(i);
  assert_int_equal(lines_with("10000 temporaries are held outside"), 1);
  assert_int_equal(lines_with("calx_scope_begin"), 1);
}

// ---- regions ----------------------------------------------------------------

static void early_return(void)
{
  calx_scope *scope = calx_scope_begin();
  calx_no_grad_begin();
  calx_no_grad_begin();
  assert_false(cx_lazy_grad_mode());
  CHECK_STATUS_OK(calx_scope_end(scope));
}

static void test_regions(void **state)
{
  (void)state;
  assert_true(cx_lazy_grad_mode());
  early_return();
  assert_true(cx_lazy_grad_mode());
  calx_no_grad_begin();
  early_return();
  assert_false(cx_lazy_grad_mode());
  calx_scope *scope = calx_scope_begin();
  calx_no_grad_end();  // not this scope's
  assert_false(cx_lazy_grad_mode());
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(scope), "no_grad_end");
  calx_no_grad_end();
  assert_true(cx_lazy_grad_mode());
  assert_null(calx_scope_error());
}

// A forgotten inner scope's region ends with the outer scope.
static void test_forgotten_region(void **state)
{
  (void)state;
  calx_scope *outer = calx_scope_begin();
  calx_scope_begin();
  calx_no_grad_begin();
  CHECK_STATUS_OK(calx_scope_end(outer));
  assert_true(cx_lazy_grad_mode());
}

// ---- without memory ---------------------------------------------------------

// The scope that there is no memory for tells so, and what was done in it does
// not count: a sync there changes nothing.
static void test_no_memory(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  cx_alloc_fail_at(0);
  calx_scope *scope = calx_scope_begin();
  cx_alloc_fail_at(-1);
  assert_non_null(scope);
  calx_assign(w, lazy_vector(4, 9));
  calx_sync(NULL);
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, calx_scope_end(scope), "memory");
  assert_true(lazy_holds(w, 1));
  assert_null(calx_scope_error());
  calx_release(w);
}

static void without_root(void)
{
  cx_alloc_fail_at(0);
  calx_tensor *t = calx_scalar(1);
  cx_alloc_fail_at(-1);
  assert_non_null(calx_tensor_error(t));
  assert_non_null(calx_scope_error());
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, calx_scope_take_error(), "memory");
  assert_null(calx_scope_error());
  cx_alloc_fail_at(0);
  calx_scope *scope = calx_scope_begin();
  cx_alloc_fail_at(-1);
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, calx_scope_end(scope), "memory");
  assert_null(calx_scope_error());
}

// Not even a root scope can be had: the failure is told all the same.
static void test_no_root(void **state)
{
  (void)state;
  calx_device_current();
  run_on_thread(without_root);
}

// A status of the program's own is an error like others: the first one stays.
static void test_set_error(void **state)
{
  (void)state;
  calx_scope *outer = calx_scope_begin(), *scope = calx_scope_begin();
  calx_scope_set_error(NULL);
  assert_null(calx_scope_error());
  calx_scope_set_error(calx_status_new(CALX_NOT_FOUND, "no leaf %d", 7));
  calx_scope_set_error(calx_status_new(CALX_ABORTED, "a later one"));
  CHECK_STATUS(CALX_NOT_FOUND, calx_scope_end(scope), "no leaf 7");
  CHECK_STATUS_OK(calx_scope_end(outer));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_nesting),
    LAZY_TEST(test_use_after_end),
    LAZY_TEST(test_forgotten),
    LAZY_TEST(test_retained_outlives),
    LAZY_TEST(test_take),
    LAZY_TEST(test_take_twice),
    LAZY_TEST(test_release_too_often),
    LAZY_TEST(test_retain_null),
    LAZY_TEST(test_first_error),
    LAZY_TEST(test_take_error),
    LAZY_TEST(test_inner_error),
    LAZY_TEST(test_set_error),
    LAZY_TEST(test_forgotten_error),
    LAZY_TEST(test_end_twice),
    LAZY_TEST(test_other_thread),
    LAZY_TEST(test_root),
    LAZY_TEST(test_thread_end),
    LAZY_TEST(test_root_fills),
    LAZY_TEST(test_regions),
    LAZY_TEST(test_forgotten_region),
    LAZY_TEST(test_no_memory),
    LAZY_TEST(test_no_root),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
