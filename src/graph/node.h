// graph/node: the nodes that ops record, and what an op is to the graph.
//
// A node is one block of memory: header, inputs, outputs, attributes, slots. It
// is immutable once built, except for what the device's lock guards: the marks
// of a traversal, and the buffers that an execution puts into its outputs. A
// node whose output has a buffer is a leaf for every later program.
//
// Attributes are part of the graph's key, byte for byte, so an attribute struct
// is zeroed before it is filled and has no padding that holds rubbish. Slots
// are the user's numbers: only their count and types are in the key. A
// promotable slot (a slice's start) is a constant at first and becomes a slot
// after the first miss on it.
#ifndef CX_GRAPH_NODE_H
#define CX_GRAPH_NODE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"
#include "calx/dtype.h"
#include "pjrt/pjrt.h"

typedef struct cx_graph_node cx_graph_node;
// Of the tape: where a gradient is collected.
typedef struct cx_graph_leaf cx_graph_leaf;
typedef struct cx_graph_emit cx_graph_emit;  // see graph/lower.h
typedef struct cx_lazy_tape cx_lazy_tape;    // see lazy/tape.h
// What few nodes and leaves have besides; see graph/extra.h
typedef struct cx_graph_extra cx_graph_extra;

typedef struct cx_graph_shape {
  calx_dtype dtype;
  uint32_t rank;
  int64_t dims[CALX_MAX_RANK];  // those past rank are 0
} cx_graph_shape;

bool cx_graph_shape_equal(const cx_graph_shape *a, const cx_graph_shape *b);
int64_t cx_graph_shape_numel(const cx_graph_shape *s);
// "f32[128,10]" for one message: a small ring of static thread-local texts.
const char *cx_graph_shape_str(const cx_graph_shape *s);
void cx_graph_shape_print(cx_text *out, const cx_graph_shape *s);

typedef struct cx_graph_value {
  cx_graph_node *node;
  uint32_t out;
} cx_graph_value;

// One input and its edge on the tape: a gradient flows to `leaf` if there is
// one, else into the producer's output if `differentiable`.
typedef struct cx_graph_input {
  cx_graph_node *node;
  uint32_t out;
  bool differentiable;
  cx_graph_leaf *leaf;
} cx_graph_input;

typedef struct cx_graph_output {
  cx_graph_shape shape;
  cx_pjrt_buffer *buffer;  // NULL: not computed; under the device's lock
  cx_graph_node *data;     // the value as a data node, by a sync; NULL: none
} cx_graph_output;

typedef struct cx_graph_slot {
  calx_dtype dtype;  // F32 (also for bf16 and f16), F64, I64, U64
  bool promotable;
  union {
    double number;
    int64_t integer;
  } value;
} cx_graph_slot;

typedef struct cx_graph_op {
  const char *name;    // PyTorch's, "conv2d"
  uint16_t id;         // its place in the ops' table: what keys hold
  uint32_t attr_size;  // bytes of the attribute struct
  // Of an op whose attributes end in a list: their bytes, a multiple of 4, the
  // same for equal first attr_size bytes. NULL: attr_size.
  uint32_t (*attr_bytes)(const void *attrs);
  // Fills node->out[k].shape from inputs and attributes. A failure's message
  // need not name the op: the caller does.
  calx_status *(*infer)(cx_graph_node *node);
  // Sets the gradients of the inputs; NULL: not differentiable.
  void (*grad)(cx_lazy_tape *tape);
  void (*emit)(cx_graph_emit *e);
  // Whether it takes and makes complex numbers; others refuse them.
  bool takes_complex;
  // Of an op that says how its result is split among devices: the placement's
  // number (spmd/placement.h) in its attributes. NULL: it says nothing.
  uint32_t (*placement)(const void *attrs);
  // Attributes for people: "stride=2, padding=1". NULL: none.
  void (*describe)(const void *attrs, cx_text *out);
} cx_graph_op;

enum {
  CX_GRAPH_NODE_DATA = 1,  // a buffer that was uploaded or computed by a sync
  CX_GRAPH_NODE_GRAD = 2,  // on the tape: an output requires a gradient
  CX_GRAPH_NODE_TAPE_ENDED = 4,   // data whose history a sync dropped
  CX_GRAPH_NODE_FAILED = 8,       // its late execution failed: see error
  CX_GRAPH_NODE_READ = 16,        // computed by a read before a sync
  CX_GRAPH_NODE_TRAIN = 32,       // an op that depends on train/eval, in train
  CX_GRAPH_NODE_COLLECTIVE = 64,  // an op in which all ranks take part
  CX_GRAPH_NODE_SHORT = 128,  // data: of an epoch's last batch, a smaller one
  // A backward pass used the values that its gradient rule needs, and did not
  // retain them: a second one is refused.
  CX_GRAPH_NODE_USED_UP = 256,
};

struct cx_graph_node {
  atomic_int refs;
  atomic_int holders;  // data: tensors whose value or base it is
  _Atomic uint32_t flags;
  uint32_t n_in, n_out, n_slots;
  const cx_graph_op *op;
  cx_graph_input *in;
  cx_graph_output *out;
  cx_graph_slot *slots;
  void *attrs;
  calx_site site;  // where it was recorded; data: where it was launched
  // Path of the module that recorded it; data: which part of a batch it is,
  // "the batch's target". NULL: none.
  const char *module;
  // The public function that recorded it as one of several ops; NULL: none.
  const char *composite;
  // Hooks on its outputs, a custom function's context; NULL: none.
  cx_graph_extra *extra;
  calx_status *error;  // of a failed execution; set before CX_GRAPH_NODE_FAILED
  // A traversal's, under the device's lock.
  uint64_t mark;
  uint32_t index;
  uint32_t attr_bytes;
};

// A node with room for all that is counted; the inputs are retained by the
// caller's filling them in with cx_graph_node_set_input. NULL: no memory.
cx_graph_node *cx_graph_node_new(const cx_graph_op *op, uint32_t n_in,
                                 uint32_t n_out, uint32_t n_slots,
                                 const void *attrs);
void cx_graph_node_set_input(cx_graph_node *node, uint32_t i,
                             cx_graph_value value);
void cx_graph_node_retain(cx_graph_node *node);
// Iterative: chains are millions of nodes long.
void cx_graph_node_release(cx_graph_node *node);

// A data leaf that owns a reference to the buffer, which is taken over.
cx_graph_node *cx_graph_node_data(const cx_graph_shape *shape,
                                  cx_pjrt_buffer *buffer);

static inline const cx_graph_shape *cx_in(const cx_graph_node *node, uint32_t i)
{
  return &node->in[i].node->out[node->in[i].out].shape;
}

// The name by which users know it: that of the function that they called.
static inline const char *cx_graph_node_name(const cx_graph_node *node)
{
  return node->composite != NULL ? node->composite : node->op->name;
}

static inline uint32_t cx_graph_node_flags(const cx_graph_node *node)
{
  return atomic_load_explicit(&((cx_graph_node *)node)->flags,
                              memory_order_acquire);
}

static inline void cx_graph_node_set_flags(cx_graph_node *node, uint32_t flags)
{
  atomic_fetch_or_explicit(&node->flags, flags, memory_order_release);
}

// The tape's leaf records are made in lazy/tensor; nodes only keep them alive.
struct cx_graph_leaf {
  atomic_int refs;
  _Atomic(void *) tensor;  // calx_tensor *, or NULL when it is gone
  cx_graph_extra *extra;   // hooks on its gradient; NULL: none
};
void cx_graph_leaf_retain(cx_graph_leaf *leaf);
void cx_graph_leaf_release(cx_graph_leaf *leaf);

extern const cx_graph_op cx_graph_op_data;

long cx_graph_node_live(void);

#endif
