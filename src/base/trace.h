// base/trace: what the rooms that run steps tell about them. src/debug listens:
// the profile, the analysis blocks, the metrics file, the advice.
//
// The calls that begin with cx_trace_tell_ are made in src/debug; they are
// declared here so that lower rooms can make them. Each stands behind
// cx_trace_wanted(), so that nobody pays for what nobody listens to: one load
// and a branch. Sites and names that are told need to live only as long as the
// call.
#ifndef CX_BASE_TRACE_H
#define CX_BASE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "base/thread.h"

// ---- who listens ------------------------------------------------------------

enum {
  CX_TRACE_SPANS = 1,     // how long what took
  CX_TRACE_PROGRAMS = 2,  // what is compiled and run, and why
  CX_TRACE_STEPS = 4,     // each sync's end
};

extern atomic_int cx_trace_listeners;

static inline bool cx_trace_wanted(int which)
{
  return (atomic_load_explicit(&cx_trace_listeners, memory_order_relaxed) &
          which) != 0;
}

// ---- where ------------------------------------------------------------------

// The ranks of this process are first, first + 1, … by their devices' places;
// `size` are in the world; whether the first rank of the host is here. Told
// before the first step; else it is rank 0 of 1.
typedef struct cx_trace_place {
  int first, size;
  bool has_local_master;
} cx_trace_place;
void cx_trace_set_place(const cx_trace_place *place);
cx_trace_place cx_trace_here(void);

// ---- why a program runs -----------------------------------------------------

typedef enum cx_trace_cause {
  CX_CAUSE_SYNC,    // the user's calx_sync
  CX_CAUSE_LOADER,  // the loader's next
  CX_CAUSE_STEP,    // calx_dist_step
  CX_CAUSE_READ,    // a value was wanted before the sync
} cx_trace_cause;

// Of the calling thread's next syncs. Returns the one before.
cx_trace_cause cx_trace_set_cause(cx_trace_cause cause);
cx_trace_cause cx_trace_cause_now(void);

// 1, 2, …: of the calling thread, given at the first call.
int cx_trace_thread(void);

// ---- time in the library's own calls ----------------------------------------

// Around calls that record, while spans are wanted: nested ones count once. So
// what a program does between its syncs is told apart from what the library
// does there. The sum is the calling thread's, since it was last taken.
int64_t cx_trace_own_begin(void);
void cx_trace_own_end(int64_t begin);
int64_t cx_trace_own_take(void);

// ---- regions of the user's --------------------------------------------------

enum { CX_TRACE_MOST_REGIONS = 64 };

// The calling thread's open regions, the outer one first.
typedef struct cx_trace_region {
  const char *name;  // lives until the region ends
  int64_t start;     // cx_trace_start()
} cx_trace_region;
bool cx_trace_region_push(const char *name);     // false: too many are open
bool cx_trace_region_pop(cx_trace_region *out);  // false: none is open
int cx_trace_region_count(void);
void cx_trace_region_cut(int count);  // ends the inner ones until so many stay
const char *cx_trace_region_name(void);  // of the inner one; NULL: none is open

// ---- spans ------------------------------------------------------------------

typedef enum cx_trace_kind {
  CX_SPAN_TRACE,    // from a sync to the next: recording, and the user's own
  CX_SPAN_SYNC,     // inside a sync
  CX_SPAN_COMPILE,  // lowering and the plugin's compiler; value: nodes
  CX_SPAN_LOAD,     // from the disk cache
  CX_SPAN_EXECUTE,  // launch to done
  CX_SPAN_UPLOAD,   // value: bytes
  CX_SPAN_DOWNLOAD,
  CX_SPAN_WAIT,    // for room among the executions under way
  CX_SPAN_LOADER,  // for the next batch
  CX_SPAN_REGION,
  CX_SPAN_STEP,    // the end of a sync to the next one's; value: its number
  CX_SPAN_RECORD,  // a step's sum of the library's own calls between its syncs
  CX_SPAN_KINDS
} cx_trace_kind;

typedef struct cx_trace_span {
  cx_trace_kind kind;
  const char *name;       // a region's; else NULL
  int device;             // place among the process's devices
  int64_t start, end;     // cx_now_ns()
  int64_t value;          // see the kinds
  const calx_site *site;  // where the user asked for it; may be NULL
} cx_trace_span;

void cx_trace_tell_span(const cx_trace_span *span);

// When what may be told begins; 0 where nobody listens.
static inline int64_t cx_trace_start(void)
{
  return cx_trace_wanted(CX_TRACE_SPANS) ? cx_now_ns() : 0;
}

// One that ends now; it is not told when its start was not taken.
static inline void cx_trace_ended(cx_trace_kind kind, int device, int64_t start,
                                  int64_t value, const calx_site *site)
{
  if (start == 0 || !cx_trace_wanted(CX_TRACE_SPANS)) return;
  cx_trace_tell_span(&(cx_trace_span){ .kind = kind,
                                       .device = device,
                                       .start = start,
                                       .end = cx_now_ns(),
                                       .value = value,
                                       .site = site });
}

// ---- programs ---------------------------------------------------------------

typedef struct cx_trace_sizes {  // bytes; -1: not told
  int64_t input, output, aliased, temporary, code;
} cx_trace_sizes;

typedef struct cx_trace_program {
  cx_trace_cause cause;
  cx_hash hash;
  size_t inputs, outputs;
  int device;
  const calx_site *site;
} cx_trace_program;

void cx_trace_tell_compile(const cx_trace_program *program);
// After it, with what the compiler says of it.
void cx_trace_tell_compiled(const cx_trace_program *program,
                            const cx_trace_sizes *sizes);
void cx_trace_tell_execute(const cx_trace_program *program);
// The device's next program is a place's after its second: what differs from
// the nearest one.
void cx_trace_tell_recompile(int device, const char *why);

// ---- steps ------------------------------------------------------------------

// The end of a sync that launched something, without any lock held.
void cx_trace_tell_step(int device);
// The first device is open: reads the environment. And all are to be closed.
void cx_trace_tell_open(const char *plugin, const char *platform);
void cx_trace_tell_close(void);

#endif
