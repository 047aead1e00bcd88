// Values of torchmetrics and scikit-learn, which record.py wrote: of each batch
// and of all.
#include "calx/calx.h"
#include "support/support.h"

typedef struct values_case {
  const calx_value *data, *one;
  const char *metric, *data_name;
} values_case;

// ---- a metric by name -------------------------------------------------------

static const char *text(const calx_value *o, const char *key)
{
  const calx_value *v = calx_value_get(o, key);
  return v != NULL ? calx_value_as_string(v) : NULL;
}

static int64_t integer(const calx_value *o, const char *key)
{
  const calx_value *v = calx_value_get(o, key);
  return v != NULL ? calx_value_as_int(v) : 0;
}

static int64_t ignored(const calx_value *o)
{
  const calx_value *v = calx_value_get(o, "ignore_index");
  if (v == NULL) return 0;
  const int64_t index = calx_value_as_int(v);
  return index == 0 ? CALX_ZERO_INT : index;
}

static double threshold(const calx_value *o)
{
  const calx_value *v = calx_value_get(o, "threshold");
  return v != NULL ? calx_value_as_float(v) : 0;
}

static calx_metric *classification(const char *name, const calx_value *o)
{
  const calx_metric_stat_scores_options stat = { .size = sizeof stat,
                                                 .task = text(o, "task"),
                                                 .num_classes =
                                                     integer(o, "num_classes"),
                                                 .num_labels =
                                                     integer(o, "num_labels"),
                                                 .threshold = threshold(o),
                                                 .average = text(o, "average"),
                                                 .top_k = integer(o, "top_k"),
                                                 .ignore_index = ignored(o) };
  const calx_metric_curve_options curve = { .size = sizeof curve,
                                            .task = stat.task,
                                            .num_classes = stat.num_classes,
                                            .num_labels = stat.num_labels,
                                            .thresholds =
                                                integer(o, "thresholds"),
                                            .average = stat.average,
                                            .ignore_index = stat.ignore_index };
  const calx_metric_confusion_matrix_options confusion = {
    .size = sizeof confusion,
    .task = stat.task,
    .num_classes = stat.num_classes,
    .num_labels = stat.num_labels,
    .ignore_index = stat.ignore_index,
    .normalize = text(o, "normalize")
  };
  if (strcmp(name, "accuracy") == 0) return calx_metric_accuracy_with(&stat);
  if (strcmp(name, "precision") == 0) return calx_metric_precision_with(&stat);
  if (strcmp(name, "recall") == 0) return calx_metric_recall_with(&stat);
  if (strcmp(name, "f1_score") == 0) return calx_metric_f1_score_with(&stat);
  if (strcmp(name, "auroc") == 0) return calx_metric_auroc_with(&curve);
  if (strcmp(name, "average_precision") == 0) {
    return calx_metric_average_precision_with(&curve);
  }
  if (strcmp(name, "confusion_matrix") == 0) {
    return calx_metric_confusion_matrix_with(&confusion);
  }
  return NULL;
}

static calx_metric *other(const char *name, const calx_value *o)
{
  if (strcmp(name, "mean_squared_error") == 0) {
    return calx_metric_mean_squared_error(.not_squared =
                                              calx_value_get(
                                                  o, "not_squared") != NULL);
  }
  if (strcmp(name, "mean_absolute_error") == 0) {
    return calx_metric_mean_absolute_error();
  }
  if (strcmp(name, "r2_score") == 0) {
    return calx_metric_r2_score(.adjusted = integer(o, "adjusted"),
                                .multioutput = text(o, "multioutput"));
  }
  if (strcmp(name, "perplexity") == 0) {
    const calx_metric_perplexity_options given = { .size = sizeof given,
                                                   .ignore_index = ignored(o) };
    return calx_metric_perplexity_with(&given);
  }
  if (strcmp(name, "mean") == 0) return calx_metric_mean();
  if (strcmp(name, "sum") == 0) return calx_metric_sum();
  if (strcmp(name, "min") == 0) return calx_metric_min();
  if (strcmp(name, "max") == 0) return calx_metric_max();
  return NULL;
}

// ---- one case ---------------------------------------------------------------

static void check(const values_case *c, const char *what, calx_tensor *got,
                  const calx_value *wanted)
{
  size_t n;
  double *values = support_read(got, &n);
  bool right = n == calx_value_count(wanted);
  for (size_t i = 0; right && i < n; i++) {
    const double w = calx_value_as_float(calx_value_item(wanted, i));
    right = support_is_close(values[i], w, 1e-6 * fmax(1, fabs(w)));
    if (!right)
      print_error("element %zu: %.9g, wanted %.9g\n", i, values[i], w);
  }
  test_free(values);
  if (right) return;
  const calx_value *o = calx_value_get(c->one, "options");
  print_error("%s of %s, %s:", c->metric, c->data_name, what);
  for (size_t i = 0; i < calx_value_count(o); i++) {
    print_error(" %s", calx_value_key(o, i));
  }
  fail_msg(" (average %s, %zu elements)",
           text(o, "average") != NULL ? text(o, "average") : "-", n);
}

static calx_tensor *on_device(const calx_value *batch, size_t i)
{
  const calx_value *v = calx_value_item(batch, i);
  if (calx_value_kind(v) != CALX_KIND_TENSOR) return NULL;
  return calx_to(calx_value_as_tensor(v), NULL);
}

// wants: also the batch's own values.
static void pass(const values_case *c, calx_metric *m, bool wants)
{
  const calx_value *forward = calx_value_get(c->one, "forward");
  for (size_t i = 0; i < calx_value_count(c->data); i++) {
    calx_scope *scope = calx_scope_begin();
    const calx_value *batch = calx_value_item(c->data, i);
    calx_tensor *preds = on_device(batch, 0), *target = on_device(batch, 1);
    if (wants) {
      calx_tensor *value = calx_metric_forward(m, preds, target);
      calx_sync(value);
      check(c, "of a batch", value, calx_value_item(forward, i));
    } else {
      calx_metric_update(m, preds, target);
      calx_sync(NULL);
    }
    CHECK_STATUS_OK(calx_scope_end(scope));
  }
  calx_scope *scope = calx_scope_begin();
  calx_tensor *value = calx_metric_compute(m);
  check(c, "of all", value, calx_value_get(c->one, "compute"));
  const calx_value *sklearn = calx_value_get(c->one, "sklearn");
  if (sklearn != NULL) check(c, "by scikit-learn", value, sklearn);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

// again: from a reset, by updates alone.
static void try_case(const values_case *c, bool again)
{
  const calx_value *o = calx_value_get(c->one, "options");
  calx_metric *m = classification(c->metric, o);
  if (m == NULL) m = other(c->metric, o);
  assert_non_null(m);
  CHECK_STATUS_OK(cx_status_copy(calx_metric_error(m)));
  assert_string_equal(calx_metric_name(m), text(c->one, "name"));
  pass(c, m, true);
  calx_metric_reset(m);
  if (again) pass(c, m, false);
  calx_metric_free(m);
}

static void test_values(void **state)
{
  (void)state;
  calx_value *file;
  CHECK_STATUS_OK(calx_load(CX_TEST_DIR "/cases.pt", &file));
  const calx_value *cases = calx_value_get(file, "cases");
  assert_true(calx_value_count(cases) > 100);
  for (size_t i = 0; i < calx_value_count(cases); i++) {
    values_case c = { .one = calx_value_item(cases, i) };
    c.metric = text(c.one, "metric");
    c.data_name = text(c.one, "data");
    c.data = calx_value_get(calx_value_get(file, "data"), c.data_name);
    try_case(&c, i % 4 == 0);
  }
  calx_value_free(file);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_values) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
