// What compute() finds in the numbers: labels that are none, NaN, too few
// samples, no update at all.
#include "calx/calx.h"
#include "support/support.h"

static calx_tensor *labels(int64_t a, int64_t b)
{
  const int64_t values[] = { a, b };
  return calx_tensor_from(values, CALX_I64, CALX_SHAPE(2));
}

static calx_tensor *scores(double a, double b)
{
  return support_tensor(CALX_F32, CALX_SHAPE(2), (const double[]){ a, b });
}

// ---- lines ------------------------------------------------------------------

static char lines[1024];

static void keep(void *user, const char *line)
{
  (void)user;
  const size_t at = strlen(lines);
  snprintf(lines + at, sizeof lines - at, "%s\n", line);
}

// The value of all, and that these lines were written; frees the metric.
static double value_and_lines(calx_metric *m, const char *wanted)
{
  *lines = '\0';
  calx_log_set(keep, NULL);
  calx_scope *scope = calx_scope_begin();
  calx_tensor *got = calx_metric_compute(m);
  calx_log_set(NULL, NULL);
  const double value = calx_item(got);
  CHECK_STATUS_OK(calx_scope_end(scope));
  if (strstr(lines, wanted) == NULL || (*wanted == '\0') != (*lines == '\0')) {
    fail_msg("lines: '%s', wanted '%s'", lines, wanted);
  }
  calx_metric_free(m);
  return value;
}

// ---- labels -----------------------------------------------------------------

// Frees the metric.
static void check_bad(calx_metric *m, calx_tensor *preds, calx_tensor *target,
                      const char *wanted)
{
  calx_scope *scope = calx_scope_begin();
  calx_metric_update(m, preds, target);
  calx_metric_update(m, preds, target);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_metric_compute(m);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope),
               calx_metric_name(m), wanted);
  calx_metric_free(m);
}

static void test_labels(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *half = scores(0.5, 0.25), *rows = calx_zeros(CALX_SHAPE(2, 3));
  check_bad(calx_metric_accuracy(.task = "binary"), half, labels(-1, 2),
            "Detected 4 values in `target` or `preds` that are none of the "
            "labels 0 to 1");
  check_bad(calx_metric_auroc(.task = "binary", .ignore_index = -1), half,
            labels(-1, 2), "Detected 2 values");
  check_bad(calx_metric_auroc(.task = "binary", .thresholds = 5), half,
            labels(3, 1), "Detected 2 values");
  check_bad(calx_metric_confusion_matrix(.task = "multiclass", .num_classes = 3,
                                         .ignore_index = -1),
            rows, labels(-1, 3), "0 to 2 and not the ignore_index");
  check_bad(calx_metric_f1_score(.task = "multiclass", .num_classes = 3,
                                 .average = "macro"),
            labels(0, 7), labels(2, 2), "Detected 2 values");
  check_bad(calx_metric_recall(.task = "binary"), labels(0, 2), labels(1, 1),
            "Detected 2 values");
  check_bad(calx_metric_perplexity(), calx_zeros(CALX_SHAPE(1, 2, 5)),
            calx_reshape(labels(5, 4), CALX_SHAPE(1, 2)),
            "Detected 2 values in `target` that are no word");
  CHECK_STATUS_OK(calx_scope_end(scope));
}

// ---- NaN --------------------------------------------------------------------

static calx_metric *with_nan(calx_metric *m)
{
  calx_metric_update(m, scores((double)NAN, 3), NULL);
  calx_metric_update(m, scores(1, 2), NULL);
  calx_sync(NULL);
  return m;
}

static void test_nan(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  CHECK_CLOSE(value_and_lines(with_nan(calx_metric_mean()),
                              "MeanMetric: Encountered `nan` values in tensor"),
              2, 0);
  CHECK_CLOSE(
      value_and_lines(with_nan(calx_metric_min(.nan_strategy = "ignore")), ""),
      1, 0);
  CHECK_CLOSE(
      value_and_lines(with_nan(calx_metric_max(.nan_strategy = "disable")), ""),
      (double)NAN, 0);
  calx_metric *m = with_nan(calx_metric_sum(.nan_strategy = "error"));
  CHECK_STATUS_OK(calx_scope_end(scope));
  scope = calx_scope_begin();
  calx_metric_compute(m);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope),
               "SumMetric: Encountered `nan` values");
  calx_metric_free(m);
}

// A weight of NaN, too; what weighs nothing does not count.
static void test_weights(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_metric *m = calx_metric_mean(.nan_strategy = "ignore");
  calx_metric_update(m, scores(1, 2), scores((double)NAN, 3));
  calx_metric_update(m, scores(4, 8), scores(1, 0));
  CHECK_VALUES(calx_metric_compute(m), 0, 2.5);
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_metric_free(m);
}

// ---- few samples ------------------------------------------------------------

static void test_no_update(void **state)
{
  (void)state;
  const char *told = "was called before the ``update`` method";
  CHECK_CLOSE(value_and_lines(calx_metric_accuracy(.task = "binary"), told), 0,
              0);
  CHECK_CLOSE(value_and_lines(calx_metric_mean(), told), (double)NAN, 0);
  CHECK_CLOSE(value_and_lines(calx_metric_max(), told), -(double)INFINITY, 0);
  CHECK_CLOSE(value_and_lines(
                  calx_metric_auroc(.task = "binary", .thresholds = 5), told),
              0, 0);
  calx_scope *scope = calx_scope_begin();
  calx_metric *m =
      calx_metric_confusion_matrix(.task = "multilabel", .num_labels = 2);
  CHECK_VALUES(calx_metric_compute(m), 0, 0, 0, 0, 0, 0, 0, 0, 0);
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_metric_free(m);
}

// Tensors without elements are no samples.
static void test_empty(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_metric *m = calx_metric_min();
  calx_metric_update(m, scores(4, 8), NULL);
  calx_metric_update(m, calx_zeros(CALX_SHAPE(0)), NULL);
  CHECK_VALUES(calx_metric_compute(m), 0, 4);
  calx_metric_free(m);
  m = calx_metric_average_precision(.task = "binary");
  calx_metric_update(m, scores(0.5, 0.25), labels(1, 0));
  calx_metric_update(m, calx_zeros(CALX_SHAPE(0)),
                     calx_zeros(CALX_SHAPE(0), .dtype = CALX_I64));
  CHECK_VALUES(calx_metric_compute(m), 0, 1);
  calx_metric_free(m);
  m = calx_metric_precision(.task = "multiclass", .num_classes = 3,
                            .average = "macro");
  calx_metric_update(m, labels(1, 2), labels(1, 1));
  calx_metric_update(m, calx_zeros(CALX_SHAPE(0, 3)),
                     calx_zeros(CALX_SHAPE(0), .dtype = CALX_I64));
  CHECK_VALUES(calx_metric_compute(m), 0, 0.5);
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_metric_free(m);
}

static void test_r2(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_metric *m = calx_metric_r2_score(.adjusted = 1);
  calx_metric_update(m, scores(1, 3), scores(1, 2));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(scope));
  CHECK_CLOSE(value_and_lines(m, "R2Score: Division by zero in adjusted r2"),
              -1, 1e-6);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_labels),  SUPPORT_TEST(test_nan),
    SUPPORT_TEST(test_weights), SUPPORT_TEST(test_no_update),
    SUPPORT_TEST(test_empty),   SUPPORT_TEST(test_r2),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
