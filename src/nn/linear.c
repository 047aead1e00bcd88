// nn/linear: torch.nn.Linear and Bilinear.
#include "nn/layer.h"

typedef struct linear {
  calx_module *m;
  int64_t in, in2, out;  // in2: of Bilinear
  calx_linear_options o;
} linear;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  const linear *l = self;
  if (cx_nn_has_shape(x) && calx_tensor_dim(x, -1) != l->in) {
    char wanted[48];
    snprintf(wanted, sizeof wanted, "(…, %lld)", (long long)l->in);
    return cx_nn_module_refuse(l->m, x, wanted);
  }
  return calx_linear(x, cx_nn_tensor(l->m, "weight"),
                     cx_nn_tensor(l->m, "bias"));
}

static void repr(const void *state, cx_text *out)
{
  const linear *l = state;
  cx_text_format(out, "in_features=%lld, out_features=%lld, bias=%s",
                 (long long)l->in, (long long)l->out,
                 cx_nn_repr_bool(!l->o.no_bias));
}

// ---- of two tensors ---------------------------------------------------------

// sum_ij x_i W_oij y_j: x W is one product, (n, in) (in, out in2).
static calx_tensor *forward2(void *self, calx_tensor *x, calx_tensor *y)
{
  const linear *l = self;
  if (cx_nn_has_shape(x) && cx_nn_has_shape(y)) {
    bool wrong = calx_tensor_dim(y, -1) != l->in2;
    if (wrong || calx_tensor_dim(x, -1) != l->in ||
        calx_tensor_numel(x) / l->in != calx_tensor_numel(y) / l->in2) {
      char wanted[96];
      snprintf(wanted, sizeof wanted, "(…, %lld) and (…, %lld)",
               (long long)l->in, (long long)l->in2);
      return cx_nn_module_refuse(l->m, wrong ? y : x, wanted);
    }
  }
  calx_tensor *weight = calx_permute(cx_nn_tensor(l->m, "weight"),
                                     CALX_DIMS(1, 0, 2));  // (in, out, in2)
  weight = calx_reshape(weight, CALX_SHAPE(l->in, l->out * l->in2));
  calx_tensor *half =
      calx_matmul(calx_reshape(x, CALX_SHAPE(-1, l->in)), weight);
  half = calx_reshape(half, CALX_SHAPE(-1, l->out, l->in2));
  calx_tensor *z = calx_matmul(
      half, calx_reshape(y, CALX_SHAPE(-1, l->in2, 1)));  // (n, out, 1)
  calx_tensor *bias = cx_nn_tensor(l->m, "bias");
  z = calx_squeeze(z, 2);
  if (bias != NULL) z = calx_add_with(z, bias, NULL);
  calx_dims shape = calx_tensor_shape(x);
  if (shape.count != 0) shape.values[shape.count - 1] = l->out;
  return calx_reshape(z, shape);
}

static calx_tensor *forward_of_one(void *self, calx_tensor *x)
{
  const linear *l = self;
  (void)x;
  return cx_lazy_tensor_poison(
      cx_invalid("forward: layer '%s' (Bilinear) takes two tensors: call "
                 "calx_forward2",
                 cx_nn_module_path(l->m)));
}

static void repr2(const void *state, cx_text *out)
{
  const linear *l = state;
  cx_text_format(
      out, "in1_features=%lld, in2_features=%lld, out_features=%lld, bias=%s",
      (long long)l->in, (long long)l->in2, (long long)l->out,
      cx_nn_repr_bool(!l->o.no_bias));
}

// ---- making -----------------------------------------------------------------

static const cx_nn_layer linear_layer = { "Linear", "linear", forward, repr,
                                          NULL };
static const cx_nn_layer bilinear_layer = { "Bilinear", "bilinear",
                                            forward_of_one, repr2, forward2 };

static calx_status *check(linear *l, const char *call,
                          const calx_linear_options *options, int64_t least)
{
  CALX_TRY(cx_options_take(call, options, &l->o, sizeof l->o));
  if (l->in < least || l->in2 < least || l->out < 0) {
    return cx_invalid(
        "%s: %lld inputs and %lld outputs are wanted, sizes are %s", call,
        (long long)(l->in2 < l->in ? l->in2 : l->in), (long long)l->out,
        least == 0 ? "not negative" : "positive");
  }
  return cx_nn_check_dtype(call, l->o.dtype);
}

static calx_module *make(const cx_nn_layer *layer, calx_module *parent,
                         const char *name, linear sizes,
                         const calx_linear_options *options)
{
  void *state;
  calx_module *m = cx_nn_make(layer, parent, name, sizeof(linear), &state);
  linear *l = state;
  if (l == NULL) return m;
  bool bilinear = layer == &bilinear_layer;
  sizes.m = m;
  *l = sizes;
  calx_status *status = check(l, layer->call, options, bilinear ? 1 : 0);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  calx_dims shape =
      bilinear ? CALX_SHAPE(l->out, l->in, l->in2) : CALX_SHAPE(l->out, l->in);
  double fan_in = (double)l->in;
  calx_scope *scope = calx_scope_begin();
  calx_module_param(m, "weight", cx_nn_uniform(shape, fan_in, l->o.dtype));
  if (!l->o.no_bias) {
    calx_module_param(m, "bias",
                      cx_nn_uniform(CALX_SHAPE(l->out), fan_in, l->o.dtype));
  }
  cx_nn_module_fail(m, calx_scope_end(scope));
  return m;
}

calx_module *calx_nn_linear_with(calx_module *parent, const char *name,
                                 int64_t in, int64_t out,
                                 const calx_linear_options *options)
{
  return make(&linear_layer, parent, name,
              (linear){ .in = in, .in2 = in, .out = out }, options);
}

calx_module *calx_nn_bilinear_with(calx_module *parent, const char *name,
                                   int64_t in1, int64_t in2, int64_t out,
                                   const calx_linear_options *options)
{
  return make(&bilinear_layer, parent, name,
              (linear){ .in = in1, .in2 = in2, .out = out }, options);
}
