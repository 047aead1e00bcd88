// cli/hlo_print: a program as calx understands it.
#include "hlo/print.h"

#include <stdio.h>

#include "args.h"
#include "base/status.h"
#include "commands.h"
#include "module.h"

static const char help[] =
    "usage: calx hlo print FILE [--no-locations]\n"
    "\n"
    "Reads a StableHLO program (text in MLIR's generic form or in pretty\n"
    "forms, or bytecode; FILE, or - for standard input), checks it against\n"
    "StableHLO's rules and prints it in the generic form.\n"
    "\n"
    "  --no-locations  leave out loc(...)\n"
    "\n"
    "Exit status 3: it does not parse or verify; the message has line, column\n"
    "and a caret.\n";

static calx_status *print(const cx_hlo_module *m, bool no_locations)
{
  cx_text out = { 0 };
  cx_hlo_print_with(m, &(cx_hlo_print_options){ .no_locations = no_locations },
                    &out);
  calx_status *status = NULL;
  if (cx_text_failed(&out)) {
    status = cx_out_of_memory();
  } else {
    fwrite(out.data, 1, out.size, stdout);
  }
  cx_text_free(&out);
  return status;
}

static int run(const char *path, bool no_locations)
{
  cx_hlo_module *module = NULL;
  calx_status *status = NULL;
  int code = cx_cli_module_read(path, false, &module, &status);
  if (status == NULL) status = print(module, no_locations);
  if (code == CX_CLI_OK && status != NULL) code = CX_CLI_FAILED;
  cx_cli_complain(status);
  cx_hlo_module_free(module);
  return cx_cli_end(code);
}

int cx_cli_hlo_print(int argc, char **argv)
{
  bool no_locations = false;
  const cx_cli_option options[] = { { "--no-locations", CX_CLI_FLAG,
                                      &no_locations } };
  const cx_cli_command command = { "calx hlo print", help, options, 1, 1, 1 };
  cx_cli_list words;
  int code = cx_cli_args_read(&command, argc, argv, &words);
  if (code == CX_CLI_GO_ON) code = run(words.items[0], no_locations);
  cx_cli_args_free(&command, &words);
  return code;
}
