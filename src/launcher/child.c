// launcher/child: what a child does between its fork and its function or
// program.
//
// It has the thread that forked, so it may allocate and set its environment.
// It leaves by _exit: what this process registered to run at exit is its
// parent's.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/env.h"
#include "launcher/output.h"
#include "launcher/supervisor.h"
#include "world/endpoint.h"

enum { NOT_FOUND = 127, NOT_RUN = 126 };  // as a shell says it

static void set_environment(const cx_launcher_supervisor *f, int index)
{
  const cx_launcher_job *job = f->job;
  cx_env_set_int("CALX_RANK", job->host * job->processes + index);
  cx_env_set_int("CALX_WORLD", job->hosts * job->processes);
  cx_env_set_int("CALX_LOCAL_RANK", index);
  cx_env_set_int("CALX_LOCAL_WORLD", job->processes);
  cx_env_set_int("CALX_NODE_RANK", job->host);
  cx_env_set_int("CALX_NNODES", job->hosts);
  cx_env_set_int("CALX_WINDOW_FD", f->window.fd);
  cx_env_set_int("CALX_RESTART", f->attempt);
  setenv("CALX_STORE", job->url, 1);
  setenv("CALX_LAUNCH", job->launch, 1);
  if (job->token[0] != '\0') setenv("CALX_TOKEN", job->token, 1);
}

// One process can read what the launcher is given; it is the first.
static void set_input(const cx_launcher_supervisor *f, int index, int input)
{
  bool reads = index == 0 && !f->options->lifeline;
  if (input < 0 && !reads) input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input >= 0) dup2(input, STDIN_FILENO);
}

static _Noreturn void run_program(const cx_launcher_supervisor *f, int index)
{
  bool is_launcher = cx_launcher_is_of_hosts(f);
  char *const *argv =
      is_launcher ? f->options->launchers[index] : f->options->argv;
  if (!is_launcher) fcntl(f->window.fd, F_SETFD, 0);
  execvp(argv[0], argv);
  char text[CALX_WINDOW_NEWS];
  int error = errno;
  snprintf(text, sizeof text, "cannot run '%s': %s", argv[0], strerror(error));
  cx_world_segment_fail(
      f->window.head,
      error == ENOENT ? CALX_NOT_FOUND : CALX_FAILED_PRECONDITION, text);
  _exit(error == ENOENT ? NOT_FOUND : NOT_RUN);
}

static _Noreturn void run_function(const cx_launcher_supervisor *f)
{
  calx_status *status = f->options->fn(f->options->user);
  fflush(NULL);
  if (status == NULL) _exit(0);
  cx_world_segment_fail(f->window.head, calx_status_code(status),
                        calx_status_message(status));
  _exit(1);
}

void cx_launcher_run_child(const cx_launcher_supervisor *f, int index,
                           int input, pid_t parent)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  if (f->post.fd >= 0) close(f->post.fd);
  close(f->signals);
  if (f->options->output != NULL)
    cx_launcher_output_be_child(f->options->output, index);
  sigaction(SIGCHLD, &f->on_child, NULL);
  sigaction(SIGPIPE, &f->on_pipe, NULL);
  sigprocmask(SIG_SETMASK, &f->mask, NULL);
  if (!cx_launcher_is_of_hosts(f)) set_environment(f, index);
  if (f->options->fn != NULL) run_function(f);
  set_input(f, index, input);
  run_program(f, index);
}
