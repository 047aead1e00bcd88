// mnist_net: the convolutional network of the PyTorch/XLA documentation.
#ifndef CX_TESTS_SUPPORT_MNIST_NET_H
#define CX_TESTS_SUPPORT_MNIST_NET_H

#include "calx/nn.h"
#include "calx/ops.h"

typedef struct mnist_net {
  calx_module *root, *conv1, *bn1, *conv2, *bn2, *fc1, *fc2;
} mnist_net;

static calx_tensor *mnist_net_forward(void *self, calx_tensor *x)
{
  mnist_net *m = self;
  x = calx_relu(calx_max_pool2d(calx_forward(m->conv1, x), 2));
  x = calx_forward(m->bn1, x);
  x = calx_relu(calx_max_pool2d(calx_forward(m->conv2, x), 2));
  x = calx_forward(m->bn2, x);
  x = calx_flatten(x, .start_dim = 1);
  x = calx_relu(calx_forward(m->fc1, x));
  return calx_log_softmax(calx_forward(m->fc2, x), 1);
}

static inline calx_status *mnist_net_make(mnist_net *m, calx_dtype d)
{
  m->root = calx_module_new("MNIST", mnist_net_forward, m);
  m->conv1 = calx_nn_conv2d(m->root, "conv1", 1, 10, 5, .dtype = d);
  m->bn1 = calx_nn_batch_norm2d(m->root, "bn1", 10, .dtype = d);
  m->conv2 = calx_nn_conv2d(m->root, "conv2", 10, 20, 5, .dtype = d);
  m->bn2 = calx_nn_batch_norm2d(m->root, "bn2", 20, .dtype = d);
  m->fc1 = calx_nn_linear(m->root, "fc1", 320, 50, .dtype = d);
  m->fc2 = calx_nn_linear(m->root, "fc2", 50, 10, .dtype = d);
  return calx_module_error(m->root);
}

#endif
