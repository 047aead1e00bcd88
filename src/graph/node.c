// graph/node: building and freeing nodes.
#include "graph/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/extra.h"

static atomic_long live;

long cx_graph_node_live(void)
{
  return atomic_load(&live);
}

// ---- shapes -----------------------------------------------------------------

bool cx_graph_shape_equal(const cx_graph_shape *a, const cx_graph_shape *b)
{
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++) {
    if (a->dims[i] != b->dims[i]) return false;
  }
  return true;
}

int64_t cx_graph_shape_numel(const cx_graph_shape *s)
{
  // Unsigned: the product of the other sizes may not fit where one is 0.
  uint64_t n = 1;
  for (uint32_t i = 0; i < s->rank; i++) n *= (uint64_t)s->dims[i];
  return (int64_t)n;
}

void cx_graph_shape_print(cx_text *out, const cx_graph_shape *s)
{
  cx_text_append(out, cx_graph_shape_str(s));
}

const char *cx_graph_shape_str(const cx_graph_shape *s)
{
  enum { RING = 4, WIDTH = 24 + 21 * CALX_MAX_RANK };
  static _Thread_local char ring[RING][WIDTH];
  static _Thread_local unsigned next;
  char *text = ring[next++ % RING];
  int n = snprintf(text, WIDTH, "%s[", calx_dtype_name(s->dtype));
  for (uint32_t i = 0; i < s->rank; i++) {
    n += snprintf(text + n, WIDTH - (size_t)n, "%s%" PRId64, i != 0 ? "," : "",
                  s->dims[i]);
  }
  snprintf(text + n, WIDTH - (size_t)n, "]");
  return text;
}

// ---- the tape's leaves ------------------------------------------------------

void cx_graph_leaf_retain(cx_graph_leaf *leaf)
{
  atomic_fetch_add_explicit(&leaf->refs, 1, memory_order_relaxed);
}

void cx_graph_leaf_release(cx_graph_leaf *leaf)
{
  if (leaf == NULL) return;
  if (atomic_fetch_sub_explicit(&leaf->refs, 1, memory_order_acq_rel) == 1) {
    cx_graph_extra_free(leaf->extra);
    cx_free(leaf);
  }
}

// ---- nodes ------------------------------------------------------------------

const cx_graph_op cx_graph_op_data = { .name = "device_data" };

static size_t round_up(size_t n)
{
  return (n + 7) & ~(size_t)7;
}

cx_graph_node *cx_graph_node_new(const cx_graph_op *op, uint32_t n_in,
                                 uint32_t n_out, uint32_t n_slots,
                                 const void *attrs)
{
  size_t header = round_up(sizeof(cx_graph_node));
  size_t in = n_in * sizeof(cx_graph_input),
         out = n_out * sizeof(cx_graph_output);
  size_t slots = n_slots * sizeof(cx_graph_slot);
  uint32_t attr_bytes =
      op->attr_bytes != NULL ? op->attr_bytes(attrs) : op->attr_size;
  size_t attr = round_up(attr_bytes);
  char *block = cx_alloc(header + in + out + slots + attr);
  if (block == NULL) return NULL;
  cx_graph_node *node = (cx_graph_node *)(void *)block;
  memset(node, 0, sizeof *node);
  char *p = block + header;
  node->in = (cx_graph_input *)(void *)p;
  node->out = (cx_graph_output *)(void *)(p += in);
  node->slots = (cx_graph_slot *)(void *)(p += out);
  node->attrs = p += slots;
  memset(node->in, 0, in + out + slots);
  if (attr_bytes != 0) {
    memset(p + attr_bytes, 0, attr - attr_bytes);
    memcpy(p, attrs, attr_bytes);
  }
  node->attr_bytes = attr_bytes;
  atomic_init(&node->refs, 1);
  node->op = op;
  node->n_in = n_in;
  node->n_out = n_out;
  node->n_slots = n_slots;
  atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
  return node;
}

void cx_graph_node_set_input(cx_graph_node *node, uint32_t i,
                             cx_graph_value value)
{
  cx_graph_node_retain(value.node);
  node->in[i].node = value.node;
  node->in[i].out = value.out;
}

void cx_graph_node_retain(cx_graph_node *node)
{
  atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
}

// Frees one node whose references are gone, and chains those of its inputs that
// fall to zero by that through `mark`, which nobody else looks at any more.
static cx_graph_node *free_one(cx_graph_node *node, cx_graph_node *rest)
{
  for (uint32_t i = 0; i < node->n_in; i++) {
    cx_graph_node *in = node->in[i].node;
    cx_graph_leaf_release(node->in[i].leaf);
    if (in != NULL &&
        atomic_fetch_sub_explicit(&in->refs, 1, memory_order_acq_rel) == 1) {
      in->mark = (uint64_t)(uintptr_t)rest;
      rest = in;
    }
  }
  for (uint32_t k = 0; k < node->n_out; k++) {
    cx_pjrt_buffer_release(node->out[k].buffer);
    cx_graph_node_release(node->out[k].data);  // has no inputs and no such twin
  }
  cx_graph_extra_free(node->extra);
  calx_status_free(node->error);
  cx_free(node);
  atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
  return rest;
}

void cx_graph_node_release(cx_graph_node *node)
{
  if (node == NULL ||
      atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1) {
    return;
  }
  node->mark = 0;
  while (node != NULL) {
    cx_graph_node *rest = (cx_graph_node *)(uintptr_t)node->mark;
    node = free_one(node, rest);
  }
}

cx_graph_node *cx_graph_node_data(const cx_graph_shape *shape,
                                  cx_pjrt_buffer *buffer)
{
  cx_graph_node *node = cx_graph_node_new(&cx_graph_op_data, 0, 1, 0, NULL);
  if (node == NULL) {
    cx_pjrt_buffer_release(buffer);
    return NULL;
  }
  node->out[0].shape = *shape;
  node->out[0].buffer = buffer;
  atomic_store_explicit(&node->flags, CX_GRAPH_NODE_DATA, memory_order_relaxed);
  return node;
}
