// base/metrics: counters and timers that every module may use. What people read
// of them is made in src/debug.
//
// A counter or metric is declared once at its place of use; registration
// happens at its first count. All are thread-safe. Samples keep the newest
// 1,024 values beside the total, or as many as CALX_METRICS_SAMPLES says
// (XLA_METRICS_SAMPLES too).
#ifndef CX_BASE_METRICS_H
#define CX_BASE_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"

typedef struct cx_counter {
  const char *name;
  atomic_llong value;    // since the last clear
  atomic_llong cleared;  // what clears took off it
  atomic_int registered;
  struct cx_counter *next;
} cx_counter;

typedef enum cx_metric_unit {
  CX_UNIT_NONE,
  CX_UNIT_NS,
  CX_UNIT_BYTES
} cx_metric_unit;
#define CX_METRIC_SAMPLES 1024  // unless the environment says another number
#define CX_METRIC_MOST_SAMPLES 65536

typedef struct cx_metric {
  const char *name;
  cx_metric_unit unit;
  atomic_int registered;
  cx_mutex lock;
  int64_t count;       // samples ever
  double accumulator;  // their sum
  double *samples;     // ring of the newest `window`
  int64_t *times;      // when, cx_now_ns()
  int64_t window;
  struct cx_metric *next;
} cx_metric;

#define CX_COUNTER(variable, text) static cx_counter variable = { .name = text }
#define CX_METRIC(variable, text, unit_)       \
  static cx_metric variable = { .name = text,  \
                                .unit = unit_, \
                                .lock = CX_MUTEX_INIT }

void cx_counter_add(cx_counter *counter, int64_t n);
int64_t cx_counter_total(const cx_counter *counter);  // clears do not end it
void cx_metric_add(cx_metric *metric, double value);

// All that counted at least once since the start or the last clear, in no
// order.
void cx_metrics_visit(void (*counter)(void *user, const cx_counter *c),
                      void (*metric)(void *user, cx_metric *m), void *user);
cx_counter *cx_counter_find(const char *name);  // NULL: never counted
cx_metric *cx_metric_find(const char *name);
void cx_counters_clear(void);
void cx_samples_clear(void);
void cx_metrics_clear(void);  // both

#endif
