// ops/sort: sorting along a dimension, and what follows from it. NaN counts as
// the greatest, as in PyTorch; equal elements keep their order.
#include "base/dtype.h"
#include "ops/composite.h"

typedef struct sort_attrs {
  uint32_t dim, descending;
} sort_attrs;

// out 0: the elements, out 1: their indices (i64).
static calx_status *infer_sort(cx_graph_node *node)
{
  node->out[0].shape = node->out[1].shape = *cx_in(node, 0);
  node->out[1].shape.dtype = CALX_I64;
  return NULL;
}

static void grad_sort(cx_lazy_tape *t)
{
  const sort_attrs *a = t->attrs;
  calx_tensor *zeros = cx_ops_zeros_like(cx_lazy_tape_in(t, 0));
  t->in_grads[0] =
      calx_scatter(zeros, (int)a->dim, cx_lazy_tape_out(t, 1), t->out_grads[0]);
}

typedef struct order {
  bool descending, floats;
} order;

// args: element a, element b, index a, index b.
static void goes_first(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                       cx_hlo_value **out)
{
  const order *o = user;
  cx_hlo_value *less = o->descending ? args[1] : args[0];
  cx_hlo_value *more = o->descending ? args[0] : args[1];
  out[0] = cx_hlo_compare(b, CX_HLO_LT, less, more);
  if (!o->floats) return;
  cx_hlo_value *nan = cx_hlo_compare(b, CX_HLO_NE, more, more);
  cx_hlo_value *number = cx_hlo_compare(b, CX_HLO_EQ, less, less);
  out[0] = cx_hlo_binary(b, CX_HLO_OP_OR, out[0],
                         cx_hlo_binary(b, CX_HLO_OP_AND, nan, number));
}

static void emit_sort(cx_graph_emit *e)
{
  const sort_attrs *a = e->attrs;
  const cx_graph_shape *in = cx_in(e->node, 0);
  cx_hlo_type type = { CX_HLO_I32, in->rank, in->dims };
  if (cx_ops_index_dtype(in->dims[a->dim]) == CALX_I64) type.elem = CX_HLO_I64;
  cx_hlo_value *both[2] = { e->in[0], cx_hlo_iota(e->b, type, a->dim) };
  order o = { a->descending != 0, cx_dtype_is_float(in->dtype) };
  cx_hlo_sort(e->b, 2, both, a->dim, goes_first, &o, e->out);
  e->out[1] = cx_hlo_convert(e->b, e->out[1], CX_HLO_I64);
}

static void describe_sort(const void *attrs, cx_text *out)
{
  const sort_attrs *a = attrs;
  cx_text_format(out, "dim %u%s", a->dim, a->descending ? ", descending" : "");
}

CX_OPS_DEFINE(sort, .attr_size = sizeof(sort_attrs), .infer = infer_sort,
              .grad = grad_sort, .emit = emit_sort, .describe = describe_sort)

// Elements and indices; of a scalar itself and 0.
static void sorted(const char *op, calx_tensor *x, int dim, bool descending,
                   calx_tensor *out[2])
{
  calx_tensor *bad;
  uint32_t d = 0;
  if (cx_ops_unfit(op, &x, 1, &bad)) {
    out[0] = out[1] = bad;
    return;
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (!cx_ops_dim(dim, s->rank, &d)) {
    out[0] = out[1] = cx_ops_no_dim(op, "dim", dim, s->rank, s);
    return;
  }
  if (s->rank == 0) {
    out[0] = x;
    out[1] = calx_to_dtype(cx_ops_zeros_like(x), CALX_I64);
    return;
  }
  sort_attrs a = { d, descending };
  cx_lazy_call call = {
    .op = &cx_ops_sort, .in = &x, .n_in = 1, .n_out = 2, .attrs = &a
  };
  cx_lazy_apply(&call, out);
}

calx_tensor *calx_sort_with(calx_tensor *x, const calx_sort_options *o)
{
  CX_OPS_COMPOSITE("sort");
  calx_tensor *out[2], *bad;
  CX_OPS_TAKE_OPTIONS(sort, o, bad);
  sorted("sort", x,
         o->dim == 0           ? -1
         : o->dim == INT32_MIN ? 0
                               : o->dim,
         o->descending, out);
  if (o->out_indices != NULL) *o->out_indices = out[1];
  return out[0];
}

calx_tensor *calx_argsort_with(calx_tensor *x, const calx_sort_options *o)
{
  CX_OPS_COMPOSITE("argsort");
  calx_tensor *out[2], *bad;
  CX_OPS_TAKE_OPTIONS(sort, o, bad);
  sorted("argsort", x,
         o->dim == 0           ? -1
         : o->dim == INT32_MIN ? 0
                               : o->dim,
         o->descending, out);
  return out[1];
}

calx_tensor *calx_topk_with(calx_tensor *x, int64_t k,
                            const calx_topk_options *o)
{
  CX_OPS_COMPOSITE("topk");
  calx_tensor *out[2], *bad;
  if (cx_ops_unfit("topk", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(topk, o, bad);
  int dim = o->dim == 0 ? -1 : o->dim == INT32_MIN ? 0 : o->dim;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  uint32_t d = 0;
  if (!cx_ops_dim(dim, s->rank, &d)) {
    return cx_ops_no_dim("topk", "dim", dim, s->rank, s);
  }
  int64_t n = s->rank != 0 ? s->dims[d] : 1;
  if (k < 0 || k > n) {
    return cx_ops_invalid("topk: k is %lld, dimension %u of %s has %lld",
                          (long long)k, d, cx_graph_shape_str(s), (long long)n);
  }
  sorted("topk", x, dim, !o->smallest, out);
  for (int i = 0; i < 2 && s->rank != 0; i++) {
    out[i] = calx_slice(out[i], (int)d, 0, k, 1);
  }
  if (o->out_indices != NULL) *o->out_indices = out[1];
  return out[0];
}

calx_tensor *calx_searchsorted_with(calx_tensor *sequence, calx_tensor *values,
                                    const calx_searchsorted_options *o)
{
  CX_OPS_COMPOSITE("searchsorted");
  calx_tensor *in[2] = { sequence, values }, *bad;
  if (cx_ops_unfit("searchsorted", in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(searchsorted, o, bad);
  const cx_graph_shape *s = cx_lazy_tensor_shape(sequence),
                       *v = cx_lazy_tensor_shape(values);
  bool fits = s->rank == 1 || s->rank == v->rank;
  for (uint32_t i = 0; fits && s->rank > 1 && i + 1 < s->rank; i++) {
    fits = s->dims[i] == v->dims[i];
  }
  if (!fits || v->rank == CALX_MAX_RANK) {
    return cx_ops_invalid(
        "searchsorted: %s and %s: a sequence of rank 1, or one "
        "for each row of the values, is wanted",
        cx_graph_shape_str(s), cx_graph_shape_str(v));
  }
  // How many elements of the sequence lie before each value.
  if (s->rank > 1) sequence = calx_unsqueeze(sequence, -2);
  values = calx_unsqueeze(values, -1);
  calx_tensor *before =
      o->right ? calx_le(sequence, values) : calx_lt(sequence, values);
  int64_t last = -1;
  calx_reduce_options r = { .size = sizeof r, .dims = calx_dims_of(&last, 1) };
  return calx_sum_with(before, &r);
}
