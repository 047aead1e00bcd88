// profiler/record: what a run did: the time of each step and its parts, each
// compilation with its cause, where values were read.
//
// It is of the process's first rank. The sizes are bounded: steps are put
// together in pairs when there are too many, and further compilations and call
// sites are only counted.
#ifndef CX_PROFILER_RECORD_H
#define CX_PROFILER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/profiler.h"

enum {
  CX_PROFILER_MOST_DEVICES = 256,  // those with a larger index are not reported
  CX_PROFILER_MOST_STEPS = 2048,
  CX_PROFILER_MOST_COMPILES = 256,
  CX_PROFILER_MOST_SITES = 64,
  CX_PROFILER_WHY = 400
};

// Times in ns of cx_now_ns().
typedef struct cx_profiler_record_step {  // or several in a row
  int64_t first, n;
  int64_t start, ns;  // start: since the opening
  int64_t part[CX_PROFILER_PARTS];
} cx_profiler_record_step;

typedef struct cx_profiler_record_compile {
  int64_t at, ns, step, nodes;
  const char *file;  // interned
  int line;
  bool loaded;
  char why[CX_PROFILER_WHY];
} cx_profiler_record_compile;

typedef struct cx_profiler_record_site {
  const char *file;  // interned
  int line;
  int64_t reads, ns, early;
} cx_profiler_record_site;

typedef struct cx_profiler_record {
  int64_t opened;
  char plugin[64], platform[64];
  cx_profiler_record_step steps[CX_PROFILER_MOST_STEPS];
  size_t n_steps;
  int64_t per_step;  // that one entry holds
  int64_t syncs;
  bool synced[CX_PROFILER_MOST_DEVICES];
  int devices;                      // of them
  int64_t part[CX_PROFILER_PARTS];  // since the last step ended
  int64_t setup;                    // until the first sync's end
  int64_t busy_until;               // of the device
  cx_profiler_record_compile compiles[CX_PROFILER_MOST_COMPILES];
  int64_t n_compiles;         // ever
  bool load_seen;             // inside of the compilation that goes on
  char why[CX_PROFILER_WHY];  // of the next one
  cx_profiler_record_site sites[CX_PROFILER_MOST_SITES];
  size_t n_sites;
  int64_t other_reads;
} cx_profiler_record;

// A copy of what is recorded so far; false: nothing is.
bool cx_profiler_record_copy(cx_profiler_record *out);

#endif
