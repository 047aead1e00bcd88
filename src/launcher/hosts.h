// launcher/hosts: a launch on several hosts. One connection to each host starts
// a launcher there.
//
// The remote launcher is `calx run` itself, with its host's number in the
// environment. So each host starts, watches and ends its own ranks, and all
// connect to the store of host 0. This side only keeps the connections, whose
// standard inputs are the remote launchers' lifelines.
#ifndef CX_LAUNCHER_HOSTS_H
#define CX_LAUNCHER_HOSTS_H

#include "base/text.h"
#include "launcher/spawn.h"

typedef struct cx_launcher_hosts_options {
  const char *hosts;    // "a,b,c": as the connecting command takes them
  const char *connect;  // a shell command, to which HOST is added; NULL: "ssh"
  const char *calx;     // the launcher's path, the same there
  const char *const *flags;    // for that launcher; NULL at the end
  const char *const *forward;  // variables to forward, NAME or NAME=VALUE,
                               // besides our own; NULL at the end
  char *const *argv;           // the program
  int max_restarts;
  struct cx_launcher_output *output;
} cx_launcher_hosts_options;

calx_status *cx_launcher_hosts_run(const cx_launcher_hosts_options *options,
                                   cx_launcher_exit *out) CALX_MUST_USE;

// The workers of a TPU: gcloud runs the program on all of them.
typedef struct cx_launcher_tpu_options {
  const char *name, *zone, *project;  // the last two may be NULL
  const char *folder;                 // there; NULL: the login folder
  const char *const *forward;
  char *const *argv;
  struct cx_launcher_output *output;
} cx_launcher_tpu_options;

calx_status *cx_launcher_tpu_run(const cx_launcher_tpu_options *options,
                                 cx_launcher_exit *out) CALX_MUST_USE;

#endif
