// refused: steps that fail, optimisers that cannot be, memory that is not
// there. On the fake plugin: nothing here depends on numbers.
#include "calx/optimizers.h"
#include "net.h"

// ---- failed steps -----------------------------------------------------------

typedef struct snapshot {
  const cx_graph_node *w, *b, *m, *v;
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
  const cx_graph_node *grad = node_of(calx_grad(m.w));
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
  refused(calx_sgd(r, .dampening = (double)NAN),
          "sgd: dampening nan, a number is wanted");
  refused(calx_adam(r, .lr = -1), "adam: lr -1");
  refused(calx_adam(r, .eps = -1), "adam: eps -1");
  refused(calx_adamw(r, .weight_decay = -1), "adamw: weight_decay -1");
  refused(calx_adam(r, .betas = { 1, 0 }), "betas 1 and 0.999");
  refused(calx_adam(r, .betas = { 0, -0.1 }), "betas 0 and -0.1");
  refused(calx_sgd_with(r, &(calx_sgd_options){ .size = 999 }), "999 bytes");
  refused(calx_adam_with(r, &(calx_adam_options){ .size = 999 }), "999 bytes");
  refused(calx_sgd(NULL), "the module is NULL");
  calx_module *empty = calx_module_new("Empty", NULL, NULL);
  refused(calx_sgd(empty), "no parameter that requires");
  calx_module_free(empty);
  calx_module *failed = calx_nn_linear(NULL, NULL, -1, 1);
  refused(calx_sgd(failed), "so sgd has no model");
  calx_module_free(failed);
  calx_module_free(m.root);
}

// What torch.optim's constructors raise for, of what each has beside the above.
static void test_bad_options_of_others(void **state)
{
  (void)state;
  net m = make();
  calx_module *r = m.root;
  refused(calx_adadelta(r, .rho = 1.5),
          "adadelta: rho 1.5, a number in [0, 1]");
  refused(calx_adadelta(r, .lr = -1), "adadelta: lr -1");
  refused(calx_adadelta(r, .eps = -1), "adadelta: eps -1");
  refused(calx_rmsprop(r, .alpha = -1), "rmsprop: alpha -1");
  refused(calx_rmsprop(r, .momentum = (double)NAN), "rmsprop: momentum nan");
  refused(calx_rmsprop(r, .weight_decay = -1), "rmsprop: weight_decay -1");
  refused(calx_adamax(r, .betas = { 0, 1 }), "adamax: betas 0 and 1");
  refused(calx_nadam(r, .momentum_decay = -1), "nadam: momentum_decay -1");
  refused(calx_nadam(r, .betas = { -1, 0 }), "nadam: betas -1 and 0.999");
  refused(calx_radam(r, .eps = (double)NAN), "radam: eps nan");
  refused(calx_rprop(r, .etas = { 1, 0 }), "rprop: etas 1 and 1.2");
  refused(calx_rprop(r, .etas = { 0, 1 }), "rprop: etas 0.5 and 1");
  refused(calx_rprop(r, .etas = { CALX_ZERO, 0 }), "rprop: etas 0 and 1.2");
  refused(calx_rprop(r, .step_sizes = { (double)NAN, 0 }), "rprop: step_sizes");
  refused(calx_asgd(r, .lr = -1), "asgd: lr -1");
  refused(calx_asgd(r, .t0 = (double)NAN), "asgd: t0 nan, a number is wanted");
  refused(calx_lamb(r, .betas = { 2, 0 }), "lamb: betas 2 and 0.999");
  refused(calx_lars(r, .trust_coefficient = -1), "lars: trust_coefficient -1");
  refused(calx_lars(r, .momentum = -1), "lars: momentum -1");
  refused(calx_lion(r, .weight_decay = -1), "lion: weight_decay -1");
  refused(calx_adafactor(r, .beta2_decay = 0.5),
          "adafactor: beta2_decay 0.5, a number of 0 or less");
  refused(calx_adafactor(r, .eps = { -1, 0 }), "adafactor: eps -1 and 0.001");
  refused(calx_adafactor(r, .eps = { 0, (double)NAN }), "adafactor: eps");
  refused(calx_adafactor(r, .d = 0.5), "adafactor: d 0.5, a number of 1 or");
  calx_optimizer *good = calx_adadelta(r, .rho = 1, .lr = CALX_ZERO);
  CHECK_STATUS_OK(calx_optimizer_error(good));
  calx_optimizer_free(good);
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
    SUPPORT_TEST(test_failed_steps),
    SUPPORT_TEST(test_failed_step_of_a_new_model),
    SUPPORT_TEST(test_failed_step_keeps_gradients),
    SUPPORT_TEST(test_bad_options),
    SUPPORT_TEST(test_bad_options_of_others),
    SUPPORT_TEST(test_zero_options),
    SUPPORT_TEST(test_null),
    SUPPORT_TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
