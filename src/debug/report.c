// debug/report: counters and timers for people, in the form of PyTorch/XLA's
// metrics_report, which its users' scripts read.
//
// One difference: PyTorch/XLA rounds each part of a time to nearest and takes
// the remainder from the part below, so that 1.5 s reads 02s500ms. Here a time
// is rounded once, to nanoseconds, and then split exactly. Percentiles are the
// elements floor(p * n) of the newest samples in order.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/metrics.h"
#include "base/text.h"
#include "calx/debug.h"
#include "debug/real.h"

// What a metric holds at one moment.
typedef struct snapshot {
  cx_metric_unit unit;
  int64_t total;       // samples ever
  double accumulator;  // their sum
  size_t n;            // samples in the window
  double window_sum;
  int64_t span;                       // ns from the oldest to the newest
  double samples[CX_METRIC_SAMPLES];  // ascending
} snapshot;

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void take(cx_metric *m, snapshot *out)
{
  cx_lock(&m->lock);
  out->unit = m->unit;
  out->total = m->count;
  out->accumulator = m->accumulator;
  size_t n = m->count < CX_METRIC_SAMPLES ? (size_t)m->count
                                          : (size_t)CX_METRIC_SAMPLES;
  if (m->samples == NULL) n = 0;
  out->n = n;
  out->window_sum = 0;
  int64_t oldest = INT64_MAX, newest = INT64_MIN;
  for (size_t i = 0; i < n; i++) {
    out->samples[i] = m->samples[i];
    out->window_sum += m->samples[i];
    if (m->times[i] < oldest) oldest = m->times[i];
    if (m->times[i] > newest) newest = m->times[i];
  }
  out->span = n > 0 ? newest - oldest : 0;
  cx_unlock(&m->lock);
  qsort(out->samples, n, sizeof *out->samples, by_value);
}

// The window is not empty. floor(percent / 100 * n), in integers.
static double percentile(const snapshot *s, size_t percent)
{
  return s->samples[percent * s->n / 100];
}

// ---- values -----------------------------------------------------------------

// 06m09s401ms746.001us: from the first part that is not 0.
static void print_time(cx_text *out, double ns)
{
  static const struct part {
    const char *unit;
    int64_t ns;
    int width;
  } parts[] = {
    { "d", INT64_C(86400000000000), 2 }, { "h", INT64_C(3600000000000), 2 },
    { "m", INT64_C(60000000000), 2 },    { "s", INT64_C(1000000000), 2 },
    { "ms", INT64_C(1000000), 3 },
  };
  // Clocks give neither; a number must come out all the same.
  int64_t rest = ns >= 0 && ns < 9.2e18 ? llround(ns) : 0;
  bool begun = false;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    int64_t count = rest / parts[i].ns;
    rest %= parts[i].ns;
    begun = begun || count > 0;
    if (begun) {
      cx_text_format(out, "%0*" PRId64 "%s", parts[i].width, count,
                     parts[i].unit);
    }
  }
  cx_text_format(out, "%03" PRId64 ".%03" PRId64 "us", rest / 1000,
                 rest % 1000);
}

static void print_bytes(cx_text *out, double bytes)
{
  static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB" };
  size_t k = 0;
  while (bytes >= 1024 && k + 1 < sizeof units / sizeof *units) {
    bytes /= 1024;
    k++;
  }
  cx_debug_real(out, "%.2f", bytes);
  cx_text_append(out, units[k]);
}

static void print_value(cx_text *out, cx_metric_unit unit, double value)
{
  switch (unit) {
    case CX_UNIT_NS: print_time(out, value); break;
    case CX_UNIT_BYTES: print_bytes(out, value); break;
    case CX_UNIT_NONE: cx_debug_real(out, "%.2f", value); break;
  }
}

// ---- the report -------------------------------------------------------------

static void print_rates(cx_text *out, const snapshot *s)
{
  if (s->span <= 0) return;
  double seconds = (double)s->span / 1e9;
  cx_text_append(out, "  ValueRate: ");
  print_value(out, s->unit, s->window_sum / seconds);
  cx_text_append(out, " / second\n");
  cx_text_append(out, "  Rate: ");
  cx_debug_real(out, "%g", (double)s->n / seconds);
  cx_text_append(out, " / second\n");
}

static void print_percentiles(cx_text *out, const snapshot *s)
{
  static const unsigned char percents[] = { 1, 5, 10, 20, 50, 80, 90, 95, 99 };
  if (s->n == 0) return;
  cx_text_append(out, "  Percentiles: ");
  for (size_t i = 0; i < sizeof percents; i++) {
    cx_text_format(out, "%s%d%%=", i > 0 ? "; " : "", percents[i]);
    print_value(out, s->unit, percentile(s, percents[i]));
  }
  cx_text_char(out, '\n');
}

static void print_metric(cx_text *out, cx_metric *m, snapshot *s)
{
  take(m, s);
  cx_text_format(out, "Metric: %s\n  TotalSamples: %" PRId64 "\n", m->name,
                 s->total);
  cx_text_append(out, "  Accumulator: ");
  print_value(out, s->unit, s->accumulator);
  cx_text_char(out, '\n');
  print_rates(out, s);
  print_percentiles(out, s);
}

typedef struct collection {
  const cx_counter **counters;
  cx_metric **metrics;
  size_t n_counters, counters_capacity;
  size_t n_metrics, metrics_capacity;
  bool failed;
} collection;

static void add_counter(void *user, const cx_counter *counter)
{
  collection *c = user;
  c->failed |= !cx_grow(&c->counters, &c->counters_capacity, c->n_counters + 1,
                        sizeof *c->counters);
  if (!c->failed) c->counters[c->n_counters++] = counter;
}

static void add_metric(void *user, cx_metric *metric)
{
  collection *c = user;
  c->failed |= !cx_grow(&c->metrics, &c->metrics_capacity, c->n_metrics + 1,
                        sizeof *c->metrics);
  if (!c->failed) c->metrics[c->n_metrics++] = metric;
}

// qsort may not be given NULL, not even for no elements.
static void sort(void *items, size_t n, size_t bytes,
                 int (*compare)(const void *a, const void *b))
{
  if (n > 0) qsort(items, n, bytes, compare);
}

static int by_counter_name(const void *a, const void *b)
{
  return strcmp((*(const cx_counter *const *)a)->name,
                (*(const cx_counter *const *)b)->name);
}

static int by_metric_name(const void *a, const void *b)
{
  return strcmp((*(cx_metric *const *)a)->name, (*(cx_metric *const *)b)->name);
}

char *calx_metrics_report(void)
{
  collection c = { 0 };
  cx_text out = { 0 };
  cx_metrics_visit(add_counter, add_metric, &c);
  snapshot *s = cx_alloc(sizeof *s);
  if (s != NULL && !c.failed) {
    sort(c.metrics, c.n_metrics, sizeof *c.metrics, by_metric_name);
    sort(c.counters, c.n_counters, sizeof *c.counters, by_counter_name);
    for (size_t i = 0; i < c.n_metrics; i++) {
      print_metric(&out, c.metrics[i], s);
    }
    for (size_t i = 0; i < c.n_counters; i++) {
      cx_text_format(&out, "Counter: %s\n  Value: %lld\n", c.counters[i]->name,
                     (long long)atomic_load(&c.counters[i]->value));
    }
  } else {
    out.failed = true;
  }
  cx_free(s);
  cx_free(c.counters);
  cx_free(c.metrics);
  return cx_text_take(&out);
}

// ---- single values ----------------------------------------------------------

int64_t calx_counter_value(const char *name)
{
  const cx_counter *c = cx_counter_find(name);
  return c != NULL ? (int64_t)atomic_load(&c->value) : 0;
}

bool calx_metric_value(const char *name, calx_metric_data *out_data)
{
  *out_data = (calx_metric_data){ 0 };
  cx_metric *m = cx_metric_find(name);
  if (m == NULL) return false;
  snapshot s;  // 8 KiB
  take(m, &s);
  double unit = s.unit == CX_UNIT_NS ? 1e9 : 1;
  out_data->samples = s.total;
  out_data->accumulator = s.accumulator / unit;
  if (s.n > 0) out_data->median = percentile(&s, 50) / unit;
  return true;
}

void calx_metrics_clear(void)
{
  cx_metrics_clear();
}
