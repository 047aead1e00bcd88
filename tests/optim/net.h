// net: the small model that the tests of steps train.
#ifndef CX_TESTS_OPTIM_NET_H
#define CX_TESTS_OPTIM_NET_H

#include "calx/autograd.h"
#include "calx/optim.h"
#include "support/support.h"

// y = x W^T + b on two samples, and its sum as the loss.
typedef struct net {
  calx_module *root, *fc;
  calx_tensor *w, *b;
} net;

static inline net make(void)
{
  net m = { .root = calx_module_new("Net", NULL, NULL) };
  m.fc = calx_nn_linear(m.root, "fc", 3, 2);
  m.w = calx_module_find(m.root, "fc.weight");
  m.b = calx_module_find(m.root, "fc.bias");
  CHECK_STATUS_OK(calx_module_error(m.root));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_take_error());
  return m;
}

static inline calx_tensor *loss_of(const net *m)
{
  return calx_sum(
      calx_square(calx_forward(m->fc, calx_ones(CALX_SHAPE(2, 3)))));
}

static inline const cx_graph_node *node_of(const calx_tensor *t)
{
  return cx_lazy_tensor_value(t).node;
}

static inline bool is_data(const calx_tensor *t)
{
  return node_of(t) != NULL &&
         (cx_graph_node_flags(node_of(t)) & CX_GRAPH_NODE_DATA) != 0;
}

static inline void train_step(const net *m, calx_optimizer *opt)
{
  calx_scope *s = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_tensor *loss = loss_of(m);
  calx_backward(loss);
  calx_optimizer_step(opt);
  calx_sync(loss);
  CHECK_STATUS_OK(calx_scope_end(s));
}

#endif
