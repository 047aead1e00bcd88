// profiler/internal: the listeners of the profiler, which profiler.c calls.
//
// The environment is read when the first device opens; each listener decides
// then whether it wants anything.
#ifndef CX_PROFILER_INTERNAL_H
#define CX_PROFILER_INTERNAL_H

#include "base/trace.h"
#include "profiler/record.h"

// ---- files.c ----------------------------------------------------------------

// Appends a text to a file of the program's choice, which `variable` names.
// What cannot be written is logged once and does not stop the program.
void cx_profiler_append(const char *variable, const char *path,
                        const char *text);
// `path`, with .ORDINAL where the world has more than one rank; a stream's name
// stays as it is. Freed with cx_free(); NULL without memory.
char *cx_profiler_path_of_rank(const char *path);

// ---- metrics_file.c: CALX_METRICS_FILE --------------------------------------

void cx_profiler_metrics_file_open(void);
void cx_profiler_metrics_file_step(int64_t step);

// ---- analysis.c: CALX_DEBUG=1, CALX_DEBUG_LEVEL -----------------------------

bool cx_profiler_analysis_open(void);  // false: nothing is to be written
void cx_profiler_analysis_compile(const cx_trace_program *p);
void cx_profiler_analysis_compiled(const cx_trace_program *p,
                                   const cx_trace_sizes *sizes);
void cx_profiler_analysis_execute(const cx_trace_program *p);

// ---- profile.c: CALX_PROFILE, calx_profile_start() --------------------------

// by_environment: CALX_PROFILE starts it, and not a call of the program.
calx_status *cx_profiler_profile_start(const char *path, bool by_environment);
// only_environment: stops a profile that CALX_PROFILE started, and leaves one
// that a call started.
calx_status *cx_profiler_profile_stop(bool only_environment);
void cx_profiler_profile_open(void);   // starts one if CALX_PROFILE is set
void cx_profiler_profile_close(void);  // stops it
void cx_profiler_profile_span(const cx_trace_span *span);

// ---- record.c: CALX_REPORT and watchers -------------------------------------

// A new record, where anybody wants one. True: CALX_REPORT does.
bool cx_profiler_record_open(const char *plugin, const char *platform);
void cx_profiler_record_close(void);  // writes the file of CALX_REPORT
void cx_profiler_record_write(void);  // the same; the run goes on
void cx_profiler_record_watch(bool on);
void cx_profiler_record_span(const cx_trace_span *span);
void cx_profiler_record_execute(const cx_trace_program *p);
void cx_profiler_record_recompile(int device, const char *why);

// ---- record_file.c ----------------------------------------------------------

calx_status *cx_profiler_record_put(const cx_profiler_record *r,
                                    const char *name) CALX_MUST_USE;

// ---- interrupt.c ------------------------------------------------------------

// From the opening to the close SIGINT and SIGTERM write the record, before
// they have the effect that they had before.
void cx_profiler_interrupt_open(void);
void cx_profiler_interrupt_close(void);

// ---- habits.c: advice while the loop runs -----------------------------------

void cx_profiler_habits_open(void);
void cx_profiler_habits_step(int device);
void cx_profiler_habits_forget(void);  // for tests: each advice may come again

#endif
