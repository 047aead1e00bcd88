// lazy/run/run: one execution of an order's program, by this rank alone or, of
// a program with collectives, by all ranks together.
#include "base/alloc.h"
#include "base/metrics.h"
#include "base/trace.h"
#include "lazy/run/program.h"

CX_METRIC(graph_size, "TensorsGraphSize", CX_UNIT_NONE);

static calx_status *run_alone(cx_lazy_execution *p)
{
  CALX_TRY(cx_lazy_program_get(p, CX_LAZY_CHOICE_FREE));
  CALX_TRY(cx_lazy_program_args(p));
  return cx_lazy_launch(p);
}

calx_status *cx_lazy_run_order(cx_lazy_run *run, cx_pjrt_buffer **out,
                               cx_pjrt_event **out_done)
{
  cx_graph_order *o = run->order;
  *out_done = NULL;
  cx_lazy_self.programs++;
  if (!cx_graph_order_key(o)) return cx_out_of_memory();
  cx_metric_add(&graph_size, (double)o->n_nodes);
  size_t n_args = o->n_params + (o->n_slots != 0);
  char *block = cx_alloc(n_args * sizeof(cx_pjrt_buffer *) +
                         o->n_promotable * sizeof(int64_t) +
                         o->n_slots * sizeof(uint32_t) + 1);
  if (block == NULL) return cx_out_of_memory();
  cx_lazy_execution p = {
    .run = run, .n_args = n_args, .out = out, .out_done = out_done
  };
  p.args = (cx_pjrt_buffer **)(void *)block;
  p.promotable = (int64_t *)(void *)(p.args + n_args);
  p.words = (uint32_t *)(void *)(p.promotable + o->n_promotable);
  cx_graph_order_slots(o, p.words, p.promotable);
  bool together = (o->flags & CX_GRAPH_NODE_COLLECTIVE) != 0;
  calx_status *status =
      together ? cx_lazy_collective_launch(&p) : run_alone(&p);
  if (status == NULL) {
    cx_lazy_tally_ops(o);
    cx_lazy_trace_execute(run);
  }
  cx_lazy_program_release(&p);
  cx_free(block);
  return status;
}
