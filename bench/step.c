// bench/step: model, data and step.
//
// Element i of series k is u(k, i) = (z >> 40) / 2^23 - 1 in [-1, 1) with
// z = splitmix64((k << 32) + i + 1). Images are series 0 times sqrt 3, labels
// series 1's (z >> 33) mod 10, parameter number p in the order of the state
// dict series 2 + p divided by sqrt(fan-in); of norms weight 1 and bias 0.
#include "step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

// ---- values -----------------------------------------------------------------

// The finaliser of splitmix64 (S. Vigna, public domain).
static uint64_t splitmix(uint64_t z)
{
  z *= 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static uint64_t word(uint64_t series, uint64_t i)
{
  return splitmix((series << 32) + i + 1);
}

static float *uniform(uint64_t series, size_t n, float bound)
{
  float *v = malloc(n * sizeof *v);
  if (v == NULL) abort();
  for (size_t i = 0; i < n; i++) {
    float u = (float)(word(series, i) >> 40) / (float)(1 << 23) - 1.0F;
    v[i] = u * bound;
  }
  return v;
}

static void make_batch(bench_step *s, int64_t batch)
{
  size_t n = (size_t)batch;
  float *images = uniform(0, n * 28 * 28, sqrtf(3));
  int64_t *labels = malloc(n * sizeof *labels);
  if (labels == NULL) abort();
  for (size_t i = 0; i < n; i++) labels[i] = (int64_t)((word(1, i) >> 33) % 10);
  s->data = calx_tensor_from(images, CALX_F32, CALX_DIMS(batch, 1, 28, 28));
  s->target = calx_tensor_from(labels, CALX_I64, CALX_DIMS(batch));
  calx_take(s->data);
  calx_take(s->target);
  free(images);
  free(labels);
}

typedef struct filling {
  uint64_t series;
  double fan_in;  // of the weight last met
} filling;

static void fill(void *user, const char *path, calx_entry_kind kind,
                 calx_tensor *t)
{
  filling *f = user;
  if (kind != CALX_PARAMETER) return;
  uint64_t series = f->series++;
  if (strncmp(path, "bn", 2) == 0) return;  // its own: 1 and 0
  calx_dims shape = calx_tensor_shape(t);
  size_t n = (size_t)calx_tensor_numel(t);
  if (shape.count > 1) f->fan_in = (double)n / (double)shape.values[0];
  float *v = uniform(series, n, (float)(1 / sqrt(f->fan_in)));
  calx_assign(t, calx_tensor_from(v, CALX_F32, shape));
  free(v);
}

static void fill_all(bench_step *s)
{
  filling f = { .series = 2 };
  calx_scope *scope = calx_scope_begin();
  calx_no_grad_begin();
  calx_module_visit(s->root, fill, &f);
  calx_sync(NULL);
  bench_need(calx_scope_end(scope));
}

// ---- model ------------------------------------------------------------------

static calx_tensor *forward(void *self, calx_tensor *x)
{
  bench_step *s = self;
  x = calx_relu(calx_max_pool2d(calx_forward(s->conv1, x), 2));
  x = calx_forward(s->bn1, x);
  x = calx_relu(calx_max_pool2d(calx_forward(s->conv2, x), 2));
  x = calx_forward(s->bn2, x);
  x = calx_flatten(x, .start_dim = 1);
  x = calx_relu(calx_forward(s->fc1, x));
  x = calx_forward(s->fc2, x);
  return calx_log_softmax(x, 1);
}

void bench_step_init(bench_step *s, int64_t batch, bool fixed)
{
  s->root = calx_module_new("MNIST", forward, s);
  s->conv1 = calx_nn_conv2d(s->root, "conv1", 1, 10, 5);
  s->bn1 = calx_nn_batch_norm2d(s->root, "bn1", 10);
  s->conv2 = calx_nn_conv2d(s->root, "conv2", 10, 20, 5);
  s->bn2 = calx_nn_batch_norm2d(s->root, "bn2", 20);
  s->fc1 = calx_nn_linear(s->root, "fc1", 320, 50);
  s->fc2 = calx_nn_linear(s->root, "fc2", 50, 10);
  bench_need(calx_module_error(s->root));
  if (fixed) fill_all(s);
  s->opt = calx_sgd(s->root, .lr = 0.01, .momentum = 0.5);
  bench_need(calx_optimizer_error(s->opt));
  make_batch(s, batch);
  bench_need(calx_scope_take_error());
}

void bench_step_free(bench_step *s)
{
  calx_release(s->data);
  calx_release(s->target);
  calx_optimizer_free(s->opt);
  calx_module_free(s->root);
}

// ---- step -------------------------------------------------------------------

calx_tensor *bench_step_forward(bench_step *s)
{
  calx_optimizer_zero_grad(s->opt);
  return calx_nll_loss(calx_forward(s->root, s->data), s->target);
}

void bench_step_run(bench_step *s, double *loss)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *l = bench_step_forward(s);
  calx_backward(l);
  calx_optimizer_step(s->opt);
  calx_sync(l);
  if (loss != NULL) *loss = calx_item(l);
  bench_need(calx_scope_end(scope));
}
