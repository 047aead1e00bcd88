// profiler/profiler: forwards the events of base/trace to the profiler's parts.
//
// Events come from any thread, and often with a device's lock held: no part
// calls a function that runs steps.
#include "profiler/profiler.h"

#include <stdlib.h>

#include "profiler/internal.h"

static struct {
  cx_mutex lock;
  int kinds;  // CX_TRACE_…, that the environment wanted at the last opening
  bool at_exit;
} opened = { .lock = CX_MUTEX_INIT };

static atomic_llong steps;  // syncs of the process's first rank
static struct {
  atomic_llong last;  // end of its last sync, ns; 0: it had none
  atomic_llong steps;
} devices[CX_PROFILER_MOST_DEVICES];

// ---- events -----------------------------------------------------------------

static void forward_span(const cx_trace_span *span)
{
  cx_profiler_profile_span(span);
  cx_profiler_record_span(span);
}

// A step lasts from the end of a sync to the end of the next one. Until the
// next one begins, the program records.
static void add_step_spans(const cx_trace_span *sync)
{
  int64_t last = atomic_exchange(&devices[sync->device].last, sync->end);
  int64_t n = atomic_fetch_add(&devices[sync->device].steps, 1) + 1;
  int64_t recorded = cx_trace_own_take();
  cx_trace_span span = *sync;
  if (last == 0) return;
  span.kind = CX_SPAN_TRACE;
  span.start = last;
  span.end = sync->start;
  span.site = NULL;
  forward_span(&span);
  cx_trace_span own = { .kind = CX_SPAN_RECORD,
                        .device = sync->device,
                        .start = last,
                        .end = last + recorded };
  cx_profiler_record_span(&own);
  span.kind = CX_SPAN_STEP;
  span.end = sync->end;
  span.value = n;
  span.site = sync->site;
  forward_span(&span);
}

static void on_span(const cx_trace_span *span)
{
  if (span->device < 0 || span->device >= CX_PROFILER_MOST_DEVICES) return;
  forward_span(span);
  if (span->kind == CX_SPAN_SYNC) add_step_spans(span);
}

static void on_execute(const cx_trace_program *program)
{
  cx_profiler_analysis_execute(program);
  cx_profiler_record_execute(program);
}

static void on_step(int device)
{
  cx_profiler_habits_step(device);
  if (device != 0) return;
  cx_profiler_metrics_file_step(atomic_fetch_add(&steps, 1) + 1);
}

static const cx_trace_listener listener = {
  .span = on_span,
  .compile = cx_profiler_analysis_compile,
  .compiled = cx_profiler_analysis_compiled,
  .execute = on_execute,
  .recompile = cx_profiler_record_recompile,
  .step = on_step,
};

// ---- opening and close ------------------------------------------------------

static void forget_last_syncs(void)
{
  for (int i = 0; i < CX_PROFILER_MOST_DEVICES; i++) {
    atomic_store(&devices[i].last, 0);
  }
}

void cx_profiler_open(const char *plugin, const char *platform)
{
  int kinds = CX_TRACE_STEPS;
  cx_profiler_metrics_file_open();
  cx_profiler_habits_open();
  if (cx_profiler_record_open(plugin, platform)) {
    cx_profiler_interrupt_open();
    kinds |= CX_TRACE_SPANS | CX_TRACE_PROGRAMS;
  }
  if (cx_profiler_analysis_open()) kinds |= CX_TRACE_PROGRAMS;
  cx_lock(&opened.lock);
  cx_trace_want(opened.kinds, false);
  opened.kinds = kinds;
  forget_last_syncs();
  for (int i = 0; i < CX_PROFILER_MOST_DEVICES; i++) {
    atomic_store(&devices[i].steps, 0);
  }
  cx_trace_listen(&listener);
  cx_trace_want(kinds, true);
  bool first = !opened.at_exit;
  opened.at_exit = true;
  cx_unlock(&opened.lock);
  cx_profiler_profile_open();
  // A program need not call calx_shutdown().
  if (first) atexit(cx_profiler_close);
}

void cx_profiler_close(void)
{
  cx_profiler_profile_close();
  cx_profiler_interrupt_close();
  cx_profiler_record_close();
  cx_lock(&opened.lock);
  cx_trace_want(opened.kinds, false);
  opened.kinds = 0;
  cx_unlock(&opened.lock);
}

// While nobody wanted spans no sync was reported: the last one that was is not
// the device's last any more.
static void listen_anew(void)
{
  if (!cx_trace_wanted(CX_TRACE_SPANS)) forget_last_syncs();
  cx_trace_listen(&listener);
}

void cx_profiler_watch(bool on)
{
  if (on) listen_anew();
  cx_profiler_record_watch(on);
  cx_trace_want(CX_TRACE_SPANS | CX_TRACE_PROGRAMS, on);
}

calx_status *cx_profiler_start(const char *path)
{
  listen_anew();
  return cx_profiler_profile_start(path, false);
}

calx_status *cx_profiler_stop(void)
{
  return cx_profiler_profile_stop(false);
}
