// The step: what a sync runs, what it materialises, what expires; reading
// before it; the tape's end.
#include "calx/autograd.h"
#include "fixture.h"
#include "lazy/lazy.h"

static bool is_pending(const calx_tensor *t)
{
  return calx_tensor_error(t) == NULL && !calx_is_ready(t);
}

// ---- what a sync does -------------------------------------------------------

// One program for all: the durable, the named, nothing else.
static void test_materialises(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  long launches = lazy_launches();
  calx_scope *step = calx_scope_begin();
  calx_assign(w, calx_neg(w));
  calx_tensor *kept = calx_retain(calx_relu(w));
  calx_tensor *named = calx_exp(w), *left = calx_log(w);
  assert_true(is_pending(w) && is_pending(kept) && is_pending(named));
  int line = __LINE__ + 1;
  calx_sync(named);
  assert_int_equal(lazy_launches(), launches + 1);
  assert_int_equal(calx_counter_value("MarkStep"), 1);
  assert_true(calx_is_ready(w) && calx_is_ready(kept) && calx_is_ready(named));
  assert_true(lazy_sum("TensorsGraphSize") == 3);  // log is not in it
  char where[64];
  snprintf(where, sizeof where, "expired at the sync at tests/lazy/sync.c:%d",
           line);
  assert_non_null(strstr(calx_status_message(calx_tensor_error(left)), where));
  lazy_holds(named, 0);
  assert_int_equal(lazy_launches(), launches + 1);
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_true(lazy_holds(w, 1));
  calx_release(w);
  calx_release(kept);
}

static void test_expired(void **state)
{
  (void)state;
  calx_tensor *a = calx_neg(lazy_vector(4, 1));
  calx_tensor *b = calx_neg(lazy_vector(4, 2));
  calx_sync(b);
  assert_null(calx_scope_error());
  int line = __LINE__ + 1;
  calx_relu(a);
  char where[64];
  snprintf(where, sizeof where, "sync.c:%d: in test_expired: relu: operand 0",
           line);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), where,
               "expired at the sync at ", "name it in the sync", "calx_retain");
  double item = calx_item(calx_sum(a));
  assert_true(item != item);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), "expired");
  char data[16];
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_tensor_read(a, data, 16),
               "expired");
  calx_assign(a, b);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), "expired");
  calx_tensor *w = lazy_durable(4, 1);
  calx_assign(w, a);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), "expired");
  assert_true(lazy_holds(w, 1));
  calx_release(w);
}

// Naming what has expired does not bring it back, and is not silent.
static void test_expired_named(void **state)
{
  (void)state;
  calx_tensor *a = calx_neg(lazy_vector(4, 1));
  calx_sync(NULL);
  calx_tensor *w = lazy_durable(4, 1);
  calx_assign(w, calx_neg(lazy_vector(4, 7)));
  calx_sync(a);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(),
               "sync: operand 0", "expired");
  assert_true(lazy_holds(w, 1));  // the step failed as a whole
  calx_release(w);
}

// Materialised temporaries stay; so does what nobody computed anew.
static void test_materialised_stay(void **state)
{
  (void)state;
  calx_tensor *a = lazy_vector(4, 1), *b = calx_neg(a);
  calx_sync(b);
  calx_tensor *c = calx_neg(b);
  calx_sync(c);
  assert_true(lazy_holds(a, 1));
  assert_true(lazy_holds(b, 1));
  assert_true(lazy_holds(c, 1));
  assert_null(calx_scope_error());
}

// Pending temporaries of outer scopes materialise; those of inner ones are
// gone.
static void test_outer_scopes(void **state)
{
  (void)state;
  calx_tensor *root = calx_neg(lazy_vector(4, 1));
  calx_scope *outer = calx_scope_begin();
  calx_tensor *mid = calx_neg(lazy_vector(4, 2));
  calx_scope *inner = calx_scope_begin();
  calx_tensor *own = calx_neg(lazy_vector(4, 3));
  calx_sync(NULL);
  assert_true(calx_is_ready(root) && calx_is_ready(mid));
  assert_non_null(calx_tensor_error(own));
  CHECK_STATUS_OK(calx_scope_end(inner));
  long launches = lazy_launches();
  assert_true(lazy_holds(root, 1) && lazy_holds(mid, 2));
  assert_int_equal(lazy_launches(), launches);
  CHECK_STATUS_OK(calx_scope_end(outer));
}

static void test_names_several(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 1);
  calx_tensor *list[5];
  for (int i = 0; i < 5; i++) list[i] = calx_add(x, i);
  long launches = lazy_launches();
  calx_sync(list[0], list[3], NULL, list[0]);
  assert_int_equal(lazy_launches(), launches + 1);
  assert_true(calx_is_ready(list[0]) && calx_is_ready(list[3]));
  assert_non_null(calx_tensor_error(list[1]));
  list[1] = calx_add(x, 1);
  list[2] = calx_add(x, 2);
  calx_sync_n(&list[1], 2);
  assert_true(calx_is_ready(list[1]) && calx_is_ready(list[2]));
  assert_null(calx_scope_error());
}

// A sync that has nothing to run runs nothing, and still ends the step.
static void test_nothing(void **state)
{
  (void)state;
  long launches = lazy_launches();
  calx_tensor *t = calx_neg(lazy_vector(4, 1));
  calx_sync(NULL);
  assert_non_null(calx_tensor_error(t));
  calx_sync(NULL);
  assert_int_equal(calx_counter_value("MarkStep"), 2);
  assert_int_equal(lazy_launches(), launches);
  assert_int_equal(lazy_samples("TensorsGraphSize"), 0);
}

// The loader's sync: nothing counted where nothing is pending.
static void test_pending(void **state)
{
  (void)state;
  calx_tensor *a = lazy_vector(4, 1);
  cx_lazy_sync_pending();
  assert_int_equal(calx_counter_value("MarkStep"), 0);
  calx_tensor *kept = calx_take(calx_neg(a));
  cx_lazy_sync_pending();
  assert_int_equal(calx_counter_value("MarkStep"), 1);
  assert_true(calx_is_ready(kept));
  calx_tensor *temporary = calx_neg(a);
  cx_lazy_sync_pending();
  assert_int_equal(calx_counter_value("MarkStep"), 2);
  assert_non_null(calx_tensor_error(temporary));
  cx_lazy_sync_pending();
  assert_int_equal(calx_counter_value("MarkStep"), 2);
  calx_release(kept);
}

// ---- durable tensors --------------------------------------------------------

// What was retained and given up again is a temporary.
static void test_no_longer_durable(void **state)
{
  (void)state;
  calx_tensor *t = calx_neg(lazy_vector(4, 1));
  calx_retain(t);
  calx_retain(t);
  calx_release(t);
  assert_true(is_pending(t));
  calx_release(t);
  calx_sync(NULL);
  assert_non_null(calx_tensor_error(t));
}

static void test_durable_released(void **state)
{
  (void)state;
  for (int i = 0; i < 4; i++) {
    calx_tensor *list[8];
    for (int k = 0; k < 8; k++) {
      list[k] = calx_take(calx_neg(lazy_vector(4, (float)k)));
    }
    for (int k = 0; k < 8; k += 2) calx_release(list[(k + i) % 8]);
    calx_sync(NULL);
    for (int k = 1; k < 8; k += 2) {
      calx_tensor *t = list[(k + i) % 8];
      assert_true(lazy_holds(t, (float)((k + i) % 8)));
      calx_release(t);
    }
  }
  assert_null(calx_scope_error());
}

// Two handles of one value, two values of one handle.
static void test_one_value_many_handles(void **state)
{
  (void)state;
  calx_tensor *n = calx_neg(lazy_vector(4, 1));
  calx_tensor *a = calx_take(calx_detach(n)), *b = calx_take(calx_detach(n));
  long launches = lazy_launches();
  calx_sync(n);
  assert_int_equal(lazy_launches(), launches + 1);
  assert_true(lazy_sum("TensorsGraphSize") == 1);
  assert_true(lazy_holds(a, 1) && lazy_holds(b, 1) && lazy_holds(n, 1));
  calx_release(a);
  calx_release(b);
}

static void test_assigned_twice(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1), *x = lazy_vector(4, 5);
  calx_assign(w, calx_neg(w));
  calx_assign(w, x);  // a materialised value: nothing to run
  long launches = lazy_launches();
  calx_sync(NULL);
  assert_int_equal(lazy_launches(), launches);
  assert_true(lazy_holds(w, 5));
  calx_assign(w, w);
  calx_sync(NULL);
  assert_true(lazy_holds(w, 5));
  assert_null(calx_scope_error());
  calx_release(w);
}

// ---- reading before the sync ------------------------------------------------

// Only what is needed runs, nothing expires, nothing is donated, and the sync
// that runs it again says so, once for its place.
static void test_read_before(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  int read_line = 0;
  for (int i = 0; i < 3; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *h = calx_relu(calx_neg(w));
    calx_tensor *loss = calx_sum(h), *other = calx_exp(h);
    calx_assign(w, calx_sub(w, h));
    long launches = lazy_launches();
    read_line = __LINE__ + 1;
    assert_true(calx_item(loss) == 0);
    assert_int_equal(lazy_launches(), launches + 1);
    assert_null(calx_tensor_error(other));
    calx_item(loss);
    assert_int_equal(lazy_launches(), launches + 1);
    calx_sync(loss);
    assert_int_equal(lazy_launches(), launches + 2);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  char where[96];
  snprintf(where, sizeof where,
           "sync.c:%d reads a tensor before the sync: 2 ops of the step run "
           "twice",
           read_line);
  assert_int_equal(lines_with(where), 1);
  assert_int_equal(lines_with("reads a tensor before"), 1);
  calx_release(w);
}

// Reading after the sync, or what the sync needs nothing of, is not said.
static void test_read_after(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_scope *step = calx_scope_begin();
  calx_tensor *loss = calx_sum(calx_neg(w));
  calx_tensor *alone = calx_sum(lazy_vector(4, 1));
  calx_item(alone);
  calx_assign(w, calx_mul(w, loss));
  calx_sync(loss);
  calx_item(loss);
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_int_equal(lines_with("before the sync"), 0);
  calx_release(w);
}

// What a read computed, a sync keeps without running it again.
static void test_read_value_kept(void **state)
{
  (void)state;
  calx_tensor *kept = calx_take(calx_neg(lazy_vector(4, 1)));
  assert_true(lazy_holds(kept, 1));
  long launches = lazy_launches();
  calx_sync(kept);
  assert_int_equal(lazy_launches(), launches);
  assert_true(lazy_holds(kept, 1));
  calx_release(kept);
}

// Of an op with two results both are there after one is read.
static void test_read_two_results(void **state)
{
  (void)state;
  calx_tensor *index;
  calx_tensor *most = calx_max_dim(lazy_vector(4, 1), 0, false, &index);
  long launches = lazy_launches();
  calx_item(most);
  assert_int_equal(calx_item_int(index), 0);
  assert_int_equal(lazy_launches(), launches + 1);
  calx_sync(index, most);
  assert_int_equal(lazy_launches(), launches + 1);
  assert_null(calx_scope_error());
}

static void test_two_results(void **state)
{
  (void)state;
  calx_tensor *index;
  calx_max_dim(lazy_vector(4, 1), 0, false, &index);
  calx_sync(index);
  assert_int_equal(calx_tensor_dtype(index), CALX_I64);
  assert_int_equal(calx_item_int(index), 0);
  calx_tensor *most = calx_max_dim(lazy_vector(4, 1), 0, false, &index);
  calx_tensor *sum = calx_add(most, index);
  calx_sync(sum, index, most);
  assert_true(calx_is_ready(index) && calx_is_ready(most));
  assert_null(calx_scope_error());
}

static void test_is_ready(void **state)
{
  (void)state;
  lazy_set("async=1");
  calx_tensor *t = lazy_vector(4, 1);
  calx_tensor *n = calx_neg(t);
  assert_false(calx_is_ready(n));
  lazy_set("hold=1");
  calx_sync(n);
  assert_false(calx_is_ready(n));
  lazy_set("hold=0");
  CHECK_STATUS_OK(calx_device_wait(NULL));
  assert_true(calx_is_ready(n));
  assert_true(calx_is_ready(calx_add(n, calx_scalar_int(1))) == false);
}

// ---- the tape ---------------------------------------------------------------

static void test_tape_ends(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_requires_grad(w, true);
  calx_tensor *carried = calx_take(calx_neg(w));
  int line = __LINE__ + 1;
  calx_sync(NULL);
  calx_tensor *loss = calx_sum(calx_mul(carried, w));
  calx_backward(loss);
  char where[64];
  snprintf(where, sizeof where, "tests/lazy/sync.c:%d", line);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), where,
               "calx_detach", "mul");
  assert_null(calx_grad(w));
  loss = calx_sum(calx_mul(calx_detach(carried), w));
  calx_backward(loss);
  assert_null(calx_scope_error());
  assert_non_null(calx_grad(w));
  calx_release(carried);
  calx_release(w);
}

// A value that was read and then synced has lost its tape too.
static void test_tape_ends_after_read(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_requires_grad(w, true);
  calx_tensor *carried = calx_take(calx_neg(w));
  lazy_holds(carried, 1);
  calx_tensor *loss = calx_sum(carried);
  calx_sync(NULL);
  loss = calx_sum(carried);
  calx_backward(loss);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(), "sync",
               "calx_detach");
  calx_release(carried);
  calx_release(w);
}

// A gradient that no optimiser consumed is durable: it waits for the next
// backward across syncs.
static void test_gradient_is_durable(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(4, 1);
  calx_requires_grad(w, true);
  for (int i = 0; i < 3; i++) {
    calx_scope *step = calx_scope_begin();
    calx_backward(calx_sum(calx_mul(w, w)));
    calx_sync(NULL);
    assert_true(calx_is_ready(calx_grad(w)));
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  calx_zero_grad(w);
  assert_null(calx_grad(w));
  calx_release(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_materialises),
    LAZY_TEST(test_expired),
    LAZY_TEST(test_expired_named),
    LAZY_TEST(test_materialised_stay),
    LAZY_TEST(test_outer_scopes),
    LAZY_TEST(test_names_several),
    LAZY_TEST(test_nothing),
    LAZY_TEST(test_pending),
    LAZY_TEST(test_no_longer_durable),
    LAZY_TEST(test_durable_released),
    LAZY_TEST(test_one_value_many_handles),
    LAZY_TEST(test_assigned_twice),
    LAZY_TEST(test_read_before),
    LAZY_TEST(test_read_after),
    LAZY_TEST(test_read_value_kept),
    LAZY_TEST(test_read_two_results),
    LAZY_TEST(test_two_results),
    LAZY_TEST(test_is_ready),
    LAZY_TEST(test_tape_ends),
    LAZY_TEST(test_tape_ends_after_read),
    LAZY_TEST(test_gradient_is_durable),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
