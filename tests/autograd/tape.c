// tape: rules, regions, size and memory. On the fake plugin: nothing here
// depends on numbers.
#include "lazy/tape.h"
#include "leaf.h"

// ---- ops with rules of the test's own ---------------------------------------

static int rule_calls;
static long most_live;  // tensors, when a rule was called

static calx_status *infer_like(cx_graph_node *node)
{
  for (uint32_t k = 0; k < node->n_out; k++) {
    node->out[k].shape = *cx_in(node, 0);
  }
  return NULL;
}

static void grad_counting(cx_lazy_tape *t)
{
  rule_calls++;
  for (uint32_t i = 0; i < t->node->n_in; i++) {
    t->in_grads[i] = t->out_grads[0];
  }
}

// With handles that nobody needs after the rule.
static void grad_wasteful(cx_lazy_tape *t)
{
  calx_tensor *g = t->out_grads[0];
  for (int i = 0; i < 4; i++) g = calx_neg(g);
  t->in_grads[0] = g;
  if (cx_lazy_tensor_live() > most_live) most_live = cx_lazy_tensor_live();
}

static void grad_wrong(cx_lazy_tape *t)
{
  t->in_grads[0] = calx_sum(t->out_grads[0]);
}

static void grad_failing(cx_lazy_tape *t)
{
  t->in_grads[0] = calx_matmul(t->out_grads[0],
                               calx_reshape(t->out_grads[0], CALX_SHAPE(1, 2)));
}

static const cx_graph_op op_counting = { .name = "counting",
                                         .infer = infer_like,
                                         .grad = grad_counting };
static const cx_graph_op op_wasteful = { .name = "wasteful",
                                         .infer = infer_like,
                                         .grad = grad_wasteful };
static const cx_graph_op op_wrong = { .name = "wrong",
                                      .infer = infer_like,
                                      .grad = grad_wrong };
static const cx_graph_op op_failing = { .name = "failing",
                                        .infer = infer_like,
                                        .grad = grad_failing };

static calx_tensor *apply(const cx_graph_op *op, calx_tensor *x)
{
  return cx_lazy_apply(&(cx_lazy_call){ .op = op, .in = &x, .n_in = 1 }, NULL);
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
  calx_grad_of(calx_sum(y), &x, 1, &g);
  assert_non_null(g);
  assert_int_equal(rule_calls, 1);
  y = apply(&op_counting, x);
  calx_grad_of(calx_sum(y), &y, 1, &g);
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
  const char *before = cx_lazy_module_path_set("features.conv1");
  calx_tensor *y = calx_mul(x, x);
  cx_lazy_module_path_set(before);
  calx_backward(calx_sum(y));
  const cx_graph_node *node = cx_lazy_tensor_value(calx_grad(x)).node;
  assert_string_equal(node->module, "features.conv1");
  CHECK_STATUS_OK(calx_scope_end(s));
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

static void test_gradients_are_not_on_the_tape(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf();
  for (int i = 0; i < 2; i++) {  // new, then accumulated
    calx_backward(calx_sum(calx_mul(x, x)));
    const cx_graph_node *node = cx_lazy_tensor_value(calx_grad(x)).node;
    assert_true((cx_graph_node_flags(node) & CX_GRAPH_NODE_GRAD) == 0);
    assert_false(calx_tensor_requires_grad(calx_grad(x)));
    assert_true(records());
  }
  CHECK_STATUS_OK(calx_scope_end(s));
}

// A backward in a no-grad region works, and leaves the region as it was.
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

// Handles die in batches, not at the end.
static void test_temporaries_die_early(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf(), *y = x;
  for (int i = 0; i < 5000; i++) y = apply(&op_wasteful, y);
  y = calx_sum(y);
  long before = most_live = cx_lazy_tensor_live();
  calx_backward(y);
  assert_true(most_live > before);
  assert_true(most_live - before < 2000);
  CHECK_STATUS_OK(calx_scope_end(s));
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
    calx_grad_of(y, &h, 1, &g);
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
    SUPPORT_TEST(test_leaf_is_gone),
    SUPPORT_TEST(test_no_grad),
    SUPPORT_TEST(test_region_ends_with_its_scope),
    SUPPORT_TEST(test_gradients_are_not_on_the_tape),
    SUPPORT_TEST(test_backward_in_a_region),
    SUPPORT_TEST(test_million_ops),
    SUPPORT_TEST(test_temporaries_die_early),
    SUPPORT_TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
