// lazy/recompile: the lines about places that need program after program.
//
// A place is a call site of syncs, in training or in evaluation. Its first
// three misses have a line each. Those after them are counted, so that a loop
// whose shapes never settle does not fill the terminal: the tenth, the
// twentieth, the fortieth, … has a line with the count, and the rest is told at
// shutdown or at the exit.
#include <stdlib.h>
#include <string.h>

#include "base/trace.h"
#include "lazy/program.h"

enum { MOST_PLACES = 256, EACH = 3, FIRST_COUNT = 10 };

typedef struct place {
  calx_site site;
  bool train;
  size_t misses;  // after the first two programs
  size_t untold;  // since the last line
  size_t next;    // so many untold ones have a line
} place;

// Guarded by the caller's lock, which is that of the table of programs.
static place places[MOST_PLACES];
static size_t n_places;

// NULL: there are too many; then each miss is told.
static place *find(const cx_lazy_run *run)
{
  for (size_t i = 0; i < n_places; i++) {
    place *p = &places[i];
    if (p->site.line == run->site.line && p->site.file == run->site.file &&
        p->train == run->train) {
      return p;
    }
  }
  if (n_places == MOST_PLACES) return NULL;
  place *p = &places[n_places++];
  *p = (place){ .site = run->site, .train = run->train, .next = FIRST_COUNT };
  return p;
}

static bool is_forbidden(void)
{
  const char *mode = getenv("CALX_RECOMPILE");
  return mode != NULL && strcmp(mode, "error") == 0;
}

static bool is_told(const place *p)
{
  return p == NULL || p->misses <= EACH || p->untold >= p->next;
}

bool cx_lazy_recompile_wanted(const cx_lazy_run *run)
{
  if (is_forbidden()) return true;
  place *p = find(run);
  if (p != NULL && ++p->misses > EACH) p->untold++;
  return is_told(p) || cx_trace_wanted(CX_TRACE_SPANS);
}

static const char *file_of(const calx_site *site)
{
  return site->file != NULL ? site->file : "?";
}

static void tell(const cx_lazy_run *run, place *p, size_t known,
                 const char *why)
{
  const char *file = file_of(&run->site);
  int line = run->site.line;
  if (p == NULL || p->misses < EACH) {
    cx_log("recompile at %s:%d, program %zu: %s", file, line, known + 1, why);
  } else if (p->misses == EACH) {
    cx_log("recompile at %s:%d, program %zu: %s; further ones are counted",
           file, line, known + 1, why);
  } else {
    cx_log("recompile at %s:%d, %zu programs more; the newest: %s", file, line,
           p->untold, why);
    p->next = 2 * p->next;
    p->untold = 0;
  }
}

calx_status *cx_lazy_recompile_tell(const cx_lazy_run *run, size_t known,
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
  place *p = find(run);
  if (is_told(p)) tell(run, p, known, why);
  return NULL;
}

void cx_lazy_recompile_tell_rest(void)
{
  for (size_t i = 0; i < n_places; i++) {
    place *p = &places[i];
    if (p->untold == 0) continue;
    cx_log("recompile at %s:%d, %zu programs more until the end",
           file_of(&p->site), p->site.line, p->untold);
    p->untold = 0;
  }
}

void cx_lazy_recompile_forget(void)
{
  cx_lazy_recompile_tell_rest();
  n_places = 0;
}
