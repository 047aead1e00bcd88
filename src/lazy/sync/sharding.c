// lazy/sync/sharding: how a tensor is split among the devices of a mesh.
//
// A mark is the handle's: each value that a sync gives it is split so. A value
// that is computed already is split anew at once, through the host; one that is
// pending by an op, see ops/sharding.c.
#include "base/alloc.h"
#include "calx/spmd.h"
#include "lazy/internal.h"
#include "lazy/sync/step.h"

const cx_spmd_placement *cx_lazy_tensor_placement(const calx_tensor *t)
{
  return t->placement;
}

void cx_lazy_tensor_set_placement(calx_tensor *t,
                                  const cx_spmd_placement *placement)
{
  if (t != cx_lazy_tensor_nil()) t->placement = placement;
}

static calx_status *reshard_buffer(const calx_device *d, cx_pjrt_buffer *from,
                                   const cx_spmd_placement *placement,
                                   cx_pjrt_buffer **out)
{
  size_t bytes;
  CALX_TRY(cx_pjrt_buffer_host_size(from, &bytes));
  char *data = cx_alloc(bytes + 1);
  if (data == NULL) return cx_out_of_memory();
  calx_status *status = cx_pjrt_buffer_to_host(from, data, bytes);
  if (status == NULL) {
    status = cx_lazy_buffer_from_host(d, cx_pjrt_buffer_shape(from), placement,
                                      data, CX_PJRT_COPY, NULL, NULL, out);
  }
  cx_free(data);
  return status;
}

// Under the device's lock. Others that have the value keep it as it is.
static calx_status *reshard(calx_tensor *t, const cx_spmd_placement *placement)
{
  const cx_graph_node *old = t->node;
  cx_pjrt_buffer *from = old->out[t->out].buffer, *buffer;
  if (cx_pjrt_buffer_placement(from) == cx_spmd_split(placement)) return NULL;
  CALX_TRY(reshard_buffer(t->device, from, placement, &buffer));
  cx_graph_node *node = cx_graph_node_data(&old->out[t->out].shape, buffer);
  if (node == NULL) return cx_out_of_memory();
  cx_graph_node_set_flags(node, cx_graph_node_flags(old));
  node->site = old->site;
  node->module = old->module;
  cx_lazy_tensor_settle(t, node);
  return NULL;
}

calx_status *cx_lazy_tensor_reshard(calx_tensor *t,
                                    const cx_spmd_placement *placement,
                                    bool *out_done)
{
  calx_device *d = t->device;
  calx_status *status = NULL;
  cx_lock(&d->lock);
  *out_done = t->base == NULL &&
              (cx_graph_node_flags(t->node) & CX_GRAPH_NODE_DATA) != 0;
  if (*out_done) status = reshard(t, placement);
  cx_unlock(&d->lock);
  return status;
}

void cx_lazy_tensor_split_as_marked(calx_tensor *t)
{
  const unsigned ended = CX_GRAPH_NODE_DATA | CX_GRAPH_NODE_FAILED;
  if (t->placement == NULL || t->node == NULL || t->base != NULL ||
      (cx_graph_node_flags(t->node) & ended) != CX_GRAPH_NODE_DATA) {
    return;
  }
  calx_status_free(reshard(t, t->placement));
}

// ---- public -----------------------------------------------------------------

// How the value lies, or is to lie; false: that is not decided yet.
static bool placement_of(const calx_tensor *t, const cx_spmd_placement **out)
{
  *out = t->placement;
  if (t->device == NULL || !t->device->sharded || t->node == NULL) return false;
  cx_lock(&t->device->lock);
  const bool computed = cx_is_computed(t->node);
  if (computed) *out = cx_pjrt_buffer_placement(t->node->out[t->out].buffer);
  cx_unlock(&t->device->lock);
  return computed || *out != NULL;
}

char *calx_sharding_spec(const calx_tensor *t)
{
  const cx_spmd_placement *placement;
  cx_text text = { 0 };
  if (t == NULL || !placement_of(t, &placement)) return NULL;
  cx_spmd_placement_print(placement, &text);
  return cx_text_take(&text);
}

calx_dims calx_shard_shape(const calx_tensor *t)
{
  const cx_spmd_placement *placement;
  calx_dims dims = calx_tensor_shape(t);
  if (t == NULL || !placement_of(t, &placement)) return dims;
  cx_pjrt_shape whole, part;
  cx_pjrt_shape_make(calx_tensor_dtype(t), dims.values, dims.count, &whole);
  cx_pjrt_shard_shape(&whole, placement, &part);
  return calx_dims_of(part.dims, part.rank);
}
