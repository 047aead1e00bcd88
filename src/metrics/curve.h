// metrics/curve: what the two forms of a metric of thresholds share.
#ifndef CX_METRICS_CURVE_H
#define CX_METRICS_CURVE_H

#include "metrics/task.h"

typedef struct cx_metrics_curve {
  cx_metrics_task task;
  cx_metrics_average average;
  int64_t thresholds;  // 0: each score is one
  bool is_precision;   // average precision, not the area under the ROC curve
} cx_metrics_curve;

// The exact value, on the host. The lists: scores (N, columns); labels as
// cx_metrics_rows.target has them, -1 for what does not count.
calx_status *cx_metrics_curve_exact(const calx_metric *m,
                                    const cx_metrics_totals *t,
                                    calx_tensor **out) CALX_MUST_USE;

#endif
