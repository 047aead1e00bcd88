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

static calx_feature_dropout_options options_of(const dropout *d)
{
  return (calx_feature_dropout_options){ .size = sizeof(
                                             calx_feature_dropout_options),
                                         .p = d->p != 0 ? d->p : -0.0,
                                         .eval = is_off(d) };
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
  calx_feature_dropout_options o = options_of(d);
  return d->n == 1   ? calx_dropout1d_with(x, &o)
         : d->n == 2 ? calx_dropout2d_with(x, &o)
                     : calx_dropout3d_with(x, &o);
}

static calx_tensor *alpha_elements(void *self, calx_tensor *x)
{
  const dropout *d = self;
  if (!cx_nn_has_shape(x) || is_off(d)) return drop_elements(self, x);
  calx_feature_dropout_options o = options_of(d);
  return calx_alpha_dropout_with(x, &o);
}

static calx_tensor *alpha_channels(void *self, calx_tensor *x)
{
  const dropout *d = self;
  if (!cx_nn_has_shape(x) || is_off(d)) return drop_elements(self, x);
  if (calx_tensor_rank(x) < 2) {
    return cx_nn_module_refuse(d->m, x, "(N, C, …)");
  }
  calx_feature_dropout_options o = options_of(d);
  return calx_feature_alpha_dropout_with(x, &o);
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
