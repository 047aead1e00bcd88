// launcher/supervisor: one loop that waits for signals, for the service's
// messages and for the ranks' output.
//
// The launcher has one thread, which blocks in poll() only. A failure has three
// steps: all processes learn of it, so that their calls return and the ranks
// can report; then they get SIGTERM; then SIGKILL.
#include "launcher/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "launcher/output.h"

typedef cx_launcher_supervisor supervisor;

enum {
  RETURN_MS = 1000,     // for calls that wait to return with the failure
  TERMINATE_MS = 1000,  // from SIGTERM to SIGKILL
  SAVE_MS = 10000,      // the same after a signal was forwarded: ranks may save
  SERVICE_MS = 3000,    // for the service to end
  // Launchers of other hosts use all these times themselves.
  HOST_RETURN_MS = 6000,
  HOST_TERMINATE_MS = 15000
};

static bool has_passed(int64_t since, int64_t ms)
{
  return cx_now_ms() > since + ms;
}

// ---- children ---------------------------------------------------------------

static void signal_children(const supervisor *s, int number)
{
  for (int i = 0; i < s->job->processes; i++) {
    if (s->children[i] > 0) kill(s->children[i], number);
  }
}

static void close_lifelines(const supervisor *s)
{
  for (int i = 0; s->lifelines != NULL && i < s->job->processes; i++) {
    if (s->lifelines[i] >= 0) close(s->lifelines[i]);
    s->lifelines[i] = -1;
  }
}

static void service_ended(supervisor *s, int status)
{
  s->service.pid = 0;
  if (s->job_ended) return;
  char text[128];
  snprintf(text, sizeof text,
           "the process that serves the store ended by %s %d",
           WIFSIGNALED(status) ? "signal" : "exit",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  cx_launcher_supervisor_fail(s, CALX_ABORTED, text);
}

static void reap(supervisor *s)
{
  int status;
  for (int i = 0; i < s->job->processes; i++) {
    pid_t pid = s->children[i];
    if (pid > 0 && waitpid(pid, &status, WNOHANG) == pid) {
      cx_launcher_supervisor_child_ended(s, i, status);
    }
  }
  pid_t service = s->service.pid;
  if (service > 0 && waitpid(service, &status, WNOHANG) == service) {
    service_ended(s, status);
  }
  cx_launcher_orphans_reap(&s->orphans);
}

static calx_status *start_child(supervisor *s, int index, int input)
{
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) cx_launcher_run_child(s, index, input, parent);
  if (pid < 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "process %d of %d cannot be started: %s", index,
                    s->job->processes, strerror(errno));
  }
  s->children[index] = pid;
  s->alive++;
  return NULL;
}

// The token is sent through the pipe, where no other user can read it.
static calx_status *start_launcher(supervisor *s, int index)
{
  int ends[2];
  char line[sizeof s->job->token + 16];
  int n = snprintf(line, sizeof line, "%s %d\n", s->job->token, s->attempt);
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "%s: no pipe for it: %s",
                    s->options->names[index], strerror(errno));
  }
  s->lifelines[index] = ends[1];
  calx_status *status = NULL;
  if (write(ends[1], line, (size_t)n) != n) {
    status = cx_error(CALX_RESOURCE_EXHAUSTED, "%s: its pipe takes nothing",
                      s->options->names[index]);
  }
  if (status == NULL) status = start_child(s, index, ends[0]);
  close(ends[0]);
  return status;
}

static calx_status *start_children(supervisor *s)
{
  for (int i = 0; i < s->job->processes; i++) {
    CALX_TRY(cx_launcher_is_of_hosts(s) ? start_launcher(s, i)
                                        : start_child(s, i, -1));
  }
  return NULL;
}

// ---- events -----------------------------------------------------------------

static void forward_signal(supervisor *s, const struct signalfd_siginfo *info)
{
  int number = (int)info->ssi_signo;
  if (s->signal != 0) {
    cx_launcher_supervisor_fail(s, CALX_CANCELLED,
                                "the launcher was sent a second signal");
    s->terminated_at = s->killed_at = cx_now_ms();
    signal_children(s, SIGKILL);
    return;
  }
  s->signal = number;
  // Launchers of other hosts learn of it by the end of their lifelines.
  close_lifelines(s);
  // The terminal sends its signals to the children as well.
  bool sent = info->ssi_code == SI_KERNEL || cx_launcher_is_of_hosts(s);
  if (!sent) signal_children(s, number);
}

static void take_signals(supervisor *s)
{
  struct signalfd_siginfo info;
  while (cx_launcher_signals_next(&s->signals, &info)) {
    if (info.ssi_signo != SIGCHLD) forward_signal(s, &info);
  }
  reap(s);
}

static void take_messages(supervisor *s)
{
  cx_launcher_message message;
  while (cx_launcher_service_receive(&s->service, &message)) {
    if (message.code == CALX_OK || s->failed_at != 0 || s->job_ended) continue;
    reap(s);  // the end of a child is a better reason
    s->reported = s->failed_at == 0;
    cx_launcher_supervisor_fail(s, (calx_code)message.code, message.text);
  }
}

// The launcher of the other host writes nothing more, so input is its end.
static void take_lifeline(supervisor *s)
{
  char bytes[256];
  struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
  if (!s->options->lifeline || s->signal != 0 || poll(&input, 1, 0) <= 0) {
    return;
  }
  if (read(STDIN_FILENO, bytes, sizeof bytes) > 0) return;
  s->signal = SIGTERM;
  signal_children(s, SIGTERM);
  cx_launcher_supervisor_fail(s, CALX_CANCELLED,
                              "the launcher that started this host's was lost");
  s->terminated_at = cx_now_ms();
}

// When the children get their next signal.
static int64_t next_signal_time(const supervisor *s)
{
  bool of_hosts = cx_launcher_is_of_hosts(s);
  if (s->failed_at == 0 || s->killed_at != 0) return INT64_MAX;
  int64_t since = s->terminated_at, wait = TERMINATE_MS;
  if (since == 0) {
    since = s->failed_at;
    wait = of_hosts ? HOST_RETURN_MS : RETURN_MS;
  } else if (of_hosts) {
    wait = HOST_TERMINATE_MS;
  } else if (s->signal != 0) {
    wait = SAVE_MS;
  }
  return since + wait;
}

static void end_children(supervisor *s)
{
  if (s->alive == 0 || cx_now_ms() < next_signal_time(s)) return;
  if (s->terminated_at == 0) {
    s->terminated_at = cx_now_ms();
    close_lifelines(s);
    if (!cx_launcher_is_of_hosts(s)) signal_children(s, SIGTERM);
  } else {
    s->killed_at = cx_now_ms();
    signal_children(s, SIGKILL);
  }
}

// After a failure or a signal, what the ranks left behind is ended by the same
// two signals.
static void end_orphans(supervisor *s)
{
  int64_t limit_ms = s->signal != 0 ? SAVE_MS : TERMINATE_MS;
  int number = 0;
  if (s->alive > 0 || (s->failed_at == 0 && s->signal == 0)) return;
  // A process that SIGKILL does not end is left to the system.
  if (s->orphans_time != 0 &&
      has_passed(s->orphans_time, limit_ms + SERVICE_MS)) {
    s->orphan_count = 0;
    return;
  }
  if (s->orphans_time == 0) {
    s->orphans_time = cx_now_ms();
    number = s->killed_at != 0 ? SIGKILL : SIGTERM;
  } else if (s->killed_at != 0 || has_passed(s->orphans_time, limit_ms)) {
    number = SIGKILL;
  }
  s->orphan_count = cx_launcher_orphans_signal(&s->orphans, number);
}

// Once no child is left the service may end. On host 0 of several it first
// waits for the other hosts.
static void end_service(supervisor *s, int64_t *since)
{
  if (s->alive > 0) return;
  if (!s->job_ended) {
    s->job_ended = true;
    *since = cx_now_ms();
    cx_launcher_service_send(s->service.fd, CALX_OK, "");
  }
  bool waits = s->job->hosts > 1 && s->failed_at == 0 && s->signal == 0;
  if (waits) *since = cx_now_ms();
  if (has_passed(*since, SERVICE_MS)) cx_launcher_service_close(&s->service);
}

static void wait_for_event(const supervisor *s, struct pollfd *polled)
{
  polled[0] = (struct pollfd){ .fd = s->signals.fd, .events = POLLIN };
  polled[1] = (struct pollfd){ .fd = s->service.fd, .events = POLLIN };
  nfds_t n = 2;
  if (s->options->lifeline && s->signal == 0) {
    polled[n++] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
  }
  if (s->options->output != NULL) {
    n += cx_launcher_output_add_polled(s->options->output, polled + n);
  }
  int64_t left = s->alive == 0 ? 50 : 1000, next = next_signal_time(s);
  if (next != INT64_MAX && s->alive > 0) {
    left = next - cx_now_ms();
  }
  poll(polled, n, left < 0 ? 0 : (int)left);
}

// Whether lines are still to be written. After a signal they have as long as
// the service.
static bool has_lines(const supervisor *s, int64_t since)
{
  bool late = s->signal != 0 && has_passed(since, SERVICE_MS);
  return s->options->output != NULL && !late &&
         cx_launcher_output_is_pending(s->options->output);
}

static void watch(supervisor *s, struct pollfd *polled)
{
  int64_t since = 0;  // no child is left
  while (s->alive > 0 || s->service.pid > 0 || s->orphan_count > 0 ||
         has_lines(s, since)) {
    wait_for_event(s, polled);
    take_signals(s);
    take_messages(s);
    take_lifeline(s);
    if (s->options->output != NULL) {
      cx_launcher_output_forward(s->options->output, s->alive == 0);
    }
    end_children(s);
    end_orphans(s);
    end_service(s, &since);
  }
  take_messages(s);
}

// ---- one launch -------------------------------------------------------------

static calx_status *start_and_watch(supervisor *s, struct pollfd *polled)
{
  struct cx_launcher_output *output = s->options->output;
  int n = s->job->processes;
  if (output != NULL) {
    CALX_TRY(cx_launcher_output_begin(output, s->job->host * n, n));
  }
  calx_status *status = NULL;
  if (!cx_launcher_is_of_hosts(s)) {
    status = cx_launcher_service_start(s->job, s->segment.head, &s->service);
  }
  if (status == NULL) {
    status = start_children(s);
    if (status != NULL) {
      cx_launcher_supervisor_fail(s, calx_status_code(status),
                                  cx_status_sentence(status));
    }
    if (output != NULL) cx_launcher_output_be_parent(output);
    watch(s, polled);
  }
  if (output != NULL) cx_launcher_output_end(output);
  cx_launcher_service_close(&s->service);
  return status;
}

static calx_status *run(supervisor *s)
{
  size_t n = (size_t)s->job->processes;
  s->children = cx_calloc(n, sizeof *s->children);
  s->lifelines = cx_alloc(n * sizeof *s->lifelines);
  struct pollfd *polled = cx_calloc(5 + 2 * n, sizeof *polled);
  calx_status *status = NULL;
  if (s->children == NULL || s->lifelines == NULL || polled == NULL) {
    status = cx_out_of_memory();
  } else {
    for (size_t i = 0; i < n; i++) s->lifelines[i] = -1;
    s->orphans = (cx_launcher_orphans){ .children = s->children,
                                        .count = s->job->processes,
                                        .service = &s->service.pid };
    // A connection to a host may leave a process behind that serves others too.
    if (!cx_launcher_is_of_hosts(s)) cx_launcher_orphans_begin(&s->orphans);
    status = start_and_watch(s, polled);
    cx_launcher_orphans_end(&s->orphans);
    close_lifelines(s);
  }
  cx_free(s->lifelines);
  cx_free(s->children);
  cx_free(polled);
  return status;
}

calx_status *cx_launcher_supervisor_run(const cx_launcher_options *options,
                                        const cx_launcher_job *job, int attempt,
                                        cx_launcher_exit *out, int *out_signal)
{
  supervisor s = { .options = options,
                   .job = job,
                   .attempt = attempt,
                   .service = { .fd = -1 },
                   .exit = { .rank = -1 },
                   .first = { .rank = -1 } };
  *out_signal = 0;
  CALX_TRY(cx_world_segment_create(job->processes, &s.segment));
  calx_status *status = cx_launcher_signals_begin(&s.signals);
  if (status == NULL) {
    fflush(NULL);  // else each child would write the buffered text again
    status = run(&s);
    // Signals that are still pending were meant for this launch.
    for (struct signalfd_siginfo info;
         cx_launcher_signals_next(&s.signals, &info);) {
    }
    cx_launcher_signals_end(&s.signals);
  }
  if (status == NULL) status = cx_launcher_supervisor_outcome(&s);
  if (status != NULL && s.exit.code == 0) s.exit.code = 1;
  *out = s.exit;
  *out_signal = s.signal;
  cx_world_segment_close(&s.segment);
  return status;
}
