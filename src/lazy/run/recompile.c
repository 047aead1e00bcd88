// lazy/run/recompile: the lines about records that need program after program.
//
// A site_record is a call site of syncs, in training or in evaluation. Its
// first three misses have a line each. Those after them are counted, so that a
// loop whose shapes never settle does not fill the terminal: the tenth, the
// twentieth, the fortieth, … has a line with the count, and the rest is told at
// shutdown or at the exit. CALX_DEBUG=recompiles gives each a line.
#include <stdlib.h>
#include <string.h>

#include "base/trace.h"
#include "lazy/run/program.h"

enum { MOST_RECORDS = 256, EACH = 3, FIRST_COUNT = 10 };

typedef struct site_record {
  calx_site site;
  bool train;
  size_t misses;      // after the first two programs
  size_t unreported;  // since the last line
  size_t next;        // so many unreported ones have a line
} site_record;

// Guarded by the caller's lock, which is that of the table of programs.
static site_record records[MOST_RECORDS];
static size_t n_records;

// NULL: there are too many; then each miss is told.
static site_record *find(const cx_lazy_run *run)
{
  for (size_t i = 0; i < n_records; i++) {
    site_record *p = &records[i];
    if (p->site.line == run->site.line && p->site.file == run->site.file &&
        p->train == run->train) {
      return p;
    }
  }
  if (n_records == MOST_RECORDS) return NULL;
  site_record *p = &records[n_records++];
  *p = (site_record){ .site = run->site,
                      .train = run->train,
                      .next = FIRST_COUNT };
  return p;
}

static bool is_forbidden(void)
{
  const char *mode = getenv("CALX_RECOMPILE");
  return mode != NULL && strcmp(mode, "error") == 0;
}

// Whether each of them has a line.
static bool is_each_reported(void)
{
  return cx_lazy_debug_on(CX_LAZY_DEBUG_RECOMPILES);
}

static bool is_reported(const site_record *p)
{
  return p == NULL || is_each_reported() || p->misses <= EACH ||
         p->unreported >= p->next;
}

bool cx_lazy_recompile_wanted(const cx_lazy_run *run)
{
  if (is_forbidden()) return true;
  site_record *p = find(run);
  if (p != NULL && !is_each_reported() && ++p->misses > EACH) p->unreported++;
  return is_reported(p) || cx_trace_wanted(CX_TRACE_SPANS);
}

static void report(const cx_lazy_run *run, site_record *p, size_t known,
                   const char *why)
{
  const char *file = cx_site_file(&run->site);
  int line = run->site.line;
  if (p == NULL || p->misses < EACH || is_each_reported()) {
    cx_log("recompile at %s:%d, program %zu: %s", file, line, known + 1, why);
  } else if (p->misses == EACH) {
    cx_log("recompile at %s:%d, program %zu: %s; further ones are counted",
           file, line, known + 1, why);
  } else {
    cx_log("recompile at %s:%d, %zu programs more; the newest: %s", file, line,
           p->unreported, why);
    p->next = 2 * p->next;
    p->unreported = 0;
  }
}

calx_status *cx_lazy_recompile_report(const cx_lazy_run *run, size_t known,
                                      const char *why)
{
  if (cx_trace_wanted(CX_TRACE_SPANS)) {
    cx_trace_emit_recompile(run->device->index, why);
  }
  if (is_forbidden()) {
    return cx_error_at(&run->site, CALX_FAILED_PRECONDITION,
                       "sync: another program is needed (%zu are known here), "
                       "and CALX_RECOMPILE=error forbids it: %s",
                       known, why);
  }
  site_record *p = find(run);
  if (is_reported(p)) report(run, p, known, why);
  return NULL;
}

void cx_lazy_recompile_report_rest(void)
{
  for (size_t i = 0; i < n_records; i++) {
    site_record *p = &records[i];
    if (p->unreported == 0) continue;
    cx_log("recompile at %s:%d, %zu programs more until the end",
           cx_site_file(&p->site), p->site.line, p->unreported);
    p->unreported = 0;
  }
}

void cx_lazy_recompile_forget(void)
{
  cx_lazy_recompile_report_rest();
  n_records = 0;
}
