// debug/run_data: what a step takes on average, from the data of a run.
#include <math.h>

#include "base/alloc.h"
#include "debug/advise.h"

void cx_debug_run_free(cx_debug_run_data *run)
{
  cx_free(run->steps);
  cx_free(run->compiles);
  cx_free(run->sites);
  cx_debug_report_free(&run->report);
  *run = (cx_debug_run_data){ 0 };
}

// Sums of the steps after the first `skipped` ones.
static cx_debug_times sum_steps(const cx_debug_run_data *run, int skipped)
{
  cx_debug_times t = { 0 };
  for (size_t i = 0; i < run->n_steps; i++) {
    const cx_debug_run_step *s = &run->steps[i];
    if (s->first <= skipped) continue;
    t.steps += s->n;
    t.step += s->seconds;
    for (int k = 0; k < CX_PROFILER_PARTS; k++) t.part[k] += s->part[k];
  }
  return t;
}

// What the library needs: recording, and in a sync all but what it waits for.
static void split_host(cx_debug_times *t)
{
  double syncing = t->part[CX_PROFILER_SYNC] - t->part[CX_PROFILER_COMPILE] -
                   t->part[CX_PROFILER_WAIT];
  t->own = fmin(t->part[CX_PROFILER_RECORD] + fmax(syncing, 0), t->host);
  t->user = t->host - t->own;
}

// The first ten are left out where enough others are there.
cx_debug_times cx_debug_run_times(const cx_debug_run_data *run)
{
  cx_debug_times t = sum_steps(run, CX_DEBUG_WARM_UP);
  if (t.steps < CX_DEBUG_WARM_UP) t = sum_steps(run, 0);
  if (t.steps == 0) return t;
  t.step /= (double)t.steps;
  for (int k = 0; k < CX_PROFILER_PARTS; k++) t.part[k] /= (double)t.steps;
  // The last execution ends in a later step.
  double *execute = &t.part[CX_PROFILER_EXECUTE];
  *execute = fmin(*execute, t.step);
  t.host = fmax(0, t.step - t.part[CX_PROFILER_COMPILE] -
                       t.part[CX_PROFILER_DOWNLOAD] - t.part[CX_PROFILER_WAIT] -
                       t.part[CX_PROFILER_LOADER]);
  if (run->has_own) split_host(&t);
  return t;
}
