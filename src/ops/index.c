// ops/index: parts of tensors. A start is a slot that is a constant of the
// first program, so that a compiler can use it. The first other start compiles
// a second program, in which it is a parameter; further ones compile nothing.
#include <string.h>

#include "base/dtype.h"
#include "ops/ops.h"

typedef struct slice_attrs {
  int64_t dim;
  int64_t count;  // elements taken
  int64_t step;
  int64_t full;  // size of the dimension
} slice_attrs;

// Elements from the first to the last that is taken.
static int64_t span(const slice_attrs *a)
{
  return a->count == 0 ? 0 : (a->count - 1) * a->step + 1;
}

static calx_status *infer_slice(cx_graph_node *node)
{
  const slice_attrs *a = node->attrs;
  node->out[0].shape = *cx_in(node, 0);
  node->out[0].shape.dims[a->dim] = a->count;
  return NULL;
}

static calx_status *infer_slice_backward(cx_graph_node *node)
{
  const slice_attrs *a = node->attrs;
  node->out[0].shape = *cx_in(node, 0);
  node->out[0].shape.dims[a->dim] = a->full;
  return NULL;
}

static calx_tensor *record(const cx_graph_op *op, calx_tensor *x,
                           const slice_attrs *a, int64_t start)
{
  cx_graph_slot slot = { .dtype = CALX_I64,
                         .promotable = true,
                         .value.integer = start };
  cx_lazy_call call = {
    .op = op, .in = &x, .n_in = 1, .attrs = a, .slots = &slot, .n_slots = 1
  };
  return cx_lazy_apply(&call, NULL);
}

static void grad_slice(cx_lazy_tape *t)
{
  t->in_grads[0] = record(&cx_ops_slice_backward, t->out_grads[0], t->attrs,
                          t->node->slots[0].value.integer);
}

static void grad_slice_backward(cx_lazy_tape *t)
{
  t->in_grads[0] = record(&cx_ops_slice, t->out_grads[0], t->attrs,
                          t->node->slots[0].value.integer);
}

// ---- emission ---------------------------------------------------------------

// The start index of each dimension: 0 in all but the sliced one.
static void starts(const cx_graph_emit *e, const slice_attrs *a,
                   const cx_graph_shape *s, cx_hlo_value **out)
{
  const cx_hlo_type index = { .elem = cx_hlo_elem_of(
                                  cx_ops_index_dtype(s->dims[a->dim])) };
  for (uint32_t i = 0; i < s->rank; i++) {
    out[i] = i == a->dim ? cx_hlo_convert(e->b, e->slots[0], index.elem)
                         : cx_hlo_splat_int(e->b, index, 0);
  }
}

static void emit_slice(cx_graph_emit *e)
{
  const slice_attrs *a = e->attrs;
  const cx_graph_shape *in = cx_in(e->node, 0);
  int64_t start[CALX_MAX_RANK] = { 0 }, limit[CALX_MAX_RANK];
  int64_t stride[CALX_MAX_RANK];
  cx_hlo_value *x = e->in[0];
  for (uint32_t i = 0; i < in->rank; i++) {
    limit[i] = in->dims[i];
    stride[i] = 1;
  }
  stride[a->dim] = a->step;
  limit[a->dim] = span(a);
  if (e->slots[0] != NULL) {
    cx_hlo_value *at[CALX_MAX_RANK];
    starts(e, a, in, at);
    x = cx_hlo_dynamic_slice(e->b, x, at, limit);
  } else {
    start[a->dim] = e->node->slots[0].value.integer;
    limit[a->dim] += start[a->dim];
  }
  e->out[0] = cx_hlo_slice(e->b, x, start, limit, stride);
}

static void emit_slice_backward(cx_graph_emit *e)
{
  const slice_attrs *a = e->attrs;
  const cx_graph_shape *out = &e->node->out[0].shape;
  int64_t low[CALX_MAX_RANK] = { 0 }, high[CALX_MAX_RANK] = { 0 };
  int64_t interior[CALX_MAX_RANK] = { 0 };
  cx_hlo_elem elem = cx_hlo_elem_of(out->dtype);
  cx_hlo_value *zero = cx_hlo_splat(e->b, (cx_hlo_type){ .elem = elem }, 0);
  interior[a->dim] = a->step - 1;
  if (e->slots[0] == NULL) {
    low[a->dim] = e->node->slots[0].value.integer;
    high[a->dim] = a->full - low[a->dim] - span(a);
    e->out[0] = cx_hlo_pad(e->b, e->in[0], zero, low, high, interior);
    return;
  }
  cx_hlo_value *at[CALX_MAX_RANK];
  starts(e, a, out, at);
  cx_hlo_value *g = cx_hlo_pad(e->b, e->in[0], zero, low, high, interior);
  e->out[0] = cx_hlo_dynamic_update_slice(
      e->b, cx_ops_emit_splat(e, elem, out, 0), g, at);
}

static void describe_slice(const void *attrs, cx_text *out)
{
  const slice_attrs *a = attrs;
  cx_text_format(out, "%lld elements of dimension %lld in steps of %lld",
                 (long long)a->count, (long long)a->dim, (long long)a->step);
}

CX_OPS_DEFINE(slice, .attr_size = sizeof(slice_attrs), .infer = infer_slice,
              .grad = grad_slice, .emit = emit_slice,
              .describe = describe_slice, .takes_complex = true)

CX_OPS_DEFINE(slice_backward, .attr_size = sizeof(slice_attrs),
              .infer = infer_slice_backward, .grad = grad_slice_backward,
              .emit = emit_slice_backward, .describe = describe_slice,
              .takes_complex = true)

// ---- entries ----------------------------------------------------------------

// A Python index into n elements: a negative one counts from the end, and the
// result is clamped to [0, n].
static int64_t clamp_index(int64_t i, int64_t n)
{
  if (i < 0) i += n;
  if (i < 0) return 0;
  return i > n ? n : i;
}

static calx_tensor *no_dims(const char *op, const cx_graph_shape *s)
{
  return cx_ops_invalid("%s: %s is a scalar, without dims", op,
                        cx_graph_shape_str(s));
}

calx_tensor *calx_slice(calx_tensor *x, int dim, int64_t start, int64_t end,
                        int64_t step)
{
  calx_tensor *bad;
  if (cx_ops_unfit("slice", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  uint32_t d;
  if (s->rank == 0) return no_dims("slice", s);
  if (!cx_ops_dim(dim, s->rank, &d)) {
    return cx_ops_no_dim("slice", "dim", dim, s->rank, s);
  }
  if (step < 1) {
    return cx_ops_invalid("slice: step %lld for %s, at least 1 is wanted",
                          (long long)step, cx_graph_shape_str(s));
  }
  int64_t n = s->dims[d];
  start = clamp_index(start, n);
  end = clamp_index(end, n);
  if (start == 0 && end == n && step == 1) return x;
  int64_t count = end <= start ? 0 : (end - start - 1) / step + 1;
  if (count == 0) start = 0;
  slice_attrs a = { d, count, step, n };
  return record(&cx_ops_slice, x, &a, start);
}

calx_tensor *calx_select(calx_tensor *x, int dim, int64_t index)
{
  calx_tensor *bad;
  if (cx_ops_unfit("select", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  uint32_t d;
  if (s->rank == 0) return no_dims("select", s);
  if (!cx_ops_dim(dim, s->rank, &d)) {
    return cx_ops_no_dim("select", "dim", dim, s->rank, s);
  }
  int64_t n = s->dims[d];
  if (index < -n || index >= n) {
    return cx_ops_poison(CALX_OUT_OF_RANGE,
                         "select: index %lld is out of range: dim %u of %s has "
                         "%lld to %lld",
                         (long long)index, d, cx_graph_shape_str(s),
                         (long long)-n, (long long)n - 1);
  }
  if (index < 0) index += n;
  return calx_squeeze(calx_slice(x, (int)d, index, index + 1, 1), (int)d);
}
