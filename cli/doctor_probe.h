// cli/doctor_probe: what the doctor's child process answers about its plugin.
#ifndef CX_CLI_DOCTOR_PROBE_H
#define CX_CLI_DOCTOR_PROBE_H

#include "worker.h"

#define CX_CLI_PROBE_OK "ok "  // before an answer that is no failure

// "version": loads the plugin, its version and attributes. "devices": opens its
// client. "run": compiles and runs a small program, and checks its result; the
// answer is the engine's libraries that are loaded by then. Each needs those
// before it.
void cx_cli_probe_answer(cx_cli_runner *runner, const cx_text *line,
                         cx_text *out);

#endif
