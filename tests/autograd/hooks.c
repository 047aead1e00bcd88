// hooks: functions that see gradients, results that keep theirs, graphs that
// are used twice, modes. The numbers and the cases of errors are PyTorch's.
#include "calx/nn.h"
#include "function.h"

// ---- one graph, two passes --------------------------------------------------

static void test_second_pass(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 1), *y = calx_sum(calx_mul(x, x));
  calx_backward(y);
  calx_backward(y);
  CHECK_VALUES(calx_grad(x), 0, 2, 2);
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION,
              "Trying to backward through the graph a second time", "mul",
              ".retain_graph");
  s = calx_scope_begin();  // nothing is saved of these
  x = LEAF(1, 1);
  y = calx_sum(calx_neg(x));
  calx_backward(y);
  calx_backward(y);
  CHECK_VALUES(calx_grad(x), 0, -2, -2);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void test_retained_graph(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 1), *y = calx_sum(calx_mul(x, x)), *g;
  calx_backward_with(y, &(calx_backward_options){ .retain_graph = true });
  calx_grad_of(y, &x, 1, &g, .retain_graph = true);
  calx_backward(y);
  CHECK_VALUES(calx_grad(x), 0, 4, 4);
  CHECK_VALUES(g, 0, 2, 2);
  calx_grad_of(y, &x, 1, &g);
  assert_null(g);
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION, "a second time");
}

// A part that a pass did not go through can be used by the next one.
static void test_other_part(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(2), *w = LEAF(3), *g;
  calx_tensor *a = calx_mul(x, x), *y = calx_sum(calx_add(a, calx_mul(w, w)));
  calx_grad_of(y, &w, 1, &g);
  CHECK_VALUES(g, 0, 6);
  calx_grad_of(y, &x, 1, &g);
  CHECK_VALUES(g, 0, 4);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// ---- several outputs, chosen inputs -----------------------------------------

static void test_several_outputs(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 2), *outs[2], *ups[2] = { NULL }, *g;
  outs[0] = calx_sum(calx_mul(x, x));
  outs[1] = calx_mul(x, 3);
  ups[1] = support_tensor(CALX_F64, CALX_SHAPE(2), (double[]){ 10, 100 });
  calx_grad_of_n(
      outs, 2, &x, 1, &g,
      &(calx_grad_of_options){ .gradients = ups, .retain_graph = true });
  CHECK_VALUES(g, 0, 32, 304);
  calx_backward_n(outs, 2, &(calx_backward_options){ .gradients = ups });
  CHECK_VALUES(calx_grad(x), 0, 32, 304);
  calx_backward_n(outs, 0, NULL);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "backward", "no output");
}

static void test_unused_inputs(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *in[2] = { LEAF(1), LEAF(5, 6) }, *g[2];
  calx_tensor *y = calx_sum(calx_mul(in[0], in[0]));
  calx_grad_of(y, in, 2, g, .materialize_grads = true, .retain_graph = true);
  CHECK_VALUES(g[0], 0, 2);
  CHECK_VALUES(g[1], 0, 0, 0);
  calx_grad_of(y, in, 2, g, .allow_unused = true, .retain_graph = true);
  assert_null(g[1]);
  calx_grad_of(y, in, 2, g);
  assert_null(g[0]);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "index 1", "f64[2]",
              "not have been used in the graph", ".allow_unused");
}

static void test_backward_inputs(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 1), *w = LEAF(2, 2), *h = calx_mul(x, 3);
  calx_tensor *y = calx_sum(calx_mul(calx_mul(h, h), w));
  calx_tensor *in[2] = { h, w };
  calx_backward_with(y,
                     &(calx_backward_options){ .inputs = in, .n_inputs = 2 });
  CHECK_VALUES(calx_grad(h), 0, 12, 12);
  CHECK_VALUES(calx_grad(w), 0, 9, 9);
  assert_null(calx_grad(x));
  CHECK_STATUS_OK(calx_scope_end(s));
}

// ---- results that keep their gradient ---------------------------------------

static void test_retain_grad(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 1), *h = calx_mul(x, 3), *g;
  calx_retain_grad(h);
  calx_retain_grad(h);
  calx_retain_grad(x);
  calx_tensor *y = calx_sum(calx_mul(h, h));
  calx_grad_of(y, &x, 1, &g, .retain_graph = true);
  CHECK_VALUES(calx_grad(h), 0, 6, 6);
  calx_backward(y);
  CHECK_VALUES(calx_grad(h), 0, 12, 12);
  CHECK_VALUES(calx_grad(x), 0, 18, 18);
  calx_retain_grad(calx_detach(x));
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "retain_grad", "requires no gradient");
}

// The graph outlives the tensor that asked.
static void test_retain_grad_of_a_freed_tensor(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 1);
  calx_scope *inner = calx_scope_begin();
  calx_tensor *h = calx_mul(x, 3);
  calx_retain_grad(h);
  calx_tensor *y = calx_take(calx_sum(calx_mul(h, h)));
  CHECK_STATUS_OK(calx_scope_end(inner));
  calx_backward(y);
  CHECK_VALUES(calx_grad(x), 0, 18, 18);
  calx_release(y);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// ---- hooks on tensors -------------------------------------------------------

typedef struct seen {
  int calls, freed;
  calx_hook self;
} seen;

static void note_free(void *user)
{
  ((seen *)user)->freed++;
}

static calx_tensor *tenfold(void *user, calx_tensor *grad)
{
  ((seen *)user)->calls++;
  return calx_mul(grad, 10);
}

static calx_tensor *only_look(void *user, calx_tensor *grad)
{
  (void)grad;
  ((seen *)user)->calls++;
  return NULL;
}

static calx_tensor *once(void *user, calx_tensor *grad)
{
  seen *s = user;
  s->calls++;
  calx_hook_remove(s->self);
  assert_int_equal(s->freed, 0);
  return calx_mul(grad, 2);
}

static calx_tensor *wrong_shape(void *user, calx_tensor *grad)
{
  (void)user;
  (void)grad;
  return calx_ones(CALX_SHAPE(3), .dtype = CALX_F64);
}

static void test_hook_on_result(void **state)
{
  (void)state;
  seen a = { 0 }, b = { 0 };
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 1), *h = calx_mul(x, 3);
  calx_retain_grad(h);
  calx_register_hook(h, tenfold, &a, note_free);
  calx_hook gone = calx_register_hook(h, tenfold, &b, note_free);
  calx_hook_remove(gone);
  assert_int_equal(b.freed, 1);
  calx_hook_remove(gone);
  calx_backward(calx_sum(calx_add(calx_mul(h, h), 1)));
  CHECK_VALUES(calx_grad(h), 0, 60, 60);
  CHECK_VALUES(calx_grad(x), 0, 180, 180);
  CHECK_STATUS_OK(calx_scope_end(s));
  assert_int_equal(a.calls, 1);
  assert_int_equal(b.calls, 0);
  assert_int_equal(a.freed, 1);
  assert_int_equal(b.freed, 1);
}

// A leaf's hook sees the sum of a pass, not what was collected before.
static void test_hook_on_leaf(void **state)
{
  (void)state;
  seen a = { 0 };
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 1), *g;
  calx_register_hook(x, tenfold, &a, note_free);
  calx_tensor *y = calx_sum(calx_mul(x, x));
  calx_grad_of(y, &x, 1, &g, .retain_graph = true);
  CHECK_VALUES(g, 0, 20, 20);
  calx_backward(y);
  calx_backward(calx_sum(calx_mul(x, x)));
  CHECK_VALUES(calx_grad(x), 0, 40, 40);
  CHECK_STATUS_OK(calx_scope_end(s));
  assert_int_equal(a.calls, 3);
  assert_int_equal(a.freed, 1);
}

static void test_hook_removes_itself(void **state)
{
  (void)state;
  seen a = { 0 }, b = { 0 };
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 1);
  a.self = calx_register_hook(x, once, &a, note_free);
  calx_register_hook(x, only_look, &b, NULL);
  calx_backward(calx_sum(calx_mul(x, x)));
  assert_int_equal(a.freed, 1);
  calx_backward(calx_sum(calx_mul(x, x)));
  CHECK_VALUES(calx_grad(x), 0, 6, 6);
  CHECK_STATUS_OK(calx_scope_end(s));
  assert_int_equal(a.calls, 1);
  assert_int_equal(b.calls, 2);
  assert_int_equal(a.freed, 1);
}

static void test_hook_errors(void **state)
{
  (void)state;
  seen a = { 0 };
  calx_scope *s = calx_scope_begin();
  calx_register_hook(calx_ones(CALX_SHAPE(2)), only_look, &a, note_free);
  assert_int_equal(a.freed, 1);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "register_hook",
              "requires no gradient");
  s = calx_scope_begin();
  calx_register_hook(LEAF(1), NULL, &a, note_free);
  assert_int_equal(a.freed, 2);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "the function is NULL");
  s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 2);
  calx_register_hook(x, wrong_shape, NULL, NULL);
  calx_backward(calx_sum(calx_mul(x, x)));
  assert_null(calx_grad(x));
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "a hook has changed the shape",
              "f64[3]", "f64[2]");
}

// ---- hooks on modules -------------------------------------------------------

static calx_tensor *doubled_input(void *user, calx_module *m, calx_tensor *x)
{
  (void)m;
  ((seen *)user)->calls++;
  return calx_mul(x, 2);
}

static calx_tensor *shifted_output(void *user, calx_module *m, calx_tensor *x,
                                   calx_tensor *y)
{
  (void)m;
  (void)x;
  ((seen *)user)->calls++;
  return calx_add(y, 1);
}

static calx_tensor *backward_tenfold(void *user, calx_module *m,
                                     calx_tensor *grad_input,
                                     calx_tensor *grad_output)
{
  (void)m;
  seen *s = user;
  s->calls += grad_input != NULL ? 1 : 100;
  assert_non_null(grad_output);
  return grad_input != NULL ? calx_mul(grad_input, 10) : NULL;
}

static calx_module *small_layer(void)
{
  calx_module *m =
      calx_nn_linear(NULL, NULL, 2, 2, .no_bias = true, .dtype = CALX_F64);
  calx_no_grad_begin();
  calx_assign(
      calx_module_find(m, "weight"),
      support_tensor(CALX_F64, CALX_SHAPE(2, 2), (double[]){ 1, 2, 3, 4 }));
  calx_no_grad_end();
  return m;
}

static void test_module_hooks(void **state)
{
  (void)state;
  seen pre = { 0 }, post = { 0 }, back = { 0 };
  calx_scope *s = calx_scope_begin();
  calx_module *m = small_layer();
  calx_tensor *x = calx_reshape(LEAF(1, 1), CALX_SHAPE(1, 2));
  calx_hook h[3] = {
    calx_module_register_forward_pre_hook(m, doubled_input, &pre, note_free),
    calx_module_register_forward_hook(m, shifted_output, &post, note_free),
    calx_module_register_full_backward_hook(m, backward_tenfold, &back,
                                            note_free),
  };
  CHECK_VALUES(calx_forward(m, x), 0, 7, 15);
  for (int i = 0; i < 2; i++) calx_hook_remove(h[i]);
  assert_int_equal(pre.freed + post.freed, 2);
  CHECK_VALUES(calx_forward(m, x), 0, 3, 7);
  assert_int_equal(pre.calls + post.calls, 2);
  calx_module_free(m);
  assert_int_equal(back.freed, 1);
  assert_int_equal(back.calls, 0);
  calx_module_register_forward_hook(NULL, shifted_output, &post, NULL);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "module_register_forward_hook");
}

// PyTorch 2.13 gives these: [[40, 60]], and the weight's [[2, 2], [2, 2]].
static void test_module_backward_hook(void **state)
{
  (void)state;
  seen back = { 0 };
  calx_scope *s = calx_scope_begin();
  calx_module *m = small_layer();
  calx_module_register_full_backward_hook(m, backward_tenfold, &back,
                                          note_free);
  calx_tensor *x = LEAF(1, 1);
  calx_backward(calx_sum(calx_forward(m, calx_reshape(x, CALX_SHAPE(1, 2)))));
  CHECK_VALUES(calx_grad(x), 0, 40, 60);
  assert_int_equal(back.calls, 1);
  calx_backward(calx_sum(
      calx_forward(m, calx_ones(CALX_SHAPE(1, 2), .dtype = CALX_F64))));
  assert_int_equal(back.calls, 101);
  CHECK_VALUES(calx_grad(calx_module_find(m, "weight")), 0, 2, 2, 2, 2);
  calx_tensor *unused = calx_forward(m, calx_reshape(x, CALX_SHAPE(1, 2)));
  assert_non_null(unused);
  calx_module_free(m);
  CHECK_STATUS_OK(calx_scope_end(s));
  assert_int_equal(back.freed, 1);
}

// ---- modes ------------------------------------------------------------------

static void test_regions(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1);
  calx_no_grad_begin();
  assert_false(calx_is_grad_enabled());
  calx_enable_grad_begin();
  assert_true(calx_is_grad_enabled());
  assert_true(calx_tensor_requires_grad(calx_neg(x)));
  calx_scope *inner = calx_scope_begin();
  calx_no_grad_begin();
  calx_enable_grad_begin();
  calx_no_grad_begin();
  assert_false(calx_tensor_requires_grad(calx_neg(x)));
  CHECK_STATUS_OK(calx_scope_end(inner));
  assert_true(calx_is_grad_enabled());
  calx_enable_grad_end();
  assert_false(calx_is_grad_enabled());
  calx_no_grad_end();
  assert_true(calx_is_grad_enabled());
  calx_no_grad_begin();
  calx_enable_grad_end();
  assert_false(calx_is_grad_enabled());
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION, "enable_grad_end", "the other kind");
  s = calx_scope_begin();
  for (int i = 0; i < 65; i++) calx_no_grad_begin();
  CHECK_SCOPE(s, CALX_RESOURCE_EXHAUSTED, "no_grad_begin", "64 regions");
  assert_true(calx_is_grad_enabled());
}

static void test_detach_in_place(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 1), *h = calx_mul(x, 2);
  calx_detach_(h);
  assert_false(calx_tensor_requires_grad(h));
  calx_backward(calx_sum(calx_mul(h, x)));
  CHECK_VALUES(calx_grad(x), 0, 2, 2);
  calx_detach_(NULL);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "detach_", "NULL");
}

static void test_anomaly(void **state)
{
  (void)state;
  calx_set_detect_anomaly(true);
  assert_true(calx_is_anomaly_enabled());
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(4, -1);
  calx_tensor *y = calx_add(x, 1), *z = calx_sqrt(calx_sub(y, 3));
  calx_sum(z);
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION,
              "hooks.c:", "sqrt returned nan values", "element 1");
  s = calx_scope_begin();
  x = LEAF(1, 0);
  y = calx_sum(calx_mul(calx_sqrt(x), 0));
  assert_null(calx_scope_error());
  calx_backward(y);
  assert_null(calx_grad(x));
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION, "returned nan values",
              "in the gradient of sqrt, recorded at", "hooks.c:");
  s = calx_scope_begin();
  calx_neg(LEAF(1, (double)NAN));
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION, "neg returned nan values",
              "its operand 0 holds NaN already");
  calx_set_detect_anomaly(false);
  assert_false(calx_is_anomaly_enabled());
  s = calx_scope_begin();
  calx_neg(LEAF(1, (double)NAN));
  CHECK_STATUS_OK(calx_scope_end(s));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_second_pass),
    SUPPORT_TEST(test_retained_graph),
    SUPPORT_TEST(test_other_part),
    SUPPORT_TEST(test_several_outputs),
    SUPPORT_TEST(test_unused_inputs),
    SUPPORT_TEST(test_backward_inputs),
    SUPPORT_TEST(test_retain_grad),
    SUPPORT_TEST(test_retain_grad_of_a_freed_tensor),
    SUPPORT_TEST(test_hook_on_result),
    SUPPORT_TEST(test_hook_on_leaf),
    SUPPORT_TEST(test_hook_removes_itself),
    SUPPORT_TEST(test_hook_errors),
    SUPPORT_TEST(test_module_hooks),
    SUPPORT_TEST(test_module_backward_hook),
    SUPPORT_TEST(test_regions),
    SUPPORT_TEST(test_detach_in_place),
    SUPPORT_TEST(test_anomaly),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
