// cli/hlo: the commands on StableHLO programs.
#include "commands.h"

static const char help[] =
    "usage: calx hlo COMMAND [ARGUMENT...]\n"
    "\n"
    "  print    read, check and print a StableHLO program\n"
    "  convert  the same program as text or as bytecode\n"
    "  compile  compile one for devices that are not here\n"
    "  run      compile one and run it\n"
    "\n"
    "calx hlo COMMAND --help tells more.\n";

int cx_cli_hlo(int argc, char **argv)
{
  static const cx_cli_choice choices[] = {
    { "print", cx_cli_hlo_print },
    { "convert", cx_cli_hlo_convert },
    { "compile", cx_cli_hlo_compile },
    { "run", cx_cli_hlo_run },
  };
  return cx_cli_choose("calx hlo", help, choices,
                       sizeof choices / sizeof *choices, argc, argv);
}
