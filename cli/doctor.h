// cli/doctor: what may be wrong on this machine with what calx needs. Each
// check is a file; it prints a line for each thing that it finds.
#ifndef CX_CLI_DOCTOR_H
#define CX_CLI_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "args.h"
#include "base/text.h"
#include "calx/status.h"

typedef struct cx_cli_doctor_state {
  // The folder in which proc, dev, sys, etc and tmp are looked for; empty: this
  // machine's.
  const char *root;
  double time_out;   // seconds for each question to a plugin
  bool kill, yes;    // end the processes that hold a device; without asking
  cx_cli_list pids;  // only these of them; empty: all
  int wrong;         // findings so far
  cx_text facts;     // lines of the report that the checks found out
} cx_cli_doctor_state;

typedef enum cx_cli_verdict {
  CX_CLI_FINE,
  CX_CLI_NOTE,   // may matter
  CX_CLI_WRONG,  // counts: the exit status is 1
} cx_cli_verdict;

// Prints "wrong ITEM: …".
void cx_cli_doctor_find(cx_cli_doctor_state *d, cx_cli_verdict verdict,
                        const char *item, const char *format, ...)
    CALX_PRINTF(4, 5);

// The path of a file of the machine, "/proc/meminfo".
typedef struct cx_cli_doctor_path {
  char s[PATH_MAX];
} cx_cli_doctor_path;
cx_cli_doctor_path cx_cli_doctor_at(const cx_cli_doctor_state *d,
                                    const char *format, ...) CALX_PRINTF(2, 3);
// A small file of the machine as text; false: it cannot be read.
bool cx_cli_doctor_read(const cx_cli_doctor_state *d, const char *path,
                        cx_text *out);

// ---- doctor_holders.c: who has a device -------------------------------------

typedef struct cx_cli_holder {
  long pid, parent;
  uint64_t start;   // in clock ticks: with the pid it names the process
  int64_t seconds;  // since its start; -1: not known
  char user[64];
  char command[200];  // fit for a terminal
  char service[64];   // of the system, that it belongs to; empty: none
  cx_text holds;      // "/dev/accel0, /lib/libtpu.so"
  bool has_tpu;       // a TPU's library or chip: no other process gets it
  bool is_ours;       // this command was started from it
} cx_cli_holder;

typedef struct cx_cli_holders {
  cx_cli_holder *items;
  size_t n, capacity;
  size_t unseen;  // processes of others, whose files are not shown to us
  bool failed;    // out of memory
} cx_cli_holders;

// To be freed in any case.
void cx_cli_holders_find(const cx_cli_doctor_state *d, cx_cli_holders *out);
void cx_cli_holders_free(cx_cli_holders *h);
// Whether the process of that number is the one that was listed, and has not
// ended.
bool cx_cli_holder_lives(const cx_cli_doctor_state *d, const cx_cli_holder *h);

// ---- the checks -------------------------------------------------------------

// doctor_processes.c: prints who holds what; then, where that was asked for,
// ends them.
void cx_cli_doctor_processes(cx_cli_doctor_state *d);
void cx_cli_doctor_plugins(cx_cli_doctor_state *d);    // doctor_plugins.c
void cx_cli_doctor_variables(cx_cli_doctor_state *d);  // doctor_variables.c
void cx_cli_doctor_tpu(cx_cli_doctor_state *d);        // doctor_tpu.c
void cx_cli_doctor_machine(cx_cli_doctor_state *d);    // doctor_machine.c

// doctor_report.c: the text to paste into an issue.
void cx_cli_doctor_report(cx_cli_doctor_state *d);

#endif
