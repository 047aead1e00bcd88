// launcher/child: what a child does between the fork and its function or
// program.
//
// The launcher had one thread when it forked, so the child may allocate and set
// its environment. It ends by _exit: exit handlers belong to its parent.
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

enum { EXIT_NOT_FOUND = 127, EXIT_NOT_RUN = 126 };  // those of a shell

static void set_environment(const cx_launcher_supervisor *s, int index)
{
  const cx_launcher_job *job = s->job;
  cx_env_set_int("CALX_RANK", job->host * job->processes + index);
  cx_env_set_int("CALX_WORLD", job->hosts * job->processes);
  cx_env_set_int("CALX_LOCAL_RANK", index);
  cx_env_set_int("CALX_LOCAL_WORLD", job->processes);
  cx_env_set_int("CALX_NODE_RANK", job->host);
  cx_env_set_int("CALX_NNODES", job->hosts);
  cx_env_set_int("CALX_SEGMENT_FD", s->segment.fd);
  cx_env_set_int("CALX_RESTART", s->attempt);
  setenv("CALX_STORE", job->url, 1);
  setenv("CALX_LAUNCH", job->launch, 1);
  if (job->token[0] != '\0') setenv("CALX_TOKEN", job->token, 1);
}

// Only the first rank reads the launcher's standard input.
static void set_input(const cx_launcher_supervisor *s, int index, int input)
{
  bool reads = index == 0 && !s->options->lifeline;
  if (input < 0 && !reads) input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input >= 0) dup2(input, STDIN_FILENO);
}

static _Noreturn void run_program(const cx_launcher_supervisor *s, int index)
{
  const char *name = "/bin/sh";
  if (cx_launcher_is_of_hosts(s)) {
    execl(name, "sh", "-c", s->options->commands[index], "sh",
          s->options->remote_commands[index], (char *)NULL);
  } else {
    name = s->options->argv[0];
    fcntl(s->segment.fd, F_SETFD, 0);
    execvp(name, s->options->argv);
  }
  int error = errno;
  char text[CALX_SEGMENT_MESSAGE];
  snprintf(text, sizeof text, "cannot run '%s': %s", name, strerror(error));
  cx_world_segment_fail(
      s->segment.head,
      error == ENOENT ? CALX_NOT_FOUND : CALX_FAILED_PRECONDITION, text);
  _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN);
}

static _Noreturn void run_function(const cx_launcher_supervisor *s)
{
  calx_status *status = s->options->fn(s->options->user);
  fflush(NULL);
  if (status == NULL) _exit(0);
  cx_world_segment_fail(s->segment.head, calx_status_code(status),
                        calx_status_message(status));
  _exit(1);
}

void cx_launcher_run_child(const cx_launcher_supervisor *s, int index,
                           int input, pid_t parent)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  if (s->service.fd >= 0) close(s->service.fd);
  if (s->options->output != NULL) {
    cx_launcher_output_be_child(s->options->output, index);
  }
  cx_launcher_signals_end(&s->signals);
  if (!cx_launcher_is_of_hosts(s)) set_environment(s, index);
  if (s->options->fn != NULL) run_function(s);
  set_input(s, index, input);
  run_program(s, index);
}
