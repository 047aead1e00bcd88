// cli/commands: what main and `calx hlo` choose from. Each takes what follows
// its own name and returns the program's exit code.
#ifndef CX_CLI_COMMANDS_H
#define CX_CLI_COMMANDS_H

#include <stddef.h>

int cx_cli_cache(int argc, char **argv);
int cx_cli_devices(int argc, char **argv);
int cx_cli_doctor(int argc, char **argv);
int cx_cli_hlo(int argc, char **argv);
int cx_cli_hlo_print(int argc, char **argv);
int cx_cli_hlo_convert(int argc, char **argv);
int cx_cli_hlo_compile(int argc, char **argv);
int cx_cli_hlo_run(int argc, char **argv);
int cx_cli_ranks(int argc, char **argv);
int cx_cli_report(int argc, char **argv);

typedef struct cx_cli_choice {
  const char *name;
  int (*run)(int argc, char **argv);
} cx_cli_choice;

// argv[0] chooses. `name` is what stands before it, for complaints.
int cx_cli_choose(const char *name, const char *help,
                  const cx_cli_choice *choices, size_t n, int argc,
                  char **argv);

#endif
