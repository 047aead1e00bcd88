// launcher/spawn: starts the processes of this host, and says what became of
// them.
//
// Each child is a copy of this process that runs a function, or a program. It
// finds in its environment what world/place reads:
//
//   CALX_RANK CALX_WORLD CALX_LOCAL_RANK CALX_LOCAL_WORLD CALX_NODE_RANK
//   CALX_NNODES   its place
//   CALX_STORE    where the store is; this launcher, or that of host 0, serves
//                 it from a process of its own
//   CALX_TOKEN    what the store wants to be told first
//   CALX_LAUNCH   which start of this host's command it belongs to
//   CALX_WINDOW_FD  the window that the processes of this host share
//   CALX_RESTART  how often all were started again before
//
// The first child that fails ends them all: its news goes to the window and to
// the store, so that calls which wait return it; then come SIGTERM and, a
// second later, SIGKILL. Children die with their parent. When
// cx_launcher_spawn() comes back nothing of them is left: no process, no file,
// no socket.
#ifndef CX_LAUNCHER_SPAWN_H
#define CX_LAUNCHER_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"

// What a child runs; its status is freed by the caller. It joins the world by
// itself. It has the thread that called cx_launcher_spawn(), and a copy of all
// memory.
typedef calx_status *cx_launcher_fn(void *user);

struct cx_launcher_output;

typedef struct cx_launcher_options {
  int processes;       // of this host; every host must have as many
  cx_launcher_fn *fn;  // either a function,
  void *user;
  char *const *argv;  // or a program, found along PATH; NULL at its end
  int max_restarts;   // the whole group again, so often; one host only
  int attempt;        // how often others had it started before
  struct cx_launcher_output
      *output;  // takes the ranks' lines (world/output); NULL:
                // they write where this process does
  // This launcher was started from another host, through standard input: its
  // end ends the job. The ranks read nothing.
  bool lifeline;
  // Instead of fn and argv: launchers of other hosts (world/hosts), a program
  // each and what it is called. They get no place and no store, but a lifeline
  // whose first line is the launch's token and its attempt, from 0.
  char *const *const *launchers;  // [processes]
  const char *const *names;       // [processes]
} cx_launcher_options;

// What a launcher's program ends with where no rank of its own failed.
enum { CX_LAUNCHER_EXIT_FAILED = 5 };

// How it ended, as a shell would say it.
typedef struct cx_launcher_exit {
  int rank;  // that failed first, of this host; -1: none, or on another host
  int code;  // 0: all is well; 1 to 255: its exit status, or 128 + signal
} cx_launcher_exit;

// Whether the environment or the caller ask for processes: more than one of
// this host, or CALX_NNODES above 1. Only where no launcher started this one.
calx_status *cx_launcher_is_wanted(int processes, bool *out) CALX_MUST_USE;

// Runs them and waits for all. SIGINT, SIGTERM and SIGHUP are passed on to the
// children; with a function, this process then gets the signal too. Of the
// error, the message is the first failed rank's own, with its number, or how it
// ended: "rank 3 ended by signal 9 (Killed)", "rank 2 exited with 7".
//   FAILED_PRECONDITION  this process has other threads: a device was used
//   INVALID_ARGUMENT     CALX_NNODES, CALX_NODE_RANK, MASTER_ADDR, …
calx_status *cx_launcher_spawn(const cx_launcher_options *options,
                               cx_launcher_exit *out) CALX_MUST_USE;

#endif
