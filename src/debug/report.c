// debug/report: the counters and timers of calx/debug.h.
#include "calx/debug.h"

#include "base/alloc.h"
#include "profiler/metric.h"
#include "profiler/profiler.h"

// ---- names ------------------------------------------------------------------

static size_t names(cx_metric_kind kind, bool only_fallback, const char **out,
                    size_t capacity)
{
  cx_profiler_entries e;
  size_t n = 0;
  (void)cx_profiler_collect(kind, &e);
  for (size_t i = 0; i < e.n; i++) {
    const char *name = e.all[i]->name;
    if (only_fallback && !cx_profiler_is_fallback(name)) continue;
    if (n < capacity) out[n] = name;
    n++;
  }
  cx_free(e.all);
  return n;
}

size_t calx_counter_names(const char **out_names, size_t capacity)
{
  return names(CX_COUNTERS, false, out_names, capacity);
}

size_t calx_fallback_ops(const char **out_names, size_t capacity)
{
  return names(CX_COUNTERS, true, out_names, capacity);
}

size_t calx_metric_names(const char **out_names, size_t capacity)
{
  return names(CX_METRICS, false, out_names, capacity);
}

// ---- single values ----------------------------------------------------------

int64_t calx_counter_value(const char *name)
{
  const cx_counter *c = cx_counter_find(name);
  return c != NULL ? (int64_t)atomic_load(&((cx_counter *)c)->value) : 0;
}

bool calx_metric_value(const char *name, calx_metric_data *out_data)
{
  *out_data = (calx_metric_data){ 0 };
  cx_metric *m = cx_metric_find(name);
  if (m == NULL) return false;
  cx_profiler_snapshot s;
  cx_profiler_snapshot_take(m, &s);
  double unit = s.unit == CX_UNIT_NS ? 1e9 : 1;
  out_data->samples = s.total;
  out_data->accumulator = s.accumulator / unit;
  if (s.n > 0) out_data->median = cx_profiler_snapshot_at(&s, 0.5) / unit;
  cx_profiler_snapshot_free(&s);
  return true;
}

size_t calx_metric_samples(const char *name, double *out_times,
                           double *out_values, size_t capacity)
{
  cx_metric *m = cx_metric_find(name);
  if (m == NULL) return 0;
  double unit = m->unit == CX_UNIT_NS ? 1e9 : 1;
  cx_lock(&m->lock);
  int64_t n = m->samples == NULL ? 0 : m->count;
  if (n > m->window) n = m->window;
  int64_t first = m->count - n;
  for (int64_t i = 0; i < n && i < (int64_t)capacity; i++) {
    int64_t at = (first + i) % m->window;
    out_times[i] = (double)m->times[at] / 1e9;
    out_values[i] = m->samples[at] / unit;
  }
  cx_unlock(&m->lock);
  return (size_t)n;
}

// ---- texts and clears -------------------------------------------------------

char *calx_metrics_report(void)
{
  return cx_profiler_metrics_text();
}

char *calx_metrics_short_report(const char *const *counters,
                                const char *const *metrics)
{
  return cx_profiler_metrics_short_text(counters, metrics);
}

void calx_counters_clear(void)
{
  cx_counters_clear();
}

void calx_samples_clear(void)
{
  cx_samples_clear();
}

void calx_metrics_clear(void)
{
  cx_metrics_clear();
}
