// Random tensors: their range, their frequencies within five standard
// deviations, and what is refused.
#include "calx/autograd.h"
#include "calx/complex.h"
#include "calx/creation.h"
#include "support/support.h"

#include <math.h>

enum { DRAWS = 20000 };

// How often each of the first n numbers from `low` on occurs; all others fail.
static void count(calx_tensor *x, double low, size_t n, double *counts)
{
  size_t size;
  double *v = support_read(x, &size);
  for (size_t i = 0; i < n; i++) counts[i] = 0;
  for (size_t i = 0; i < size; i++) {
    double at = v[i] - low;
    assert_true(at >= 0 && at < (double)n && at == floor(at));
    counts[(size_t)at]++;
  }
  test_free(v);
}

static void assert_near(double got, double p, double draws)
{
  double off = fabs(got - p * draws), sigma = sqrt(draws * p * (1 - p));
  if (off > 5 * sigma) fail_msg("%g of %g, %g wanted", got, draws, p * draws);
}

static void test_randint(void **state)
{
  (void)state;
  double counts[5];
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_randint(-2, 3, CALX_SHAPE(DRAWS));
  assert_int_equal(calx_tensor_dtype(x), CALX_I64);
  count(x, -2, 5, counts);
  for (int i = 0; i < 5; i++) assert_near(counts[i], 0.2, DRAWS);
  x = calx_randint(0, 1, CALX_SHAPE(2, 3), .dtype = CALX_U8);
  assert_int_equal(calx_tensor_dtype(x), CALX_U8);
  count(x, 0, 1, counts);
  assert_null(calx_scope_end(s));
}

static void test_randperm(void **state)
{
  (void)state;
  double counts[100];
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_randperm(100), *y = calx_randperm(100);
  count(x, 0, 100, counts);
  for (int i = 0; i < 100; i++) assert_int_equal((int)counts[i], 1);
  assert_int_equal(
      calx_item_int(calx_to_dtype(calx_all(calx_eq(x, y)), CALX_I64)), 0);
  assert_int_equal(calx_tensor_numel(calx_randperm(0)), 0);
  assert_null(calx_scope_end(s));
}

static void test_bernoulli(void **state)
{
  (void)state;
  double counts[2];
  calx_scope *s = calx_scope_begin();
  for (int i = 0; i <= 4; i++) {
    calx_tensor *p = calx_full(CALX_SHAPE(DRAWS), i / 4.0);
    calx_tensor *x = calx_bernoulli(p);
    assert_int_equal(calx_tensor_dtype(x), CALX_F32);
    count(x, 0, 2, counts);
    assert_near(counts[1], i / 4.0, DRAWS);
  }
  assert_null(calx_scope_end(s));
}

static void test_normal(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_normal(3, 2, CALX_SHAPE(DRAWS));
  assert_true(fabs(calx_item(calx_mean(x)) - 3) < 5 * 2 / sqrt(DRAWS));
  assert_true(fabs(calx_item(calx_std(x)) - 2) < 5 * 2 / sqrt(2.0 * DRAWS));
  calx_tensor *mean = calx_full(CALX_SHAPE(2, 1), 7.0, .requires_grad = true);
  x = calx_normal(mean, 0, CALX_SHAPE(2, 3));
  assert_true(calx_item(calx_mean(x)) == 7);
  calx_backward(calx_sum(x));
  assert_true(calx_item(calx_sum(calx_grad(mean))) == 6);
  assert_null(calx_scope_end(s));
}

// The parts of a complex draw are independent, and have half the variance each.
static void test_complex(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_randn(CALX_SHAPE(DRAWS), .dtype = CALX_C64);
  calx_tensor *y =
      calx_rand(CALX_SHAPE(DRAWS), .dtype = CALX_C128, .requires_grad = true);
  assert_int_equal(calx_tensor_dtype(x), CALX_C64);
  assert_int_equal(calx_tensor_dtype(y), CALX_C128);
  assert_true(calx_tensor_requires_grad(y));
  double limit = 5 / sqrt(DRAWS);
  calx_tensor *re = calx_real(x), *im = calx_imag(x);
  CHECK_CLOSE(calx_item(calx_mean(re)), 0, limit);
  CHECK_CLOSE(calx_item(calx_mean(im)), 0, limit);
  CHECK_CLOSE(calx_item(calx_var(re)), 0.5, limit);
  CHECK_CLOSE(calx_item(calx_var(im)), 0.5, limit);
  CHECK_CLOSE(calx_item(calx_mean(calx_mul(re, im))), 0, limit);
  CHECK_CLOSE(calx_item(calx_var(x)), 1, limit);
  re = calx_real(calx_detach(y)), im = calx_imag(calx_detach(y));
  CHECK_CLOSE(calx_item(calx_mean(re)), 0.5, limit);
  CHECK_CLOSE(calx_item(calx_var(im)), 1.0 / 12, limit);
  CHECK_CLOSE(calx_item(calx_mean(calx_mul(re, im))), 0.25, limit);
  assert_null(calx_scope_end(s));
}

static void test_multinomial(void **state)
{
  (void)state;
  static const float weights[4] = { 1, 0, 3, 4 };
  double counts[4];
  calx_scope *s = calx_scope_begin();
  calx_tensor *w = calx_tensor_from(weights, CALX_F32, CALX_SHAPE(4));
  count(calx_multinomial(w, DRAWS, .replacement = true), 0, 4, counts);
  for (int i = 0; i < 4; i++) {
    assert_near(counts[i], (double)weights[i] / 8, DRAWS);
  }
  // Without replacement: the first of each row has the same frequencies, and
  // no row has an index twice.
  calx_tensor *many = calx_expand(w, CALX_SHAPE(DRAWS, 4));
  calx_tensor *x = calx_multinomial(many, 3);
  count(calx_select(x, 1, 0), 0, 4, counts);
  for (int i = 0; i < 4; i++) {
    assert_near(counts[i], (double)weights[i] / 8, DRAWS);
  }
  count(x, 0, 4, counts);
  for (int i = 0; i < 4; i++) {
    assert_int_equal((int)counts[i], i == 1 ? 0 : DRAWS);
  }
  assert_null(calx_scope_end(s));
}

static void test_like(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_zeros(CALX_SHAPE(2, 3), .dtype = CALX_F64);
  calx_tensor *all[3] = { calx_rand_like(x), calx_randn_like(x),
                          calx_empty_like(x) };
  for (int i = 0; i < 3; i++) {
    assert_int_equal(calx_tensor_dtype(all[i]), CALX_F64);
    assert_int_equal(calx_tensor_dim(all[i], 1), 3);
  }
  x = calx_randn_like(x, .dtype = CALX_F32, .requires_grad = true);
  assert_int_equal(calx_tensor_dtype(x), CALX_F32);
  x = calx_linspace(0, 1, 3, .requires_grad = true);
  calx_backward(calx_sum(calx_square(x)));
  assert_true(calx_item(calx_select(calx_grad(x), 0, 2)) == 2);
  assert_null(calx_scope_end(s));
}

static double mean_of(calx_tensor *x)
{
  return calx_item(calx_mean(calx_to_dtype(x, CALX_F64)));
}

// Whole channels are dropped, and the others scaled.
static void test_dropout_channels(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_ones(CALX_SHAPE(50, 40, 3, 2));
  calx_tensor *y = calx_dropout2d(x, .p = 0.2);
  calx_tensor *low = calx_amin(y, .dims = CALX_DIMS(2, 3));
  calx_tensor *high = calx_amax(y, .dims = CALX_DIMS(2, 3));
  CHECK_CLOSE(calx_item(calx_max(calx_abs(calx_sub(low, high)))), 0, 0);
  CHECK_CLOSE(calx_item(calx_max(high)), 1.25, 1e-6);
  assert_near(mean_of(calx_eq(high, 0)) * 2000, 0.2, 2000);
  assert_ptr_equal(calx_dropout2d(x, .eval = true), x);
  x = calx_ones(CALX_SHAPE(2000, 3));  // (C, L)
  y = calx_dropout1d(x);
  assert_near(mean_of(calx_eq(calx_select(y, 1, 2), 0)) * 2000, 0.5, 2000);
  CHECK_CLOSE(calx_item(calx_max(calx_dropout3d(
                  calx_ones(CALX_SHAPE(2, 2, 2, 2, 2)), .p = 1))),
              0, 0);
  assert_null(calx_scope_end(s));
}

// Mean and variance stay.
static void test_alpha_dropout(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_randn(CALX_SHAPE(DRAWS));
  calx_tensor *y = calx_alpha_dropout(x, .p = 0.3);
  CHECK_CLOSE(mean_of(y), 0, 0.05);
  CHECK_CLOSE(calx_item(calx_var(y)), 1, 0.08);
  y = calx_alpha_dropout(calx_ones(CALX_SHAPE(DRAWS)), .p = 0.3);
  assert_near(mean_of(calx_lt(y, 0)) * DRAWS, 0.3, DRAWS);
  y = calx_feature_alpha_dropout(calx_ones(CALX_SHAPE(100, 20, 4)), .p = 0.3);
  calx_tensor *apart = calx_sub(calx_amax(y, .dims = CALX_DIMS(2)),
                                calx_amin(y, .dims = CALX_DIMS(2)));
  CHECK_CLOSE(calx_item(calx_max(apart)), 0, 0);
  assert_near(mean_of(calx_lt(calx_select(y, 2, 0), 0)) * 2000, 0.3, 2000);
  assert_null(calx_scope_end(s));
}

static void test_rrelu(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_full(CALX_SHAPE(DRAWS), -2);
  calx_tensor *y =
      calx_rrelu(x, .lower = 0.25, .upper = 0.75, .training = true);
  assert_true(calx_item(calx_max(y)) <= -0.5);
  assert_true(calx_item(calx_min(y)) >= -1.5);
  CHECK_CLOSE(mean_of(y), -1, 0.02);
  CHECK_CLOSE(calx_item(calx_var(y)), 1.0 / 12, 0.005);
  assert_null(calx_scope_end(s));
}

// Gumbel's choice is that of a softmax: class k of exp(logit k) in all.
static void test_gumbel_softmax(void **state)
{
  (void)state;
  static const double odds[3] = { 0.2, 0.5, 0.3 };
  calx_scope *s = calx_scope_begin();
  calx_tensor *logits = calx_log(support_tensor(CALX_F32, CALX_SHAPE(3), odds));
  calx_tensor *x = calx_expand(logits, CALX_SHAPE(DRAWS, 3));
  x = calx_add(x, 0);
  calx_tensor *y = calx_gumbel_softmax(x, -1, .hard = true);
  CHECK_CLOSE(mean_of(calx_sum(y, .dims = CALX_DIMS(1))), 1, 1e-6);
  CHECK_CLOSE(calx_item(calx_max(y)), 1, 1e-6);
  for (int k = 0; k < 3; k++) {
    assert_near(mean_of(calx_select(y, 1, k)) * DRAWS, odds[k], DRAWS);
  }
  y = calx_gumbel_softmax(x, 1, .tau = 0.5);
  CHECK_CLOSE(mean_of(calx_sum(y, .dims = CALX_DIMS(1))), 1, 1e-5);
  assert_true(calx_item(calx_min(y)) >= 0);
  assert_null(calx_scope_end(s));
  s = calx_scope_begin();
  calx_gumbel_softmax(calx_ones(CALX_SHAPE(2)), 0, .tau = -1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "a positive tau");
}

// The share of draws of at most `most` is the distribution function there.
static void assert_share(calx_tensor *x, double most, double p)
{
  assert_int_equal(calx_tensor_numel(x), DRAWS);
  calx_tensor *below = calx_le(x, most);
  assert_near(calx_item(calx_to_dtype(calx_sum(below), CALX_F64)), p, DRAWS);
}

static void test_named(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  for (int i = -2; i <= 2; i++) {
    assert_share(calx_cauchy(1, 2, CALX_SHAPE(DRAWS)), 1 + 2 * i,
                 0.5 + atan(i) / 3.14159265358979);
    double z = i / 2.0, e = exp(0.3 + 0.5 * z);
    assert_share(calx_log_normal(0.3, 0.5, CALX_SHAPE(DRAWS)), e,
                 0.5 * erfc(-z / sqrt(2)));
    double t = 0.5 + 0.2 * i;
    assert_share(calx_exponential(1.5, CALX_SHAPE(DRAWS)), t,
                 1 - exp(-1.5 * t));
    assert_share(calx_geometric(0.3, CALX_SHAPE(DRAWS)), 3 + i,
                 1 - pow(0.7, 3 + i));
  }
  assert_true(calx_item(calx_min(calx_geometric(0.9, CALX_SHAPE(DRAWS)))) == 1);
  calx_tensor *x = calx_geometric(0.5, CALX_SHAPE(2), .dtype = CALX_F64);
  assert_int_equal(calx_tensor_dtype(x), CALX_F64);
  double counts[3];
  x = calx_zeros(CALX_SHAPE(DRAWS), .dtype = CALX_I32);
  x = calx_randint_like(x, 4, 7);
  assert_int_equal(calx_tensor_dtype(x), CALX_I32);
  count(x, 4, 3, counts);
  for (int i = 0; i < 3; i++) assert_near(counts[i], 1 / 3.0, DRAWS);
  assert_null(calx_scope_end(s));
}

// Of each mean the frequencies of the numbers around it, mean and variance.
static void test_poisson(void **state)
{
  (void)state;
  static const double means[] = { 0.3, 2, 9.9, 10, 30, 1000 };
  calx_manual_seed(3);
  calx_scope *s = calx_scope_begin();
  for (size_t i = 0; i < sizeof means / sizeof *means; i++) {
    const double m = means[i], sigma = sqrt(m);
    calx_tensor *x = calx_poisson(
        calx_full(CALX_SHAPE(DRAWS), m, .dtype = i % 2 ? CALX_F64 : CALX_F32));
    assert_int_equal(calx_tensor_dtype(x), i % 2 ? CALX_F64 : CALX_F32);
    x = calx_to_dtype(x, CALX_F64);
    CHECK_CLOSE(calx_item(calx_mean(x)), m, 5 * sigma / sqrt(DRAWS));
    double spread = m * sqrt((2 + 1 / m) / DRAWS);  // of the variance
    CHECK_CLOSE(calx_item(calx_var(x)), m, 5 * spread);
    double low = floor(fmax(0, m - 2 * sigma));
    for (double k = low; k <= m + 2 * sigma; k += fmax(1, floor(sigma / 3))) {
      double p = exp(k * log(m) - m - lgamma(k + 1));
      assert_near(calx_item(calx_sum(calx_to_dtype(calx_eq(x, k), CALX_F64))),
                  p, DRAWS);
    }
  }
  calx_tensor *x = calx_poisson(
      support_tensor(CALX_F64, CALX_SHAPE(4),
                     (double[]){ 0, -1, (double)NAN, (double)INFINITY }));
  size_t n;
  double *v = support_read(x, &n);
  assert_true(v[0] == 0 && isnan(v[1]) && isnan(v[2]) && isnan(v[3]));
  test_free(v);
  assert_null(calx_scope_end(s));
}

// The same seed gives the same numbers, and the next draw others.
static void test_poisson_seed(void **state)
{
  (void)state;
  calx_tensor *draws[3];
  calx_scope *s = calx_scope_begin();
  for (int i = 0; i < 3; i++) {
    if (i < 2) calx_manual_seed(7);
    draws[i] = calx_poisson(calx_full(CALX_SHAPE(100), 12));
    calx_item(calx_sum(draws[i]));
  }
  assert_true(calx_equal(draws[0], draws[1]));
  assert_false(calx_equal(draws[1], draws[2]));
  assert_null(calx_scope_end(s));
  s = calx_scope_begin();
  calx_poisson(calx_ones(CALX_SHAPE(2), .dtype = CALX_I64));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "poisson",
               "of a floating type");
}

// The windows' positions: each pool's samples are drawn, and a seed repeats.
static void test_fractional_pool(void **state)
{
  (void)state;
  calx_tensor *y[3], *at[3];
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_reshape(calx_arange(0, 2 * 400, 1, .dtype = CALX_F32),
                                CALX_DIMS(1, 2, 20, 20));
  for (int i = 0; i < 3; i++) {
    if (i < 2) calx_manual_seed(7);
    y[i] = calx_fractional_max_pool2d(
        x, CALX_DIMS(2), .output_size = CALX_DIMS(11), .out_indices = &at[i]);
    calx_item(calx_sum(y[i]));
  }
  assert_true(calx_equal(y[0], y[1]));
  assert_false(calx_equal(y[1], y[2]));
  // Numbers ascend, so that each is its index in its channel.
  calx_tensor *first = calx_select(calx_select(y[0], 0, 0), 0, 0);
  calx_tensor *index = calx_select(calx_select(at[0], 0, 0), 0, 0);
  assert_true(calx_equal(first, calx_to_dtype(index, CALX_F32)));
  assert_null(calx_scope_end(s));
}

static void test_refused(void **state)
{
  (void)state;
  for (int i = 0; i < 20; i++) {
    calx_scope *s = calx_scope_begin();
    calx_tensor *x = calx_ones(CALX_SHAPE(3));
    switch (i) {
      case 0: calx_randint(3, 3, CALX_SHAPE(2)); break;
      case 1: calx_randint(0, 300, CALX_SHAPE(2), .dtype = CALX_U8); break;
      case 2: calx_randint(INT64_MIN, INT64_MAX, CALX_SHAPE(2)); break;
      case 3: calx_randint(0, 2, CALX_SHAPE(-2)); break;
      case 4: calx_randperm(-1); break;
      case 5: calx_randperm(300, .dtype = CALX_U8); break;
      case 6: calx_bernoulli(calx_to_dtype(x, CALX_I64)); break;
      case 7: calx_normal(0, -1, CALX_SHAPE(2)); break;
      case 8: calx_normal(x, 1, CALX_SHAPE(2)); break;
      case 9: calx_multinomial(x, 4); break;
      case 10: calx_eye(2, 2, .dtype = CALX_I64, .requires_grad = true); break;
      case 11: calx_cauchy(0, 0, CALX_SHAPE(2)); break;
      case 12: calx_exponential((double)NAN, CALX_SHAPE(2)); break;
      case 13: calx_geometric(1, CALX_SHAPE(2)); break;
      case 14: calx_log_normal(0, -1, CALX_SHAPE(2)); break;
      case 15: calx_cauchy(0, 1, CALX_SHAPE(2), .dtype = CALX_I64); break;
      case 16: calx_exponential(1, CALX_SHAPE(-2)); break;
      case 17: calx_randint_like(NULL, 0, 2); break;
      case 18: calx_randint_like(x, 2, 2); break;
      default: calx_multinomial(NULL, 1); break;
    }
    calx_status *status = calx_scope_end(s);
    if (status == NULL) fail_msg("call %d was accepted", i);
    calx_status_free(status);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_randint),
    SUPPORT_TEST(test_randperm),
    SUPPORT_TEST(test_bernoulli),
    SUPPORT_TEST(test_normal),
    SUPPORT_TEST(test_complex),
    SUPPORT_TEST(test_multinomial),
    SUPPORT_TEST(test_like),
    SUPPORT_TEST(test_refused),
    SUPPORT_TEST(test_dropout_channels),
    SUPPORT_TEST(test_alpha_dropout),
    SUPPORT_TEST(test_rrelu),
    SUPPORT_TEST(test_gumbel_softmax),
    SUPPORT_TEST(test_named),
    SUPPORT_TEST(test_poisson),
    SUPPORT_TEST(test_poisson_seed),
    SUPPORT_TEST(test_fractional_pool),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
