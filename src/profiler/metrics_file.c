// profiler/metrics_file: CALX_METRICS_FILE: the whole report after each sync of
// the process's first rank.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/text.h"
#include "profiler/internal.h"
#include "profiler/profiler.h"

static atomic_bool on;

static const char *wanted(void)
{
  const char *name = cx_env_text("CALX_METRICS_FILE");
  return name != NULL ? name : cx_env_text("XLA_METRICS_FILE");
}

void cx_profiler_metrics_file_open(void)
{
  atomic_store(&on, wanted() != NULL);
}

static void write_section(const char *name, const char *section)
{
  bool to_error = strcmp(name, "STDERR") == 0;
  if (to_error || strcmp(name, "STDOUT") == 0) {
    FILE *stream = to_error ? stderr : stdout;
    fputs(section, stream);
    fflush(stream);
    return;
  }
  char *path = cx_profiler_path_of_rank(name);
  if (path != NULL) cx_profiler_append("CALX_METRICS_FILE", path, section);
  cx_free(path);
}

void cx_profiler_metrics_file_step(int64_t step)
{
  const char *name = atomic_load(&on) ? wanted() : NULL;
  if (name == NULL) return;
  char *report = cx_profiler_metrics_text();
  cx_text section = { .failed = report == NULL };
  cx_text_format(&section, "[MetricsData; step=%" PRId64 "]\n%s\n", step,
                 report != NULL ? report : "");
  if (!cx_text_failed(&section)) write_section(name, section.data);
  cx_text_free(&section);
  cx_free(report);
}
