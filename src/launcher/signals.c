// launcher/signals: see signals.h.
#include "launcher/signals.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

calx_status *cx_launcher_signals_begin(cx_launcher_signals *s)
{
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGHUP);
  s->fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
  if (s->fd < 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "no descriptor for signals: %s",
                    strerror(errno));
  }
  // Where SIGCHLD is ignored a child's exit status is lost.
  struct sigaction plain = { .sa_handler = SIG_DFL };
  sigaction(SIGCHLD, &plain, &s->on_child);
  // A reader of the output that ends must not end the launcher.
  struct sigaction ignore = { .sa_handler = SIG_IGN };
  sigaction(SIGPIPE, &ignore, &s->on_pipe);
  sigprocmask(SIG_BLOCK, &ours, &s->mask);
  return NULL;
}

bool cx_launcher_signals_next(const cx_launcher_signals *s,
                              struct signalfd_siginfo *out)
{
  return read(s->fd, out, sizeof *out) == (ssize_t)sizeof *out;
}

void cx_launcher_signals_end(const cx_launcher_signals *s)
{
  close(s->fd);
  sigaction(SIGCHLD, &s->on_child, NULL);
  sigaction(SIGPIPE, &s->on_pipe, NULL);
  sigprocmask(SIG_SETMASK, &s->mask, NULL);
}
