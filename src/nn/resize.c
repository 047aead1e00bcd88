// nn/resize: torch.nn.Upsample, Unfold, PixelShuffle, PixelUnshuffle,
// ChannelShuffle.
#include "nn/layer.h"
#include "ops/ops.h"

// ---- upsample ---------------------------------------------------------------

typedef struct upsample {
  calx_module *m;
  calx_nn_upsample_options o;
} upsample;

// The sizes of the result, or none where the options do not fit x.
static calx_dims sizes_of(const upsample *u, const calx_tensor *x, size_t n)
{
  calx_dims sizes = { .count = n };
  for (size_t i = 0; i < n; i++) {
    double factor = u->o.scale_factor[i < 3 ? i : 2];
    if (factor == 0) factor = u->o.scale_factor[0];
    if (u->o.output_size.count != 0) {
      sizes.values[i] =
          u->o.output_size.values[u->o.output_size.count == 1 ? 0 : i];
    } else {
      double size = (double)calx_tensor_dim(x, (int)(i + 2)) * factor;
      sizes.values[i] = size < 1e15 ? (int64_t)floor(size) : INT64_MAX;
    }
  }
  return sizes;
}

static calx_tensor *upsample_forward(void *self, calx_tensor *x)
{
  const upsample *u = self;
  calx_interpolate_options o = { .size = sizeof o,
                                 .mode = u->o.mode,
                                 .align_corners = u->o.align_corners };
  if (!cx_nn_has_shape(x)) return cx_nn_unusable(u->m, x);
  size_t rank = calx_tensor_rank(x), given = u->o.output_size.count;
  if (rank < 3 || rank > 5 || (given > 1 && given != rank - 2)) {
    return cx_nn_module_refuse(u->m, x,
                               given == 3   ? "(N, C, D, H, W)"
                               : given == 2 ? "(N, C, H, W)"
                                            : "(N, C, …)");
  }
  return calx_interpolate_with(x, sizes_of(u, x, rank - 2), &o);
}

static void upsample_repr(const void *state, cx_text *out)
{
  static const char *const modes[] = { "nearest", "linear", "bicubic" };
  const upsample *u = state;
  const double *f = u->o.scale_factor;
  if (u->o.output_size.count != 0) {
    cx_text_append(out, "size=");
    cx_nn_repr_sizes(out, u->o.output_size.values, u->o.output_size.count);
  } else if (f[1] == 0 && f[2] == 0) {
    cx_text_append(out, "scale_factor=");
    cx_nn_repr_real(out, f[0]);
  } else {
    for (int i = 0; i < (f[2] != 0 ? 3 : 2); i++) {
      cx_text_append(out, i == 0 ? "scale_factor=(" : ", ");
      cx_nn_repr_real(out, f[i] != 0 ? f[i] : f[0]);
    }
    cx_text_char(out, ')');
  }
  // PyTorch's name of the mode depends on the number of dimensions.
  size_t n = u->o.output_size.count > 1 ? u->o.output_size.count
             : f[2] != 0                ? 3
                                        : 2;
  const char *mode = modes[u->o.mode];
  if (u->o.mode == CALX_INTERPOLATE_LINEAR) {
    mode = n == 3 ? "trilinear" : "bilinear";
  }
  cx_text_format(out, ", mode='%s'", mode);
}

static calx_status *check_upsample(const calx_nn_upsample_options *o)
{
  bool sizes = o->output_size.count != 0;
  if (sizes == (o->scale_factor[0] != 0)) {
    return cx_invalid(
        "upsample: one of .output_size and .scale_factor is wanted");
  }
  if (o->output_size.count > 3) {
    return cx_invalid("upsample: %zu sizes, at most 3 are wanted",
                      o->output_size.count);
  }
  for (int i = 0; i < 3; i++) {
    if (o->scale_factor[i] >= 0 && !isinf(o->scale_factor[i])) continue;
    return cx_invalid("upsample: a factor of %g, a positive number is wanted",
                      o->scale_factor[i]);
  }
  if ((unsigned)o->mode <= CALX_INTERPOLATE_BICUBIC) return NULL;
  return cx_invalid("upsample: mode %d is no calx_interpolation", (int)o->mode);
}

calx_module *calx_nn_upsample_with(calx_module *parent, const char *name,
                                   const calx_nn_upsample_options *options)
{
  static const cx_nn_layer layer = { "Upsample", "upsample", upsample_forward,
                                     upsample_repr, NULL };
  void *state;
  calx_module *m = cx_nn_make(&layer, parent, name, sizeof(upsample), &state);
  upsample *u = state;
  if (u == NULL) return m;
  calx_status *status =
      cx_options_take("upsample", options, &u->o, sizeof u->o);
  if (status == NULL) status = check_upsample(&u->o);
  cx_nn_module_fail(m, status);
  return m;
}

// ---- unfold -----------------------------------------------------------------

typedef struct unfold {
  calx_module *m;
  calx_dims kernel;
  calx_unfold_options o;
} unfold;

static calx_tensor *unfold_forward(void *self, calx_tensor *x)
{
  const unfold *u = self;
  return calx_unfold_with(x, u->kernel, &u->o);
}

static void unfold_repr(const void *state, cx_text *out)
{
  const unfold *u = state;
  const struct {
    const char *name;
    const int64_t *list;
    int64_t usual;
  } parts[] = { { "kernel_size=", u->kernel.values, 0 },
                { ", dilation=", u->o.dilation, 1 },
                { ", padding=", u->o.padding, 0 },
                { ", stride=", u->o.stride, 1 } };
  for (int k = 0; k < 4; k++) {
    int64_t values[2];
    for (int i = 0; i < 2; i++) {
      values[i] = cx_ops_pair(parts[k].list, i, parts[k].usual);
    }
    cx_text_append(out, parts[k].name);
    cx_nn_repr_sizes(out, values, 2);
  }
}

calx_module *calx_nn_unfold_with(calx_module *parent, const char *name,
                                 calx_dims kernel_size,
                                 const calx_unfold_options *options)
{
  static const cx_nn_layer layer = { "Unfold", "unfold", unfold_forward,
                                     unfold_repr, NULL };
  void *state;
  calx_module *m = cx_nn_make(&layer, parent, name, sizeof(unfold), &state);
  unfold *u = state;
  if (u == NULL) return m;
  calx_status *status = cx_options_take("unfold", options, &u->o, sizeof u->o);
  u->o.size = sizeof u->o;
  u->kernel = kernel_size;
  if (kernel_size.count == 1) {
    u->kernel = CALX_SHAPE(kernel_size.values[0], kernel_size.values[0]);
  }
  if (status == NULL && u->kernel.count != 2) {
    status = cx_invalid("unfold: %zu sizes of the kernel, 1 or 2 are wanted",
                        kernel_size.count);
  }
  cx_nn_module_fail(m, status);
  return m;
}

// ---- shuffles ---------------------------------------------------------------

typedef struct shuffle {
  calx_module *m;
  int64_t factor;
} shuffle;

static calx_tensor *shuffle_forward(void *self, calx_tensor *x)
{
  return calx_pixel_shuffle(x, ((const shuffle *)self)->factor);
}

// (…, C, H r, W r) as (…, C, H, r, W, r), then (…, C, r, r, H, W).
static calx_tensor *unshuffle_forward(void *self, calx_tensor *x)
{
  const shuffle *s = self;
  int64_t r = s->factor;
  if (!cx_nn_has_shape(x)) return cx_nn_unusable(s->m, x);
  if (calx_tensor_rank(x) < 3 || calx_tensor_dim(x, -1) % r != 0 ||
      calx_tensor_dim(x, -2) % r != 0) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "(…, C, H %lld, W %lld)", (long long)r,
             (long long)r);
    return cx_nn_module_refuse(s->m, x, wanted);
  }
  calx_dims shape = calx_tensor_shape(x);
  int64_t c = calx_tensor_dim(x, -3), h = calx_tensor_dim(x, -2) / r,
          w = calx_tensor_dim(x, -1) / r;
  int64_t before = 1;
  for (size_t i = 0; i + 3 < shape.count; i++) before *= shape.values[i];
  x = calx_reshape(x, CALX_SHAPE(before, c, h, r, w, r));
  x = calx_permute(x, CALX_DIMS(0, 1, 3, 5, 2, 4));
  shape.values[shape.count - 3] = c * r * r;
  shape.values[shape.count - 2] = h;
  shape.values[shape.count - 1] = w;
  return calx_reshape(x, shape);
}

// (N, g, C / g, …) as (N, C / g, g, …).
static calx_tensor *channels_forward(void *self, calx_tensor *x)
{
  const shuffle *s = self;
  if (!cx_nn_has_shape(x)) return cx_nn_unusable(s->m, x);
  if (calx_tensor_rank(x) < 3 || calx_tensor_dim(x, 1) % s->factor != 0) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "(N, %lld C, …)", (long long)s->factor);
    return cx_nn_module_refuse(s->m, x, wanted);
  }
  calx_dims shape = calx_tensor_shape(x);
  int64_t c = shape.values[1] / s->factor, rest = 1;
  for (size_t i = 2; i < shape.count; i++) rest *= shape.values[i];
  x = calx_reshape(x, CALX_SHAPE(shape.values[0], s->factor, c, rest));
  return calx_reshape(calx_permute(x, CALX_DIMS(0, 2, 1, 3)), shape);
}

#define SHUFFLE(name, kind, function, argument)                            \
  static void name##_repr(const void *state, cx_text *out)                 \
  {                                                                        \
    cx_text_format(out, argument "=%lld",                                  \
                   (long long)((const shuffle *)state)->factor);           \
  }                                                                        \
  calx_module *calx_nn_##name(calx_module *parent, const char *child,      \
                              int64_t factor)                              \
  {                                                                        \
    static const cx_nn_layer layer = { kind, #name, function, name##_repr, \
                                       NULL };                             \
    void *state;                                                           \
    calx_module *m =                                                       \
        cx_nn_make(&layer, parent, child, sizeof(shuffle), &state);        \
    if (state == NULL) return m;                                           \
    ((shuffle *)state)->factor = factor;                                   \
    if (factor <= 0 || factor > INT32_MAX) {                               \
      cx_nn_module_fail(m, cx_invalid("%s: " argument " %lld, a positive " \
                                      "number is wanted",                  \
                                      #name, (long long)factor));          \
    }                                                                      \
    return m;                                                              \
  }
SHUFFLE(pixel_shuffle, "PixelShuffle", shuffle_forward, "upscale_factor")
SHUFFLE(pixel_unshuffle, "PixelUnshuffle", unshuffle_forward,
        "downscale_factor")
SHUFFLE(channel_shuffle, "ChannelShuffle", channels_forward, "groups")
