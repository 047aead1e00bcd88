// step: what becomes of gradients and state in a step. On the fake plugin:
// nothing here depends on numbers.
#include "base/metrics.h"
#include "net.h"

// ---- gradients --------------------------------------------------------------

static void test_consumed(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root, .lr = 0.1);
  train_step(&m, opt);
  calx_tensor *g = calx_grad(m.w);
  assert_non_null(g);
  assert_false(is_data(g));
  assert_true(is_data(m.w));
  calx_scope *s = calx_scope_begin();
  calx_neg(g);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(s),
               "the gradient was consumed by an optimiser's step",
               "step.c:", ".keep_gradients", "calx_optimizer_zero_grad");
  // Its sum with another gradient is unknown as well.
  s = calx_scope_begin();
  calx_backward(loss_of(&m));
  calx_optimizer_step(opt);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(s), "was consumed",
               "calx_optimizer_zero_grad before the next backward",
               "it is the gradient of 'fc.weight' of the model Net");
  assert_int_equal(calx_optimizer_steps(opt), 1);
  train_step(&m, opt);
  assert_int_equal(calx_optimizer_steps(opt), 2);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// Before the sync the gradient is there, and the next one is added to it; what
// comes of it is consumed as well.
static void test_consumed_before_the_sync(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root);
  calx_scope *s = calx_scope_begin();
  calx_backward(loss_of(&m));
  calx_optimizer_step(opt);
  calx_backward(loss_of(&m));
  calx_optimizer_step(opt);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  assert_int_equal(calx_optimizer_steps(opt), 2);
  assert_false(is_data(calx_grad(m.w)));
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static void test_kept_gradients(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root, .keep_gradients = true);
  train_step(&m, opt);
  assert_true(is_data(calx_grad(m.w)));
  calx_scope *s = calx_scope_begin();
  calx_tensor *before = calx_grad(m.w);
  calx_backward(loss_of(&m));  // accumulates, as in PyTorch
  assert_ptr_equal(calx_grad(m.w), before);
  assert_false(is_data(before));
  calx_optimizer_step(opt);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_optimizer_zero_grad(opt);
  assert_null(calx_grad(m.w));
  assert_null(calx_grad(m.b));
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static void test_named_gradient(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root);
  calx_scope *s = calx_scope_begin();
  calx_backward(loss_of(&m));
  calx_optimizer_step(opt);
  calx_sync(calx_grad(m.w), calx_grad(m.b));
  assert_true(is_data(calx_grad(m.w)));
  CHECK_STATUS_OK(calx_scope_end(s));
  s = calx_scope_begin();
  calx_backward(loss_of(&m));
  calx_sync(NULL);  // not consumed again: durable
  assert_true(is_data(calx_grad(m.w)));
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// Accumulation over syncs, then a step that consumes the sum.
static void test_accumulated_gradients(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root);
  for (int i = 0; i < 3; i++) {
    calx_scope *s = calx_scope_begin();
    calx_backward(loss_of(&m));
    if (i == 2) calx_optimizer_step(opt);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
    assert_int_equal(is_data(calx_grad(m.w)), i < 2);
  }
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// Two optimisers may use one gradient in one step; not in two.
static void test_two_optimisers(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *a = calx_sgd(m.root), *b = calx_adam(m.root);
  calx_scope *s = calx_scope_begin();
  calx_backward(loss_of(&m));
  calx_optimizer_step(a);
  calx_optimizer_step(b);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  s = calx_scope_begin();
  calx_optimizer_zero_grad(a);
  calx_backward(loss_of(&m));
  calx_optimizer_step(a);
  calx_sync(NULL);
  calx_optimizer_step(b);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(s), "consumed",
               "expired at the sync", "'fc.weight'");
  assert_int_equal(calx_optimizer_steps(b), 1);
  calx_optimizer_free(a);
  calx_optimizer_free(b);
  calx_module_free(m.root);
}

// ---- state and programs -----------------------------------------------------

static void test_state(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_adam(m.root, .amsgrad = true);
  assert_null(calx_optimizer_state(opt, 0, "exp_avg"));
  train_step(&m, opt);
  static const char *const names[] = { "exp_avg", "exp_avg_sq",
                                       "max_exp_avg_sq" };
  calx_tensor *first[3];
  for (int i = 0; i < 3; i++) {
    first[i] = calx_optimizer_state(opt, 0, names[i]);
    assert_true(is_data(first[i]));
    assert_false(calx_tensor_requires_grad(first[i]));
    char name[64];
    snprintf(name, sizeof name, "fc.weight.%s", names[i]);
    assert_string_equal(cx_lazy_tensor_name(first[i]), name);
  }
  train_step(&m, opt);
  for (int i = 0; i < 3; i++) {  // updated in place
    assert_ptr_equal(calx_optimizer_state(opt, 0, names[i]), first[i]);
  }
  assert_null(calx_optimizer_state(opt, 0, "momentum_buffer"));
  assert_null(calx_optimizer_state(opt, 0, NULL));
  assert_null(calx_optimizer_state(opt, 2, "exp_avg"));
  assert_null(calx_optimizer_state(NULL, 0, "exp_avg"));
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// Steps count when they are recorded.
static void test_steps_before_the_sync(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_adam(m.root);
  calx_scope *s = calx_scope_begin();
  calx_backward(loss_of(&m));
  for (int i = 0; i < 3; i++) {
    calx_optimizer_step(opt);
    assert_int_equal(calx_optimizer_steps(opt), i + 1);
    assert_non_null(calx_optimizer_state(opt, 0, "exp_avg"));
  }
  calx_sync(NULL);
  assert_int_equal(calx_optimizer_steps(opt), 3);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// What a step computes is on no tape.
static void test_steps_are_not_on_the_tape(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_adam(m.root, .weight_decay = 0.1);
  calx_scope *s = calx_scope_begin();
  calx_backward(loss_of(&m));
  calx_optimizer_step(opt);
  assert_true((cx_graph_node_flags(node_of(m.w)) & CX_GRAPH_NODE_GRAD) == 0);
  assert_true(calx_tensor_requires_grad(m.w));
  assert_true(calx_tensor_requires_grad(calx_neg(m.w)));
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// No number of an optimiser is part of a program.
static void test_learning_rates_compile_nothing(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_adamw(m.root);
  assert_true(calx_optimizer_lr(opt) == 1e-3);
  train_step(&m, opt);
  train_step(&m, opt);
  long programs = cx_lazy_program_count();
  static const double rates[] = { 0, 1, 0.5, 1e-8 };
  for (int i = 0; i < 4; i++) {
    calx_optimizer_set_lr(opt, rates[i]);
    assert_true(calx_optimizer_lr(opt) == rates[i]);
    train_step(&m, opt);
  }
  assert_int_equal(cx_lazy_program_count(), programs);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// Parameters and state are updated in their own buffers.
static void test_donation(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_adam(m.root);
  train_step(&m, opt);
  train_step(&m, opt);
  const cx_metric *aliases = cx_metric_find("InputOutputAliasCount");
  assert_non_null(aliases);
  double before = aliases->accumulator;
  train_step(&m, opt);
  assert_true(aliases->accumulator - before == 6);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// ---- which parameters -------------------------------------------------------

static void test_frozen_parameters(void **state)
{
  (void)state;
  net m = make();
  calx_requires_grad(m.w, false);
  calx_optimizer *opt = calx_sgd(m.root, .momentum = 0.9);
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  const cx_graph_node *before = node_of(m.w);
  train_step(&m, opt);
  assert_ptr_equal(node_of(m.w), before);
  const char *name =
      cx_lazy_tensor_name(calx_optimizer_state(opt, 0, "momentum_buffer"));
  assert_string_equal(name, "fc.bias.momentum_buffer");
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static void test_parameters_without_gradient(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root, .momentum = 0.9);
  const cx_graph_node *before = node_of(m.w);
  calx_scope *s = calx_scope_begin();
  calx_optimizer_step(opt);  // nothing to do
  calx_backward(calx_sum(calx_mul(m.b, 2)));
  calx_optimizer_step(opt);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  assert_ptr_equal(node_of(m.w), before);
  assert_null(calx_optimizer_state(opt, 0, "momentum_buffer"));
  assert_non_null(calx_optimizer_state(opt, 1, "momentum_buffer"));
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static void test_model_goes_first(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root);
  calx_module_free(m.root);
  calx_optimizer_zero_grad(opt);
  calx_optimizer_step(opt);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_optimizer_free(opt);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_consumed),
    SUPPORT_TEST(test_consumed_before_the_sync),
    SUPPORT_TEST(test_kept_gradients),
    SUPPORT_TEST(test_named_gradient),
    SUPPORT_TEST(test_accumulated_gradients),
    SUPPORT_TEST(test_two_optimisers),
    SUPPORT_TEST(test_state),
    SUPPORT_TEST(test_steps_before_the_sync),
    SUPPORT_TEST(test_steps_are_not_on_the_tape),
    SUPPORT_TEST(test_learning_rates_compile_nothing),
    SUPPORT_TEST(test_donation),
    SUPPORT_TEST(test_frozen_parameters),
    SUPPORT_TEST(test_parameters_without_gradient),
    SUPPORT_TEST(test_model_goes_first),
  };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
