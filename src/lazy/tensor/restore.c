// lazy/tensor/restore: what a save reads of the core beyond values, and what a
// load gives back: host tensors over memory that is there already, values that
// count as computed, the place of a random stream.
#include "base/alloc.h"
#include "base/dtype.h"
#include "lazy/internal.h"

calx_status *cx_lazy_host_tensor_over(const cx_graph_shape *shape, void *data,
                                      void (*done)(void *user), void *user,
                                      calx_tensor **out_tensor)
{
  int64_t elements;
  size_t bytes;
  *out_tensor = NULL;
  CX_ASSERT((uintptr_t)data % calx_dtype_size(shape->dtype) == 0);
  cx_lazy_host *host = cx_calloc(1, sizeof *host);
  calx_tensor *t = host != NULL ? cx_lazy_tensor_alloc(NULL) : NULL;
  bool fits =
      cx_dims_bytes(shape->dtype, shape->dims, shape->rank, &elements, &bytes);
  if (t == NULL || !fits) {
    CX_ASSERT(fits);
    cx_free(host);
    done(user);
    return cx_out_of_memory();
  }
  *host = (cx_lazy_host){
    .shape = *shape, .bytes = bytes, .data = data, .done = done, .user = user
  };
  t->host = host;
  atomic_store(&t->owners, 1);
  *out_tensor = t;
  return NULL;
}

void cx_lazy_tensor_restore(calx_tensor *t, const calx_tensor *from)
{
  if (t == cx_lazy_tensor_nil()) return;
  CX_ASSERT(from->node != NULL && t->device == from->device);
  if ((cx_graph_node_flags(from->node) & CX_GRAPH_NODE_DATA) == 0) {
    cx_lazy_tensor_set_value(t, from);
    return;
  }
  cx_lock(&t->device->lock);
  cx_lazy_changed_remove(t);
  cx_graph_node_retain(from->node);
  cx_lazy_tensor_settle(t, from->node);
  t->flags &= ~(uint32_t)CX_LAZY_T_CONSUMED;
  t->flags |= CX_LAZY_T_DETACHED;  // a load brings no history
  cx_unlock(&t->device->lock);
}

void cx_lazy_random_state(calx_device *device, uint64_t *out_seed,
                          uint64_t *out_draws)
{
  cx_lock(&device->lock);
  *out_seed = device->seed;
  *out_draws = device->draws;
  cx_unlock(&device->lock);
}

void cx_lazy_random_restore(calx_device *device, uint64_t seed, uint64_t draws)
{
  cx_lock(&device->lock);
  device->seed = seed;
  device->draws = draws;
  cx_unlock(&device->lock);
}
