// history: what calx_assign keeps of a value's history, and what it cuts off,
// lazily and eagerly. The expected numbers are PyTorch's (copy_, detach,
// no_grad).
#include "calx/autograd.h"
#include "calx/nn.h"
#include "calx/ops.h"
#include "calx/scope.h"
#include "support/support.h"

static bool eager;

static int begin(void **state)
{
  (void)state;
  setenv("CALX_EAGER", eager ? "1" : "0", 1);
  cx_lazy_mode_reload();
  return 0;
}

static calx_tensor *number(double value)
{
  return calx_take(support_tensor(CALX_F64, CALX_SHAPE(1), &value));
}

static calx_tensor *leaf(double value)
{
  calx_tensor *t = number(value);
  calx_requires_grad(t, true);
  return t;
}

// d(h w)/dw for w = 3 and what `give` makes of h.
static void check_gradient(void (*give)(calx_tensor *h, calx_tensor *w),
                           double wanted, bool requires_grad)
{
  calx_scope *s = calx_scope_begin();
  calx_tensor *w = leaf(3), *h = number(0);
  give(h, w);
  assert_int_equal(calx_tensor_requires_grad(h), requires_grad);
  calx_backward(calx_sum(calx_mul(h, w)));
  CHECK_VALUES(calx_grad(w), 1e-12, wanted);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_release(w);
  calx_release(h);
}

static void give_detached(calx_tensor *h, calx_tensor *w)
{
  calx_assign(h, calx_detach(calx_mul(w, w)));
}

static void give_attached(calx_tensor *h, calx_tensor *w)
{
  calx_assign(h, calx_mul(w, w));
}

static void give_leaf(calx_tensor *h, calx_tensor *w)
{
  calx_assign(h, w);
}

static void give_without_tape(calx_tensor *h, calx_tensor *w)
{
  calx_tensor *y = calx_mul(w, w);
  calx_no_grad_begin();
  calx_assign(h, y);
  calx_no_grad_end();
}

static void give_another(calx_tensor *h, calx_tensor *w)
{
  calx_assign(h, calx_mul(w, 5));
  calx_assign(h, calx_mul(w, w));
}

static void give_another_detached(calx_tensor *h, calx_tensor *w)
{
  calx_assign(h, calx_mul(w, 5));
  calx_assign(h, calx_detach(calx_mul(w, w)));
}

static void give_attached_at_last(calx_tensor *h, calx_tensor *w)
{
  calx_assign(h, calx_detach(calx_mul(w, 5)));
  calx_assign(h, calx_mul(w, w));
}

static void test_assign(void **state)
{
  (void)state;
  check_gradient(give_detached, 9, false);
  check_gradient(give_attached, 27, true);
  check_gradient(give_leaf, 6, true);
  check_gradient(give_without_tape, 9, false);
  check_gradient(give_another, 27, true);
  check_gradient(give_another_detached, 9, false);
  check_gradient(give_attached_at_last, 27, true);
}

// A leaf keeps its own edge, whatever it is given.
static void test_assign_to_a_leaf(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *w = leaf(3), *v = leaf(2);
  calx_no_grad_begin();
  calx_assign(v, calx_detach(calx_mul(w, w)));
  calx_no_grad_end();
  calx_backward(calx_sum(calx_mul(v, w)));
  CHECK_VALUES(calx_grad(w), 1e-12, 9);
  CHECK_VALUES(calx_grad(v), 1e-12, 3);
  calx_assign(v, w);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s),
               "leaf that requires a gradient", "no-grad region");
  calx_release(w);
  calx_release(v);
}

// h = tanh(w h + u x), carried over steps as the guide says.
static double recurrent_step(calx_tensor *w, calx_tensor *u, calx_tensor *h,
                             double input)
{
  calx_scope *s = calx_scope_begin();
  calx_zero_grad(w);
  calx_zero_grad(u);
  calx_tensor *x = calx_add(calx_mul(w, h), calx_mul(u, input));
  calx_tensor *y = calx_tanh(x);
  calx_tensor *loss = calx_sum(calx_mul(y, y));
  calx_backward(loss);
  calx_assign(h, calx_detach(y));
  assert_false(calx_tensor_requires_grad(h));
  calx_no_grad_begin();
  calx_assign(w, calx_sub(w, calx_mul(calx_grad(w), 0.1)));
  calx_assign(u, calx_sub(u, calx_mul(calx_grad(u), 0.1)));
  calx_no_grad_end();
  calx_sync(loss);
  double value = calx_item(loss);
  CHECK_STATUS_OK(calx_scope_end(s));
  return value;
}

static void test_recurrent_state(void **state)
{
  (void)state;
  const double losses[] = { 0.05998515119362204, 0.23586825092460062,
                            0.14470865216720755, 0.13634352046043244 };
  calx_tensor *w = leaf(0.5), *u = leaf(0.25), *h = number(0);
  for (int t = 0; t < 4; t++) {
    CHECK_CLOSE(recurrent_step(w, u, h, t + 1), losses[t], 1e-12);
  }
  CHECK_VALUES(w, 1e-12, 0.47448129560312413);
  CHECK_VALUES(u, 1e-12, 0.11541793733065062);
  calx_release(w);
  calx_release(u);
  calx_release(h);
}

// A step that fails gives the value back, and whether it had a history.
static void test_failed_step(void **state)
{
  (void)state;
  calx_tensor *w = leaf(3), *h = number(2);
  for (int attached = 0; attached < 2; attached++) {
    calx_scope *s = calx_scope_begin();
    calx_tensor *y = calx_mul(w, w);
    calx_assign(h, attached != 0 ? y : calx_detach(y));
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
    assert_int_equal(calx_tensor_requires_grad(h), attached);
    s = calx_scope_begin();
    y = calx_mul(w, 7);
    calx_assign(h, attached != 0 ? calx_detach(y) : y);
    assert_int_equal(calx_tensor_requires_grad(h), 1 - attached);
    calx_mm(w, w);
    calx_sync(NULL);
    calx_status_free(calx_scope_end(s));
    assert_int_equal(calx_tensor_requires_grad(h), attached);
  }
  calx_release(w);
  calx_release(h);
}

// A buffer that is made of a detached value has no history either.
static void test_buffer(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *w = leaf(3);
  calx_module *m = calx_module_new("Holder", NULL, NULL);
  calx_tensor *b = calx_module_buffer(m, "b", calx_detach(calx_mul(w, w)));
  assert_false(calx_tensor_requires_grad(b));
  calx_backward(calx_sum(calx_mul(b, w)));
  CHECK_VALUES(calx_grad(w), 1e-12, 9);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(m);
  calx_release(w);
}

// A moving average of a parameter, made in a no-grad region.
static void test_average(void **state)
{
  (void)state;
  calx_tensor *w = leaf(3), *average = number(1);
  for (int t = 0; t < 3; t++) {
    calx_scope *s = calx_scope_begin();
    calx_no_grad_begin();
    calx_tensor *kept = calx_mul(average, 0.5);
    calx_assign(average, calx_add(kept, calx_mul(w, 0.5)));
    calx_no_grad_end();
    assert_false(calx_tensor_requires_grad(average));
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
  CHECK_VALUES(average, 1e-12, 2.75);
  calx_release(w);
  calx_release(average);
}

#define HISTORY_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, support_nothing_left)

int main(void)
{
  const struct CMUnitTest tests[] = {
    HISTORY_TEST(test_assign),          HISTORY_TEST(test_assign_to_a_leaf),
    HISTORY_TEST(test_recurrent_state), HISTORY_TEST(test_failed_step),
    HISTORY_TEST(test_buffer),          HISTORY_TEST(test_average),
  };
  int failed = cmocka_run_group_tests(tests, support_setup, NULL);
  eager = true;
  return failed + cmocka_run_group_tests(tests, support_setup, NULL);
}
