// ops/window_sum: the sum of each window, for average pools. Its gradient is a
// window sum again: of the gradient dilated by the stride, with windows as far
// apart as x was dilated.
#include "ops/window_sum.h"

#include <string.h>

static calx_status *infer_window_sum(cx_graph_node *node)
{
  const cx_ops_windows *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  for (int i = 0; i < a->n; i++) {
    int64_t size = (out->dims[2 + i] - 1) * a->dilation[i] + 1;
    size += a->low[i] + a->high[i] - a->window[i];
    out->dims[2 + i] = size < 0 ? 0 : size / a->stride[i] + 1;
    if (size >= 0) continue;
    return cx_ops_error(
        node,
        "the window, of %lld along dimension %d, is larger than "
        "the padded image",
        (long long)a->window[i], 2 + i);
  }
  return NULL;
}

static void grad_window_sum(cx_lazy_tape *t)
{
  const cx_ops_windows *a = t->attrs;
  const cx_graph_shape *in = cx_in(t->node, 0), *out = &t->node->out[0].shape;
  cx_ops_windows back = *a;
  for (int i = 0; i < a->n; i++) {
    back.stride[i] = a->dilation[i];
    back.dilation[i] = a->stride[i];
    back.low[i] = a->window[i] - 1 - a->low[i];
    int64_t whole = (in->dims[2 + i] - 1) * a->dilation[i] + a->window[i];
    int64_t dilated = (out->dims[2 + i] - 1) * a->stride[i] + 1;
    back.high[i] = whole - dilated - back.low[i];
  }
  t->in_grads[0] =
      cx_ops_record(&cx_ops_window_sum, &t->out_grads[0], 1, &back);
}

static void emit_window_sum(cx_graph_emit *e)
{
  const cx_ops_windows *a = e->attrs;
  int64_t dims[CALX_MAX_RANK], strides[CALX_MAX_RANK], base[CALX_MAX_RANK];
  int64_t padding[2 * CALX_MAX_RANK] = { 0 };
  for (int i = 0; i < 2 + a->n; i++) {
    bool outer = i < 2;
    dims[i] = outer ? 1 : a->window[i - 2];
    strides[i] = outer ? 1 : a->stride[i - 2];
    base[i] = outer ? 1 : a->dilation[i - 2];
    padding[2 * i] = outer ? 0 : a->low[i - 2];
    padding[2 * i + 1] = outer ? 0 : a->high[i - 2];
  }
  cx_hlo_window w = { .dimensions = dims,
                      .strides = strides,
                      .base_dilations = base,
                      .padding = padding };
  calx_dtype dtype = cx_in(e->node, 0)->dtype;
  cx_hlo_elem wide = cx_ops_emit_wide(dtype);
  cx_hlo_value *zero = cx_hlo_splat(e->b, (cx_hlo_type){ .elem = wide }, 0);
  cx_hlo_value *sum = cx_hlo_reduce_window_with(
      e->b, CX_HLO_OP_ADD, cx_ops_emit_cast(e, e->in[0], wide), zero, &w);
  e->out[0] = cx_ops_emit_cast(e, sum, cx_hlo_elem_of(dtype));
}

static void describe_window_sum(const void *attrs, cx_text *out)
{
  const cx_ops_windows *a = attrs;
  for (int i = 0; i < a->n; i++) {
    cx_text_format(out, "%s%lld by %lld", i != 0 ? ", " : "windows ",
                   (long long)a->window[i], (long long)a->stride[i]);
  }
}

CX_OPS_DEFINE(window_sum, .attr_size = sizeof(cx_ops_windows),
              .infer = infer_window_sum, .grad = grad_window_sum,
              .emit = emit_window_sum, .describe = describe_window_sum)
