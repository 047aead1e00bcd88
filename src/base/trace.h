// base/trace: events of the modules that compile and run programs, for those
// who listen: the profiler, and the progress line of a loop.
//
// Modules report through the cx_trace_emit_ functions; listeners register a
// table of functions. So the modules that report know no listener. Each report
// stands behind cx_trace_wanted(), one load and a branch, so that it costs
// nothing while nobody wants it. Sites and names in a report need to live only
// as long as the call.
#ifndef CX_BASE_TRACE_H
#define CX_BASE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "base/thread.h"

// ---- what is wanted ---------------------------------------------------------

enum {
  CX_TRACE_SPANS = 1,     // what took how long
  CX_TRACE_PROGRAMS = 2,  // what is compiled and run, and why
  CX_TRACE_STEPS = 4,     // the end of each sync
};

extern atomic_int cx_trace_kinds_wanted;  // read through cx_trace_wanted()

static inline bool cx_trace_wanted(int kinds)
{
  return (atomic_load_explicit(&cx_trace_kinds_wanted, memory_order_relaxed) &
          kinds) != 0;
}

// One listener more, or one less, wants these kinds.
void cx_trace_want(int kinds, bool on);

// ---- the ranks of this process ----------------------------------------------

// They are first, first + 1, …, in the order of their devices. Set before the
// first step; without it, this is rank 0 of 1.
typedef struct cx_trace_ranks {
  int first, size;        // size: of the world
  bool has_local_master;  // whether the host's first rank is in this process
} cx_trace_ranks;
void cx_trace_set_ranks(const cx_trace_ranks *ranks);
cx_trace_ranks cx_trace_ranks_here(void);

// ---- why a program runs -----------------------------------------------------

typedef enum cx_trace_cause {
  CX_CAUSE_SYNC,    // the user's calx_sync
  CX_CAUSE_LOADER,  // the loader's next
  CX_CAUSE_STEP,    // calx_dist_step
  CX_CAUSE_READ,    // a value was read before the sync
} cx_trace_cause;

// The cause of the calling thread's next syncs. Returns the one before.
cx_trace_cause cx_trace_set_cause(cx_trace_cause cause);
cx_trace_cause cx_trace_cause_now(void);

// The calling thread's number: 1, 2, …, in the order of their first calls.
int cx_trace_thread(void);

// ---- time in the library's own calls ----------------------------------------

// Around calls that record, while spans are wanted, to separate the library's
// time between two syncs from the program's. Nested calls count once. The sum
// is the calling thread's, since it was last taken.
int64_t cx_trace_own_begin(void);
void cx_trace_own_end(int64_t begin);
int64_t cx_trace_own_take(void);

// ---- regions that the user opens --------------------------------------------

enum { CX_TRACE_MOST_REGIONS = 64 };

// The calling thread's open regions, the outermost first.
typedef struct cx_trace_region {
  const char *name;  // lives until the region ends
  int64_t start;     // cx_trace_start()
} cx_trace_region;
bool cx_trace_region_push(const char *name);     // false: too many are open
bool cx_trace_region_pop(cx_trace_region *out);  // false: none is open
int cx_trace_region_count(void);
void cx_trace_region_cut(int count);     // ends the innermost until count stay
const char *cx_trace_region_name(void);  // the innermost's; NULL: none is open

// ---- events -----------------------------------------------------------------

typedef enum cx_trace_kind {
  CX_SPAN_TRACE,    // from a sync to the next: recording, and the user's code
  CX_SPAN_SYNC,     // inside a sync
  CX_SPAN_COMPILE,  // lowering and the plugin's compiler; value: nodes
  CX_SPAN_LOAD,     // from the disk cache
  CX_SPAN_EXECUTE,  // launch to done
  CX_SPAN_UPLOAD,   // value: bytes
  CX_SPAN_DOWNLOAD,
  CX_SPAN_WAIT,    // until fewer executions are in flight
  CX_SPAN_LOADER,  // until the next batch is there
  CX_SPAN_REGION,
  CX_SPAN_STEP,    // the end of a sync to the next one's; value: its number
  CX_SPAN_RECORD,  // a step's sum of the library's own calls between its syncs
  CX_SPAN_KINDS
} cx_trace_kind;

typedef struct cx_trace_span {
  cx_trace_kind kind;
  const char *name;       // a region's; else NULL
  int device;             // index among the process's devices
  int64_t start, end;     // cx_now_ns()
  int64_t value;          // see the kinds
  const calx_site *site;  // the user's call; may be NULL
} cx_trace_span;

typedef struct cx_trace_sizes {  // bytes; -1: the compiler does not report it
  int64_t input, output, aliased, temporary, code;
} cx_trace_sizes;

typedef struct cx_trace_program {
  cx_trace_cause cause;
  cx_hash hash;
  size_t inputs, outputs;
  int device;
  const calx_site *site;
} cx_trace_program;

// ---- listeners --------------------------------------------------------------

// What a listener does with each event; NULL: nothing. Called on any thread,
// often with a device's lock held: a listener calls nothing that runs steps.
typedef struct cx_trace_listener {
  void (*span)(const cx_trace_span *span);
  void (*compile)(const cx_trace_program *program);
  void (*compiled)(const cx_trace_program *program,
                   const cx_trace_sizes *sizes);
  void (*execute)(const cx_trace_program *program);
  void (*recompile)(int device, const char *why);
  void (*step)(int device);
} cx_trace_listener;

enum { CX_TRACE_MOST_LISTENERS = 4 };  // of the library: each module one

// The table must stay for the life of the process; a second call with the same
// one does nothing. Registering alone asks for no events: see cx_trace_want().
void cx_trace_listen(const cx_trace_listener *listener);

// ---- reporting --------------------------------------------------------------

void cx_trace_emit_span(const cx_trace_span *span);
void cx_trace_emit_compile(const cx_trace_program *program);
// After it, with what the compiler reports.
void cx_trace_emit_compiled(const cx_trace_program *program,
                            const cx_trace_sizes *sizes);
void cx_trace_emit_execute(const cx_trace_program *program);
// The device's next program is compiled after the second one of its call site:
// how it differs from the most similar one.
void cx_trace_emit_recompile(int device, const char *why);
// The end of a sync that launched something. No lock is held.
void cx_trace_emit_step(int device);

// The start of what may become a span; 0 while spans are not wanted.
static inline int64_t cx_trace_start(void)
{
  return cx_trace_wanted(CX_TRACE_SPANS) ? cx_now_ns() : 0;
}

// Reports a span that ends now, if its start was taken.
static inline void cx_trace_ended(cx_trace_kind kind, int device, int64_t start,
                                  int64_t value, const calx_site *site)
{
  if (start == 0 || !cx_trace_wanted(CX_TRACE_SPANS)) return;
  cx_trace_emit_span(&(cx_trace_span){ .kind = kind,
                                       .device = device,
                                       .start = start,
                                       .end = cx_now_ns(),
                                       .value = value,
                                       .site = site });
}

#endif
