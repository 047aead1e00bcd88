// cli/args: a command's options and words, and its help.
#ifndef CX_CLI_ARGS_H
#define CX_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calx/status.h"

// What the program ends with. README and help tell these numbers.
enum {
  CX_CLI_OK = 0,
  CX_CLI_PROBLEMS = 1,  // the doctor found some
  CX_CLI_USAGE = 2,     // a command or option that there is not
  CX_CLI_INVALID = 3,   // the program does not parse or verify
  CX_CLI_REFUSED = 4,   // the plugin does not take it
  CX_CLI_FAILED = 5,    // the run failed, or a file, plugin or device
  CX_CLI_GO_ON = -1,    // no end yet
};

// Strings in the order they were given; they are the arguments' own.
typedef struct cx_cli_list {
  const char **items;
  size_t n;
} cx_cli_list;

typedef enum cx_cli_kind {
  CX_CLI_FLAG,   // bool: given or not
  CX_CLI_TEXT,   // const char *: the last one counts
  CX_CLI_LIST,   // cx_cli_list: may be given often
  CX_CLI_COUNT,  // int64_t: 1 to 65,536
  CX_CLI_TIME,   // double: seconds, above 0
} cx_cli_kind;

typedef struct cx_cli_option {
  const char *name;  // "--input"
  cx_cli_kind kind;
  void *to;
} cx_cli_option;

// As most_words: they are another program and its arguments, which begin at the
// first word.
#define CX_CLI_PROGRAM SIZE_MAX

typedef struct cx_cli_command {
  const char *name;  // "calx hlo run"
  const char *help;  // the whole text
  const cx_cli_option *options;
  size_t n_options;
  size_t least_words, most_words;
} cx_cli_command;

// Reads what follows the command's name. Options may stand anywhere before
// "--"; "--name=value" and "--name value" are the same; "-" is a word.
// Returns CX_CLI_GO_ON, or what to end with: CX_CLI_OK after --help (the text
// is on standard output), CX_CLI_USAGE after a complaint on standard error.
// The lists are freed by cx_cli_args_free(), in either case.
int cx_cli_args_read(const cx_cli_command *command, int argc, char **argv,
                     cx_cli_list *out_words);
void cx_cli_args_free(const cx_cli_command *command, cx_cli_list *words);

// One line on standard error, "calx hlo run: …", and where help is.
int cx_cli_usage(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// "error: …" on standard error; nothing for NULL. Takes the status. A message
// of several lines ends with a caret, which nothing may follow.
void cx_cli_complain(calx_status *status);

// Writes what is left on standard output; `code`, or CX_CLI_FAILED with a
// complaint when it cannot be written.
int cx_cli_end(int code);

#endif
