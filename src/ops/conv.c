// ops/conv: convolution over one to three spatial dimensions and its two
// gradients, each an op. Their gradients are these three ops again, so
// derivatives of any order exist.
//
// All three are one stablehlo.convolution. With s the stride, d the dilation,
// p the padding, K the kernel's and H the image's size, O the result's:
//   conv         out = x * w
//   conv_input   dx: the gradient, dilated by s, with the flipped kernel;
//                padded to give H again. A transposed convolution is this.
//   conv_weight  dw: batch and features of x and the gradient are exchanged;
//                stride d, the gradient dilated by s
#include "ops/conv.h"
#include "ops/autocast.h"

#include <string.h>

#include "base/dtype.h"
#include "ops/composite.h"

typedef struct conv_attrs {
  int64_t n;  // spatial dimensions
  int64_t stride[CX_OPS_MOST_SPATIAL], dilation[CX_OPS_MOST_SPATIAL];
  int64_t low[CX_OPS_MOST_SPATIAL], high[CX_OPS_MOST_SPATIAL];  // padding
  int64_t groups;
  int64_t size[CX_OPS_MOST_SPATIAL];  // of the result's spatial dimensions;
                                      // conv: 0, it follows
} conv_attrs;

static const int64_t spatial[CX_OPS_MOST_SPATIAL] = { 2, 3, 4 };

// ---- shape rules ------------------------------------------------------------

static int64_t result_size(const conv_attrs *a, int i, int64_t in, int64_t k)
{
  int64_t room = in + a->low[i] + a->high[i] - a->dilation[i] * (k - 1) - 1;
  return room < 0 ? -1 : room / a->stride[i] + 1;
}

// x (N, C, …), w (O, C/groups, …)
static calx_status *infer_conv(cx_graph_node *node)
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
  for (int i = 0; i < a->n; i++) {
    out->dims[2 + i] = result_size(a, i, x->dims[2 + i], w->dims[2 + i]);
    if (out->dims[2 + i] < 1) {
      return cx_ops_error(
          node,
          "the filter, of %lld %s with its dilation, is larger "
          "than the padded image, which has %lld",
          (long long)(a->dilation[i] * (w->dims[2 + i] - 1) + 1),
          i + 1 == a->n   ? "columns"
          : i + 2 == a->n ? "rows"
                          : "planes",
          (long long)(x->dims[2 + i] + a->low[i] + a->high[i]));
    }
  }
  return NULL;
}

// g (N, O, …), w (O, C/groups, …) -> (N, C, …)
static calx_status *infer_conv_input(cx_graph_node *node)
{
  const conv_attrs *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  out->dims[1] = cx_in(node, 1)->dims[1] * a->groups;
  for (int i = 0; i < a->n; i++) out->dims[2 + i] = a->size[i];
  return NULL;
}

// x (N, C, …), g (N, O, …) -> (O, C/groups, …)
static calx_status *infer_conv_weight(cx_graph_node *node)
{
  const conv_attrs *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  out->dims[0] = cx_in(node, 1)->dims[1];
  out->dims[1] = cx_in(node, 0)->dims[1] / a->groups;
  for (int i = 0; i < a->n; i++) out->dims[2 + i] = a->size[i];
  return NULL;
}

// ---- gradients --------------------------------------------------------------

static calx_tensor *convolve(calx_tensor *x, calx_tensor *w, conv_attrs a)
{
  calx_tensor *in[2] = { x, w };
  memset(a.size, 0, sizeof a.size);
  return cx_ops_record(&cx_ops_conv, in, 2, &a);
}

// A result with the spatial sizes of `like`.
static calx_tensor *to_input(calx_tensor *g, calx_tensor *w, conv_attrs a,
                             const cx_graph_shape *like)
{
  calx_tensor *in[2] = { g, w };
  for (int i = 0; i < a.n; i++) a.size[i] = like->dims[2 + i];
  return cx_ops_record(&cx_ops_conv_input, in, 2, &a);
}

static calx_tensor *to_weight(calx_tensor *x, calx_tensor *g, conv_attrs a,
                              const cx_graph_shape *like)
{
  calx_tensor *in[2] = { x, g };
  for (int i = 0; i < a.n; i++) a.size[i] = like->dims[2 + i];
  return cx_ops_record(&cx_ops_conv_weight, in, 2, &a);
}

static void grad_conv(cx_lazy_tape *t)
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

static void grad_conv_input(cx_lazy_tape *t)
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

static void grad_conv_weight(cx_lazy_tape *t)
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

// (N, C, …) and (O, C, …) to (N, O, …).
static cx_hlo_conv_dims layout(const conv_attrs *a, const int64_t *padding)
{
  return (cx_hlo_conv_dims){ .n_spatial = (size_t)a->n,
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

static void emit_conv(cx_graph_emit *e)
{
  const conv_attrs *a = e->attrs;
  int64_t padding[2 * CX_OPS_MOST_SPATIAL];
  for (int i = 0; i < a->n; i++) {
    padding[2 * i] = a->low[i];
    padding[2 * i + 1] = a->high[i];
  }
  cx_hlo_conv_dims dims = layout(a, padding);
  e->out[0] = cx_hlo_convolution(e->b, e->in[0], e->in[1], &dims);
}

// (G*o, c, …) -> (o, G*c, …): what was the output of a group is now its input.
static cx_hlo_value *swap_groups(cx_graph_emit *e, cx_hlo_value *w,
                                 int64_t groups)
{
  cx_graph_shape s = *cx_in(e->node, 1);
  int64_t split[CALX_MAX_RANK + 1], order[CALX_MAX_RANK + 1];
  split[0] = groups;
  split[1] = s.dims[0] / groups;
  for (uint32_t i = 1; i < s.rank; i++) split[i + 1] = s.dims[i];
  for (uint32_t i = 0; i <= s.rank; i++) order[i] = i;
  order[0] = 1;
  order[1] = 0;
  w = cx_hlo_reshape(e->b, w, split, s.rank + 1);
  w = cx_hlo_transpose(e->b, w, order);
  s.dims[0] /= groups;
  s.dims[1] *= groups;
  return cx_hlo_reshape(e->b, w, s.dims, s.rank);
}

static void emit_conv_input(cx_graph_emit *e)
{
  const conv_attrs *a = e->attrs;
  const cx_graph_shape *g = cx_in(e->node, 0), *w = cx_in(e->node, 1);
  int64_t padding[2 * CX_OPS_MOST_SPATIAL];
  static const int64_t ones[CX_OPS_MOST_SPATIAL] = { 1, 1, 1 };
  for (int i = 0; i < a->n; i++) {
    int64_t reach = a->dilation[i] * (w->dims[2 + i] - 1);
    int64_t dilated = (g->dims[2 + i] - 1) * a->stride[i] + 1;
    padding[2 * i] = reach - a->low[i];
    padding[2 * i + 1] = a->size[i] + reach - padding[2 * i] - dilated;
  }
  cx_hlo_value *kernel = cx_hlo_reverse(e->b, e->in[1], spatial, (size_t)a->n);
  if (a->groups > 1) kernel = swap_groups(e, kernel, a->groups);
  // Ungrouped, (O, C, …) is read with its roles exchanged.
  cx_hlo_conv_dims dims = layout(a, padding);
  dims.kernel_output = 1;
  dims.kernel_input = 0;
  dims.strides = ones;
  dims.lhs_dilation = a->stride;
  e->out[0] = cx_hlo_convolution(e->b, e->in[0], kernel, &dims);
}

static void emit_conv_weight(cx_graph_emit *e)
{
  const conv_attrs *a = e->attrs;
  const cx_graph_shape *x = cx_in(e->node, 0), *g = cx_in(e->node, 1);
  int64_t padding[2 * CX_OPS_MOST_SPATIAL];
  for (int i = 0; i < a->n; i++) {
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

static void describe_list(const char *name, const int64_t *values, int64_t n,
                          cx_text *out)
{
  cx_text_format(out, "%s (", name);
  for (int64_t i = 0; i < n; i++) {
    cx_text_format(out, "%s%lld", i != 0 ? ", " : "", (long long)values[i]);
  }
  cx_text_append(out, "), ");
}

static void describe_conv(const void *attrs, cx_text *out)
{
  const conv_attrs *a = attrs;
  describe_list("stride", a->stride, a->n, out);
  describe_list("padding", a->low, a->n, out);
  describe_list("dilation", a->dilation, a->n, out);
  cx_text_format(out, "groups %lld", (long long)a->groups);
}

#define OP(op)                                                            \
  CX_OPS_DEFINE(op, .attr_size = sizeof(conv_attrs), .infer = infer_##op, \
                .grad = grad_##op, .emit = emit_##op,                     \
                .describe = describe_conv)

OP(conv)
OP(conv_input)
OP(conv_weight)

// ---- options ----------------------------------------------------------------

// False: `why` says what is wrong.
static bool read_options(const cx_ops_conv_options *o, const cx_graph_shape *w,
                         conv_attrs *a, cx_text *why)
{
  memset(a, 0, sizeof *a);
  a->n = o->n;
  a->groups = o->groups == 0 ? 1 : o->groups;
  if (!cx_ops_in_range(why, "groups", a->groups, 1, INT32_MAX)) return false;
  for (int i = 0; i < o->n; i++) {
    int64_t p = cx_ops_pair(o->padding, i, 0);
    bool same = p == CALX_PADDING_SAME && !o->transposed;
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

// Sets the result's sizes of a transposed convolution. False: `why` says what
// is wrong.
static bool transpose(const cx_ops_conv_options *o, const cx_graph_shape *x,
                      const cx_graph_shape *w, conv_attrs *a, cx_text *why)
{
  if (x->dims[1] != w->dims[0] || w->dims[0] % a->groups != 0) {
    cx_text_format(why,
                   "in %lld group(s) the filters want %lld channels, the "
                   "images have %lld",
                   (long long)a->groups, (long long)w->dims[0],
                   (long long)x->dims[1]);
    return false;
  }
  for (int i = 0; i < o->n; i++) {
    int64_t more = cx_ops_pair(o->output_padding, i, 0);
    int64_t most =
        a->stride[i] > a->dilation[i] ? a->stride[i] : a->dilation[i];
    if (!cx_ops_in_range(why, "output_padding, less than stride or dilation,",
                         more, 0, most - 1)) {
      return false;
    }
    a->size[i] = (x->dims[2 + i] - 1) * a->stride[i] - 2 * a->low[i] +
                 a->dilation[i] * (w->dims[2 + i] - 1) + more + 1;
    if (a->size[i] < 1) {
      cx_text_format(why, "the result would have size %lld",
                     (long long)a->size[i]);
      return false;
    }
  }
  return true;
}

// ---- entries ----------------------------------------------------------------

static calx_tensor *add_bias(const char *op, calx_tensor *y, calx_tensor *bias)
{
  const cx_graph_shape *b = cx_lazy_tensor_shape(bias),
                       *s = cx_lazy_tensor_shape(y);
  if (b->rank != 1 || b->dims[0] != s->dims[1]) {
    return cx_ops_invalid(
        "%s: the bias is %s, one number for each of %lld "
        "filters is wanted",
        op, cx_graph_shape_str(b), (long long)s->dims[1]);
  }
  int64_t dims[CALX_MAX_RANK];
  for (uint32_t i = 0; i < s->rank; i++) dims[i] = i == 1 ? b->dims[0] : 1;
  return cx_ops_plus(y, calx_reshape(bias, calx_dims_of(dims, s->rank)));
}

// Whether x and w are floating and have the ranks. False: *out is what the
// function returns.
static bool operands_fit(const cx_ops_conv_options *o, const cx_graph_shape *x,
                         const cx_graph_shape *w, calx_tensor **out)
{
  static const char *const sizes[] = { "L", "H,W", "D,H,W" };
  static const char *const kernels[] = { "K", "KH,KW", "KD,KH,KW" };
  const char *many = sizes[o->n - 1], *kernel = kernels[o->n - 1];
  if (x->dtype != w->dtype || !cx_dtype_is_float(x->dtype)) {
    *out = cx_ops_invalid(
        "%s: images and filters of one floating type are wanted, got %s and "
        "%s; convert one with calx_to_dtype",
        o->op, cx_graph_shape_str(x), cx_graph_shape_str(w));
    return false;
  }
  uint32_t rank = (uint32_t)o->n + 2;
  if ((x->rank == rank || x->rank + 1 == rank) && w->rank == rank) return true;
  *out = cx_ops_invalid(
      "%s: images (N,C,%s) or (C,%s) and filters (%s,%s) are "
      "wanted, got %s and %s",
      o->op, many, many, o->transposed ? "C,O" : "O,C", kernel,
      cx_graph_shape_str(x), cx_graph_shape_str(w));
  return false;
}

calx_tensor *cx_ops_convolve(calx_tensor *x, calx_tensor *w,
                             const cx_ops_conv_options *o)
{
  calx_tensor *bias = o->bias;
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x, &w, &bias);
  calx_tensor *in[3] = { x, w, bias }, *bad;
  if (cx_ops_unfit(o->op, in, in[2] != NULL ? 3 : 2, &bad)) return bad;
  const cx_graph_shape *sw = cx_lazy_tensor_shape(w);
  if (!operands_fit(o, cx_lazy_tensor_shape(x), sw, &bad)) return bad;
  bool single = cx_lazy_tensor_shape(x)->rank < sw->rank;
  if (single) x = calx_unsqueeze(x, 0);
  const cx_graph_shape *sx = cx_lazy_tensor_shape(x);
  conv_attrs a;
  cx_text why = { 0 };
  if (!read_options(o, sw, &a, &why) ||
      (o->transposed && !transpose(o, sx, sw, &a, &why))) {
    bad = cx_ops_invalid("%s: %s; got %s and %s", o->op, cx_text_str(&why),
                         cx_graph_shape_str(sx), cx_graph_shape_str(sw));
    cx_text_free(&why);
    return bad;
  }
  calx_tensor *y =
      o->transposed
          ? cx_ops_record(&cx_ops_conv_input, (calx_tensor *[]){ x, w }, 2, &a)
          : convolve(x, w, a);
  if (cx_lazy_tensor_poisoned(y)) return y;
  if (in[2] != NULL) y = add_bias(o->op, y, in[2]);
  return single && !cx_lazy_tensor_poisoned(y) ? calx_squeeze(y, 0) : y;
}
