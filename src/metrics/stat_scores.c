// metrics/stat_scores: accuracy, precision, recall and F1 score: ratios of the
// numbers of true and false positives and negatives of each class.
#include "base/options.h"
#include "metrics/count.h"
#include "metrics/task.h"
#include "ops/ops.h"

typedef enum stat { ACCURACY, PRECISION, RECALL, F1_SCORE, STATS } stat;

typedef struct stat_scores {
  cx_metrics_task task;
  stat stat;
  cx_metrics_average average;
  int64_t top_k;
} stat_scores;

enum { TP, FP, TN, FN, BAD };

// ---- a batch ----------------------------------------------------------------

static calx_status *check(const calx_metric *m, const calx_tensor *preds,
                          const calx_tensor *target)
{
  const stat_scores *s = m->self;
  CALX_TRY(cx_metrics_task_check(m, preds, target, false));
  if (s->top_k == 1 ||
      calx_tensor_rank(preds) == calx_tensor_rank(target) + 1) {
    return NULL;
  }
  return cx_invalid(
      "%s: `top_k` is %lld, which only works when `preds` contain "
      "probabilities/logits, but they are labels",
      m->name, (long long)s->top_k);
}

// Of rows of labels, in each column.
static void count_columns(const cx_metrics_rows *r, calx_tensor **out)
{
  calx_tensor *one = calx_eq(r->target, calx_scalar_int(1));
  calx_tensor *zero = calx_logical_and(r->valid, calx_logical_not(one));
  calx_tensor *not = calx_logical_not(r->preds);
  one = calx_logical_and(r->valid, one);
  out[TP] = cx_metrics_sum_rows(calx_logical_and(r->preds, one));
  out[FP] = cx_metrics_sum_rows(calx_logical_and(r->preds, zero));
  out[TN] = cx_metrics_sum_rows(calx_logical_and(not, zero));
  out[FN] = cx_metrics_sum_rows(calx_logical_and(not, one));
}

// Of classes: what is no true positive is a false negative of its target and a
// false positive of its prediction.
static void count_classes(const stat_scores *s, const cx_metrics_rows *r,
                          calx_tensor **out)
{
  const int64_t n = s->task.n;
  calx_tensor *right = calx_logical_and(r->valid, calx_eq(r->preds, r->target));
  calx_tensor *all = cx_metrics_count(r->valid), *predicted = all,
              *wanted = all;
  if (s->average == CX_METRICS_MICRO) {
    out[TP] = cx_metrics_count(right);
    all = calx_mul(all, calx_scalar_int(n));
  } else {
    out[TP] = cx_metrics_histogram(r->target, right, n);
    predicted = cx_metrics_histogram(r->preds, r->valid, n);
    wanted = cx_metrics_histogram(r->target, r->valid, n);
  }
  out[FP] = cx_ops_minus(predicted, out[TP]);
  out[FN] = cx_ops_minus(wanted, out[TP]);
  out[TN] = cx_ops_minus(all, cx_ops_plus(predicted, out[FN]));
}

static void update(const calx_metric *m, calx_tensor *preds,
                   calx_tensor *target, calx_tensor **out)
{
  const stat_scores *s = m->self;
  const cx_metrics_rows r = cx_metrics_labels(&s->task, preds, target, s->top_k,
                                              CX_METRICS_LOGITS_OF_ALL);
  if (s->task.kind == CX_METRICS_MULTICLASS) {
    count_classes(s, &r, out);
  } else {
    count_columns(&r, out);
  }
  out[BAD] = r.bad;
}

// ---- the value --------------------------------------------------------------

static calx_tensor *score(const stat_scores *s, calx_tensor *const *n)
{
  calx_tensor *tp = n[TP];
  calx_tensor *wanted = cx_ops_plus(tp, n[FN]);
  calx_tensor *predicted = cx_ops_plus(tp, n[FP]);
  switch (s->stat) {
    case PRECISION: return cx_metrics_ratio(tp, predicted);
    case F1_SCORE:
      return cx_metrics_ratio(cx_ops_plus(tp, tp),
                              cx_ops_plus(wanted, predicted));
    case ACCURACY:
      if (s->task.kind == CX_METRICS_MULTICLASS) break;
      return cx_metrics_ratio(cx_ops_plus(tp, n[TN]),
                              cx_ops_plus(wanted, cx_ops_plus(n[FP], n[TN])));
    default: break;
  }
  return cx_metrics_ratio(tp, wanted);
}

// What a class counts in the mean. One that does not occur does not; with top_k
// above 1 only targets are an occurrence, but of the F1 score.
static calx_tensor *weights(const stat_scores *s, calx_tensor *const *n)
{
  calx_tensor *occurs = cx_ops_plus(n[TP], n[FN]);
  if (s->average == CX_METRICS_WEIGHTED) return occurs;
  if (s->task.kind == CX_METRICS_MULTILABEL) {
    return calx_eq(occurs, occurs);  // all 1
  }
  if (s->top_k == 1 || s->stat == F1_SCORE) {
    occurs = cx_ops_plus(occurs, n[FP]);
  }
  return calx_gt(occurs, calx_scalar_int(0));
}

static calx_tensor *value(const calx_metric *m, calx_tensor *const *states)
{
  const stat_scores *s = m->self;
  if (s->average == CX_METRICS_MICRO) {
    calx_tensor *sums[BAD];
    for (int i = 0; i < BAD; i++) sums[i] = calx_sum_with(states[i], NULL);
    return score(s, sums);
  }
  calx_tensor *scores = score(s, states);
  if (s->average == CX_METRICS_NONE) return scores;
  calx_tensor *w = weights(s, states);
  return cx_metrics_ratio(calx_sum_with(calx_mul(scores, w), NULL),
                          calx_sum_with(w, NULL));
}

// ---- making -----------------------------------------------------------------

static const cx_metrics_kind kind = { .is_always_f32 = true,
                                      .check = check,
                                      .update = update,
                                      .verify = cx_metrics_verify_bad,
                                      .value = value };

static const char *const names[STATS][CX_METRICS_TASKS] = {
  { "BinaryAccuracy", "MulticlassAccuracy", "MultilabelAccuracy" },
  { "BinaryPrecision", "MulticlassPrecision", "MultilabelPrecision" },
  { "BinaryRecall", "MulticlassRecall", "MultilabelRecall" },
  { "BinaryF1Score", "MulticlassF1Score", "MultilabelF1Score" }
};

static calx_status *take(const char *what,
                         const calx_metric_stat_scores_options *given,
                         stat_scores *s)
{
  calx_metric_stat_scores_options o;
  CALX_TRY(cx_options_take(what, given, &o, sizeof o));
  const cx_metrics_task_options task = { .what = what,
                                         .task = o.task,
                                         .num_classes = o.num_classes,
                                         .num_labels = o.num_labels,
                                         .ignore_index = o.ignore_index,
                                         .threshold = o.threshold };
  CALX_TRY(cx_metrics_task_take(&task, &s->task));
  CALX_TRY(
      cx_metrics_average_take(what, o.average, CX_METRICS_MICRO, &s->average));
  if (s->task.kind == CX_METRICS_BINARY) s->average = CX_METRICS_MICRO;
  s->top_k = o.top_k == 0 ? 1 : o.top_k;
  const int64_t most = s->task.kind == CX_METRICS_MULTICLASS ? s->task.n : 1;
  if (s->top_k >= 1 && s->top_k <= most) return NULL;
  return cx_invalid(
      "%s: Expected argument `top_k` to be an integer of 1 to %lld%s, but got "
      "%lld",
      what, (long long)most,
      s->task.kind == CX_METRICS_MULTICLASS ? ", the number of classes"
                                            : " of this task",
      (long long)s->top_k);
}

static calx_metric *make(stat which, const char *what,
                         const calx_metric_stat_scores_options *options)
{
  static const char *const states[] = { "tp", "fp", "tn", "fn" };
  stat_scores s = { .stat = which };
  calx_status *error = take(what, options, &s);
  const bool one =
      s.task.kind == CX_METRICS_MULTICLASS && s.average == CX_METRICS_MICRO;
  calx_metric *m =
      cx_metrics_new(&kind, names[which][s.task.kind], &s, sizeof s, error);
  for (int i = 0; i < BAD; i++) {
    cx_metrics_add_state(m, states[i], CX_METRICS_SUM, CALX_I64,
                         calx_dims_of(&s.task.n, one ? 0 : 1));
  }
  cx_metrics_add_bad(m);
  return m;
}

calx_metric *calx_metric_accuracy_with(
    const calx_metric_stat_scores_options *options)
{
  return make(ACCURACY, "accuracy", options);
}

calx_metric *calx_metric_precision_with(
    const calx_metric_stat_scores_options *options)
{
  return make(PRECISION, "precision", options);
}

calx_metric *calx_metric_recall_with(
    const calx_metric_stat_scores_options *options)
{
  return make(RECALL, "recall", options);
}

calx_metric *calx_metric_f1_score_with(
    const calx_metric_stat_scores_options *options)
{
  return make(F1_SCORE, "f1_score", options);
}
