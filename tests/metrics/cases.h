// cases: what record.py wrote, and a metric of each case.
#ifndef CX_TESTS_METRICS_CASES_H
#define CX_TESTS_METRICS_CASES_H

#include "calx/calx.h"
#include "support/support.h"

typedef struct metric_case {
  const calx_value *one;   // the case
  const calx_value *data;  // its batches of two tensors
  const char *metric, *data_name;
} metric_case;

// ---- a metric by name -------------------------------------------------------

static inline const char *text(const calx_value *o, const char *key)
{
  const calx_value *v = calx_value_get(o, key);
  return v != NULL ? calx_value_as_string(v) : NULL;
}

static inline int64_t integer(const calx_value *o, const char *key)
{
  const calx_value *v = calx_value_get(o, key);
  return v != NULL ? calx_value_as_int(v) : 0;
}

static inline int64_t ignored(const calx_value *o)
{
  const calx_value *v = calx_value_get(o, "ignore_index");
  if (v == NULL) return 0;
  const int64_t index = calx_value_as_int(v);
  return index == 0 ? CALX_ZERO_INT : index;
}

static inline double threshold(const calx_value *o)
{
  const calx_value *v = calx_value_get(o, "threshold");
  return v != NULL ? calx_value_as_float(v) : 0;
}

static inline calx_metric *classification(const char *name, const calx_value *o)
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

static inline calx_metric *other(const char *name, const calx_value *o)
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

static inline calx_metric *case_metric(const metric_case *c)
{
  const calx_value *o = calx_value_get(c->one, "options");
  calx_metric *m = classification(c->metric, o);
  return m != NULL ? m : other(c->metric, o);
}

// ---- the file ---------------------------------------------------------------

static inline calx_value *cases_open(void)
{
  calx_value *file;
  CHECK_STATUS_OK(calx_load(CX_TEST_DIR "/cases.pt", &file));
  return file;
}

static inline size_t cases_count(const calx_value *file)
{
  return calx_value_count(calx_value_get(file, "cases"));
}

static inline metric_case cases_at(const calx_value *file, size_t i)
{
  metric_case c = { .one = calx_value_item(calx_value_get(file, "cases"), i) };
  c.metric = text(c.one, "metric");
  c.data_name = text(c.one, "data");
  c.data = calx_value_get(calx_value_get(file, "data"), c.data_name);
  return c;
}

// A batch's tensor; NULL where the metric has none.
static inline calx_tensor *case_tensor(const calx_value *batch, size_t i)
{
  const calx_value *v = calx_value_item(batch, i);
  if (calx_value_kind(v) != CALX_KIND_TENSOR) return NULL;
  return calx_to(calx_value_as_tensor(v), NULL);
}

// Whether the elements are those, by 1e-6 of the greater of them and 1.
static inline bool case_is(calx_tensor *got, const calx_value *wanted)
{
  size_t n = calx_value_count(wanted);
  const calx_dtype dtype = calx_tensor_dtype(got);
  unsigned char bytes[64 * 8];
  const size_t size = calx_dtype_size(dtype);
  if (n > 64 || calx_tensor_numel(got) != (int64_t)n) return false;
  calx_status *status = calx_tensor_read(got, bytes, n * size);
  bool right = status == NULL;
  calx_status_free(status);
  for (size_t i = 0; right && i < n; i++) {
    const double w = calx_value_as_float(calx_value_item(wanted, i)),
                 v = cx_load_double(dtype, bytes + i * size);
    right = support_is_close(v, w, 1e-6 * fmax(1, fabs(w)));
    if (!right) fprintf(stderr, "element %zu: %.9g, wanted %.9g\n", i, v, w);
  }
  return right;
}

#endif
