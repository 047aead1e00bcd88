// cli/batch: many programs, told by lines, each answered by one line.
#ifndef CX_CLI_BATCH_H
#define CX_CLI_BATCH_H

#include "base/text.h"
#include "run.h"

typedef struct cx_cli_batch {
  cx_cli_runner runner;
  bool isolate;     // run them in a child process
  double time_out;  // seconds for one of them, when isolated; 0: none
} cx_cli_batch;

// Reads standard input to its end. Returns the program's exit code.
int cx_cli_batch_run(cx_cli_batch *batch);

#endif
