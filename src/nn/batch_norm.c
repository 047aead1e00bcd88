// nn/batch_norm: torch.nn.BatchNorm2d. The op updates the running statistics,
// the layer counts the batches.
#include "nn/batch_norm.h"

#include "base/dtype.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "nn/init.h"

void cx_nn_count_batch(const cx_nn_batch_norm *b)
{
  calx_tensor *tracked = b->tracked;
  cx_lazy_no_grad_begin();
  calx_tensor *next = calx_add_with(tracked, calx_scalar_int(1), NULL);
  if (!cx_lazy_tensor_poisoned(next)) {
    cx_lazy_tensor_set_value(tracked, next);
  }
  cx_lazy_no_grad_end();
}

static calx_tensor *forward(void *self, calx_tensor *x)
{
  const cx_nn_batch_norm *b = self;
  if (x != NULL && cx_lazy_tensor_value(x).node != NULL &&
      (calx_tensor_rank(x) != 4 || calx_tensor_dim(x, 1) != b->features)) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "(N, %lld, H, W)", (long long)b->features);
    return cx_nn_module_refuse(b->m, x, wanted);
  }
  bool training = calx_module_is_training(b->m);
  calx_batch_norm_options o = b->options;
  o.training = training || b->tracked == NULL;
  calx_tensor *y = calx_batch_norm_with(x, &o);
  if (training && b->tracked != NULL && !cx_lazy_tensor_poisoned(y)) {
    cx_nn_count_batch(b);
  }
  return y;
}

static calx_status *check(const char *call, int64_t features,
                          const calx_nn_batch_norm_options *o)
{
  CALX_TRY(cx_options_check(call, o->size, sizeof *o));
  if (features <= 0) {
    return cx_invalid("%s: %lld features, a positive number is wanted", call,
                      (long long)features);
  }
  if (!(o->eps >= 0)) {
    return cx_invalid("%s: eps %g, a positive number is wanted", call, o->eps);
  }
  if (o->dtype == CALX_DTYPE_DEFAULT || cx_dtype_is_float(o->dtype)) {
    return NULL;
  }
  return cx_invalid("%s: its type is to be %s, a floating one is wanted", call,
                    calx_dtype_name(o->dtype));
}

// In the order of PyTorch's state dict.
static void register_all(cx_nn_batch_norm *b,
                         const calx_nn_batch_norm_options *o)
{
  calx_dims shape = calx_dims_of(&b->features, 1);
  calx_batch_norm_options *op = &b->options;
  if (!o->no_affine) {
    op->weight =
        calx_module_param(b->m, "weight", cx_nn_filled(shape, true, o->dtype));
    op->bias =
        calx_module_param(b->m, "bias", cx_nn_filled(shape, false, o->dtype));
  }
  if (o->no_track_running_stats) return;
  op->running_mean = calx_module_buffer(b->m, "running_mean",
                                        cx_nn_filled(shape, false, o->dtype));
  op->running_var = calx_module_buffer(b->m, "running_var",
                                       cx_nn_filled(shape, true, o->dtype));
  b->tracked = calx_module_buffer(b->m, "num_batches_tracked",
                                  cx_nn_filled(CALX_SCALAR, false, CALX_I64));
}

calx_module *cx_nn_batch_norm_make(const cx_nn_batch_norm_kind *kind,
                                   calx_module *parent, const char *name,
                                   int64_t features,
                                   const calx_nn_batch_norm_options *options)
{
  static const calx_nn_batch_norm_options none = { .size = sizeof none };
  const calx_nn_batch_norm_options *o = options != NULL ? options : &none;
  void *state;
  calx_module *m = cx_nn_module_layer(parent, name, kind->name, kind->forward,
                                      sizeof(cx_nn_batch_norm), &state);
  cx_nn_batch_norm *b = state;
  if (b == NULL) return m;
  calx_status *status = check(kind->call, features, o);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  b->m = m;
  b->features = features;
  b->options = (calx_batch_norm_options){ .size = sizeof b->options,
                                          .eps = o->eps,
                                          .momentum = o->momentum };
  calx_scope *scope = calx_scope_begin();
  register_all(b, o);
  cx_nn_module_fail(m, calx_scope_end(scope));
  return m;
}

static const cx_nn_batch_norm_kind batch_norm2d = { "BatchNorm2d",
                                                    "batch_norm2d", forward };

calx_module *calx_nn_batch_norm2d_with(
    calx_module *parent, const char *name, int64_t features,
    const calx_nn_batch_norm_options *options)
{
  return cx_nn_batch_norm_make(&batch_norm2d, parent, name, features, options);
}
