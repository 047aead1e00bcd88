// debug/read_report: a metrics report back from its text: ours, PyTorch/XLA's
// of today, and its old releases', which wrote "Counter:" for the third line
// and did not pad microseconds.
//
// The text is from outside. Names are cut and made fit for a terminal, counts
// bounded; what is no line of a report is passed over, so that a program's
// whole output can be given. Of several reports with a line [MetricsData;
// step=N] the last one counts; without, each name's last.
#ifndef CX_DEBUG_READ_REPORT_H
#define CX_DEBUG_READ_REPORT_H

#include "base/metrics.h"
#include "base/status.h"

// Counts: sums of all of a file stay in 64 bits.
#define CX_DEBUG_READ_MOST INT64_C(1000000000000000)
enum { CX_DEBUG_READ_MOST_PERCENTILES = 32, CX_DEBUG_READ_MOST_NAMES = 4096 };

typedef struct cx_debug_read_metric {
  char name[128];  // first, as in a counter
  cx_metric_unit unit;
  int64_t samples;
  double accumulator;  // ns, bytes or the number
  double value_rate;   // the same a second; 0: not told
  double rate;         // samples a second; 0: not told
  size_t n_percentiles;
  double fractions[CX_DEBUG_READ_MOST_PERCENTILES];  // 0.01
  double values[CX_DEBUG_READ_MOST_PERCENTILES];
} cx_debug_read_metric;

typedef struct cx_debug_read_counter {
  char name[128];
  int64_t value;
} cx_debug_read_counter;

typedef struct cx_debug_read_report {
  int64_t step;  // of [MetricsData; step=N]; -1: none
  cx_debug_read_metric *metrics;
  cx_debug_read_counter *counters;
  size_t n_metrics, metrics_capacity;
  size_t n_counters, counters_capacity;
} cx_debug_read_report;

// INVALID_ARGUMENT: no report in it, a value that is none (with its line), or
// more names than a report has.
calx_status *cx_debug_report_read(const char *text, size_t size,
                                  cx_debug_read_report *out) CALX_MUST_USE;
void cx_debug_report_free(cx_debug_read_report *r);
// NULL: not in it.
const cx_debug_read_metric *cx_debug_report_metric(
    const cx_debug_read_report *r, const char *name);
int64_t cx_debug_report_counter(const cx_debug_read_report *r,
                                const char *name);  // 0: not in it
// The value at a fraction that the report has, or the nearest; 0: none.
double cx_debug_report_at(const cx_debug_read_metric *m, double fraction);

#endif
