// nn/pool_fractional: torch.nn.FractionalMaxPool2d and FractionalMaxPool3d.
#include "nn/layer.h"

typedef struct fractional_pool {
  calx_module *m;
  int n;
  calx_dims kernel;
  calx_fractional_max_pool_options o;
} fractional_pool;

// The samples are a buffer, as in PyTorch, and what it is at each call.
static calx_tensor *forward(void *self, calx_tensor *x)
{
  const fractional_pool *p = self;
  calx_fractional_max_pool_options o = p->o;
  o.random_samples = cx_nn_tensor(p->m, "_random_samples");
  return p->n == 2 ? calx_fractional_max_pool2d_with(x, p->kernel, &o)
                   : calx_fractional_max_pool3d_with(x, p->kernel, &o);
}

static calx_status *check(const char *call, fractional_pool *p,
                          const calx_fractional_max_pool_options *options)
{
  CALX_TRY(cx_options_take(call, options, &p->o, sizeof p->o));
  const size_t n = (size_t)p->n, sizes = p->o.output_size.count;
  bool good = p->kernel.count == 1 || p->kernel.count == n;
  for (size_t i = 0; good && i < p->kernel.count; i++) {
    good = p->kernel.values[i] > 0;
  }
  if (!good) {
    return cx_invalid("%s: kernel_size wants one positive number or %zu", call,
                      n);
  }
  const bool ratio = p->o.output_ratio[0] != 0;
  for (size_t i = 0; ratio && good && i < n; i++) {
    const double r = p->o.output_ratio[i];
    good = (r > 0 && r < 1) || (i > 0 && r == 0);
  }
  if (!good || ratio == (sizes != 0)) {
    return cx_invalid(
        "%s: either .output_size or .output_ratio, in (0, 1), is wanted", call);
  }
  return NULL;
}

static calx_module *make(const cx_nn_layer *layer, int n, calx_module *parent,
                         const char *name, calx_dims kernel_size,
                         const calx_fractional_max_pool_options *options)
{
  void *state;
  calx_module *m =
      cx_nn_make(layer, parent, name, sizeof(fractional_pool), &state);
  fractional_pool *p = state;
  if (p == NULL) return m;
  p->n = n;
  p->kernel = kernel_size;
  cx_nn_module_fail(m, check(layer->call, p, options));
  p->o.size = sizeof p->o;
  if (p->o.random_samples != NULL) {
    calx_module_buffer(m, "_random_samples", p->o.random_samples);
  }
  p->o.random_samples = NULL;
  return m;
}

#define FRACTIONAL(n)                                                        \
  calx_module *calx_nn_fractional_max_pool##n##d_with(                       \
      calx_module *parent, const char *name, calx_dims kernel_size,          \
      const calx_fractional_max_pool_options *options)                       \
  {                                                                          \
    static const cx_nn_layer layer = { .kind = "FractionalMaxPool" #n "d",   \
                                       .call = "fractional_max_pool" #n "d", \
                                       .forward = forward };                 \
    return make(&layer, n, parent, name, kernel_size, options);              \
  }
FRACTIONAL(2)
FRACTIONAL(3)
