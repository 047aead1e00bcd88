// debug/run_now: the data of the run that goes on in this process.
#include <string.h>

#include "base/alloc.h"
#include "base/trace.h"
#include "debug/advise.h"
#include "profiler/record.h"

static double seconds(int64_t ns)
{
  return (double)ns / 1e9;
}

static void put_site(char *out, size_t size, const char *file, int line)
{
  cx_text text = { 0 };
  if (file != NULL) cx_text_format(&text, "%s:%d", file, line);
  cx_text_plain(cx_text_str(&text), text.size, out, size);
  cx_text_free(&text);
}

static void take_steps(const cx_profiler_record *r, cx_debug_run_data *run)
{
  run->has_own = true;
  run->n_steps = r->n_steps;
  for (size_t i = 0; i < r->n_steps; i++) {
    const cx_profiler_record_step *from = &r->steps[i];
    cx_debug_run_step *to = &run->steps[i];
    *to = (cx_debug_run_step){ .first = from->first,
                               .n = from->n,
                               .seconds = seconds(from->ns) };
    for (int k = 0; k < CX_PROFILER_PARTS; k++) {
      to->part[k] = seconds(from->part[k]);
    }
  }
}

static void take_compiles(const cx_profiler_record *r, cx_debug_run_data *run)
{
  run->compilations = r->n_compiles;
  for (; (int64_t)run->n_compiles < r->n_compiles &&
         run->n_compiles < CX_PROFILER_MOST_COMPILES;
       run->n_compiles++) {
    const cx_profiler_record_compile *from = &r->compiles[run->n_compiles];
    cx_debug_run_compile *to = &run->compiles[run->n_compiles];
    *to = (cx_debug_run_compile){ .at = seconds(from->at),
                                  .seconds = seconds(from->ns),
                                  .step = from->step,
                                  .nodes = from->nodes,
                                  .loaded = from->loaded };
    put_site(to->site, sizeof to->site, from->file, from->line);
    cx_text_plain(from->why, strlen(from->why), to->why, sizeof to->why);
  }
}

static void take_sites(const cx_profiler_record *r, cx_debug_run_data *run)
{
  run->other_reads = r->other_reads;
  run->n_sites = r->n_sites;
  for (size_t i = 0; i < r->n_sites; i++) {
    const cx_profiler_record_site *from = &r->sites[i];
    cx_debug_run_site *to = &run->sites[i];
    *to = (cx_debug_run_site){ .count = from->reads,
                               .early = from->early,
                               .seconds = seconds(from->ns) };
    put_site(to->site, sizeof to->site, from->file, from->line);
  }
}

static calx_status *take_record(const cx_profiler_record *r,
                                cx_debug_run_data *run)
{
  const cx_trace_ranks here = cx_trace_ranks_here();
  run->steps = cx_calloc(r->n_steps + 1, sizeof *run->steps);
  run->compiles = cx_calloc(CX_PROFILER_MOST_COMPILES, sizeof *run->compiles);
  run->sites = cx_calloc(r->n_sites + 1, sizeof *run->sites);
  if (run->steps == NULL || run->compiles == NULL || run->sites == NULL) {
    return cx_out_of_memory();
  }
  run->detailed = true;
  run->rank = here.first;
  run->world = here.size;
  run->syncs = r->syncs;
  run->devices = r->devices;
  run->seconds = seconds(cx_now_ns() - r->opened);
  run->setup = seconds(r->setup);
  memcpy(run->plugin, r->plugin, sizeof run->plugin);
  memcpy(run->platform, r->platform, sizeof run->platform);
  take_steps(r, run);
  take_compiles(r, run);
  take_sites(r, run);
  return NULL;
}

// A process that counted nothing has no report.
static calx_status *take_report(cx_debug_run_data *run)
{
  char *text = cx_profiler_metrics_text();
  if (text == NULL) return cx_out_of_memory();
  run->report.step = -1;
  calx_status *status = NULL;
  if (*text != '\0') {
    status = cx_debug_report_read(text, strlen(text), &run->report);
  }
  cx_free(text);
  return status;
}

calx_status *cx_debug_run_now(cx_debug_run_data *out)
{
  *out = (cx_debug_run_data){ 0 };
  cx_profiler_record *record = cx_alloc(sizeof *record);
  if (record == NULL) return cx_out_of_memory();
  calx_status *status = NULL;
  if (cx_profiler_record_copy(record)) status = take_record(record, out);
  cx_free(record);
  if (status == NULL) status = take_report(out);
  if (status != NULL) cx_debug_run_free(out);
  return status;
}
