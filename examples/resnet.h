// ResNet with bottlenecks (K. He et al., 2015), the stride in the 3x3 layer,
// under torchvision's names: its state dicts load.
#ifndef EXAMPLES_RESNET_H
#define EXAMPLES_RESNET_H

#include <calx/calx.h>
#include <string.h>

enum { RESNET_BLOCKS = 50, RESNET_EXPANSION = 4 };

typedef struct resnet_block {
  calx_module *conv[3], *bn[3], *downsample;
} resnet_block;

typedef struct resnet {
  calx_module *root, *conv1, *bn1, *layer[4], *fc;
  resnet_block blocks[RESNET_BLOCKS];
} resnet;

static inline calx_tensor *resnet_block_forward(void *self, calx_tensor *x)
{
  resnet_block *b = self;
  calx_tensor *y = x;
  for (int i = 0; i < 3; i++) {
    y = calx_forward(b->bn[i], calx_forward(b->conv[i], y));
    if (i < 2) y = calx_relu(y);
  }
  if (b->downsample != NULL) x = calx_forward(b->downsample, x);
  return calx_relu(calx_add(y, x));
}

// in -> width -> width -> 4 width channels
static inline void resnet_block_init(resnet_block *b, calx_module *layer,
                                     int index, int64_t in, int64_t width,
                                     int64_t stride)
{
  const int64_t out = width * RESNET_EXPANSION;
  char name[16];
  snprintf(name, sizeof name, "%d", index);
  calx_module *m =
      calx_module_child(layer, name, "Bottleneck", resnet_block_forward, b);
  b->conv[0] = calx_nn_conv2d(m, "conv1", in, width, 1, .no_bias = true);
  b->bn[0] = calx_nn_batch_norm2d(m, "bn1", width);
  b->conv[1] = calx_nn_conv2d(m, "conv2", width, width, 3, .stride = stride,
                              .padding = 1, .no_bias = true);
  b->bn[1] = calx_nn_batch_norm2d(m, "bn2", width);
  b->conv[2] = calx_nn_conv2d(m, "conv3", width, out, 1, .no_bias = true);
  b->bn[2] = calx_nn_batch_norm2d(m, "bn3", out);
  b->downsample = NULL;
  if (stride == 1 && in == out) return;
  b->downsample = calx_nn_sequential(m, "downsample");
  calx_nn_conv2d(b->downsample, NULL, in, out, 1, .stride = stride,
                 .no_bias = true);
  calx_nn_batch_norm2d(b->downsample, NULL, out);
}

// x: images (N, 3, H, W) -> logits (N, classes)
static inline calx_tensor *resnet_forward(void *self, calx_tensor *x)
{
  resnet *m = self;
  x = calx_relu(calx_forward(m->bn1, calx_forward(m->conv1, x)));
  x = calx_max_pool2d(x, 3, .stride = 2, .padding = 1);
  for (int i = 0; i < 4; i++) x = calx_forward(m->layer[i], x);
  x = calx_mean(x, .dims = CALX_DIMS(2, 3));
  return calx_forward(m->fc, x);
}

// A block begins as the identity: the weights of its last batch norm are 0
// (P. Goyal et al., 2017; torchvision's zero_init_residual).
static inline void resnet_fill(void *user, const char *path,
                               calx_entry_kind kind, calx_tensor *t)
{
  (void)user, (void)kind;
  if (strstr(path, "bn3.weight") != NULL) calx_init_zeros(t);
  if (calx_tensor_rank(t) != 4) return;
  calx_init_kaiming_normal(t, .mode = CALX_FAN_OUT,
                           .nonlinearity = CALX_NONLINEARITY_RELU);
}

// layers: how many blocks each part has, RESNET_BLOCKS together at most; those
// of ResNet-50 are 3, 4, 6, 3.
static inline calx_status *resnet_init(resnet *m, const int layers[4],
                                       int64_t classes)
{
  int64_t in = 64;
  resnet_block *b = m->blocks;
  m->root = calx_module_new("ResNet", resnet_forward, m);
  m->conv1 = calx_nn_conv2d(m->root, "conv1", 3, in, 7, .stride = 2,
                            .padding = 3, .no_bias = true);
  m->bn1 = calx_nn_batch_norm2d(m->root, "bn1", in);
  for (int k = 0; k < 4; k++) {
    char name[16];
    snprintf(name, sizeof name, "layer%d", k + 1);
    m->layer[k] = calx_nn_sequential(m->root, name);
    for (int i = 0; i < layers[k]; i++) {
      const int64_t width = 64 << k, stride = k > 0 && i == 0 ? 2 : 1;
      resnet_block_init(b++, m->layer[k], i, in, width, stride);
      in = width * RESNET_EXPANSION;
    }
  }
  m->fc = calx_nn_linear(m->root, "fc", in, classes);
  calx_module_visit(m->root, resnet_fill, NULL);
  return calx_module_error(m->root);
}

#endif
