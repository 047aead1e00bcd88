// ops/shape: the same elements in another shape or order.
#include <string.h>

#include "base/dtype.h"
#include "ops/ops.h"

static void describe_shape(const void *attrs, cx_text *out)
{
  cx_graph_shape_print(out, attrs);
}

// The requested sizes with the operand's element type; the node's attributes
// hold both.
static cx_graph_shape wanted(const calx_tensor *x, calx_dims dims)
{
  cx_graph_shape s;
  memset(&s, 0, sizeof s);
  s.dtype = cx_lazy_tensor_shape(x)->dtype;
  s.rank = (uint32_t)dims.count;
  for (size_t i = 0; i < dims.count; i++) s.dims[i] = dims.values[i];
  return s;
}

static calx_tensor *too_many(const char *op, calx_dims dims)
{
  return cx_ops_invalid("%s: rank %zu, at most %d are possible", op, dims.count,
                        CALX_MAX_RANK);
}

// ---- reshape ----------------------------------------------------------------

static calx_status *infer_reshape(cx_graph_node *node)
{
  const cx_graph_shape *in = cx_in(node, 0), *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *a;
  int64_t known = 1, all = cx_graph_shape_numel(in);
  int free_dim = -1;
  for (uint32_t i = 0; i < out->rank; i++) {
    if (out->dims[i] == -1 && free_dim < 0) {
      free_dim = (int)i;
    } else if (out->dims[i] < 0 ||
               __builtin_mul_overflow(known, out->dims[i], &known)) {
      return cx_ops_error(
          node,
          "%s is no shape: sizes are 0 or more, and one of them "
          "may be -1",
          cx_graph_shape_str(a));
    }
  }
  if (free_dim >= 0 && known != 0 && all % known == 0) {
    out->dims[free_dim] = all / known;
    known = all;
  }
  if (known != all || (free_dim >= 0 && out->dims[free_dim] < 0)) {
    return cx_ops_error(node, "%s does not hold %lld elements%s",
                        cx_graph_shape_str(a), (long long)all,
                        all == 0 && free_dim >= 0
                            ? ", whatever -1 stands for; give its size"
                            : "");
  }
  return NULL;
}

static void grad_reshape(cx_lazy_tape *t)
{
  t->in_grads[0] = cx_ops_reshape_to(t->out_grads[0], cx_in(t->node, 0));
}

static void emit_reshape(cx_graph_emit *e)
{
  const cx_graph_shape *s = &e->node->out[0].shape;
  e->out[0] = cx_hlo_reshape(e->b, e->in[0], s->dims, s->rank);
}

CX_OPS_DEFINE(reshape, .attr_size = sizeof(cx_graph_shape),
              .infer = infer_reshape, .grad = grad_reshape,
              .emit = emit_reshape, .describe = describe_shape,
              .takes_complex = true)

calx_tensor *calx_reshape(calx_tensor *x, calx_dims dims)
{
  calx_tensor *bad;
  if (cx_ops_unfit("reshape", &x, 1, &bad)) return bad;
  if (dims.count > CALX_MAX_RANK) return too_many("reshape", dims);
  cx_graph_shape s = wanted(x, dims);
  if (cx_graph_shape_equal(&s, cx_lazy_tensor_shape(x))) return x;
  return cx_ops_record(&cx_ops_reshape, &x, 1, &s);
}

calx_tensor *calx_flatten_with(calx_tensor *x, const calx_flatten_options *o)
{
  calx_tensor *bad;
  if (cx_ops_unfit("flatten", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  uint32_t from = 0, to = 0;
  int start = o != NULL ? o->start_dim : 0;
  int end = o != NULL && o->end_dim != 0 ? o->end_dim : -1;
  if (!cx_ops_dim(start, s->rank, &from)) {
    return cx_ops_no_dim("flatten", "start_dim", start, s->rank, s);
  }
  if (!cx_ops_dim(end, s->rank, &to)) {
    return cx_ops_no_dim("flatten", "end_dim", end, s->rank, s);
  }
  if (from > to) {
    return cx_ops_invalid("flatten: start_dim %d of %s comes after end_dim %d",
                          start, cx_graph_shape_str(s), end);
  }
  cx_graph_shape out = { .dtype = s->dtype };
  for (uint32_t i = 0; i < from; i++) out.dims[out.rank++] = s->dims[i];
  int64_t n = 1;
  for (uint32_t i = from; i <= to && i < s->rank; i++) n *= s->dims[i];
  out.dims[out.rank++] = n;
  for (uint32_t i = to + 1; i < s->rank; i++) out.dims[out.rank++] = s->dims[i];
  return cx_ops_reshape_to(x, &out);
}

calx_tensor *calx_unsqueeze(calx_tensor *x, int dim)
{
  calx_tensor *bad;
  if (cx_ops_unfit("unsqueeze", &x, 1, &bad)) return bad;
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  uint32_t d;
  if (s.rank == CALX_MAX_RANK) {
    return cx_ops_invalid("unsqueeze: %s has %d dimensions, the most possible",
                          cx_graph_shape_str(&s), CALX_MAX_RANK);
  }
  if (!cx_ops_dim(dim, s.rank + 1, &d)) {
    return cx_ops_no_dim("unsqueeze", "dim", dim, s.rank + 1, &s);
  }
  for (uint32_t i = s.rank; i > d; i--) s.dims[i] = s.dims[i - 1];
  s.dims[d] = 1;
  s.rank++;
  return cx_ops_reshape_to(x, &s);
}

calx_tensor *calx_squeeze(calx_tensor *x, int dim)
{
  calx_tensor *bad;
  if (cx_ops_unfit("squeeze", &x, 1, &bad)) return bad;
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  uint32_t d;
  if (dim == CALX_ALL_DIMS) {
    for (uint32_t i = s.rank; i-- > 0;) x = calx_squeeze(x, (int)i);
    return x;
  }
  if (!cx_ops_dim(dim, s.rank, &d)) {
    return cx_ops_no_dim("squeeze", "dim", dim, s.rank, &s);
  }
  if (s.rank == 0 || s.dims[d] != 1) return x;
  for (uint32_t i = d; i + 1 < s.rank; i++) s.dims[i] = s.dims[i + 1];
  s.dims[--s.rank] = 0;
  return cx_ops_reshape_to(x, &s);
}

// ---- permute ----------------------------------------------------------------

typedef struct permute_attrs {
  int64_t dims[CALX_MAX_RANK];
} permute_attrs;

static calx_status *infer_permute(cx_graph_node *node)
{
  const permute_attrs *a = node->attrs;
  const cx_graph_shape *in = cx_in(node, 0);
  cx_graph_shape *out = &node->out[0].shape;
  *out = *in;
  for (uint32_t i = 0; i < in->rank; i++) out->dims[i] = in->dims[a->dims[i]];
  return NULL;
}

static void grad_permute(cx_lazy_tape *t)
{
  const permute_attrs *a = t->attrs;
  uint32_t rank = cx_in(t->node, 0)->rank;
  int64_t back[CALX_MAX_RANK] = { 0 };
  for (uint32_t i = 0; i < rank; i++) back[a->dims[i]] = i;
  t->in_grads[0] = calx_permute(t->out_grads[0], calx_dims_of(back, rank));
}

static void emit_permute(cx_graph_emit *e)
{
  const permute_attrs *a = e->attrs;
  e->out[0] = cx_hlo_transpose(e->b, e->in[0], a->dims);
}

static void describe_permute(const void *attrs, cx_text *out)
{
  const permute_attrs *a = attrs;
  cx_text_append(out, "dims (");
  for (int i = 0; i < CALX_MAX_RANK && (i == 0 || a->dims[i] != 0 || i < 3);
       i++) {
    cx_text_format(out, "%s%lld", i != 0 ? ", " : "", (long long)a->dims[i]);
  }
  cx_text_char(out, ')');
}

CX_OPS_DEFINE(permute, .attr_size = sizeof(permute_attrs),
              .infer = infer_permute, .grad = grad_permute,
              .emit = emit_permute, .describe = describe_permute,
              .takes_complex = true)

calx_tensor *calx_permute(calx_tensor *x, calx_dims dims)
{
  calx_tensor *bad;
  if (cx_ops_unfit("permute", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  permute_attrs a = { { 0 } };
  uint32_t seen = 0, d;
  bool identity = true;
  for (size_t i = 0; i < dims.count && i < s->rank; i++) {
    if (!cx_ops_dim(dims.values[i], s->rank, &d)) {
      return cx_ops_no_dim("permute", "dim", dims.values[i], s->rank, s);
    }
    seen |= UINT32_C(1) << d;
    a.dims[i] = d;
    identity &= d == i;
  }
  if (dims.count != s->rank || seen != (UINT32_C(1) << s->rank) - 1) {
    return cx_ops_invalid(
        "permute: the %zu numbers given are no order of the %u "
        "dimensions of %s: each is wanted once",
        dims.count, s->rank, cx_graph_shape_str(s));
  }
  return identity ? x : cx_ops_record(&cx_ops_permute, &x, 1, &a);
}

calx_tensor *calx_transpose(calx_tensor *x, int dim0, int dim1)
{
  calx_tensor *bad;
  if (cx_ops_unfit("transpose", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  uint32_t a, b;
  if (!cx_ops_dim(dim0, s->rank, &a)) {
    return cx_ops_no_dim("transpose", "dim0", dim0, s->rank, s);
  }
  if (!cx_ops_dim(dim1, s->rank, &b)) {
    return cx_ops_no_dim("transpose", "dim1", dim1, s->rank, s);
  }
  int64_t dims[CALX_MAX_RANK];
  for (uint32_t i = 0; i < s->rank; i++) dims[i] = i;
  if (s->rank != 0) {
    dims[a] = b;
    dims[b] = a;
  }
  return calx_permute(x, calx_dims_of(dims, s->rank));
}

calx_tensor *calx_t(calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit("t", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank > 2) {
    return cx_ops_invalid(
        "t: %s has more than two dimensions; use calx_transpose or calx_permute",
        cx_graph_shape_str(s));
  }
  return s->rank == 2 ? calx_transpose(x, 0, 1) : x;
}

// ---- expand -----------------------------------------------------------------

static calx_status *infer_expand(cx_graph_node *node)
{
  const cx_graph_shape *in = cx_in(node, 0), *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *a;
  if (a->rank < in->rank) {
    return cx_ops_error(node, "%s has fewer dimensions than the operand",
                        cx_graph_shape_str(a));
  }
  uint32_t lead = a->rank - in->rank;
  for (uint32_t i = 0; i < a->rank; i++) {
    int64_t have = i < lead ? 1 : in->dims[i - lead];
    if (out->dims[i] == -1 && i >= lead) out->dims[i] = have;
    if (out->dims[i] < 0 || (have != 1 && have != out->dims[i])) {
      return cx_ops_error(node,
                          "cannot expand to %s: only dimensions of size 1 and "
                          "new ones in front grow; -1 keeps a size",
                          cx_graph_shape_str(a));
    }
  }
  return NULL;
}

static void grad_expand(cx_lazy_tape *t)
{
  t->in_grads[0] = cx_ops_sum_to(t->out_grads[0], cx_in(t->node, 0));
}

static void emit_expand(cx_graph_emit *e)
{
  e->out[0] = cx_ops_emit_expand(e, e->in[0], &e->node->out[0].shape);
}

CX_OPS_DEFINE(expand, .attr_size = sizeof(cx_graph_shape),
              .infer = infer_expand, .grad = grad_expand, .emit = emit_expand,
              .describe = describe_shape, .takes_complex = true)

calx_tensor *calx_expand(calx_tensor *x, calx_dims dims)
{
  calx_tensor *bad;
  if (cx_ops_unfit("expand", &x, 1, &bad)) return bad;
  if (dims.count > CALX_MAX_RANK) return too_many("expand", dims);
  cx_graph_shape s = wanted(x, dims);
  if (cx_graph_shape_equal(&s, cx_lazy_tensor_shape(x))) return x;
  return cx_ops_record(&cx_ops_expand, &x, 1, &s);
}
