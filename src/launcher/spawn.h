// launcher/spawn: starts the processes of this host, and reports how they
// ended.
//
// Each child is a copy of this process that runs a function, or a program. It
// finds in its environment what world/rank_info reads:
//
//   CALX_RANK CALX_WORLD CALX_LOCAL_RANK CALX_LOCAL_WORLD CALX_NODE_RANK
//   CALX_NNODES      its rank info
//   CALX_STORE       where the store listens; this launcher's service, or that
//                    of host 0, serves it
//   CALX_TOKEN       the secret for the store
//   CALX_LAUNCH      which start of this host's command it belongs to
//   CALX_SEGMENT_FD  the segment that the processes of this host share
//   CALX_RESTART     how often the job was restarted
//
// The first child that fails ends them all. The failure is written to the
// segment and the store, so calls that wait return it. Then the children get
// SIGTERM and, a second later, SIGKILL. Children die with their parent. When
// cx_launcher_spawn() returns nothing is left: no process, no file, no socket.
#ifndef CX_LAUNCHER_SPAWN_H
#define CX_LAUNCHER_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"

// What a child runs; the caller frees its status. It must join the world. It
// has only the thread that called cx_launcher_spawn(), and a copy of all
// memory.
typedef calx_status *cx_launcher_fn(void *user);

struct cx_launcher_output;

typedef struct cx_launcher_options {
  int processes;       // of this host; every host must have as many
  cx_launcher_fn *fn;  // either a function,
  void *user;
  char *const *argv;  // or a program, searched in PATH; NULL at the end
  int max_restarts;   // of the whole job; on one host only
  int attempt;        // how often it was started before by another launcher
  struct cx_launcher_output *output;  // takes the ranks' lines; NULL: they
                                      // write where this process does
  // Another host's launcher started this one: the end of standard input ends
  // the job, and the ranks read nothing.
  bool lifeline;
  // Instead of fn and argv: commands for /bin/sh that connect to launchers of
  // other hosts (launcher/hosts), and a name each. They get no rank info and no
  // store, but a lifeline, whose first line is the launch's token and its
  // attempt, from 0.
  const char *const *commands;         // [processes]
  const char *const *remote_commands;  // [processes]: "$1" of each command
  const char *const *names;            // [processes]
} cx_launcher_options;

// The exit status of a launcher's program of which no rank failed.
enum { CX_LAUNCHER_EXIT_FAILED = 5 };

// How a launch ended, as a shell reports it.
typedef struct cx_launcher_exit {
  int rank;  // of this host that failed first; -1: none, or on another host
  int code;  // 0: success; 1 to 255: its exit status, or 128 + signal
} cx_launcher_exit;

// The number of processes: `given` if it is above 0, else CALX_PROCESSES, else
// 1.
calx_status *cx_launcher_processes(int given, int *out) CALX_MUST_USE;

// Whether processes are to be started: more than one on this host, or
// CALX_NNODES above 1. Only for a process that no launcher started.
calx_status *cx_launcher_is_wanted(int processes, bool *out) CALX_MUST_USE;

// Runs the processes and waits for all. SIGINT, SIGTERM and SIGHUP are
// forwarded to them; with a function, this process then gets the signal too.
// The error's message is that of the first rank that failed, with its number,
// or how it ended: "rank 3 ended by signal 9 (Killed)", "rank 2 exited with 7".
//   FAILED_PRECONDITION  this process has other threads: a device was used
//   INVALID_ARGUMENT     CALX_NNODES, CALX_NODE_RANK, MASTER_ADDR, …
calx_status *cx_launcher_spawn(const cx_launcher_options *options,
                               cx_launcher_exit *out) CALX_MUST_USE;

#endif
