// launcher/failure: which child caused the job's failure, and its message; the
// outcome of a launch.
//
// Ranks that learn of a failure end too, often before the launcher sees that
// the rank which failed has ended. So the first end is not always the cause. A
// message that a rank has written to the segment before it ended is a better
// reason than its exit status; the first such message is the job's failure, and
// it names the rank.
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/thread.h"
#include "launcher/supervisor.h"
#include "world/agreement.h"

const char *cx_launcher_supervisor_reason(const cx_launcher_supervisor *s)
{
  const calx_segment_head *head = s->segment.head;
  bool recorded =
      cx_world_segment_failed(head) != CALX_OK && !cx_launcher_is_of_hosts(s);
  return recorded ? head->message : s->text;
}

void cx_launcher_supervisor_fail(cx_launcher_supervisor *s, calx_code code,
                                 const char *text)
{
  if (s->failed_at != 0) return;
  s->failed_at = cx_now_ms();
  s->code = code;
  snprintf(s->text, sizeof s->text, "%s", text);
  cx_world_segment_fail(s->segment.head, code, text);
  cx_launcher_service_send(s->service.fd, code,
                           cx_launcher_supervisor_reason(s));
}

static void format_end(const cx_launcher_supervisor *s, int process, int status,
                       char text[CALX_SEGMENT_MESSAGE])
{
  const size_t size = CALX_SEGMENT_MESSAGE;
  char rank[32];
  snprintf(rank, sizeof rank, "rank %d", process);
  const char *name =
      cx_launcher_is_of_hosts(s) ? s->options->names[process] : rank;
  if (WIFSIGNALED(status)) {
    int number = WTERMSIG(status);
    snprintf(text, size, "%s ended by signal %d (%s)", name, number,
             strsignal(number));
  } else if (cx_launcher_is_of_hosts(s) && WEXITSTATUS(status) == 127) {
    snprintf(text, size,
             "%s exited with 127: the command that connects to it, or one "
             "there, was not found",
             name);
  } else {
    snprintf(text, size, "%s exited with %d", name, WEXITSTATUS(status));
  }
}

// Of several launchers that failed, the first whose own rank failed is the
// cause.
static bool is_better_cause(const cx_launcher_supervisor *s, int code)
{
  return cx_launcher_is_of_hosts(s) &&
         s->exit.code == CX_LAUNCHER_EXIT_FAILED &&
         code != CX_LAUNCHER_EXIT_FAILED && s->terminated_at == 0;
}

// A rank's failure is in the segment before the service's message arrives.
static void read_segment(cx_launcher_supervisor *s)
{
  const calx_segment_head *head = s->segment.head;
  calx_code code = cx_world_segment_failed(head);
  if (s->failed_at != 0 || code == CALX_OK) return;
  s->reported = true;
  cx_launcher_supervisor_fail(s, code, head->message);
}

// The first rank that a message names, at its beginning or after the position
// in the user's program: "train.c:20: in step: rank 3: …"; -1: none.
static int rank_of(const char *message)
{
  int rank;
  for (const char *at = message; (at = strstr(at, "rank ")) != NULL; at++) {
    bool begins = at == message || (at - message > 1 && at[-2] == ':');
    if (begins && sscanf(at, "rank %d", &rank) == 1) return rank;
  }
  return -1;
}

// The process of the rank that the reported failure names; -1: none.
static int named_process(const cx_launcher_supervisor *s)
{
  int rank = s->reported ? rank_of(cx_launcher_supervisor_reason(s)) : -1;
  if (rank < 0) return -1;
  const cx_world_agreement *agreement = cx_world_agreement_in(s->segment.head);
  int world = s->job->hosts * s->job->processes;
  int devices = (int)atomic_load(&agreement->ranks) / world;
  return rank / (devices > 0 ? devices : 1);
}

// Whether the child's end is the failure, and no consequence of it.
static bool is_cause(const cx_launcher_supervisor *s, int process)
{
  int named = named_process(s);
  if (named >= 0) return process == named;
  return s->exit.rank < 0 && s->terminated_at == 0;
}

void cx_launcher_supervisor_child_ended(cx_launcher_supervisor *s, int index,
                                        int status)
{
  int process = s->job->host * s->job->processes + index;
  s->children[index] = 0;
  s->alive--;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  read_segment(s);
  if (is_better_cause(s, code)) {
    s->exit.code = code;
    format_end(s, process, status, s->text);
  }
  if (s->first.rank < 0 && s->terminated_at == 0) {
    s->first = (cx_launcher_exit){ .rank = process, .code = code };
  }
  if (!is_cause(s, process)) return;
  s->exit = (cx_launcher_exit){ .rank = process, .code = code };
  char text[CALX_SEGMENT_MESSAGE];
  format_end(s, process, status, text);
  cx_launcher_supervisor_fail(s, CALX_ABORTED, text);
}

// ---- the outcome ------------------------------------------------------------

// Most likely the ranks of the program were meant to train together.
static void warn_if_never_joined(const cx_launcher_supervisor *s)
{
  const cx_world_agreement *agreement = cx_world_agreement_in(s->segment.head);
  if (s->options->argv == NULL || s->job->hosts * s->job->processes == 1 ||
      atomic_load(&agreement->ranks) != 0) {
    return;
  }
  cx_log(
      "'%s' ran %d times, each by itself: no process of it called "
      "calx_launch",
      s->options->argv[0], s->job->processes);
}

calx_status *cx_launcher_supervisor_outcome(cx_launcher_supervisor *s)
{
  if (s->failed_at == 0) {
    if (s->signal == 0) warn_if_never_joined(s);
    return NULL;
  }
  // The rank that the failure names may have ended normally, but too early.
  if (s->exit.rank < 0 && s->job->hosts == 1) s->exit = s->first;
  if (s->exit.code == 0 || (cx_launcher_is_of_hosts(s) && s->signal != 0)) {
    s->exit.code = s->signal != 0 ? 128 + s->signal : 1;
  }
  calx_code code = cx_world_segment_failed(s->segment.head);
  const char *reason = cx_launcher_supervisor_reason(s);
  // A rank's message has its own call site; this launcher's gets the caller's.
  if (strcmp(reason, s->text) != 0) {
    return cx_error_at(NULL, code != CALX_OK ? code : s->code, "%s", reason);
  }
  return cx_error(s->code, "%s", s->text);
}
