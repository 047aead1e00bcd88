// lazy/run/trace: what base/trace wants to know of a run.
#include "base/trace.h"
#include "lazy/run/program.h"

// A program of eager mode is one op, whose recompilation needs no explanation.
static bool is_wanted(void)
{
  return cx_trace_wanted(CX_TRACE_PROGRAMS) && !cx_lazy_eager();
}

static cx_trace_program describe(const cx_lazy_run *run)
{
  const cx_graph_order *o = run->order;
  return (cx_trace_program){
    .cause = run->is_sync ? cx_trace_cause_now() : CX_CAUSE_READ,
    .hash = o->hash,
    .inputs = o->n_params + (o->n_slots != 0),
    .outputs = o->n_roots,
    .device = run->device->index,
    .site = &run->site,
  };
}

void cx_lazy_trace_compile(const cx_lazy_run *run)
{
  if (!is_wanted()) return;
  cx_trace_program p = describe(run);
  cx_trace_emit_compile(&p);
}

void cx_lazy_trace_compiled(const cx_lazy_run *run,
                            cx_pjrt_executable *executable)
{
  if (!is_wanted() || executable == NULL) return;
  cx_trace_sizes sizes = { -1, -1, -1, -1, -1 };
  cx_pjrt_executable_stats stats;
  calx_status *status = cx_pjrt_executable_memory(executable, &stats);
  if (status == NULL) {
    sizes = (cx_trace_sizes){ .input = stats.arguments,
                              .output = stats.outputs,
                              .aliased = stats.aliased,
                              .temporary = stats.temporaries,
                              .code = stats.code };
  }
  calx_status_free(status);  // not every plugin knows
  cx_trace_program p = describe(run);
  cx_trace_emit_compiled(&p, &sizes);
}

void cx_lazy_trace_execute(const cx_lazy_run *run)
{
  if (!is_wanted()) return;
  cx_trace_program p = describe(run);
  cx_trace_emit_execute(&p);
}
