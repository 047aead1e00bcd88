// nn/linear: torch.nn.Linear.
#include "base/dtype.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "nn/init.h"
#include "nn/module.h"

typedef struct linear {
  calx_module *m;
  int64_t in;
  calx_tensor *weight;  // (out, in)
  calx_tensor *bias;    // (out); NULL: none
} linear;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  const linear *l = self;
  if (x != NULL && cx_lazy_tensor_value(x).node != NULL &&
      calx_tensor_dim(x, -1) != l->in) {
    char wanted[48];
    snprintf(wanted, sizeof wanted, "(…, %lld)", (long long)l->in);
    return cx_nn_module_refuse(l->m, x, wanted);
  }
  return calx_linear(x, l->weight, l->bias);
}

static calx_status *check(int64_t in, int64_t out, const calx_linear_options *o)
{
  CALX_TRY(cx_options_check("linear", o->size, sizeof *o));
  if (in < 0 || out < 0) {
    return cx_invalid(
        "linear: %lld inputs and %lld outputs are wanted, sizes are not "
        "negative",
        (long long)in, (long long)out);
  }
  if (o->dtype == CALX_DTYPE_DEFAULT || cx_dtype_is_float(o->dtype)) {
    return NULL;
  }
  return cx_invalid("linear: its type is to be %s, a floating one is wanted",
                    calx_dtype_name(o->dtype));
}

calx_module *calx_nn_linear_with(calx_module *parent, const char *name,
                                 int64_t in, int64_t out,
                                 const calx_linear_options *options)
{
  static const calx_linear_options none = { .size = sizeof none };
  const calx_linear_options *o = options != NULL ? options : &none;
  void *state;
  calx_module *m = cx_nn_module_layer(parent, name, "Linear", forward,
                                      sizeof(linear), &state);
  linear *l = state;
  if (l == NULL) return m;
  calx_status *status = check(in, out, o);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  l->m = m;
  l->in = in;
  calx_scope *scope = calx_scope_begin();
  double fan_in = (double)in;
  l->weight = calx_module_param(
      m, "weight", cx_nn_uniform(CALX_SHAPE(out, in), fan_in, o->dtype));
  if (!o->no_bias) {
    l->bias = calx_module_param(
        m, "bias", cx_nn_uniform(CALX_SHAPE(out), fan_in, o->dtype));
  }
  cx_nn_module_fail(m, calx_scope_end(scope));
  return m;
}
