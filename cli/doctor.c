// cli/doctor: the command. First the checks, each with its findings, then the
// report.
#include "doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "commands.h"

// clang-format off: one line of source is one line of the text
static const char help[] =
    "usage: calx doctor [OPTION...]\n"
    "\n"
    "Looks for what keeps programs from using their devices, and prints a line\n"
    "for each thing that it finds, ok, note or wrong, with what to do:\n"
    "\n"
    "  processes  that hold a TPU or card, such as those of an earlier run\n"
    "  plugins    which there are, which one a program would use, its devices;\n"
    "             libraries that do not load. A child process asks them\n"
    "  variables  that contradict each other, that calx does not know, or that\n"
    "             have no effect any more\n"
    "  machine    rights on the devices, the cache of programs, memory, limits\n"
    "\n"
    "Then it prints a report, to be pasted into an issue. Secrets are not in it.\n"
    "\n"
    "  --kill             end the processes that hold a device, after asking on\n"
    "                     the terminal: SIGTERM, and SIGKILL 5 seconds later.\n"
    "                     Services of the system, and what this command was\n"
    "                     started from, are left alone\n"
    "  --yes              with --kill: without asking\n"
    "  --pid N            with --kill: only this process; may be given often\n"
    "  --timeout SECONDS  for each question to a plugin; default: 60\n"
    "  --root DIR         the machine's proc, dev, sys, etc and tmp are in DIR\n"
    "\n"
    "Exit status: 0 nothing is wrong, 1 something is.\n";
// clang-format on

void cx_cli_doctor_find(cx_cli_doctor_state *d, cx_cli_verdict verdict,
                        const char *item, const char *format, ...)
{
  static const char *const names[] = { "ok", "note", "wrong" };
  cx_text text = { 0 };
  va_list args;
  va_start(args, format);
  cx_text_format_v(&text, format, args);
  va_end(args);
  if (verdict == CX_CLI_WRONG) d->wrong++;
  printf("%-5s %s: %s\n", names[verdict], item,
         cx_text_failed(&text) ? "out of memory" : cx_text_str(&text));
  cx_text_free(&text);
}

cx_cli_doctor_path cx_cli_doctor_at(const cx_cli_doctor_state *d,
                                    const char *format, ...)
{
  cx_cli_doctor_path path;
  int n = snprintf(path.s, sizeof path.s, "%s", d->root);
  if (n < 0 || (size_t)n >= sizeof path.s) return path;
  va_list args;
  va_start(args, format);
  vsnprintf(path.s + n, sizeof path.s - (size_t)n, format, args);
  va_end(args);
  return path;
}

bool cx_cli_doctor_read(const cx_cli_doctor_state *d, const char *path,
                        cx_text *out)
{
  char *data = NULL;
  size_t size;
  cx_cli_doctor_path at = cx_cli_doctor_at(d, "%s", path);
  calx_status *status = cx_file_read_regular(at.s, 1 << 20, &data, &size);
  bool read = status == NULL;
  calx_status_free(status);
  cx_text_clear(out);
  if (read) cx_text_append_n(out, data, size);
  cx_free(data);
  return read && !cx_text_failed(out);
}

static int check(const cx_cli_doctor_state *d, const char *name)
{
  if (!d->kill && (d->yes || d->pids.n > 0)) {
    return cx_cli_usage(name, "--yes and --pid need --kill");
  }
  if (d->kill && d->root[0] != '\0') {
    return cx_cli_usage(name,
                        "--kill is for the processes of this machine, not for "
                        "those of --root");
  }
  if (d->kill && !d->yes && !isatty(STDIN_FILENO)) {
    return cx_cli_usage(name,
                        "--kill asks before it ends a process, and standard "
                        "input is no terminal: --yes ends them without asking");
  }
  return CX_CLI_GO_ON;
}

static void no_log(void *user, const char *line)
{
  (void)user;
  (void)line;
}

static int examine(cx_cli_doctor_state *d)
{
  // The checks say themselves what the library would log.
  calx_log_set(no_log, NULL);
  cx_cli_doctor_processes(d);
  cx_cli_doctor_plugins(d);
  cx_cli_doctor_variables(d);
  cx_cli_doctor_tpu(d);
  cx_cli_doctor_machine(d);
  cx_cli_doctor_report(d);
  if (cx_text_failed(&d->facts)) {
    cx_cli_complain(cx_out_of_memory());
    return CX_CLI_FAILED;
  }
  return d->wrong == 0 ? CX_CLI_OK : CX_CLI_PROBLEMS;
}

int cx_cli_doctor(int argc, char **argv)
{
  cx_cli_doctor_state d = { .root = "", .time_out = 60 };
  const cx_cli_option options[] = {
    { "--kill", CX_CLI_FLAG, &d.kill },
    { "--yes", CX_CLI_FLAG, &d.yes },
    { "--pid", CX_CLI_LIST, &d.pids },
    { "--timeout", CX_CLI_TIME, &d.time_out },
    { "--root", CX_CLI_TEXT, &d.root },
  };
  const cx_cli_command command = {
    "calx doctor", help, options, sizeof options / sizeof *options, 0, 0
  };
  cx_cli_list words;
  int code = cx_cli_args_read(&command, argc, argv, &words);
  if (code == CX_CLI_GO_ON) code = check(&d, command.name);
  if (code == CX_CLI_GO_ON) code = cx_cli_end(examine(&d));
  cx_text_free(&d.facts);
  cx_cli_args_free(&command, &words);
  return code;
}
