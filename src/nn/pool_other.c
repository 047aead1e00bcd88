// nn/pool_other: torch.nn.LPPool1d to 3d, AdaptiveAvgPool1d to 3d and
// AdaptiveMaxPool1d to 3d.
#include "nn/layer.h"
#include "ops/ops.h"

// ---- lp_pool ----------------------------------------------------------------

typedef struct lp_pool {
  calx_module *m;
  int n;
  double p;
  calx_lp_pool_options o;
} lp_pool;

static calx_tensor *lp_forward(void *self, calx_tensor *x)
{
  static calx_tensor *(*const functions[])(calx_tensor *, double,
                                           const calx_lp_pool_options *) = {
    calx_lp_pool1d_with, calx_lp_pool2d_with, calx_lp_pool3d_with
  };
  const lp_pool *l = self;
  return functions[l->n - 1](x, l->p, &l->o);
}

static void lp_repr(const void *state, cx_text *out)
{
  const lp_pool *l = state;
  int64_t kernel[3], stride[3];
  for (int i = 0; i < l->n; i++) {
    kernel[i] = cx_ops_pair(l->o.kernel_size, i, 0);
    stride[i] = cx_ops_pair(l->o.stride, i, 0);
  }
  cx_text_append(out, "norm_type=");
  cx_nn_repr_real(out, l->p);
  cx_text_append(out, ", kernel_size=");
  cx_nn_repr_sizes(out, kernel, (size_t)l->n);
  cx_text_append(out, ", stride=");
  if (l->o.stride[0] != 0)
    cx_nn_repr_sizes(out, stride, (size_t)l->n);
  else
    cx_text_append(out, "None");
  cx_text_format(out, ", ceil_mode=%s", cx_nn_repr_bool(l->o.ceil_mode));
}

static calx_module *make_lp(const cx_nn_layer *layer, int n,
                            calx_module *parent, const char *name, double p,
                            const calx_lp_pool_options *options)
{
  void *state;
  calx_module *m = cx_nn_make(layer, parent, name, sizeof(lp_pool), &state);
  lp_pool *l = state;
  if (l == NULL) return m;
  l->n = n;
  l->p = p;
  calx_status *status =
      cx_options_take(layer->call, options, &l->o, sizeof l->o);
  if (status == NULL && (!(p > 0) || isinf(p))) {
    status = cx_invalid("%s: a norm of type %g, a positive number is wanted",
                        layer->call, p);
  }
  if (status == NULL && l->o.kernel_size[0] <= 0) {
    status = cx_invalid("%s: a kernel of %lld, a positive number is wanted",
                        layer->call, (long long)l->o.kernel_size[0]);
  }
  l->o.size = sizeof l->o;
  cx_nn_module_fail(m, status);
  return m;
}

#define LP_POOL(n)                                                             \
  calx_module *calx_nn_lp_pool##n##d_with(calx_module *parent,                 \
                                          const char *name, double norm_type,  \
                                          const calx_lp_pool_options *options) \
  {                                                                            \
    static const cx_nn_layer layer = { "LPPool" #n "d", "lp_pool" #n "d",      \
                                       lp_forward, lp_repr, NULL };            \
    return make_lp(&layer, n, parent, name, norm_type, options);               \
  }
LP_POOL(1)
LP_POOL(2)
LP_POOL(3)

// ---- adaptive ---------------------------------------------------------------

typedef struct adaptive {
  calx_module *m;
  bool max;
  calx_dims sizes;  // one for each spatial dimension
} adaptive;

static calx_tensor *adaptive_forward(void *self, calx_tensor *x)
{
  const adaptive *a = self;
  return a->max ? calx_adaptive_max_pool(x, a->sizes)
                : calx_adaptive_avg_pool(x, a->sizes);
}

static void adaptive_repr(const void *state, cx_text *out)
{
  const adaptive *a = state;
  bool equal = true, kept = false;
  for (size_t i = 0; i < a->sizes.count; i++) {
    equal = equal && a->sizes.values[i] == a->sizes.values[0];
    kept = kept || a->sizes.values[i] < 0;
  }
  cx_text_append(out, "output_size=");
  if (equal && !kept) {
    cx_text_int(out, a->sizes.values[0]);
    return;
  }
  for (size_t i = 0; i < a->sizes.count; i++) {
    cx_text_append(out, i == 0 ? "(" : ", ");
    if (a->sizes.values[i] < 0)
      cx_text_append(out, "None");
    else
      cx_text_int(out, a->sizes.values[i]);
  }
  cx_text_append(out, a->sizes.count == 1 ? ",)" : ")");
}

static calx_module *make_adaptive(const cx_nn_layer *layer, bool max, size_t n,
                                  calx_module *parent, const char *name,
                                  calx_dims sizes)
{
  void *state;
  calx_module *m = cx_nn_make(layer, parent, name, sizeof(adaptive), &state);
  adaptive *a = state;
  if (a == NULL) return m;
  a->max = max;
  bool good = sizes.count == 1 || sizes.count == n;
  for (size_t i = 0; good && i < n; i++) {
    int64_t size = sizes.values[sizes.count == 1 ? 0 : i];
    good = size >= -1;
    a->sizes.values[i] = size;
  }
  a->sizes.count = n;
  if (!good) {
    cx_nn_module_fail(m, cx_invalid("%s: output_size wants one number or %zu, "
                                    "each a size or -1",
                                    layer->call, n));
  }
  return m;
}

#define ADAPTIVE(op, Op, max, n)                                        \
  calx_module *calx_nn_adaptive_##op##_pool##n##d(                      \
      calx_module *parent, const char *name, calx_dims output_size)     \
  {                                                                     \
    static const cx_nn_layer layer = { "Adaptive" Op "Pool" #n "d",     \
                                       "adaptive_" #op "_pool" #n "d",  \
                                       adaptive_forward, adaptive_repr, \
                                       NULL };                          \
    return make_adaptive(&layer, max, n, parent, name, output_size);    \
  }
ADAPTIVE(avg, "Avg", false, 1)
ADAPTIVE(avg, "Avg", false, 2)
ADAPTIVE(avg, "Avg", false, 3)
ADAPTIVE(max, "Max", true, 1)
ADAPTIVE(max, "Max", true, 2)
ADAPTIVE(max, "Max", true, 3)
