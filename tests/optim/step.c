// step: what becomes of gradients, state and counts, and what is told when a
// step cannot be. On the fake plugin: nothing here depends on numbers.
#include "base/metrics.h"
#include "calx/autograd.h"
#include "calx/optim.h"
#include "support/support.h"

// y = x W^T + b on two samples, and its sum as the loss.
typedef struct net {
  calx_module *root, *fc;
  calx_tensor *w, *b;
} net;

static net make(void)
{
  net m = { .root = calx_module_new("Net", NULL, NULL) };
  m.fc = calx_nn_linear(m.root, "fc", 3, 2);
  m.w = calx_module_find(m.root, "fc.weight");
  m.b = calx_module_find(m.root, "fc.bias");
  CHECK_STATUS_OK(calx_module_error(m.root));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_take_error());
  return m;
}

static calx_tensor *loss_of(const net *m)
{
  return calx_sum(
      calx_square(calx_forward(m->fc, calx_ones(CALX_SHAPE(2, 3)))));
}

static const cx_node *node_of(const calx_tensor *t)
{
  return cx_tensor_value(t).node;
}

static bool is_data(const calx_tensor *t)
{
  return node_of(t) != NULL && (cx_node_flags(node_of(t)) & CX_NODE_DATA) != 0;
}

static void train_step(const net *m, calx_optimizer *opt)
{
  calx_scope *s = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_tensor *loss = loss_of(m);
  calx_backward(loss);
  calx_optimizer_step(opt);
  calx_sync(loss);
  CHECK_STATUS_OK(calx_scope_end(s));
}

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
  s = calx_scope_begin();
  calx_backward(loss_of(&m));
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(s),
               "backward: the gradient of 'fc.weight' f32[2,3] was consumed",
               "calx_optimizer_zero_grad()");
  s = calx_scope_begin();
  calx_optimizer_step(opt);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(s), "was consumed",
               "it is the gradient of 'fc.weight'");
  assert_int_equal(calx_optimizer_steps(opt), 1);
  train_step(&m, opt);
  assert_int_equal(calx_optimizer_steps(opt), 2);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// Between the step and the sync, too.
static void test_consumed_before_the_sync(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root);
  calx_scope *s = calx_scope_begin();
  calx_backward(loss_of(&m));
  calx_optimizer_step(opt);
  calx_backward(loss_of(&m));
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(s),
               "backward: the gradient of 'fc.weight'", "consumed");
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
    assert_string_equal(cx_tensor_name(first[i]), name);
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

// No number of an optimiser is part of a program.
static void test_learning_rates_compile_nothing(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_adamw(m.root);
  assert_true(calx_optimizer_lr(opt) == 1e-3);
  train_step(&m, opt);
  train_step(&m, opt);
  long programs = cx_program_count();
  static const double rates[] = { 0, 1, 0.5, 1e-8 };
  for (int i = 0; i < 4; i++) {
    calx_optimizer_set_lr(opt, rates[i]);
    assert_true(calx_optimizer_lr(opt) == rates[i]);
    train_step(&m, opt);
  }
  assert_int_equal(cx_program_count(), programs);
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
  const cx_node *before = node_of(m.w);
  train_step(&m, opt);
  assert_ptr_equal(node_of(m.w), before);
  const char *name =
      cx_tensor_name(calx_optimizer_state(opt, 0, "momentum_buffer"));
  assert_string_equal(name, "fc.bias.momentum_buffer");
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static void test_parameters_without_gradient(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root, .momentum = 0.9);
  const cx_node *before = node_of(m.w);
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

// ---- failed steps -----------------------------------------------------------

typedef struct snapshot {
  const cx_node *w, *b, *m, *v;
  int64_t steps;
} snapshot;

static snapshot look(const net *m, const calx_optimizer *opt)
{
  calx_tensor *exp_avg = calx_optimizer_state(opt, 0, "exp_avg");
  calx_tensor *exp_avg_sq = calx_optimizer_state(opt, 1, "exp_avg_sq");
  return (snapshot){ node_of(m->w), node_of(m->b),
                     exp_avg != NULL ? node_of(exp_avg) : NULL,
                     exp_avg_sq != NULL ? node_of(exp_avg_sq) : NULL,
                     calx_optimizer_steps(opt) };
}

static void check_same(snapshot a, snapshot b)
{
  assert_ptr_equal(a.w, b.w);
  assert_ptr_equal(a.b, b.b);
  assert_ptr_equal(a.m, b.m);
  assert_ptr_equal(a.v, b.v);
  assert_int_equal(a.steps, b.steps);
}

enum { AFTER_STEP, BEFORE_BACKWARD, WITHOUT_SYNC, TWO_STEPS, WAYS_TO_FAIL };

static void failing_step(const net *m, calx_optimizer *opt, int way)
{
  calx_scope *s = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_tensor *loss = loss_of(m);
  if (way == BEFORE_BACKWARD) loss = calx_reshape(loss, CALX_SHAPE(7));
  calx_backward(loss);
  calx_optimizer_step(opt);
  if (way == TWO_STEPS) calx_optimizer_step(opt);
  if (way != BEFORE_BACKWARD) calx_reshape(loss, CALX_SHAPE(7));
  if (way != WITHOUT_SYNC) calx_sync(loss);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "reshape");
}

// At the first step, where there is no state yet, and later.
static void test_failed_steps(void **state)
{
  (void)state;
  for (int before = 0; before < 3; before++) {
    for (int way = 0; way < WAYS_TO_FAIL; way++) {
      net m = make();
      calx_optimizer *opt = calx_adam(m.root);
      for (int i = 0; i < before; i++) train_step(&m, opt);
      snapshot was = look(&m, opt);
      failing_step(&m, opt, way);
      check_same(look(&m, opt), was);
      failing_step(&m, opt, way);
      check_same(look(&m, opt), was);
      train_step(&m, opt);
      assert_int_equal(calx_optimizer_steps(opt), before + 1);
      assert_true(is_data(calx_optimizer_state(opt, 0, "exp_avg")));
      calx_optimizer_free(opt);
      calx_module_free(m.root);
    }
  }
}

// A model whose first sync is its first step.
static void test_failed_step_of_a_new_model(void **state)
{
  (void)state;
  calx_module *fc = calx_nn_linear(NULL, NULL, 3, 2);
  net m = { fc, fc, calx_module_find(fc, "weight"),
            calx_module_find(fc, "bias") };
  calx_optimizer *opt = calx_adam(fc);
  snapshot was = look(&m, opt);
  failing_step(&m, opt, AFTER_STEP);
  check_same(look(&m, opt), was);
  train_step(&m, opt);
  assert_int_equal(calx_optimizer_steps(opt), 1);
  assert_true(is_data(m.w));
  calx_optimizer_free(opt);
  calx_module_free(fc);
}

// What a failed step did with gradients that syncs accumulated is undone, too.
static void test_failed_step_keeps_gradients(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root);
  calx_scope *s = calx_scope_begin();
  calx_backward(loss_of(&m));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  const cx_node *grad = node_of(calx_grad(m.w));
  s = calx_scope_begin();
  calx_backward(loss_of(&m));
  calx_optimizer_step(opt);
  calx_reshape(m.w, CALX_SHAPE(7));
  calx_sync(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "reshape");
  assert_ptr_equal(node_of(calx_grad(m.w)), grad);
  s = calx_scope_begin();
  calx_backward(loss_of(&m));
  calx_optimizer_step(opt);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

// ---- options ----------------------------------------------------------------

static void refused(calx_optimizer *opt, const char *told)
{
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_error(opt), told);
  calx_scope *s = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_optimizer_step(opt);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), told,
               "so there is no step");
  calx_optimizer_free(opt);
}

static void test_bad_options(void **state)
{
  (void)state;
  net m = make();
  calx_module *r = m.root;
  refused(calx_sgd(r, .lr = -1), "sgd: lr -1, a number of 0 or more");
  refused(calx_sgd(r, .lr = (double)NAN), "sgd: lr nan");
  refused(calx_sgd(r, .momentum = -0.5), "sgd: momentum -0.5");
  refused(calx_sgd(r, .weight_decay = -1), "sgd: weight_decay -1");
  refused(calx_sgd(r, .nesterov = true), "nesterov with momentum 0");
  refused(calx_sgd(r, .nesterov = true, .momentum = 0.9, .dampening = 0.1),
          "dampening 0.1");
  refused(calx_sgd(r, .dampening = (double)NAN), "dampening is NaN");
  refused(calx_adam(r, .lr = -1), "adam: lr -1");
  refused(calx_adam(r, .eps = -1), "adam: eps -1");
  refused(calx_adamw(r, .weight_decay = -1), "adamw: weight_decay -1");
  refused(calx_adam(r, .betas = { 1, 0 }), "betas 1 and 0.999");
  refused(calx_adam(r, .betas = { 0, -0.1 }), "betas 0.9 and -0.1");
  refused(calx_sgd_with(r, &(calx_sgd_options){ .size = 999 }), "newer");
  refused(calx_adam_with(r, &(calx_adam_options){ .size = 999 }), "newer");
  refused(calx_sgd(NULL), "the module is NULL");
  calx_module *empty = calx_module_new("Empty", NULL, NULL);
  refused(calx_sgd(empty), "no parameter that requires");
  calx_module_free(empty);
  calx_module *failed = calx_nn_linear(NULL, NULL, -1, 1);
  refused(calx_sgd(failed), "so sgd has no model");
  calx_module_free(failed);
  calx_module_free(m.root);
}

static void test_zero_options(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_sgd(m.root, .lr = CALX_ZERO);
  assert_true(calx_optimizer_lr(opt) == 0);
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  calx_scope *s = calx_scope_begin();
  calx_optimizer_set_lr(opt, -1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "sgd: lr -1");
  assert_true(calx_optimizer_lr(opt) == 0);
  calx_optimizer_free(opt);
  opt = calx_adam(m.root, .betas = { CALX_ZERO, CALX_ZERO }, .eps = CALX_ZERO);
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  train_step(&m, opt);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static void test_null(void **state)
{
  (void)state;
  calx_optimizer_free(NULL);
  calx_optimizer_zero_grad(NULL);
  assert_true(calx_optimizer_lr(NULL) == 0);
  assert_int_equal(calx_optimizer_steps(NULL), 0);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_error(NULL), "NULL");
  calx_optimizer_step(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "NULL");
  calx_optimizer_set_lr(NULL, 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "NULL");
}

// ---- no memory --------------------------------------------------------------

static void test_out_of_memory(void **state)
{
  (void)state;
  net m = make();
  calx_optimizer *opt = calx_adam(m.root, .amsgrad = true, .weight_decay = 1);
  long failures = 0;
  for (int steps = 0; steps < 2;) {
    calx_scope *s = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss = loss_of(&m);
    calx_backward(loss);
    snapshot was = look(&m, opt);
    cx_alloc_fail_at(failures);
    calx_optimizer_step(opt);
    cx_alloc_fail_at(-1);
    bool failed = calx_scope_error() != NULL;
    if (failed) check_same(look(&m, opt), was);
    calx_sync(NULL);
    calx_status *status = calx_scope_end(s);
    assert_int_equal(calx_status_code(status),
                     failed ? CALX_RESOURCE_EXHAUSTED : CALX_OK);
    calx_status_free(status);
    if (failed) check_same(look(&m, opt), was);
    failures = failed ? failures + 1 : 0;
    if (!failed) steps++;
  }
  calx_optimizer_free(opt);
  for (bool failed = true; failed; failures++) {
    cx_alloc_fail_at(failures);
    opt = calx_sgd(m.root);
    cx_alloc_fail_at(-1);
    calx_status *status = calx_optimizer_error(opt);
    failed = status != NULL;
    assert_int_equal(calx_status_code(status),
                     failed ? CALX_RESOURCE_EXHAUSTED : CALX_OK);
    calx_status_free(status);
    calx_optimizer_free(opt);
  }
  calx_module_free(m.root);
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
    SUPPORT_TEST(test_learning_rates_compile_nothing),
    SUPPORT_TEST(test_donation),
    SUPPORT_TEST(test_frozen_parameters),
    SUPPORT_TEST(test_parameters_without_gradient),
    SUPPORT_TEST(test_model_goes_first),
    SUPPORT_TEST(test_failed_steps),
    SUPPORT_TEST(test_failed_step_of_a_new_model),
    SUPPORT_TEST(test_failed_step_keeps_gradients),
    SUPPORT_TEST(test_bad_options),
    SUPPORT_TEST(test_zero_options),
    SUPPORT_TEST(test_null),
    SUPPORT_TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
