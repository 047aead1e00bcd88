// nn/resize: torch.nn.Upsample, Unfold, Fold, PixelShuffle, PixelUnshuffle,
// ChannelShuffle.
#include <math.h>
#include <string.h>

#include "nn/layer.h"
#include "ops/ops.h"

// ---- upsample ---------------------------------------------------------------

typedef struct upsample {
  calx_module *m;
  calx_nn_upsample_options o;
} upsample;

static calx_tensor *upsample_forward(void *self, calx_tensor *x)
{
  const upsample *u = self;
  calx_interpolate_options o = { .size = sizeof o,
                                 .mode = u->o.mode,
                                 .align_corners = u->o.align_corners,
                                 .recompute_scale_factor =
                                     u->o.recompute_scale_factor };
  memcpy(o.scale_factor, u->o.scale_factor, sizeof o.scale_factor);
  if (!cx_nn_has_shape(x)) return cx_nn_unusable(u->m, x);
  size_t rank = calx_tensor_rank(x), given = u->o.output_size.count;
  if (rank < 3 || rank > 5 || (given > 1 && given != rank - 2)) {
    return cx_nn_module_refuse(u->m, x,
                               given == 3   ? "(N, C, D, H, W)"
                               : given == 2 ? "(N, C, H, W)"
                                            : "(N, C, …)");
  }
  calx_dims sizes = u->o.output_size;
  if (given == 1) sizes.count = rank - 2;
  for (size_t i = 1; i < sizes.count && given == 1; i++) {
    sizes.values[i] = sizes.values[0];
  }
  return calx_interpolate_with(x, sizes, &o);
}

static void upsample_repr(const void *state, cx_text *out)
{
  static const char *const modes[] = { "nearest", "linear", "bicubic", "area",
                                       "nearest-exact" };
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
  if ((unsigned)o->mode <= CALX_INTERPOLATE_NEAREST_EXACT) return NULL;
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

// ---- fold -------------------------------------------------------------------

typedef struct fold_layer {
  calx_module *m;
  calx_dims output, kernel;
  calx_fold_options o;
} fold_layer;

static calx_tensor *fold_forward(void *self, calx_tensor *x)
{
  const fold_layer *f = self;
  return calx_fold_with(x, f->output, f->kernel, &f->o);
}

static void fold_repr(const void *state, cx_text *out)
{
  const fold_layer *f = state;
  const struct {
    const char *name;
    const int64_t *list;
    size_t count;
    int64_t usual;
  } parts[] = { { "output_size=", f->output.values, f->output.count, 0 },
                { ", kernel_size=", f->kernel.values, f->kernel.count, 0 },
                { ", dilation=", f->o.dilation, 2, 1 },
                { ", padding=", f->o.padding, 2, 0 },
                { ", stride=", f->o.stride, 2, 1 } };
  for (int k = 0; k < 5; k++) {
    int64_t values[2];
    for (int i = 0; i < 2; i++) {
      values[i] = parts[k].count == 1
                      ? parts[k].list[0]
                      : cx_ops_pair(parts[k].list, i, parts[k].usual);
    }
    cx_text_append(out, parts[k].name);
    cx_nn_repr_sizes(out, values, 2);
  }
}

calx_module *calx_nn_fold_with(calx_module *parent, const char *name,
                               calx_dims output_size, calx_dims kernel_size,
                               const calx_fold_options *options)
{
  static const cx_nn_layer layer = { "Fold", "fold", fold_forward, fold_repr,
                                     NULL };
  void *state;
  calx_module *m = cx_nn_make(&layer, parent, name, sizeof(fold_layer), &state);
  fold_layer *f = state;
  if (f == NULL) return m;
  f->output = output_size;
  f->kernel = kernel_size;
  cx_nn_module_fail(m, cx_options_take("fold", options, &f->o, sizeof f->o));
  f->o.size = sizeof f->o;
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
  return calx_pixel_unshuffle(x, r);
}

static calx_tensor *channels_forward(void *self, calx_tensor *x)
{
  const shuffle *s = self;
  if (!cx_nn_has_shape(x)) return cx_nn_unusable(s->m, x);
  if (calx_tensor_rank(x) < 3 || calx_tensor_dim(x, 1) % s->factor != 0) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "(N, %lld C, …)", (long long)s->factor);
    return cx_nn_module_refuse(s->m, x, wanted);
  }
  return calx_channel_shuffle(x, s->factor);
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
