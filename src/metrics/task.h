// metrics/task: what classification metrics share: their options and the
// tensors that they are given.
#ifndef CX_METRICS_TASK_H
#define CX_METRICS_TASK_H

#include "metrics/metrics.h"

typedef enum cx_metrics_task_kind {
  CX_METRICS_BINARY,  // a multilabel task of one label
  CX_METRICS_MULTICLASS,
  CX_METRICS_MULTILABEL,
  CX_METRICS_TASKS
} cx_metrics_task_kind;

typedef enum cx_metrics_average {
  CX_METRICS_MICRO,
  CX_METRICS_MACRO,
  CX_METRICS_WEIGHTED,
  CX_METRICS_NONE
} cx_metrics_average;

// The options that all have. It begins each one's `self`.
typedef struct cx_metrics_task {
  cx_metrics_task_kind kind;
  int64_t n;  // classes or labels; 1 of a binary task
  double threshold;
  bool ignores;
  int64_t ignore_index;
} cx_metrics_task;

typedef struct cx_metrics_task_options {
  const char *what;  // the metric, for messages
  const char *task;
  int64_t num_classes, num_labels, ignore_index;
  double threshold;
} cx_metrics_task_options;

calx_status *cx_metrics_task_take(const cx_metrics_task_options *o,
                                  cx_metrics_task *out) CALX_MUST_USE;
// The option of which 0 is none and CALX_ZERO_INT 0.
void cx_metrics_task_ignore(cx_metrics_task *t, int64_t ignore_index);
// NULL: `otherwise`.
calx_status *cx_metrics_average_take(const char *what, const char *text,
                                     cx_metrics_average otherwise,
                                     cx_metrics_average *out) CALX_MUST_USE;

// ---- what is given ----------------------------------------------------------

// Whether shapes and types fit the task. scores: preds may not be labels, nor
// the target floating.
calx_status *cx_metrics_task_check(const calx_metric *m,
                                   const calx_tensor *preds,
                                   const calx_tensor *target,
                                   bool scores) CALX_MUST_USE;

// A batch whose samples are rows: (N, L) of a multilabel task, of which a
// binary one has L = 1; (N) of a multiclass task, and (N, C) its scores.
typedef struct cx_metrics_rows {
  calx_tensor *preds;
  calx_tensor *target;
  calx_tensor *valid;  // bool, as target: in range and not ignored
  calx_tensor *bad;    // i64 (): how many are out of range and not ignored
} cx_metrics_rows;

// Which scores may show that a batch is of logits. torchmetrics removes what is
// ignored of some metrics before it looks, and of others after.
typedef enum cx_metrics_logits {
  CX_METRICS_LOGITS_OF_ALL,
  CX_METRICS_LOGITS_OF_VALID
} cx_metrics_logits;

// Without preds.
cx_metrics_rows cx_metrics_targets(const cx_metrics_task *t,
                                   calx_tensor *target);
// preds become labels: bool, or i64 of a multiclass task. There scores are
// judged by the greatest; with top_k above 1 the target is the label where it
// is among so many.
cx_metrics_rows cx_metrics_labels(const cx_metrics_task *t, calx_tensor *preds,
                                  calx_tensor *target, int64_t top_k,
                                  cx_metrics_logits logits);
// preds become probabilities, f32 or f64.
cx_metrics_rows cx_metrics_scores(const cx_metrics_task *t, calx_tensor *preds,
                                  calx_tensor *target);

// The metric's last state is the sum of `bad`, which is to be 0.
void cx_metrics_add_bad(calx_metric *m);
calx_status *cx_metrics_verify_bad(const calx_metric *m,
                                   const cx_metrics_totals *t) CALX_MUST_USE;

#endif
