// launcher/supervisor: the children of one launch, from their start to the last
// one's end.
#ifndef CX_LAUNCHER_SUPERVISOR_H
#define CX_LAUNCHER_SUPERVISOR_H

#include <signal.h>

#include "launcher/orphans.h"
#include "launcher/service.h"
#include "launcher/spawn.h"

typedef struct cx_launcher_supervisor {
  const cx_launcher_options *options;
  const cx_launcher_job *job;
  int attempt;  // 0: the first
  cx_world_segment window;
  cx_launcher_service post;
  pid_t *children;  // [job->processes]; 0: reaped
  int *lifelines;   // [job->processes] of launchers; -1: closed
  int alive;
  cx_launcher_orphans orphans;
  int orphan_count;    // that are to end too, once no child is left
  int64_t orphans_at;  // cx_now_ns() when they were asked to; 0: not yet
  int signals;         // a signalfd
  sigset_t mask;
  struct sigaction on_child, on_pipe;  // these as they were before
  int told;                            // the signal that was passed on; 0: none
  bool dismissed;  // the post has been told that the job ends
  // The failure; times are cx_now_ns(), 0: not yet.
  int64_t failed_at, terminated_at, killed_at;
  calx_code code;  // of the launcher's own words
  char text[CALX_WINDOW_NEWS];
  bool is_told;  // the failure is news: a child's end is not how it was found
  cx_launcher_exit end;
  cx_launcher_exit first;  // bad end of a child that nobody had ended
} cx_launcher_supervisor;

// Whether the children are launchers, not ranks.
static inline bool cx_launcher_is_of_hosts(const cx_launcher_supervisor *family)
{
  return family->options->launchers != NULL;
}

// Why the job failed, in the first words that anybody found.
const char *cx_launcher_supervisor_reason(const cx_launcher_supervisor *family);
// The job has failed: everybody is told, and the children's time runs.
void cx_launcher_supervisor_fail(cx_launcher_supervisor *family, calx_code code,
                                 const char *text);
// The child has been reaped; `how` is waitpid's.
void cx_launcher_supervisor_child_ended(cx_launcher_supervisor *family,
                                        int index, int how);

// One launch, start to end. *out_signal: what this process was sent; 0: nothing
calx_status *cx_launcher_supervisor_run(const cx_launcher_options *options,
                                        const cx_launcher_job *job, int attempt,
                                        cx_launcher_exit *out,
                                        int *out_signal) CALX_MUST_USE;

// In the child `index` of the family, whose parent is `parent`: never returns.
// input: its standard input; -1: its place decides.
_Noreturn void cx_launcher_run_child(const cx_launcher_supervisor *family,
                                     int index, int input, pid_t parent);

#endif
