// lazy/sync/donate: which inputs of a step may be overwritten by its outputs.
//
// A durable tensor's old value is donated to its new one when nobody else can
// want it: no other tensor has it as its value or its last value. Owners of the
// handle do not count: they see the new value.
#include "lazy/sync/step.h"

// The parameter that is this data node; n_params: none.
static size_t param_of(const cx_graph_order *o, const cx_graph_node *node)
{
  size_t i = node->index;
  if (i < o->n_params && o->params[i].node == node) return i;
  return o->n_params;
}

static bool may_donate(const cx_graph_order *o, const calx_tensor *t,
                       uint32_t root)
{
  const cx_graph_node *base = t->base;
  if (base == NULL || (cx_graph_node_flags(base) & CX_GRAPH_NODE_DATA) == 0)
    return false;
  if (atomic_load_explicit(&((cx_graph_node *)base)->holders,
                           memory_order_acquire) != 1) {
    return false;
  }
  const cx_graph_value *r = &o->roots[root];
  return cx_graph_shape_equal(&base->out[0].shape, &r->node->out[r->out].shape);
}

size_t cx_lazy_donate(cx_graph_order *o, calx_tensor *const *tensors,
                      const uint32_t *roots, size_t n)
{
  size_t count = 0;
  uint32_t next = 0;  // roots are numbered as their first tensors come
  for (size_t k = 0; k < n; k++) {
    // Without a root: a read computed it. A second tensor of a root: an output
    // takes one buffer only.
    if (roots[k] == UINT32_MAX || roots[k] < next) continue;
    next = roots[k] + 1;
    if (!may_donate(o, tensors[k], roots[k])) continue;
    size_t p = param_of(o, tensors[k]->base);
    if (p == o->n_params || o->aliases[p] != 0) continue;
    o->aliases[p] = roots[k] + 1;
    count++;
  }
  return count;
}
