// profiler/metric: what a metric holds at one moment, and its values as people
// read them.
#ifndef CX_PROFILER_METRIC_H
#define CX_PROFILER_METRIC_H

#include "base/metrics.h"
#include "base/text.h"

typedef struct cx_profiler_snapshot {
  cx_metric_unit unit;
  int64_t total;       // samples ever
  double accumulator;  // their sum
  size_t n;            // samples in the window
  double window_sum;
  int64_t span;     // ns from the oldest to the newest
  double *samples;  // ascending; NULL when n is 0
} cx_profiler_snapshot;

// False without memory: then n is 0. Freed in either case.
bool cx_profiler_snapshot_take(cx_metric *m, cx_profiler_snapshot *out);
void cx_profiler_snapshot_free(cx_profiler_snapshot *s);
// The element floor(fraction * n); n is not 0.
double cx_profiler_snapshot_at(const cx_profiler_snapshot *s, double fraction);

// 06m09s401ms746.001us from ns; 1.24MB; 3.00.
void cx_profiler_time(cx_text *out, double ns);
void cx_profiler_bytes(cx_text *out, double bytes);
void cx_profiler_seconds(cx_text *out, double seconds);  // 8.13 ms
void cx_profiler_value(cx_text *out, cx_metric_unit unit, double value);

// All of a kind that counted, by name; freed with cx_free().
typedef struct cx_profiler_entries {
  cx_metric_entry **all;
  size_t n, capacity;
} cx_profiler_entries;
// False without memory: then there are none.
bool cx_profiler_collect(cx_metric_kind kind, cx_profiler_entries *out);

// Whether a counter is of an op that ran on the host: as in PyTorch/XLA, its
// name begins with aten::.
bool cx_profiler_is_fallback(const char *name);

#endif
