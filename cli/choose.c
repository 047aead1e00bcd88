// cli/choose: from a word to the command that it names.
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "commands.h"

int cx_cli_choose(const char *name, const char *help,
                  const cx_cli_choice *choices, size_t n, int argc, char **argv)
{
  if (argc == 0) {
    fputs(help, stderr);
    return CX_CLI_USAGE;
  }
  const char *word = argv[0];
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
    fputs(help, stdout);
    return cx_cli_end(CX_CLI_OK);
  }
  for (size_t i = 0; i < n; i++) {
    if (strcmp(word, choices[i].name) == 0) {
      return choices[i].run(argc - 1, argv + 1);
    }
  }
  return cx_cli_usage(name, "there is no %s '%s'",
                      word[0] == '-' ? "option" : "command", word);
}
