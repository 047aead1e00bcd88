// graph/order: an iterative post-order walk with marks in the nodes.
#include "graph/order.h"

#include <string.h>

#include "base/alloc.h"

typedef struct cx_graph_frame {
  cx_graph_node *node;
  uint32_t next;  // input to look at next
} cx_graph_frame;

static atomic_uint_fast64_t walks;

static inline bool is_computed(const cx_graph_node *node)
{
  return node->out[0].buffer != NULL;
}

// Numbers output `out` of a computed node among the parameters.
static bool add_param(cx_graph_order *o, cx_graph_node *node, uint32_t out,
                      uint64_t walk)
{
  if (node->mark == walk) {
    if (node->n_out == 1) return true;
    if (cx_graph_order_param(o, node, out) < o->n_params) return true;
  } else {
    node->mark = walk;
    node->index = (uint32_t)o->n_params;
  }
  if (!cx_grow(&o->params, &o->params_capacity, o->n_params + 1,
               sizeof *o->params)) {
    return false;
  }
  o->params[o->n_params++] = (cx_graph_value){ node, out };
  return true;
}

static bool push(cx_graph_order *o, size_t *depth, cx_graph_node *node,
                 uint64_t walk)
{
  if (!cx_grow(&o->stack, &o->stack_capacity, *depth + 1, sizeof *o->stack)) {
    return false;
  }
  node->mark = walk;
  o->stack[(*depth)++] = (cx_graph_frame){ node, 0 };
  return true;
}

static bool finish(cx_graph_order *o, cx_graph_node *node)
{
  if (!cx_grow(&o->nodes, &o->nodes_capacity, o->n_nodes + 1,
               sizeof *o->nodes)) {
    return false;
  }
  node->index = (uint32_t)o->n_nodes;
  o->nodes[o->n_nodes++] = node;
  o->flags |= cx_graph_node_flags(node);
  for (uint32_t k = 0; k < node->n_slots; k++) {
    bool wide = cx_graph_slot_is_wide(&node->slots[k]);
    o->n_slots += wide ? 2 : 1;
    o->n_wide += wide;
    o->n_promotable += node->slots[k].promotable;
  }
  return true;
}

static bool walk_from(cx_graph_order *o, cx_graph_node *root, uint64_t walk)
{
  size_t depth = 0;
  if (!push(o, &depth, root, walk)) return false;
  while (depth > 0) {
    cx_graph_frame *top = &o->stack[depth - 1];
    cx_graph_node *node = top->node;
    if (top->next == node->n_in) {
      depth--;
      if (!finish(o, node)) return false;
      continue;
    }
    const cx_graph_input *in = &node->in[top->next++];
    if (is_computed(in->node)) {
      if (!add_param(o, in->node, in->out, walk)) return false;
    } else if (in->node->mark != walk && !push(o, &depth, in->node, walk)) {
      return false;
    }
  }
  return true;
}

bool cx_graph_order_walk(cx_graph_order *o)
{
  uint64_t walk = atomic_fetch_add(&walks, 1) + 1;
  o->n_nodes = o->n_params = o->n_slots = o->n_promotable = 0;
  o->n_wide = 0;
  o->flags = 0;
  for (size_t i = 0; i < o->n_roots; i++) {
    cx_graph_node *root = o->roots[i].node;
    if (is_computed(root)) {
      if (!add_param(o, root, o->roots[i].out, walk)) return false;
    } else if (root->mark != walk && !walk_from(o, root, walk)) {
      return false;
    }
  }
  if (!cx_grow(&o->aliases, &o->aliases_capacity, o->n_params,
               sizeof *o->aliases)) {
    return false;
  }
  if (o->n_params != 0) {
    memset(o->aliases, 0, o->n_params * sizeof *o->aliases);
  }
  return true;
}

bool cx_graph_order_shard(cx_graph_order *o, bool sharded)
{
  o->sharded = sharded;
  if (!sharded) return true;
  if (!cx_grow(&o->wanted, &o->wanted_capacity, o->n_roots + 1,
               sizeof *o->wanted)) {
    return false;
  }
  for (size_t i = 0; i < o->n_roots; i++) o->wanted[i] = NULL;
  return true;
}

const cx_spmd_placement *cx_graph_order_placement(const cx_graph_order *o,
                                                  size_t param)
{
  const cx_graph_value *p = &o->params[param];
  return cx_pjrt_buffer_placement(p->node->out[p->out].buffer);
}

void cx_graph_order_slots(const cx_graph_order *o, uint32_t *words,
                          int64_t *promotable)
{
  uint32_t *low = words, *high = words + o->n_wide;
  uint32_t *narrow = high + o->n_wide;
  for (size_t i = 0; i < o->n_nodes; i++) {
    const cx_graph_node *node = o->nodes[i];
    for (uint32_t k = 0; k < node->n_slots; k++) {
      const cx_graph_slot *s = &node->slots[k];
      if (!cx_graph_slot_is_wide(s)) {
        float f = (float)s->value.number;
        memcpy(narrow++, &f, sizeof f);
        continue;
      }
      uint64_t bits;
      memcpy(&bits, &s->value, sizeof bits);
      *low++ = (uint32_t)(bits & UINT32_MAX);
      *high++ = (uint32_t)(bits >> 32);
      if (s->promotable) *promotable++ = s->value.integer;
    }
  }
}

void cx_graph_order_free(cx_graph_order *o)
{
  cx_free(o->nodes);
  cx_free(o->params);
  cx_free(o->roots);
  cx_free(o->aliases);
  cx_free(o->wanted);
  cx_free(o->key.words);
  cx_free(o->stack);
  *o = (cx_graph_order){ 0 };
}
