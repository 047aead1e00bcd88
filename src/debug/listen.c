// debug/listen: the library's side of base/trace.
#include "debug/listen.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"

static atomic_llong steps;  // syncs of the process's first rank that ran

const char *cx_debug_env(const char *name, const char *other_name)
{
  const char *text = getenv(name);
  if (text != NULL && *text != '\0') return text;
  text = other_name != NULL ? getenv(other_name) : NULL;
  return text != NULL && *text != '\0' ? text : NULL;
}

char *cx_debug_path_of_rank(const char *path)
{
  cx_trace_place here = cx_trace_here();
  cx_text out = { 0 };
  cx_text_append(&out, path);
  if (here.size > 1) cx_text_format(&out, ".%d", here.first);
  return cx_text_take(&out);
}

void cx_trace_tell_open(const char *plugin, const char *platform)
{
  (void)plugin;
  (void)platform;
  int wanted = 0;
  if (cx_debug_metrics_file_open()) wanted |= CX_TRACE_STEPS;
  atomic_store(&cx_trace_listeners, wanted);
}

void cx_trace_tell_close(void)
{
  atomic_store(&cx_trace_listeners, 0);
}

void cx_trace_tell_step(int device)
{
  if (device != 0) return;
  cx_debug_metrics_file_step(atomic_fetch_add(&steps, 1) + 1);
}
