// nn/dropout: torch.nn.Dropout, Dropout1d to 3d, AlphaDropout,
// FeatureAlphaDropout.
#include "nn/layer.h"
#include "ops/ops.h"

typedef struct dropout {
  calx_module *m;
  int n;  // spatial dimensions of the channels that are dropped; 0: elements
  double p;
} dropout;

static bool is_off(const dropout *d)
{
  return !calx_module_is_training(d->m) || d->p == 0;
}

// What one draw decides: an element, or a channel of each sample. The first
// dimension is the batch's but for a tensor with only n + 1 dimensions.
static calx_dims draw_shape(const calx_tensor *x, size_t kept)
{
  calx_dims shape = calx_tensor_shape(x);
  for (size_t i = kept; i < shape.count; i++) shape.values[i] = 1;
  return shape;
}

static calx_tensor *drop_elements(void *self, calx_tensor *x)
{
  const dropout *d = self;
  calx_dropout_options o = { .size = sizeof o,
                             .p = d->p != 0 ? d->p : -0.0,
                             .eval = is_off(d) };
  return calx_dropout_with(x, &o);
}

static calx_tensor *drop_channels(void *self, calx_tensor *x)
{
  static const char *const wanted[] = { "(N, C, L)", "(N, C, H, W)",
                                        "(N, C, D, H, W)" };
  const dropout *d = self;
  int rank = cx_nn_has_shape(x) ? (int)calx_tensor_rank(x) : 0;
  if (rank == 0) return drop_elements(self, x);
  if (rank != d->n + 1 && rank != d->n + 2) {
    return cx_nn_module_refuse(d->m, x, wanted[d->n - 1]);
  }
  if (is_off(d)) return x;
  calx_create_options o = { .size = sizeof o,
                            .dtype = calx_tensor_dtype(x),
                            .device = calx_tensor_device(x) };
  calx_dims shape = draw_shape(x, (size_t)(rank - d->n));
  return calx_mul(x, drop_elements(self, calx_ones_with(shape, &o)));
}

// a (x keep + alpha' (1 - keep)) + b, with alpha' selu's limit at -infinity and
// a, b such that mean and variance stay.
static calx_tensor *drop_alpha(const dropout *d, calx_tensor *x, size_t kept)
{
  static const double alpha = -1.7580993408473766;
  if (d->p == 1) return calx_mul(x, calx_scalar(0));
  double a = 1 / sqrt((alpha * alpha * d->p + 1) * (1 - d->p));
  double b = -a * alpha * d->p;
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_F32,
                            .device = calx_tensor_device(x) };
  calx_tensor *keep =
      calx_ge(calx_rand_with(draw_shape(x, kept), &o), calx_scalar(d->p));
  calx_tensor *y = calx_where(keep, x, calx_scalar(alpha));
  return calx_add_with(calx_mul(y, calx_scalar(a)), calx_scalar(b), NULL);
}

static calx_tensor *alpha_elements(void *self, calx_tensor *x)
{
  const dropout *d = self;
  if (!cx_nn_has_shape(x) || is_off(d)) return drop_elements(self, x);
  return drop_alpha(d, x, calx_tensor_rank(x));
}

static calx_tensor *alpha_channels(void *self, calx_tensor *x)
{
  const dropout *d = self;
  if (!cx_nn_has_shape(x) || is_off(d)) return drop_elements(self, x);
  if (calx_tensor_rank(x) < 2) {
    return cx_nn_module_refuse(d->m, x, "(N, C, …)");
  }
  return drop_alpha(d, x, 2);
}

static void repr(const void *state, cx_text *out)
{
  cx_text_append(out, "p=");
  cx_nn_repr_real(out, ((const dropout *)state)->p);
  cx_text_append(out, ", inplace=False");
}

static calx_module *make(const cx_nn_layer *layer, int n, calx_module *parent,
                         const char *name,
                         const calx_nn_dropout_options *options)
{
  void *state;
  calx_module *m = cx_nn_make(layer, parent, name, sizeof(dropout), &state);
  dropout *d = state;
  if (d == NULL) return m;
  calx_nn_dropout_options o;
  calx_status *status = cx_options_take(layer->call, options, &o, sizeof o);
  d->n = n;
  d->p = cx_or_default(o.p, 0.5);
  if (status == NULL && !(d->p >= 0 && d->p <= 1)) {
    status =
        cx_invalid("%s: the probability %g is not in [0, 1]", layer->call, o.p);
  }
  cx_nn_module_fail(m, status);
  return m;
}

#define DROPOUT(name, kind, n, forward)                                      \
  calx_module *calx_nn_##name##_with(calx_module *parent, const char *child, \
                                     const calx_nn_dropout_options *options) \
  {                                                                          \
    static const cx_nn_layer layer = { kind, #name, forward, repr, NULL };   \
    return make(&layer, n, parent, child, options);                          \
  }
DROPOUT(dropout, "Dropout", 0, drop_elements)
DROPOUT(dropout1d, "Dropout1d", 1, drop_channels)
DROPOUT(dropout2d, "Dropout2d", 2, drop_channels)
DROPOUT(dropout3d, "Dropout3d", 3, drop_channels)
DROPOUT(alpha_dropout, "AlphaDropout", 0, alpha_elements)
DROPOUT(feature_alpha_dropout, "FeatureAlphaDropout", 0, alpha_channels)
