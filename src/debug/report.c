// debug/report: counters and timers for people, in the form of PyTorch/XLA's
// metrics_report, which its users' scripts read: all metrics by name, then all
// counters. Percentiles are the elements floor(p * n) of the newest samples in
// order.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "calx/debug.h"
#include "debug/metric.h"
#include "debug/real.h"

// ---- the environment's percentiles ------------------------------------------

enum { MOST_PERCENTILES = 32 };

typedef struct fractions {
  double p[MOST_PERCENTILES];
  size_t n;
} fractions;

// "0.01:0.5:0.99". False where it holds anything but numbers between 0 and 1.
static bool read_fractions(const char *text, fractions *out)
{
  out->n = 0;
  for (const char *at = text; *at != '\0';) {
    char *end;
    double p = strtod(at, &end);
    if (end == at || !(p > 0 && p < 1) || out->n == MOST_PERCENTILES ||
        (*end != ':' && *end != '\0')) {
      return false;
    }
    out->p[out->n++] = p;
    at = end + (*end == ':');
  }
  return out->n > 0;
}

static void find_fractions(fractions *out)
{
  static const char *const names[] = { "CALX_METRICS_PERCENTILES",
                                       "XLA_METRICS_PERCENTILES" };
  static const char standard[] = "0.01:0.05:0.1:0.2:0.5:0.8:0.9:0.95:0.99";
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *text = getenv(names[i]);
    if (text == NULL || *text == '\0') continue;
    if (read_fractions(text, out)) return;
    cx_log_once_per_site(names[i],
                         "%s: '%s' is not a list of numbers between 0 and 1 "
                         "with colons between them; %s is used",
                         names[i], text, standard);
  }
  read_fractions(standard, out);
}

// ---- the report -------------------------------------------------------------

static void print_rates(cx_text *out, const cx_debug_snapshot *s)
{
  if (s->span <= 0) return;
  double seconds = (double)s->span / 1e9;
  cx_text_append(out, "  ValueRate: ");
  cx_debug_value(out, s->unit, s->window_sum / seconds);
  cx_text_append(out, " / second\n");
  cx_text_append(out, "  Rate: ");
  cx_debug_real(out, "%g", (double)s->n / seconds);
  cx_text_append(out, " / second\n");
}

static void print_percentiles(cx_text *out, const cx_debug_snapshot *s,
                              const fractions *f)
{
  if (s->n == 0) return;
  cx_text_append(out, "  Percentiles: ");
  for (size_t i = 0; i < f->n; i++) {
    if (i > 0) cx_text_append(out, "; ");
    cx_debug_real(out, "%g", f->p[i] * 100);
    cx_text_append(out, "%=");
    cx_debug_value(out, s->unit, cx_debug_snapshot_at(s, f->p[i]));
  }
  cx_text_char(out, '\n');
}

static void print_metric(cx_text *out, cx_metric *m, const fractions *f)
{
  cx_debug_snapshot s;
  out->failed |= !cx_debug_snapshot_take(m, &s);
  cx_text_format(out, "Metric: %s\n  TotalSamples: %" PRId64 "\n", m->name,
                 s.total);
  cx_text_append(out, "  Accumulator: ");
  cx_debug_value(out, s.unit, s.accumulator);
  cx_text_char(out, '\n');
  print_rates(out, &s);
  print_percentiles(out, &s, f);
  cx_debug_snapshot_free(&s);
}

static void print_counter(cx_text *out, const cx_counter *c)
{
  cx_text_format(out, "Counter: %s\n  Value: %lld\n", c->name,
                 (long long)atomic_load(&((cx_counter *)c)->value));
}

char *calx_metrics_report(void)
{
  cx_debug_collection c;
  cx_text out = { 0 };
  fractions f;
  find_fractions(&f);
  if (cx_debug_collect(&c)) {
    for (size_t i = 0; i < c.n_metrics; i++) {
      print_metric(&out, c.metrics[i], &f);
    }
    for (size_t i = 0; i < c.n_counters; i++) {
      print_counter(&out, c.counters[i]);
    }
  } else {
    out.failed = true;
  }
  cx_debug_collection_free(&c);
  return cx_text_take(&out);
}

static bool is_fallback(const char *name)
{
  return strncmp(name, CX_DEBUG_FALLBACK, strlen(CX_DEBUG_FALLBACK)) == 0;
}

// In the lists' order; then what ran on the host, if it was not asked for.
char *calx_metrics_short_report(const char *const *counters,
                                const char *const *metrics)
{
  static const char *const usual_counters[] = { "CachedCompile", "MarkStep",
                                                NULL };
  static const char *const usual_metrics[] = { "CompileTime",
                                               "ExecuteTime",
                                               "ExecuteReplicatedTime",
                                               "TransferToDeviceTime",
                                               "TransferFromDeviceTime",
                                               NULL };
  if (counters == NULL) counters = usual_counters;
  if (metrics == NULL) metrics = usual_metrics;
  cx_text out = { 0 };
  fractions f;
  find_fractions(&f);
  for (; *metrics != NULL; metrics++) {
    cx_metric *m = cx_metric_find(*metrics);
    if (m != NULL) print_metric(&out, m, &f);
  }
  for (size_t i = 0; counters[i] != NULL; i++) {
    const cx_counter *c = cx_counter_find(counters[i]);
    if (c != NULL && !is_fallback(c->name)) print_counter(&out, c);
  }
  cx_debug_collection all;
  out.failed |= !cx_debug_collect(&all);
  for (size_t i = 0; i < all.n_counters; i++) {
    if (is_fallback(all.counters[i]->name))
      print_counter(&out, all.counters[i]);
  }
  cx_debug_collection_free(&all);
  return cx_text_take(&out);
}

// ---- names ------------------------------------------------------------------

static size_t give_names(const cx_debug_collection *c, bool only_fallback,
                         const char **out, size_t capacity)
{
  size_t n = 0;
  for (size_t i = 0; i < c->n_counters; i++) {
    const char *name = c->counters[i]->name;
    if (only_fallback && !is_fallback(name)) continue;
    if (n < capacity) out[n] = name;
    n++;
  }
  return n;
}

static size_t counter_names(bool only_fallback, const char **out,
                            size_t capacity)
{
  cx_debug_collection c;
  size_t n = 0;
  if (cx_debug_collect(&c)) n = give_names(&c, only_fallback, out, capacity);
  cx_debug_collection_free(&c);
  return n;
}

size_t calx_counter_names(const char **out_names, size_t capacity)
{
  return counter_names(false, out_names, capacity);
}

size_t calx_fallback_ops(const char **out_names, size_t capacity)
{
  return counter_names(true, out_names, capacity);
}

size_t calx_metric_names(const char **out_names, size_t capacity)
{
  cx_debug_collection c;
  size_t n = 0;
  if (cx_debug_collect(&c)) {
    n = c.n_metrics;
    for (size_t i = 0; i < n && i < capacity; i++) {
      out_names[i] = c.metrics[i]->name;
    }
  }
  cx_debug_collection_free(&c);
  return n;
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
  cx_debug_snapshot s;
  cx_debug_snapshot_take(m, &s);
  double unit = s.unit == CX_UNIT_NS ? 1e9 : 1;
  out_data->samples = s.total;
  out_data->accumulator = s.accumulator / unit;
  if (s.n > 0) out_data->median = cx_debug_snapshot_at(&s, 0.5) / unit;
  cx_debug_snapshot_free(&s);
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
