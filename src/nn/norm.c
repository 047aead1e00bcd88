// nn/norm: torch.nn.LayerNorm, RMSNorm, GroupNorm and LocalResponseNorm.
#include "nn/layer.h"

typedef struct norm_state {
  calx_module *m;
  calx_dims shape;  // of the weight
  int64_t groups;   // of GroupNorm
  calx_nn_layer_norm_options o;
} norm_state;

static calx_layer_norm_options op_options(const norm_state *n)
{
  return (calx_layer_norm_options){ .size = sizeof(calx_layer_norm_options),
                                    .weight = cx_nn_tensor(n->m, "weight"),
                                    .bias = cx_nn_tensor(n->m, "bias"),
                                    .eps = n->o.eps };
}

// ---- over the last dimensions -----------------------------------------------

// Whether x ends in the normalised shape.
static bool ends_in_shape(const norm_state *n, const calx_tensor *x)
{
  calx_dims d = calx_tensor_shape(x);
  if (d.count < n->shape.count) return false;
  for (size_t i = 0; i < n->shape.count; i++) {
    if (d.values[d.count - n->shape.count + i] != n->shape.values[i]) {
      return false;
    }
  }
  return true;
}

static calx_tensor *refuse(const norm_state *n, const calx_tensor *x)
{
  cx_text text = { 0 };
  cx_text_append(&text, "(…");
  for (size_t i = 0; i < n->shape.count; i++) {
    cx_text_format(&text, ", %lld", (long long)n->shape.values[i]);
  }
  cx_text_char(&text, ')');
  calx_tensor *poison = cx_nn_module_refuse(n->m, x, cx_text_str(&text));
  cx_text_free(&text);
  return poison;
}

static calx_tensor *layer_forward(void *self, calx_tensor *x)
{
  const norm_state *n = self;
  if (cx_nn_has_shape(x) && !ends_in_shape(n, x)) return refuse(n, x);
  calx_layer_norm_options o = op_options(n);
  return calx_layer_norm_with(x, n->shape, &o);
}

static calx_tensor *rms_forward(void *self, calx_tensor *x)
{
  const norm_state *n = self;
  if (cx_nn_has_shape(x) && !ends_in_shape(n, x)) return refuse(n, x);
  calx_layer_norm_options o = op_options(n);
  return calx_rms_norm_with(x, n->shape, &o);
}

static void layer_repr(const void *state, cx_text *out)
{
  const norm_state *n = state;
  cx_nn_repr_tuple(out, n->shape.values, n->shape.count);
  cx_text_append(out, ", eps=");
  cx_nn_repr_real(out, cx_or_default(n->o.eps, 1e-5));
  cx_text_format(out, ", elementwise_affine=%s, bias=%s",
                 cx_nn_repr_bool(!n->o.no_affine),
                 cx_nn_repr_bool(!n->o.no_affine && !n->o.no_bias));
}

static void rms_repr(const void *state, cx_text *out)
{
  const norm_state *n = state;
  cx_nn_repr_tuple(out, n->shape.values, n->shape.count);
  cx_text_append(out, ", eps=");
  if (n->o.eps != 0)
    cx_nn_repr_real(out, n->o.eps);
  else
    cx_text_append(out, "None");
  cx_text_format(out, ", elementwise_affine=%s",
                 cx_nn_repr_bool(!n->o.no_affine));
}

// ---- over groups of channels ------------------------------------------------

static calx_tensor *group_forward(void *self, calx_tensor *x)
{
  const norm_state *n = self;
  if (cx_nn_has_shape(x) && (calx_tensor_rank(x) < 2 ||
                             calx_tensor_dim(x, 1) != n->shape.values[0])) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "(N, %lld, …)",
             (long long)n->shape.values[0]);
    return cx_nn_module_refuse(n->m, x, wanted);
  }
  calx_layer_norm_options o = op_options(n);
  return calx_group_norm_with(x, n->groups, &o);
}

static void group_repr(const void *state, cx_text *out)
{
  const norm_state *n = state;
  cx_text_format(out, "%lld, %lld, eps=", (long long)n->groups,
                 (long long)n->shape.values[0]);
  cx_nn_repr_real(out, cx_or_default(n->o.eps, 1e-5));
  const char *affine = cx_nn_repr_bool(!n->o.no_affine);
  cx_text_format(out, ", affine=%s, bias=%s", affine, affine);
}

// ---- making -----------------------------------------------------------------

static const cx_nn_layer layer_norm = { "LayerNorm", "layer_norm",
                                        layer_forward, layer_repr, NULL };
static const cx_nn_layer rms_norm = { "RMSNorm", "rms_norm", rms_forward,
                                      rms_repr, NULL };
static const cx_nn_layer group_norm = { "GroupNorm", "group_norm",
                                        group_forward, group_repr, NULL };

static calx_status *check(const norm_state *n, const cx_nn_layer *layer)
{
  const char *call = layer->call;
  if (n->shape.count == 0 || n->shape.count > CALX_MAX_RANK) {
    return cx_invalid("%s: %zu sizes, 1 to %d are wanted", call, n->shape.count,
                      CALX_MAX_RANK);
  }
  for (size_t i = 0; i < n->shape.count; i++) {
    if (n->shape.values[i] > 0) continue;
    return cx_invalid("%s: size %lld, positive numbers are wanted", call,
                      (long long)n->shape.values[i]);
  }
  if (layer == &group_norm &&
      (n->groups <= 0 || n->shape.values[0] % n->groups != 0)) {
    return cx_invalid("%s: %lld groups do not divide %lld channels", call,
                      (long long)n->groups, (long long)n->shape.values[0]);
  }
  if (n->o.no_bias && layer != &layer_norm) {
    return cx_invalid("%s: .no_bias is of layer_norm only", call);
  }
  if (!(n->o.eps >= 0)) {
    return cx_invalid("%s: eps %g, a positive number is wanted", call,
                      n->o.eps);
  }
  return cx_nn_check_dtype(call, n->o.dtype);
}

static calx_module *make(const cx_nn_layer *layer, calx_module *parent,
                         const char *name, calx_dims shape, int64_t groups,
                         const calx_nn_layer_norm_options *options)
{
  void *state;
  calx_module *m = cx_nn_make(layer, parent, name, sizeof(norm_state), &state);
  norm_state *n = state;
  if (n == NULL) return m;
  n->shape = shape;
  n->groups = groups;
  calx_status *status =
      cx_options_take(layer->call, options, &n->o, sizeof n->o);
  if (status == NULL) status = check(n, layer);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  if (n->o.no_affine) return m;
  calx_scope *scope = calx_scope_begin();
  cx_nn_filled_param(m, "weight", shape, true, n->o.dtype);
  if (layer != &rms_norm && !n->o.no_bias) {
    cx_nn_filled_param(m, "bias", shape, false, n->o.dtype);
  }
  cx_nn_module_fail(m, calx_scope_end(scope));
  return m;
}

calx_module *calx_nn_layer_norm_with(calx_module *parent, const char *name,
                                     calx_dims normalized_shape,
                                     const calx_nn_layer_norm_options *options)
{
  return make(&layer_norm, parent, name, normalized_shape, 1, options);
}

calx_module *calx_nn_rms_norm_with(calx_module *parent, const char *name,
                                   calx_dims normalized_shape,
                                   const calx_nn_layer_norm_options *options)
{
  return make(&rms_norm, parent, name, normalized_shape, 1, options);
}

calx_module *calx_nn_group_norm_with(calx_module *parent, const char *name,
                                     int64_t num_groups, int64_t num_channels,
                                     const calx_nn_layer_norm_options *options)
{
  return make(&group_norm, parent, name, CALX_SHAPE(num_channels), num_groups,
              options);
}

// ---- over neighbouring channels ---------------------------------------------

typedef struct response {
  calx_module *m;
  int64_t channels;
  calx_nn_local_response_norm_options o;
} response;

static calx_tensor *response_forward(void *self, calx_tensor *x)
{
  const response *r = self;
  if (!cx_nn_has_shape(x)) return cx_nn_unusable(r->m, x);
  if (calx_tensor_rank(x) < 3) {
    return cx_nn_module_refuse(r->m, x, "(N, C, L, …)");
  }
  calx_local_response_norm_options o = {
    .size = sizeof o, .alpha = r->o.alpha, .beta = r->o.beta, .k = r->o.k
  };
  return calx_local_response_norm_with(x, r->channels, &o);
}

static void response_repr(const void *state, cx_text *out)
{
  const response *r = state;
  cx_text_format(out, "%lld, alpha=", (long long)r->channels);
  cx_nn_repr_real(out, cx_or_default(r->o.alpha, 1e-4));
  cx_text_append(out, ", beta=");
  cx_nn_repr_real(out, cx_or_default(r->o.beta, 0.75));
  cx_text_append(out, ", k=");
  cx_nn_repr_real(out, cx_or_default(r->o.k, 1));
}

calx_module *calx_nn_local_response_norm_with(
    calx_module *parent, const char *name, int64_t channels,
    const calx_nn_local_response_norm_options *options)
{
  static const cx_nn_layer layer = { "LocalResponseNorm", "local_response_norm",
                                     response_forward, response_repr, NULL };
  void *state;
  calx_module *m = cx_nn_make(&layer, parent, name, sizeof(response), &state);
  response *r = state;
  if (r == NULL) return m;
  calx_status *status =
      cx_options_take(layer.call, options, &r->o, sizeof r->o);
  r->channels = channels;
  if (status == NULL && (channels <= 0 || channels > INT32_MAX)) {
    status = cx_invalid(
        "local_response_norm: %lld channels, a positive number "
        "is wanted",
        (long long)channels);
  }
  cx_nn_module_fail(m, status);
  return m;
}
