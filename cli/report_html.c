// cli/report_html: the report as one page.
#include "debug/report_html.h"

#include <inttypes.h>

#include "base/html.h"
#include "base/text.h"
#include "profiler/metric.h"
#include "report.h"

void cx_cli_report_ranks(const cx_debug_run_data *run, cx_text *out)
{
  cx_text_format(out, "; rank %" PRId64 " of %" PRId64, run->rank, run->world);
  if (run->devices > 1) {
    cx_text_format(out, " with %" PRId64 " devices, each one's share is told",
                   run->devices);
  }
  cx_text_append(out, ", the first step was done after ");
  cx_profiler_seconds(out, run->setup);
}

static void put_head(cx_text *out, const cx_debug_run_data *run,
                     const char *name)
{
  cx_text_append(out, "<header>\n<h1>calx report: ");
  cx_html_escape(out, name);
  cx_text_append(out, "</h1>\n");
  if (run->detailed) {
    cx_text_format(out, "<p class=\"dim\">%" PRId64 " steps in ", run->syncs);
    cx_profiler_seconds(out, run->seconds);
    cx_text_append(out, " on ");
    cx_html_escape(out, run->plugin);
    cx_text_append(out, ", ");
    cx_html_escape(out, run->platform);
    cx_cli_report_ranks(run, out);
    cx_text_append(out, "</p>\n");
  }
  cx_text_append(out, "</header>\n");
}

void cx_cli_report_html(const cx_debug_run_data *run,
                        const cx_debug_advice *advice, const char *name,
                        cx_text *out)
{
  cx_html_begin(out, "calx report");
  put_head(out, run, name);
  cx_debug_put_advice(out, advice);
  cx_debug_put_times(out, run);
  cx_debug_put_metrics(out, &run->report);
  cx_html_end(out);
}
