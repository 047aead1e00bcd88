// debug/regions: calx_profile_start(), and the regions that a program names.
#include "base/trace.h"
#include "calx/debug.h"
#include "lazy/lazy.h"
#include "profiler/profiler.h"

calx_status *calx_profile_start(const char *path)
{
  return cx_profiler_start(path);
}

calx_status *calx_profile_stop(void)
{
  return cx_profiler_stop();
}

void calx_trace_begin(const char *name)
{
  if (cx_trace_region_push(name)) return;
  cx_lazy_scope_pin(cx_error(CALX_RESOURCE_EXHAUSTED,
                             "trace_begin: '%s' is inside of %d open regions",
                             name != NULL ? name : "?", CX_TRACE_MOST_REGIONS));
}

void calx_trace_end(void)
{
  cx_trace_region r;
  if (!cx_trace_region_pop(&r)) {
    cx_lazy_scope_pin(
        cx_error(CALX_FAILED_PRECONDITION, "trace_end: no region is open"));
    return;
  }
  if (r.start == 0 || !cx_trace_wanted(CX_TRACE_SPANS)) return;
  cx_trace_emit_span(
      &(cx_trace_span){ .kind = CX_SPAN_REGION,
                        .name = r.name,
                        .device = cx_lazy_device_index_of_thread(),
                        .start = r.start,
                        .end = cx_now_ns(),
                        .site = cx_site() });
}
