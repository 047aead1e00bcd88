// lazy/tape: what an op's gradient rule sees.
//
// A rule is written with public ops: it asks for its inputs and outputs as
// tensors, combines them with the gradients of the outputs, and sets those of
// the inputs. So second derivatives follow.
#ifndef CX_LAZY_TAPE_H
#define CX_LAZY_TAPE_H

#include "lazy/lazy.h"

struct cx_lazy_tape {
  cx_graph_node *node;
  const void *attrs;
  calx_device *device;
  calx_tensor *const *out_grads;  // n_out; NULL: nothing flowed there
  calx_tensor **in_grads;         // n_in, to be filled; NULL: nothing flows
  bool *used_values;  // set where the rule asks for an input or an output
  bool create_graph;
};

calx_tensor *cx_lazy_tape_in(const cx_lazy_tape *tape, uint32_t i);
calx_tensor *cx_lazy_tape_out(const cx_lazy_tape *tape, uint32_t k);
static inline bool cx_tape_needs(const cx_lazy_tape *tape, uint32_t i)
{
  return tape->node->in[i].differentiable;
}

#endif
