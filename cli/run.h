// cli/run: one StableHLO program, from its text to its results in files.
#ifndef CX_CLI_RUN_H
#define CX_CLI_RUN_H

#include <stdio.h>

#include "calx/status.h"
#include "pjrt/pjrt.h"

// Where programs run: opened once, used for any number of them.
typedef struct cx_cli_runner {
  const char *plugin;  // name or path; NULL: the environment's choice
  int64_t replicas;
  cx_pjrt_client *client;  // NULL: not open
  bool opens_later;        // of a worker: its answers open it
} cx_cli_runner;

calx_status *cx_cli_runner_open(cx_cli_runner *r) CALX_MUST_USE;
void cx_cli_runner_close(cx_cli_runner *r);

typedef struct cx_cli_job {
  const char *program;        // a file's name; "-": standard input
  const char *const *inputs;  // one file for each argument
  size_t n_inputs;
  const char *folder;  // for the results; NULL: print them
} cx_cli_job;

// CX_CLI_OK, or CX_CLI_INVALID, _REFUSED or _FAILED with the reason.
int cx_cli_run(cx_cli_runner *r, const cx_cli_job *job,
               calx_status **out_status);
// The same of a folder of calx_export(), on the library's first device.
// plugin: NULL: the environment's choice.
int cx_cli_run_exported(const char *plugin, const cx_cli_job *job,
                        calx_status **out_status);

#endif
