// init: torch.nn.init's values by their statistics and their rules, dropouts'
// draws, and what freezes, visits and finds modules, on a real plugin.
#include "calx/autograd.h"
#include "calx/calx.h"
#include "support/support.h"

typedef struct spread {
  double low, high, mean, deviation;
  size_t n, zeros;
} spread;

static spread measure(calx_tensor *t)
{
  spread s = { .low = (double)INFINITY, .high = -(double)INFINITY };
  double *v = support_read(t, &s.n);
  for (size_t i = 0; i < s.n; i++) {
    s.low = fmin(s.low, v[i]);
    s.high = fmax(s.high, v[i]);
    s.mean += v[i] / (double)s.n;
    s.zeros += v[i] == 0;
  }
  for (size_t i = 0; i < s.n; i++) {
    s.deviation += (v[i] - s.mean) * (v[i] - s.mean) / (double)s.n;
  }
  s.deviation = sqrt(s.deviation);
  test_free(v);
  return s;
}

// Uniform in [a, b]: inside, near both ends, the mean in the middle.
static void check_uniform(calx_tensor *t, double a, double b)
{
  spread s = measure(t);
  double width = b - a, error = 4 * width / sqrt(12 * (double)s.n);
  assert_true(s.low >= a && s.high <= b);
  assert_true(s.low < a + 0.02 * width && s.high > b - 0.02 * width);
  CHECK_CLOSE(s.mean, (a + b) / 2, error);
}

static void check_normal(calx_tensor *t, double mean, double deviation)
{
  spread s = measure(t);
  CHECK_CLOSE(s.mean, mean, 4 * deviation / sqrt((double)s.n));
  CHECK_CLOSE(s.deviation, deviation, 4 * deviation / sqrt(2 * (double)s.n));
  assert_true(s.high > mean + 2.5 * deviation);
  assert_true(s.low < mean - 2.5 * deviation);
}

static calx_tensor *leaf(calx_dims shape)
{
  return calx_zeros(shape, .requires_grad = true);
}

static void test_distributions(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *t = leaf(CALX_SHAPE(60, 20, 5));  // fans 100 and 300
  calx_init_uniform(t, -2, 6);
  check_uniform(t, -2, 6);
  calx_init_normal(t, 3, 0.5);
  check_normal(t, 3, 0.5);
  calx_init_xavier_uniform(t, 2);
  check_uniform(t, -2 * sqrt(6.0 / 400), 2 * sqrt(6.0 / 400));
  calx_init_xavier_normal(t, 3);
  check_normal(t, 0, 3 * sqrt(2.0 / 400));
  calx_init_kaiming_uniform(t);
  check_uniform(t, -sqrt(6.0 / 100), sqrt(6.0 / 100));
  calx_init_kaiming_uniform(t, .a = sqrt(5), .mode = CALX_FAN_OUT);
  check_uniform(t, -1 / sqrt(300), 1 / sqrt(300));
  calx_init_kaiming_normal(t, .nonlinearity = CALX_NONLINEARITY_TANH);
  check_normal(t, 0, 5.0 / 3 / sqrt(100));
  assert_true(calx_tensor_requires_grad(t));
  CHECK_STATUS_OK(calx_scope_end(s));
}

// The mean and deviation of a normal distribution between -1 and 2 are 0.2296
// and 0.7209 (N. Johnson et al., Continuous univariate distributions, 1994).
static void test_truncated(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *t = leaf(CALX_SHAPE(100, 200));
  calx_init_trunc_normal(t, 10, 2, 8, 14);
  spread m = measure(t);
  assert_true(m.low >= 8 && m.low < 8.05 && m.high <= 14 && m.high > 13.8);
  CHECK_CLOSE((m.mean - 10) / 2, 0.2296, 0.02);
  CHECK_CLOSE(m.deviation / 2, 0.7209, 0.02);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void test_constants(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *t = leaf(CALX_SHAPE(2, 3));
  calx_init_constant(t, 2.5);
  CHECK_VALUES(t, 0, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5);
  calx_init_eye(t);
  CHECK_VALUES(t, 0, 1, 0, 0, 0, 1, 0);
  calx_init_ones(t);
  CHECK_VALUES(t, 0, 1, 1, 1, 1, 1, 1);
  calx_init_zeros(t);
  CHECK_VALUES(t, 0, 0, 0, 0, 0, 0, 0);
  // 4 filters of 2 groups, 1 channel, 2 x 3: of each group the first filter.
  calx_tensor *d = leaf(CALX_SHAPE(4, 1, 2, 3));
  calx_init_dirac(d, 2);
  CHECK_VALUES(d, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
               0, 0, 0, 0);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void test_gains(void **state)
{
  (void)state;
  CHECK_CLOSE(calx_init_calculate_gain(CALX_NONLINEARITY_LEAKY_RELU, 0.2),
              1.3867504905630728, 1e-15);
  CHECK_CLOSE(calx_init_calculate_gain(CALX_NONLINEARITY_LINEAR, 9), 1, 0);
  CHECK_CLOSE(calx_init_calculate_gain(CALX_NONLINEARITY_SIGMOID, 9), 1, 0);
  CHECK_CLOSE(calx_init_calculate_gain(CALX_NONLINEARITY_TANH, 9), 5.0 / 3, 0);
  CHECK_CLOSE(calx_init_calculate_gain(CALX_NONLINEARITY_RELU, 9), sqrt(2), 0);
  CHECK_CLOSE(calx_init_calculate_gain(CALX_NONLINEARITY_SELU, 9), 0.75, 0);
  assert_true(isnan(calx_init_calculate_gain((calx_nonlinearity)77, 0)));
}

// w w^T, or w^T w of a tall one, is gain^2 on the diagonal.
static void check_orthogonal(calx_dims shape)
{
  calx_scope *s = calx_scope_begin();
  calx_tensor *t = leaf(shape);
  calx_init_orthogonal(t, 1.5);
  calx_tensor *w = calx_reshape(t, CALX_SHAPE(shape.values[0], -1));
  if (calx_tensor_dim(w, 0) > calx_tensor_dim(w, 1)) w = calx_t(w);
  calx_tensor *eye =
      leaf(CALX_SHAPE(calx_tensor_dim(w, 0), calx_tensor_dim(w, 0)));
  calx_init_eye(eye);
  calx_tensor *apart = calx_sub(calx_matmul(w, calx_t(w)), calx_mul(eye, 2.25));
  CHECK_CLOSE(calx_item(calx_max(calx_abs(apart))), 0, 2e-6);
  CHECK_CLOSE(measure(t).mean, 0, 0.2);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void test_orthogonal(void **state)
{
  (void)state;
  check_orthogonal(CALX_SHAPE(20, 30));
  check_orthogonal(CALX_SHAPE(30, 20));
  check_orthogonal(CALX_SHAPE(8, 3, 2, 2));
}

static void test_sparse(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *t = leaf(CALX_SHAPE(50, 80));
  calx_init_sparse(t, 0.31, 0.01);  // 16 of 50 in each column
  spread m = measure(t);
  assert_int_equal(m.zeros, 16 * 80);
  CHECK_CLOSE(m.deviation, 0.01 * sqrt(34.0 / 50), 0.0003);
  calx_tensor *columns = calx_sum(calx_eq(t, 0), .dims = CALX_DIMS(0));
  CHECK_VALUES(calx_amax(columns), 0, 16);
  CHECK_VALUES(calx_amin(columns), 0, 16);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// ---- dropouts ---------------------------------------------------------------

static void test_dropped_channels(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_module *m = calx_nn_dropout2d(NULL, NULL, .p = 0.25);
  calx_tensor *y = calx_forward(m, calx_ones(CALX_SHAPE(50, 40, 2, 3)));
  calx_tensor *least = calx_amin(y, .dims = CALX_DIMS(2, 3));
  calx_tensor *most = calx_amax(y, .dims = CALX_DIMS(2, 3));
  CHECK_VALUES(calx_max(calx_sub(most, least)), 0, 0);
  spread d = measure(least);
  CHECK_CLOSE(d.high, 4.0 / 3, 1e-6);
  CHECK_CLOSE((double)d.zeros / 2000, 0.25, 0.04);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(m);
}

// Normal values keep mean 0 and variance 1.
static void check_alpha(calx_module *m, bool channels)
{
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_randn(CALX_SHAPE(80, 50, 10));
  calx_tensor *y = calx_forward(m, x);
  spread d = measure(y);
  CHECK_CLOSE(d.mean, 0, channels ? 0.1 : 0.03);
  CHECK_CLOSE(d.deviation, 1, channels ? 0.06 : 0.02);
  calx_tensor *same = calx_eq(calx_amin(y, .dims = CALX_DIMS(2)),
                              calx_amax(y, .dims = CALX_DIMS(2)));
  double dropped = calx_item(calx_sum(same)) / 4000;
  CHECK_CLOSE(dropped, channels ? 0.3 : 0, 0.04);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(m);
}

static void test_alpha_dropout(void **state)
{
  (void)state;
  check_alpha(calx_nn_alpha_dropout(NULL, NULL, .p = 0.3), false);
  check_alpha(calx_nn_feature_alpha_dropout(NULL, NULL, .p = 0.3), true);
}

static void test_rrelu(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_module *m = calx_nn_rrelu(NULL, NULL, .lower = 0.2, .upper = 0.6);
  check_uniform(calx_forward(m, calx_full(CALX_SHAPE(5000), -1)), -0.6, -0.2);
  CHECK_VALUES(calx_forward(m, calx_full(CALX_SHAPE(2), 3)), 0, 3, 3);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(m);
}

// ---- models -----------------------------------------------------------------

static void zero_linear(void *user, const char *path, calx_module *m)
{
  char *order = user;
  size_t used = strlen(order);
  snprintf(order + used, 64 - used, "[%s]", path);
  if (strcmp(calx_module_kind(m), "Linear") == 0) {
    calx_init_constant(calx_module_find(m, "weight"), 7);
  }
}

// torch.nn.Module.apply: children first.
static void test_apply(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_module *m = calx_module_new("Net", NULL, NULL);
  calx_module *head = calx_nn_sequential(m, "head");
  calx_nn_linear(head, NULL, 1, 2);
  calx_nn_relu(head, NULL);
  calx_nn_linear(m, "out", 1, 1);
  char order[64] = "";
  calx_module_apply(m, zero_linear, order);
  assert_string_equal(order, "[head.0][head.1][head][out][]");
  order[0] = '\0';
  calx_module_apply(head, zero_linear, order);
  assert_string_equal(order, "[0][1][]");
  CHECK_VALUES(calx_module_find(m, "head.0.weight"), 0, 7, 7);
  assert_string_equal(calx_module_kind(calx_module_get(m, "head.1")), "ReLU");
  assert_null(calx_module_get(m, "hea"));
  assert_null(calx_module_get(m, "head.2"));
  CHECK_STATUS_OK(calx_scope_end(s));
  CHECK_STATUS_OK(calx_module_error(m));
  calx_module_free(m);
}

// A frozen part gets no gradient and no update; the rest trains.
static void test_freezing(void **state)
{
  (void)state;
  calx_module *m = calx_nn_sequential(NULL, NULL);
  calx_module *first = calx_nn_linear(m, NULL, 2, 2);
  calx_nn_linear(m, NULL, 2, 1);
  calx_module_requires_grad(first, false);
  calx_optimizer *opt = calx_sgd(m, .lr = 1);
  calx_scope *s = calx_scope_begin();
  calx_tensor *frozen = calx_module_find(m, "0.weight");
  calx_tensor *trained = calx_module_find(m, "1.weight");
  calx_init_eye(frozen);
  calx_init_ones(trained);
  calx_backward(calx_sum(calx_forward(m, calx_ones(CALX_SHAPE(1, 2)))));
  assert_null(calx_grad(frozen));
  assert_non_null(calx_grad(trained));
  calx_optimizer_step(opt);
  calx_sync(NULL);
  CHECK_VALUES(frozen, 0, 1, 0, 0, 1);
  assert_true(measure(trained).high != 1);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_optimizer_free(opt);
  calx_module_free(m);
}

// The computed weight becomes a parameter of its own, as PyTorch orders it.
static void test_removed_parametrization(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_module *m = calx_nn_linear(NULL, NULL, 2, 2);
  calx_init_eye(calx_module_find(m, "weight"));
  calx_weight_norm(m);
  calx_init_constant(calx_module_find(m, "parametrizations.weight.original0"),
                     3);
  assert_null(calx_module_find(m, "weight"));
  assert_string_equal(calx_module_kind(m), "ParametrizedLinear");
  calx_remove_parametrizations(m, "weight");
  CHECK_STATUS_OK(calx_module_error(m));
  CHECK_VALUES(calx_module_find(m, "weight"), 1e-6, 3, 0, 0, 3);
  assert_int_equal(calx_module_child_count(m), 0);
  assert_int_equal(calx_module_param_count(m), 6);
  char *text = calx_module_str(m);
  assert_string_equal(text, "Linear(in_features=2, out_features=2, bias=True)");
  calx_string_free(text);
  calx_init_zeros(calx_module_find(m, "bias"));
  CHECK_VALUES(calx_forward(m, calx_ones(CALX_SHAPE(2))), 1e-6, 3, 3);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(m);
}

// A summary changes nothing: no statistics, no mode, no limited row.
static void test_summary_changes_nothing(void **state)
{
  (void)state;
  calx_module *m = calx_nn_sequential(NULL, NULL);
  calx_nn_embedding(m, NULL, 3, 2, .max_norm = 0.001);
  calx_nn_batch_norm1d(m, NULL, 2);
  calx_scope *s = calx_scope_begin();
  calx_tensor *weight = calx_module_find(m, "0.weight");
  calx_init_ones(weight);
  calx_sync(NULL);
  char *text = calx_summary_str(m, CALX_SHAPE(4), .dtype = CALX_I64);
  assert_non_null(strstr(text, "(4, 2)"));
  calx_string_free(text);
  calx_sync(NULL);
  CHECK_VALUES(weight, 0, 1, 1, 1, 1, 1, 1);
  CHECK_VALUES(calx_module_find(m, "1.num_batches_tracked"), 0, 0);
  CHECK_VALUES(calx_module_find(m, "1.running_mean"), 0, 0, 0);
  assert_true(calx_module_is_training(m));
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_distributions),
    SUPPORT_TEST(test_truncated),
    SUPPORT_TEST(test_constants),
    SUPPORT_TEST(test_gains),
    SUPPORT_TEST(test_orthogonal),
    SUPPORT_TEST(test_sparse),
    SUPPORT_TEST(test_dropped_channels),
    SUPPORT_TEST(test_alpha_dropout),
    SUPPORT_TEST(test_rrelu),
    SUPPORT_TEST(test_apply),
    SUPPORT_TEST(test_freezing),
    SUPPORT_TEST(test_removed_parametrization),
    SUPPORT_TEST(test_summary_changes_nothing),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
