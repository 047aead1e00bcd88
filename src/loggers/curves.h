// loggers/curves: the values of metrics over the steps, in bounded memory.
#ifndef CX_LOGGERS_CURVES_H
#define CX_LOGGERS_CURVES_H

#include "base/status.h"
#include "calx/loggers.h"

enum {
  CX_LOGGERS_POINTS = 1024,  // of a metric
  CX_LOGGERS_CURVES = 512    // metrics
};

typedef struct cx_loggers_point {
  int64_t step;
  double value;
} cx_loggers_point;

typedef struct cx_loggers_curve {
  char *name;              // with the prefix
  const char *plain_name;  // without it, in `name`
  bool is_axis;            // the epoch: a count of time, and no result
  // Of all values:
  int64_t seen, not_finite;
  cx_loggers_point last, least, most;  // least, most: of the finite ones
  // Each `stride`-th value, and at the end the last one.
  double *x, *y;
  size_t count, kept;  // kept: without the last one, if it is not one of them
  size_t capacity;     // of x and y each
  int64_t stride;
} cx_loggers_curve;

typedef struct cx_loggers_curves {
  cx_loggers_curve *items;
  size_t count, capacity;
  size_t expected;  // where the next name is looked for first
  bool is_full;     // values of further names were left out
  bool has_rows;
  int64_t last_step;  // of the newest row
} cx_loggers_curves;

// A row, as calx_logger_log_metrics() takes it.
calx_status *cx_loggers_curves_add(cx_loggers_curves *all, const char *prefix,
                                   const calx_logged_value *values,
                                   size_t count, int64_t step) CALX_MUST_USE;
void cx_loggers_curves_free(cx_loggers_curves *all);

// What a metric is of, without what tells training, validation and test apart,
// or a step's value and an epoch's: "loss" of "train_loss_epoch", "val/loss",
// "loss" and "loss/test". A part of the name.
typedef struct cx_loggers_subject {
  const char *text;
  size_t size;
} cx_loggers_subject;
cx_loggers_subject cx_loggers_subject_of(const char *name);
bool cx_loggers_subject_is(cx_loggers_subject a, cx_loggers_subject b);

#endif
