// profiler/habits: lines about what a training loop does too often or too
// slowly, while it runs; PyTorch/XLA prints the same with the prefix
// pt-xla-profiler. Each line is written once in a process; with CALX_QUIET=1
// none is.
//
// The check takes time, so it is made after steps 1, 2, 4, 8, 10, 20, 30, 50,
// 90, … of the first device. The first ten steps do not count: they compile
// programs. The metrics are of all devices of the process, and so are the steps
// that they are compared with.
#include <inttypes.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/metrics.h"
#include "base/text.h"
#include "profiler/internal.h"
#include "profiler/metric.h"
#include "profiler/profiler.h"

enum { WARM_UP = 10 };
#define TOO_OFTEN 0.5  // a step
#define SLOW_COMPILE 300e9
#define SLOW_EXECUTE 30e9

typedef struct habit {
  const char *metric, *advice;
  double slow;      // ns; 0: it is never too slow
  bool is_counted;  // whether it can be too frequent
  bool is_read;     // the library's own reads are left out
  int64_t before;   // samples at the end of the warm-up
  int64_t steps;    // of all devices then
  bool reported_frequent, reported_slow;
} habit;

static habit habits[] = {
  { .metric = "CompileTime",
    .advice = "CALX_REPORT=FILE and calx report FILE tell why",
    .slow = SLOW_COMPILE,
    .is_counted = true },
  { .metric = "TransferFromDeviceTime",
    .advice = "read values every so many steps, or a step late when "
              "calx_is_ready",
    .is_counted = true,
    .is_read = true },
  { .metric = "ExecuteTime",
    .advice = "CALX_PROFILE=FILE shows when",
    .slow = SLOW_EXECUTE },
};

static atomic_llong own_reads;  // among the transfers from the device
static atomic_llong next_look = 1;
static atomic_llong n_steps;    // of the first device
static atomic_llong all_steps;  // of all
// Held by the thread that looks: several threads may step one device. Others
// do not wait, because a log callback may take steps too.
static atomic_flag is_looking = ATOMIC_FLAG_INIT;

void cx_profiler_own_read(void)
{
  atomic_fetch_add(&own_reads, 1);
}

void cx_profiler_habits_open(void)
{
  atomic_store(&n_steps, 0);
  atomic_store(&all_steps, 0);
  atomic_store(&next_look, 1);
}

static int64_t after(int64_t n)
{
  if (n < WARM_UP) return 2 * n < WARM_UP ? 2 * n : WARM_UP;
  return n == WARM_UP ? 2 * WARM_UP : WARM_UP + 2 * (n - WARM_UP);
}

static double longest(cx_metric *m)
{
  cx_profiler_snapshot s;
  cx_profiler_snapshot_take(m, &s);
  double ns = s.n > 0 ? s.samples[s.n - 1] : 0;
  cx_profiler_snapshot_free(&s);
  return ns;
}

static void look_at_time(habit *h, cx_metric *m)
{
  if (h->slow == 0 || h->reported_slow) return;
  double ns = longest(m);
  if (ns <= h->slow) return;
  h->reported_slow = true;
  cx_text time = { 0 };
  cx_profiler_time(&time, ns);
  cx_log("%s too slow: longest instance took %s; %s", h->metric,
         cx_text_str(&time), h->advice);
  cx_text_free(&time);
}

static void look_at_count(habit *h, int64_t count, bool warm, int64_t all)
{
  if (!h->is_counted || h->reported_frequent) return;
  if (!warm || count < h->before) h->before = count;  // or cleared
  if (!warm) h->steps = all;
  if (!warm) return;
  int64_t counts = count - h->before, steps = all - h->steps;
  if ((double)counts <= TOO_OFTEN * (double)steps) return;
  h->reported_frequent = true;
  cx_log("%s too frequent: %" PRId64 " counts during %" PRId64 " steps; %s",
         h->metric, counts, steps, h->advice);
}

// all: steps of all devices so far.
static void look_at_habits(bool warm, int64_t all)
{
  for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
    habit *h = &habits[i];
    cx_metric *m = cx_metric_find(h->metric);
    if (m == NULL) continue;
    cx_lock(&m->lock);
    int64_t count = m->count;
    cx_unlock(&m->lock);
    if (h->is_read) count -= atomic_load(&own_reads);
    look_at_time(h, m);
    look_at_count(h, count, warm, all);
  }
}

void cx_profiler_habits_step(int device)
{
  int64_t all = atomic_fetch_add(&all_steps, 1) + 1;
  if (device != 0) return;
  int64_t n = atomic_fetch_add(&n_steps, 1) + 1;
  if (n < atomic_load(&next_look) || atomic_flag_test_and_set(&is_looking))
    return;
  atomic_store(&next_look, after(n));
  const char *quiet = cx_env_text("CALX_QUIET");
  if (quiet == NULL || *quiet == '0') look_at_habits(n > WARM_UP, all);
  atomic_flag_clear(&is_looking);
}

void cx_profiler_habits_forget(void)
{
  for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
    habits[i].reported_frequent = habits[i].reported_slow = false;
    habits[i].before = 0;
  }
}
