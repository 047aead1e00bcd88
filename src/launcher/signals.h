// launcher/signals: a launch reads its signals from a descriptor.
#ifndef CX_LAUNCHER_SIGNALS_H
#define CX_LAUNCHER_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>

#include "base/status.h"

typedef struct cx_launcher_signals {
  int fd;                              // SIGCHLD, SIGINT, SIGTERM and SIGHUP
  sigset_t mask;                       // the caller's, to be restored
  struct sigaction on_child, on_pipe;  // the same
} cx_launcher_signals;

calx_status *cx_launcher_signals_begin(cx_launcher_signals *out) CALX_MUST_USE;
// The next signal that has arrived. False: there is none.
bool cx_launcher_signals_next(const cx_launcher_signals *signals,
                              struct signalfd_siginfo *out);
// Closes the descriptor and restores the caller's mask and actions, in the
// launcher or in a child.
void cx_launcher_signals_end(const cx_launcher_signals *signals);

#endif
