// metrics/curve: AUROC and average precision. With a number of thresholds the
// states are how many positives and negatives reach each of them; else all
// scores and labels are kept.
#include "metrics/curve.h"

#include "base/options.h"
#include "metrics/count.h"
#include "ops/ops.h"

static calx_status *check(const calx_metric *m, const calx_tensor *preds,
                          const calx_tensor *target)
{
  return cx_metrics_task_check(m, preds, target, true);
}

// 0, 1, … n - 1.
static calx_tensor *numbers(int64_t n, calx_dtype dtype,
                            const calx_tensor *like)
{
  const calx_create_options o = { .size = sizeof o,
                                  .dtype = dtype,
                                  .device = calx_tensor_device(like) };
  return calx_arange_with(0, (double)n, 1, &o);
}

// ---- all scores -------------------------------------------------------------

static void update_exact(const calx_metric *m, calx_tensor *preds,
                         calx_tensor *target, calx_tensor **out)
{
  const cx_metrics_curve *c = m->self;
  const cx_metrics_rows r = cx_metrics_scores(&c->task, preds, target);
  out[0] = r.preds;
  out[1] = calx_where(r.valid, calx_to_dtype(r.target, CALX_I32),
                      calx_scalar_int(-1));
  out[2] = r.bad;
}

// ---- a number of thresholds -------------------------------------------------

// TPS and FPS are (columns, thresholds), the next two (columns).
enum { TPS, FPS, POSITIVES, NEGATIVES, BAD };

static void update_binned(const calx_metric *m, calx_tensor *preds,
                          calx_tensor *target, calx_tensor **out)
{
  const cx_metrics_curve *c = m->self;
  const cx_metrics_rows r = cx_metrics_scores(&c->task, preds, target);
  calx_tensor *is = r.target, *valid = r.valid, *label = calx_scalar_int(1);
  if (c->task.kind == CX_METRICS_MULTICLASS) {
    is = calx_unsqueeze(is, 1);
    valid = calx_unsqueeze(valid, 1);
    label = numbers(c->task.n, CALX_I64, preds);
  }
  calx_tensor *positive = calx_eq(is, label);  // (N, columns)
  calx_tensor *negative = calx_logical_and(valid, calx_logical_not(positive));
  positive = calx_logical_and(valid, positive);
  calx_tensor *thresholds = calx_div(numbers(c->thresholds, CALX_F64, preds),
                                     calx_scalar((double)(c->thresholds - 1)));
  calx_tensor *reaches =
      calx_ge(calx_unsqueeze(r.preds, 2), calx_to_dtype(thresholds, CALX_F32));
  out[TPS] = cx_metrics_sum_rows(
      calx_logical_and(reaches, calx_unsqueeze(positive, 2)));
  out[FPS] = cx_metrics_sum_rows(
      calx_logical_and(reaches, calx_unsqueeze(negative, 2)));
  out[POSITIVES] = cx_metrics_sum_rows(positive);
  out[NEGATIVES] = cx_metrics_sum_rows(negative);
  out[BAD] = r.bad;
}

// From the second threshold on; behind the last one is 0.
static calx_tensor *next(calx_tensor *x)
{
  const calx_dims behind = { .count = 2, .values = { -1, 1 } };
  return calx_pad_with(x, behind, NULL);
}

// Of a column each. Above the last threshold the recall is 0, which counts for
// the precision; the ROC curve ends at that threshold.
static calx_tensor *columns(const cx_metrics_curve *c, calx_tensor *const *n)
{
  const calx_reduce_options along = { .size = sizeof along,
                                      .dims = { .count = 1, .values = { 1 } } };
  calx_tensor *tpr = cx_metrics_ratio(n[TPS], calx_unsqueeze(n[POSITIVES], 1));
  if (c->is_precision) {
    calx_tensor *precision =
        cx_metrics_ratio(n[TPS], cx_ops_plus(n[TPS], n[FPS]));
    return calx_sum_with(calx_mul(cx_ops_minus(tpr, next(tpr)), precision),
                         &along);
  }
  calx_tensor *fpr = cx_metrics_ratio(n[FPS], calx_unsqueeze(n[NEGATIVES], 1));
  const calx_trapezoid_options over = { .size = sizeof over, .x = fpr };
  return calx_neg(calx_trapezoid_with(tpr, &over));
}

static calx_tensor *value(const calx_metric *m, calx_tensor *const *states)
{
  const cx_metrics_curve *c = m->self;
  calx_tensor *n[BAD];
  for (int i = 0; i < BAD; i++) {
    n[i] = states[i];
    if (c->average != CX_METRICS_MICRO) continue;
    n[i] = calx_unsqueeze(cx_metrics_sum_rows(n[i]), 0);
  }
  calx_tensor *scores = columns(c, n);
  switch (c->average) {
    case CX_METRICS_MACRO: return calx_mean_with(scores, NULL);
    case CX_METRICS_WEIGHTED:
      return cx_metrics_ratio(
          calx_sum_with(calx_mul(scores, n[POSITIVES]), NULL),
          calx_sum_with(n[POSITIVES], NULL));
    case CX_METRICS_MICRO: return calx_sum_with(scores, NULL);
    default: return scores;
  }
}

// ---- making -----------------------------------------------------------------

static const cx_metrics_kind exact = { .is_always_f32 = true,
                                       .check = check,
                                       .update = update_exact,
                                       .verify = cx_metrics_verify_bad,
                                       .of_lists = cx_metrics_curve_exact };
static const cx_metrics_kind binned = { .is_always_f32 = true,
                                        .check = check,
                                        .update = update_binned,
                                        .verify = cx_metrics_verify_bad,
                                        .value = value };

static calx_status *take(const char *what,
                         const calx_metric_curve_options *given,
                         cx_metrics_curve *c)
{
  calx_metric_curve_options o;
  CALX_TRY(cx_options_take(what, given, &o, sizeof o));
  const cx_metrics_task_options task = { .what = what,
                                         .task = o.task,
                                         .num_classes = o.num_classes,
                                         .num_labels = o.num_labels,
                                         .ignore_index = o.ignore_index };
  CALX_TRY(cx_metrics_task_take(&task, &c->task));
  CALX_TRY(
      cx_metrics_average_take(what, o.average, CX_METRICS_MACRO, &c->average));
  c->thresholds = o.thresholds;
  if (o.thresholds < 0 || o.thresholds == 1) {
    return cx_invalid(
        "%s: If argument `thresholds` is an integer, expected it to be larger "
        "than 1, but got %lld",
        what, (long long)o.thresholds);
  }
  if (c->task.kind == CX_METRICS_BINARY) c->average = CX_METRICS_MICRO;
  if (c->task.kind != CX_METRICS_MULTICLASS || c->average != CX_METRICS_MICRO) {
    return NULL;
  }
  return cx_invalid(
      "%s: Expected argument `average` to be one of ('macro', 'weighted', "
      "'none') of a multiclass task, but got 'micro'",
      what);
}

static void add_binned(calx_metric *m, const cx_metrics_curve *c)
{
  static const char *const names[] = { "tps", "fps", "positives", "negatives" };
  const int64_t sizes[] = { c->task.n, c->thresholds };
  for (size_t i = 0; i < BAD; i++) {
    cx_metrics_add_state(m, names[i], CX_METRICS_SUM, CALX_I64,
                         calx_dims_of(sizes, i < POSITIVES ? 2 : 1));
  }
  cx_metrics_add_bad(m);
}

static calx_metric *make(bool is_precision, const char *what,
                         const calx_metric_curve_options *options)
{
  static const char *const names[2][CX_METRICS_TASKS] = {
    { "BinaryAUROC", "MulticlassAUROC", "MultilabelAUROC" },
    { "BinaryAveragePrecision", "MulticlassAveragePrecision",
      "MultilabelAveragePrecision" }
  };
  cx_metrics_curve c = { .is_precision = is_precision };
  calx_status *error = take(what, options, &c);
  const bool is_exact = c.thresholds == 0;
  calx_metric *m =
      cx_metrics_new(is_exact ? &exact : &binned,
                     names[is_precision][c.task.kind], &c, sizeof c, error);
  if (!is_exact) {
    add_binned(m, &c);
    return m;
  }
  cx_metrics_add_list(m, "preds");
  cx_metrics_add_list(m, "target");
  cx_metrics_add_bad(m);
  return m;
}

calx_metric *calx_metric_auroc_with(const calx_metric_curve_options *options)
{
  return make(false, "auroc", options);
}

calx_metric *calx_metric_average_precision_with(
    const calx_metric_curve_options *options)
{
  return make(true, "average_precision", options);
}
