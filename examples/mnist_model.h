// The MNIST CNN of mnist.c, for the other examples; its first layers as a
// sequential module.
#ifndef EXAMPLES_MNIST_MODEL_H
#define EXAMPLES_MNIST_MODEL_H

#include <calx/calx.h>

typedef struct mnist {
  calx_module *root, *conv1, *bn1, *conv2, *bn2, *fc1, *fc2;
} mnist;

// x: images (N, 1, 28, 28) -> (N, 50)
static inline calx_tensor *mnist_features(mnist *m, calx_tensor *x)
{
  x = calx_relu(calx_max_pool2d(calx_forward(m->conv1, x), 2));
  x = calx_forward(m->bn1, x);
  x = calx_relu(calx_max_pool2d(calx_forward(m->conv2, x), 2));
  x = calx_forward(m->bn2, x);
  x = calx_flatten(x, .start_dim = 1);
  return calx_relu(calx_forward(m->fc1, x));
}

// The logarithms of the digits' probabilities, (N, 10).
static inline calx_tensor *mnist_forward(void *self, calx_tensor *x)
{
  mnist *m = self;
  x = calx_forward(m->fc2, mnist_features(m, x));
  return calx_log_softmax(x, 1);
}

static inline calx_status *mnist_init(mnist *m)
{
  m->root = calx_module_new("MNIST", mnist_forward, m);
  m->conv1 = calx_nn_conv2d(m->root, "conv1", 1, 10, 5);
  m->bn1 = calx_nn_batch_norm2d(m->root, "bn1", 10);
  m->conv2 = calx_nn_conv2d(m->root, "conv2", 10, 20, 5);
  m->bn2 = calx_nn_batch_norm2d(m->root, "bn2", 20);
  m->fc1 = calx_nn_linear(m->root, "fc1", 320, 50);
  m->fc2 = calx_nn_linear(m->root, "fc2", 50, 10);
  return calx_module_error(m->root);
}

enum { MNIST_FEATURES = 50 };

// images (N, 1, 28, 28) -> (N, MNIST_FEATURES)
static inline calx_module *mnist_backbone(calx_module *parent, const char *name)
{
  calx_module *m = calx_nn_sequential(parent, name);
  for (int i = 0; i < 2; i++) {
    calx_nn_conv2d(m, NULL, i == 0 ? 1 : 10, i == 0 ? 10 : 20, 5);
    calx_nn_max_pool2d(m, NULL, 2);
    calx_nn_relu(m, NULL);
    calx_nn_batch_norm2d(m, NULL, i == 0 ? 10 : 20);
  }
  calx_nn_flatten(m, NULL);
  calx_nn_linear(m, NULL, 320, MNIST_FEATURES);
  calx_nn_relu(m, NULL);
  return m;
}

#endif
