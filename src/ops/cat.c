// ops/cat: tensors joined along a dimension, or along a new one.
#include "base/dtype.h"
#include "ops/ops.h"

typedef struct cat_attrs {
  int64_t dim;
} cat_attrs;

// A rank-1 empty tensor fits everywhere and adds nothing (PyTorch's legacy).
static bool is_skipped(const cx_graph_shape *s)
{
  return s->rank == 1 && s->dims[0] == 0;
}

static calx_status *infer_cat(cx_graph_node *node)
{
  int64_t d = ((const cat_attrs *)node->attrs)->dim;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  for (uint32_t i = 1; i < node->n_in; i++) {
    const cx_graph_shape *s = cx_in(node, i);
    if (is_skipped(s)) continue;
    if (is_skipped(out)) {
      *out = *s;
      continue;
    }
    bool fits = s->rank == out->rank;
    for (uint32_t k = 0; fits && k < s->rank; k++) {
      fits = k == d || s->dims[k] == out->dims[k];
    }
    if (!fits) {
      return cx_ops_error(node,
                          "operand %u, %s, does not fit to %s: all sizes but "
                          "dimension %lld's must be equal",
                          i, cx_graph_shape_str(s), cx_graph_shape_str(out),
                          (long long)d);
    }
    if (__builtin_add_overflow(out->dims[d], s->dims[d], &out->dims[d])) {
      return cx_ops_error(node, "dimension %lld becomes too large",
                          (long long)d);
    }
  }
  return NULL;
}

static void grad_cat(cx_lazy_tape *t)
{
  int64_t d = ((const cat_attrs *)t->attrs)->dim, at = 0;
  for (uint32_t i = 0; i < t->node->n_in; i++) {
    const cx_graph_shape *s = cx_in(t->node, i);
    int64_t n = is_skipped(s) ? 0 : s->dims[d];
    if (cx_tape_needs(t, i)) {
      t->in_grads[i] = is_skipped(s)
                           ? cx_ops_zeros_like(cx_lazy_tape_in(t, i))
                           : calx_slice(t->out_grads[0], (int)d, at, at + n, 1);
    }
    at += n;
  }
}

static void emit_cat(cx_graph_emit *e)
{
  const cat_attrs *a = e->attrs;
  size_t n = 0;
  for (uint32_t i = 0; i < e->node->n_in; i++) {
    if (!is_skipped(cx_in(e->node, i))) e->in[n++] = e->in[i];
  }
  e->out[0] = n == 0 ? e->in[0] : cx_hlo_concatenate(e->b, e->in, n, a->dim);
}

static void describe_cat(const void *attrs, cx_text *out)
{
  cx_text_format(out, "dim %lld", (long long)((const cat_attrs *)attrs)->dim);
}

CX_OPS_DEFINE(cat, .attr_size = sizeof(cat_attrs), .infer = infer_cat,
              .grad = grad_cat, .emit = emit_cat, .describe = describe_cat,
              .takes_complex = true)

// False: the public function returns *out.
static bool good_list(const char *op, calx_tensor *const *tensors, size_t count,
                      calx_tensor **out)
{
  if (count == 0 || count > CX_OPS_CAT_MOST) {
    *out = cx_ops_invalid("%s: %zu tensors, 1 to %d are possible", op, count,
                          CX_OPS_CAT_MOST);
    return false;
  }
  if (tensors == NULL) {
    *out = cx_ops_invalid("%s: the list of %zu tensors is NULL", op, count);
    return false;
  }
  return !cx_ops_unfit(op, tensors, (uint32_t)count, out);
}

calx_tensor *calx_cat(calx_tensor *const *tensors, size_t count, int dim)
{
  calx_tensor *bad, *in[CX_OPS_CAT_MOST];
  uint32_t n = (uint32_t)count, d;
  if (!good_list("cat", tensors, count, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(tensors[0]);
  for (size_t i = 0; i < count; i++) {
    in[i] = tensors[i];
    if (is_skipped(s)) s = cx_lazy_tensor_shape(tensors[i]);
  }
  if (s->rank == 0) {
    return cx_ops_invalid(
        "cat: %s is a scalar, without a dim to join along; use calx_stack",
        cx_graph_shape_str(s));
  }
  if (!cx_ops_dim(dim, s->rank, &d)) {
    return cx_ops_no_dim("cat", "dim", dim, s->rank, s);
  }
  cx_ops_promote(in, n);
  cat_attrs a = { d };
  return cx_ops_record(&cx_ops_cat, in, n, &a);
}

calx_tensor *calx_stack(calx_tensor *const *tensors, size_t count, int dim)
{
  calx_tensor *in[CX_OPS_CAT_MOST], *bad;
  if (!good_list("stack", tensors, count, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(tensors[0]);
  uint32_t d;
  if (s->rank < CALX_MAX_RANK && !cx_ops_dim(dim, s->rank + 1, &d)) {
    return cx_ops_no_dim("stack", "dim", dim, s->rank + 1, s);
  }
  for (size_t i = 0; i < count; i++) {
    const cx_graph_shape *other = cx_lazy_tensor_shape(tensors[i]);
    cx_graph_shape like = *other;
    like.dtype = s->dtype;
    if (!cx_graph_shape_equal(&like, s)) {
      return cx_ops_invalid(
          "stack: operand %zu is %s, operand 0 %s; all must have the same sizes",
          i, cx_graph_shape_str(other), cx_graph_shape_str(s));
    }
    in[i] = calx_unsqueeze(tensors[i], dim);
  }
  if (dim < 0) dim += (int)cx_lazy_tensor_shape(in[0])->rank;
  return calx_cat(in, count, dim);
}
