// profiler/metrics_file: CALX_METRICS_FILE: the whole report after each sync of
// the process's first rank. What cannot be written is told once and does not
// stop the program.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "profiler/internal.h"
#include "profiler/profiler.h"

static const char *wanted(void)
{
  return cx_profiler_env("CALX_METRICS_FILE", "XLA_METRICS_FILE");
}

static atomic_bool on;

void cx_profiler_metrics_file_open(void)
{
  atomic_store(&on, wanted() != NULL);
}

static bool write_section(FILE *file, int64_t step, const char *report)
{
  return fprintf(file, "[MetricsData; step=%" PRId64 "]\n%s\n", step, report) >=
             0 &&
         fflush(file) == 0;
}

static void report_failure(const char *path)
{
  cx_log_once_per_site("metrics file",
                       "CALX_METRICS_FILE: cannot write '%s': %s", path,
                       strerror(errno));
}

static void append_to_file(const char *name, int64_t step, const char *report)
{
  char *path = cx_profiler_path_of_rank(name);
  if (path == NULL) return;
  FILE *file = fopen(path, "a");
  bool ok = file != NULL && write_section(file, step, report);
  if (!ok) report_failure(path);
  if (file != NULL && fclose(file) != 0 && ok) report_failure(path);
  cx_free(path);
}

void cx_profiler_metrics_file_step(int64_t step)
{
  const char *name = atomic_load(&on) ? wanted() : NULL;
  if (name == NULL) return;
  char *report = cx_profiler_metrics_text();
  if (report == NULL) return;
  if (strcmp(name, "STDERR") == 0) {
    write_section(stderr, step, report);
  } else if (strcmp(name, "STDOUT") == 0) {
    write_section(stdout, step, report);
  } else {
    append_to_file(name, step, report);
  }
  cx_free(report);
}
