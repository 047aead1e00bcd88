// profiler/profile: where the time of the steps goes, as a file that Perfetto
// and chrome://tracing show (the Trace Event Format, complete events).
//
// Spans are kept in a few rings, each with a lock of its own; a thread always
// uses the same one, so threads hardly ever meet. A full ring loses its oldest
// spans, and the file says how many. Nothing is allocated before a profile
// begins.
//
// A rank is a process of the picture: a track for its device, one for its
// steps, and one for each of the program's threads. Executions wait for each
// other on a device: what is drawn begins where the one before ended.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "profiler/internal.h"

enum { RINGS = 8, RING_EVENTS = 8192 };
enum { DEVICE_TRACK = 0, STEP_TRACK = 1, FIRST_THREAD = 1 };

typedef struct profile_event {
  int64_t start, end, value;
  const char *file;  // interned
  int line;
  int device, thread;
  cx_trace_kind kind;
  char name[40];
} profile_event;

typedef struct ring {
  cx_mutex lock;
  profile_event *events;  // RING_EVENTS; NULL: none yet
  uint64_t n;             // ever
} ring;

static struct {
  cx_mutex lock;  // of starting and stopping
  bool running, by_environment;
  char *path;
  int64_t start;
} profile = { .lock = CX_MUTEX_INIT };

#define RING              \
  {                       \
    .lock = CX_MUTEX_INIT \
  }
static ring rings[RINGS] = { RING, RING, RING, RING, RING, RING, RING, RING };
static atomic_bool recording;

// ---- recording --------------------------------------------------------------

void cx_profiler_profile_span(const cx_trace_span *span)
{
  if (!atomic_load_explicit(&recording, memory_order_relaxed)) return;
  profile_event e = { .start = span->start,
                      .end = span->end,
                      .value = span->value,
                      .device = span->device,
                      .thread = cx_trace_thread(),
                      .kind = span->kind };
  if (span->site != NULL) {
    e.file = cx_site_intern(span->site).file;
    e.line = span->site->line;
  }
  if (span->name != NULL) strncpy(e.name, span->name, sizeof e.name - 1);
  ring *r = &rings[e.thread % RINGS];
  cx_lock(&r->lock);
  if (r->events == NULL) r->events = malloc(RING_EVENTS * sizeof *r->events);
  if (r->events != NULL) r->events[r->n++ % RING_EVENTS] = e;
  cx_unlock(&r->lock);
}

static void empty_rings(void)
{
  for (int i = 0; i < RINGS; i++) {
    cx_lock(&rings[i].lock);
    free(rings[i].events);
    rings[i].events = NULL;
    rings[i].n = 0;
    cx_unlock(&rings[i].lock);
  }
}

// ---- writing ----------------------------------------------------------------

typedef struct all {
  profile_event *events;
  size_t n, capacity;
  uint64_t lost;
} all;

static bool gather(all *a)
{
  bool ok = true;
  for (int i = 0; i < RINGS && ok; i++) {
    ring *r = &rings[i];
    cx_lock(&r->lock);
    size_t n = r->n < RING_EVENTS ? (size_t)r->n : (size_t)RING_EVENTS;
    ok = cx_grow(&a->events, &a->capacity, a->n + n + 1, sizeof *a->events);
    if (ok && n > 0) {
      memcpy(a->events + a->n, r->events, n * sizeof *r->events);
      a->n += n;
      a->lost += r->n - n;
    }
    cx_unlock(&r->lock);
  }
  return ok;
}

// By time; of those that begin together, what lasts longer is around.
static int by_start(const void *a, const void *b)
{
  const profile_event *x = a, *y = b;
  if (x->start != y->start) return x->start > y->start ? 1 : -1;
  return (x->end < y->end) - (x->end > y->end);
}

static const char *const kind_names[CX_SPAN_KINDS] = {
  [CX_SPAN_TRACE] = "trace",
  [CX_SPAN_SYNC] = "sync",
  [CX_SPAN_COMPILE] = "compile",
  [CX_SPAN_LOAD] = "load from cache",
  [CX_SPAN_EXECUTE] = "execute",
  [CX_SPAN_UPLOAD] = "transfer to device",
  [CX_SPAN_WAIT] = "wait",
  [CX_SPAN_DOWNLOAD] = "transfer from device",
  [CX_SPAN_LOADER] = "wait for batch",
  [CX_SPAN_REGION] = "region",
  [CX_SPAN_STEP] = "step",
};

static int track_of(const profile_event *e)
{
  switch (e->kind) {
    case CX_SPAN_EXECUTE: return DEVICE_TRACK;
    case CX_SPAN_STEP: return STEP_TRACK;
    default: return FIRST_THREAD + e->thread;
  }
}

static void print_us(cx_text *out, int64_t ns)
{
  if (ns < 0) ns = 0;
  cx_text_format(out, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
}

static void print_args(cx_text *out, const profile_event *e)
{
  const char *what = e->kind == CX_SPAN_COMPILE ? "nodes"
                     : e->kind == CX_SPAN_STEP  ? "step"
                                                : "bytes";
  cx_json_key(out, "args");
  cx_text_char(out, '{');
  if (e->file != NULL) cx_json_key_site(out, "site", e->file, e->line);
  if (e->value != 0) cx_json_key_int(out, what, e->value);
  cx_text_append(out, "}}");
}

static void print_event(cx_text *out, const profile_event *e, int64_t zero,
                        int pid)
{
  char step[32];
  snprintf(step, sizeof step, "step %" PRId64, e->value);
  cx_text_append(out, ",\n{");
  cx_json_key_string(out, "name",
                     e->kind == CX_SPAN_STEP ? step
                     : e->name[0] != '\0'    ? e->name
                                             : kind_names[e->kind]);
  cx_json_key_string(out, "cat", kind_names[e->kind]);
  cx_json_key_string(out, "ph", "X");
  cx_json_key(out, "ts");
  print_us(out, e->start - zero);
  cx_json_key(out, "dur");
  print_us(out, e->end - e->start);
  cx_json_key_int(out, "pid", pid);
  cx_json_key_int(out, "tid", track_of(e));
  print_args(out, e);
}

static void print_name(cx_text *out, const char *what, int pid, int tid,
                       const char *name)
{
  cx_text_format(out,
                 ",\n{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                 "\"args\":{\"name\":",
                 what, pid, tid);
  cx_json_string(out, name);
  cx_text_append(out, "}}");
}

static void print_rank(cx_text *out, int pid, int device)
{
  char name[64];
  snprintf(name, sizeof name, "rank %d", pid);
  print_name(out, "process_name", pid, 0, name);
  snprintf(name, sizeof name, "device xla:%d", device);
  print_name(out, "thread_name", pid, DEVICE_TRACK, name);
  print_name(out, "thread_name", pid, STEP_TRACK, "steps");
}

static void print_all(cx_text *out, all *a, int64_t zero)
{
  cx_trace_ranks here = cx_trace_ranks_here();
  int64_t busy_until[CX_PROFILER_MOST_DEVICES] = { 0 };
  bool seen[CX_PROFILER_MOST_DEVICES] = { false };
  cx_text_format(out,
                 "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"version\":\"%s\""
                 ",\"lost\":%" PRIu64
                 "},\"traceEvents\":[\n"
                 "{\"name\":\"calx\",\"ph\":\"M\",\"pid\":%d,\"args\":{}}",
                 CALX_VERSION, a->lost, here.first);
  for (size_t i = 0; i < a->n; i++) {
    profile_event *e = &a->events[i];
    int device = e->device;
    if (e->start < zero) e->start = zero;  // what was before is not shown
    if (e->end < e->start) e->end = e->start;
    if (!seen[device]) print_rank(out, here.first + device, device);
    seen[device] = true;
    if (e->kind == CX_SPAN_EXECUTE) {
      if (e->start < busy_until[device]) e->start = busy_until[device];
      if (e->end < e->start) e->end = e->start;
      busy_until[device] = e->end;
    }
    print_event(out, e, zero, here.first + device);
  }
  cx_text_append(out, "\n]}\n");
}

static calx_status *write_profile(const char *name, int64_t zero)
{
  all a = { 0 };
  cx_text out = { 0 };
  char *path = cx_profiler_path_of_rank(name);
  out.failed = !gather(&a);
  if (!out.failed) {
    qsort(a.events, a.n, sizeof *a.events, by_start);
    print_all(&out, &a, zero);
  }
  calx_status *status = cx_file_write_text(path, &out);
  cx_free(path);
  cx_free(a.events);
  cx_text_free(&out);
  return cx_annotate(status, "while writing the profile");
}

// ---- beginning and end ------------------------------------------------------

calx_status *cx_profiler_profile_start(const char *path, bool by_environment)
{
  if (path == NULL || *path == '\0') {
    return cx_invalid("profile_start: there is no path");
  }
  cx_lock(&profile.lock);
  calx_status *status = NULL;
  if (profile.running) {
    status = cx_error(CALX_FAILED_PRECONDITION,
                      "profile_start: one is running, to '%s'", profile.path);
  } else {
    profile.path = cx_strdup(path);
    if (profile.path == NULL) status = cx_out_of_memory();
  }
  if (status == NULL) {
    profile.running = true;
    profile.by_environment = by_environment;
    profile.start = cx_now_ns();
    empty_rings();  // a thread may have been late for the profile before
    atomic_store(&recording, true);
    cx_trace_want(CX_TRACE_SPANS, true);
  }
  cx_unlock(&profile.lock);
  return status;
}

calx_status *cx_profiler_profile_stop(bool only_environment)
{
  cx_lock(&profile.lock);
  if (!profile.running || (only_environment && !profile.by_environment)) {
    bool running = profile.running;
    cx_unlock(&profile.lock);
    if (running || only_environment) return NULL;
    return cx_error(CALX_FAILED_PRECONDITION, "profile_stop: none is running");
  }
  atomic_store(&recording, false);
  cx_trace_want(CX_TRACE_SPANS, false);
  calx_status *status = write_profile(profile.path, profile.start);
  empty_rings();
  cx_free(profile.path);
  profile.path = NULL;
  profile.running = false;
  cx_unlock(&profile.lock);
  return status;
}

void cx_profiler_profile_open(void)
{
  const char *path = cx_env_text("CALX_PROFILE");
  if (path == NULL) return;
  cx_log_failure("CALX_PROFILE", cx_profiler_profile_start(path, true));
}

void cx_profiler_profile_close(void)
{
  cx_log_failure("CALX_PROFILE", cx_profiler_profile_stop(true));
}
