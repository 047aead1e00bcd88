// profiler/analysis: CALX_DEBUG=1: a block of lines for each program that is
// compiled and for each time that one runs, in the form of PyTorch/XLA's
// PT_XLA_DEBUG: why, which graph, where in the user's program.
//
// CALX_DEBUG_LEVEL=1 leaves out the executions. The blocks go to standard
// error, or are appended to CALX_DEBUG_FILE. Only the first rank of a host
// writes any.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/options.h"
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
  const char *text = cx_env_text("CALX_DEBUG_LEVEL");
  int64_t n = 0;
  if (text == NULL) {
    n = level_of_list(getenv("CALX_DEBUG"));
  } else if (!cx_read_int(text, 0, INT64_MAX, &n)) {
    cx_log(
        "CALX_DEBUG_LEVEL: '%s' is no level: 1 is compilations, 2 is "
        "executions too",
        text);
  }
  atomic_store(&level, n > ALL_LEVELS ? ALL_LEVELS : (int)n);
  return n > 0;
}

static bool is_here(const cx_trace_program *p, int least)
{
  return atomic_load(&level) >= least && p->device == 0 &&
         cx_trace_ranks_here().has_local_master;
}

// ---- blocks -----------------------------------------------------------------

static void rule(cx_text *out, char c)
{
  char line[82];
  memset(line, c, 80);
  memcpy(line + 80, "\n", 2);
  cx_text_append(out, line);
}

// Ends the block, and writes it with the prefix before each line.
static void write_block(const char *prefix, cx_text *block)
{
  cx_text out = { .failed = block->failed };
  rule(block, '-');
  rule(block, '=');
  for (const char *line = cx_text_str(block); *line != '\0';) {
    size_t n = strcspn(line, "\n") + 1;
    cx_text_append(&out, prefix);
    cx_text_append_n(&out, line, n);
    line += n;
  }
  cx_text_char(&out, '\n');
  const char *path = cx_env_text("CALX_DEBUG_FILE");
  if (!cx_text_failed(&out) && path != NULL) {
    cx_profiler_append("CALX_DEBUG_FILE", path, out.data);
  } else if (!cx_text_failed(&out)) {
    fputs(out.data, stderr);
  }
  cx_text_free(&out);
  cx_text_free(block);
}

static void write_program(const cx_trace_program *p, const char *prefix,
                          const char *what)
{
  static const struct {
    const char *cause, *call;
  } texts[] = {
    [CX_CAUSE_SYNC] = { "user calx_sync", "calx_sync" },
    [CX_CAUSE_LOADER] = { "calx_sync in the loader at step end",
                          "calx_sync, of calx_loader_next" },
    [CX_CAUSE_STEP] = { "calx_sync in calx_dist_step",
                        "calx_sync, of calx_dist_step" },
    [CX_CAUSE_READ] = { "most likely user code trying to access tensor value "
                        "before calx_sync",
                        "read" },
  };
  char hash[33];
  cx_hash_hex(p->hash, hash);
  cx_text out = { 0 };
  rule(&out, '=');
  cx_text_format(&out,
                 "%s Cause\n"
                 "  %s\n"
                 "Graph Info: \n"
                 "  Graph Hash: %s\n"
                 "  Number of Graph Inputs: %zu\n"
                 "  Number of Graph Outputs: %zu\n"
                 "Frame Triggered Execution: \n"
                 "  %s\n",
                 what, texts[p->cause].cause, hash, p->inputs, p->outputs,
                 texts[p->cause].call);
  const calx_site *at = p->site;
  if (at != NULL && at->file != NULL) {
    cx_text_format(&out, "  %s (%s:%d)\n", at->func != NULL ? at->func : "?",
                   at->file, at->line);
  }
  write_block(prefix, &out);
}

static void size_line(cx_text *out, const char *name, int64_t bytes)
{
  cx_text_format(out, "%s: ", name);
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
  write_program(p, "Compilation Analysis: ", "Compilation");
}

void cx_profiler_analysis_execute(const cx_trace_program *p)
{
  if (!is_here(p, 2)) return;
  write_program(p, "Execution Analysis: ", "Execution");
}

void cx_profiler_analysis_compiled(const cx_trace_program *p,
                                   const cx_trace_sizes *sizes)
{
  if (!is_here(p, 1)) return;
  cx_text out = { 0 };
  rule(&out, '=');
  size_line(&out, "Graph input size", sizes->input);
  size_line(&out, "Graph output size", sizes->output);
  size_line(&out, "Aliased Input size", sizes->aliased);
  size_line(&out, "Intermediate tensor size", sizes->temporary);
  size_line(&out, "Compiled program size", sizes->code);
  write_block("Post Compilation Analysis: ", &out);
}
