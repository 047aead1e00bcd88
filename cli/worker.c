// cli/worker: see worker.h.
//
// The child's standard output is its parent's standard error, because a plugin
// may write there what is no answer; its standard input is empty, because the
// lines are its parent's. A thread in it waits for the parent's end, so that a
// program that hangs does not outlive a killed parent.
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "args.h"
#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "lines.h"

// ---- the child ----

typedef struct child_ends {
  int requests, answers, life;
} child_ends;

static void end_with_parent(void *user)
{
  char byte;
  while (read(*(int *)user, &byte, 1) < 0 && errno == EINTR) {
  }
  _exit(CX_CLI_FAILED);
}

static bool say(int fd, cx_text *line)
{
  cx_text_char(line, '\n');
  if (cx_text_failed(line)) return false;
  for (size_t at = 0; at < line->size;) {
    ssize_t n = write(fd, line->data + at, line->size - at);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) at += (size_t)n;
  }
  return true;
}

static bool say_opened(int fd, calx_status *opened)
{
  cx_text line = { 0 };
  cx_cli_line_append(
      &line, opened == NULL ? CX_CLI_READY : calx_status_message(opened));
  bool said = say(fd, &line);
  cx_text_free(&line);
  calx_status_free(opened);
  return said && opened == NULL;
}

// Never returns. _exit: what the parent had buffered is the parent's to write.
static void serve(child_ends ends, cx_cli_runner runner,
                  cx_cli_answer_fn *answer)
{
  int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  FILE *requests = fdopen(ends.requests, "r");
  cx_thread watch = { 0 };
  calx_status *status = cx_thread_start(&watch, end_with_parent, &ends.life);
  if (status == NULL && requests == NULL) status = cx_out_of_memory();
  if (status == NULL && !runner.opens_later) {
    status = cx_cli_runner_open(&runner);
  }
  bool going = say_opened(ends.answers, status);
  cx_text line = { 0 }, out = { 0 };
  while (going && cx_cli_line_read(requests, &line)) {
    cx_text_clear(&out);
    answer(&runner, &line, &out);
    going = say(ends.answers, &out);
  }
  _exit(going ? CX_CLI_OK : CX_CLI_FAILED);
}

// ---- the parent ----

static void close_all(int (*pipes)[2], size_t n)
{
  for (size_t i = 0; i < n; i++) {
    close(pipes[i][0]);
    close(pipes[i][1]);
  }
}

calx_status *cx_cli_worker_start(cx_cli_worker *w, const cx_cli_runner *runner,
                                 cx_cli_answer_fn *answer)
{
  enum { REQUESTS, ANSWERS, LIFE, PIPES };
  int pipes[PIPES][2];
  for (size_t i = 0; i < PIPES; i++) {
    if (pipe2(pipes[i], O_CLOEXEC) != 0) {
      close_all(pipes, i);
      return cx_error(CALX_RESOURCE_EXHAUSTED, "worker: no pipe: %s",
                      strerror(errno));
    }
  }
  signal(SIGPIPE, SIG_IGN);  // a worker that is gone is heard of by its end
  fflush(stdout);
  pid_t pid = fork();
  if (pid < 0) {
    close_all(pipes, PIPES);
    return cx_error(CALX_RESOURCE_EXHAUSTED, "worker: no process: %s",
                    strerror(errno));
  }
  if (pid == 0) {
    close(pipes[REQUESTS][1]);
    close(pipes[ANSWERS][0]);
    close(pipes[LIFE][1]);
    serve((child_ends){ pipes[REQUESTS][0], pipes[ANSWERS][1], pipes[LIFE][0] },
          *runner, answer);
  }
  close(pipes[REQUESTS][0]);
  close(pipes[ANSWERS][1]);
  close(pipes[LIFE][0]);
  *w = (cx_cli_worker){ pid, pipes[REQUESTS][1], pipes[ANSWERS][0],
                        pipes[LIFE][1] };
  return NULL;
}

void cx_cli_worker_tell(cx_cli_worker *w, const cx_text *line)
{
  cx_text copy = { 0 };
  cx_text_append_n(&copy, cx_text_str(line), line->size);
  if (!say(w->to, &copy)) kill(w->pid, SIGKILL);
  cx_text_free(&copy);
}

// The child's end; it is dead or about to be.
static int bury(cx_cli_worker *w)
{
  int how = 0;
  close(w->to);
  close(w->from);
  while (waitpid(w->pid, &how, 0) < 0 && errno == EINTR) {
  }
  close(w->life);
  *w = (cx_cli_worker){ 0 };
  return how;
}

void cx_cli_worker_stop(cx_cli_worker *w)
{
  if (w->pid == 0) return;
  kill(w->pid, SIGKILL);
  bury(w);
}

// The killing is for one that only closed its pipe; an end has its reason by
// the time that the pipe is closed by it.
static cx_cli_heard crashed(cx_cli_worker *w, cx_text *out)
{
  kill(w->pid, SIGKILL);
  int how = bury(w);
  cx_text_clear(out);
  if (WIFSIGNALED(how)) {
    cx_text_format(out, "signal %d", WTERMSIG(how));
  } else {
    cx_text_format(out, "exit status %d", WEXITSTATUS(how));
  }
  return CX_CLI_CRASHED;
}

// Milliseconds until `deadline`, for poll(); -1: there is none.
static int left(int64_t deadline)
{
  if (deadline == 0) return -1;
  int64_t ns = deadline - cx_now_ns();
  return ns <= 0 ? 0 : (int)(ns / 1000000 + 1);
}

cx_cli_heard cx_cli_worker_hear(cx_cli_worker *w, double seconds, cx_text *out)
{
  int64_t deadline = seconds > 0 ? cx_now_ns() + (int64_t)(seconds * 1e9) : 0;
  cx_text_clear(out);
  for (;;) {
    struct pollfd from = { .fd = w->from, .events = POLLIN };
    int ready = poll(&from, 1, left(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      cx_cli_worker_stop(w);
      return CX_CLI_LATE;
    }
    char piece[4096];
    ssize_t n = read(w->from, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return crashed(w, out);
    cx_text_append_n(out, piece, (size_t)n);
    if (piece[n - 1] != '\n') continue;
    if (!cx_text_failed(out)) out->data[--out->size] = '\0';
    return CX_CLI_ANSWERED;
  }
}
