// debug/advise: what a run's numbers say about the usual reasons for slow
// training. The list is that of Lightning's page on TPUs ("Performance
// considerations"): too small batches, values read during training, shapes that
// change, the link to the device, compilation, ops that run on the host; and
// waiting for input.
#ifndef CX_DEBUG_ADVISE_H
#define CX_DEBUG_ADVISE_H

#include "base/text.h"
#include "debug/read_report.h"
#include "profiler/profiler.h"

// All times in seconds.
typedef struct cx_debug_run_step {  // or several in a row: sums
  int64_t first, n;
  double seconds, part[CX_PROFILER_PARTS];
} cx_debug_run_step;

typedef struct cx_debug_run_compile {
  double at, seconds;
  int64_t step, nodes;
  bool loaded;  // from the disk cache
  char site[160], why[400];
} cx_debug_run_compile;

typedef struct cx_debug_run_site {  // where values are read
  char site[160];
  int64_t count, early;  // early: before a sync
  double seconds;
} cx_debug_run_site;

typedef struct cx_debug_run_data {
  bool has_own;   // CX_PROFILER_RECORD is in the file
  bool detailed;  // steps and the rest are known; else only the report
  char plugin[64], platform[64];
  int64_t rank, world, syncs, compilations;
  int64_t other_reads;  // at places that are not listed
  int64_t devices;      // whose sums the report has; 0: it tells of all as one
  double seconds, setup;  // setup: until the first sync's end
  cx_debug_run_step *steps;
  cx_debug_run_compile *compiles;
  cx_debug_run_site *sites;
  size_t n_steps, n_compiles, n_sites;
  cx_debug_read_report report;
} cx_debug_run_data;

// Of this process so far. `detailed` where the profiler records
// (cx_profiler_watch(), CALX_REPORT), else its counters and timers alone.
calx_status *cx_debug_run_now(cx_debug_run_data *out) CALX_MUST_USE;
void cx_debug_run_free(cx_debug_run_data *run);

typedef enum cx_debug_rating {
  CX_DEBUG_RATING_UNKNOWN,  // nothing in the file tells
  CX_DEBUG_RATING_GOOD,
  CX_DEBUG_RATING_LOOK,
  CX_DEBUG_RATING_BAD
} cx_debug_rating;

const char *cx_debug_rating_name(cx_debug_rating v);  // "?", "ok", "look", …

enum { CX_DEBUG_ADVICE_ITEMS = 7 };

typedef struct cx_debug_advice {
  const char *item;  // "batch size"
  cx_debug_rating rating;
  cx_text numbers;  // one line: what was measured
  cx_text advice;   // what to do; empty where all is well
  cx_text details;  // lines, each with its newline: the places, the causes
} cx_debug_advice;

// The first steps, which compile, count only where there are few others.
enum { CX_DEBUG_WARM_UP = 10 };

// What the steps after the first ones take, and their parts.
typedef struct cx_debug_times {
  int64_t steps;  // that the numbers are of; 0: none are known
  double step;    // seconds of one: the mean
  double part[CX_PROFILER_PARTS];
  double host;  // all else: recording, launching, the program itself
  double own;   // of it, the library's; `user`: the program's. Both 0 where the
  double user;  // file does not tell them apart
} cx_debug_times;
cx_debug_times cx_debug_run_times(const cx_debug_run_data *run);

// Fills CX_DEBUG_ADVICE_ITEMS of them; freed with cx_debug_advice_free().
void cx_debug_advise(const cx_debug_run_data *run, cx_debug_advice *out);
void cx_debug_advice_free(cx_debug_advice *advice);

#endif
