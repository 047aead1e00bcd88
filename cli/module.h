// cli/module: a StableHLO program in memory, read from a file and checked.
#ifndef CX_CLI_MODULE_H
#define CX_CLI_MODULE_H

#include "calx/status.h"
#include "hlo/module.h"

// Reads a file, or standard input for "-", as text or as bytecode. CX_CLI_OK;
// CX_CLI_INVALID where it does not parse or verify; CX_CLI_FAILED; with the
// reason. `others`: operations and types without rules of their own are
// accepted.
int cx_cli_module_read(const char *path, bool others, cx_hlo_module **out,
                       calx_status **out_status);

#endif
