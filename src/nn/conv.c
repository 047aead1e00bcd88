// nn/conv: torch.nn.Conv1d to 3d and ConvTranspose1d to 3d.
#include "ops/conv.h"

#include "nn/layer.h"

enum { MOST = CX_OPS_MOST_SPATIAL };

typedef struct conv_kind {
  cx_nn_layer layer;
  int n;  // spatial dimensions
  bool transposed;
  const char *wanted;  // the shape of x behind its channels
} conv_kind;

typedef struct conv {
  calx_module *m;
  const conv_kind *kind;
  int64_t in, out, kernel[MOST];
  calx_nn_conv_options o;
} conv;

// ---- forward ----------------------------------------------------------------

// Pads x as .padding_mode says, which the convolution then does not do.
static calx_tensor *padded(const conv *c, calx_tensor *x)
{
  int n = c->kind->n;
  int64_t pads[2 * MOST];
  for (int i = 0; i < n; i++) {
    int64_t p = cx_ops_pair(c->o.padding, i, 0);
    int64_t all =
        cx_ops_pair(c->o.dilation, i, 1) * (c->kernel[i] - 1);  // same size
    int64_t *pair = &pads[2 * (n - 1 - i)];
    pair[0] = p == CALX_PADDING_SAME ? all / 2 : p;
    pair[1] = p == CALX_PADDING_SAME ? all - all / 2 : p;
  }
  calx_pad_options o = { .size = sizeof o, .mode = c->o.padding_mode };
  return calx_pad_with(x, calx_dims_of(pads, 2 * (size_t)n), &o);
}

static calx_tensor *forward(void *self, calx_tensor *x)
{
  const conv *c = self;
  const conv_kind *kind = c->kind;
  if (cx_nn_has_shape(x)) {
    int64_t rank = (int64_t)calx_tensor_rank(x);
    if ((rank != kind->n + 1 && rank != kind->n + 2) ||
        calx_tensor_dim(x, -kind->n - 1) != c->in) {
      char wanted[64];
      snprintf(wanted, sizeof wanted, "(N, %lld, %s)", (long long)c->in,
               kind->wanted);
      return cx_nn_module_refuse(c->m, x, wanted);
    }
  }
  static const int64_t none[MOST] = { 0 };
  bool apart = c->o.padding_mode != CALX_PAD_CONSTANT;
  if (apart) x = padded(c, x);
  return cx_ops_convolve(
      x, cx_nn_tensor(c->m, "weight"),
      &(cx_ops_conv_options){ .op = kind->layer.call,
                              .n = kind->n,
                              .transposed = kind->transposed,
                              .bias = cx_nn_tensor(c->m, "bias"),
                              .stride = c->o.stride,
                              .padding = apart ? none : c->o.padding,
                              .dilation = c->o.dilation,
                              .output_padding = c->o.output_padding,
                              .groups = c->o.groups });
}

// ---- text -------------------------------------------------------------------

// ", stride=(2, 2)", where one of the numbers is not `usual`.
static void write_list(cx_text *out, const conv *c, const char *name,
                       const int64_t *list, int64_t usual, int64_t hidden)
{
  int64_t values[MOST];
  bool shown = false;
  for (int i = 0; i < c->kind->n; i++) {
    values[i] = cx_ops_pair(list, i, usual);
    shown = shown || values[i] != hidden;
  }
  if (!shown) return;
  cx_text_format(out, ", %s=", name);
  if (values[0] == CALX_PADDING_SAME)
    cx_text_append(out, "same");
  else
    cx_nn_repr_tuple(out, values, (size_t)c->kind->n);
}

static void repr(const void *state, cx_text *out)
{
  static const char *const modes[] = { "zeros", "reflect", "replicate",
                                       "circular" };
  const conv *c = state;
  const calx_nn_conv_options *o = &c->o;
  cx_text_format(out, "%lld, %lld, kernel_size=", (long long)c->in,
                 (long long)c->out);
  cx_nn_repr_tuple(out, c->kernel, (size_t)c->kind->n);
  write_list(out, c, "stride", o->stride, 1, -1);
  write_list(out, c, "padding", o->padding, 0, 0);
  write_list(out, c, "dilation", o->dilation, 1, 1);
  write_list(out, c, "output_padding", o->output_padding, 0, 0);
  if (o->groups > 1) {
    cx_text_format(out, ", groups=%lld", (long long)o->groups);
  }
  if (o->no_bias) cx_text_append(out, ", bias=False");
  if (o->padding_mode != CALX_PAD_CONSTANT) {
    cx_text_format(out, ", padding_mode=%s", modes[o->padding_mode]);
  }
}

// ---- making -----------------------------------------------------------------

static calx_status *check_list(const conv *c, const char *name,
                               const int64_t *list, int64_t least)
{
  const conv_kind *kind = c->kind;
  for (int i = 0; i < MOST; i++) {
    if (i >= kind->n && list[i] != 0) {
      return cx_invalid("%s: %s has %d numbers for %d spatial dimensions",
                        kind->layer.call, name, i + 1, kind->n);
    }
    if (list[i] < least && list[i] != CALX_ZERO_INT) {
      return cx_invalid("%s: %s %lld: a number of at least %lld is wanted",
                        kind->layer.call, name, (long long)list[i],
                        (long long)least);
    }
  }
  return NULL;
}

static calx_status *check_sizes(const conv *c)
{
  const char *call = c->kind->layer.call;
  for (int i = 0; i < c->kind->n; i++) {
    if (c->in > 0 && c->out > 0 && c->kernel[i] > 0) continue;
    return cx_invalid(
        "%s: %lld channels to %lld with a kernel of %lld: positive numbers are "
        "wanted",
        call, (long long)c->in, (long long)c->out, (long long)c->kernel[i]);
  }
  int64_t groups = c->o.groups != 0 ? c->o.groups : 1;
  if (groups < 0 || c->in % groups != 0 || c->out % groups != 0) {
    return cx_invalid(
        "%s: %lld groups divide %lld channels to %lld with a rest", call,
        (long long)groups, (long long)c->in, (long long)c->out);
  }
  if (c->kind->n < 3 && c->o.kernel_height != 0) {
    return cx_invalid("%s: .kernel_height is of three dimensions", call);
  }
  if (c->kind->n < 2 && c->o.kernel_width != 0) {
    return cx_invalid("%s: .kernel_width is of two or three dimensions", call);
  }
  return NULL;
}

static calx_status *check(const conv *c)
{
  const calx_nn_conv_options *o = &c->o;
  const char *call = c->kind->layer.call;
  bool transposed = c->kind->transposed;
  CALX_TRY(check_sizes(c));
  CALX_TRY(check_list(c, "stride", o->stride, 0));
  CALX_TRY(check_list(c, "dilation", o->dilation, 0));
  CALX_TRY(
      check_list(c, "padding", o->padding, transposed ? 0 : CALX_PADDING_SAME));
  CALX_TRY(check_list(c, "output_padding", o->output_padding, 0));
  if (!transposed && o->output_padding[0] != 0) {
    return cx_invalid("%s: .output_padding is of a transposed one", call);
  }
  if ((unsigned)o->padding_mode > CALX_PAD_CIRCULAR ||
      (transposed && o->padding_mode != CALX_PAD_CONSTANT)) {
    return cx_invalid("%s: .padding_mode %d: %s", call, (int)o->padding_mode,
                      transposed ? "a transposed one pads with zeros"
                                 : "a calx_pad_mode is wanted");
  }
  for (int i = 0; i < c->kind->n; i++) {
    if (cx_ops_pair(o->padding, i, 0) != CALX_PADDING_SAME ||
        cx_ops_pair(o->stride, i, 1) == 1) {
      continue;
    }
    return cx_invalid(
        "%s: a padding that keeps the size wants stride 1, got "
        "%lld",
        call, (long long)cx_ops_pair(o->stride, i, 1));
  }
  return cx_nn_check_dtype(call, o->dtype);
}

static void register_all(conv *c)
{
  const conv_kind *kind = c->kind;
  int64_t groups = c->o.groups != 0 ? c->o.groups : 1;
  int64_t shape[MOST + 2] = { kind->transposed ? c->in : c->out,
                              (kind->transposed ? c->out : c->in) / groups };
  double fan_in = (double)shape[1];
  for (int i = 0; i < kind->n; i++) {
    shape[i + 2] = c->kernel[i];
    fan_in *= (double)c->kernel[i];
  }
  calx_scope *scope = calx_scope_begin();
  calx_module_param(c->m, "weight",
                    cx_nn_uniform(calx_dims_of(shape, (size_t)kind->n + 2),
                                  fan_in, c->o.dtype));
  if (!c->o.no_bias) {
    calx_module_param(c->m, "bias",
                      cx_nn_uniform(CALX_SHAPE(c->out), fan_in, c->o.dtype));
  }
  cx_nn_module_fail(c->m, calx_scope_end(scope));
}

static calx_module *make(const conv_kind *kind, calx_module *parent,
                         const char *name, int64_t in, int64_t out,
                         int64_t kernel, const calx_nn_conv_options *options)
{
  void *state;
  calx_module *m = cx_nn_make(&kind->layer, parent, name, sizeof(conv), &state);
  conv *c = state;
  if (c == NULL) return m;
  c->kind = kind;
  c->in = in;
  c->out = out;
  calx_status *status =
      cx_options_take(kind->layer.call, options, &c->o, sizeof c->o);
  for (int i = 0; i < kind->n; i++) c->kernel[i] = kernel;
  if (kind->n > 1 && c->o.kernel_width != 0) {
    c->kernel[kind->n - 1] = c->o.kernel_width;
  }
  if (kind->n > 2 && c->o.kernel_height != 0) {
    c->kernel[1] = c->o.kernel_height;
  }
  if (status == NULL) status = check(c);
  if (status != NULL)
    cx_nn_module_fail(m, status);
  else
    register_all(c);
  return m;
}

#define CONV(name, kind, n, transposed, wanted)                              \
  static const conv_kind name##_kind = {                                     \
    { kind, #name, forward, repr, NULL }, n, transposed, wanted              \
  };                                                                         \
  calx_module *calx_nn_##name##_with(                                        \
      calx_module *parent, const char *child, int64_t in, int64_t out,       \
      int64_t kernel_size, const calx_nn_conv_options *options)              \
  {                                                                          \
    return make(&name##_kind, parent, child, in, out, kernel_size, options); \
  }
CONV(conv1d, "Conv1d", 1, false, "L")
CONV(conv2d, "Conv2d", 2, false, "H, W")
CONV(conv3d, "Conv3d", 3, false, "D, H, W")
CONV(conv_transpose1d, "ConvTranspose1d", 1, true, "L")
CONV(conv_transpose2d, "ConvTranspose2d", 2, true, "H, W")
CONV(conv_transpose3d, "ConvTranspose3d", 3, true, "D, H, W")
