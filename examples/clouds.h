// What the adversarial networks share: points of eight clouds around the
// origin, the models, and how well generated points fill the clouds.
#ifndef EXAMPLES_CLOUDS_H
#define EXAMPLES_CLOUDS_H

#include <calx/calx.h>

#include "drawn.h"

enum { CLOUDS = 8, NOISE = 16, WIDTH = 128, POINTS = 4096 };
static const double turn = 6.283185307179586 / CLOUDS;

static inline calx_status *cloud_draw(void *user, int64_t index,
                                      void *const *fields)
{
  uint64_t state = drawn_begin(*(uint64_t *)user, index);
  float *x = fields[0];
  double angle = turn * floor(CLOUDS * drawn(&state));
  x[0] = (float)(cos(angle) + 0.1 * drawn_normal(&state));
  x[1] = (float)(sin(angle) + 0.1 * drawn_normal(&state));
  return NULL;
}

// The seed must stay until the dataset is freed.
static inline calx_dataset *clouds_draw(int64_t size, uint64_t *seed)
{
  static const calx_field field = { "point", CALX_F32, 1, { 2 } };
  return calx_dataset_new(size, &field, 1, cloud_draw, seed, NULL);
}

// ---- the models -------------------------------------------------------------

typedef struct {
  calx_module *root, *fc1, *fc2, *fc3;
} mlp;

static inline calx_tensor *mlp_forward(void *self, calx_tensor *x)
{
  mlp *m = self;
  x = calx_leaky_relu(calx_forward(m->fc1, x), .negative_slope = 0.2);
  x = calx_leaky_relu(calx_forward(m->fc2, x), .negative_slope = 0.2);
  return calx_forward(m->fc3, x);
}

// root: a new module with mlp_forward and m.
static inline calx_status *mlp_init(mlp *m, calx_module *root, int64_t in,
                                    int64_t out)
{
  m->root = root;
  m->fc1 = calx_nn_linear(root, "fc1", in, WIDTH);
  m->fc2 = calx_nn_linear(root, "fc2", WIDTH, WIDTH);
  m->fc3 = calx_nn_linear(root, "fc3", WIDTH, out);
  return calx_module_error(root);
}

// ---- the result -------------------------------------------------------------

// Of 4096 generated points an eighth should lie near each cloud: how much of
// its eighth, in percent, the cloud with the fewest points has.
static inline double clouds_filled(calx_module *generator)
{
  float centres[CLOUDS][2];
  for (int k = 0; k < CLOUDS; k++) {
    centres[k][0] = (float)cos(turn * k), centres[k][1] = (float)sin(turn * k);
  }
  calx_tensor *c = calx_tensor_from(centres, CALX_F32, CALX_SHAPE(CLOUDS, 2));
  calx_tensor *x =
      calx_forward(generator, calx_randn(CALX_SHAPE(POINTS, NOISE)));
  calx_tensor *near = calx_lt(calx_cdist(x, c), 0.3);  // three deviations
  calx_tensor *least = calx_min(calx_sum(near, .dims = CALX_DIMS(0)));
  return 100.0 * CLOUDS / POINTS * calx_item(least);
}

#endif
