// graph/order: the nodes that the roots need in a canonical order, and the key.
//
// The order is post-order from the roots, inputs from first to last. Parameters
// are numbered in the order of their first use. So the key depends neither on
// the order in which nodes were made (C leaves that of arguments open) nor on
// any address.
#ifndef CX_GRAPH_ORDER_H
#define CX_GRAPH_ORDER_H

#include "base/hash.h"
#include "graph/node.h"

// The key's words; see graph/key.c for the grammar.
#define CX_GRAPH_KEY_PARAM (UINT32_C(1) << 31)  // of a reference to a parameter
typedef struct cx_graph_key {
  uint32_t *words;
  size_t count, capacity;
} cx_graph_key;

// Scratch of one traversal, kept by a device between syncs so that a cached
// step allocates nothing. Node pointers are borrowed.
typedef struct cx_graph_order {
  // Post-order, without parameters and nodes that are computed already.
  cx_graph_node **nodes;
  size_t n_nodes, nodes_capacity;
  cx_graph_value *params;  // outputs of computed nodes
  size_t n_params, params_capacity;
  cx_graph_value *roots;  // distinct, in order
  size_t n_roots, roots_capacity;
  // For each parameter: 1 + the root that takes over its buffer; 0: none.
  uint32_t *aliases;
  size_t aliases_capacity;
  // Of a program on all devices of a mesh: how each root is to be split, NULL
  // where that is left to the program. Only where `sharded` is set.
  const cx_spmd_placement **wanted;
  size_t wanted_capacity;
  bool sharded;
  size_t n_slots;  // 32-bit words of all slots, promotable ones included
  size_t n_wide;   // slots of 64 bits
  size_t n_promotable;
  uint32_t flags;  // of all nodes
  cx_graph_key key;
  cx_hash hash;
  struct cx_graph_frame *stack;
  size_t stack_capacity;
} cx_graph_order;

// Walks from order->roots (filled by the caller). False: no memory.
bool cx_graph_order_walk(cx_graph_order *order);
// Makes it one of a program on all devices, or not (the beginning): no root is
// wanted in a certain way. False: no memory.
bool cx_graph_order_shard(cx_graph_order *order, bool sharded);
// How a parameter lies on the devices; NULL: whole on each.
const cx_spmd_placement *cx_graph_order_placement(const cx_graph_order *order,
                                                  size_t param);
// Writes order->key and hash; aliases must be set (all 0: none).
bool cx_graph_order_key(cx_graph_order *order);
// How the key refers to a node's output, which is in the order.
uint32_t cx_graph_order_ref(const cx_graph_order *order,
                            const cx_graph_node *node, uint32_t out);
void cx_graph_order_free(cx_graph_order *order);

// Packs the slots' values into the words of one upload: the low halves of the
// 64-bit slots in order, their high halves, the 32-bit slots. The integers of
// the promotable constants, n_promotable of them, go to out_promotable too.
void cx_graph_order_slots(const cx_graph_order *order, uint32_t *out_words,
                          int64_t *out_promotable);

// The number of a computed node's output among the parameters; n_params: it is
// none of them.
static inline size_t cx_graph_order_param(const cx_graph_order *o,
                                          const cx_graph_node *node,
                                          uint32_t out)
{
  size_t i = node->index;
  while (i < o->n_params &&
         (o->params[i].node != node || o->params[i].out != out)) {
    i++;
  }
  return i;
}

static inline bool cx_graph_slot_is_wide(const cx_graph_slot *s)
{
  return s->dtype != CALX_F32;
}

#endif
