// nn/conv2d: torch.nn.Conv2d.
#include "base/dtype.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "nn/init.h"
#include "nn/module.h"

typedef struct conv2d {
  calx_module *m;
  int64_t in;
  calx_tensor *weight;          // (out, in/groups, KH, KW)
  calx_conv2d_options options;  // with the bias (out); NULL: none
} conv2d;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  const conv2d *c = self;
  if (x != NULL && cx_lazy_tensor_value(x).node != NULL) {
    size_t rank = calx_tensor_rank(x);
    if ((rank != 3 && rank != 4) || calx_tensor_dim(x, -3) != c->in) {
      char wanted[64];
      snprintf(wanted, sizeof wanted, "(N, %lld, H, W)", (long long)c->in);
      return cx_nn_module_refuse(c->m, x, wanted);
    }
  }
  return calx_conv2d_with(x, c->weight, &c->options);
}

static calx_status *check(int64_t in, int64_t out, int64_t kernel,
                          const calx_nn_conv2d_options *o)
{
  CALX_TRY(cx_options_check("conv2d", o->size, sizeof *o));
  if (in <= 0 || out <= 0 || kernel <= 0 || o->kernel_width < 0) {
    return cx_invalid(
        "conv2d: %lld channels to %lld with a kernel of %lld and .kernel_width "
        "%lld: positive numbers are wanted",
        (long long)in, (long long)out, (long long)kernel,
        (long long)o->kernel_width);
  }
  int64_t groups = o->groups != 0 ? o->groups : 1;
  if (groups < 0 || in % groups != 0 || out % groups != 0) {
    return cx_invalid(
        "conv2d: %lld groups divide %lld channels to %lld with a rest",
        (long long)groups, (long long)in, (long long)out);
  }
  for (int i = 0; i < 2; i++) {
    if (o->stride[i] >= 0 && o->dilation[i] >= 0) continue;
    return cx_invalid(
        "conv2d: stride %lld and dilation %lld: positive numbers are wanted",
        (long long)o->stride[i], (long long)o->dilation[i]);
  }
  if (o->dtype == CALX_DTYPE_DEFAULT || cx_dtype_is_float(o->dtype)) {
    return NULL;
  }
  return cx_invalid("conv2d: its type is to be %s, a floating one is wanted",
                    calx_dtype_name(o->dtype));
}

// How the op is called: the layer's options but for its parameters.
static calx_conv2d_options op_options(const calx_nn_conv2d_options *o)
{
  return (calx_conv2d_options){
    .size = sizeof(calx_conv2d_options),
    .stride = { o->stride[0], o->stride[1] },
    .padding = { o->padding[0], o->padding[1] },
    .dilation = { o->dilation[0], o->dilation[1] },
    .groups = o->groups,
  };
}

calx_module *calx_nn_conv2d_with(calx_module *parent, const char *name,
                                 int64_t in, int64_t out, int64_t kernel_size,
                                 const calx_nn_conv2d_options *options)
{
  static const calx_nn_conv2d_options none = { .size = sizeof none };
  const calx_nn_conv2d_options *o = options != NULL ? options : &none;
  void *state;
  calx_module *m = cx_nn_module_layer(parent, name, "Conv2d", forward,
                                      sizeof(conv2d), &state);
  conv2d *c = state;
  if (c == NULL) return m;
  calx_status *status = check(in, out, kernel_size, o);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  c->m = m;
  c->in = in;
  c->options = op_options(o);
  int64_t kh = kernel_size, kw = o->kernel_width != 0 ? o->kernel_width : kh;
  int64_t depth = in / (o->groups != 0 ? o->groups : 1);
  double fan_in = (double)depth * (double)kh * (double)kw;
  calx_scope *scope = calx_scope_begin();
  c->weight = calx_module_param(
      m, "weight",
      cx_nn_uniform(CALX_SHAPE(out, depth, kh, kw), fan_in, o->dtype));
  if (!o->no_bias) {
    c->options.bias = calx_module_param(
        m, "bias", cx_nn_uniform(CALX_SHAPE(out), fan_in, o->dtype));
  }
  cx_nn_module_fail(m, calx_scope_end(scope));
  return m;
}
