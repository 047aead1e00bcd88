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

// What counters and metrics have in common; their first member.
typedef struct cx_metric_entry {
  const char *name;
  atomic_int registered;
  struct cx_metric_entry *next;
} cx_metric_entry;

typedef struct cx_counter {
  cx_metric_entry entry;
  atomic_llong value;    // since the last clear
  atomic_llong cleared;  // what clears took off it
} cx_counter;

typedef enum cx_metric_unit {
  CX_UNIT_NONE,
  CX_UNIT_NS,
  CX_UNIT_BYTES
} cx_metric_unit;
#define CX_METRIC_SAMPLES 1024  // unless the environment says another number
#define CX_METRIC_MOST_SAMPLES 65536

typedef struct cx_metric {
  cx_metric_entry entry;
  cx_metric_unit unit;
  cx_mutex lock;
  int64_t count;       // samples ever
  double accumulator;  // their sum
  double *samples;     // ring of the newest `window`
  int64_t *times;      // when, cx_now_ns()
  int64_t window;
} cx_metric;

#define CX_COUNTER(variable, text) \
  static cx_counter variable = { .entry = { .name = text } }
#define CX_METRIC(variable, text, unit_)                   \
  static cx_metric variable = { .entry = { .name = text }, \
                                .unit = unit_,             \
                                .lock = CX_MUTEX_INIT }

void cx_counter_add(cx_counter *counter, int64_t n);
int64_t cx_counter_total(const cx_counter *counter);  // clears do not end it
void cx_metric_add(cx_metric *metric, double value);

// Those of a kind that counted at least once since the start or the last clear,
// in no order: the one after `entry`, or the first one (NULL). NULL: no more.
typedef enum cx_metric_kind { CX_COUNTERS, CX_METRICS } cx_metric_kind;
cx_metric_entry *cx_metrics_next(cx_metric_kind kind,
                                 const cx_metric_entry *entry);
cx_counter *cx_counter_find(const char *name);  // NULL: never counted
cx_metric *cx_metric_find(const char *name);
void cx_counters_clear(void);
void cx_samples_clear(void);
void cx_metrics_clear(void);  // both

#endif
