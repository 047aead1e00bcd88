// profiler/record: collects what a run did, for CALX_REPORT=FILE and for
// whoever watches.
#include "profiler/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "profiler/internal.h"

enum {
  MOST_STEPS = CX_PROFILER_MOST_STEPS,
  MOST_COMPILES = CX_PROFILER_MOST_COMPILES,
  MOST_SITES = CX_PROFILER_MOST_SITES
};

static const cx_trace_kind part_kinds[] = { CX_SPAN_COMPILE, CX_SPAN_EXECUTE,
                                            CX_SPAN_UPLOAD,  CX_SPAN_DOWNLOAD,
                                            CX_SPAN_WAIT,    CX_SPAN_LOADER,
                                            CX_SPAN_SYNC,    CX_SPAN_RECORD };

static cx_mutex lock = CX_MUTEX_INIT;
static cx_profiler_record *now;                  // NULL: nobody wants it
static bool has_file;                            // CALX_REPORT wants it
static int watchers;                             // cx_profiler_watch()
static char plugin_name[64], platform_name[64];  // of the newest opening

// ---- what happens -----------------------------------------------------------

// With the lock. The memory is outside of the counted heap.
static void renew(void)
{
  if (now == NULL) now = calloc(1, sizeof *now);
  if (now == NULL) return;
  memset(now, 0, sizeof *now);
  now->opened = cx_now_ns();
  now->per_step = 1;
  memcpy(now->plugin, plugin_name, sizeof now->plugin);
  memcpy(now->platform, platform_name, sizeof now->platform);
}

static void drop_unwanted(void)
{
  if (has_file || watchers > 0) return;
  free(now);
  now = NULL;
}

bool cx_profiler_record_open(const char *plugin, const char *platform)
{
  cx_lock(&lock);
  strncpy(plugin_name, plugin, sizeof plugin_name - 1);
  strncpy(platform_name, platform, sizeof platform_name - 1);
  has_file = cx_env_text("CALX_REPORT") != NULL;
  if (has_file || watchers > 0) renew();
  bool wanted = has_file && now != NULL;
  cx_unlock(&lock);
  return wanted;
}

void cx_profiler_record_watch(bool on)
{
  cx_lock(&lock);
  watchers += on ? 1 : -1;
  if (on && now == NULL) renew();
  drop_unwanted();
  cx_unlock(&lock);
}

bool cx_profiler_record_copy(cx_profiler_record *out)
{
  cx_lock(&lock);
  bool any = now != NULL;
  if (any) memcpy(out, now, sizeof *out);
  cx_unlock(&lock);
  return any;
}

static cx_profiler_record_site *find_site(cx_profiler_record *r,
                                          const calx_site *site)
{
  if (site == NULL || site->file == NULL) return NULL;
  for (size_t i = 0; i < r->n_sites; i++) {
    cx_profiler_record_site *p = &r->sites[i];
    if (p->line == site->line && strcmp(p->file, site->file) == 0) return p;
  }
  if (r->n_sites == MOST_SITES) return NULL;
  cx_profiler_record_site *p = &r->sites[r->n_sites++];
  *p = (cx_profiler_record_site){ .file = cx_site_intern(site).file,
                                  .line = site->line };
  return p;
}

// Neighbours become one: half as many, each of twice the steps.
static void halve(cx_profiler_record *r)
{
  for (size_t i = 0; i < MOST_STEPS / 2; i++) {
    cx_profiler_record_step a = r->steps[2 * i];
    const cx_profiler_record_step *b = &r->steps[2 * i + 1];
    a.n += b->n;
    a.ns += b->ns;
    for (int k = 0; k < CX_PROFILER_PARTS; k++) a.part[k] += b->part[k];
    r->steps[i] = a;
  }
  r->n_steps = MOST_STEPS / 2;
  r->per_step *= 2;
}

static void end_step(cx_profiler_record *r, const cx_trace_span *span)
{
  cx_profiler_record_step *last =
      r->n_steps > 0 ? &r->steps[r->n_steps - 1] : NULL;
  if (last == NULL || last->n == r->per_step) {
    if (r->n_steps == MOST_STEPS) halve(r);
    last = &r->steps[r->n_steps++];
    *last = (cx_profiler_record_step){ .first = span->value,
                                       .start = span->start - r->opened };
  }
  last->n++;
  last->ns += span->end - span->start;
  for (int k = 0; k < CX_PROFILER_PARTS; k++) {
    last->part[k] += r->part[k];
    r->part[k] = 0;
  }
}

static void add_compile(cx_profiler_record *r, const cx_trace_span *span)
{
  int64_t i = r->n_compiles++;
  if (i < MOST_COMPILES) {
    cx_profiler_record_compile *c = &r->compiles[i];
    *c = (cx_profiler_record_compile){ .at = span->start - r->opened,
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

static void add_read(cx_profiler_record *r, const cx_trace_span *span)
{
  cx_profiler_record_site *p = find_site(r, span->site);
  if (p == NULL) {
    r->other_reads++;
    return;
  }
  p->reads++;
  p->ns += span->end - span->start;
}

static void add_part(cx_profiler_record *r, const cx_trace_span *span)
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

static void count_device(cx_profiler_record *r, const cx_trace_span *span)
{
  if (span->kind != CX_SPAN_SYNC || r->synced[span->device]) return;
  r->synced[span->device] = true;
  r->devices++;
}

void cx_profiler_record_span(const cx_trace_span *span)
{
  if (span->device != 0 && span->kind != CX_SPAN_SYNC) return;
  cx_lock(&lock);
  cx_profiler_record *r = now;
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
  cx_profiler_record_site *at = now != NULL ? find_site(now, p->site) : NULL;
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

// ---- the end ----------------------------------------------------------------

// With the lock held, since the run goes on meanwhile.
static calx_status *write_file(void)
{
  const char *name = cx_env_text("CALX_REPORT");
  if (now == NULL || name == NULL || !has_file) return NULL;
  return cx_profiler_record_put(now, name);
}

void cx_profiler_record_write(void)
{
  cx_lock(&lock);
  calx_status *status = write_file();
  cx_unlock(&lock);
  cx_log_failure("CALX_REPORT", status);
}

void cx_profiler_record_close(void)
{
  cx_lock(&lock);
  calx_status *status = write_file();
  has_file = false;
  drop_unwanted();
  cx_unlock(&lock);
  cx_log_failure("CALX_REPORT", status);
}
