/**
 * calx/metrics.h: metrics of a model, with torchmetrics' names, options,
 * defaults and values.
 *
 *   calx_metric *accuracy =
 *       calx_metric_accuracy(.task = "multiclass", .num_classes = 10);
 *   for each batch: calx_metric_update(accuracy, logits, target);
 *   double value = calx_item(calx_metric_compute(accuracy));
 *   calx_metric_reset(accuracy);
 *
 * A metric's states are on the device that is the current one when it is made.
 * An update is part of the step's program: it waits for nothing, and all
 * batches of one shape are one program. Counts are 64-bit integers, sums f64.
 *
 * Values cannot be looked at without a wait, so calx_metric_compute() is what
 * reports a target that is none of the classes, and NaN.
 *
 * Common to all constructors:
 * @return   never NULL; calx_metric_error() tells what is wrong
 * @owner    the caller; calx_metric_free()
 * @threads  a metric belongs to the rank (the thread) that made it
 */
#ifndef CALX_METRICS_H
#define CALX_METRICS_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct calx_metric calx_metric;

// ---- classification ---------------------------------------------------------
//
// .task is wanted, and says what the tensors are; each further dimension … is
// more samples:
//
//   "binary"      preds (N, …), target (N, …) of 0 and 1
//   "multiclass"  preds (N, C, …), target (N, …) of 0 to C - 1; C: .num_classes
//   "multilabel"  preds (N, L, …), target (N, L, …) of 0 and 1; L: .num_labels
//
// preds: floating scores. Where one of a batch is outside [0, 1] all of the
// batch are taken for logits, and are put through a sigmoid, or a softmax over
// the classes. For the metrics that compare labels preds may be integer labels,
// in target's shape.
//
// Elements whose target is .ignore_index do not count.
//
// .average, over classes or labels: "micro" counts all of them together,
// "macro" is the mean, "weighted" the mean by how often each is a target,
// "none" gives one value for each. A binary task has none.

/** Zero means default; .task is wanted. */
typedef struct CALX_OPTIONS calx_metric_stat_scores_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *task;
  CALX_NAMED int64_t num_classes;  /* of a multiclass task, 2 or more */
  CALX_NAMED int64_t num_labels;   /* of a multilabel task, 2 or more */
  CALX_NAMED double threshold;     /* scores above it are 1; 0 = 0.5 */
  CALX_NAMED const char *average;  /* NULL = "micro" */
  CALX_NAMED int64_t top_k;        /* scores of a target that hit; 0 = 1 */
  CALX_NAMED int64_t ignore_index; /* 0 = none, CALX_ZERO_INT = 0 */
} calx_metric_stat_scores_options;
/** The part of predictions that are right. With .average other than "micro" a
 *  class's value is its recall. @shape value () or, with "none", (C) or (L)
 *  @dtype f32 @errors INVALID_ARGUMENT options that do not fit
 *  @source torchmetrics Accuracy */
CALX_API calx_metric *calx_metric_accuracy_with(
    const calx_metric_stat_scores_options *options);
/** TP / (TP + FP); 0 where both are 0. Value and errors as of
 *  calx_metric_accuracy(). @source torchmetrics Precision */
CALX_API calx_metric *calx_metric_precision_with(
    const calx_metric_stat_scores_options *options);
/** TP / (TP + FN); 0 where both are 0. Value and errors as of
 *  calx_metric_accuracy(). @source torchmetrics Recall */
CALX_API calx_metric *calx_metric_recall_with(
    const calx_metric_stat_scores_options *options);
/** 2 TP / (2 TP + FP + FN); 0 where all are 0. Value and errors as of
 *  calx_metric_accuracy(). @source torchmetrics F1Score */
CALX_API calx_metric *calx_metric_f1_score_with(
    const calx_metric_stat_scores_options *options);

/** Zero means default; .task is wanted. */
typedef struct CALX_OPTIONS calx_metric_confusion_matrix_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *task;
  CALX_NAMED int64_t num_classes;  /* of a multiclass task, 2 or more */
  CALX_NAMED int64_t num_labels;   /* of a multilabel task, 2 or more */
  CALX_NAMED double threshold;     /* scores above it are 1; 0 = 0.5 */
  CALX_NAMED int64_t ignore_index; /* 0 = none, CALX_ZERO_INT = 0 */
  /* NULL = "none": counts; "true": parts of each row, "pred": of each column,
   * "all": of the matrix */
  CALX_NAMED const char *normalize;
} calx_metric_confusion_matrix_options;
/** How often each target (row) was predicted as each class (column).
 *  @shape value (2, 2), (C, C) or (L, 2, 2) @dtype i64; f32 where normalised
 *  @errors INVALID_ARGUMENT options that do not fit
 *  @source torchmetrics ConfusionMatrix */
CALX_API calx_metric *calx_metric_confusion_matrix_with(
    const calx_metric_confusion_matrix_options *options);

/** Zero means default; .task is wanted. */
typedef struct CALX_OPTIONS calx_metric_curve_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *task;
  CALX_NAMED int64_t num_classes; /* of a multiclass task, 2 or more */
  CALX_NAMED int64_t num_labels;  /* of a multilabel task, 2 or more */
  /* so many, from 0 to 1 in equal steps, 2 or more; 0: each score is one */
  CALX_NAMED int64_t thresholds;
  CALX_NAMED const char *average; /* NULL = "macro"; "micro": multilabel only */
  CALX_NAMED int64_t ignore_index; /* 0 = none, CALX_ZERO_INT = 0 */
} calx_metric_curve_options;
/**
 * The area under the receiver operating characteristic: true positive rate over
 * false positive rate. 0 for a class that has no positive or no negative
 * target. preds must be floating.
 *
 * Without .thresholds it is exact: each update keeps its scores on the device,
 * calx_metric_compute() computes on the host, and calx_metric_forward() waits
 * for its batch. With .thresholds the states have a fixed size and nothing
 * waits.
 * @shape value () or, with "none", (C) or (L) @dtype f32
 * @errors INVALID_ARGUMENT options that do not fit; of calx_metric_compute()
 *         without .thresholds: FAILED_PRECONDITION no rank has a sample
 * @source torchmetrics AUROC
 */
CALX_API calx_metric *calx_metric_auroc_with(
    const calx_metric_curve_options *options);
/** The mean of the precision at each threshold, weighted by the gain of recall
 *  there. NaN for a class of a multiclass task without a target, which "macro"
 *  and "weighted" leave out; with .thresholds 0. All else as
 *  calx_metric_auroc(). @source torchmetrics AveragePrecision */
CALX_API calx_metric *calx_metric_average_precision_with(
    const calx_metric_curve_options *options);

// ---- regression and text ----------------------------------------------------
//
// Values are f32, or f64 where the tensors were.

/** Zero means default. */
typedef struct CALX_OPTIONS calx_metric_mean_squared_error_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool not_squared; /* its root */
} calx_metric_mean_squared_error_options;
/** The mean of (preds - target)^2. @shape preds, target equal; value ()
 *  @source torchmetrics MeanSquaredError */
CALX_API calx_metric *calx_metric_mean_squared_error_with(
    const calx_metric_mean_squared_error_options *options);
/** The mean of |preds - target|. @shape preds, target equal; value ()
 *  @source torchmetrics MeanAbsoluteError */
CALX_API calx_metric *calx_metric_mean_absolute_error(void);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_metric_r2_score_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t adjusted; /* independent regressors; 0: not adjusted */
  /* NULL = "uniform_average", "variance_weighted", or "raw_values": of each */
  CALX_NAMED const char *multioutput;
} calx_metric_r2_score_options;
/** 1 - (sum of squared errors) / (sum of squared deviations of the target).
 *  @shape preds, target (N) or (N, outputs); value () or, with "raw_values",
 *  (outputs) @errors INVALID_ARGUMENT options that do not fit; of
 *  calx_metric_compute(): FAILED_PRECONDITION fewer than two samples
 *  @source torchmetrics R2Score */
CALX_API calx_metric *calx_metric_r2_score_with(
    const calx_metric_r2_score_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_metric_perplexity_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t ignore_index; /* 0 = none, CALX_ZERO_INT = 0 */
} calx_metric_perplexity_options;
/** e to the mean of -log softmax(preds) at the target.
 *  @shape preds (N, tokens, words), target (N, tokens); value ()
 *  @source torchmetrics Perplexity */
CALX_API calx_metric *calx_metric_perplexity_with(
    const calx_metric_perplexity_options *options);

// ---- aggregation ------------------------------------------------------------
//
// Of numbers: `preds` of an update is a tensor of any shape and `target` NULL;
// for calx_metric_mean() it may be weights, which broadcast to the tensor.
// Values are () and f32, or f64 where the tensors were.

/** Zero means default. */
typedef struct CALX_OPTIONS calx_metric_aggregation_options {
  CALX_NAMED size_t size;
  /* of NaN: NULL = "warn": left out, with a line at calx_metric_compute();
   * "ignore": left out; "error": calx_metric_compute() fails; "disable": a
   * number like others */
  CALX_NAMED const char *nan_strategy;
} calx_metric_aggregation_options;
/** The weighted mean. @source torchmetrics MeanMetric */
CALX_API calx_metric *calx_metric_mean_with(
    const calx_metric_aggregation_options *options);
/** The sum. @source torchmetrics SumMetric */
CALX_API calx_metric *calx_metric_sum_with(
    const calx_metric_aggregation_options *options);
/** The smallest. @source torchmetrics MinMetric */
CALX_API calx_metric *calx_metric_min_with(
    const calx_metric_aggregation_options *options);
/** The greatest. @source torchmetrics MaxMetric */
CALX_API calx_metric *calx_metric_max_with(
    const calx_metric_aggregation_options *options);

// ---- use --------------------------------------------------------------------

/** torchmetrics' name of it: "MulticlassAccuracy", "MeanMetric". Never NULL;
 *  lives as long as the process. */
CALX_API const char *calx_metric_name(const calx_metric *metric);

/** What was wrong with its options; NULL: nothing. Owned by the metric. */
CALX_API const calx_status *calx_metric_error(const calx_metric *metric);

/**
 * Adds a batch to the states. No gradient flows, and autocast does not matter.
 * @param target  NULL for an aggregation without weights
 * @shape as the constructor says
 * @errors through the scope: INVALID_ARGUMENT shapes and types that do not fit;
 *         the metric's error
 */
CALX_API void calx_metric_update(calx_metric *metric, calx_tensor *preds,
                                 calx_tensor *target);

/** The same, and this batch's own value, of this rank, on the device.
 *  @shape value as the constructor says @errors as calx_metric_update
 *  @owner the current scope @source torchmetrics Metric.forward */
CALX_API calx_tensor *calx_metric_forward(calx_metric *metric,
                                          calx_tensor *preds,
                                          calx_tensor *target);

/**
 * The value of all updates since the last reset, of all ranks: every rank calls
 * it and gets the same. Waits for the updates, and for the other ranks. A rank
 * may have had none; where none has had one, a line says so, and the value is
 * that of the first states.
 * @shape as the constructor says
 * @errors through the scope: INVALID_ARGUMENT a label that is none of the
 *         classes, NaN with nan_strategy "error"; those of the steps that the
 *         updates were part of; those of calx_rendezvous
 * @owner the current scope @source torchmetrics Metric.compute
 */
CALX_API calx_tensor *calx_metric_compute(calx_metric *metric);

/** Forgets all updates. @errors through the scope: the metric's; without
 *  memory */
CALX_API void calx_metric_reset(calx_metric *metric);
/** Frees; accepts NULL. */
CALX_API void calx_metric_free(calx_metric *metric);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_metric_stat_scores_options_ \
  .threshold = CALX_UNWRITTEN_, .ignore_index = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_metric_stat_scores_options, calx_written_(&o->threshold);
              calx_written_int_(&o->ignore_index);)
#define CALX_UNWRITTEN_calx_metric_confusion_matrix_options_ \
  .threshold = CALX_UNWRITTEN_, .ignore_index = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_metric_confusion_matrix_options,
              calx_written_(&o->threshold);
              calx_written_int_(&o->ignore_index);)
#define CALX_UNWRITTEN_calx_metric_curve_options_ \
  .ignore_index = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_metric_curve_options, calx_written_int_(&o->ignore_index);)
#define CALX_UNWRITTEN_calx_metric_perplexity_options_ \
  .ignore_index = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_metric_perplexity_options,
              calx_written_int_(&o->ignore_index);)
#endif
#ifdef __cplusplus
}
#else
#ifdef CALX_NO_SITES
#define CALX_METRIC_SITE_
#else
#define CALX_METRIC_SITE_ calx_at_(CALX_HERE),
#define calx_metric_update(metric, preds, target) \
  (calx_at_(CALX_HERE),                           \
   calx_metric_update(metric, preds, calx_here_(target, CALX_HERE)))
#define calx_metric_forward(metric, preds, target) \
  (calx_at_(CALX_HERE),                            \
   calx_metric_forward(metric, preds, calx_here_(target, CALX_HERE)))
#define calx_metric_compute(metric) \
  (calx_at_(CALX_HERE), calx_metric_compute(metric))
#define calx_metric_mean_absolute_error() \
  (calx_at_(CALX_HERE), calx_metric_mean_absolute_error())
#endif
// A metric of the options O that a program writes, the second form with those
// of which 0 is not the default.
#define CALX_METRIC_(name, O, ...) \
  (CALX_METRIC_SITE_ calx_metric_##name##_with(&(O){ __VA_ARGS__ }))
#define CALX_METRIC_WRITTEN_(name, O, ...) \
  (CALX_METRIC_SITE_ calx_metric_##name##_with(CALX_WRITE_(O, __VA_ARGS__)))
#define CALX_METRIC_STAT_SCORES_(name, ...)                             \
  CALX_METRIC_WRITTEN_(name, calx_metric_stat_scores_options,           \
                       .size = sizeof(calx_metric_stat_scores_options), \
                       __VA_ARGS__)
#define CALX_METRIC_CURVE_(name, ...)                   \
  CALX_METRIC_WRITTEN_(name, calx_metric_curve_options, \
                       .size = sizeof(calx_metric_curve_options), __VA_ARGS__)
#define CALX_METRIC_AGGREGATION_(name, ...)           \
  CALX_METRIC_(name, calx_metric_aggregation_options, \
               .size = sizeof(calx_metric_aggregation_options), __VA_ARGS__)
#define calx_metric_accuracy(...) \
  CALX_METRIC_STAT_SCORES_(accuracy, __VA_ARGS__)
#define calx_metric_precision(...) \
  CALX_METRIC_STAT_SCORES_(precision, __VA_ARGS__)
#define calx_metric_recall(...) CALX_METRIC_STAT_SCORES_(recall, __VA_ARGS__)
#define calx_metric_f1_score(...) \
  CALX_METRIC_STAT_SCORES_(f1_score, __VA_ARGS__)
#define calx_metric_confusion_matrix(...)                                      \
  CALX_METRIC_WRITTEN_(confusion_matrix, calx_metric_confusion_matrix_options, \
                       .size = sizeof(calx_metric_confusion_matrix_options),   \
                       __VA_ARGS__)
#define calx_metric_auroc(...) CALX_METRIC_CURVE_(auroc, __VA_ARGS__)
#define calx_metric_average_precision(...) \
  CALX_METRIC_CURVE_(average_precision, __VA_ARGS__)
#define calx_metric_mean_squared_error(...)                                \
  CALX_METRIC_(mean_squared_error, calx_metric_mean_squared_error_options, \
               .size = sizeof(calx_metric_mean_squared_error_options),     \
               __VA_ARGS__)
#define calx_metric_r2_score(...)                      \
  CALX_METRIC_(r2_score, calx_metric_r2_score_options, \
               .size = sizeof(calx_metric_r2_score_options), __VA_ARGS__)
#define calx_metric_perplexity(...)                                    \
  CALX_METRIC_WRITTEN_(perplexity, calx_metric_perplexity_options,     \
                       .size = sizeof(calx_metric_perplexity_options), \
                       __VA_ARGS__)
#define calx_metric_mean(...) CALX_METRIC_AGGREGATION_(mean, __VA_ARGS__)
#define calx_metric_sum(...) CALX_METRIC_AGGREGATION_(sum, __VA_ARGS__)
#define calx_metric_min(...) CALX_METRIC_AGGREGATION_(min, __VA_ARGS__)
#define calx_metric_max(...) CALX_METRIC_AGGREGATION_(max, __VA_ARGS__)
#endif
#endif
