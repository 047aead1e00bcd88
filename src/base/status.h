// base/status: making, annotating and reporting statuses.
//
// Every failure is made by cx_error(), which adds the user's call site and, in
// its detail, the library's own place. Out of memory is a static status, so
// that reporting it needs no memory.
#ifndef CX_BASE_STATUS_H
#define CX_BASE_STATUS_H

#include <stdarg.h>

#include "calx/status.h"

// Code that runs when something failed, kept away from what runs in each step.
#if defined(__GNUC__)
#define CX_COLD __attribute__((cold))
#else
#define CX_COLD
#endif

// "what: sentence" with the thread's call site in front: "mnist.c:15: in
// forward: linear: …".
CX_COLD calx_status *cx_error(calx_code code, const char *format, ...)
    CALX_PRINTF(2, 3) CALX_MUST_USE;

// The same of an INVALID_ARGUMENT, the commonest failure.
CX_COLD calx_status *cx_invalid(const char *format, ...)
    CALX_PRINTF(1, 2) CALX_MUST_USE;

// The same for an explicit site; NULL: no site.
CX_COLD calx_status *cx_error_at(const calx_site *site, calx_code code,
                                 const char *format, ...)
    CALX_PRINTF(3, 4) CALX_MUST_USE;

// Adds context outward: "MESSAGE; while loading 'x'". Takes and returns the
// status; NULL stays NULL.
CX_COLD calx_status *cx_annotate(calx_status *status, const char *format, ...)
    CALX_PRINTF(2, 3) CALX_MUST_USE;

// Never freed, needs no memory.
CX_COLD calx_status *cx_out_of_memory(void) CALX_MUST_USE;
// Of a tensor that is used after its scope. As above.
extern calx_status cx_scope_ended;
// What an object's owner is told of an object that is NULL. As above.
typedef enum cx_absent_kind {
  CX_ABSENT_DATASET,
  CX_ABSENT_SAMPLER,
  CX_ABSENT_LOADER,
  CX_ABSENT_PARALLEL_LOADER,
  CX_ABSENT_LOGGER,
  CX_ABSENT_METRIC
} cx_absent_kind;
CX_COLD calx_status *cx_absent(cx_absent_kind kind) CALX_MUST_USE;

// The first one, if it is one, else the second; the other is freed.
calx_status *cx_status_first(calx_status *first,
                             calx_status *second) CALX_MUST_USE;

// A copy of the same text, code and site; the static status copies to itself.
CX_COLD calx_status *cx_status_copy(const calx_status *status) CALX_MUST_USE;

// The message without the call site in front, for one with another site.
const char *cx_status_sentence(const calx_status *status);

// The calling thread's call site. Never NULL; file is NULL where none was set.
const calx_site *cx_site(void);

// For messages: "?" where the site has no file.
static inline const char *cx_site_file(const calx_site *site)
{
  return site->file != NULL ? site->file : "?";
}

// Interns a site's strings so that it outlives its frame and its shared object;
// equal strings share.
calx_site cx_site_intern(const calx_site *site);

// One line through the callback of calx_log_set.
void cx_log(const char *format, ...) CALX_PRINTF(1, 2);

// "WHAT: SENTENCE" of a failure that nobody else reports. Takes the status;
// NULL: nothing is logged.
void cx_log_failure(const char *what, calx_status *status);

// As cx_log(), at most once for each (key, user call site). Returns whether it
// was written.
CX_COLD int cx_log_once_per_site(const char *key, const char *format, ...)
    CALX_PRINTF(2, 3);

// Between these the calling thread's lines wait, and are written by the last
// end: around every lock that is held while something may be logged, since the
// callback may call the library. They nest.
void cx_log_hold_begin(void);
void cx_log_hold_end(void);

// Of several: the calling thread's lines begin with "rank 2: "; -1: they don't.
void cx_log_set_rank(int rank);
// The same, "process 1: ", for the lines of threads without a rank.
void cx_log_set_process(int process);
// Called before each line that goes to standard error; NULL: nothing is.
void cx_log_set_before(void (*fn)(void));

// Live statuses that were not freed: the tests' leak count.
long cx_status_live(void);

// Our own invariants, never user input.
#if CX_DEBUG
#include <assert.h>
#define CX_ASSERT(x) assert(x)
#else
#define CX_ASSERT(x) ((void)0)
#endif

#endif
