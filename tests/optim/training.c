// training: what optimisers do over several steps, in numbers, on a real
// plugin.
#include "calx/autograd.h"
#include "calx/optim.h"
#include "support/support.h"

// (x W^T + b - y)^2 on three samples, in f64.
static calx_module *make(void)
{
  calx_module *fc = calx_nn_linear(NULL, NULL, 2, 1, .dtype = CALX_F64);
  calx_scope *s = calx_scope_begin();
  calx_no_grad_begin();
  calx_assign(
      calx_module_find(fc, "weight"),
      support_tensor(CALX_F64, CALX_SHAPE(1, 2), (double[]){ 0.25, -0.5 }));
  calx_assign(calx_module_find(fc, "bias"), 0.125);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  return fc;
}

static calx_tensor *loss_of(calx_module *fc)
{
  calx_tensor *x = support_tensor(CALX_F64, CALX_SHAPE(3, 2),
                                  (double[]){ 1, 2, -1, 0.5, 3, -2 });
  calx_tensor *y =
      support_tensor(CALX_F64, CALX_SHAPE(3, 1), (double[]){ 1, -1, 2 });
  return calx_mean(calx_square(calx_sub(calx_forward(fc, x), y)));
}

// ---- failed steps -----------------------------------------------------------

static void take_step(calx_module *fc, calx_optimizer *opt, bool fails)
{
  calx_scope *s = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_tensor *loss = loss_of(fc);
  calx_backward(loss);
  calx_optimizer_step(opt);
  if (fails) calx_reshape(loss, CALX_SHAPE(3));
  calx_sync(loss);
  calx_status *status = calx_scope_end(s);
  assert_int_equal(calx_status_code(status),
                   fails ? CALX_INVALID_ARGUMENT : CALX_OK);
  calx_status_free(status);
}

static double *trained(calx_optimizer *(*optimizer)(calx_module *), bool fails,
                       size_t *out_n)
{
  calx_module *fc = make();
  calx_optimizer *opt = optimizer(fc);
  for (int i = 0; i < 5; i++) {
    if (fails) take_step(fc, opt, true);
    take_step(fc, opt, false);
    if (fails && i == 2) take_step(fc, opt, true);
  }
  assert_int_equal(calx_optimizer_steps(opt), 5);
  double *w = support_read(calx_module_find(fc, "weight"), out_n);
  calx_optimizer_free(opt);
  calx_module_free(fc);
  return w;
}

static calx_optimizer *amsgrad(calx_module *m)
{
  return calx_adam(m, .lr = 0.1, .amsgrad = true, .weight_decay = 0.1);
}

static calx_optimizer *momentum(calx_module *m)
{
  return calx_sgd(m, .lr = 0.1, .momentum = 0.9, .nesterov = true);
}

// To the last bit: values, state and the count behind the bias corrections.
static void test_failed_steps_change_nothing(void **state)
{
  (void)state;
  calx_optimizer *(*const optimizers[])(calx_module *) = { amsgrad, momentum };
  for (int i = 0; i < 2; i++) {
    size_t n;
    double *wanted = trained(optimizers[i], false, &n);
    double *got = trained(optimizers[i], true, &n);
    assert_memory_equal(got, wanted, n * sizeof *got);
    test_free(wanted);
    test_free(got);
  }
}

// ---- parameters that come late ----------------------------------------------

// Adam counts the steps of each parameter: the first two are without the bias,
// so its third is as another's first.
static void test_late_parameter(void **state)
{
  (void)state;
  calx_module *m = calx_module_new("Net", NULL, NULL);
  calx_scope *setup = calx_scope_begin();
  calx_tensor *zero = calx_zeros(CALX_SHAPE(1), .dtype = CALX_F64);
  calx_tensor *a = calx_module_param(m, "a", zero);
  calx_tensor *b = calx_module_param(m, "b", zero);
  CHECK_STATUS_OK(calx_scope_end(setup));
  calx_optimizer *opt = calx_adam(m, .lr = 0.5, .eps = 1);
  double value[2] = { 0, 0 }, exp_avg = 0, exp_avg_sq = 0;
  for (int i = 0; i < 4; i++) {
    calx_scope *s = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss = calx_mul(a, 3);
    if (i >= 2) loss = calx_add(loss, calx_mul(b, 3));
    calx_backward(loss);
    calx_optimizer_step(opt);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
    exp_avg += 0.1 * (3 - exp_avg);
    exp_avg_sq = 0.999 * exp_avg_sq + 0.001 * 9;
    double rest1 = 1 - pow(0.9, i + 1), rest2 = 1 - pow(0.999, i + 1);
    value[0] -= 0.5 / rest1 * exp_avg / (sqrt(exp_avg_sq / rest2) + 1);
    if (i == 1) value[1] = value[0];  // after two steps
    CHECK_VALUES(a, 1e-12, value[0]);
  }
  CHECK_VALUES(b, 1e-12, value[1]);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_optimizer_free(opt);
  calx_module_free(m);
}

// ---- accumulation -----------------------------------------------------------

static void test_accumulation_is_the_sum(void **state)
{
  (void)state;
  size_t n;
  double *w[2];
  for (int parts = 0; parts < 2; parts++) {
    calx_module *fc = make();
    calx_optimizer *opt = calx_sgd(fc, .lr = 0.25);
    for (int step = 0; step < 3; step++) {
      calx_optimizer_zero_grad(opt);
      for (int i = 0; i < (parts ? 2 : 1); i++) {
        calx_scope *s = calx_scope_begin();
        calx_tensor *loss = loss_of(fc);
        calx_backward(parts ? calx_mul(loss, 0.5) : loss);
        if (i == parts) calx_optimizer_step(opt);
        calx_sync(loss);
        CHECK_STATUS_OK(calx_scope_end(s));
      }
    }
    w[parts] = support_read(calx_module_find(fc, "weight"), &n);
    calx_optimizer_free(opt);
    calx_module_free(fc);
  }
  for (size_t i = 0; i < n; i++) CHECK_CLOSE(w[1][i], w[0][i], 1e-14);
  test_free(w[0]);
  test_free(w[1]);
}

// ---- the learning rate ------------------------------------------------------

static void test_learning_rate(void **state)
{
  (void)state;
  calx_module *m = calx_module_new("Net", NULL, NULL);
  calx_scope *s = calx_scope_begin();
  calx_tensor *w = calx_module_param(m, "w", calx_zeros(CALX_SHAPE(1)));
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_optimizer *opt = calx_sgd(m, .lr = 1);
  static const double rates[] = { 1, 0.25, 0, 2 };
  double wanted = 0;
  for (int i = 0; i < 4; i++) {
    s = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_optimizer_set_lr(opt, rates[i]);
    calx_backward(calx_mul(w, 2));
    calx_optimizer_step(opt);
    calx_sync(NULL);
    wanted -= 2 * rates[i];
    CHECK_VALUES(w, 0, wanted);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
  calx_optimizer_free(opt);
  calx_module_free(m);
}

// ---- element types ----------------------------------------------------------

// Parameters of several types in one optimiser, each updated in its own.
static void test_types(void **state)
{
  (void)state;
  static const calx_dtype types[] = { CALX_F32, CALX_F64, CALX_BF16, CALX_F16 };
  calx_module *m = calx_module_new("Net", NULL, NULL);
  calx_scope *s = calx_scope_begin();
  calx_tensor *w[4];
  for (int i = 0; i < 4; i++) {
    char name[2] = { (char)('a' + i), '\0' };
    calx_tensor *one = calx_ones(CALX_SHAPE(2), .dtype = types[i]);
    w[i] = calx_module_param(m, name, one);
  }
  CHECK_STATUS_OK(calx_scope_end(s));
  CHECK_STATUS_OK(calx_module_error(m));
  calx_optimizer *opt = calx_adamw(m, .lr = 0.5, .weight_decay = 0.5);
  for (int step = 0; step < 2; step++) {
    s = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    for (int i = 0; i < 4; i++) calx_backward(calx_sum(w[i]));
    calx_optimizer_step(opt);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
  // A gradient of 1 moves by lr.
  static const double tolerances[] = { 1e-6, 1e-13, 1e-2, 1e-2 };
  double by = 0.5 / (1 + 1e-8), wanted = (0.75 - by) * 0.75 - by;
  for (int i = 0; i < 4; i++) {
    assert_int_equal(calx_tensor_dtype(w[i]), types[i]);
    CHECK_VALUES(w[i], tolerances[i], wanted, wanted);
  }
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_optimizer_free(opt);
  calx_module_free(m);
}

static double rounded_to_bf16(double x)
{
  float f = (float)x;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  memcpy(&f, &bits, sizeof f);
  return (double)f;
}

// A bf16 step is one of f32, rounded once: the first one of Adam from 0 goes as
// far as lr. State is bf16, as PyTorch's is.
static void test_narrow_types(void **state)
{
  (void)state;
  static const double rates[] = { 0.01, 0.013, 0.03, 0.07, 0.0042 };
  for (int i = 0; i < 5; i++) {
    calx_module *m = calx_module_new("Net", NULL, NULL);
    calx_scope *s = calx_scope_begin();
    calx_tensor *zero = calx_zeros(CALX_SHAPE(1), .dtype = CALX_BF16);
    calx_tensor *w = calx_module_param(m, "w", zero);
    CHECK_STATUS_OK(calx_scope_end(s));
    calx_optimizer *opt = calx_adam(m, .lr = rates[i]);
    s = calx_scope_begin();
    calx_backward(calx_sum(calx_mul(w, 3)));
    calx_optimizer_step(opt);
    calx_sync(NULL);
    CHECK_VALUES(w, 0, -rounded_to_bf16(rates[i]));
    calx_tensor *exp_avg = calx_optimizer_state(opt, 0, "exp_avg");
    assert_int_equal(calx_tensor_dtype(exp_avg), CALX_BF16);
    CHECK_VALUES(exp_avg, 0, rounded_to_bf16(0.1 * 3));
    CHECK_STATUS_OK(calx_scope_end(s));
    calx_optimizer_free(opt);
    calx_module_free(m);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_failed_steps_change_nothing),
    SUPPORT_TEST(test_late_parameter),
    SUPPORT_TEST(test_accumulation_is_the_sum),
    SUPPORT_TEST(test_learning_rate),
    SUPPORT_TEST(test_types),
    SUPPORT_TEST(test_narrow_types),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
