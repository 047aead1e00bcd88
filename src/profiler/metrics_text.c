// profiler/metrics_text: counters and timers for people, in the form of
// PyTorch/XLA's metrics_report, which its users' scripts read: all metrics by
// name, then all counters. The percentile p is element floor(p * n) of the n
// newest samples in ascending order.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/status.h"
#include "profiler/metric.h"
#include "profiler/profiler.h"

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
    const char *text = cx_env_text(names[i]);
    if (text == NULL) continue;
    if (read_fractions(text, out)) return;
    cx_log_once_per_site(names[i],
                         "%s: '%s' is not a list of numbers between 0 and 1 "
                         "with colons between them; %s is used",
                         names[i], text, standard);
  }
  read_fractions(standard, out);
}

// ---- the report -------------------------------------------------------------

static void print_rates(cx_text *out, const cx_profiler_snapshot *s)
{
  if (s->span <= 0) return;
  double seconds = (double)s->span / 1e9;
  cx_text_append(out, "  ValueRate: ");
  cx_profiler_value(out, s->unit, s->window_sum / seconds);
  cx_text_append(out, " / second\n");
  cx_text_append(out, "  Rate: ");
  cx_text_real(out, "%g", (double)s->n / seconds);
  cx_text_append(out, " / second\n");
}

static void print_percentiles(cx_text *out, const cx_profiler_snapshot *s,
                              const fractions *f)
{
  if (s->n == 0) return;
  cx_text_append(out, "  Percentiles: ");
  for (size_t i = 0; i < f->n; i++) {
    if (i > 0) cx_text_append(out, "; ");
    cx_text_real(out, "%g", f->p[i] * 100);
    cx_text_append(out, "%=");
    cx_profiler_value(out, s->unit, cx_profiler_snapshot_at(s, f->p[i]));
  }
  cx_text_char(out, '\n');
}

static void print_metric(cx_text *out, cx_metric *m, const fractions *f)
{
  cx_profiler_snapshot s;
  out->failed |= !cx_profiler_snapshot_take(m, &s);
  cx_text_format(out, "Metric: %s\n  TotalSamples: %" PRId64 "\n",
                 m->entry.name, s.total);
  cx_text_append(out, "  Accumulator: ");
  cx_profiler_value(out, s.unit, s.accumulator);
  cx_text_char(out, '\n');
  print_rates(out, &s);
  print_percentiles(out, &s, f);
  cx_profiler_snapshot_free(&s);
}

static void print_counter(cx_text *out, const cx_counter *c)
{
  cx_text_format(out, "Counter: %s\n  Value: %lld\n", c->entry.name,
                 (long long)atomic_load(&((cx_counter *)c)->value));
}

static void print_counters(cx_text *out, bool only_fallback)
{
  cx_profiler_entries e;
  out->failed |= !cx_profiler_collect(CX_COUNTERS, &e);
  for (size_t i = 0; i < e.n; i++) {
    if (only_fallback && !cx_profiler_is_fallback(e.all[i]->name)) continue;
    print_counter(out, (cx_counter *)e.all[i]);
  }
  cx_free(e.all);
}

char *cx_profiler_metrics_text(void)
{
  cx_profiler_entries e;
  cx_text out = { 0 };
  fractions f;
  find_fractions(&f);
  out.failed |= !cx_profiler_collect(CX_METRICS, &e);
  for (size_t i = 0; i < e.n; i++) {
    print_metric(&out, (cx_metric *)e.all[i], &f);
  }
  cx_free(e.all);
  print_counters(&out, false);
  return cx_text_take(&out);
}

// In the lists' order; then what ran on the host, if it was not asked for.
char *cx_profiler_metrics_short_text(const char *const *counters,
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
    if (c != NULL && !cx_profiler_is_fallback(c->entry.name)) {
      print_counter(&out, c);
    }
  }
  print_counters(&out, true);
  return cx_text_take(&out);
}
