// debug/listen: what base/trace tells, handed to those who listen.
//
// The environment is read when the first device is opened; each listener says
// then whether it wants anything.
#ifndef CX_DEBUG_LISTEN_H
#define CX_DEBUG_LISTEN_H

#include "base/trace.h"

// Places of devices that are told of; further ones are not.
enum { CX_DEBUG_MOST_DEVICES = 256 };

// One more, or one less, wants what CX_TRACE_… names.
void cx_debug_listen(int what, bool on);
// The first of the names that is set and not empty; NULL: none.
const char *cx_debug_env(const char *name, const char *other_name);
// `path`, with .ORDINAL where the world has more than one rank; a stream stays
// one. Freed with cx_free(); NULL without memory.
char *cx_debug_path_of_rank(const char *path);

// CALX_METRICS_FILE.
void cx_debug_metrics_file_open(void);
void cx_debug_metrics_file_step(int64_t step);

// CALX_DEBUG=1, CALX_DEBUG_LEVEL. False: nothing is to be written.
bool cx_debug_analysis_open(void);
void cx_debug_analysis_compile(const cx_trace_program *p);
void cx_debug_analysis_compiled(const cx_trace_program *p,
                                const cx_trace_sizes *sizes);
void cx_debug_analysis_execute(const cx_trace_program *p);

// calx_progress_new().
void cx_debug_progress_compile(void);
void cx_debug_progress_compiled(void);

// CALX_PROFILE, and its end.
void cx_debug_profile_open(void);
void cx_debug_profile_close(void);
void cx_debug_profile_span(const cx_trace_span *span);

// CALX_REPORT. False: it is not set.
bool cx_debug_record_open(const char *plugin, const char *platform);
void cx_debug_record_close(void);
// What is known so far; the run goes on.
void cx_debug_record_write(void);
// SIGINT and SIGTERM write it too, before what they did before; until the
// close.
void cx_debug_interrupt_open(void);
void cx_debug_interrupt_close(void);
void cx_debug_record_span(const cx_trace_span *span);
void cx_debug_record_execute(const cx_trace_program *p);
void cx_debug_record_recompile(int device, const char *why);

// The lines about steps.
void cx_debug_habits_open(void);
void cx_debug_habits_step(int device);
void cx_debug_habits_forget(void);  // tests: what was told may be told again

#endif
