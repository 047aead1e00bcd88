// nn/flatten: torch.nn.Flatten.
#include "base/options.h"
#include "base/status.h"
#include "calx/ops.h"
#include "nn/module.h"

typedef struct flatten {
  calx_flatten_options options;
} flatten;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  return calx_flatten_with(x, &((const flatten *)self)->options);
}

static calx_status *check(const calx_nn_flatten_options *o, int64_t start)
{
  CALX_TRY(cx_options_check("flatten", o->size, sizeof *o));
  if (start >= -CALX_MAX_RANK && start < CALX_MAX_RANK &&
      o->end_dim >= -CALX_MAX_RANK && o->end_dim < CALX_MAX_RANK) {
    return NULL;
  }
  return cx_invalid(
      "flatten: start_dim %lld and end_dim %lld, no tensor has more than %d "
      "dimensions",
      (long long)start, (long long)o->end_dim, CALX_MAX_RANK);
}

calx_module *calx_nn_flatten_with(calx_module *parent, const char *name,
                                  const calx_nn_flatten_options *options)
{
  static const calx_nn_flatten_options none = { .size = sizeof none };
  const calx_nn_flatten_options *o = options != NULL ? options : &none;
  void *state;
  calx_module *m = cx_nn_module_layer(parent, name, "Flatten", forward,
                                      sizeof(flatten), &state);
  flatten *f = state;
  if (f == NULL) return m;
  int64_t start = o->start_dim == 0               ? 1
                  : o->start_dim == CALX_ZERO_INT ? 0
                                                  : o->start_dim;
  cx_nn_module_fail(m, check(o, start));
  f->options = (calx_flatten_options){ .size = sizeof f->options,
                                       .start_dim = (int)start,
                                       .end_dim = (int)o->end_dim };
  return m;
}
