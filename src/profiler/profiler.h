// profiler: what a program's steps do and how long it takes. It listens to
// base/trace and writes what the environment asks for: a profile, the report of
// a run, blocks of lines about programs, a file of metrics.
#ifndef CX_PROFILER_PROFILER_H
#define CX_PROFILER_PROFILER_H

#include <stdbool.h>

#include "base/status.h"

// The first device is open: reads the environment and starts to listen.
void cx_profiler_open(const char *plugin, const char *platform);
// The devices are to be closed, or the process ends: writes the files.
void cx_profiler_close(void);

// The library reads a number that was there already, as a progress line does:
// that is no habit of the program's.
void cx_profiler_own_read(void);

// One more, or one less, wants what profiler/record.h has: from now on, and
// after the devices are closed too. The next opening begins a new record.
void cx_profiler_watch(bool on);

// calx_profile_start() and calx_profile_stop().
calx_status *cx_profiler_start(const char *path);
calx_status *cx_profiler_stop(void);

// The texts of calx_metrics_report() and calx_metrics_short_report(); NULL
// without memory. Freed with cx_free().
char *cx_profiler_metrics_text(void);
char *cx_profiler_metrics_short_text(const char *const *counters,
                                     const char *const *metrics);

// The parts of a step's time that the report of a run has, in its order.
typedef enum cx_profiler_part {
  CX_PROFILER_COMPILE,
  CX_PROFILER_EXECUTE,
  CX_PROFILER_UPLOAD,
  CX_PROFILER_DOWNLOAD,
  CX_PROFILER_WAIT,
  CX_PROFILER_LOADER,
  CX_PROFILER_SYNC,    // inside of syncs
  CX_PROFILER_RECORD,  // in the library's own calls between the syncs
  CX_PROFILER_PARTS
} cx_profiler_part;
extern const char *const cx_profiler_part_names[CX_PROFILER_PARTS];

#endif
