// debug/metric: what a metric holds at one moment, and its values as people
// read them.
#ifndef CX_DEBUG_METRIC_H
#define CX_DEBUG_METRIC_H

#include "base/metrics.h"
#include "base/text.h"

typedef struct cx_debug_snapshot {
  cx_metric_unit unit;
  int64_t total;       // samples ever
  double accumulator;  // their sum
  size_t n;            // samples in the window
  double window_sum;
  int64_t span;     // ns from the oldest to the newest
  double *samples;  // ascending; NULL when n is 0
} cx_debug_snapshot;

// False without memory: then n is 0. Freed in either case.
bool cx_debug_snapshot_take(cx_metric *m, cx_debug_snapshot *out);
void cx_debug_snapshot_free(cx_debug_snapshot *s);
// The element floor(fraction * n); n is not 0.
double cx_debug_snapshot_at(const cx_debug_snapshot *s, double fraction);

// 06m09s401ms746.001us from ns; 1.24MB; 3.00.
void cx_debug_time(cx_text *out, double ns);
void cx_debug_bytes(cx_text *out, double bytes);
void cx_debug_seconds(cx_text *out, double seconds);  // 8.13 ms
void cx_debug_value(cx_text *out, cx_metric_unit unit, double value);

// All that counted, by name; freed with cx_debug_collection_free().
typedef struct cx_debug_collection {
  const cx_counter **counters;
  cx_metric **metrics;
  size_t n_counters, counters_capacity;
  size_t n_metrics, metrics_capacity;
} cx_debug_collection;
bool cx_debug_collect(cx_debug_collection *out);  // false: no memory
void cx_debug_collection_free(cx_debug_collection *c);

// Of PyTorch/XLA: ops that it runs on the host have counters of this prefix.
#define CX_DEBUG_FALLBACK "aten::"

#endif
