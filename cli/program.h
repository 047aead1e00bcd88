// cli/program: the text of a StableHLO program, checked, and what its entry
// takes and returns.
#ifndef CX_CLI_PROGRAM_H
#define CX_CLI_PROGRAM_H

#include "calx/status.h"
#include "value.h"

typedef struct cx_cli_program {
  char *text;  // with an entry that is called main, as XLA wants it
  size_t size;
  cx_cli_value *params, *results;
  size_t n_params, n_results;
  calx_status *unfit;  // why no file can hold one of them; NULL: they all can
} cx_cli_program;

// Reads a file, or standard input for "-". CX_CLI_OK; CX_CLI_INVALID where it
// does not parse or verify, with file, line and column; CX_CLI_FAILED with the
// reason. Operations and types that calx does not know are left to the plugin.
// To be freed in any case.
int cx_cli_program_read(const char *path, cx_cli_program *out,
                        calx_status **out_status);
void cx_cli_program_free(cx_cli_program *p);

#endif
