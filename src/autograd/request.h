// autograd/request: what a call asks for, its checks and its pass.
#ifndef CX_AUTOGRAD_REQUEST_H
#define CX_AUTOGRAD_REQUEST_H

#include "autograd/pass.h"

typedef struct cx_autograd_request {
  const char *call;
  // gradients: one for each output, each may be NULL; inputs NULL: all leaves
  calx_tensor *const *outputs, *const *gradients, *const *inputs;
  size_t n_outputs, n_inputs;
  bool create_graph, retain_graph;
} cx_autograd_request;

// Takes the gradients at the end of a pass.
typedef void cx_autograd_finish_fn(cx_autograd_pass *p, void *user);

calx_status *cx_autograd_check_request(const cx_autograd_request *q)
    CALX_MUST_USE;
calx_tensor *cx_autograd_gradient_of(const cx_autograd_request *q, size_t i);
// Walks, runs the rules and lets `finish` take the gradients. On failure
// nothing has changed.
calx_status *cx_autograd_run_pass(cx_autograd_pass *p,
                                  const cx_autograd_request *q,
                                  cx_autograd_finish_fn *finish,
                                  void *user) CALX_MUST_USE;
// Finds the cell of a tensor that is a leaf or a result. False: no gradient
// flows through the tensor.
bool cx_autograd_cell_of(const cx_autograd_pass *p, calx_tensor *t,
                         size_t *out_cell);

// The same value as a handle of its own, with its history if that is wanted.
calx_tensor *cx_autograd_result(const cx_autograd_pass *p, calx_tensor *grad);
// The cell's gradient and what the tensor collected before.
void cx_autograd_add_old(cx_autograd_pass *p, const cx_autograd_leaf *to,
                         calx_tensor **out_sum);
void cx_autograd_set_sum(cx_autograd_pass *p, calx_tensor *t, calx_tensor *sum);

#endif
