// cli/main: the program `calx`.
#include <stdio.h>

#include "args.h"
#include "base/file.h"
#include "calx/device.h"
#include "commands.h"

static const char help[] =
    "usage: calx COMMAND [ARGUMENT...]\n"
    "\n"
    "  run          a program as several processes, on one host or more\n"
    "  devices      the devices of a PJRT plugin\n"
    "  hlo print    read, check and print a StableHLO program\n"
    "  hlo compile  compile one for devices that are not here\n"
    "  hlo run      compile one and run it\n"
    "  cache list   the compiled programs that are kept on disk\n"
    "  cache clear  removes them\n"
    "  report       what a run's numbers say about slow training\n"
    "  doctor       what is wrong on this machine, and who holds its devices\n"
    "\n"
    "  --version    the version\n"
    "  --help       this text; each command has its own\n"
    "\n"
    "A plugin is chosen by --plugin, else by CALX_PLUGIN or PJRT_DEVICE, else\n"
    "by what the machine has.\n"
    "\n"
    "Exit status: 0 done, 2 a command or option that there is not, 3 the\n"
    "program does not parse or verify, 4 the plugin refuses it, 5 the run\n"
    "fails, or a file, plugin or device that it needs; run ends as its program,\n"
    "doctor with 1 where something is wrong.\n";

static int version(int argc, char **argv)
{
  if (argc > 0) {
    return cx_cli_usage("calx", "--version takes no argument, found '%s'",
                        argv[0]);
  }
  printf("calx %s\n", calx_version());
  return cx_cli_end(CX_CLI_OK);
}

int main(int argc, char **argv)
{
  static const cx_cli_choice choices[] = {
    { "run", cx_cli_ranks },     { "devices", cx_cli_devices },
    { "hlo", cx_cli_hlo },       { "cache", cx_cli_cache },
    { "report", cx_cli_report }, { "doctor", cx_cli_doctor },
    { "--version", version },
  };
  int skip = argc > 0 ? 1 : 0;
  cx_file_keep_standard();
  return cx_cli_choose("calx", help, choices, sizeof choices / sizeof *choices,
                       argc - skip, argv + skip);
}
