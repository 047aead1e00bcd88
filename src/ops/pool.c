// ops/pool: max pooling: shapes, gradients, options.
#include <string.h>

#include "ops/autocast.h"
#include "ops/pool.h"

// ---- shape rules: x (N, C, H, W) --------------------------------------------

static calx_status *infer_pool(cx_graph_node *node)
{
  const cx_ops_pool_attrs *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  for (int i = 0; i < 2; i++) {
    out->dims[2 + i] = cx_ops_pool_windows(a, i, out->dims[2 + i]);
  }
  return NULL;
}

static calx_status *infer_indices(cx_graph_node *node)
{
  CALX_TRY(infer_pool(node));
  node->out[0].shape.dtype = CALX_I64;
  return NULL;
}

// ---- gradients --------------------------------------------------------------

static calx_tensor *with(const cx_graph_op *op, const cx_lazy_tape *t,
                         calx_tensor *g)
{
  calx_tensor *in[2] = { cx_lazy_tape_in(t, 0), g };
  return cx_ops_record(op, in, 2, t->attrs);
}

static void grad_max_pool2d(cx_lazy_tape *t)
{
  t->in_grads[0] = with(&cx_ops_max_pool2d_backward, t, t->out_grads[0]);
}

// The result is linear in g. It does not depend on x but for the positions of
// the maxima, whose derivative is 0.
static void grad_backward(cx_lazy_tape *t)
{
  if (cx_tape_needs(t, 0))
    t->in_grads[0] = cx_ops_zeros_like(cx_lazy_tape_in(t, 0));
  if (cx_tape_needs(t, 1)) {
    t->in_grads[1] = with(&cx_ops_max_pool2d_pick, t, t->out_grads[0]);
  }
}

static void grad_pick(cx_lazy_tape *t)
{
  if (cx_tape_needs(t, 0))
    t->in_grads[0] = cx_ops_zeros_like(cx_lazy_tape_in(t, 0));
  if (cx_tape_needs(t, 1)) {
    t->in_grads[1] = with(&cx_ops_max_pool2d_backward, t, t->out_grads[0]);
  }
}

static void describe_pool(const void *attrs, cx_text *out)
{
  const cx_ops_pool_attrs *a = attrs;
  cx_text_format(out,
                 "kernel (%lld, %lld), stride (%lld, %lld), padding (%lld, "
                 "%lld), dilation (%lld, %lld)",
                 (long long)a->kernel[0], (long long)a->kernel[1],
                 (long long)a->stride[0], (long long)a->stride[1],
                 (long long)a->low[0], (long long)a->low[1],
                 (long long)a->dilation[0], (long long)a->dilation[1]);
}

#define OP(op, rule, gradient, emission)                                   \
  CX_OPS_DEFINE(op, .attr_size = sizeof(cx_ops_pool_attrs), .infer = rule, \
                .grad = gradient, .emit = emission, .describe = describe_pool)

OP(max_pool2d, infer_pool, grad_max_pool2d, cx_ops_pool_emit)
OP(max_pool2d_indices, infer_indices, NULL, cx_ops_pool_emit_indices)
OP(max_pool2d_backward, cx_ops_infer_same, grad_backward,
   cx_ops_pool_emit_backward)
OP(max_pool2d_pick, infer_pool, grad_pick, cx_ops_pool_emit_pick)

// ---- entry ------------------------------------------------------------------

// With ceil_mode a last window may begin inside the image or its left padding
// and run over the end (PyTorch's rule).
static void add_ceil(cx_ops_pool_attrs *a, int i, int64_t in)
{
  int64_t room = in + 2 * a->low[i] - a->dilation[i] * (a->kernel[i] - 1) - 1;
  int64_t n = (room + a->stride[i] - 1) / a->stride[i] + 1;
  if ((n - 1) * a->stride[i] >= in + a->low[i]) n--;
  int64_t reach = (n - 1) * a->stride[i] + a->dilation[i] * (a->kernel[i] - 1);
  int64_t high = reach + 1 - in - a->low[i];
  if (high > a->high[i]) a->high[i] = high;
}

// False: `why` says what is wrong.
static bool read_options(const calx_max_pool2d_options *o, int64_t kernel,
                         const cx_graph_shape *x, cx_ops_pool_attrs *a,
                         cx_text *why)
{
  static const calx_max_pool2d_options none = { .size = sizeof none };
  if (o == NULL) o = &none;
  memset(a, 0, sizeof *a);
  if (o->size > sizeof *o) {
    cx_text_append(why, "its options are of a newer version");
    return false;
  }
  a->kernel[0] = kernel;
  a->kernel[1] = o->kernel_width == 0 ? kernel : o->kernel_width;
  for (int i = 0; i < 2; i++) {
    a->stride[i] = cx_ops_pair(o->stride, i, a->kernel[i]);
    a->dilation[i] = cx_ops_pair(o->dilation, i, 1);
    a->low[i] = a->high[i] = cx_ops_pair(o->padding, i, 0);
    int64_t in = x->dims[x->rank - 2 + (uint32_t)i];
    if (!cx_ops_in_range(why, "kernel_size", a->kernel[i], 1, INT32_MAX) ||
        !cx_ops_in_range(why, "stride", a->stride[i], 1, INT32_MAX) ||
        !cx_ops_in_range(why, "dilation", a->dilation[i], 1, INT32_MAX) ||
        !cx_ops_in_range(why, "padding, at most half the kernel,", a->low[i], 0,
                         a->kernel[i] / 2)) {
      return false;
    }
    if (o->ceil_mode) add_ceil(a, i, in);
    if (in + a->low[i] + a->high[i] < a->dilation[i] * (a->kernel[i] - 1) + 1) {
      cx_text_format(why,
                     "the window, of %lld %s with its dilation, is larger than "
                     "the padded image",
                     (long long)(a->dilation[i] * (a->kernel[i] - 1) + 1),
                     i == 0 ? "rows" : "columns");
      return false;
    }
  }
  return true;
}

calx_tensor *calx_max_pool2d_with(calx_tensor *x, int64_t kernel_size,
                                  const calx_max_pool2d_options *o)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x);
  calx_tensor *bad;
  calx_tensor **indices = o != NULL ? o->out_indices : NULL;
  if (indices != NULL) *indices = NULL;
  if (cx_ops_unfit("max_pool2d", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if ((s->rank != 4 && s->rank != 3) || s->dtype == CALX_BOOL) {
    return cx_ops_invalid(
        "max_pool2d: images (N,C,H,W) or (C,H,W) are wanted, got %s",
        cx_graph_shape_str(s));
  }
  cx_ops_pool_attrs a;
  cx_text why = { 0 };
  if (!read_options(o, kernel_size, s, &a, &why)) {
    bad = cx_ops_invalid("max_pool2d: %s; got %s", cx_text_str(&why),
                         cx_graph_shape_str(s));
    cx_text_free(&why);
    return bad;
  }
  bool single = s->rank == 3;
  if (single) x = calx_unsqueeze(x, 0);
  calx_tensor *y = cx_ops_record(&cx_ops_max_pool2d, &x, 1, &a);
  if (indices != NULL) {
    calx_tensor *i = cx_ops_record(&cx_ops_max_pool2d_indices, &x, 1, &a);
    *indices = single && !cx_lazy_tensor_poisoned(i) ? calx_squeeze(i, 0) : i;
  }
  return single && !cx_lazy_tensor_poisoned(y) ? calx_squeeze(y, 0) : y;
}
