// graph/key: an order as 32-bit words that are equal for equal programs.
//
//   key    = n_params n_nodes n_roots param* node* root* (split* split*)?
//   param  = type size(2)* alias          alias: root + 1, or 0
//   type   = dtype | rank << 8
//   node   = op | n_slots << 16, n_in | n_out << 24, ref*, attribute*, slot*,
//            and (type size(2)*) per output for a node without inputs
//   ref    = 1 << 31 | parameter, or node << 3 | output
//   slot   = dtype | promotable << 8
//   root   = ref
//   split  = number of a placement, or 0: of the parameters, then of the roots,
//            in a program on all devices of a mesh
//
// Shapes of inner nodes follow from the leaves and the attributes, so they are
// not written. Values of slots are not written either.
#include <string.h>

#include "base/alloc.h"
#include "graph/order.h"

static inline void word(cx_graph_key *key, uint32_t w)
{
  key->words[key->count++] = w;
}

static void shape_words(cx_graph_key *key, const cx_graph_shape *s)
{
  word(key, (uint32_t)s->dtype | s->rank << 8);
  for (uint32_t i = 0; i < s->rank; i++) {
    word(key, (uint32_t)((uint64_t)s->dims[i] & UINT32_MAX));
    word(key, (uint32_t)((uint64_t)s->dims[i] >> 32));
  }
}

uint32_t cx_graph_order_ref(const cx_graph_order *o, const cx_graph_node *node,
                            uint32_t out)
{
  if (node->out[0].buffer == NULL) return node->index << 3 | out;
  return CX_GRAPH_KEY_PARAM | (uint32_t)cx_graph_order_param(o, node, out);
}

static size_t node_words(const cx_graph_node *node)
{
  size_t shapes =
      node->n_in == 0 ? node->n_out * (1 + 2 * (size_t)CALX_MAX_RANK) : 0;
  return 2 + node->n_in + (node->attr_bytes + 3) / 4 + node->n_slots + shapes;
}

static void write_node(const cx_graph_order *o, cx_graph_key *key,
                       const cx_graph_node *node)
{
  word(key, node->op->id | node->n_slots << 16);
  word(key, node->n_in | node->n_out << 24);
  for (uint32_t i = 0; i < node->n_in; i++) {
    word(key, cx_graph_order_ref(o, node->in[i].node, node->in[i].out));
  }
  size_t attr = (node->attr_bytes + 3) / 4;
  if (attr != 0) {
    memcpy(key->words + key->count, node->attrs, attr * 4);
    key->count += attr;
  }
  for (uint32_t k = 0; k < node->n_slots; k++) {
    word(key, (uint32_t)node->slots[k].dtype | node->slots[k].promotable << 8);
  }
  for (uint32_t k = 0; node->n_in == 0 && k < node->n_out; k++) {
    shape_words(key, &node->out[k].shape);
  }
}

static void write_placements(const cx_graph_order *o, cx_graph_key *key)
{
  for (size_t i = 0; i < o->n_params; i++) {
    const cx_spmd_placement *p = cx_graph_order_placement(o, i);
    word(key, p != NULL ? p->number : 0);
  }
  for (size_t i = 0; i < o->n_roots; i++) {
    word(key, o->wanted[i] != NULL ? o->wanted[i]->number : 0);
  }
}

bool cx_graph_order_key(cx_graph_order *o)
{
  size_t need =
      3 + 2 * o->n_roots + o->n_params * (3 + 2 * (size_t)CALX_MAX_RANK);
  for (size_t i = 0; i < o->n_nodes; i++) need += node_words(o->nodes[i]);
  cx_graph_key *key = &o->key;
  if (!cx_grow(&key->words, &key->capacity, need, sizeof *key->words)) {
    return false;
  }
  key->count = 0;
  word(key, (uint32_t)o->n_params);
  word(key, (uint32_t)o->n_nodes);
  word(key, (uint32_t)o->n_roots);
  for (size_t i = 0; i < o->n_params; i++) {
    shape_words(key, &o->params[i].node->out[o->params[i].out].shape);
    word(key, o->aliases[i]);
  }
  for (size_t i = 0; i < o->n_nodes; i++) write_node(o, key, o->nodes[i]);
  for (size_t i = 0; i < o->n_roots; i++) {
    word(key, cx_graph_order_ref(o, o->roots[i].node, o->roots[i].out));
  }
  if (o->sharded) write_placements(o, key);
  o->hash = cx_hash_bytes(key->words, key->count * sizeof *key->words, 0);
  return true;
}
