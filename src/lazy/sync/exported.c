// lazy/sync/exported: programs that are kept without their graph: printed for a
// file, and launched on tensors.
#include "base/alloc.h"
#include "graph/lower.h"
#include "hlo/print.h"
#include "lazy/internal.h"
#include "lazy/run/program.h"

// ---- printing ---------------------------------------------------------------

void cx_lazy_printed_free(cx_lazy_printed *p)
{
  cx_text_free(&p->text);
  cx_free(p->params);
  *p = (cx_lazy_printed){ 0 };
}

// Under the device's lock.
static calx_status *lower(calx_tensor *const *values, size_t n,
                          cx_graph_order *o, cx_hlo_module **out_module)
{
  if (!cx_grow(&o->roots, &o->roots_capacity, n, sizeof *o->roots)) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < n; i++) o->roots[i] = cx_lazy_tensor_value(values[i]);
  o->n_roots = n;
  if (!cx_graph_order_walk(o)) return cx_out_of_memory();
  cx_graph_lowering l = { .order = o, .name = "calx", .constants = true };
  return cx_graph_lower(&l, out_module);
}

calx_status *cx_lazy_print_values(calx_tensor *const *values, size_t n,
                                  cx_lazy_printed *out)
{
  *out = (cx_lazy_printed){ 0 };
  cx_graph_order o = { 0 };
  cx_hlo_module *module = NULL;
  calx_device *d = values[0]->device;
  cx_lock(&d->lock);
  calx_status *status = lower(values, n, &o, &module);
  cx_unlock(&d->lock);
  out->flags = o.flags;
  out->params = o.params;
  out->n_params = o.n_params;
  o.params = NULL;
  cx_graph_order_free(&o);
  if (status == NULL) {
    const cx_hlo_print_options options = { .no_locations = true };
    cx_hlo_print_with(module, &options, &out->text);
    if (cx_text_failed(&out->text)) status = cx_out_of_memory();
  }
  cx_hlo_module_free(module);
  if (status != NULL) cx_lazy_printed_free(out);
  return status;
}

// ---- running ----------------------------------------------------------------

cx_pjrt_client *cx_lazy_device_client(const calx_device *device)
{
  return device->client;
}

// Under the device's lock.
static calx_status *launch(calx_device *d, cx_pjrt_executable *program,
                           calx_tensor *const *in, size_t n_in,
                           cx_pjrt_buffer **buffers, cx_pjrt_event **done)
{
  CALX_TRY(cx_lazy_flight_room(d));
  for (size_t i = 0; i < n_in; i++) {
    buffers[i] = in[i]->node->out[in[i]->out].buffer;
  }
  int64_t start = cx_now_ns();
  CALX_TRY(cx_pjrt_execute(program, (size_t)d->index, buffers, n_in,
                           buffers + n_in, done));
  cx_lazy_launch_count(*done, start, d->index, false);
  return NULL;
}

// Makes data nodes of the buffers, which it takes. False: no memory.
static bool make_nodes(const cx_graph_shape *shapes, cx_pjrt_buffer **buffers,
                       size_t n, cx_graph_node **out)
{
  bool all = true;
  for (size_t i = 0; i < n; i++) {
    out[i] = cx_graph_node_data(&shapes[i], buffers[i]);
    all = all && out[i] != NULL;
  }
  return all;
}

calx_status *cx_lazy_execute(calx_device *d, cx_pjrt_executable *program,
                             calx_tensor *const *in, size_t n_in,
                             const cx_graph_shape *shapes, calx_tensor **out,
                             size_t n_out)
{
  for (size_t i = 0; i < n_in; i++) CALX_TRY(cx_lazy_tensor_compute(in[i]));
  cx_pjrt_buffer **buffers = cx_calloc(n_in + n_out + 1, sizeof *buffers);
  cx_graph_node **nodes = cx_calloc(n_out + 1, sizeof *nodes);
  cx_pjrt_event *done = NULL;
  calx_status *status = NULL;
  if (buffers == NULL || nodes == NULL) status = cx_out_of_memory();
  if (status == NULL) {
    cx_log_hold_begin();
    cx_lock(&d->lock);
    status = launch(d, program, in, n_in, buffers, &done);
    if (status == NULL && !make_nodes(shapes, buffers + n_in, n_out, nodes)) {
      status = cx_out_of_memory();
    }
    if (status == NULL) {
      cx_lazy_flight_add(d, done, cx_site(), false, nodes, n_out);
    } else {
      cx_pjrt_event_free(done);
    }
    cx_unlock(&d->lock);
    cx_log_hold_end();
  }
  for (size_t i = 0; nodes != NULL && i < n_out; i++) {
    if (nodes[i] == NULL) continue;
    if (status == NULL)
      out[i] = cx_lazy_tensor_of((cx_graph_value){ nodes[i], 0 }, d);
    cx_graph_node_release(nodes[i]);
  }
  cx_free(buffers);
  cx_free(nodes);
  return status;
}
