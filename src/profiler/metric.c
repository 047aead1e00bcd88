// profiler/metric: snapshots of metrics, and their values in PyTorch/XLA's
// form.
//
// One difference: PyTorch/XLA rounds each part of a time to nearest and takes
// the remainder from the part below, so that 1.5 s reads 02s500ms. Here a time
// is rounded once, to nanoseconds, and then split exactly.
#include "profiler/metric.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

// ---- snapshots --------------------------------------------------------------

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void copy_window(const cx_metric *m, cx_profiler_snapshot *out)
{
  int64_t oldest = INT64_MAX, newest = INT64_MIN;
  for (size_t i = 0; i < out->n; i++) {
    out->samples[i] = m->samples[i];
    out->window_sum += m->samples[i];
    if (m->times[i] < oldest) oldest = m->times[i];
    if (m->times[i] > newest) newest = m->times[i];
  }
  if (out->n > 0) out->span = newest - oldest;
}

bool cx_profiler_snapshot_take(cx_metric *m, cx_profiler_snapshot *out)
{
  *out = (cx_profiler_snapshot){ .unit = m->unit };
  cx_lock(&m->lock);
  out->total = m->count;
  out->accumulator = m->accumulator;
  int64_t n = m->samples == NULL ? 0 : m->count;
  if (n > m->window) n = m->window;
  bool ok = true;
  if (n > 0) {
    out->samples = cx_alloc((size_t)n * sizeof *out->samples);
    ok = out->samples != NULL;
    if (ok) out->n = (size_t)n;
    copy_window(m, out);
  }
  cx_unlock(&m->lock);
  if (out->n > 0) {
    qsort(out->samples, out->n, sizeof *out->samples, by_value);
  }
  return ok;
}

void cx_profiler_snapshot_free(cx_profiler_snapshot *s)
{
  cx_free(s->samples);
  *s = (cx_profiler_snapshot){ 0 };
}

// A fraction that is written as 0.95 is a little less: what is meant is the
// next number up.
double cx_profiler_snapshot_at(const cx_profiler_snapshot *s, double fraction)
{
  size_t i = (size_t)(fraction * (double)s->n + 1e-9);
  return s->samples[i < s->n ? i : s->n - 1];
}

// ---- values -----------------------------------------------------------------

// From the first part that is not 0.
void cx_profiler_time(cx_text *out, double ns)
{
  static const struct time_part {
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

void cx_profiler_seconds(cx_text *out, double seconds)
{
  const char *unit = seconds >= 1 ? "s" : seconds >= 1e-3 ? "ms" : "us";
  double scale = seconds >= 1 ? 1 : seconds >= 1e-3 ? 1e3 : 1e6;
  cx_text_real(out, "%.3g", seconds * scale);
  cx_text_format(out, " %s", unit);
}

void cx_profiler_bytes(cx_text *out, double bytes)
{
  static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB" };
  size_t k = 0;
  while (bytes >= 1024 && k + 1 < sizeof units / sizeof *units) {
    bytes /= 1024;
    k++;
  }
  cx_text_real(out, "%.2f", bytes);
  cx_text_append(out, units[k]);
}

void cx_profiler_value(cx_text *out, cx_metric_unit unit, double value)
{
  switch (unit) {
    case CX_UNIT_NS: cx_profiler_time(out, value); break;
    case CX_UNIT_BYTES: cx_profiler_bytes(out, value); break;
    case CX_UNIT_NONE: cx_text_real(out, "%.2f", value); break;
  }
}

// ---- collections ------------------------------------------------------------

static int by_name(const void *a, const void *b)
{
  return strcmp((*(cx_metric_entry *const *)a)->name,
                (*(cx_metric_entry *const *)b)->name);
}

bool cx_profiler_collect(cx_metric_kind kind, cx_profiler_entries *out)
{
  *out = (cx_profiler_entries){ 0 };
  for (cx_metric_entry *e = cx_metrics_next(kind, NULL); e != NULL;
       e = cx_metrics_next(kind, e)) {
    if (!cx_grow(&out->all, &out->capacity, out->n + 1, sizeof *out->all)) {
      out->n = 0;
      return false;
    }
    out->all[out->n++] = e;
  }
  // qsort may not be given NULL, not even for no elements.
  if (out->n > 0) qsort(out->all, out->n, sizeof *out->all, by_name);
  return true;
}

bool cx_profiler_is_fallback(const char *name)
{
  static const char prefix[] = "aten::";
  return strncmp(name, prefix, sizeof prefix - 1) == 0;
}
