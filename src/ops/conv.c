// ops/conv: two-dimensional convolution and its two gradients, each an op.
// Their gradients are these three ops again, so derivatives of any order exist.
//
// All three are one stablehlo.convolution. With s the stride, d the dilation,
// p the padding, K the kernel's and H the image's size, O the result's:
//   conv2d         out = x * w
//   conv2d_input   dx: the gradient, dilated by s, with the flipped kernel;
//                  padded to give H again
//   conv2d_weight  dw: batch and features of x and the gradient are exchanged;
//                  stride d, the gradient dilated by s
#include <string.h>

#include "base/dtype.h"
#include "ops/ops.h"

typedef struct conv_attrs {
  int64_t stride[2], dilation[2];
  int64_t low[2], high[2];  // padding
  int64_t groups;
  int64_t size[2];  // conv2d_input: H, W; conv2d_weight: KH, KW
} conv_attrs;

// ---- shape rules ------------------------------------------------------------

static int64_t result_size(const conv_attrs *a, int i, int64_t in, int64_t k)
{
  int64_t room = in + a->low[i] + a->high[i] - a->dilation[i] * (k - 1) - 1;
  return room < 0 ? -1 : room / a->stride[i] + 1;
}

// x (N, C, H, W), w (O, C/groups, KH, KW)
static calx_status *infer_conv2d(cx_graph_node *node)
{
  const conv_attrs *a = node->attrs;
  const cx_graph_shape *x = cx_in(node, 0), *w = cx_in(node, 1);
  cx_graph_shape *out = &node->out[0].shape;
  *out = *x;
  if (w->dims[0] % a->groups != 0) {
    return cx_ops_error(node, "%lld filters do not make %lld equal groups",
                        (long long)w->dims[0], (long long)a->groups);
  }
  if (x->dims[1] != w->dims[1] * a->groups) {
    return cx_ops_error(node,
                        "in %lld group(s) the filters want %lld channels, the "
                        "images have %lld",
                        (long long)a->groups,
                        (long long)(w->dims[1] * a->groups),
                        (long long)x->dims[1]);
  }
  out->dims[1] = w->dims[0];
  for (int i = 0; i < 2; i++) {
    out->dims[2 + i] = result_size(a, i, x->dims[2 + i], w->dims[2 + i]);
    if (out->dims[2 + i] < 1) {
      return cx_ops_error(
          node,
          "the filter, of %lld %s with its dilation, is larger "
          "than the padded image, which has %lld",
          (long long)(a->dilation[i] * (w->dims[2 + i] - 1) + 1),
          i == 0 ? "rows" : "columns",
          (long long)(x->dims[2 + i] + a->low[i] + a->high[i]));
    }
  }
  return NULL;
}

// g (N, O, OH, OW), w -> (N, C, H, W)
static calx_status *infer_conv2d_input(cx_graph_node *node)
{
  const conv_attrs *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  out->dims[1] = cx_in(node, 1)->dims[1] * a->groups;
  out->dims[2] = a->size[0];
  out->dims[3] = a->size[1];
  return NULL;
}

// x (N, C, H, W), g (N, O, OH, OW) -> (O, C/groups, KH, KW)
static calx_status *infer_conv2d_weight(cx_graph_node *node)
{
  const conv_attrs *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  out->dims[0] = cx_in(node, 1)->dims[1];
  out->dims[1] = cx_in(node, 0)->dims[1] / a->groups;
  out->dims[2] = a->size[0];
  out->dims[3] = a->size[1];
  return NULL;
}

// ---- gradients --------------------------------------------------------------

static calx_tensor *convolve(calx_tensor *x, calx_tensor *w, conv_attrs a)
{
  calx_tensor *in[2] = { x, w };
  a.size[0] = a.size[1] = 0;
  return cx_ops_record(&cx_ops_conv2d, in, 2, &a);
}

// For an image of the size of `like`.
static calx_tensor *to_input(calx_tensor *g, calx_tensor *w, conv_attrs a,
                             const cx_graph_shape *like)
{
  calx_tensor *in[2] = { g, w };
  a.size[0] = like->dims[2];
  a.size[1] = like->dims[3];
  return cx_ops_record(&cx_ops_conv2d_input, in, 2, &a);
}

static calx_tensor *to_weight(calx_tensor *x, calx_tensor *g, conv_attrs a,
                              const cx_graph_shape *like)
{
  calx_tensor *in[2] = { x, g };
  a.size[0] = like->dims[2];
  a.size[1] = like->dims[3];
  return cx_ops_record(&cx_ops_conv2d_weight, in, 2, &a);
}

static void grad_conv2d(cx_lazy_tape *t)
{
  const conv_attrs *a = t->attrs;
  calx_tensor *g = t->out_grads[0];
  if (cx_tape_needs(t, 0)) {
    t->in_grads[0] = to_input(g, cx_lazy_tape_in(t, 1), *a, cx_in(t->node, 0));
  }
  if (cx_tape_needs(t, 1)) {
    t->in_grads[1] = to_weight(cx_lazy_tape_in(t, 0), g, *a, cx_in(t->node, 1));
  }
}

static void grad_conv2d_input(cx_lazy_tape *t)
{
  const conv_attrs *a = t->attrs;
  calx_tensor *gg = t->out_grads[0];
  if (cx_tape_needs(t, 0)) {
    t->in_grads[0] = convolve(gg, cx_lazy_tape_in(t, 1), *a);
  }
  if (cx_tape_needs(t, 1)) {
    t->in_grads[1] =
        to_weight(gg, cx_lazy_tape_in(t, 0), *a, cx_in(t->node, 1));
  }
}

static void grad_conv2d_weight(cx_lazy_tape *t)
{
  const conv_attrs *a = t->attrs;
  calx_tensor *gw = t->out_grads[0];
  if (cx_tape_needs(t, 0)) {
    t->in_grads[0] = to_input(cx_lazy_tape_in(t, 1), gw, *a, cx_in(t->node, 0));
  }
  if (cx_tape_needs(t, 1)) {
    t->in_grads[1] = convolve(cx_lazy_tape_in(t, 0), gw, *a);
  }
}

// ---- emission ---------------------------------------------------------------

static const int64_t spatial[2] = { 2, 3 };

// (N, C, H, W) and (O, C, KH, KW) to (N, O, OH, OW).
static cx_hlo_conv_dims layout(const conv_attrs *a, const int64_t *padding)
{
  return (cx_hlo_conv_dims){ .n_spatial = 2,
                             .input_feature = 1,
                             .input_spatial = spatial,
                             .kernel_input = 1,
                             .kernel_spatial = spatial,
                             .output_feature = 1,
                             .output_spatial = spatial,
                             .strides = a->stride,
                             .padding = padding,
                             .rhs_dilation = a->dilation,
                             .feature_groups = a->groups };
}

static void emit_conv2d(cx_graph_emit *e)
{
  const conv_attrs *a = e->attrs;
  int64_t padding[4] = { a->low[0], a->high[0], a->low[1], a->high[1] };
  cx_hlo_conv_dims dims = layout(a, padding);
  e->out[0] = cx_hlo_convolution(e->b, e->in[0], e->in[1], &dims);
}

// (G*o, c, KH, KW) -> (o, G*c, KH, KW): what was the output of a group is now
// its input.
static cx_hlo_value *swap_groups(cx_graph_emit *e, cx_hlo_value *w,
                                 int64_t groups)
{
  const cx_graph_shape *s = cx_in(e->node, 1);
  int64_t o = s->dims[0] / groups, c = s->dims[1];
  int64_t split[5] = { groups, o, c, s->dims[2], s->dims[3] };
  int64_t order[5] = { 1, 0, 2, 3, 4 };
  int64_t joined[4] = { o, groups * c, s->dims[2], s->dims[3] };
  w = cx_hlo_reshape(e->b, w, split, 5);
  w = cx_hlo_transpose(e->b, w, order);
  return cx_hlo_reshape(e->b, w, joined, 4);
}

static void emit_conv2d_input(cx_graph_emit *e)
{
  const conv_attrs *a = e->attrs;
  const cx_graph_shape *g = cx_in(e->node, 0), *w = cx_in(e->node, 1);
  int64_t padding[4], ones[2] = { 1, 1 };
  for (int i = 0; i < 2; i++) {
    int64_t reach = a->dilation[i] * (w->dims[2 + i] - 1);
    int64_t dilated = (g->dims[2 + i] - 1) * a->stride[i] + 1;
    padding[2 * i] = reach - a->low[i];
    padding[2 * i + 1] = a->size[i] + reach - padding[2 * i] - dilated;
  }
  cx_hlo_value *kernel = cx_hlo_reverse(e->b, e->in[1], spatial, 2);
  if (a->groups > 1) kernel = swap_groups(e, kernel, a->groups);
  // Ungrouped, (O, C, …) is read with its roles exchanged.
  cx_hlo_conv_dims dims = layout(a, padding);
  dims.kernel_output = 1;
  dims.kernel_input = 0;
  dims.strides = ones;
  dims.lhs_dilation = a->stride;
  e->out[0] = cx_hlo_convolution(e->b, e->in[0], kernel, &dims);
}

static void emit_conv2d_weight(cx_graph_emit *e)
{
  const conv_attrs *a = e->attrs;
  const cx_graph_shape *x = cx_in(e->node, 0), *g = cx_in(e->node, 1);
  int64_t padding[4];
  for (int i = 0; i < 2; i++) {
    int64_t dilated = (g->dims[2 + i] - 1) * a->stride[i] + 1;
    int64_t reach = a->dilation[i] * (a->size[i] - 1);
    padding[2 * i] = a->low[i];
    padding[2 * i + 1] = reach + dilated - x->dims[2 + i] - a->low[i];
  }
  cx_hlo_conv_dims dims = layout(a, padding);
  dims.input_batch = dims.kernel_output = dims.output_batch = 1;
  dims.input_feature = dims.kernel_input = dims.output_feature = 0;
  dims.strides = a->dilation;
  dims.rhs_dilation = a->stride;
  dims.feature_groups = 0;
  dims.batch_groups = a->groups;
  e->out[0] = cx_hlo_convolution(e->b, e->in[0], e->in[1], &dims);
}

static void describe_conv(const void *attrs, cx_text *out)
{
  const conv_attrs *a = attrs;
  cx_text_format(out,
                 "stride (%lld, %lld), padding (%lld, %lld), dilation (%lld, "
                 "%lld), groups %lld",
                 (long long)a->stride[0], (long long)a->stride[1],
                 (long long)a->low[0], (long long)a->low[1],
                 (long long)a->dilation[0], (long long)a->dilation[1],
                 (long long)a->groups);
}

#define OP(op)                                                            \
  CX_OPS_DEFINE(op, .attr_size = sizeof(conv_attrs), .infer = infer_##op, \
                .grad = grad_##op, .emit = emit_##op,                     \
                .describe = describe_conv)

OP(conv2d)
OP(conv2d_input)
OP(conv2d_weight)

// ---- entry ------------------------------------------------------------------

// False: `why` says what is wrong.
static bool read_options(const calx_conv2d_options *o, const cx_graph_shape *w,
                         conv_attrs *a, cx_text *why)
{
  static const calx_conv2d_options none = { .size = sizeof none };
  if (o == NULL) o = &none;
  memset(a, 0, sizeof *a);
  a->groups = o->groups == 0 ? 1 : o->groups;
  if (o->size > sizeof *o) {
    cx_text_append(why, "its options are of a newer version");
    return false;
  }
  if (!cx_ops_in_range(why, "groups", a->groups, 1, INT32_MAX)) return false;
  for (int i = 0; i < 2; i++) {
    int64_t p = cx_ops_pair(o->padding, i, 0);
    bool same = p == CALX_PADDING_SAME;
    a->stride[i] = cx_ops_pair(o->stride, i, 1);
    a->dilation[i] = cx_ops_pair(o->dilation, i, 1);
    if (!cx_ops_in_range(why, "stride", a->stride[i], 1, INT32_MAX) ||
        !cx_ops_in_range(why, "dilation", a->dilation[i], 1, INT32_MAX) ||
        (!same && !cx_ops_in_range(why, "padding", p, 0, INT32_MAX))) {
      return false;
    }
    int64_t total = a->dilation[i] * (w->dims[2 + i] - 1);
    a->low[i] = same ? total / 2 : p;
    a->high[i] = same ? total - total / 2 : p;
    if (same && a->stride[i] != 1) {
      cx_text_format(why, "padding 'same' wants stride 1, got %lld",
                     (long long)a->stride[i]);
      return false;
    }
  }
  return true;
}

static calx_tensor *add_bias(calx_tensor *y, calx_tensor *bias)
{
  const cx_graph_shape *b = cx_lazy_tensor_shape(bias);
  if (b->rank != 1 || b->dims[0] != cx_lazy_tensor_shape(y)->dims[1]) {
    return cx_ops_invalid(
        "conv2d: the bias is %s, one number for each of %lld filters is wanted",
        cx_graph_shape_str(b), (long long)cx_lazy_tensor_shape(y)->dims[1]);
  }
  int64_t dims[4] = { 1, b->dims[0], 1, 1 };
  return calx_add_with(y, calx_reshape(bias, calx_dims_of(dims, 4)), NULL);
}

calx_tensor *calx_conv2d_with(calx_tensor *x, calx_tensor *w,
                              const calx_conv2d_options *o)
{
  calx_tensor *in[3] = { x, w, o != NULL ? o->bias : NULL }, *bad;
  if (cx_ops_unfit("conv2d", in, in[2] != NULL ? 3 : 2, &bad)) return bad;
  const cx_graph_shape *sx = cx_lazy_tensor_shape(x),
                       *sw = cx_lazy_tensor_shape(w);
  if (sx->dtype != sw->dtype || !cx_dtype_is_float(sx->dtype)) {
    return cx_ops_poison(
        CALX_INVALID_ARGUMENT,
        "conv2d: images and filters of one floating type are "
        "wanted, got %s and %s; convert one with calx_to_dtype",
        cx_graph_shape_str(sx), cx_graph_shape_str(sw));
  }
  if ((sx->rank != 4 && sx->rank != 3) || sw->rank != 4) {
    return cx_ops_invalid(
        "conv2d: images (N,C,H,W) or (C,H,W) and filters (O,C,KH,KW) are "
        "wanted, got %s and %s",
        cx_graph_shape_str(sx), cx_graph_shape_str(sw));
  }
  conv_attrs a;
  cx_text why = { 0 };
  if (!read_options(o, sw, &a, &why)) {
    bad = cx_ops_invalid("conv2d: %s; got %s and %s", cx_text_str(&why),
                         cx_graph_shape_str(sx), cx_graph_shape_str(sw));
    cx_text_free(&why);
    return bad;
  }
  bool single = sx->rank == 3;
  calx_tensor *y = convolve(single ? calx_unsqueeze(x, 0) : x, w, a);
  if (cx_lazy_tensor_poisoned(y)) return y;
  if (in[2] != NULL) y = add_bias(y, in[2]);
  return single && !cx_lazy_tensor_poisoned(y) ? calx_squeeze(y, 0) : y;
}
