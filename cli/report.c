// cli/report: a run's numbers as advice.
#include "report.h"

#include <inttypes.h>
#include <stdio.h>

#include "args.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "commands.h"

static const char help[] =
    "usage: calx report FILE [--html OUT]\n"
    "\n"
    "What a run's numbers say about the usual reasons for slow training: small\n"
    "batches, values read in the loop, changing shapes, transfers, compilation,\n"
    "ops that run elsewhere, waiting for input. Each line ends in a rating of\n"
    "the numbers in it: ok, look, slow, or ? where the file does not tell.\n"
    "\n"
    "FILE is what a program wrote that ran with CALX_REPORT=FILE. The text of\n"
    "a metrics report (calx_metrics_report, CALX_METRICS_FILE, PyTorch/XLA's)\n"
    "is taken too; it has fewer numbers.\n"
    "\n"
    "  --html OUT  writes it to OUT as well, one page with plots of the steps,\n"
    "              of their parts and of the compilations\n";

// ---- on the terminal --------------------------------------------------------

static void print_head(const cx_debug_run_data *r, const char *name)
{
  if (!r->detailed) {
    printf("calx report: %s, a metrics report", name);
    if (r->report.step >= 0) printf(" of step %" PRId64, r->report.step);
    puts("");
    return;
  }
  cx_text line = { 0 };
  cx_text_format(&line, "calx report: %s, %" PRId64 " steps in ", name,
                 r->syncs);
  cx_text_real(&line, "%.3g", r->seconds);
  cx_text_format(&line, " s on %s, %s", r->plugin, r->platform);
  cx_cli_report_ranks(r, &line);
  puts(cx_text_str(&line));
  cx_text_free(&line);
}

static void print_part(const char *name, double part, const cx_debug_times *t)
{
  cx_text line = { 0 };
  cx_text_format(&line, "  %-28s", name);
  cx_text_real(&line, "%9.3f ms ", part * 1e3);
  cx_text_real(&line, "%4.0f %%", t->step > 0 ? 100 * part / t->step : 0);
  puts(cx_text_str(&line));
  cx_text_free(&line);
}

static void print_times(const cx_debug_run_data *r)
{
  cx_debug_times t = cx_debug_run_times(r);
  if (t.steps == 0) return;
  printf("\na step, on average of %" PRId64 ":\n", t.steps);
  print_part("in all", t.step, &t);
  if (r->has_own) {
    print_part("calx: recording, launching", t.own, &t);
    print_part("the program itself", t.user, &t);
  } else {
    print_part("recording, launching, other", t.host, &t);
  }
  print_part("compiling", t.part[CX_PROFILER_COMPILE], &t);
  print_part("reading values", t.part[CX_PROFILER_DOWNLOAD], &t);
  print_part("waiting for steps under way", t.part[CX_PROFILER_WAIT], &t);
  print_part("waiting for input", t.part[CX_PROFILER_LOADER], &t);
  puts("meanwhile:");
  print_part("the device works", t.part[CX_PROFILER_EXECUTE], &t);
  print_part("transfers to the device", t.part[CX_PROFILER_UPLOAD], &t);
}

// Each line of a text, indented.
static void print_lines(const char *text)
{
  for (const char *p = text; *p != '\0';) {
    const char *end = p;
    while (*end != '\0' && *end != '\n') end++;
    printf("        %.*s\n", (int)(end - p), p);
    p = *end == '\n' ? end + 1 : end;
  }
}

static void print_facts(const cx_debug_advice *a)
{
  printf("%-5s %s: %s\n", cx_debug_rating_name(a->rating), a->item,
         cx_text_str(&a->numbers));
  print_lines(cx_text_str(&a->details));
}

// After all facts, what to do about those that are not well.
static void print_advice(const cx_debug_advice *advice)
{
  bool any = false;
  for (int i = 0; i < CX_DEBUG_ADVICE_ITEMS; i++) {
    const cx_debug_advice *a = &advice[i];
    if (a->advice.size == 0) continue;
    if (!any) puts("\nadvice:");
    any = true;
    printf("  %s -> %s\n", a->item, cx_text_str(&a->advice));
  }
}

// ---- the command ------------------------------------------------------------

static calx_status *write_html(const cx_debug_run_data *run,
                               const cx_debug_advice *advice, const char *name,
                               const char *path)
{
  cx_text page = { 0 };
  cx_cli_report_html(run, advice, name, &page);
  calx_status *status = cx_file_write_text(path, &page);
  cx_text_free(&page);
  return cx_annotate(status, "while writing '%s'", path);
}

static calx_status *report(const char *name, const char *html)
{
  cx_debug_run_data run;
  cx_debug_advice advice[CX_DEBUG_ADVICE_ITEMS];
  CALX_TRY(cx_cli_report_load(name, &run));
  cx_debug_advise(&run, advice);
  bool failed = false;
  print_head(&run, name);
  print_times(&run);
  puts("");
  for (int i = 0; i < CX_DEBUG_ADVICE_ITEMS; i++) {
    print_facts(&advice[i]);
    failed |= advice[i].numbers.failed || advice[i].details.failed ||
              advice[i].advice.failed;
  }
  print_advice(advice);
  calx_status *status = failed ? cx_out_of_memory() : NULL;
  if (status == NULL && html != NULL) {
    status = write_html(&run, advice, name, html);
  }
  cx_debug_advice_free(advice);
  cx_debug_run_free(&run);
  return status;
}

int cx_cli_report(int argc, char **argv)
{
  const char *html = NULL;
  const cx_cli_option options[] = { { "--html", CX_CLI_TEXT, &html } };
  const cx_cli_command command = { .name = "calx report",
                                   .help = help,
                                   .options = options,
                                   .n_options = 1,
                                   .least_words = 1,
                                   .most_words = 1 };
  cx_cli_list words;
  int code = cx_cli_args_read(&command, argc, argv, &words);
  if (code == CX_CLI_GO_ON) {
    calx_status *status = report(words.items[0], html);
    code = cx_cli_end(status == NULL ? CX_CLI_OK : CX_CLI_FAILED);
    cx_cli_complain(status);
  }
  cx_cli_args_free(&command, &words);
  return code;
}
