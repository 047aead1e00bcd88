// profiler/analysis: CALX_DEBUG=1: a block of lines for each program that is
// compiled and for each time that one runs, in the form of PyTorch/XLA's
// PT_XLA_DEBUG: why, which graph, where in the user's program.
//
// CALX_DEBUG_LEVEL=1 leaves out the executions. The blocks go to standard
// error, or are appended to CALX_DEBUG_FILE. Only the first rank of a host
// writes any.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "profiler/internal.h"

enum { ALL_LEVELS = 100 };

static atomic_int level;

// The number among CALX_DEBUG's names: 1 is all, as it is in PyTorch/XLA.
static int level_of_list(const char *list)
{
  for (const char *p = list; p != NULL && *p != '\0';) {
    size_t n = strcspn(p, ",");
    if (n > 0 && strspn(p, "0123456789") == n) {
      return strtol(p, NULL, 10) > 0 ? ALL_LEVELS : 0;
    }
    p += n + (p[n] == ',');
  }
  return 0;
}

bool cx_profiler_analysis_open(void)
{
  const char *text = cx_profiler_env("CALX_DEBUG_LEVEL", NULL);
  long n = 0;
  if (text != NULL) {
    char *end;
    n = strtol(text, &end, 10);
    if (*end != '\0' || n < 0) {
      cx_log(
          "CALX_DEBUG_LEVEL: '%s' is no level: 1 is compilations, 2 is "
          "executions too",
          text);
      n = 0;
    }
  } else {
    n = level_of_list(getenv("CALX_DEBUG"));
  }
  atomic_store(&level, n > ALL_LEVELS ? ALL_LEVELS : (int)n);
  return n > 0;
}

// ---- where the lines go -----------------------------------------------------

static void write_block(const cx_text *text)
{
  if (cx_text_failed(text)) return;
  const char *path = cx_profiler_env("CALX_DEBUG_FILE", NULL);
  if (path == NULL) {
    fputs(cx_text_str(text), stderr);
    return;
  }
  FILE *file = fopen(path, "a");
  bool ok = file != NULL && fputs(cx_text_str(text), file) >= 0;
  if (file != NULL && fclose(file) != 0) ok = false;
  if (!ok) {
    cx_log_once_per_site("debug file", "CALX_DEBUG_FILE: cannot write '%s': %s",
                         path, strerror(errno));
  }
}

static bool is_here(const cx_trace_program *p, int least)
{
  return atomic_load(&level) >= least && p->device == 0 &&
         cx_trace_ranks_here().has_local_master;
}

// ---- blocks -----------------------------------------------------------------

static void rule(cx_text *out, const char *prefix, char c)
{
  char line[81];
  memset(line, c, sizeof line - 1);
  line[sizeof line - 1] = '\0';
  cx_text_format(out, "%s%s\n", prefix, line);
}

static const char *cause_text(cx_trace_cause cause)
{
  switch (cause) {
    case CX_CAUSE_SYNC: return "user calx_sync";
    case CX_CAUSE_LOADER: return "calx_sync in the loader at step end";
    case CX_CAUSE_STEP: return "calx_sync in calx_dist_step";
    case CX_CAUSE_READ: break;
  }
  return "most likely user code trying to access tensor value before calx_sync";
}

static const char *call_text(cx_trace_cause cause)
{
  switch (cause) {
    case CX_CAUSE_SYNC: return "calx_sync";
    case CX_CAUSE_LOADER: return "calx_sync, of calx_loader_next";
    case CX_CAUSE_STEP: return "calx_sync, of calx_dist_step";
    case CX_CAUSE_READ: break;
  }
  return "read";
}

static void block(const cx_trace_program *p, const char *prefix,
                  const char *what)
{
  char hash[33];
  cx_hash_hex(p->hash, hash);
  cx_text out = { 0 };
  rule(&out, prefix, '=');
  cx_text_format(&out, "%s%s Cause\n", prefix, what);
  cx_text_format(&out, "%s  %s\n", prefix, cause_text(p->cause));
  cx_text_format(&out, "%sGraph Info: \n", prefix);
  cx_text_format(&out, "%s  Graph Hash: %s\n", prefix, hash);
  cx_text_format(&out, "%s  Number of Graph Inputs: %zu\n", prefix, p->inputs);
  cx_text_format(&out, "%s  Number of Graph Outputs: %zu\n", prefix,
                 p->outputs);
  cx_text_format(&out, "%sFrame Triggered Execution: \n", prefix);
  cx_text_format(&out, "%s  %s\n", prefix, call_text(p->cause));
  const calx_site *at = p->site;
  if (at != NULL && at->file != NULL) {
    cx_text_format(&out, "%s  %s (%s:%d)\n", prefix,
                   at->func != NULL ? at->func : "?", at->file, at->line);
  }
  rule(&out, prefix, '-');
  rule(&out, prefix, '=');
  cx_text_char(&out, '\n');
  write_block(&out);
  cx_text_free(&out);
}

static void size_line(cx_text *out, const char *prefix, const char *name,
                      int64_t bytes)
{
  cx_text_format(out, "%s%s: ", prefix, name);
  if (bytes < 0) {
    cx_text_append(out, "not reported by the plugin\n");
    return;
  }
  cx_text_real(out, "%.6f", (double)bytes / 1073741824.0);
  cx_text_append(out, " GB\n");
}

void cx_profiler_analysis_compile(const cx_trace_program *p)
{
  if (!is_here(p, 1)) return;
  block(p, "Compilation Analysis: ", "Compilation");
}

void cx_profiler_analysis_execute(const cx_trace_program *p)
{
  if (!is_here(p, 2)) return;
  block(p, "Execution Analysis: ", "Execution");
}

void cx_profiler_analysis_compiled(const cx_trace_program *p,
                                   const cx_trace_sizes *sizes)
{
  static const char prefix[] = "Post Compilation Analysis: ";
  if (!is_here(p, 1)) return;
  cx_text out = { 0 };
  rule(&out, prefix, '=');
  size_line(&out, prefix, "Graph input size", sizes->input);
  size_line(&out, prefix, "Graph output size", sizes->output);
  size_line(&out, prefix, "Aliased Input size", sizes->aliased);
  size_line(&out, prefix, "Intermediate tensor size", sizes->temporary);
  size_line(&out, prefix, "Compiled program size", sizes->code);
  rule(&out, prefix, '-');
  rule(&out, prefix, '=');
  cx_text_char(&out, '\n');
  write_block(&out);
  cx_text_free(&out);
}
