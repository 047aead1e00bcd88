// debug/listen: the library's side of base/trace.
//
// What is told comes from any thread, and often with a device's lock held: no
// listener calls back into the library's rooms that run steps.
#include "debug/listen.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

enum { KINDS = 3 };

static struct {
  cx_mutex lock;
  int count[KINDS];  // how many want each
  int opened;        // what the environment wanted of them
  bool at_exit;
} wanted = { .lock = CX_MUTEX_INIT };

static atomic_llong steps;  // syncs of the process's first rank
static struct {
  atomic_llong last;  // when its last sync ended; 0: it had none
  atomic_llong steps;
} devices[CX_DEBUG_MOST_DEVICES];

// ---- what all of them use ---------------------------------------------------

// While nobody listens no sync is told: what was the last one is not any more.
static void forget_last_syncs(void)
{
  for (int i = 0; i < CX_DEBUG_MOST_DEVICES; i++) {
    atomic_store(&devices[i].last, 0);
  }
}

static void count(int what, int change)
{
  int now = 0, before = atomic_load(&cx_trace_listeners);
  for (int k = 0; k < KINDS; k++) {
    if ((what & (1 << k)) != 0) wanted.count[k] += change;
    if (wanted.count[k] > 0) now |= 1 << k;
  }
  if ((now & ~before & CX_TRACE_SPANS) != 0) forget_last_syncs();
  atomic_store(&cx_trace_listeners, now);
}

void cx_debug_listen(int what, bool on)
{
  cx_lock(&wanted.lock);
  count(what, on ? 1 : -1);
  cx_unlock(&wanted.lock);
}

const char *cx_debug_env(const char *name, const char *other_name)
{
  const char *text = getenv(name);
  if (text != NULL && *text != '\0') return text;
  text = other_name != NULL ? getenv(other_name) : NULL;
  return text != NULL && *text != '\0' ? text : NULL;
}

char *cx_debug_path_of_rank(const char *path)
{
  cx_trace_place here = cx_trace_here();
  cx_text out = { 0 };
  cx_text_append(&out, path);
  if (here.size > 1 && !cx_file_is_stream(path))
    cx_text_format(&out, ".%d", here.first);
  return cx_text_take(&out);
}

// ---- what is told -----------------------------------------------------------

void cx_trace_tell_open(const char *plugin, const char *platform)
{
  int what = CX_TRACE_STEPS;
  cx_debug_metrics_file_open();
  cx_debug_habits_open();
  if (cx_debug_record_open(plugin, platform)) {
    what |= CX_TRACE_SPANS | CX_TRACE_PROGRAMS;
  }
  if (cx_debug_analysis_open()) what |= CX_TRACE_PROGRAMS;
  cx_lock(&wanted.lock);
  count(wanted.opened, -1);
  wanted.opened = what;
  forget_last_syncs();
  for (int i = 0; i < CX_DEBUG_MOST_DEVICES; i++) {
    atomic_store(&devices[i].steps, 0);
  }
  count(what, 1);
  bool first = !wanted.at_exit;
  wanted.at_exit = true;
  cx_unlock(&wanted.lock);
  cx_debug_profile_open();
  // A program need not call calx_shutdown().
  if (first) atexit(cx_trace_tell_close);
}

void cx_trace_tell_close(void)
{
  cx_debug_profile_close();
  cx_debug_record_close();
  cx_lock(&wanted.lock);
  count(wanted.opened, -1);
  wanted.opened = 0;
  cx_unlock(&wanted.lock);
}

static void hand_out(const cx_trace_span *span)
{
  cx_debug_profile_span(span);
  cx_debug_record_span(span);
}

// From a sync's end to the next one's is a step; until that one begins, the
// program records.
static void tell_step_spans(const cx_trace_span *sync)
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
  hand_out(&span);
  cx_trace_span own = { .kind = CX_SPAN_RECORD,
                        .device = sync->device,
                        .start = last,
                        .end = last + recorded };
  cx_debug_record_span(&own);
  span.kind = CX_SPAN_STEP;
  span.end = sync->end;
  span.value = n;
  span.site = sync->site;
  hand_out(&span);
}

void cx_trace_tell_span(const cx_trace_span *span)
{
  if (span->device < 0 || span->device >= CX_DEBUG_MOST_DEVICES) return;
  hand_out(span);
  if (span->kind == CX_SPAN_SYNC) tell_step_spans(span);
}

void cx_trace_tell_compile(const cx_trace_program *program)
{
  cx_debug_analysis_compile(program);
  cx_debug_progress_compile();
}

void cx_trace_tell_compiled(const cx_trace_program *program,
                            const cx_trace_sizes *sizes)
{
  cx_debug_analysis_compiled(program, sizes);
  cx_debug_progress_compiled();
}

void cx_trace_tell_execute(const cx_trace_program *program)
{
  cx_debug_analysis_execute(program);
  cx_debug_record_execute(program);
}

void cx_trace_tell_recompile(int device, const char *why)
{
  cx_debug_record_recompile(device, why);
}

void cx_trace_tell_step(int device)
{
  cx_debug_habits_step(device);
  if (device != 0) return;
  cx_debug_metrics_file_step(atomic_fetch_add(&steps, 1) + 1);
}
