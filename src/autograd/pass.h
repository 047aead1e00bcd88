// autograd/pass: a backward pass over a walk.
//
// Gradient rules record ops, whose handles die in batches: every few hundred
// rules the scope that holds them ends, and only gradients that are still
// wanted are retained across. So a chain of a million ops needs the memory of
// its nodes and little more.
#ifndef CX_AUTOGRAD_PASS_H
#define CX_AUTOGRAD_PASS_H

#include "autograd/walk.h"
#include "lazy/lazy.h"

enum {                      // marks of a cell
  CX_AUTOGRAD_TARGET = 1,   // its gradient is asked for
  CX_AUTOGRAD_BELOW = 2,    // a node's first: its inputs lead to a target
  CX_AUTOGRAD_THROUGH = 4,  // … or it is one
};

typedef struct cx_autograd_pass {
  cx_autograd_walk walk;
  calx_device *device;
  bool create_graph;
  bool retain_graph;
  bool mode_before;  // of recording, outside of the batches
  calx_dtype autocast_before;
  unsigned char *marks;  // by cell; NULL: every leaf is asked for
  calx_tensor **grads;   // by cell; NULL: nothing flowed there
  bool *owned;           // by cell: retained by the pass
  bool *kept;            // by cell: wanted at the end; NULL: none
  bool *used;            // by entry: its rule asked for values
  // Where gradients go at the end besides leaves: tensors that retain theirs.
  cx_autograd_leaf *retained;
  size_t n_retained, retained_capacity;
  calx_tensor **in_grads;
  size_t in_grads_capacity;
  size_t *fresh;  // cells that this batch set
  size_t n_fresh, fresh_capacity;
  calx_tensor **done;  // to be released when the batch ends
  size_t n_done, done_capacity;
  calx_scope *batch;
  size_t in_batch;  // rules so far
  const cx_graph_node *failed;
  calx_status *status;  // the first failure of the batches before
} cx_autograd_pass;     // the zero value, with walk, device, create_graph set

// After the walk: makes the cells and opens the first batch. False: no memory.
bool cx_autograd_begin(cx_autograd_pass *p);
// Marks cells as asked for, then what leads to them.
bool cx_autograd_mark(cx_autograd_pass *p, size_t cell);
void cx_autograd_mark_ways(cx_autograd_pass *p);
// Adds a gradient to a cell.
void cx_autograd_put(cx_autograd_pass *p, size_t cell, calx_tensor *grad);
// Calls the hooks of a leaf or a node's output on the gradient in its cell.
void cx_autograd_hook(cx_autograd_pass *p, cx_graph_extra *extra, size_t cell,
                      uint32_t out);
// After a pass that succeeded: what its rules asked for may not be asked for
// again, unless the graph is retained.
void cx_autograd_use_up(cx_autograd_pass *p);
// Runs the rules from the cells that have a gradient to all that they reach.
void cx_autograd_run(cx_autograd_pass *p);
// Whether it failed so far; ops after that would be lost.
bool cx_autograd_failed(const cx_autograd_pass *p);
// Ends the batch, frees all. The first failure, for the scope around.
calx_status *cx_autograd_end(cx_autograd_pass *p) CALX_MUST_USE;

#endif
