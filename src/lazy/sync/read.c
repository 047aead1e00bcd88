// lazy/sync/read: a value is wanted on the host. What it needs is run, and
// nothing else happens: no tensor expires, nothing is donated. The nodes that
// ran are marked, so that a sync that runs them again can say so.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/metrics.h"
#include "base/trace.h"
#include "lazy/internal.h"

CX_METRIC(from_device_time, "TransferFromDeviceTime", CX_UNIT_NS);
CX_COUNTER(items, "aten::_local_scalar_dense");
CX_METRIC(inbound_data, "InboundData", CX_UNIT_BYTES);

// All outputs of the node are the roots: a node is computed as a whole.
static bool root_node(cx_graph_order *o, cx_graph_node *node)
{
  if (!cx_grow(&o->roots, &o->roots_capacity, node->n_out, sizeof *o->roots)) {
    return false;
  }
  for (uint32_t k = 0; k < node->n_out; k++) {
    o->roots[k] = (cx_graph_value){ node, k };
  }
  o->n_roots = node->n_out;
  return true;
}

// Under the device's lock.
static calx_status *compute(calx_device *d, cx_graph_node *node)
{
  cx_graph_order *o = &d->order;
  calx_status *late = cx_lazy_flight_room(d);
  if (late != NULL) return late;
  if (!root_node(o, node) || !cx_graph_order_walk(o) ||
      !cx_graph_order_shard(o, d->sharded)) {
    return cx_out_of_memory();
  }
  cx_pjrt_buffer **out = cx_calloc(node->n_out, sizeof(cx_pjrt_buffer *));
  if (out == NULL) return cx_out_of_memory();
  cx_lazy_run run = { .device = d, .order = o, .site = *cx_site() };
  cx_pjrt_event *done = NULL;
  calx_status *status = cx_lazy_run_order(&run, out, &done);
  if (status == NULL) {
    bool eager = cx_lazy_eager();
    for (size_t i = 0; i < o->n_nodes && !eager; i++) {
      cx_graph_node_set_flags(o->nodes[i], CX_GRAPH_NODE_READ);
    }
    for (uint32_t k = 0; k < node->n_out; k++) node->out[k].buffer = out[k];
    d->read_site = *cx_site();
    cx_lazy_flight_add(d, done, cx_site(), false, &node, 1);
  }
  cx_free(out);
  return status;
}

calx_status *cx_lazy_tensor_compute(calx_tensor *t)
{
  if (t->node == NULL ||
      (cx_graph_node_flags(t->node) & CX_GRAPH_NODE_FAILED) != 0) {
    return cx_lazy_tensor_usable(t, "read", 0);
  }
  calx_device *d = t->device;
  calx_status *status = NULL;
  cx_log_hold_begin();
  cx_lock(&d->lock);
  if (!cx_is_computed(t->node)) status = compute(d, t->node);
  cx_unlock(&d->lock);
  cx_log_hold_end();
  return status;
}

bool cx_lazy_read(calx_tensor *t)
{
  calx_status *status = cx_lazy_tensor_compute(t);
  cx_lazy_scope_pin(status);
  return status == NULL;
}

// ---- public -----------------------------------------------------------------

static cx_pjrt_buffer *buffer_of(const calx_tensor *t)
{
  cx_lock(&t->device->lock);
  cx_pjrt_buffer *buffer = t->node->out[t->out].buffer;
  cx_unlock(&t->device->lock);
  return buffer;
}

static calx_status *to_host(calx_tensor *t, void *data, size_t bytes)
{
  cx_pjrt_buffer *buffer = buffer_of(t);
  int64_t start = cx_now_ns();
  calx_status *status = cx_pjrt_buffer_to_host(buffer, data, bytes);
  cx_metric_add(&from_device_time, (double)(cx_now_ns() - start));
  cx_metric_add(&inbound_data, (double)bytes);
  cx_trace_ended(CX_SPAN_DOWNLOAD, t->device->index, start, (int64_t)bytes,
                 cx_site());
  // A value that cannot be had is the consequence of a step's failure.
  return cx_status_first(cx_lazy_flight_poll(t->device, status != NULL),
                         status);
}

// A number that is read is mostly a loss.
static void hint_at_nan(calx_dtype dtype, const void *data)
{
  if (!cx_dtype_is_float(dtype) || !isnan(cx_load_double(dtype, data))) return;
  if (cx_lazy_debug_on(CX_LAZY_DEBUG_NAN)) return;
  const calx_site *at = cx_site();
  cx_log_once_per_site(
      "nan",
      "%s:%d: the number that is read is NaN: CALX_DEBUG=indices finds class "
      "numbers out of range, CALX_DEBUG=nan the sync after which a tensor that "
      "is named in it holds NaN",
      cx_site_file(at), at->line);
}

calx_status *calx_tensor_read(calx_tensor *t, void *data, size_t bytes)
{
  if (t == NULL || (data == NULL && bytes != 0)) {
    return cx_invalid("read: the %s is NULL", t == NULL ? "tensor" : "data");
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  CALX_TRY(t->host != NULL ? NULL : cx_lazy_tensor_usable(t, "read", 0));
  size_t wanted = (size_t)cx_graph_shape_numel(s) * calx_dtype_size(s->dtype);
  if (bytes != wanted) {
    return cx_invalid("read: %s has %zu bytes, room is given for %zu",
                      cx_graph_shape_str(s), wanted, bytes);
  }
  if (t->host != NULL) {
    if (bytes != 0) memcpy(data, t->host->data, bytes);
    return NULL;
  }
  CALX_TRY(cx_lazy_tensor_compute(t));
  CALX_TRY(to_host(t, data, bytes));
  if (bytes == calx_dtype_size(s->dtype)) hint_at_nan(s->dtype, data);
  return NULL;
}

// The only element, of a real type, into 8 bytes. False: the scope holds the
// reason.
static bool one_element(calx_tensor *t, const char *call, unsigned char *out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  calx_status *status = NULL;
  if (t == NULL) {
    status = cx_invalid("%s: the tensor is NULL", call);
  } else if ((t->node != NULL || t->host != NULL) &&
             cx_graph_shape_numel(s) != 1) {
    status = cx_error(
        CALX_INVALID_ARGUMENT, "%s: %s has %lld elements, one is wanted", call,
        cx_graph_shape_str(s), (long long)cx_graph_shape_numel(s));
  } else if (cx_dtype_is_complex(s->dtype)) {
    status = cx_invalid(
        "%s: %s is complex: read it with calx_tensor_read, or its calx_real, "
        "calx_imag or calx_abs",
        call, cx_graph_shape_str(s));
  }
  if (status == NULL) {
    if (t->host == NULL) cx_counter_add(&items, 1);
    status = calx_tensor_read(t, out, calx_dtype_size(s->dtype));
  }
  if (status == NULL) return true;
  cx_lazy_scope_pin(status);
  cx_lazy_report_failed_read();
  return false;
}

double calx_item(calx_tensor *t)
{
  unsigned char bytes[8];
  if (!one_element(t, "item", bytes)) return (double)NAN;
  return cx_load_double(cx_lazy_tensor_shape(t)->dtype, bytes);
}

int64_t calx_item_int(calx_tensor *t)
{
  unsigned char bytes[8];
  if (!one_element(t, "item_int", bytes)) return 0;
  return cx_load_int(cx_lazy_tensor_shape(t)->dtype, bytes);
}

bool cx_lazy_is_launched(const calx_tensor *t)
{
  return t->node == NULL || buffer_of(t) != NULL;
}

bool calx_is_ready(const calx_tensor *t)
{
  if (t == NULL || t->node == NULL) return true;
  cx_pjrt_buffer *buffer = buffer_of(t);
  return buffer != NULL && cx_pjrt_buffer_is_ready(buffer);
}
