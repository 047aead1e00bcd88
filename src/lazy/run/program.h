// lazy/run/program: what the parts of running share. Private to lazy.
#ifndef CX_LAZY_PROGRAM_H
#define CX_LAZY_PROGRAM_H

#include "lazy/internal.h"

// The slots that a device last ran a program with.
typedef struct cx_lazy_slot_cache {
  uint32_t *words;
  cx_pjrt_buffer *buffer;
  bool ran[2];  // with the others: the constant and the dynamic variant
} cx_lazy_slot_cache;

// An execution on its way: what it takes and gives, under the device's lock.
typedef struct cx_lazy_execution {
  cx_lazy_run *run;
  uint32_t *words;      // of the packed slots
  int64_t *promotable;  // the promotable constants' values
  cx_pjrt_buffer **args;
  size_t n_args;
  cx_pjrt_buffer **out;  // n_roots
  cx_pjrt_event **out_done;
  cx_lazy_program *program;
  cx_pjrt_executable *executable;
} cx_lazy_execution;

// Of the run's order; promote: with the starts of slices as slots.
// *out_loaded: it was on disk.
calx_status *cx_lazy_compile(const cx_lazy_run *run, bool promote,
                             cx_pjrt_executable **out,
                             bool *out_loaded) CALX_MUST_USE;

// A place has two programs or more and needs another: false where nobody is to
// be told why. Each such miss is counted here; one thread at a time.
bool cx_lazy_recompile_wanted(const cx_lazy_run *run);
// Tells it. An error where CALX_RECOMPILE=error forbids it; known: the place's
// programs so far.
calx_status *cx_lazy_recompile_report(const cx_lazy_run *run, size_t known,
                                      const char *why) CALX_MUST_USE;
// Those that were counted and not reported are reported as a sum.
void cx_lazy_recompile_report_rest(void);
// The same, and the counts start anew.
void cx_lazy_recompile_forget(void);

// Which of a program's two executables: one of them, or (FREE) the one that
// serves the values of the promotable constants.
typedef enum cx_lazy_choice {
  CX_LAZY_CHOICE_FREE = -1,
  CX_LAZY_CHOICE_CONSTANT,
  CX_LAZY_CHOICE_DYNAMIC
} cx_lazy_choice;

// Finds or compiles; fills in program and executable.
calx_status *cx_lazy_program_get(cx_lazy_execution *p,
                                 cx_lazy_choice choice) CALX_MUST_USE;
// Which of the executables compiled so far serves the values of the promotable
// constants.
cx_lazy_choice cx_lazy_program_wants(const cx_lazy_execution *p);
// Whether the run's device has run it with the others: then program and
// executable are filled in.
bool cx_lazy_program_ran(cx_lazy_execution *p, cx_lazy_choice choice);
void cx_lazy_program_note_ran(cx_lazy_execution *p, cx_lazy_choice choice);
// The execution no longer keeps its program in the table.
void cx_lazy_program_release(cx_lazy_execution *p);
// Fills in the arguments.
calx_status *cx_lazy_program_args(cx_lazy_execution *p) CALX_MUST_USE;

// The way of a program with collectives.
calx_status *cx_lazy_collective_launch(cx_lazy_execution *p) CALX_MUST_USE;

// Counts the order's ops, which run.
void cx_lazy_tally_ops(const cx_graph_order *order);

// Report a run to base/trace, where that is wanted.
void cx_lazy_trace_compile(const cx_lazy_run *run);
// executable: NULL where it failed.
void cx_lazy_trace_compiled(const cx_lazy_run *run,
                            cx_pjrt_executable *executable);
void cx_lazy_trace_execute(const cx_lazy_run *run);

// Counted as a transfer.
calx_status *cx_lazy_upload_words(calx_device *d, const uint32_t *words,
                                  size_t n, cx_pjrt_buffer **out) CALX_MUST_USE;

// Executes; with CALX_DEBUG=donation, a donating program's results are compared
// with those of the same program on copies of its donated inputs.
calx_status *cx_lazy_launch(cx_lazy_execution *p) CALX_MUST_USE;
// Counts an execution that was launched at `start`.
void cx_lazy_launch_count(cx_pjrt_event *done, int64_t start, int device,
                          bool together);

#endif
