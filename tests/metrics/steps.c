// An update is part of the step's program: a step is one program, compiled
// once, and a failed step leaves no trace.
#include "calx/calx.h"
#include "support/support.h"

enum { N = 16, CLASSES = 3, STEPS = 4 };

static calx_tensor *scores(int step, int64_t columns)
{
  float values[N * CLASSES];
  for (int i = 0; i < N * CLASSES; i++) values[i] = sinf((float)(i + 7 * step));
  return calx_tensor_from(values, CALX_F32, CALX_SHAPE(N, columns));
}

static calx_tensor *targets(int step)
{
  int64_t values[N];
  for (int i = 0; i < N; i++) values[i] = (i + i / CLASSES + step) % CLASSES;
  return calx_tensor_from(values, CALX_I64, CALX_SHAPE(N));
}

// ---- programs ---------------------------------------------------------------

typedef struct suite {
  calx_metric *classes[5], *numbers[6];
} suite;

static suite begin(void)
{
#define TASK .task = "multiclass", .num_classes = CLASSES
  return (suite){
    .classes = { calx_metric_accuracy(TASK),
                 calx_metric_f1_score(TASK, .average = "macro", .top_k = 2),
                 calx_metric_confusion_matrix(TASK, .ignore_index = 1),
                 calx_metric_auroc(TASK, .thresholds = 20),
                 calx_metric_average_precision(TASK) },
    .numbers = { calx_metric_mean_squared_error(), calx_metric_r2_score(),
                 calx_metric_mean_absolute_error(), calx_metric_mean(),
                 calx_metric_min(), calx_metric_max() },
  };
#undef TASK
}

static void each(const suite *s, void (*fn)(calx_metric *m))
{
  for (size_t i = 0; i < 5; i++) fn(s->classes[i]);
  for (size_t i = 0; i < 6; i++) fn(s->numbers[i]);
}

static void step(const suite *s, int i)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = scores(i, CLASSES), *y = targets(i);
  for (size_t k = 0; k < 5; k++) calx_metric_update(s->classes[k], x, y);
  for (size_t k = 0; k < 6; k++) {
    calx_metric_update(s->numbers[k], x, k < 3 ? calx_square(x) : NULL);
  }
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

static void compute(calx_metric *m)
{
  calx_scope *scope = calx_scope_begin();
  calx_metric_compute(m);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

static int64_t ran(void)
{
  calx_metric_data data;
  return calx_metric_value("ExecuteTime", &data) ? data.samples : 0;
}

static void test_programs(void **state)
{
  (void)state;
  const suite s = begin();
  int64_t compiled = 0;
  for (int epoch = 0; epoch < 3; epoch++) {
    for (int i = 0; i < STEPS; i++) {
      const int64_t before = ran();
      step(&s, i);
      assert_int_equal(ran() - before, 1);
      if (epoch == 0 && i == 0)
        compiled = calx_counter_value("UncachedCompile");
      // The first step of an epoch is the program of all others.
      assert_int_equal(calx_counter_value("UncachedCompile"), compiled);
    }
    each(&s, compute);
    each(&s, calx_metric_reset);
    if (epoch == 0) compiled = calx_counter_value("UncachedCompile");
    assert_int_equal(calx_counter_value("UncachedCompile"), compiled);
  }
  each(&s, calx_metric_free);
}

// A batch's value is one of the step's results.
static void test_forward(void **state)
{
  (void)state;
  calx_metric *m =
      calx_metric_accuracy(.task = "multiclass", .num_classes = CLASSES);
  for (int i = 0; i < STEPS; i++) {
    calx_scope *scope = calx_scope_begin();
    const int64_t before = ran();
    calx_tensor *value = calx_metric_forward(m, scores(i, CLASSES), targets(i));
    assert_int_equal(ran(), before);
    calx_sync(value);
    assert_int_equal(ran(), before + 1);
    assert_in_range((int64_t)(calx_item(value) * N), 0, N);
    CHECK_STATUS_OK(calx_scope_end(scope));
  }
  calx_metric_free(m);
}

// ---- what surrounds an update -----------------------------------------------

static double value_of(calx_metric *m)
{
  calx_scope *scope = calx_scope_begin();
  const double value = calx_item(calx_metric_compute(m));
  CHECK_STATUS_OK(calx_scope_end(scope));
  return value;
}

static calx_tensor *vector(double a, double b)
{
  const double values[] = { a, b };
  return calx_tensor_from(values, CALX_F64, CALX_SHAPE(2));
}

static calx_tensor *pair(int64_t a, int64_t b)
{
  const int64_t values[] = { a, b };
  return calx_tensor_from(values, CALX_I64, CALX_SHAPE(2));
}

static void test_failed_step(void **state)
{
  (void)state;
  calx_metric *sum = calx_metric_sum(), *mse = calx_metric_mean_squared_error(),
              *auroc = calx_metric_auroc(.task = "binary");
  for (int i = 0; i < 3; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_metric_update(sum, vector(1, 2), NULL);
    calx_metric_update(mse, vector(1, 2), vector(1, 4));
    calx_metric_update(auroc, vector(0.5, i == 1 ? 0.75 : 0.25), pair(1, 0));
    if (i == 1) calx_add(vector(1, 2), calx_ones(CALX_SHAPE(3)));
    calx_sync(NULL);
    calx_status *status = calx_scope_end(scope);
    assert_int_equal(calx_status_code(status),
                     i == 1 ? CALX_INVALID_ARGUMENT : CALX_OK);
    calx_status_free(status);
  }
  CHECK_CLOSE(value_of(sum), 6, 0);
  CHECK_CLOSE(value_of(mse), 2, 0);
  CHECK_CLOSE(value_of(auroc), 1, 0);
  calx_metric_free(sum);
  calx_metric_free(mse);
  calx_metric_free(auroc);
}

// A refused update adds nothing.
static void test_refused_update(void **state)
{
  (void)state;
  calx_metric *r2 = calx_metric_r2_score(.multioutput = "raw_values");
  calx_scope *scope = calx_scope_begin();
  calx_tensor *two = calx_reshape(calx_arange(8), CALX_SHAPE(4, 2));
  calx_tensor *four = calx_reshape(calx_arange(8), CALX_SHAPE(2, 4));
  calx_metric_update(r2, two, two);
  calx_metric_update(r2, four, four);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "4 outputs",
               "had 2");
  CHECK_STATUS_OK(calx_scope_end(scope));
  scope = calx_scope_begin();
  CHECK_VALUES(calx_metric_compute(r2), 0, 1, 1);
  calx_metric_reset(r2);
  four = calx_reshape(calx_arange(8), CALX_SHAPE(2, 4));
  calx_metric_update(r2, four, four);
  CHECK_VALUES(calx_metric_compute(r2), 0, 1, 1, 1, 1);
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_metric_free(r2);
}

// Also in the middle of a step, and where lists are kept.
static void test_reset(void **state)
{
  (void)state;
  calx_metric *sum = calx_metric_sum(),
              *auroc = calx_metric_auroc(.task = "binary");
  for (int i = 0; i < 2; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_metric_update(sum, vector(5, 6), NULL);
    calx_metric_update(auroc, vector(0.25, 0.5), pair(1, 0));
    if (i == 1) calx_sync(NULL);
    calx_metric_reset(sum);
    calx_metric_reset(auroc);
    calx_metric_update(sum, vector(1, 2), NULL);
    calx_metric_update(auroc, vector(0.75, 0.5), pair(1, 0));
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(scope));
    CHECK_CLOSE(value_of(sum), 3, 0);
    CHECK_CLOSE(value_of(auroc), 1, 0);
  }
  calx_metric_free(sum);
  calx_metric_free(auroc);
}

// Neither gradients nor autocast, and what is kept is a value, no handle.
static void test_surroundings(void **state)
{
  (void)state;
  calx_metric *mae = calx_metric_mean_absolute_error();
  calx_metric *auroc = calx_metric_auroc(.task = "binary");
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = calx_rand(CALX_SHAPE(2), .requires_grad = true);
  x = calx_mul(x, 0);
  calx_tensor *target = pair(1, 0);
  calx_autocast_begin(CALX_BF16);
  calx_metric_update(mae, x, vector(1 + 1.0 / 1024, 1));
  calx_metric_update(auroc, calx_add(x, vector(0.75, 0.25)), target);
  assert_int_equal(calx_autocast_dtype(), CALX_BF16);
  calx_autocast_end();
  calx_assign(target, pair(0, 1));
  calx_backward(calx_sum(x));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(scope));
  CHECK_CLOSE(value_of(mae), 1 + 1.0 / 2048, 0);
  CHECK_CLOSE(value_of(auroc), 1, 0);
  calx_metric_free(mae);
  calx_metric_free(auroc);
}

// Counts and sums are exact where f32 is not; f64 stays f64.
static void test_types(void **state)
{
  (void)state;
  calx_metric *sum = calx_metric_sum(), *max = calx_metric_max();
  calx_metric *matrix = calx_metric_confusion_matrix(.task = "binary");
  calx_scope *scope = calx_scope_begin();
  calx_metric_update(sum, vector(1 << 25, 0), NULL);
  calx_metric_update(sum, vector(1, 0), NULL);
  calx_metric_update(max, pair((1 << 25) + 2, 0), NULL);
  calx_metric_update(matrix, pair(0, 1), pair(1, 1));
  calx_tensor *value = calx_metric_compute(sum);
  assert_int_equal(calx_tensor_dtype(value), CALX_F64);
  CHECK_VALUES(value, 0, (1 << 25) + 1);
  value = calx_metric_compute(max);
  assert_int_equal(calx_tensor_dtype(value), CALX_F32);
  CHECK_VALUES(value, 2, (1 << 25) + 2);
  value = calx_metric_compute(matrix);
  assert_int_equal(calx_tensor_dtype(value), CALX_I64);
  CHECK_VALUES(value, 0, 0, 0, 1, 1);
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_metric_free(sum);
  calx_metric_free(max);
  calx_metric_free(matrix);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_programs),    SUPPORT_TEST(test_forward),
    SUPPORT_TEST(test_failed_step), SUPPORT_TEST(test_refused_update),
    SUPPORT_TEST(test_reset),       SUPPORT_TEST(test_surroundings),
    SUPPORT_TEST(test_types),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
