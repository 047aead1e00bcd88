// net: the convolutional network of the PyTorch/XLA documentation, and the
// batches that the tests of training in step give it.
#ifndef CX_TESTS_DIST_NET_H
#define CX_TESTS_DIST_NET_H

#include "calx/autograd.h"
#include "calx/dist.h"

typedef struct net {
  calx_module *root, *conv1, *bn1, *conv2, *bn2, *fc1, *fc2;
} net;

static calx_tensor *net_forward(void *self, calx_tensor *x)
{
  net *m = self;
  x = calx_relu(calx_max_pool2d(calx_forward(m->conv1, x), 2));
  x = calx_forward(m->bn1, x);
  x = calx_relu(calx_max_pool2d(calx_forward(m->conv2, x), 2));
  x = calx_forward(m->bn2, x);
  x = calx_flatten(x, .start_dim = 1);
  x = calx_relu(calx_forward(m->fc1, x));
  return calx_log_softmax(calx_forward(m->fc2, x), 1);
}

// Its batch norms are over all ranks.
static inline calx_status *net_make(net *m, calx_dtype d)
{
  m->root = calx_module_new("MNIST", net_forward, m);
  m->conv1 = calx_nn_conv2d(m->root, "conv1", 1, 10, 5, .dtype = d);
  m->bn1 = calx_nn_batch_norm2d(m->root, "bn1", 10, .dtype = d);
  m->conv2 = calx_nn_conv2d(m->root, "conv2", 10, 20, 5, .dtype = d);
  m->bn2 = calx_nn_batch_norm2d(m->root, "bn2", 20, .dtype = d);
  m->fc1 = calx_nn_linear(m->root, "fc1", 320, 50, .dtype = d);
  m->fc2 = calx_nn_linear(m->root, "fc2", 50, 10, .dtype = d);
  calx_convert_sync_batchnorm(m->root);
  return calx_module_error(m->root);
}

#endif
