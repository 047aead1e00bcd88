// ops/gather: elements and rows at indices: reading (take) and combining
// (scatter_rows). Each is the other's gradient.
//
// An index out of range reads NaN, or the least number of a type without NaN,
// and is dropped where it writes; CALX_DEBUG=indices makes it an error.
#include "ops/gather.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"

// ---- take: x (…, n, …), index (…) -> (…, index, …) --------------------------

typedef struct take_attrs {
  uint32_t dim;
} take_attrs;

static calx_status *infer_take(cx_graph_node *node)
{
  const take_attrs *a = node->attrs;
  const cx_graph_shape *x = cx_in(node, 0), *index = cx_in(node, 1);
  cx_graph_shape *out = &node->out[0].shape;
  memset(out, 0, sizeof *out);
  if (x->rank + index->rank > CALX_MAX_RANK + 1) {
    return cx_ops_error(node, "the result has more than %d dimensions",
                        CALX_MAX_RANK);
  }
  out->dtype = x->dtype;
  for (uint32_t i = 0; i < a->dim; i++) out->dims[out->rank++] = x->dims[i];
  for (uint32_t i = 0; i < index->rank; i++) {
    out->dims[out->rank++] = index->dims[i];
  }
  for (uint32_t i = a->dim + 1; i < x->rank; i++) {
    out->dims[out->rank++] = x->dims[i];
  }
  return NULL;
}

// g's dimensions of the index come first and are joined, then its others.
static calx_tensor *rows_of(calx_tensor *g, uint32_t dim, uint32_t index_rank)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(g);
  int64_t order[CALX_MAX_RANK], dims[CALX_MAX_RANK], rows = 1;
  uint32_t n = 0;
  for (uint32_t i = 0; i < index_rank; i++) {
    rows *= s->dims[dim + i];
    order[n++] = dim + i;
  }
  uint32_t rank = 1;
  for (uint32_t i = 0; i < s->rank; i++) {
    if (i >= dim && i < dim + index_rank) continue;
    order[n++] = i;
    dims[rank++] = s->dims[i];
  }
  dims[0] = rows;
  return calx_reshape(calx_permute(g, calx_dims_of(order, n)),
                      calx_dims_of(dims, rank));
}

static void grad_take(cx_lazy_tape *t)
{
  const take_attrs *a = t->attrs;
  int64_t all = -1;
  cx_graph_shape s = *cx_in(t->node, 0);
  int64_t n = s.dims[a->dim];
  for (uint32_t i = a->dim; i > 0; i--) s.dims[i] = s.dims[i - 1];
  s.dims[0] = n;
  calx_create_options o = { .size = sizeof o,
                            .dtype = s.dtype,
                            .device = t->device };
  calx_tensor *rows = rows_of(t->out_grads[0], a->dim, cx_in(t->node, 1)->rank);
  calx_tensor *index =
      calx_reshape(cx_lazy_tape_in(t, 1), calx_dims_of(&all, 1));
  calx_tensor *sum = cx_ops_combine_rows(
      calx_zeros_with(cx_ops_dims_of(&s), &o), index, rows, CX_OPS_SCATTER_ADD);
  t->in_grads[0] = calx_movedim(sum, 0, (int)a->dim);
}

static void emit_take(cx_graph_emit *e)
{
  const take_attrs *a = e->attrs;
  const cx_graph_shape *x = cx_in(e->node, 0), *index = cx_in(e->node, 1);
  const cx_graph_shape *out = &e->node->out[0].shape;
  cx_hlo_builder *b = e->b;
  cx_hlo_elem elem = cx_hlo_elem_of(out->dtype);
  if (cx_graph_shape_numel(x) == 0 || cx_graph_shape_numel(out) == 0) {
    e->out[0] = cx_ops_emit_splat(e, elem, out, (double)NAN);
    return;
  }
  cx_hlo_elem type = cx_hlo_elem_of(index->dtype);
  cx_hlo_value *low = cx_ops_emit_splat(e, type, index, 0);
  cx_hlo_value *end =
      cx_ops_emit_splat(e, type, index, (double)x->dims[a->dim]);
  cx_hlo_value *inside = cx_hlo_binary(
      b, CX_HLO_OP_AND, cx_hlo_compare(b, CX_HLO_GE, e->in[1], low),
      cx_hlo_compare(b, CX_HLO_LT, e->in[1], end));
  int64_t at[CALX_MAX_RANK];
  for (uint32_t i = 0; i < index->rank; i++) at[i] = a->dim + i;
  inside = cx_hlo_broadcast_in_dim(b, inside, out->dims, out->rank, at);
  cx_hlo_value *none = cx_dtype_is_inexact(out->dtype)
                           ? cx_ops_emit_splat(e, elem, out, (double)NAN)
                           : cx_ops_emit_expand(e, cx_hlo_lowest(b, elem), out);
  e->out[0] = cx_hlo_select(
      b, inside, cx_hlo_gather_along(b, e->in[0], e->in[1], a->dim), none);
}

static void describe_take(const void *attrs, cx_text *out)
{
  cx_text_format(out, "dim %u", ((const take_attrs *)attrs)->dim);
}

CX_OPS_DEFINE(take_rows, .attr_size = sizeof(take_attrs), .infer = infer_take,
              .grad = grad_take, .emit = emit_take, .describe = describe_take,
              .takes_complex = true)

calx_tensor *cx_ops_take(calx_tensor *x, calx_tensor *index, uint32_t dim)
{
  take_attrs a = { dim };
  calx_tensor *in[2] = { x, index };
  return cx_ops_record(&cx_ops_take_rows, in, 2, &a);
}

// ---- scatter_rows: x (n, …), index (m), source (m, …) -> as x ---------------

typedef struct scatter_attrs {
  uint32_t how;  // cx_ops_scatter_how
} scatter_attrs;

// Of the extremes: all that equal the result share the gradient.
static void share_gradient(cx_lazy_tape *t)
{
  calx_tensor *x = cx_lazy_tape_in(t, 0), *index = cx_lazy_tape_in(t, 1);
  calx_tensor *source = cx_lazy_tape_in(t, 2), *out = cx_lazy_tape_out(t, 0);
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  calx_tensor *x_won = calx_to_dtype(calx_eq(x, out), dtype);
  calx_tensor *won =
      calx_to_dtype(calx_eq(source, cx_ops_take(out, index, 0)), dtype);
  calx_tensor *count =
      cx_ops_combine_rows(x_won, index, won, CX_OPS_SCATTER_ADD);
  calx_tensor *g = calx_div(t->out_grads[0], count);
  if (cx_tape_needs(t, 0)) t->in_grads[0] = calx_mul(g, x_won);
  if (cx_tape_needs(t, 2)) {
    t->in_grads[2] = calx_mul(cx_ops_take(g, index, 0), won);
  }
}

static void grad_scatter_rows(cx_lazy_tape *t)
{
  const scatter_attrs *a = t->attrs;
  calx_tensor *g = t->out_grads[0], *index = cx_lazy_tape_in(t, 1);
  if (a->how == CX_OPS_SCATTER_AMAX || a->how == CX_OPS_SCATTER_AMIN) {
    share_gradient(t);
    return;
  }
  if (a->how == CX_OPS_SCATTER_PROD) {
    t->in_grads[0] = cx_ops_poison(CALX_UNIMPLEMENTED,
                                   "scatter_reduce: a product has no gradient");
    return;
  }
  if (cx_tape_needs(t, 0)) {
    calx_tensor *zeros = cx_ops_zeros_like(cx_lazy_tape_in(t, 2));
    t->in_grads[0] =
        a->how == CX_OPS_SCATTER_ADD
            ? g
            : cx_ops_combine_rows(g, index, zeros, CX_OPS_SCATTER_SET);
  }
  if (cx_tape_needs(t, 2)) t->in_grads[2] = cx_ops_take(g, index, 0);
}

static void emit_scatter_rows(cx_graph_emit *e)
{
  static const cx_hlo_op_kind kinds[] = {
    [CX_OPS_SCATTER_SET] = CX_HLO_OP_SCATTER,
    [CX_OPS_SCATTER_ADD] = CX_HLO_OP_ADD,
    [CX_OPS_SCATTER_PROD] = CX_HLO_OP_MULTIPLY,
    [CX_OPS_SCATTER_AMAX] = CX_HLO_OP_MAXIMUM,
    [CX_OPS_SCATTER_AMIN] = CX_HLO_OP_MINIMUM,
  };
  const scatter_attrs *a = e->attrs;
  if (cx_graph_shape_numel(cx_in(e->node, 0)) == 0 ||
      cx_graph_shape_numel(cx_in(e->node, 2)) == 0) {
    e->out[0] = e->in[0];
    return;
  }
  e->out[0] =
      cx_hlo_scatter_rows(e->b, e->in[0], e->in[1], e->in[2], kinds[a->how]);
}

static void describe_scatter(const void *attrs, cx_text *out)
{
  static const char *const names[] = { "set", "add", "prod", "amax", "amin" };
  cx_text_append(out, names[((const scatter_attrs *)attrs)->how]);
}

CX_OPS_DEFINE(scatter_rows, .attr_size = sizeof(scatter_attrs),
              .infer = cx_ops_infer_same, .grad = grad_scatter_rows,
              .emit = emit_scatter_rows, .describe = describe_scatter,
              .takes_complex = true)

calx_tensor *cx_ops_combine_rows(calx_tensor *x, calx_tensor *index,
                                 calx_tensor *source, cx_ops_scatter_how how)
{
  scatter_attrs a = { how };
  calx_tensor *in[3] = { x, index, source };
  return cx_ops_record(&cx_ops_scatter_rows, in, 3, &a);
}
