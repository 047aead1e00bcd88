// autograd/walk: the part of the graph that a gradient flows through.
//
// Nodes come in post-order: operands come before their users, so the reversed
// list has each node after all its users. Every output and every leaf has a
// cell, a number under which its gradient is kept.
#ifndef CX_AUTOGRAD_WALK_H
#define CX_AUTOGRAD_WALK_H

#include "autograd/map.h"
#include "calx/tensor.h"
#include "graph/node.h"

typedef struct cx_autograd_entry {
  cx_graph_node *node;  // borrowed: the output keeps its graph alive
  size_t first_cell;    // n_out of them
} cx_autograd_entry;

typedef struct cx_autograd_leaf {
  calx_tensor *tensor;
  size_t cell;
} cx_autograd_leaf;

typedef struct cx_autograd_walk {
  cx_autograd_entry *entries;
  size_t n_entries, entries_capacity;
  cx_autograd_leaf *leaves;  // in the order in which they were met
  size_t n_leaves, leaves_capacity;
  size_t n_cells;
  cx_autograd_map cells;  // of a node: its first; of a leaf's tensor: its own
  cx_graph_node **roots;  // retained: a hook may release the output
  size_t n_roots, roots_capacity;
  struct cx_autograd_frame *stack;
  size_t stack_capacity;
} cx_autograd_walk;  // the zero value is ready

// False: no memory.
bool cx_autograd_walk_from(cx_autograd_walk *walk, cx_graph_node *root);
// May be called for several roots, one after the other.
// For an output that is a leaf itself.
bool cx_autograd_walk_leaf(cx_autograd_walk *walk, calx_tensor *leaf);
void cx_autograd_walk_free(cx_autograd_walk *walk);

// Where the gradient of this input is kept. False: nowhere, for an edge without
// a gradient and for a leaf whose tensor was freed.
bool cx_autograd_cell(const cx_autograd_walk *walk, const cx_graph_input *in,
                      size_t *out_cell);
// The tensor of a leaf edge; NULL: it was freed.
calx_tensor *cx_autograd_leaf_tensor(const cx_graph_input *in);

#endif
