// layers: values of the layers on a real plugin: what they begin with, what
// they compute, and their gradients by differences, in f64.
#include "calx/autograd.h"
#include "calx/nn.h"
#include "support/support.h"

// ---- initial values ---------------------------------------------------------

typedef struct spread {
  double low, high, mean;
  size_t n;
} spread;

static spread measure(calx_module *m, const char *path)
{
  spread s = { INFINITY, -INFINITY, 0, 0 };
  double *v = support_read(calx_module_find(m, path), &s.n);
  for (size_t i = 0; i < s.n; i++) {
    s.low = fmin(s.low, v[i]);
    s.high = fmax(s.high, v[i]);
    s.mean += v[i] / (double)s.n;
  }
  test_free(v);
  return s;
}

// Uniform in +-bound: inside it, near both ends, its mean near 0.
static void check_uniform(calx_module *m, const char *path, double bound)
{
  spread s = measure(m, path);
  assert_true(s.low >= -bound && s.high <= bound);
  assert_true(s.low < -0.9 * bound && s.high > 0.9 * bound);
  // four standard deviations of the mean of n uniforms
  assert_true(fabs(s.mean) < 4 * bound / sqrt(3.0 * (double)s.n));
}

static void test_initial_values(void **state)
{
  (void)state;
  calx_module *root = calx_module_new("Net", NULL, NULL);
  calx_nn_linear(root, "fc", 100, 200);
  calx_nn_conv2d(root, "conv", 16, 96, 3, .kernel_width = 5, .groups = 4);
  calx_nn_batch_norm2d(root, "bn", 3);
  calx_sync(NULL);
  check_uniform(root, "fc.weight", 0.1);
  check_uniform(root, "fc.bias", 0.1);
  check_uniform(root, "conv.weight", 1 / sqrt(4 * 3 * 5));
  check_uniform(root, "conv.bias", 1 / sqrt(4 * 3 * 5));
  CHECK_VALUES(calx_module_find(root, "bn.weight"), 0, 1, 1, 1);
  CHECK_VALUES(calx_module_find(root, "bn.bias"), 0, 0, 0, 0);
  CHECK_VALUES(calx_module_find(root, "bn.running_mean"), 0, 0, 0, 0);
  CHECK_VALUES(calx_module_find(root, "bn.running_var"), 0, 1, 1, 1);
  CHECK_VALUES(calx_module_find(root, "bn.num_batches_tracked"), 0, 0);
  CHECK_STATUS_OK(calx_module_error(root));
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_module_free(root);
}

static double first_weight(uint64_t seed)
{
  calx_manual_seed(seed);
  calx_module *m = calx_nn_linear(NULL, NULL, 4, 4);
  calx_sync(NULL);
  size_t n;
  double *v = support_read(calx_module_find(m, "weight"), &n), first = v[0];
  test_free(v);
  calx_module_free(m);
  return first;
}

static void test_seed(void **state)
{
  (void)state;
  double a = first_weight(1), b = first_weight(2), again = first_weight(1);
  assert_true(a != b);
  assert_true(a == again);
}

// ---- forward ----------------------------------------------------------------

static void set(calx_module *m, const char *path, const double *values)
{
  calx_tensor *t = calx_module_find(m, path);
  calx_no_grad_begin();
  calx_assign(
      t, support_tensor(calx_tensor_dtype(t), calx_tensor_shape(t), values));
  calx_no_grad_end();
}

static void test_linear(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_module *fc = calx_nn_linear(NULL, NULL, 2, 3);
  calx_module *plain = calx_nn_linear(NULL, NULL, 2, 1, .no_bias = true);
  set(fc, "weight", (double[]){ 1, 2, 3, 4, 5, 6 });
  set(fc, "bias", (double[]){ 10, 20, 30 });
  set(plain, "weight", (double[]){ 1, -1 });
  calx_tensor *x =
      support_tensor(CALX_F32, CALX_SHAPE(1, 2, 2), (double[]){ 1, 1, 2, 0 });
  calx_tensor *y = calx_forward(fc, x);
  assert_int_equal(calx_tensor_rank(y), 3);
  CHECK_VALUES(y, 0, 13, 27, 41, 12, 26, 40);
  CHECK_VALUES(calx_forward(plain, x), 0, 0, 2);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(fc);
  calx_module_free(plain);
}

static void test_conv2d_options(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_module *m =
      calx_nn_conv2d(NULL, NULL, 1, 1, 2, .kernel_width = 3, .stride = { 2, 1 },
                     .padding = { 1, CALX_ZERO_INT }, .dilation = { 2, 1 });
  CHECK_STATUS_OK(calx_module_error(m));
  set(m, "weight", (double[]){ 1, 1, 1, 10, 10, 10 });
  set(m, "bias", (double[]){ 0.5 });
  double ones[15];
  for (int i = 0; i < 15; i++) ones[i] = 1;
  calx_tensor *x = support_tensor(CALX_F32, CALX_SHAPE(1, 1, 3, 5), ones);
  calx_tensor *y = calx_forward(m, x);
  // rows -1 and 1, of which one is padding, then rows 1 and 3
  assert_int_equal(calx_tensor_dim(y, 2), 2);
  CHECK_VALUES(y, 1e-6, 30.5, 30.5, 30.5, 3.5, 3.5, 3.5);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(m);
}

// Two batches of (2, 1, 1, 2) through training, then evaluation.
static void test_batch_norm(void **state)
{
  (void)state;
  calx_module *bn =
      calx_nn_batch_norm2d(NULL, NULL, 1, .momentum = 0.25, .dtype = CALX_F64);
  static const double batches[2][4] = { { 1, 2, 3, 6 }, { -1, 0, 0, 1 } };
  double mean = 0, var = 1;
  for (int b = 0; b < 2; b++) {
    calx_scope *s = calx_scope_begin();
    const double *v = batches[b];
    calx_tensor *x = support_tensor(CALX_F64, CALX_SHAPE(2, 1, 1, 2), v);
    calx_tensor *y = calx_forward(bn, x);
    calx_sync(y);
    double m = (v[0] + v[1] + v[2] + v[3]) / 4, squares = 0;
    for (int i = 0; i < 4; i++) squares += (v[i] - m) * (v[i] - m);
    double scale = 1 / sqrt(squares / 4 + 1e-5);
    CHECK_VALUES(y, 1e-12, (v[0] - m) * scale, (v[1] - m) * scale,
                 (v[2] - m) * scale, (v[3] - m) * scale);
    mean = 0.75 * mean + 0.25 * m;
    var = 0.75 * var + 0.25 * squares / 3;  // unbiased
    CHECK_STATUS_OK(calx_scope_end(s));
  }
  calx_scope *s = calx_scope_begin();
  CHECK_VALUES(calx_module_find(bn, "running_mean"), 1e-12, mean);
  CHECK_VALUES(calx_module_find(bn, "running_var"), 1e-12, var);
  CHECK_VALUES(calx_module_find(bn, "num_batches_tracked"), 0, 2);
  calx_module_train(bn, false);
  calx_tensor *x =
      support_tensor(CALX_F64, CALX_SHAPE(1, 1, 1, 1), (double[]){ 3 });
  CHECK_VALUES(calx_forward(bn, x), 1e-12, (3 - mean) / sqrt(var + 1e-5));
  calx_sync(NULL);
  CHECK_VALUES(calx_module_find(bn, "num_batches_tracked"), 0, 2);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(bn);
}

static void test_batch_norm_without_statistics(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_module *bn =
      calx_nn_batch_norm2d(NULL, NULL, 1, .no_affine = true,
                           .no_track_running_stats = true, .eps = 1);
  calx_module_train(bn, false);  // the batch's own all the same
  calx_tensor *x =
      support_tensor(CALX_F32, CALX_SHAPE(1, 1, 1, 3), (double[]){ -3, 0, 3 });
  double scale = 1 / sqrt(6.0 + 1);
  CHECK_VALUES(calx_forward(bn, x), 1e-6, -3 * scale, 0, 3 * scale);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(bn);
}

// momentum 0 as CALX_ZERO: the running statistics stay.
static void test_batch_norm_zero_momentum(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_module *bn = calx_nn_batch_norm2d(NULL, NULL, 1, .momentum = CALX_ZERO);
  calx_tensor *x =
      support_tensor(CALX_F32, CALX_SHAPE(1, 1, 1, 2), (double[]){ 4, 8 });
  calx_sync(calx_forward(bn, x));
  CHECK_VALUES(calx_module_find(bn, "running_mean"), 0, 0);
  CHECK_VALUES(calx_module_find(bn, "running_var"), 0, 1);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(bn);
}

// A step that fails takes the statistics back with it.
static void check_dims(calx_module *m, calx_dims x, size_t rank, int64_t last)
{
  calx_tensor *y = calx_forward(m, calx_ones(x));
  assert_int_equal(calx_tensor_rank(y), rank);
  assert_int_equal(calx_tensor_dim(y, -1), last);
}

static void test_flatten(void **state)
{
  (void)state;
  calx_module *root = calx_module_new("Net", NULL, NULL);
  calx_module *plain = calx_nn_flatten(root, "plain");
  calx_module *all = calx_nn_flatten(root, "all", .start_dim = CALX_ZERO_INT);
  calx_module *inner = calx_nn_flatten(root, "inner", .end_dim = -2);
  check_dims(plain, CALX_SHAPE(2, 3, 4), 2, 12);
  check_dims(all, CALX_SHAPE(2, 3, 4), 1, 24);
  check_dims(inner, CALX_SHAPE(2, 3, 4, 5), 3, 5);
  CHECK_STATUS_OK(calx_module_error(root));
  calx_forward(plain, calx_ones(CALX_SHAPE(3)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "start_dim 1 is out of range");
  calx_nn_flatten(root, "far", .end_dim = (int64_t)1 << 40);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(root), "no tensor has");
  calx_module_free(root);
}

static void test_failed_step(void **state)
{
  (void)state;
  calx_module *bn = calx_nn_batch_norm2d(NULL, NULL, 1);
  for (int fails = 0; fails < 2; fails++) {
    calx_scope *s = calx_scope_begin();
    calx_tensor *x =
        support_tensor(CALX_F32, CALX_SHAPE(1, 1, 1, 2), (double[]){ 1, 3 });
    calx_tensor *y = calx_forward(bn, x);
    if (fails) calx_reshape(y, CALX_SHAPE(7));
    calx_sync(y);
    calx_status *status = calx_scope_end(s);
    assert_int_equal(calx_status_code(status),
                     fails ? CALX_INVALID_ARGUMENT : CALX_OK);
    calx_status_free(status);
    s = calx_scope_begin();
    CHECK_VALUES(calx_module_find(bn, "running_mean"), 1e-7, 0.2);
    CHECK_VALUES(calx_module_find(bn, "running_var"), 1e-7, 1.1);
    CHECK_VALUES(calx_module_find(bn, "num_batches_tracked"), 0, 1);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
  calx_module_free(bn);
}

// ---- gradients by differences -----------------------------------------------

typedef struct net {
  calx_module *root, *conv, *bn, *fc;
} net;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  net *m = self;
  x = calx_tanh(calx_forward(m->bn, calx_forward(m->conv, x)));
  x = calx_flatten(calx_max_pool2d(x, 2), .start_dim = 1);
  return calx_log_softmax(calx_forward(m->fc, x), 1);
}

static calx_tensor *loss_of(net *m, const double *pixels)
{
  static const int64_t classes[3] = { 2, 0, 1 };
  calx_tensor *x = support_tensor(CALX_F64, CALX_SHAPE(3, 2, 5, 5), pixels);
  calx_tensor *y = calx_tensor_from(classes, CALX_I64, CALX_SHAPE(3));
  return calx_nll_loss(calx_forward(m->root, x), y);
}

static void assign(calx_tensor *param, const double *values)
{
  calx_assign(param,
              support_tensor(CALX_F64, calx_tensor_shape(param), values));
}

// The loss with one element of a parameter moved; the parameter is put back.
static double loss_at(net *m, const double *pixels, calx_tensor *param,
                      double *values, size_t k, double by)
{
  calx_scope *s = calx_scope_begin();
  calx_no_grad_begin();
  double kept = values[k];
  values[k] += by;
  assign(param, values);
  calx_tensor *loss = loss_of(m, pixels);
  calx_sync(loss);
  double value = calx_item(loss);
  values[k] = kept;
  assign(param, values);
  CHECK_STATUS_OK(calx_scope_end(s));
  return value;
}

typedef struct differences {
  net *m;
  const double *pixels;
  size_t checked;
} differences;

static void check_param(void *user, const char *path, calx_entry_kind kind,
                        calx_tensor *param)
{
  (void)path;
  differences *d = user;
  if (kind != CALX_PARAMETER) return;
  const double h = 1e-5;
  size_t n;
  double *values = support_read(param, &n);
  double *grad = support_read(calx_grad(param), &n);
  for (size_t k = 0; k<n; k += n> 20 ? 7 : 1) {
    double up = loss_at(d->m, d->pixels, param, values, k, h);
    double down = loss_at(d->m, d->pixels, param, values, k, -h);
    CHECK_CLOSE(grad[k], (up - down) / (2 * h), 1e-8);
    d->checked++;
  }
  test_free(values);
  test_free(grad);
}

static void test_gradients_by_differences(void **state)
{
  (void)state;
  net m;
  m.root = calx_module_new("Net", forward, &m);
  m.conv = calx_nn_conv2d(m.root, "conv", 2, 4, 2, .dtype = CALX_F64);
  m.bn = calx_nn_batch_norm2d(m.root, "bn", 4, .dtype = CALX_F64);
  m.fc = calx_nn_linear(m.root, "fc", 16, 3, .dtype = CALX_F64);
  CHECK_STATUS_OK(calx_module_error(m.root));
  double pixels[150];
  for (int i = 0; i < 150; i++) pixels[i] = sin(1.7 * i) + cos(0.3 * i * i);
  calx_scope *s = calx_scope_begin();
  calx_tensor *loss = loss_of(&m, pixels);
  calx_backward(loss);
  calx_sync(loss);
  CHECK_STATUS_OK(calx_scope_end(s));
  differences d = { &m, pixels, 0 };
  calx_module_visit(m.root, check_param, &d);
  print_message("  %zu derivatives agree with differences\n", d.checked);
  assert_true(d.checked >= 27);
  calx_module_free(m.root);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_initial_values),
    SUPPORT_TEST(test_seed),
    SUPPORT_TEST(test_linear),
    SUPPORT_TEST(test_conv2d_options),
    SUPPORT_TEST(test_batch_norm),
    SUPPORT_TEST(test_batch_norm_without_statistics),
    SUPPORT_TEST(test_batch_norm_zero_momentum),
    SUPPORT_TEST(test_flatten),
    SUPPORT_TEST(test_failed_step),
    SUPPORT_TEST(test_gradients_by_differences),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
