// profiler/record: CALX_REPORT=FILE: what a run did, for `calx report FILE`.
//
// One JSON object, written when the devices are closed, the process ends, or
// SIGINT or SIGTERM comes: the time of each step and its parts, each
// compilation with its cause, where values were read, all counters and timers.
// It is of the process's first rank, except for the counters and timers, which
// all devices of the process share; the file says how many of them synced. The
// sizes are bounded: steps are put together in pairs when there are too many,
// and further compilations and call sites are only counted.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "profiler/internal.h"
#include "profiler/metric.h"
#include "profiler/profiler.h"

enum { MOST_STEPS = 2048, MOST_COMPILES = 256, MOST_SITES = 64, WHY = 400 };

const char *const cx_profiler_part_names[] = { "compile",  "execute", "upload",
                                               "download", "wait",    "loader",
                                               "sync",     "record" };
static const cx_trace_kind part_kinds[] = { CX_SPAN_COMPILE, CX_SPAN_EXECUTE,
                                            CX_SPAN_UPLOAD,  CX_SPAN_DOWNLOAD,
                                            CX_SPAN_WAIT,    CX_SPAN_LOADER,
                                            CX_SPAN_SYNC,    CX_SPAN_RECORD };

typedef struct record_step {  // or several in a row
  int64_t first, n;
  int64_t start, ns;  // start: since the opening
  int64_t part[CX_PROFILER_PARTS];
} record_step;

typedef struct compile {
  int64_t at, ns, step, nodes;
  const char *file;  // interned
  int line;
  bool loaded;
  char why[WHY];
} compile;

typedef struct read_site {
  const char *file;  // interned
  int line;
  int64_t reads, ns, early;
} read_site;

typedef struct run_record {
  int64_t opened;
  char plugin[64], platform[64];
  record_step steps[MOST_STEPS];
  size_t n_steps;
  int64_t per_step;  // that one entry holds
  int64_t syncs;
  bool synced[CX_PROFILER_MOST_DEVICES];
  int devices;                      // of them
  int64_t part[CX_PROFILER_PARTS];  // since the last step ended
  int64_t setup;                    // until the first sync's end
  int64_t busy_until;               // of the device
  compile compiles[MOST_COMPILES];
  int64_t n_compiles;  // ever
  bool load_seen;      // inside of the compilation that goes on
  char why[WHY];       // of the next one
  read_site sites[MOST_SITES];
  size_t n_sites;
  int64_t other_reads;
} run_record;

static cx_mutex lock = CX_MUTEX_INIT;
static run_record *now;  // NULL: nobody wants it

// ---- what happens -----------------------------------------------------------

bool cx_profiler_record_open(const char *plugin, const char *platform)
{
  if (cx_env_text("CALX_REPORT") == NULL) return false;
  cx_lock(&lock);
  if (now == NULL) now = calloc(1, sizeof *now);  // outside the counted heap
  if (now != NULL) {
    memset(now, 0, sizeof *now);
    now->opened = cx_now_ns();
    now->per_step = 1;
    strncpy(now->plugin, plugin, sizeof now->plugin - 1);
    strncpy(now->platform, platform, sizeof now->platform - 1);
  }
  bool on = now != NULL;
  cx_unlock(&lock);
  return on;
}

static read_site *find_site(run_record *r, const calx_site *site)
{
  if (site == NULL || site->file == NULL) return NULL;
  for (size_t i = 0; i < r->n_sites; i++) {
    read_site *p = &r->sites[i];
    if (p->line == site->line && strcmp(p->file, site->file) == 0) return p;
  }
  if (r->n_sites == MOST_SITES) return NULL;
  read_site *p = &r->sites[r->n_sites++];
  *p = (read_site){ .file = cx_site_intern(site).file, .line = site->line };
  return p;
}

// Neighbours become one: half as many, each of twice the steps.
static void halve(run_record *r)
{
  for (size_t i = 0; i < MOST_STEPS / 2; i++) {
    record_step a = r->steps[2 * i];
    const record_step *b = &r->steps[2 * i + 1];
    a.n += b->n;
    a.ns += b->ns;
    for (int k = 0; k < CX_PROFILER_PARTS; k++) a.part[k] += b->part[k];
    r->steps[i] = a;
  }
  r->n_steps = MOST_STEPS / 2;
  r->per_step *= 2;
}

static void end_step(run_record *r, const cx_trace_span *span)
{
  record_step *last = r->n_steps > 0 ? &r->steps[r->n_steps - 1] : NULL;
  if (last == NULL || last->n == r->per_step) {
    if (r->n_steps == MOST_STEPS) halve(r);
    last = &r->steps[r->n_steps++];
    *last =
        (record_step){ .first = span->value, .start = span->start - r->opened };
  }
  last->n++;
  last->ns += span->end - span->start;
  for (int k = 0; k < CX_PROFILER_PARTS; k++) {
    last->part[k] += r->part[k];
    r->part[k] = 0;
  }
}

static void add_compile(run_record *r, const cx_trace_span *span)
{
  int64_t i = r->n_compiles++;
  if (i < MOST_COMPILES) {
    compile *c = &r->compiles[i];
    *c = (compile){ .at = span->start - r->opened,
                    .ns = span->end - span->start,
                    .step = r->syncs + 1,
                    .nodes = span->value,
                    .loaded = r->load_seen };
    if (span->site != NULL) {
      c->file = cx_site_intern(span->site).file;
      c->line = span->site->line;
    }
    memcpy(c->why, r->why, sizeof c->why);
  }
  r->load_seen = false;
  r->why[0] = '\0';
}

static void add_read(run_record *r, const cx_trace_span *span)
{
  read_site *p = find_site(r, span->site);
  if (p == NULL) {
    r->other_reads++;
    return;
  }
  p->reads++;
  p->ns += span->end - span->start;
}

static void add_part(run_record *r, const cx_trace_span *span)
{
  int64_t start = span->start;
  if (span->kind == CX_SPAN_EXECUTE) {  // one after the other on the device
    if (start < r->busy_until) start = r->busy_until;
    if (span->end <= start) return;
    r->busy_until = span->end;
  }
  for (int k = 0; k < CX_PROFILER_PARTS; k++) {
    if (part_kinds[k] == span->kind) r->part[k] += span->end - start;
  }
}

static void count_device(run_record *r, const cx_trace_span *span)
{
  if (span->kind != CX_SPAN_SYNC || r->synced[span->device]) return;
  r->synced[span->device] = true;
  r->devices++;
}

void cx_profiler_record_span(const cx_trace_span *span)
{
  if (span->device != 0 && span->kind != CX_SPAN_SYNC) return;
  cx_lock(&lock);
  run_record *r = now;
  if (r != NULL) count_device(r, span);
  if (r != NULL && span->device == 0) {
    add_part(r, span);
    switch (span->kind) {
      case CX_SPAN_LOAD: r->load_seen = true; break;
      case CX_SPAN_COMPILE: add_compile(r, span); break;
      case CX_SPAN_DOWNLOAD: add_read(r, span); break;
      case CX_SPAN_SYNC:
        r->why[0] = '\0';  // of a program that did not come to be
        if (r->syncs++ > 0) break;
        r->setup = span->end - r->opened;
        memset(r->part, 0, sizeof r->part);
        break;
      case CX_SPAN_STEP: end_step(r, span); break;
      default: break;
    }
  }
  cx_unlock(&lock);
}

void cx_profiler_record_execute(const cx_trace_program *p)
{
  if (p->device != 0 || p->cause != CX_CAUSE_READ) return;
  cx_lock(&lock);
  read_site *at = now != NULL ? find_site(now, p->site) : NULL;
  if (at != NULL) at->early++;
  cx_unlock(&lock);
}

void cx_profiler_record_recompile(int device, const char *why)
{
  if (device != 0) return;
  cx_lock(&lock);
  if (now != NULL) snprintf(now->why, sizeof now->why, "%s", why);
  cx_unlock(&lock);
}

// ---- the file ---------------------------------------------------------------

static void seconds(cx_text *out, const char *name, int64_t ns)
{
  cx_json_key_number(out, name, (double)ns / 1e9);
}

// An object in an array, on a line of its own.
static void begin_row(cx_text *out, bool first)
{
  cx_text_append(out, first ? "\n{" : ",\n{");
}

static void print_head(cx_text *out, const run_record *r)
{
  cx_trace_ranks here = cx_trace_ranks_here();
  cx_text_char(out, '{');
  cx_json_key_int(out, "calx_report", 1);
  cx_json_key_string(out, "version", CALX_VERSION);
  cx_json_key_string(out, "plugin", r->plugin);
  cx_json_key_string(out, "platform", r->platform);
  cx_json_key_int(out, "rank", here.first);
  cx_json_key_int(out, "world", here.size);
  cx_json_key_int(out, "devices", r->devices);
  seconds(out, "seconds", cx_now_ns() - r->opened);
  seconds(out, "setup", r->setup);
  cx_json_key_int(out, "syncs", r->syncs);
  cx_json_key_int(out, "compilations", r->n_compiles);
  cx_json_key_int(out, "other_reads", r->other_reads);
}

static void print_steps(cx_text *out, const run_record *r)
{
  cx_text_append(out, ",\n\"steps\":[");
  for (size_t i = 0; i < r->n_steps; i++) {
    const record_step *s = &r->steps[i];
    begin_row(out, i == 0);
    cx_json_key_int(out, "first", s->first);
    cx_json_key_int(out, "n", s->n);
    seconds(out, "start", s->start);
    seconds(out, "seconds", s->ns);
    for (int k = 0; k < CX_PROFILER_PARTS; k++) {
      seconds(out, cx_profiler_part_names[k], s->part[k]);
    }
    cx_text_char(out, '}');
  }
  cx_text_char(out, ']');
}

static void print_compiles(cx_text *out, const run_record *r)
{
  cx_text_append(out, ",\n\"compiles\":[");
  for (int64_t i = 0; i < r->n_compiles && i < MOST_COMPILES; i++) {
    const compile *c = &r->compiles[i];
    begin_row(out, i == 0);
    seconds(out, "at", c->at);
    seconds(out, "seconds", c->ns);
    cx_json_key_int(out, "step", c->step);
    cx_json_key_int(out, "nodes", c->nodes);
    cx_json_key(out, "loaded");
    cx_text_append(out, c->loaded ? "true" : "false");
    cx_json_key_site(out, "site", c->file, c->line);
    cx_json_key_string(out, "why", c->why);
    cx_text_char(out, '}');
  }
  cx_text_char(out, ']');
}

static void print_reads(cx_text *out, const run_record *r)
{
  cx_text_append(out, ",\n\"reads\":[");
  for (size_t i = 0; i < r->n_sites; i++) {
    const read_site *p = &r->sites[i];
    begin_row(out, i == 0);
    cx_json_key_site(out, "site", p->file, p->line);
    cx_json_key_int(out, "count", p->reads);
    cx_json_key_int(out, "early", p->early);
    seconds(out, "seconds", p->ns);
    cx_text_char(out, '}');
  }
  cx_text_char(out, ']');
}

static void print_metric(cx_text *out, cx_metric *m)
{
  static const struct {
    const char *name;
    double fraction;
  } points[] = { { "p50", 0.5 }, { "p95", 0.95 }, { "max", 1 } };
  static const char *const units[] = {
    [CX_UNIT_NONE] = "", [CX_UNIT_NS] = "s", [CX_UNIT_BYTES] = "B"
  };
  cx_profiler_snapshot s;
  out->failed |= !cx_profiler_snapshot_take(m, &s);
  double unit = s.unit == CX_UNIT_NS ? 1e9 : 1;
  cx_text_char(out, '{');
  cx_json_key_string(out, "unit", units[s.unit]);
  cx_json_key_int(out, "samples", s.total);
  cx_json_key_number(out, "sum", s.accumulator / unit);
  for (size_t i = 0; i < sizeof points / sizeof *points && s.n > 0; i++) {
    double value = cx_profiler_snapshot_at(&s, points[i].fraction);
    cx_json_key_number(out, points[i].name, value / unit);
  }
  cx_text_char(out, '}');
  cx_profiler_snapshot_free(&s);
}

// All of a kind, each by its name.
static void print_entries(cx_text *out, cx_metric_kind kind)
{
  cx_profiler_entries e;
  out->failed |= !cx_profiler_collect(kind, &e);
  cx_text_char(out, '{');
  for (size_t i = 0; i < e.n; i++) {
    cx_json_key(out, e.all[i]->name);
    if (kind == CX_METRICS) {
      print_metric(out, (cx_metric *)e.all[i]);
    } else {
      cx_text_int(out, atomic_load(&((cx_counter *)e.all[i])->value));
    }
  }
  cx_text_char(out, '}');
  cx_free(e.all);
}

static calx_status *write_record(const run_record *r, const char *name)
{
  cx_text out = { 0 };
  print_head(&out, r);
  print_steps(&out, r);
  print_compiles(&out, r);
  print_reads(&out, r);
  cx_text_append(&out, ",\n\"metrics\":");
  print_entries(&out, CX_METRICS);
  cx_text_append(&out, ",\n\"counters\":");
  print_entries(&out, CX_COUNTERS);
  cx_text_append(&out, "}\n");
  char *path = cx_profiler_path_of_rank(name);
  calx_status *status = cx_file_write_text(path, &out);
  cx_free(path);
  cx_text_free(&out);
  return status;
}

// With the lock held, since the run goes on meanwhile.
void cx_profiler_record_write(void)
{
  const char *name = cx_env_text("CALX_REPORT");
  calx_status *status = NULL;
  cx_lock(&lock);
  if (now != NULL && name != NULL) status = write_record(now, name);
  cx_unlock(&lock);
  cx_log_failure("CALX_REPORT", status);
}

void cx_profiler_record_close(void)
{
  const char *name = cx_env_text("CALX_REPORT");
  cx_lock(&lock);
  run_record *r = now;
  now = NULL;
  cx_unlock(&lock);
  if (r != NULL && name != NULL) {
    cx_log_failure("CALX_REPORT", write_record(r, name));
  }
  free(r);
}
