// nn/pad: torch.nn.ZeroPad1d to 3d, and constant, reflection, replication and
// circular ones.
#include "nn/layer.h"

typedef struct pad {
  calx_module *m;
  int n;
  calx_dims sides;  // two for each spatial dimension, the last one first
  calx_pad_options o;
} pad;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  static const char *const wanted[] = { "(N, C, L)", "(N, C, H, W)",
                                        "(N, C, D, H, W)" };
  const pad *p = self;
  if (cx_nn_has_shape(x)) {
    int rank = (int)calx_tensor_rank(x);
    if (rank < p->n || (p->o.mode != CALX_PAD_CONSTANT && rank != p->n + 1 &&
                        rank != p->n + 2)) {
      return cx_nn_module_refuse(p->m, x, wanted[p->n - 1]);
    }
  }
  return calx_pad_with(x, p->sides, &p->o);
}

static void repr(const void *state, cx_text *out)
{
  const pad *p = state;
  cx_nn_repr_tuple(out, p->sides.values, p->sides.count);
}

static void repr_constant(const void *state, cx_text *out)
{
  const pad *p = state;
  cx_text_append(out, "padding=");
  repr(state, out);
  cx_text_append(out, ", value=");
  cx_nn_repr_real(out, p->o.value);
}

static calx_module *make(const cx_nn_layer *layer, calx_pad_mode mode, size_t n,
                         calx_module *parent, const char *name, calx_dims sides,
                         double value)
{
  void *state;
  calx_module *m = cx_nn_make(layer, parent, name, sizeof(pad), &state);
  pad *p = state;
  if (p == NULL) return m;
  p->n = (int)n;
  p->o =
      (calx_pad_options){ .size = sizeof p->o, .mode = mode, .value = value };
  if (sides.count != 1 && sides.count != 2 * n) {
    cx_nn_module_fail(m, cx_invalid("%s: %zu numbers, 1 or %zu are wanted",
                                    layer->call, sides.count, 2 * n));
    return m;
  }
  p->sides.count = 2 * n;
  for (size_t i = 0; i < 2 * n; i++) {
    p->sides.values[i] = sides.values[sides.count == 1 ? 0 : i];
  }
  return m;
}

#define PAD(name, Name, mode, n)                                               \
  calx_module *calx_nn_##name##_pad##n##d(calx_module *parent,                 \
                                          const char *child, calx_dims sides)  \
  {                                                                            \
    static const cx_nn_layer layer = { Name "Pad" #n "d", #name "_pad" #n "d", \
                                       forward, repr, NULL };                  \
    return make(&layer, mode, n, parent, child, sides, 0);                     \
  }
#define PADS(name, Name, mode) \
  PAD(name, Name, mode, 1)     \
  PAD(name, Name, mode, 2)     \
  PAD(name, Name, mode, 3)
PADS(zero, "Zero", CALX_PAD_CONSTANT)
PADS(reflection, "Reflection", CALX_PAD_REFLECT)
PADS(replication, "Replication", CALX_PAD_REPLICATE)
PADS(circular, "Circular", CALX_PAD_CIRCULAR)

#define CONSTANT_PAD(n)                                                     \
  calx_module *calx_nn_constant_pad##n##d(                                  \
      calx_module *parent, const char *name, calx_dims sides, double value) \
  {                                                                         \
    static const cx_nn_layer layer = { "ConstantPad" #n "d",                \
                                       "constant_pad" #n "d", forward,      \
                                       repr_constant, NULL };               \
    return make(&layer, CALX_PAD_CONSTANT, n, parent, name, sides, value);  \
  }
CONSTANT_PAD(1)
CONSTANT_PAD(2)
CONSTANT_PAD(3)
