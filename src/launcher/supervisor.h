// launcher/supervisor: starts the children of one launch, and watches them
// until the last one has ended.
#ifndef CX_LAUNCHER_SUPERVISOR_H
#define CX_LAUNCHER_SUPERVISOR_H

#include "launcher/orphans.h"
#include "launcher/service.h"
#include "launcher/signals.h"
#include "launcher/spawn.h"

// Times are cx_now_ms(); 0: not yet.
typedef struct cx_launcher_supervisor {
  const cx_launcher_options *options;
  const cx_launcher_job *job;
  int attempt;  // 0: the first
  cx_world_segment segment;
  cx_launcher_service service;
  pid_t *children;  // [job->processes]; 0: reaped
  int *lifelines;   // [job->processes] of launchers; -1: closed
  int alive;
  cx_launcher_orphans orphans;
  int orphan_count;      // those that are to end once no child is left
  int64_t orphans_time;  // when they got the first signal
  cx_launcher_signals signals;
  int signal;      // that was forwarded; 0: none
  bool job_ended;  // the service knows
  int64_t failed_at, terminated_at, killed_at;
  calx_code code;                   // of the failure that the launcher found
  char text[CALX_SEGMENT_MESSAGE];  // its message
  bool reported;  // a rank or the store reported the failure; the launcher did
                  // not find it by a child's end
  cx_launcher_exit exit;
  cx_launcher_exit first;  // the first bad end before the children got signals
} cx_launcher_supervisor;

// Whether the children are launchers of other hosts, not ranks.
static inline bool cx_launcher_is_of_hosts(const cx_launcher_supervisor *s)
{
  return s->options->commands != NULL;
}

// The message of the job's first failure.
const char *cx_launcher_supervisor_reason(const cx_launcher_supervisor *s);
// Fails the job; the times until the children get signals begin.
void cx_launcher_supervisor_fail(cx_launcher_supervisor *s, calx_code code,
                                 const char *text);
// A child has been reaped; `status` is waitpid's.
void cx_launcher_supervisor_child_ended(cx_launcher_supervisor *s, int index,
                                        int status);
// The launch's status; completes `exit`.
calx_status *cx_launcher_supervisor_outcome(cx_launcher_supervisor *s)
    CALX_MUST_USE;

// One launch, from start to end. *out_signal: a signal that this process got;
// 0: none.
calx_status *cx_launcher_supervisor_run(const cx_launcher_options *options,
                                        const cx_launcher_job *job, int attempt,
                                        cx_launcher_exit *out,
                                        int *out_signal) CALX_MUST_USE;

// In child `index`, whose parent is `parent`; never returns. input: its
// standard input; -1: it depends on the rank.
_Noreturn void cx_launcher_run_child(const cx_launcher_supervisor *s, int index,
                                     int input, pid_t parent);

#endif
