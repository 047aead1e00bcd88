// cli/report: what the parts of `calx report` share.
#ifndef CX_CLI_REPORT_H
#define CX_CLI_REPORT_H

#include "debug/advise.h"

// What CALX_REPORT wrote, or the text of a metrics report, which is told by the
// first byte. The file is from anywhere: all of it is checked, and texts in it
// are made fit for a terminal. Freed with cx_debug_run_free().
calx_status *cx_cli_report_load(const char *path,
                                cx_debug_run_data *out) CALX_MUST_USE;

// "; rank 0 of 4, the first step was done after 1.2 s".
void cx_cli_report_ranks(const cx_debug_run_data *run, cx_text *out);

// One page with plots, which needs nothing but itself. `name`: of the file.
void cx_cli_report_html(const cx_debug_run_data *run,
                        const cx_debug_advice *advice, const char *name,
                        cx_text *out);

#endif
