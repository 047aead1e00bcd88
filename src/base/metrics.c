// base/metrics: two lists that grow by one at a counter's first count.
//
// Clearing marks entries as never counted; they are taken up again at their
// next count, so a cleared name is absent from reports as it is in PyTorch/XLA.
#include "base/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/options.h"

static cx_mutex lock = CX_MUTEX_INIT;
static cx_metric_entry *lists[2];  // by cx_metric_kind

enum { ABSENT = 0, COUNTED = 1, CLEARED = 2 };

static inline bool is_counted(cx_metric_entry *e)
{
  return atomic_load_explicit(&e->registered, memory_order_acquire) == COUNTED;
}

static void enlist(cx_metric_kind kind, cx_metric_entry *e)
{
  cx_lock(&lock);
  if (atomic_load(&e->registered) == ABSENT) {
    e->next = lists[kind];
    lists[kind] = e;
  }
  atomic_store_explicit(&e->registered, COUNTED, memory_order_release);
  cx_unlock(&lock);
}

void cx_counter_add(cx_counter *c, int64_t n)
{
  if (!is_counted(&c->entry)) enlist(CX_COUNTERS, &c->entry);
  atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
}

int64_t cx_counter_total(const cx_counter *c)
{
  return (int64_t)(atomic_load(&((cx_counter *)c)->value) +
                   atomic_load(&((cx_counter *)c)->cleared));
}

// How many samples are kept; what is no number from 1 on is passed over.
static int64_t window(void)
{
  static const char *const names[] = { "CALX_METRICS_SAMPLES",
                                       "XLA_METRICS_SAMPLES" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *text = cx_env_text(names[i]);
    int64_t n;
    if (text == NULL || !cx_read_int(text, 1, INT64_MAX, &n)) continue;
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
  if (!is_counted(&m->entry)) enlist(CX_METRICS, &m->entry);
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

// Entries are never taken off a list, so the head is all that needs the lock.
cx_metric_entry *cx_metrics_next(cx_metric_kind kind,
                                 const cx_metric_entry *entry)
{
  cx_lock(&lock);
  cx_metric_entry *e = entry != NULL ? entry->next : lists[kind];
  cx_unlock(&lock);
  while (e != NULL && !is_counted(e)) e = e->next;
  return e;
}

static void *find(cx_metric_kind kind, const char *name)
{
  cx_metric_entry *e = cx_metrics_next(kind, NULL);
  while (e != NULL && strcmp(e->name, name) != 0) e = cx_metrics_next(kind, e);
  return e;
}

cx_counter *cx_counter_find(const char *name)
{
  return find(CX_COUNTERS, name);
}

cx_metric *cx_metric_find(const char *name)
{
  return find(CX_METRICS, name);
}

void cx_counters_clear(void)
{
  cx_lock(&lock);
  for (cx_metric_entry *e = lists[CX_COUNTERS]; e != NULL; e = e->next) {
    cx_counter *c = (cx_counter *)e;
    atomic_store(&e->registered, CLEARED);
    atomic_fetch_add(&c->cleared, atomic_exchange(&c->value, 0));
  }
  cx_unlock(&lock);
}

void cx_samples_clear(void)
{
  cx_lock(&lock);
  for (cx_metric_entry *e = lists[CX_METRICS]; e != NULL; e = e->next) {
    cx_metric *m = (cx_metric *)e;
    atomic_store(&e->registered, CLEARED);
    cx_lock(&m->lock);
    m->count = 0;
    m->accumulator = 0;
    cx_unlock(&m->lock);
  }
  cx_unlock(&lock);
}

void cx_metrics_clear(void)
{
  cx_counters_clear();
  cx_samples_clear();
}
