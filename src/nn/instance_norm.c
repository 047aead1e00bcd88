// nn/instance_norm: torch.nn.InstanceNorm1d to 3d.
#include "nn/layer.h"
#include "ops/ops.h"

typedef struct instance_norm {
  calx_module *m;
  int n;  // spatial dimensions
  int64_t features;
  calx_nn_instance_norm_options o;
} instance_norm;

// The mean over the batch of each instance's mean and unbiased variance.
static void update_running(const instance_norm *in, calx_tensor *x)
{
  int64_t dims[3];
  for (int i = 0; i < in->n; i++) dims[i] = i + 2;
  calx_batch_norm_options rule = { .size = sizeof rule,
                                   .momentum = in->o.momentum };
  int64_t batch = 0;
  calx_reduce_options over_batch = { .size = sizeof over_batch,
                                     .dims = calx_dims_of(&batch, 1) };
  calx_reduce_options space = { .size = sizeof space,
                                .dims = calx_dims_of(dims, (size_t)in->n) };
  calx_var_options var = { .size = sizeof var, .dims = space.dims };
  calx_tensor *mean = cx_nn_tensor(in->m, "running_mean");
  calx_dtype dtype = calx_tensor_dtype(mean);
  x = calx_to_dtype(x, dtype);
  cx_lazy_no_grad_begin();
  cx_ops_norm_update(
      mean, calx_mean_with(calx_mean_with(x, &space), &over_batch), &rule);
  cx_ops_norm_update(cx_nn_tensor(in->m, "running_var"),
                     calx_mean_with(calx_var_with(x, &var), &over_batch),
                     &rule);
  cx_lazy_no_grad_end();
}

static calx_tensor *evaluate(const instance_norm *in, calx_tensor *x)
{
  calx_batch_norm_options o = {
    .size = sizeof o,
    .running_mean = cx_nn_tensor(in->m, "running_mean"),
    .running_var = cx_nn_tensor(in->m, "running_var"),
    .weight = cx_nn_tensor(in->m, "weight"),
    .bias = cx_nn_tensor(in->m, "bias"),
    .eps = in->o.eps,
  };
  return calx_batch_norm_with(x, &o);
}

static calx_tensor *forward(void *self, calx_tensor *x)
{
  static const char *const sizes[] = { "L", "H, W", "D, H, W" };
  const instance_norm *in = self;
  bool known = cx_nn_has_shape(x);
  int rank = known ? (int)calx_tensor_rank(x) : in->n + 2;
  if (known && ((rank != in->n + 1 && rank != in->n + 2) ||
                calx_tensor_dim(x, -in->n - 1) != in->features)) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "(N, %lld, %s)", (long long)in->features,
             sizes[in->n - 1]);
    return cx_nn_module_refuse(in->m, x, wanted);
  }
  bool single = rank == in->n + 1, training = calx_module_is_training(in->m);
  if (single) x = calx_unsqueeze(x, 0);
  calx_tensor *y;
  if (in->o.track_running_stats && !training) {
    y = evaluate(in, x);
  } else {
    calx_layer_norm_options o = { .size = sizeof o,
                                  .weight = cx_nn_tensor(in->m, "weight"),
                                  .bias = cx_nn_tensor(in->m, "bias"),
                                  .eps = in->o.eps };
    y = calx_instance_norm_with(x, &o);
    if (in->o.track_running_stats && !cx_lazy_tensor_poisoned(y)) {
      update_running(in, x);
    }
  }
  return single ? calx_squeeze(y, 0) : y;
}

static void repr(const void *state, cx_text *out)
{
  const instance_norm *in = state;
  const char *affine = cx_nn_repr_bool(in->o.affine);
  cx_text_format(out, "%lld, eps=", (long long)in->features);
  cx_nn_repr_real(out, cx_or_default(in->o.eps, 1e-5));
  cx_text_append(out, ", momentum=");
  cx_nn_repr_real(out, cx_or_default(in->o.momentum, 0.1));
  cx_text_format(out, ", affine=%s, bias=%s, track_running_stats=%s", affine,
                 affine, cx_nn_repr_bool(in->o.track_running_stats));
}

static calx_status *check(const instance_norm *in, const char *call)
{
  if (in->features <= 0) {
    return cx_invalid("%s: %lld features, a positive number is wanted", call,
                      (long long)in->features);
  }
  if (!(in->o.eps >= 0) || isnan(in->o.momentum)) {
    return cx_invalid("%s: eps %g and momentum %g, positive numbers are wanted",
                      call, in->o.eps, in->o.momentum);
  }
  return cx_nn_check_dtype(call, in->o.dtype);
}

static void register_all(const instance_norm *in)
{
  calx_dims shape = CALX_SHAPE(in->features);
  calx_dtype dtype = in->o.dtype;
  calx_scope *scope = calx_scope_begin();
  if (in->o.affine) {
    cx_nn_filled_param(in->m, "weight", shape, true, dtype);
    cx_nn_filled_param(in->m, "bias", shape, false, dtype);
  }
  if (in->o.track_running_stats) {
    calx_module_buffer(in->m, "running_mean",
                       cx_nn_filled(shape, false, dtype));
    calx_module_buffer(in->m, "running_var", cx_nn_filled(shape, true, dtype));
    calx_module_buffer(in->m, "num_batches_tracked",
                       cx_nn_filled(CALX_SCALAR, false, CALX_I64));
  }
  cx_nn_module_fail(in->m, calx_scope_end(scope));
}

static calx_module *make(const cx_nn_layer *layer, int n, calx_module *parent,
                         const char *name, int64_t features,
                         const calx_nn_instance_norm_options *options)
{
  void *state;
  calx_module *m =
      cx_nn_make(layer, parent, name, sizeof(instance_norm), &state);
  instance_norm *in = state;
  if (in == NULL) return m;
  in->n = n;
  in->features = features;
  calx_status *status =
      cx_options_take(layer->call, options, &in->o, sizeof in->o);
  if (status == NULL) status = check(in, layer->call);
  if (status != NULL)
    cx_nn_module_fail(m, status);
  else
    register_all(in);
  return m;
}

#define INSTANCE_NORM(n)                                                      \
  calx_module *calx_nn_instance_norm##n##d_with(                              \
      calx_module *parent, const char *name, int64_t features,                \
      const calx_nn_instance_norm_options *options)                           \
  {                                                                           \
    static const cx_nn_layer layer = { "InstanceNorm" #n "d",                 \
                                       "instance_norm" #n "d", forward, repr, \
                                       NULL };                                \
    return make(&layer, n, parent, name, features, options);                  \
  }
INSTANCE_NORM(1)
INSTANCE_NORM(2)
INSTANCE_NORM(3)
