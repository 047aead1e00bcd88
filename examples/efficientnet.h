// EfficientNet (M. Tan and Q. Le, 2019), b0 to b7, under torchvision's names:
// its state dicts load.
#ifndef EXAMPLES_EFFICIENTNET_H
#define EXAMPLES_EFFICIENTNET_H

#include <calx/calx.h>
#include <math.h>
#include <string.h>

enum { EFFICIENTNET_BLOCKS = 64, EFFICIENTNET_STAGES = 7 };

typedef struct efficientnet_block {
  calx_module *layers, *squeeze, *excite;
  double drop;        // how often stochastic depth leaves the block out
  bool has_shortcut;  // the input is added
} efficientnet_block;

typedef struct efficientnet {
  calx_module *root, *features, *classifier;
  double eps, momentum;  // of the batch norms
  efficientnet_block blocks[EFFICIENTNET_BLOCKS];
} efficientnet;

// A model's depth and width as factors of b0's, its images and its dropout.
typedef struct efficientnet_scale {
  double width, depth;
  int64_t image_size;
  double dropout;
} efficientnet_scale;

// "b0" to "b7"; NULL: another name.
static inline const efficientnet_scale *efficientnet_find(const char *name)
{
  static const efficientnet_scale scales[] = {
    { 1.0, 1.0, 224, 0.2 }, { 1.0, 1.1, 240, 0.2 }, { 1.1, 1.2, 288, 0.3 },
    { 1.2, 1.4, 300, 0.3 }, { 1.4, 1.8, 380, 0.4 }, { 1.6, 2.2, 456, 0.4 },
    { 1.8, 2.6, 528, 0.5 }, { 2.0, 3.1, 600, 0.5 }
  };
  bool known = name[0] == 'b' && name[1] >= '0' && name[1] <= '7';
  return known && name[2] == '\0' ? &scales[name[1] - '0'] : NULL;
}

// ---- the parts --------------------------------------------------------------

// A convolution without bias, batch norm and, where `active`, silu.
typedef struct efficientnet_layer {
  int64_t in, out, kernel, stride, groups;
  bool active;
} efficientnet_layer;

static inline void efficientnet_conv(efficientnet *m, calx_module *parent,
                                     efficientnet_layer l)
{
  calx_module *s = calx_nn_sequential(parent, NULL);
  calx_nn_conv2d(s, NULL, l.in, l.out, l.kernel, .stride = l.stride,
                 .padding = (l.kernel - 1) / 2, .groups = l.groups,
                 .no_bias = true);
  calx_nn_batch_norm2d(s, NULL, l.out, .eps = m->eps, .momentum = m->momentum);
  if (l.active) calx_nn_silu(s, NULL);
}

// Each channel times a factor that depends on the means of all channels.
static inline calx_tensor *efficientnet_gate(void *self, calx_tensor *x)
{
  efficientnet_block *b = self;
  calx_tensor *s = calx_mean(x, .dims = CALX_DIMS(2, 3), .keepdim = true);
  s = calx_silu(calx_forward(b->squeeze, s));
  return calx_mul(x, calx_sigmoid(calx_forward(b->excite, s)));
}

// Stochastic depth: in training a sample's block is left out at random.
static inline calx_tensor *efficientnet_drop(efficientnet_block *b,
                                             calx_tensor *y)
{
  if (b->drop == 0 || !calx_module_is_training(b->layers)) return y;
  calx_dims shape = CALX_SHAPE(calx_tensor_dim(y, 0), 1, 1, 1);
  calx_tensor *kept = calx_bernoulli(calx_full(shape, 1 - b->drop));
  return calx_mul(y, calx_div(kept, 1 - b->drop));
}

static inline calx_tensor *efficientnet_block_forward(void *self,
                                                      calx_tensor *x)
{
  efficientnet_block *b = self;
  calx_tensor *y = calx_forward(b->layers, x);
  return b->has_shortcut ? calx_add(efficientnet_drop(b, y), x) : y;
}

// in -> expand in -> out channels
static inline void efficientnet_block_init(efficientnet *m,
                                           efficientnet_block *b,
                                           calx_module *stage, int64_t expand,
                                           efficientnet_layer l)
{
  const int64_t wide = l.in * expand, narrow = l.in >= 4 ? l.in / 4 : 1;
  char name[24];
  snprintf(name, sizeof name, "%zu", calx_module_child_count(stage));
  calx_module *module =
      calx_module_child(stage, name, "MBConv", efficientnet_block_forward, b);
  b->layers = calx_nn_sequential(module, "block");
  b->has_shortcut = l.stride == 1 && l.in == l.out;
  if (expand != 1) {
    efficientnet_conv(m, b->layers,
                      (efficientnet_layer){ l.in, wide, 1, 1, 1, true });
  }
  efficientnet_conv(
      m, b->layers,
      (efficientnet_layer){ wide, wide, l.kernel, l.stride, wide, true });
  snprintf(name, sizeof name, "%zu", calx_module_child_count(b->layers));
  calx_module *gate = calx_module_child(b->layers, name, "SqueezeExcitation",
                                        efficientnet_gate, b);
  b->squeeze = calx_nn_conv2d(gate, "fc1", wide, narrow, 1);
  b->excite = calx_nn_conv2d(gate, "fc2", narrow, wide, 1);
  efficientnet_conv(m, b->layers,
                    (efficientnet_layer){ wide, l.out, 1, 1, 1, false });
}

// ---- the model --------------------------------------------------------------

// The multiple of 8 nearest to so many channels, at least 0.9 of them.
static inline int64_t efficientnet_width(double channels)
{
  int64_t n = (int64_t)(channels + 4) / 8 * 8;
  if (n < 8) n = 8;
  return (double)n < 0.9 * channels ? n + 8 : n;
}

// x: images (N, 3, H, W) -> logits (N, classes)
static inline calx_tensor *efficientnet_forward(void *self, calx_tensor *x)
{
  efficientnet *m = self;
  x = calx_mean(calx_forward(m->features, x), .dims = CALX_DIMS(2, 3));
  return calx_forward(m->classifier, x);
}

static inline void efficientnet_fill(void *user, const char *path,
                                     calx_entry_kind kind, calx_tensor *t)
{
  (void)kind;
  if (calx_tensor_rank(t) == 4) {
    calx_init_kaiming_normal(t, .mode = CALX_FAN_OUT);
  } else if (strcmp(path, "classifier.1.weight") == 0) {
    double bound = 1 / sqrt(*(double *)user);
    calx_init_uniform(t, -bound, bound);
  } else if (strstr(path, "fc1.bias") != NULL ||
             strstr(path, "fc2.bias") != NULL ||
             strcmp(path, "classifier.1.bias") == 0) {
    calx_init_zeros(t);
  }
}

// The seven stages: blocks and channels are scaled.
static inline int64_t efficientnet_stages(efficientnet *m,
                                          const efficientnet_scale *scale,
                                          double drop)
{
  static const int stages[EFFICIENTNET_STAGES][6] = {
    // expand, kernel, stride, in, out, blocks
    { 1, 3, 1, 32, 16, 1 },   { 6, 3, 2, 16, 24, 2 },  { 6, 5, 2, 24, 40, 2 },
    { 6, 3, 2, 40, 80, 3 },   { 6, 5, 1, 80, 112, 3 }, { 6, 5, 2, 112, 192, 4 },
    { 6, 3, 1, 192, 320, 1 },
  };
  int n = 0, total = 0;
  int64_t out = 0;
  for (int k = 0; k < EFFICIENTNET_STAGES; k++) {
    total += (int)ceil(stages[k][5] * scale->depth);
  }
  for (int k = 0; k < EFFICIENTNET_STAGES; k++) {
    const int *s = stages[k];
    calx_module *stage = calx_nn_sequential(m->features, NULL);
    out = efficientnet_width(s[4] * scale->width);
    for (int i = 0; i < (int)ceil(s[5] * scale->depth); i++, n++) {
      int64_t in = i > 0 ? out : efficientnet_width(s[3] * scale->width);
      efficientnet_layer l = { in, out, s[1], i > 0 ? 1 : s[2], 1, true };
      m->blocks[n].drop = drop * n / total;
      efficientnet_block_init(m, &m->blocks[n], stage, s[0], l);
    }
  }
  return out;
}

// without_drops: neither dropout nor stochastic depth.
static inline calx_status *efficientnet_init(efficientnet *m, const char *name,
                                             int64_t classes,
                                             bool without_drops)
{
  const efficientnet_scale *scale = efficientnet_find(name);
  if (scale == NULL) {
    return calx_status_new(CALX_INVALID_ARGUMENT,
                           "EfficientNet is b0 to b7, found '%s'", name);
  }
  bool is_large = scale->width >= 1.6;  // b5 to b7
  m->eps = is_large ? 1e-3 : 1e-5, m->momentum = is_large ? 0.01 : 0.1;
  m->root = calx_module_new("EfficientNet", efficientnet_forward, m);
  m->features = calx_nn_sequential(m->root, "features");
  int64_t first = efficientnet_width(32 * scale->width);
  efficientnet_conv(m, m->features,
                    (efficientnet_layer){ 3, first, 3, 2, 1, true });
  int64_t out = efficientnet_stages(m, scale, without_drops ? 0 : 0.2);
  efficientnet_conv(m, m->features,
                    (efficientnet_layer){ out, 4 * out, 1, 1, 1, true });
  m->classifier = calx_nn_sequential(m->root, "classifier");
  calx_nn_dropout(m->classifier, NULL, .p = without_drops ? 0 : scale->dropout);
  calx_nn_linear(m->classifier, NULL, 4 * out, classes);
  double n = (double)classes;
  calx_module_visit(m->root, efficientnet_fill, &n);
  return calx_module_error(m->root);
}

#endif
