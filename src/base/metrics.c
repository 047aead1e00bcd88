// base/metrics: two lists that grow by one at a counter's first count.
//
// Clearing marks entries as never counted; they are taken up again at their
// next count, so a cleared name is absent from reports as it is in PyTorch/XLA.
#include "base/metrics.h"

#include <stdlib.h>
#include <string.h>

static cx_mutex lists = CX_MUTEX_INIT;
static cx_counter *counters;
static cx_metric *metrics;

enum { ABSENT = 0, COUNTED = 1, CLEARED = 2 };

static void register_counter(cx_counter *c)
{
  cx_lock(&lists);
  int was = atomic_load(&c->registered);
  if (was == ABSENT) {
    c->next = counters;
    counters = c;
  }
  atomic_store_explicit(&c->registered, COUNTED, memory_order_release);
  cx_unlock(&lists);
}

void cx_counter_add(cx_counter *c, int64_t n)
{
  if (atomic_load_explicit(&c->registered, memory_order_acquire) != COUNTED) {
    register_counter(c);
  }
  atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
}

int64_t cx_counter_total(const cx_counter *c)
{
  return (int64_t)(atomic_load(&((cx_counter *)c)->value) +
                   atomic_load(&((cx_counter *)c)->cleared));
}

static void register_metric(cx_metric *m)
{
  cx_lock(&lists);
  int was = atomic_load(&m->registered);
  if (was == ABSENT) {
    m->next = metrics;
    metrics = m;
  }
  atomic_store_explicit(&m->registered, COUNTED, memory_order_release);
  cx_unlock(&lists);
}

// How many samples are kept; what is no number from 1 on is passed over.
static int64_t window(void)
{
  static const char *const names[] = { "CALX_METRICS_SAMPLES",
                                       "XLA_METRICS_SAMPLES" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *text = getenv(names[i]);
    if (text == NULL || *text == '\0') continue;
    char *end;
    long long n = strtoll(text, &end, 10);
    if (*end != '\0' || n < 1) continue;
    return n < CX_METRIC_MOST_SAMPLES ? n : CX_METRIC_MOST_SAMPLES;
  }
  return CX_METRIC_SAMPLES;
}

// Under the metric's lock. Without memory the totals still count. The ring
// lives as long as the process, outside the counted heap.
static void make_ring(cx_metric *m)
{
  int64_t n = window();
  double *samples = malloc((size_t)n * sizeof *samples);
  int64_t *times = malloc((size_t)n * sizeof *times);
  if (samples == NULL || times == NULL) {
    free(samples);
    free(times);
    return;
  }
  m->window = n;
  m->times = times;
  m->samples = samples;
}

void cx_metric_add(cx_metric *m, double value)
{
  if (atomic_load_explicit(&m->registered, memory_order_acquire) != COUNTED) {
    register_metric(m);
  }
  int64_t now = cx_now_ns();
  cx_lock(&m->lock);
  if (m->samples == NULL) make_ring(m);
  if (m->samples != NULL) {
    m->samples[m->count % m->window] = value;
    m->times[m->count % m->window] = now;
  }
  m->count++;
  m->accumulator += value;
  cx_unlock(&m->lock);
}

void cx_metrics_visit(void (*counter)(void *user, const cx_counter *c),
                      void (*metric)(void *user, cx_metric *m), void *user)
{
  // Entries are never taken off a list, so the heads are all that needs the
  // lock; the callbacks run without it.
  cx_lock(&lists);
  cx_counter *first_counter = counters;
  cx_metric *first_metric = metrics;
  cx_unlock(&lists);
  for (cx_counter *c = first_counter; c != NULL && counter; c = c->next) {
    if (atomic_load(&c->registered) == COUNTED) counter(user, c);
  }
  for (cx_metric *m = first_metric; m != NULL && metric; m = m->next) {
    if (atomic_load(&m->registered) == COUNTED) metric(user, m);
  }
}

cx_counter *cx_counter_find(const char *name)
{
  cx_lock(&lists);
  cx_counter *c = counters;
  while (c != NULL && (strcmp(c->name, name) != 0 ||
                       atomic_load(&c->registered) != COUNTED)) {
    c = c->next;
  }
  cx_unlock(&lists);
  return c;
}

cx_metric *cx_metric_find(const char *name)
{
  cx_lock(&lists);
  cx_metric *m = metrics;
  while (m != NULL && (strcmp(m->name, name) != 0 ||
                       atomic_load(&m->registered) != COUNTED)) {
    m = m->next;
  }
  cx_unlock(&lists);
  return m;
}

void cx_counters_clear(void)
{
  cx_lock(&lists);
  for (cx_counter *c = counters; c != NULL; c = c->next) {
    atomic_store(&c->registered, CLEARED);
    atomic_fetch_add(&c->cleared, atomic_exchange(&c->value, 0));
  }
  cx_unlock(&lists);
}

void cx_samples_clear(void)
{
  cx_lock(&lists);
  for (cx_metric *m = metrics; m != NULL; m = m->next) {
    atomic_store(&m->registered, CLEARED);
    cx_lock(&m->lock);
    m->count = 0;
    m->accumulator = 0;
    cx_unlock(&m->lock);
  }
  cx_unlock(&lists);
}

void cx_metrics_clear(void)
{
  cx_counters_clear();
  cx_samples_clear();
}
