// launcher/supervisor: one loop that waits for signals, for the post's letters
// and for what the ranks write.
//
// The launcher has one thread and nothing that blocks but the poll. A failure
// has three steps: everybody is told, so that calls which wait return and the
// ranks can say what they found; then SIGTERM; then SIGKILL.
#include "launcher/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "launcher/output.h"
#include "world/agreement.h"

enum {
  RETURN_MS = 1000,     // for calls that wait to return with the news
  TERMINATE_MS = 1000,  // from SIGTERM to SIGKILL
  SAVE_MS = 10000,      // the same where a signal had been passed on before
  POST_MS = 3000,       // for the post to end
  // Launchers of other hosts take all these times themselves.
  HOST_RETURN_MS = 6000,
  HOST_TERMINATE_MS = 15000
};

// ---- children ---------------------------------------------------------------

static void signal_children(const cx_launcher_supervisor *f, int number)
{
  for (int i = 0; i < f->job->processes; i++) {
    if (f->children[i] > 0) kill(f->children[i], number);
  }
}

static void close_lifelines(const cx_launcher_supervisor *f)
{
  for (int i = 0; f->lifelines != NULL && i < f->job->processes; i++) {
    if (f->lifelines[i] >= 0) close(f->lifelines[i]);
    f->lifelines[i] = -1;
  }
}

static void post_ended(cx_launcher_supervisor *f, int how)
{
  f->post.pid = 0;
  if (f->dismissed) return;
  char text[128];
  snprintf(text, sizeof text,
           "the process that serves the store ended by %s %d",
           WIFSIGNALED(how) ? "signal" : "exit",
           WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
  cx_launcher_supervisor_fail(f, CALX_ABORTED, text);
}

static void reap(cx_launcher_supervisor *f)
{
  int how;
  for (int i = 0; i < f->job->processes; i++) {
    pid_t pid = f->children[i];
    if (pid > 0 && waitpid(pid, &how, WNOHANG) == pid)
      cx_launcher_supervisor_child_ended(f, i, how);
  }
  pid_t post = f->post.pid;
  if (post > 0 && waitpid(post, &how, WNOHANG) == post) post_ended(f, how);
  cx_launcher_orphans_reap(
      &f->orphans, &(cx_launcher_own_children){ f->children, f->job->processes,
                                                f->post.pid });
}

static calx_status *start_child(cx_launcher_supervisor *f, int index, int input)
{
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) cx_launcher_run_child(f, index, input, parent);
  if (pid < 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "process %d of %d cannot be started: %s", index,
                    f->job->processes, strerror(errno));
  }
  f->children[index] = pid;
  f->alive++;
  return NULL;
}

// The token goes where no other user of the hosts can read it.
static calx_status *start_launcher(cx_launcher_supervisor *f, int index)
{
  int ends[2];
  char line[sizeof f->job->token + 16];
  int n = snprintf(line, sizeof line, "%s %d\n", f->job->token, f->attempt);
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "%s: no pipe for it: %s",
                    f->options->names[index], strerror(errno));
  }
  f->lifelines[index] = ends[1];
  calx_status *status = NULL;
  if (write(ends[1], line, (size_t)n) != n) {
    status = cx_error(CALX_RESOURCE_EXHAUSTED, "%s: its pipe takes nothing",
                      f->options->names[index]);
  }
  if (status == NULL) status = start_child(f, index, ends[0]);
  close(ends[0]);
  return status;
}

static calx_status *start_children(cx_launcher_supervisor *f)
{
  for (int i = 0; i < f->job->processes; i++) {
    CALX_TRY(cx_launcher_is_of_hosts(f) ? start_launcher(f, i)
                                        : start_child(f, i, -1));
  }
  return NULL;
}

// ---- what happens -----------------------------------------------------------

static void pass_on(cx_launcher_supervisor *f,
                    const struct signalfd_siginfo *info)
{
  int number = (int)info->ssi_signo;
  if (f->told != 0) {
    // Asked twice: at once.
    cx_launcher_supervisor_fail(f, CALX_CANCELLED,
                                "the launcher was sent a second signal");
    f->terminated_at = f->killed_at = cx_now_ns();
    signal_children(f, SIGKILL);
    return;
  }
  f->told = number;
  // It is not for a connection, but for what is at its other end.
  close_lifelines(f);
  // A terminal's signals have reached the children as well.
  bool known = info->ssi_code == SI_KERNEL || cx_launcher_is_of_hosts(f);
  if (!known) signal_children(f, number);
}

static void take_signals(cx_launcher_supervisor *f)
{
  struct signalfd_siginfo info;
  while (read(f->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    if (info.ssi_signo != SIGCHLD) pass_on(f, &info);
  }
  reap(f);
}

static void take_letters(cx_launcher_supervisor *f)
{
  cx_launcher_message letter;
  bool gone = false;
  while (f->post.fd >= 0 &&
         cx_launcher_service_receive(&f->post, &letter, &gone)) {
    bool news = letter.code != CALX_OK && f->failed_at == 0 && !f->dismissed;
    if (!news) continue;
    reap(f);  // a child whose end this launcher knows already is the better
    f->is_told = f->failed_at == 0;
    cx_launcher_supervisor_fail(f, (calx_code)letter.code, letter.news);
  }
  if (gone) {
    close(f->post.fd);
    f->post.fd = -1;
  }
}

// The other host's launcher sends nothing: this is its end.
static void take_lifeline(cx_launcher_supervisor *f)
{
  char bytes[256];
  struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
  if (!f->options->lifeline || f->told != 0 || poll(&input, 1, 0) <= 0) return;
  if (read(STDIN_FILENO, bytes, sizeof bytes) > 0) return;
  f->told = SIGTERM;
  signal_children(f, SIGTERM);
  cx_launcher_supervisor_fail(f, CALX_CANCELLED,
                              "the launcher that started this host's has gone");
  f->terminated_at = cx_now_ns();
}

static int64_t due(const cx_launcher_supervisor *f)
{
  bool of_hosts = cx_launcher_is_of_hosts(f);
  if (f->failed_at == 0 || f->killed_at != 0) return INT64_MAX;
  int64_t since = f->terminated_at, wait = TERMINATE_MS;
  if (since == 0) {
    since = f->failed_at;
    wait = of_hosts ? HOST_RETURN_MS : RETURN_MS;
  } else if (of_hosts) {
    wait = HOST_TERMINATE_MS;
  } else if (f->told != 0) {
    wait = SAVE_MS;
  }
  return since + wait * 1000000;
}

static void end_children(cx_launcher_supervisor *f)
{
  if (f->alive == 0 || cx_now_ns() < due(f)) return;
  if (f->terminated_at == 0) {
    f->terminated_at = cx_now_ns();
    close_lifelines(f);
    if (!cx_launcher_is_of_hosts(f)) signal_children(f, SIGTERM);
  } else {
    f->killed_at = cx_now_ns();
    signal_children(f, SIGKILL);
  }
}

// Of a job that failed, or was ended, what its ranks left behind ends too: it
// has had no signal yet, so it gets the same two.
static void end_orphans(cx_launcher_supervisor *f)
{
  int64_t limit_ms = f->told != 0 ? SAVE_MS : TERMINATE_MS;
  int number = 0;
  if (f->alive > 0 || (f->failed_at == 0 && f->told == 0)) return;
  // One that cannot be killed is the system's.
  int64_t last_ms = limit_ms + POST_MS;
  if (f->orphans_at != 0 && cx_now_ns() > f->orphans_at + last_ms * 1000000) {
    f->orphan_count = 0;
    return;
  }
  if (f->orphans_at == 0) {
    f->orphans_at = cx_now_ns();
    number = f->killed_at != 0 ? SIGKILL : SIGTERM;
  } else if (cx_now_ns() > f->orphans_at + limit_ms * 1000000 ||
             f->killed_at != 0) {
    number = SIGKILL;
  }
  f->orphan_count = cx_launcher_orphans_signal(
      &f->orphans,
      &(cx_launcher_own_children){ f->children, f->job->processes,
                                   f->post.pid },
      number);
}

// Nobody is left: the post may go, and on host 0 of several waits for others.
static void end_post(cx_launcher_supervisor *f, int64_t *since)
{
  if (f->alive > 0) return;
  if (!f->dismissed) {
    f->dismissed = true;
    *since = cx_now_ns();
    cx_launcher_service_send(&f->post, CALX_OK, "");
  }
  bool waits = f->job->hosts > 1 && f->failed_at == 0 && f->told == 0;
  if (waits) *since = cx_now_ns();
  if (cx_now_ns() > *since + (int64_t)POST_MS * 1000000) {
    cx_launcher_service_close(&f->post);
  }
}

static void wait_for_something(const cx_launcher_supervisor *f,
                               struct pollfd *polled)
{
  polled[0] = (struct pollfd){ .fd = f->signals, .events = POLLIN };
  polled[1] = (struct pollfd){ .fd = f->post.fd, .events = POLLIN };
  nfds_t n = 2;
  if (f->options->lifeline && f->told == 0) {
    polled[n++] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
  }
  if (f->options->output != NULL) {
    n += cx_launcher_output_add_polled(f->options->output, polled + n);
  }
  int64_t left = f->alive == 0 ? 50 : 1000;
  if (due(f) != INT64_MAX && f->alive > 0) {
    left = (due(f) - cx_now_ns()) / 1000000 + 1;
  }
  poll(polled, n, left < 0 ? 0 : (int)left);
}

// Nobody is left, but perhaps lines that nobody has read yet. After a signal
// they have as long as the post.
static bool lines_wait(const cx_launcher_supervisor *f, int64_t since)
{
  bool late = f->told != 0 && cx_now_ns() > since + (int64_t)POST_MS * 1000000;
  return f->options->output != NULL && !late &&
         cx_launcher_output_is_pending(f->options->output);
}

static void live(cx_launcher_supervisor *f, struct pollfd *polled)
{
  int64_t since = 0;
  while (f->alive > 0 || f->post.pid > 0 || f->orphan_count > 0 ||
         lines_wait(f, since)) {
    wait_for_something(f, polled);
    take_signals(f);
    take_letters(f);
    take_lifeline(f);
    if (f->options->output != NULL) {
      cx_launcher_output_forward(f->options->output, f->alive == 0);
    }
    end_children(f);
    end_orphans(f);
    end_post(f, &since);
  }
  take_letters(f);
}

// ---- around it --------------------------------------------------------------

static calx_status *take_over_signals(cx_launcher_supervisor *f)
{
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGHUP);
  f->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
  if (f->signals < 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "no descriptor for signals: %s",
                    strerror(errno));
  }
  // Where children are ignored, nobody could ask how they ended.
  struct sigaction plain = { .sa_handler = SIG_DFL };
  sigaction(SIGCHLD, &plain, &f->on_child);
  // Who stops reading what the ranks write does not end them.
  struct sigaction ignore = { .sa_handler = SIG_IGN };
  sigaction(SIGPIPE, &ignore, &f->on_pipe);
  sigprocmask(SIG_BLOCK, &ours, &f->mask);
  return NULL;
}

static void give_back_signals(cx_launcher_supervisor *f)
{
  struct signalfd_siginfo info;
  // What came in the meantime was for the launch that is over.
  while (read(f->signals, &info, sizeof info) == (ssize_t)sizeof info) {
  }
  close(f->signals);
  sigaction(SIGCHLD, &f->on_child, NULL);
  sigaction(SIGPIPE, &f->on_pipe, NULL);
  sigprocmask(SIG_SETMASK, &f->mask, NULL);
}

// A program whose processes never met is told so: most likely its ranks were
// meant to train together.
static void say_strangers(const cx_launcher_supervisor *f)
{
  const cx_world_agreement *board = cx_world_agreement_in(f->window.head);
  if (f->options->argv == NULL || f->job->hosts * f->job->processes == 1 ||
      atomic_load(&board->ranks) != 0) {
    return;
  }
  cx_log(
      "'%s' ran %d times, each by itself: no process of it called "
      "calx_launch",
      f->options->argv[0], f->job->processes);
}

static calx_status *outcome(cx_launcher_supervisor *f)
{
  if (f->failed_at == 0) {
    if (f->told == 0) say_strangers(f);
    return NULL;
  }
  // The rank that the news name may have ended well, only too early.
  if (f->end.rank < 0 && f->job->hosts == 1) f->end = f->first;
  if (f->end.code == 0 || (cx_launcher_is_of_hosts(f) && f->told != 0)) {
    f->end.code = f->told != 0 ? 128 + f->told : 1;
  }
  calx_code told = cx_world_segment_failed(f->window.head);
  // A rank's own message has its place; this launcher's words get the user's.
  if (strcmp(cx_launcher_supervisor_reason(f), f->text) != 0) {
    return cx_error_at(NULL, told != CALX_OK ? told : f->code, "%s",
                       cx_launcher_supervisor_reason(f));
  }
  return cx_error(f->code, "%s", f->text);
}

static calx_status *run(cx_launcher_supervisor *f)
{
  struct cx_launcher_output *output = f->options->output;
  size_t n = (size_t)f->job->processes;
  f->children = cx_calloc(n, sizeof *f->children);
  struct pollfd *polled = cx_calloc(5 + 2 * n, sizeof *polled);
  f->lifelines = cx_alloc(n * sizeof *f->lifelines);
  calx_status *status = NULL;
  if (f->lifelines != NULL) {
    memset(f->lifelines, 0xff, n * sizeof *f->lifelines);  // all -1
  }
  if (f->children == NULL || f->lifelines == NULL || polled == NULL) {
    status = cx_out_of_memory();
  }
  if (status == NULL && output != NULL) {
    int first = f->job->host * f->job->processes;
    status = cx_launcher_output_begin(output, first, f->job->processes);
  }
  if (status == NULL) {
    if (!cx_launcher_is_of_hosts(f)) {
      status = cx_launcher_service_start(f->job, f->window.head, &f->post);
    }
    if (status == NULL) {
      status = start_children(f);
      if (status != NULL) {
        cx_launcher_supervisor_fail(f, calx_status_code(status),
                                    cx_status_sentence(status));
      }
      if (output != NULL) cx_launcher_output_be_parent(output);
      live(f, polled);
    }
    if (output != NULL) cx_launcher_output_end(output);
  }
  cx_launcher_service_close(&f->post);
  close_lifelines(f);
  cx_free(f->lifelines);
  f->lifelines = NULL;
  cx_free(f->children);
  cx_free(polled);
  return status;
}

calx_status *cx_launcher_supervisor_run(const cx_launcher_options *options,
                                        const cx_launcher_job *job, int attempt,
                                        cx_launcher_exit *out, int *out_signal)
{
  cx_launcher_supervisor f = { .options = options,
                               .job = job,
                               .attempt = attempt,
                               .post = { .fd = -1 },
                               .end = { .rank = -1 },
                               .first = { .rank = -1 } };
  *out_signal = 0;
  CALX_TRY(cx_world_segment_create(job->processes, &f.window));
  calx_status *status = take_over_signals(&f);
  if (status == NULL) {
    fflush(NULL);  // else each child would write it once more
    // A connection may leave one behind that serves others too.
    if (!cx_launcher_is_of_hosts(&f)) cx_launcher_orphans_begin(&f.orphans);
    status = run(&f);
    cx_launcher_orphans_end(&f.orphans);
    give_back_signals(&f);
  }
  if (status == NULL) status = outcome(&f);
  if (status != NULL && f.end.code == 0) f.end.code = 1;
  *out = f.end;
  *out_signal = f.told;
  cx_world_segment_close(&f.window);
  return status;
}
