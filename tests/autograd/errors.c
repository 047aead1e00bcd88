// errors: what is told when there is no gradient, and when the tape has ended.
// On the fake plugin.
#include "leaf.h"

static void test_requires_grad(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf(), *y = calx_neg(x);
  calx_requires_grad(x, false);
  assert_false(calx_tensor_requires_grad(x));
  assert_false(calx_tensor_requires_grad(calx_neg(x)));
  assert_true(calx_tensor_requires_grad(y));  // recorded before
  assert_false(calx_tensor_requires_grad(calx_detach(y)));
  calx_requires_grad(calx_detach(y), true);
  assert_false(calx_tensor_requires_grad(NULL));
  CHECK_STATUS_OK(calx_scope_end(s));
  s = calx_scope_begin();
  calx_requires_grad(calx_neg(leaf()), true);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "requires_grad", "f32[2]",
              "calx_detach");
  s = calx_scope_begin();
  calx_requires_grad(calx_arange(0, 3, 1), true);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "requires_grad", "i64[3]");
  s = calx_scope_begin();
  float v[2] = { 1, 2 };
  calx_requires_grad(calx_host_tensor(v, CALX_F32, CALX_SHAPE(2)), true);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "requires_grad",
              "Input tensor is not an XLA tensor");
  s = calx_scope_begin();
  calx_requires_grad(NULL, true);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "NULL");
}

// ---- outputs that have no gradient ------------------------------------------

static void test_not_one_element(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_backward(calx_neg(leaf()));
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "errors.c:", "backward",
              "the output is f32[2], one element is wanted", "calx_mean");
}

static void test_no_path(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_backward(calx_sum(calx_ones(CALX_SHAPE(2))));
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "no gradient flows", "f32[]");
  s = calx_scope_begin();
  calx_backward(calx_sum(calx_detach(calx_neg(leaf()))));
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "no gradient flows", "detached");
  s = calx_scope_begin();
  calx_no_grad_begin();
  calx_tensor *y = calx_sum(leaf());
  calx_no_grad_end();
  calx_backward(y);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "no gradient flows", "no-grad");
}

static void test_other_bad_outputs(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_backward(NULL);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "the output is NULL");
  s = calx_scope_begin();
  calx_backward(calx_sum(calx_arange(0, 3, 1)));
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "the output is i64[]", "floating");
  s = calx_scope_begin();
  float v = 1;
  calx_backward(calx_host_tensor(&v, CALX_F32, CALX_SCALAR));
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "Input tensor is not an XLA tensor");
  s = calx_scope_begin();
  calx_tensor *poison = calx_reshape(leaf(), CALX_SHAPE(3));
  calx_status_free(calx_scope_take_error());
  calx_backward(poison);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "backward", "reshape");
}

static void test_bad_gradient(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_backward_options o = { .gradient = calx_ones(CALX_SHAPE(3)) };
  calx_backward_with(calx_neg(leaf()), &o);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, ".gradient is f32[3]",
              "the output is f32[2]");
  s = calx_scope_begin();
  o.gradient = calx_ones(CALX_SHAPE(2), .dtype = CALX_F64);
  calx_backward_with(calx_neg(leaf()), &o);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, ".gradient is f64[2]");
  s = calx_scope_begin();
  o = (calx_backward_options){ .size = sizeof o + 8 };
  calx_backward_with(calx_sum(leaf()), &o);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "newer version");
}

static void test_bad_inputs_of_grad_of(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *inputs[] = { leaf(), calx_ones(CALX_SHAPE(2)) };
  calx_tensor *grads[2] = { inputs[0], inputs[0] };
  calx_grad_of(calx_sum(inputs[0]), inputs, 2, grads);
  assert_null(grads[0]);
  assert_null(grads[1]);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "grad_of", "input 1", "f32[2]");
  s = calx_scope_begin();
  inputs[0] = NULL;
  calx_grad_of(calx_sum(leaf()), inputs, 1, grads);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "grad_of", "input 0", "NULL");
  s = calx_scope_begin();
  calx_grad_of(calx_sum(leaf()), NULL, 1, grads);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "grad_of",
              "the list of 1 inputs is NULL");
  s = calx_scope_begin();
  inputs[0] = leaf();
  calx_grad_of(calx_sum(inputs[0]), inputs, 1, NULL);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "grad_of", "out_grads is NULL");
}

// ---- the tape ends ----------------------------------------------------------

static void test_backward_after_the_sync(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *y = calx_sum(calx_neg(leaf()));
  calx_sync(y);
  calx_backward(y);
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION, "the sync at",
              "errors.c:", "call backward before that sync");
}

// Truncated back-propagation: the state that is carried over is detached.
static void test_carried_state(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *w = leaf(), *h = calx_mul(w, w);
  calx_sync(h);
  assert_true(calx_tensor_requires_grad(h));
  calx_tensor *g;
  calx_tensor *y = calx_sum(calx_mul(h, w));
  calx_grad_of(y, &h, 1, &g);  // as far as h itself it can be told
  assert_non_null(g);
  calx_backward(calx_sum(calx_mul(calx_detach(h), w)));
  assert_non_null(calx_grad(w));
  CHECK_STATUS_OK(calx_scope_end(s));
  s = calx_scope_begin();
  w = leaf();
  h = calx_mul(w, w);
  calx_sync(h);
  calx_backward(calx_sum(calx_mul(h, w)));
  assert_null(calx_grad(w));
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION, "mul at", "the sync at",
              "errors.c:", "calx_detach() the tensor");
}

// An expired temporary tells what to do.
static void test_expired_loss(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *y = calx_sum(calx_neg(leaf()));
  calx_sync(NULL);
  calx_backward(y);
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION, "expired at the sync at", "retain");
}

// A failed step's gradient never was: the next step begins without one.
static void test_failed_step_leaves_no_gradient(void **state)
{
  (void)state;
  calx_tensor *x = NULL;
  calx_scope *s = calx_scope_begin();
  x = calx_take(leaf());
  calx_backward(calx_sum(calx_neg(x)));
  calx_reshape(x, CALX_SHAPE(3));
  calx_sync(NULL);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "reshape");
  assert_null(calx_grad(x));
  s = calx_scope_begin();
  calx_backward(calx_sum(calx_neg(x)));
  assert_non_null(calx_grad(x));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  const cx_graph_node *node = cx_lazy_tensor_value(calx_grad(x)).node;
  assert_true((cx_graph_node_flags(node) & CX_GRAPH_NODE_DATA) != 0);
  s = calx_scope_begin();  // an accumulated one goes back to what it was
  calx_backward(calx_sum(calx_neg(x)));
  assert_ptr_not_equal(cx_lazy_tensor_value(calx_grad(x)).node, node);
  calx_reshape(x, CALX_SHAPE(3));
  calx_sync(NULL);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "reshape");
  assert_ptr_equal(cx_lazy_tensor_value(calx_grad(x)).node, node);
  calx_release(x);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_requires_grad),
    SUPPORT_TEST(test_not_one_element),
    SUPPORT_TEST(test_no_path),
    SUPPORT_TEST(test_other_bad_outputs),
    SUPPORT_TEST(test_bad_gradient),
    SUPPORT_TEST(test_bad_inputs_of_grad_of),
    SUPPORT_TEST(test_backward_after_the_sync),
    SUPPORT_TEST(test_carried_state),
    SUPPORT_TEST(test_expired_loss),
    SUPPORT_TEST(test_failed_step_leaves_no_gradient),
  };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
