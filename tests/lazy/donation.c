// Donation: which old values a step may write over, and that nobody who wants
// one loses it. The fake deletes what is donated, so a wrong donation shows.
#include "fixture.h"
#include "lazy/lazy.h"

static int donated(void)
{
  return (int)lazy_sum("InputOutputAliasCount");
}

static bool lost(calx_tensor *t)
{
  float data[64];
  calx_status *status =
      calx_tensor_read(t, data, (size_t)calx_tensor_numel(t) * sizeof *data);
  bool failed = status != NULL;
  calx_status_free(status);
  return failed;
}

static void update(calx_tensor *w)
{
  calx_assign(w, calx_add(w, 1));
}

// ---- what is donated --------------------------------------------------------

static void test_update(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  update(w);
  calx_sync(NULL);
  assert_int_equal(donated(), 1);
  update(w);
  calx_sync(NULL);
  assert_int_equal(donated(), 2);
  assert_int_equal(lazy_samples("InputOutputAliasCount"), 2);
  assert_int_equal(calx_counter_value("UncachedCompile"), 1);
  assert_false(lost(w));
  calx_release(w);
}

static void test_two_updates(void **state)
{
  (void)state;
  calx_tensor *a = lazy_durable(4, 1), *b = lazy_durable(4, 2);
  calx_scope *step = calx_scope_begin();
  calx_tensor *sum = calx_add(a, b);
  calx_assign(a, calx_mul(a, 2));
  calx_assign(b, calx_add(b, 2));
  calx_sync(sum);
  assert_int_equal(donated(), 2);
  assert_false(lost(sum));
  CHECK_STATUS_OK(calx_scope_end(step));
  calx_release(a);
  calx_release(b);
}

// Ten updates in one step have one old value and one new one.
static void test_ten_updates(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  for (int i = 0; i < 10; i++) update(w);
  calx_sync(NULL);
  assert_int_equal(donated(), 1);
  calx_release(w);
}

static void test_exchange(void **state)
{
  (void)state;
  calx_tensor *a = lazy_durable(4, 1), *b = lazy_durable(4, 5);
  for (int i = 0; i < 3; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *x = calx_neg(b), *y = calx_neg(a);
    calx_assign(a, x);
    calx_assign(b, y);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(step));
    assert_int_equal(donated(), 2 * (i + 1));
    assert_false(lost(a) || lost(b));
  }
  calx_release(a);
  calx_release(b);
}

// Owners of the handle do not count: they see the new value.
static void test_owners(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_retain(w);
  calx_retain(w);
  update(w);
  calx_sync(w);
  assert_int_equal(donated(), 1);
  for (int i = 0; i < 3; i++) calx_release(w);
}

// ---- what is not ------------------------------------------------------------

// Another handle of the old value keeps it.
static void test_other_handle(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_tensor *old = calx_take(calx_detach(w));
  update(w);
  calx_sync(NULL);
  assert_int_equal(donated(), 0);
  assert_true(lazy_holds(old, 1));
  calx_release(old);
  update(w);
  calx_sync(NULL);
  assert_int_equal(donated(), 1);
  calx_release(w);
}

// A temporary handle does as well, as long as it lives.
static void test_temporary_handle(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_scope *step = calx_scope_begin();
  calx_tensor *old = calx_detach(w);
  update(w);
  calx_sync(NULL);
  assert_int_equal(donated(), 0);
  assert_true(lazy_holds(old, 1));
  CHECK_STATUS_OK(calx_scope_end(step));
  update(w);
  calx_sync(NULL);
  assert_int_equal(donated(), 1);
  calx_release(w);
}

// Two tensors that were given one value share it until one of them changes.
static void test_shared_by_assignment(void **state)
{
  (void)state;
  calx_tensor *a = lazy_durable(4, 1), *b = lazy_durable(4, 5);
  calx_assign(a, b);
  calx_sync(NULL);
  assert_int_equal(donated(), 0);
  update(a);
  calx_sync(NULL);
  assert_int_equal(donated(), 0);
  assert_true(lazy_holds(b, 5));
  update(a);
  update(b);
  calx_sync(NULL);
  assert_int_equal(donated(), 2);
  calx_release(a);
  calx_release(b);
}

// The same where both got the value that one step computed.
static void test_one_result_for_two(void **state)
{
  (void)state;
  calx_tensor *a = lazy_durable(4, 1), *b = lazy_durable(4, 5);
  calx_scope *step = calx_scope_begin();
  calx_tensor *n = calx_add(a, b);
  calx_assign(a, n);
  calx_assign(b, n);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_int_equal(donated(), 1);  // an output takes one buffer
  update(a);
  calx_sync(NULL);
  assert_int_equal(donated(), 1);
  assert_false(lost(b));
  calx_release(a);
  calx_release(b);
}

// And where the value was read before the sync.
static void test_read_then_shared(void **state)
{
  (void)state;
  calx_tensor *n = calx_neg(lazy_vector(4, 1));
  calx_tensor *a = calx_take(calx_detach(n)), *b = calx_take(calx_detach(n));
  assert_true(lazy_holds(n, 1));
  calx_sync(NULL);
  update(a);
  calx_sync(NULL);
  assert_int_equal(donated(), 0);
  assert_true(lazy_holds(b, 1));
  assert_true(lazy_holds(n, 1));
  assert_null(calx_scope_error());
  calx_release(a);
  calx_release(b);
}

// A read donates nothing: the old value is still the tensor's last one.
static void test_read(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_scope *step = calx_scope_begin();
  update(w);
  lazy_holds(w, 1);
  assert_int_equal(donated(), 0);
  calx_add(w, lazy_vector(3, 0));
  calx_sync(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(step), "add: ");
  assert_true(lazy_holds(w, 1));
  calx_release(w);
}

// What a read computed of an update is the new value, in a buffer of its own;
// another tensor's update is still in place, and both are at the next step.
static void test_read_update(void **state)
{
  (void)state;
  calx_tensor *a = lazy_durable(4, 1), *b = lazy_durable(4, 5);
  for (int i = 0; i < 2; i++) {
    calx_scope *step = calx_scope_begin();
    update(a);
    update(b);
    if (i == 0) lazy_holds(a, 1);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(step));
    assert_int_equal(donated(), i == 0 ? 1 : 3);
    assert_false(lost(a) || lost(b));
  }
  calx_release(a);
  calx_release(b);
}

// The first value has no old one to write over.
static void test_first_value(void **state)
{
  (void)state;
  calx_tensor *w = calx_take(calx_neg(lazy_vector(4, 1)));
  calx_sync(NULL);
  assert_int_equal(donated(), 0);
  cx_lazy_tensor_mark(w, CX_LAZY_T_KEEP_INITIAL);
  update(w);
  calx_sync(NULL);
  assert_int_equal(donated(), 1);
  calx_tensor *v = calx_take(calx_neg(lazy_vector(4, 1)));
  cx_lazy_tensor_mark(v, CX_LAZY_T_KEEP_INITIAL);
  update(v);
  calx_sync(NULL);
  assert_int_equal(donated(), 1);
  calx_release(w);
  calx_release(v);
}

// A constant that many steps start from is not worn out by one of them.
static void test_fresh_constant(void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++) {
    calx_tensor *t = calx_take(calx_full(CALX_SHAPE(4), 42));
    calx_sync(NULL);
    update(t);
    calx_sync(NULL);
    assert_false(lost(t));
    calx_release(t);
  }
  assert_int_equal(donated(), 3);
  calx_tensor *x = lazy_vector(4, 0);
  for (int i = 0; i < 3; i++) {
    calx_tensor *t = calx_mul(x, 2.5);  // its slots' buffer is reused
    calx_sync(t);
    assert_false(lost(t));
  }
}

// Donation is part of the key.
static void test_in_the_key(void **state)
{
  (void)state;
  calx_tensor *a = lazy_durable(4, 1), *b = lazy_durable(4, 2);
  calx_scope *step = calx_scope_begin();
  calx_assign(b, calx_add(b, a));
  calx_sync(NULL);
  assert_int_equal(donated(), 1);
  calx_tensor *sum = calx_add(b, a);
  calx_sync(sum);
  assert_int_equal(donated(), 1);
  assert_int_equal(calx_counter_value("UncachedCompile"), 2);
  assert_false(lost(a) || lost(b) || lost(sum));
  CHECK_STATUS_OK(calx_scope_end(step));
  calx_release(a);
  calx_release(b);
}

// Gradient accumulation: the gradient is updated in place, the parameter once.
static void test_accumulation(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_requires_grad(w, true);
  for (int i = 0; i < 4; i++) {
    calx_scope *step = calx_scope_begin();
    calx_backward(calx_sum(calx_mul(w, w)));
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  assert_int_equal(calx_counter_value("UncachedCompile"), 2);
  assert_int_equal(donated(), 3);
  assert_false(lost(calx_grad(w)));
  calx_release(w);
}

// ---- CALX_DEBUG=donation ----------------------------------------------------

static bool corrupt;
calx_status *__real_cx_pjrt_buffer_to_host(cx_pjrt_buffer *b, void *dst,
                                           size_t size);
calx_status *__wrap_cx_pjrt_buffer_to_host(cx_pjrt_buffer *b, void *dst,
                                           size_t size);
calx_status *__wrap_cx_pjrt_buffer_to_host(cx_pjrt_buffer *b, void *dst,
                                           size_t size)
{
  static int calls;
  calx_status *status = __real_cx_pjrt_buffer_to_host(b, dst, size);
  if (corrupt && status == NULL) ((char *)dst)[0] = (char)++calls;
  return status;
}

static void test_checked(void **state)
{
  (void)state;
  setenv("CALX_DEBUG", "donation", 1);
  cx_lazy_mode_reload();
  calx_tensor *w = lazy_durable(4, 1), *v = lazy_durable(3, 1);
  long launches = lazy_launches();
  update(w);
  update(v);
  calx_sync(NULL);
  assert_int_equal(lazy_launches(), launches + 2);
  assert_int_equal(donated(), 2);
  assert_false(lost(w) || lost(v));
  calx_tensor *n = calx_neg(w);
  calx_sync(n);  // donates nothing, runs once
  assert_int_equal(lazy_launches(), launches + 3);
  update(w);
  corrupt = true;
  calx_sync(NULL);
  corrupt = false;
  CHECK_STATUS(CALX_INTERNAL, calx_scope_take_error(),
               "donation.c:", "result 0 differs", "CALX_DEBUG=donation");
  unsetenv("CALX_DEBUG");
  calx_release(w);
  calx_release(v);
}

// Whatever of the comparison fails, nothing is left over.
static void test_checked_fails(void **state)
{
  (void)state;
  setenv("CALX_DEBUG", "donation", 1);
  cx_lazy_mode_reload();
  for (int k = 1; k <= 3; k++) {
    calx_tensor *w = lazy_durable(4, 1);
    update(w);
    char settings[80];
    snprintf(settings, sizeof settings,
             "fail=PJRT_Buffer_ToHostBuffer@%d:13:no luck", k);
    lazy_set(settings);
    calx_sync(NULL);
    CHECK_STATUS(CALX_INTERNAL, calx_scope_take_error(), "no luck");
    calx_release(w);
  }
  unsetenv("CALX_DEBUG");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_update),
    LAZY_TEST(test_two_updates),
    LAZY_TEST(test_ten_updates),
    LAZY_TEST(test_exchange),
    LAZY_TEST(test_owners),
    LAZY_TEST(test_other_handle),
    LAZY_TEST(test_temporary_handle),
    LAZY_TEST(test_shared_by_assignment),
    LAZY_TEST(test_one_result_for_two),
    LAZY_TEST(test_read_then_shared),
    LAZY_TEST(test_read),
    LAZY_TEST(test_read_update),
    LAZY_TEST(test_first_value),
    LAZY_TEST(test_fresh_constant),
    LAZY_TEST(test_in_the_key),
    LAZY_TEST(test_accumulation),
    LAZY_TEST(test_checked),
    LAZY_TEST(test_checked_fails),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
