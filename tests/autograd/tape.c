// tape: what is on it, when it ends, what is told when it is not there. On the
// fake plugin: nothing here depends on numbers.
#include "lazy/tape.h"
#include "calx/autograd.h"
#include "calx/ops.h"
#include "support/support.h"

static calx_tensor *leaf(void)
{
  calx_tensor *t = support_tensor(CALX_F32, CALX_SHAPE(2), (double[]){ 1, 2 });
  calx_requires_grad(t, true);
  return t;
}

#define CHECK_SCOPE(scope, code, ...) \
  CHECK_STATUS(code, calx_scope_end(scope), __VA_ARGS__)

// ---- ops with rules of the test's own ---------------------------------------

static int rule_calls;

static calx_status *infer_like(cx_node *node)
{
  for (uint32_t k = 0; k < node->n_out; k++) {
    node->out[k].shape = *cx_in(node, 0);
  }
  return NULL;
}

static void grad_counting(cx_tape *t)
{
  rule_calls++;
  for (uint32_t i = 0; i < t->node->n_in; i++) {
    t->in_grads[i] = t->out_grads[0];
  }
}

static void grad_wrong(cx_tape *t)
{
  t->in_grads[0] = calx_sum(t->out_grads[0]);
}

static void grad_failing(cx_tape *t)
{
  t->in_grads[0] = calx_matmul(t->out_grads[0],
                               calx_reshape(t->out_grads[0], CALX_SHAPE(1, 2)));
}

static const cx_op op_counting = { .name = "counting",
                                   .infer = infer_like,
                                   .grad = grad_counting };
static const cx_op op_wrong = { .name = "wrong",
                                .infer = infer_like,
                                .grad = grad_wrong };
static const cx_op op_failing = { .name = "failing",
                                  .infer = infer_like,
                                  .grad = grad_failing };

static calx_tensor *apply(const cx_op *op, calx_tensor *x)
{
  return cx_apply(&(cx_call){ .op = op, .in = &x, .n_in = 1 }, NULL);
}

// ---- rules ------------------------------------------------------------------

static void test_rule_runs_once(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf(), *y = apply(&op_counting, x);
  rule_calls = 0;
  calx_tensor *sum = calx_add(calx_mul(y, y), calx_add(y, calx_neg(y)));
  calx_backward(calx_sum(sum));
  assert_int_equal(rule_calls, 1);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// Only what lies between output and inputs is gone through.
static void test_grad_of_prunes(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf(), *w = leaf(), *g;
  calx_tensor *y = calx_mul(apply(&op_counting, x), apply(&op_counting, w));
  rule_calls = 0;
  calx_grad_of(calx_sum(y), &x, 1, NULL, &g);
  assert_non_null(g);
  assert_int_equal(rule_calls, 1);
  calx_grad_of(calx_sum(y), &y, 1, NULL, &g);
  assert_non_null(g);
  assert_int_equal(rule_calls, 1);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void test_rule_of_wrong_shape(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf();
  calx_backward(calx_sum(apply(&op_wrong, x)));
  assert_null(calx_grad(x));
  CHECK_SCOPE(s, CALX_INTERNAL, "the rule of wrong", "operand 0", "f32[]",
              "f32[2]", "recorded at", "tape.c:");
}

static void test_rule_that_fails(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf(), *other = leaf();
  calx_tensor *y = calx_add(apply(&op_failing, x), other);
  calx_backward(calx_sum(y));
  assert_null(calx_grad(x));
  assert_null(calx_grad(other));
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "matmul",
              "in the gradient of failing, recorded at", "tape.c:");
}

// Ops of the backward pass belong to the module of the op they are for.
static void test_gradients_name_the_module(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf();
  const char *before = cx_module_path_set("features.conv1");
  calx_tensor *y = calx_mul(x, x);
  cx_module_path_set(before);
  calx_backward(calx_sum(y));
  const cx_node *node = cx_tensor_value(calx_grad(x)).node;
  assert_string_equal(node->module, "features.conv1");
  CHECK_STATUS_OK(calx_scope_end(s));
}

// ---- regions ----------------------------------------------------------------

static bool records(void)
{
  return calx_tensor_requires_grad(calx_neg(leaf()));
}

static void test_no_grad(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf();
  assert_true(records());
  calx_no_grad_begin();
  assert_false(records());
  assert_true(calx_tensor_requires_grad(x));
  calx_no_grad_begin();
  calx_no_grad_end();
  assert_false(records());
  calx_no_grad_end();
  assert_true(records());
  CHECK_STATUS_OK(calx_scope_end(s));
}

static calx_status *leave_early(void)
{
  calx_scope *s = calx_scope_begin();
  calx_no_grad_begin();
  calx_no_grad_begin();
  assert_false(records());
  return calx_scope_end(s);
}

static void test_region_ends_with_its_scope(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  CHECK_STATUS_OK(leave_early());
  assert_true(records());
  calx_no_grad_begin();
  calx_scope *inner = calx_scope_begin();
  assert_false(records());
  calx_no_grad_end();  // not this scope's
  assert_false(records());
  CHECK_SCOPE(inner, CALX_FAILED_PRECONDITION, "no_grad_end", "scope");
  assert_false(records());
  CHECK_STATUS_OK(calx_scope_end(s));
}

// A backward in a no-grad region works, and records no gradient of its own.
static void test_backward_in_a_region(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf(), *y = calx_sum(calx_mul(x, x));
  calx_no_grad_begin();
  calx_no_grad_begin();
  calx_backward(y);
  assert_false(calx_tensor_requires_grad(calx_grad(x)));
  assert_false(records());
  calx_no_grad_end();
  calx_no_grad_end();
  assert_true(records());
  CHECK_STATUS_OK(calx_scope_end(s));
}

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
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "tape.c:", "backward",
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
  calx_grad_of(calx_sum(inputs[0]), inputs, 2, NULL, grads);
  assert_null(grads[0]);
  assert_null(grads[1]);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "grad_of", "input 1", "f32[2]");
  s = calx_scope_begin();
  inputs[0] = NULL;
  calx_grad_of(calx_sum(leaf()), inputs, 1, NULL, grads);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "grad_of", "input 0", "NULL");
}

// A tensor that is gone collects nothing, and hurts nobody.
static void test_leaf_is_gone(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_scope *inner = calx_scope_begin();
  calx_tensor *x = leaf(), *kept = leaf();
  calx_retain(kept);
  calx_tensor *y = calx_take(calx_sum(calx_mul(x, kept)));
  CHECK_STATUS_OK(calx_scope_end(inner));
  calx_backward(y);
  assert_non_null(calx_grad(kept));
  calx_release(y);
  calx_release(kept);
  CHECK_STATUS_OK(calx_scope_end(s));
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
              "tape.c:", "call backward before that sync");
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
  calx_grad_of(y, &h, 1, NULL, &g);  // as far as h itself it can be told
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
              "tape.c:", "calx_detach() the tensor");
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
  const cx_node *node = cx_tensor_value(calx_grad(x)).node;
  assert_true((cx_node_flags(node) & CX_NODE_DATA) != 0);
  s = calx_scope_begin();  // an accumulated one goes back to what it was
  calx_backward(calx_sum(calx_neg(x)));
  assert_ptr_not_equal(cx_tensor_value(calx_grad(x)).node, node);
  calx_reshape(x, CALX_SHAPE(3));
  calx_sync(NULL);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "reshape");
  assert_ptr_equal(cx_tensor_value(calx_grad(x)).node, node);
  calx_release(x);
}

// ---- size -------------------------------------------------------------------

static void quiet(void *user, const char *line)
{
  (void)user;
  (void)line;
}

static void test_million_ops(void **state)
{
  (void)state;
  calx_log_set(quiet, NULL);  // the pending-graph limit
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf(), *y = calx_take(calx_sum(x));
  for (int i = 0; i < 1000; i++) {
    calx_scope *inner = calx_scope_begin();
    calx_tensor *z = y;
    for (int k = 0; k < 1000; k++) z = apply(&op_counting, z);
    calx_take(z);
    calx_release(y);
    y = z;
    CHECK_STATUS_OK(calx_scope_end(inner));
  }
  rule_calls = 0;
  calx_backward(y);
  assert_int_equal(rule_calls, 1000000);
  assert_non_null(calx_grad(x));
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_release(y);
  calx_log_set(NULL, NULL);
}

// ---- no memory --------------------------------------------------------------

// The whole of a backward, with each allocation failing once.
static void test_out_of_memory(void **state)
{
  (void)state;
  calx_tensor *x = NULL;
  calx_scope *setup = calx_scope_begin();
  x = calx_take(leaf());
  CHECK_STATUS_OK(calx_scope_end(setup));
  long failures = 0;
  for (long n = 0;; n++) {
    calx_scope *s = calx_scope_begin();
    calx_tensor *h = calx_tanh(calx_mul(x, x)), *g = NULL;
    calx_tensor *y = calx_sum(calx_add(h, x));
    cx_alloc_fail_at(n);
    calx_backward(y);
    calx_grad_of(y, &h, 1, NULL, &g);
    cx_alloc_fail_at(-1);
    bool failed = calx_scope_error() != NULL;
    if (failed) {
      assert_int_equal(calx_status_code(calx_scope_error()),
                       CALX_RESOURCE_EXHAUSTED);
      failures++;
    } else {
      assert_non_null(calx_grad(x));
      assert_non_null(g);
    }
    calx_status_free(calx_scope_take_error());
    assert_true(records());
    calx_status_free(calx_scope_end(s));
    calx_zero_grad(x);
    if (!failed) break;
  }
  print_message("  %ld allocations failed, one at a time\n", failures);
  assert_true(failures > 20);
  calx_release(x);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_rule_runs_once),
    SUPPORT_TEST(test_grad_of_prunes),
    SUPPORT_TEST(test_rule_of_wrong_shape),
    SUPPORT_TEST(test_rule_that_fails),
    SUPPORT_TEST(test_gradients_name_the_module),
    SUPPORT_TEST(test_no_grad),
    SUPPORT_TEST(test_region_ends_with_its_scope),
    SUPPORT_TEST(test_backward_in_a_region),
    SUPPORT_TEST(test_requires_grad),
    SUPPORT_TEST(test_not_one_element),
    SUPPORT_TEST(test_no_path),
    SUPPORT_TEST(test_other_bad_outputs),
    SUPPORT_TEST(test_bad_gradient),
    SUPPORT_TEST(test_bad_inputs_of_grad_of),
    SUPPORT_TEST(test_leaf_is_gone),
    SUPPORT_TEST(test_backward_after_the_sync),
    SUPPORT_TEST(test_carried_state),
    SUPPORT_TEST(test_expired_loss),
    SUPPORT_TEST(test_failed_step_leaves_no_gradient),
    SUPPORT_TEST(test_million_ops),
    SUPPORT_TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
