// metrics/metrics: what the files of this module share.
//
// A metric is a list of states and a kind: functions that make a batch's states
// of its tensors, and a value of states. What all kinds have in common is in
// metric.c: a batch's states are added to the metric's in the step's program;
// compute() brings the metric's to the host, joins them with other ranks', and
// makes the value of that. A new metric is a kind in a file of its own.
#ifndef CX_METRICS_METRICS_H
#define CX_METRICS_METRICS_H

#include <stdbool.h>

#include "base/status.h"
#include "calx/metrics.h"
#include "calx/ops.h"

enum { CX_METRICS_STATES = 5 };  // at most

// How two updates' states, or two ranks', become one.
typedef enum cx_metrics_reduction {
  CX_METRICS_SUM,
  CX_METRICS_MIN,
  CX_METRICS_MAX,
  CX_METRICS_CAT  // along the first dimension
} cx_metrics_reduction;

typedef struct cx_metrics_state {
  const char *name;  // torchmetrics'
  cx_metrics_reduction reduction;
  calx_dtype dtype;     // i64 for counts, else f64; not of a list
  calx_dims shape;      // before the first update, which may bring another
  calx_tensor *tensor;  // owned; NULL of a list
  calx_tensor **list;   // CAT: of each update, owned
  size_t n_list, list_capacity;
} cx_metrics_state;

// A state's elements on the host.
typedef struct cx_metrics_total {
  calx_dims shape;
  double *values;
  size_t count, capacity;
} cx_metrics_total;

// All states of some updates, on the host.
typedef struct cx_metrics_totals {
  int64_t updates;
  bool is_wide;  // a floating tensor was f64
  cx_metrics_total states[CX_METRICS_STATES];
} cx_metrics_totals;

typedef struct cx_metrics_kind {
  bool is_always_f32;    // values are not f64 where the tensors were
  bool has_one_operand;  // target may be NULL
  // Whether shapes and types fit.
  calx_status *(*check)(const calx_metric *m, const calx_tensor *preds,
                        const calx_tensor *target);
  // A batch's states.
  void (*update)(const calx_metric *m, calx_tensor *preds, calx_tensor *target,
                 calx_tensor **out_states);
  // What is wrong with the numbers that were counted; may be NULL.
  calx_status *(*verify)(const calx_metric *m, const cx_metrics_totals *t);
  // The value of states, by operations; NULL where `of_lists` is.
  calx_tensor *(*value)(const calx_metric *m, calx_tensor *const *states);
  // The value of lists, on the host.
  calx_status *(*of_lists)(const calx_metric *m, const cx_metrics_totals *t,
                           calx_tensor **out);
} cx_metrics_kind;

struct calx_metric {
  const cx_metrics_kind *kind;
  const char *name;  // for ever
  void *self;        // the kind's options; owned
  cx_metrics_state states[CX_METRICS_STATES];
  size_t n_states;
  int64_t updates;
  bool is_wide;         // as of cx_metrics_totals
  calx_device *device;  // of the states; NULL: the current one
  calx_status *error;
};

// ---- metric -----------------------------------------------------------------

// Takes the error; copies `size` bytes of self. Never NULL.
calx_metric *cx_metrics_new(const cx_metrics_kind *kind, const char *name,
                            const void *self, size_t size, calx_status *error);
void cx_metrics_add_state(calx_metric *m, const char *name,
                          cx_metrics_reduction reduction, calx_dtype dtype,
                          calx_dims shape);
// A state that is a list.
void cx_metrics_add_list(calx_metric *m, const char *name);
// What a state begins with: it changes nothing.
double cx_metrics_first(cx_metrics_reduction reduction);

// A line that only the first rank writes: all have the same totals.
void cx_metrics_warn(const calx_metric *m, const char *line);

// ---- check ------------------------------------------------------------------

bool cx_metrics_is_same_shape(const calx_tensor *a, const calx_tensor *b);
// An error where the shapes differ.
calx_status *cx_metrics_check_same_shape(
    const calx_metric *m, const calx_tensor *preds,
    const calx_tensor *target) CALX_MUST_USE;
// Which of the texts, of which the last is NULL; NULL: the first.
calx_status *cx_metrics_choose(const char *what, const char *option,
                               const char *text, const char *const *allowed,
                               int *out) CALX_MUST_USE;

// ---- totals -----------------------------------------------------------------

// Appends a tensor's elements, along the first dimension.
calx_status *cx_metrics_total_read(cx_metrics_total *total,
                                   calx_tensor *tensor) CALX_MUST_USE;
// What the metric's states are now, of this rank.
calx_status *cx_metrics_totals_of(const calx_metric *m,
                                  cx_metrics_totals *out) CALX_MUST_USE;
// Those of all ranks in the place of this one's.
calx_status *cx_metrics_totals_exchange(const calx_metric *m,
                                        cx_metrics_totals *t) CALX_MUST_USE;
void cx_metrics_totals_free(cx_metrics_totals *t);
// A tensor of the current scope with these elements, or all the first one.
calx_tensor *cx_metrics_upload(calx_device *device, calx_dtype dtype,
                               calx_dims shape, const double *values,
                               bool is_one);

#endif
