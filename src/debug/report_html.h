// debug/report_html: what a run's numbers say, as sections of a page of
// base/html. Texts are escaped.
#ifndef CX_DEBUG_REPORT_HTML_H
#define CX_DEBUG_REPORT_HTML_H

#include "debug/advise.h"

// What was found, and what to do about it.
void cx_debug_put_advice(cx_text *out, const cx_debug_advice *advice);
// The steps' times, their parts, and the compilations, as plots: nothing where
// none are known.
void cx_debug_put_times(cx_text *out, const cx_debug_run_data *run);
// All timers and counters, as two sections that begin closed.
void cx_debug_put_metrics(cx_text *out, const cx_debug_read_report *report);

#endif
