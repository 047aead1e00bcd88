// refused: options and tensors that do not fit are told, and nothing crashes,
// also without memory. On the fake plugin: no numbers matter here.
#include "calx/calx.h"
#include "support/long.h"
#include "support/support.h"

#define CLASSES .task = "multiclass", .num_classes = 3
#define LABELS .task = "multilabel", .num_labels = 3

// ---- options ----------------------------------------------------------------

// The error names this line: that of the call.
#define CHECK_OPTIONS(make, ...)                               \
  do {                                                         \
    calx_metric *made = make;                                  \
    const calx_status *error = calx_metric_error(made);        \
    assert_non_null(error);                                    \
    assert_int_equal(calx_status_site(error)->line, __LINE__); \
    CHECK_STATUS(CALX_INVALID_ARGUMENT, cx_status_copy(error), \
                 "refused.c:", __VA_ARGS__);                   \
    calx_metric_free(made);                                    \
  } while (0)

// clang-format off
static void test_options(void **state)
{
  (void)state;
  CHECK_OPTIONS(calx_metric_accuracy(), "accuracy: Expected argument `task` to be one of ('binary', 'multiclass', 'multilabel'), but got ''");
  CHECK_OPTIONS(calx_metric_f1_score(.task = "ternary"), "f1_score", "'ternary'");
  CHECK_OPTIONS(calx_metric_recall(.task = "multiclass"), "`num_classes` to be an integer larger than 1, but got 0");
  CHECK_OPTIONS(calx_metric_recall(.task = "multilabel", .num_labels = 1), "`num_labels`", "but got 1");
  CHECK_OPTIONS(calx_metric_precision(CLASSES, .average = "mean"), "`average` to be one of ('micro', 'macro', 'weighted', 'none'), but got 'mean'");
  CHECK_OPTIONS(calx_metric_accuracy(CLASSES, .top_k = 4), "`top_k`", "1 to 3, the number of classes, but got 4");
  CHECK_OPTIONS(calx_metric_accuracy(CLASSES, .top_k = -1), "but got -1");
  CHECK_OPTIONS(calx_metric_accuracy(LABELS, .top_k = 2), "1 to 1 of this task, but got 2");
  CHECK_OPTIONS(calx_metric_accuracy(LABELS, .threshold = 1.5), "`threshold` to be a float in the [0,1] range, but got 1.5");
  CHECK_OPTIONS(calx_metric_accuracy(LABELS, .threshold = (double)NAN), "but got nan");
  CHECK_OPTIONS(calx_metric_confusion_matrix(CLASSES, .normalize = "rows"), "confusion_matrix", "`normalize`", "'rows'");
  CHECK_OPTIONS(calx_metric_auroc(CLASSES, .average = "micro"), "auroc", "of a multiclass task, but got 'micro'");
  CHECK_OPTIONS(calx_metric_auroc(.task = "binary", .thresholds = 1), "larger than 1, but got 1");
  CHECK_OPTIONS(calx_metric_average_precision(.task = "binary", .thresholds = -3), "average_precision", "but got -3");
  CHECK_OPTIONS(calx_metric_r2_score(.adjusted = -1), "`adjusted`", "but got -1");
  CHECK_OPTIONS(calx_metric_r2_score(.multioutput = "all"), "`multioutput`", "'all'");
  CHECK_OPTIONS(calx_metric_mean(.nan_strategy = "zero"), "MeanMetric", "('warn', 'ignore', 'error', 'disable'), but got 'zero'");
}
// clang-format on

// An option of 0 is meant where it is written.
static void test_zeros(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_metric *m =
      calx_metric_accuracy(.task = "binary", .threshold = 0, .ignore_index = 0);
  assert_null(calx_metric_error(m));
  assert_string_equal(calx_metric_name(m), "BinaryAccuracy");
  calx_metric_free(m);
  const calx_metric_stat_scores_options newer = { .size = 4096 };
  m = calx_metric_accuracy_with(&newer);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, cx_status_copy(calx_metric_error(m)),
               "options of 4096 bytes");
  calx_metric_free(m);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

// ---- tensors ----------------------------------------------------------------

static calx_tensor *f32(calx_dims shape)
{
  return calx_zeros(shape);
}

static calx_tensor *i64(calx_dims shape)
{
  return calx_zeros(shape, .dtype = CALX_I64);
}

// Frees the metric.
#define CHECK_UPDATE(make, preds, target, ...)                                 \
  do {                                                                         \
    calx_scope *scope = calx_scope_begin();                                    \
    calx_metric *made = make;                                                  \
    calx_metric_update(made, preds, target);                                   \
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), __VA_ARGS__); \
    assert_true(isnan(calx_item(calx_metric_forward(made, preds, target))));   \
    calx_status_free(calx_scope_end(scope));                                   \
    calx_metric_free(made);                                                    \
  } while (0)

// clang-format off
static void test_tensors(void **state)
{
  (void)state;
  const calx_dims n = CALX_SHAPE(4), nc = CALX_SHAPE(4, 3), n2 = CALX_SHAPE(4, 2);
  CHECK_UPDATE(calx_metric_accuracy(), f32(n), i64(n), "task");
  CHECK_UPDATE(calx_metric_accuracy(.task = "binary"), NULL, i64(n), "BinaryAccuracy: preds is NULL");
  CHECK_UPDATE(calx_metric_accuracy(.task = "binary"), f32(n), NULL, "target is NULL");
  CHECK_UPDATE(calx_metric_accuracy(.task = "binary"), f32(n), i64(n2), "same shape, but got f32[4] and i64[4,2]", "refused.c:");
  CHECK_UPDATE(calx_metric_accuracy(LABELS), f32(n2), i64(n2), "number of labels but got f32[4,2] and expected 3");
  CHECK_UPDATE(calx_metric_accuracy(LABELS), f32(n), i64(n), "number of labels");
  CHECK_UPDATE(calx_metric_accuracy(CLASSES), f32(n2), i64(n), "number of classes but got 2 and 3");
  CHECK_UPDATE(calx_metric_accuracy(CLASSES), i64(nc), i64(n), "scores, and `target` (N, ...), but got i64[4,3] and i64[4]");
  CHECK_UPDATE(calx_metric_accuracy(CLASSES), f32(n), i64(n), "but got f32[4] and i64[4]");
  CHECK_UPDATE(calx_metric_accuracy(CLASSES), f32(CALX_SHAPE(3)), i64(CALX_SCALAR), "scores");
  CHECK_UPDATE(calx_metric_accuracy(CLASSES), i64(n), i64(nc), "Either");
  CHECK_UPDATE(calx_metric_accuracy(CLASSES), f32(nc), f32(n), "`target` to be an int or long tensor");
  CHECK_UPDATE(calx_metric_accuracy(CLASSES, .top_k = 2), i64(n), i64(n), "`top_k` is 2", "they are labels");
  CHECK_UPDATE(calx_metric_auroc(CLASSES), i64(n), i64(n), "`preds` to be a floating tensor", "i64[4]");
  CHECK_UPDATE(calx_metric_auroc(.task = "binary"), f32(n), f32(n), "`target`", "f32[4]");
  CHECK_UPDATE(calx_metric_mean_squared_error(), f32(n), f32(nc), "MeanSquaredError", "same shape");
  CHECK_UPDATE(calx_metric_mean_absolute_error(), f32(n), NULL, "target is NULL");
  CHECK_UPDATE(calx_metric_mean_absolute_error(), calx_complex(f32(n), f32(n)), f32(n), "complex");
  CHECK_UPDATE(calx_metric_r2_score(), f32(CALX_SHAPE(2, 2, 2)), f32(CALX_SHAPE(2, 2, 2)), "1D or 2D tensors", "dimension 3");
  CHECK_UPDATE(calx_metric_perplexity(), f32(nc), i64(n), "[batch_size, seq_len, vocab_size]", "f32[4,3]");
  CHECK_UPDATE(calx_metric_perplexity(), f32(CALX_SHAPE(2, 3, 5)), f32(CALX_SHAPE(2, 3)), "f32[2,3]");
  CHECK_UPDATE(calx_metric_sum(), f32(n), f32(n), "SumMetric: target is not NULL");
  CHECK_UPDATE(calx_metric_mean(), f32(n), f32(n2), "weights f32[4,2] do not broadcast to f32[4]");
  CHECK_UPDATE(NULL, f32(n), f32(n), "the metric is NULL");
  CHECK_UPDATE(calx_metric_sum(), calx_host_tensor((float[4]){ 0 }, CALX_F32, n), NULL, "preds is a host tensor");
}
// clang-format on

// ---- without memory ---------------------------------------------------------

static void use(calx_metric *m, calx_tensor *preds, calx_tensor *target)
{
  for (int i = 0; i < 2; i++) calx_metric_update(m, preds, target);
  calx_sync(preds, target);
  calx_metric_forward(m, preds, target);
  calx_metric_compute(m);
  calx_metric_reset(m);
  calx_metric_free(m);
}

// The fake plugin's results are zeros: nothing but the failure is an error.
static calx_status *run(long fail, long *out_n)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *preds = f32(CALX_SHAPE(4, 3)), *target = i64(CALX_SHAPE(4));
  const long before = cx_alloc_count();
  cx_alloc_fail_at(fail);
  use(calx_metric_accuracy(CLASSES, .average = "macro"), preds, target);
  use(calx_metric_auroc(CLASSES), preds, target);
  use(calx_metric_mean(), preds, NULL);
  cx_alloc_fail_at(-1);
  *out_n = cx_alloc_count() - before;
  calx_status *status = calx_scope_end(scope);
  calx_status_free(calx_scope_take_error());
  calx_shutdown();
  return status;
}

static void test_no_memory(void **state)
{
  (void)state;
  long n, ignored;
  CHECK_STATUS_OK(run(-1, &n));
  assert_true(n > 200);
  const long stride = long_or(1, n / 200 + 1);
  for (long k = 0; k < n; k += stride) {
    calx_status *status = run(k, &ignored);
    if (status != NULL && calx_status_code(status) != CALX_RESOURCE_EXHAUSTED) {
      fail_msg("allocation %ld: %s", k, calx_status_message(status));
    }
    calx_status_free(status);
    if (support_nothing_left(NULL) != 0) fail_msg("allocation %ld", k);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_options),
                                      SUPPORT_TEST(test_zeros),
                                      SUPPORT_TEST(test_tensors),
                                      SUPPORT_TEST(test_no_memory) };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
