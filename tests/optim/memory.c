// memory: the n-th allocation fails, for every n of a CNN's training step: a
// status each time, nothing left over, and the next step goes well. On the fake
// plugin, whose launches compute nothing. A sample of the n by default, all of
// them in the long tests.
#include "calx/autograd.h"
#include "calx/nn.h"
#include "calx/ops.h"
#include "calx/optim.h"
#include "calx/scope.h"
#include "support/long.h"
#include "support/support.h"

typedef struct cnn {
  calx_module *root, *conv, *norm, *fc;
  calx_optimizer *opt;
} cnn;

static cnn make(bool adam)
{
  cnn m = { .root = calx_module_new("CNN", NULL, NULL) };
  m.conv = calx_nn_conv2d(m.root, "conv", 1, 4, 3);
  m.norm = calx_nn_batch_norm2d(m.root, "norm", 4);
  m.fc = calx_nn_linear(m.root, "fc", 4 * 3 * 3, 3);
  m.opt = adam ? calx_adamw(m.root, .lr = 0.01)
               : calx_sgd(m.root, .lr = 0.01, .momentum = 0.9);
  return m;
}

static void drop(cnn *m)
{
  calx_optimizer_free(m->opt);
  calx_module_free(m->root);
}

static calx_tensor *forward(const cnn *m, calx_tensor *x)
{
  x = calx_relu(calx_forward(m->norm, calx_forward(m->conv, x)));
  x = calx_max_pool2d(x, 2);
  x = calx_reshape(x, CALX_SHAPE(2, 4 * 3 * 3));
  return calx_log_softmax(calx_forward(m->fc, x), 1);
}

static calx_status *step(const cnn *m)
{
  static const float image[2 * 8 * 8] = { 1, 2, 3 };
  static const int64_t classes[2] = { 0, 2 };
  calx_scope *s = calx_scope_begin();
  calx_optimizer_zero_grad(m->opt);
  calx_tensor *x = calx_tensor_from(image, CALX_F32, CALX_SHAPE(2, 1, 8, 8));
  calx_tensor *target = calx_tensor_from(classes, CALX_I64, CALX_SHAPE(2));
  calx_tensor *y = forward(m, calx_add(x, 0.5));
  calx_tensor *weight = calx_scalar(1);
  calx_assign(weight, calx_scalar_int(2));
  calx_tensor *loss = calx_add(calx_nll_loss(y, target), weight);
  calx_backward(loss);
  calx_clip_grad_norm(m->opt, 1.0);
  calx_optimizer_step(m->opt);
  calx_sync(loss);
  calx_item(loss);
  calx_string_free(calx_tensor_str(loss));
  return calx_scope_end(s);
}

// What a step, and with `whole` the making of the model too, allocates.
static calx_status *run(bool adam, bool whole, long fail, long *out_n)
{
  cnn m = { .root = NULL };
  if (!whole) {
    m = make(adam);
    CHECK_STATUS_OK(step(&m));  // the programs and the state are there
  }
  long before = cx_alloc_count();
  cx_alloc_fail_at(fail);
  if (whole) m = make(adam);
  calx_status *status = step(&m);
  cx_alloc_fail_at(-1);
  *out_n = cx_alloc_count() - before;
  if (!whole) CHECK_STATUS_OK(step(&m));
  drop(&m);
  calx_status_free(calx_scope_take_error());
  calx_shutdown();
  return status;
}

static void sweep(bool adam, bool whole)
{
  long n, ignored, failed = 0, tried = 0;
  CHECK_STATUS_OK(run(adam, whole, -1, &n));
  assert_true(n > 200);
  // Of the default sample every stride-th, and other ones for each sweep.
  long stride = long_or(1, n / 100 + 1);
  for (long k = (2 * adam + whole) % stride; k < n; k += stride, tried++) {
    calx_status *status = run(adam, whole, k, &ignored);
    failed += status != NULL;
    if (status != NULL && calx_status_code(status) != CALX_RESOURCE_EXHAUSTED) {
      fail_msg("allocation %ld: %s", k, calx_status_message(status));
    }
    calx_status_free(status);
    if (support_nothing_left(NULL) != 0) fail_msg("allocation %ld", k);
  }
  // Some lists can do without.
  assert_true(failed > tried / 2);
  print_message("%ld of %ld allocations failed once\n", tried, n);
}

static void test_step(void **state)
{
  (void)state;
  sweep(false, false);
  sweep(true, false);
}

static void test_model_and_first_step(void **state)
{
  (void)state;
  sweep(false, true);
  sweep(true, true);
}

// A number for which there is no memory is poison, whatever it is used for.
static void test_number(void **state)
{
  (void)state;
  for (long k = 0; k < 12; k++) {
    calx_scope *s = calx_scope_begin();
    calx_tensor *t = calx_zeros(CALX_SHAPE(2));
    cx_alloc_fail_at(k);
    calx_assign(t, calx_scalar(1));
    calx_add(t, calx_scalar(2));
    cx_alloc_fail_at(-1);
    calx_status *status = calx_scope_end(s);
    if (status != NULL) {
      assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
    }
    calx_status_free(status);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_number),
    SUPPORT_TEST(test_step),
    SUPPORT_TEST(test_model_and_first_step),
  };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
