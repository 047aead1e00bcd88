// bench/timed: how long the calling thread is inside the plugin.
//
// The plugin's table is replaced by one whose functions take the time of the
// plugin's own, so what is left of a call of the library's is its own cost. It
// works on every plugin. A callback of the library's that the plugin runs
// inside a call counts as outside.
#ifndef CX_BENCH_TIMED_H
#define CX_BENCH_TIMED_H

#include <stdint.h>

#include "calx/status.h"

// Opens the plugin that the environment chooses, before the library does, and
// puts the timed table in its place. Once for a process.
calx_status *bench_timed_open(void) CALX_MUST_USE;

typedef struct bench_inside {
  int64_t ns, calls;
} bench_inside;
// What the calling thread spent so far.
bench_inside bench_inside_now(void);
// When its last launch of a program began, and what it had spent by then.
int64_t bench_launched_at(bench_inside *out_before);
// What the timing itself adds to the outside for each call, in ns.
double bench_timed_cost(void);

#endif
