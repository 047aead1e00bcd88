// launcher/hosts: a launch on several hosts: one connection to each, over which
// a launcher of its own is started there.
//
// What is remote is `calx run` itself, with the place of its host in the
// environment, so that all of the starting, watching and ending is one host's,
// and the hosts meet through the store. This side only holds the connections:
// each one's standard input is that launcher's lifeline.
#ifndef CX_LAUNCHER_HOSTS_H
#define CX_LAUNCHER_HOSTS_H

#include "base/text.h"
#include "launcher/spawn.h"

typedef struct cx_launcher_hosts_options {
  const char *hosts;           // "a,b,c": as the connecting command takes them
  const char *connect;         // the shell's words before HOST; NULL: "ssh"
  const char *calx;            // the launcher, there as here
  const char *const *flags;    // for that launcher, with NULL at the end
  const char *const *forward;  // variables, NAME or NAME=VALUE, beside those
                               // that are ours; NULL at the end
  char *const *argv;           // the program
  int max_restarts;
  struct cx_launcher_output *output;
} cx_launcher_hosts_options;

calx_status *cx_launcher_hosts_run(const cx_launcher_hosts_options *options,
                                   cx_launcher_exit *out) CALX_MUST_USE;

// The workers of a TPU: gcloud knows them, and runs the program on all.
typedef struct cx_launcher_tpu_options {
  const char *name, *zone, *project;  // the last two may be NULL
  const char *folder;                 // there; NULL: where one logs in
  const char *const *forward;
  char *const *argv;
  struct cx_launcher_output *output;
} cx_launcher_tpu_options;

calx_status *cx_launcher_tpu_run(const cx_launcher_tpu_options *options,
                                 cx_launcher_exit *out) CALX_MUST_USE;

#endif
