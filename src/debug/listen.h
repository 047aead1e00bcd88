// debug/listen: what base/trace tells, handed to those who listen.
//
// The environment is read when the first device is opened. Each listener says
// then whether it wants anything; see cx_trace_listeners.
#ifndef CX_DEBUG_LISTEN_H
#define CX_DEBUG_LISTEN_H

#include "base/trace.h"

// The first of the names that is set and not empty; NULL: none.
const char *cx_debug_env(const char *name, const char *other_name);
// `path`, with .ORDINAL where the world has more than one rank. Freed with
// cx_free(); NULL without memory.
char *cx_debug_path_of_rank(const char *path);

// CALX_METRICS_FILE. False: it is not set.
bool cx_debug_metrics_file_open(void);
void cx_debug_metrics_file_step(int64_t step);

#endif
