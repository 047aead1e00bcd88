// base/metrics: counters and timers that every room may touch. What people read
// of them is made in src/debug.
//
// A counter or metric is declared once at its place of use; registration
// happens at its first count. All are thread-safe. Samples keep the newest
// 1,024 values beside the total.
#ifndef CX_BASE_METRICS_H
#define CX_BASE_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"

typedef struct cx_counter {
  const char *name;
  atomic_llong value;
  atomic_int registered;
  struct cx_counter *next;
} cx_counter;

typedef enum cx_metric_unit {
  CX_UNIT_NONE,
  CX_UNIT_NS,
  CX_UNIT_BYTES
} cx_metric_unit;
#define CX_METRIC_SAMPLES 1024

typedef struct cx_metric {
  const char *name;
  cx_metric_unit unit;
  atomic_int registered;
  cx_mutex lock;
  int64_t count;       // samples ever
  double accumulator;  // their sum
  double *samples;     // ring of the newest CX_METRIC_SAMPLES
  int64_t *times;      // when, cx_now_ns()
  struct cx_metric *next;
} cx_metric;

#define CX_COUNTER(variable, text) static cx_counter variable = { .name = text }
#define CX_METRIC(variable, text, unit_)       \
  static cx_metric variable = { .name = text,  \
                                .unit = unit_, \
                                .lock = CX_MUTEX_INIT }

void cx_counter_add(cx_counter *counter, int64_t n);
void cx_metric_add(cx_metric *metric, double value);

// All that counted at least once since the start or the last clear, in no
// order.
void cx_metrics_visit(void (*counter)(void *user, const cx_counter *c),
                      void (*metric)(void *user, cx_metric *m), void *user);
cx_counter *cx_counter_find(const char *name);  // NULL: never counted
cx_metric *cx_metric_find(const char *name);
void cx_metrics_clear(void);

#endif
