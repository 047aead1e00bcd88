// cli/worker: a child process that answers lines, so that a program that ends
// or hangs its process costs one answer.
//
// The child is forked before any plugin is loaded, opens its own, and lives
// until it is stopped, crashes or is too late; it dies with its parent.
#ifndef CX_CLI_WORKER_H
#define CX_CLI_WORKER_H

#include <sys/types.h>

#include "base/text.h"
#include "run.h"

typedef struct cx_cli_worker {
  pid_t pid;     // 0: there is none
  int to, from;  // this process's ends of the pipes
  int life;      // never written: its end tells the child that we are gone
} cx_cli_worker;

typedef enum cx_cli_heard {
  CX_CLI_ANSWERED,
  CX_CLI_CRASHED,  // the text is how: "signal 11"
  CX_CLI_LATE,
} cx_cli_heard;

#define CX_CLI_READY "ready"

// Appends the answer to one line, without a newline.
typedef void cx_cli_answer_fn(cx_cli_runner *runner, const cx_text *line,
                              cx_text *out);

// Forks a child that opens the runner and answers each line that it is told.
// The first that it says is CX_CLI_READY, or why it cannot.
calx_status *cx_cli_worker_start(cx_cli_worker *w, const cx_cli_runner *runner,
                                 cx_cli_answer_fn *answer) CALX_MUST_USE;
// A child that is gone is noticed by the next hearing.
void cx_cli_worker_tell(cx_cli_worker *w, const cx_text *line);
// The next line that it says, within `seconds` (0: whenever). After another end
// than ANSWERED the child is gone.
cx_cli_heard cx_cli_worker_hear(cx_cli_worker *w, double seconds, cx_text *out);
void cx_cli_worker_stop(cx_cli_worker *w);  // nothing where there is none

#endif
