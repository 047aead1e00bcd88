// nn/activation: layers of activation functions.
#include "nn/layer.h"

typedef struct activation_state {
  calx_module *m;
} activation_state;

static calx_module *make_plain(const cx_nn_layer *layer, calx_module *parent,
                               const char *name)
{
  void *state;
  return cx_nn_make(layer, parent, name, sizeof(activation_state), &state);
}

// ---- without options --------------------------------------------------------

#define PLAIN(name, kind)                                                 \
  static calx_tensor *name##_forward(void *self, calx_tensor *x)          \
  {                                                                       \
    (void)self;                                                           \
    return calx_##name(x);                                                \
  }                                                                       \
  calx_module *calx_nn_##name(calx_module *parent, const char *child)     \
  {                                                                       \
    static const cx_nn_layer layer = { kind, #name, name##_forward, NULL, \
                                       NULL };                            \
    return make_plain(&layer, parent, child);                             \
  }
PLAIN(relu, "ReLU")
PLAIN(relu6, "ReLU6")
PLAIN(sigmoid, "Sigmoid")
PLAIN(tanh, "Tanh")
PLAIN(silu, "SiLU")
PLAIN(mish, "Mish")
PLAIN(selu, "SELU")
PLAIN(hardswish, "Hardswish")
PLAIN(hardsigmoid, "Hardsigmoid")
PLAIN(logsigmoid, "LogSigmoid")
PLAIN(softsign, "Softsign")
PLAIN(tanhshrink, "Tanhshrink")

static calx_tensor *softmax2d_forward(void *self, calx_tensor *x)
{
  const activation_state *p = self;
  if (cx_nn_has_shape(x)) {
    size_t rank = calx_tensor_rank(x);
    if (rank != 3 && rank != 4) {
      return cx_nn_module_refuse(p->m, x, "(N, C, H, W)");
    }
  }
  return calx_softmax(x, -3);
}

calx_module *calx_nn_softmax2d(calx_module *parent, const char *name)
{
  static const cx_nn_layer layer = { "Softmax2d", "softmax2d",
                                     softmax2d_forward, NULL, NULL };
  return make_plain(&layer, parent, name);
}

// ---- with a function's options ----------------------------------------------

#define OPTIONS(name, kind, write)                                             \
  typedef struct name##_state {                                                \
    calx_module *m;                                                            \
    calx_##name##_options o;                                                   \
  } name##_state;                                                              \
  static calx_tensor *name##_forward(void *self, calx_tensor *x)               \
  {                                                                            \
    return calx_##name##_with(x, &((const name##_state *)self)->o);            \
  }                                                                            \
  static void name##_repr(const void *state, cx_text *out)                     \
  {                                                                            \
    const calx_##name##_options *o = &((const name##_state *)state)->o;        \
    write;                                                                     \
  }                                                                            \
  calx_module *calx_nn_##name##_with(calx_module *parent, const char *child,   \
                                     const calx_##name##_options *options)     \
  {                                                                            \
    static const cx_nn_layer layer = { kind, #name, name##_forward,            \
                                       name##_repr, NULL };                    \
    void *state;                                                               \
    calx_module *m =                                                           \
        cx_nn_make(&layer, parent, child, sizeof(name##_state), &state);       \
    name##_state *s = state;                                                   \
    if (s == NULL) return m;                                                   \
    cx_nn_module_fail(m, cx_options_take(#name, options, &s->o, sizeof s->o)); \
    s->o.size = sizeof s->o;                                                   \
    return m;                                                                  \
  }

// "NAME=VALUE", of an option with a default.
static void write_real(cx_text *out, const char *name, double option,
                       double or_else)
{
  cx_text_append(out, name);
  cx_nn_repr_real(out, cx_or_default(option, or_else));
}

OPTIONS(gelu, "GELU",
        cx_text_format(out, "approximate='%s'",
                       o->approximate == CALX_GELU_TANH ? "tanh" : "none"))
OPTIONS(elu, "ELU", write_real(out, "alpha=", o->alpha, 1))
OPTIONS(celu, "CELU", write_real(out, "alpha=", o->alpha, 1))
OPTIONS(leaky_relu, "LeakyReLU",
        write_real(out, "negative_slope=", o->negative_slope, 0.01))
OPTIONS(hardtanh, "Hardtanh",
        (write_real(out, "min_val=", o->min_val, -1),
         write_real(out, ", max_val=", o->max_val, 1)))
OPTIONS(softplus, "Softplus",
        (write_real(out, "beta=", o->beta, 1),
         write_real(out, ", threshold=", o->threshold, 20)))
OPTIONS(hardshrink, "Hardshrink", write_real(out, "", o->lambd, 0.5))
OPTIONS(softshrink, "Softshrink", write_real(out, "", o->lambd, 0.5))

// ---- along a dimension ------------------------------------------------------

typedef struct along {
  calx_module *m;
  int dim;
} along;

static void along_repr(const void *state, cx_text *out)
{
  cx_text_format(out, "dim=%d", ((const along *)state)->dim);
}

#define ALONG(name, kind)                                                      \
  static calx_tensor *name##_forward(void *self, calx_tensor *x)               \
  {                                                                            \
    return calx_##name(x, ((const along *)self)->dim);                         \
  }                                                                            \
  calx_module *calx_nn_##name(calx_module *parent, const char *child, int dim) \
  {                                                                            \
    static const cx_nn_layer layer = { kind, #name, name##_forward,            \
                                       along_repr, NULL };                     \
    void *state;                                                               \
    calx_module *m = cx_nn_make(&layer, parent, child, sizeof(along), &state); \
    if (state != NULL) ((along *)state)->dim = dim;                            \
    return m;                                                                  \
  }
ALONG(softmax, "Softmax")
ALONG(log_softmax, "LogSoftmax")
ALONG(softmin, "Softmin")
ALONG(glu, "GLU")

// ---- others -----------------------------------------------------------------

typedef struct threshold {
  calx_module *m;
  double threshold, value;
} threshold;

static calx_tensor *threshold_forward(void *self, calx_tensor *x)
{
  const threshold *t = self;
  return calx_threshold(x, calx_scalar(t->threshold), calx_scalar(t->value));
}

static void threshold_repr(const void *state, cx_text *out)
{
  const threshold *t = state;
  cx_text_append(out, "threshold=");
  cx_nn_repr_real(out, t->threshold);
  cx_text_append(out, ", value=");
  cx_nn_repr_real(out, t->value);
}

calx_module *calx_nn_threshold(calx_module *parent, const char *name, double at,
                               double value)
{
  static const cx_nn_layer layer = { "Threshold", "threshold",
                                     threshold_forward, threshold_repr, NULL };
  void *state;
  calx_module *m = cx_nn_make(&layer, parent, name, sizeof(threshold), &state);
  threshold *t = state;
  if (t == NULL) return m;
  t->threshold = at;
  t->value = value;
  return m;
}

typedef struct prelu {
  calx_module *m;
  int64_t num_parameters;
} prelu;

static calx_tensor *prelu_forward(void *self, calx_tensor *x)
{
  return calx_prelu(x, cx_nn_tensor(((const prelu *)self)->m, "weight"));
}

static void prelu_repr(const void *state, cx_text *out)
{
  cx_text_format(out, "num_parameters=%lld",
                 (long long)((const prelu *)state)->num_parameters);
}

calx_module *calx_nn_prelu_with(calx_module *parent, const char *name,
                                const calx_nn_prelu_options *options)
{
  static const cx_nn_layer layer = { "PReLU", "prelu", prelu_forward,
                                     prelu_repr, NULL };
  void *state;
  calx_module *m = cx_nn_make(&layer, parent, name, sizeof(prelu), &state);
  prelu *p = state;
  if (p == NULL) return m;
  calx_nn_prelu_options o;
  calx_status *status = cx_options_take("prelu", options, &o, sizeof o);
  if (status == NULL && o.num_parameters < 0) {
    status = cx_invalid("prelu: %lld parameters, a positive number is wanted",
                        (long long)o.num_parameters);
  }
  if (status == NULL) status = cx_nn_check_dtype("prelu", o.dtype);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  p->num_parameters = o.num_parameters != 0 ? o.num_parameters : 1;
  calx_create_options create = { .size = sizeof create, .dtype = o.dtype };
  if (o.dtype == CALX_DTYPE_DEFAULT) create.dtype = CALX_F32;
  calx_scope *scope = calx_scope_begin();
  calx_module_param(m, "weight",
                    calx_full_with(CALX_SHAPE(p->num_parameters),
                                   cx_or_default(o.init, 0.25), &create));
  cx_nn_module_fail(m, calx_scope_end(scope));
  return m;
}

typedef struct rrelu {
  calx_module *m;
  double lower, upper;
} rrelu;

static calx_tensor *rrelu_forward(void *self, calx_tensor *x)
{
  const rrelu *r = self;
  if (!cx_nn_has_shape(x)) return cx_nn_unusable(r->m, x);
  calx_rrelu_options o = { .size = sizeof o,
                           .lower = r->lower != 0 ? r->lower : -0.0,
                           .upper = r->upper != 0 ? r->upper : -0.0,
                           .training = calx_module_is_training(r->m) };
  return calx_rrelu_with(x, &o);
}

static void rrelu_repr(const void *state, cx_text *out)
{
  const rrelu *r = state;
  cx_text_append(out, "lower=");
  cx_nn_repr_real(out, r->lower);
  cx_text_append(out, ", upper=");
  cx_nn_repr_real(out, r->upper);
}

calx_module *calx_nn_rrelu_with(calx_module *parent, const char *name,
                                const calx_nn_rrelu_options *options)
{
  static const cx_nn_layer layer = { "RReLU", "rrelu", rrelu_forward,
                                     rrelu_repr, NULL };
  void *state;
  calx_module *m = cx_nn_make(&layer, parent, name, sizeof(rrelu), &state);
  rrelu *r = state;
  if (r == NULL) return m;
  calx_nn_rrelu_options o;
  calx_status *status = cx_options_take("rrelu", options, &o, sizeof o);
  r->lower = cx_or_default(o.lower, 1.0 / 8);
  r->upper = cx_or_default(o.upper, 1.0 / 3);
  if (status == NULL && !(r->lower <= r->upper)) {
    status =
        cx_invalid("rrelu: lower %g is not below upper %g", r->lower, r->upper);
  }
  cx_nn_module_fail(m, status);
  return m;
}
