// ops/householder: a loop over the columns of a panel, a reflection each.
#include "ops/factor.h"

enum { COLUMN, MATRIX, VECTORS, TAU, VARS };

// x (N, m, b) becomes three results of the loop, see factor.h.
static calx_status *infer_householder(cx_graph_node *node)
{
  const cx_graph_shape *x = cx_in(node, 0);
  node->out[0].shape = node->out[1].shape = node->out[2].shape = *x;
  node->out[1].shape.rank = 2;
  node->out[1].shape.dims[1] = x->dims[2];
  return NULL;
}

typedef struct panel_loop {
  cx_hlo_builder *b;
  cx_hlo_elem elem;
  int64_t n, m, width;
} panel_loop;

static cx_hlo_value *two(const panel_loop *l, cx_hlo_op_kind kind,
                         cx_hlo_value *x, cx_hlo_value *y)
{
  return cx_hlo_binary(l->b, kind, x, y);
}

// (N) along the last dimension of (N, m).
static cx_hlo_value *along(const panel_loop *l, cx_hlo_value *x)
{
  const int64_t dims[2] = { l->n, l->m }, at[1] = { 0 };
  return cx_hlo_broadcast_in_dim(l->b, x, dims, 2, at);
}

// The sum, or another combination, of each row of (N, m).
static cx_hlo_value *combined(const panel_loop *l, cx_hlo_op_kind kind,
                              cx_hlo_value *x)
{
  const int64_t dim = 1;
  cx_hlo_value *zero = cx_hlo_splat(l->b, (cx_hlo_type){ l->elem, 0, NULL }, 0);
  return cx_hlo_reduce_with(l->b, kind, x, zero, &dim, 1);
}

typedef struct reflection {
  cx_hlo_value *at, *below;      // (N, m): the diagonal's row, those below it
  cx_hlo_value *v, *tau, *beta;  // (N, m), (N), (N)
} reflection;

// The reflection that leaves beta of a column, and zeros below. The column is
// scaled first, so that its squares neither overflow nor vanish.
static void reflect(const panel_loop *l, cx_hlo_value *column, reflection *h)
{
  cx_hlo_builder *b = l->b;
  cx_hlo_value *zero = cx_ops_splat_as(l->b, l->elem, column, 0),
               *one = cx_ops_splat_as(l->b, l->elem, column, 1);
  cx_hlo_value *below = cx_hlo_select(b, h->below, column, zero);
  cx_hlo_value *alpha =
      combined(l, CX_HLO_OP_ADD, cx_hlo_select(b, h->at, column, zero));
  cx_hlo_value *none = cx_ops_splat_as(l->b, l->elem, alpha, 0),
               *unit = cx_ops_splat_as(l->b, l->elem, alpha, 1);
  cx_hlo_value *scale =
      combined(l, CX_HLO_OP_MAXIMUM, cx_hlo_unary(b, CX_HLO_OP_ABS, below));
  cx_hlo_value *is_zero = cx_hlo_compare(b, CX_HLO_EQ, scale, none);
  scale =
      two(l, CX_HLO_OP_MAXIMUM, scale, cx_hlo_unary(b, CX_HLO_OP_ABS, alpha));
  scale = cx_hlo_select(b, is_zero, unit, scale);
  cx_hlo_value *x = two(l, CX_HLO_OP_DIVIDE, below, along(l, scale));
  cx_hlo_value *a = two(l, CX_HLO_OP_DIVIDE, alpha, scale);
  cx_hlo_value *square =
      two(l, CX_HLO_OP_ADD, two(l, CX_HLO_OP_MULTIPLY, a, a),
          combined(l, CX_HLO_OP_ADD, two(l, CX_HLO_OP_MULTIPLY, x, x)));
  cx_hlo_value *norm = cx_hlo_unary(b, CX_HLO_OP_SQRT, square);
  cx_hlo_value *is_negative = cx_hlo_compare(b, CX_HLO_LT, a, none);
  cx_hlo_value *beta = cx_hlo_select(b, is_negative, norm,
                                     cx_hlo_unary(b, CX_HLO_OP_NEGATE, norm));
  beta = cx_hlo_select(b, is_zero, unit, beta);  // not divided by 0
  cx_hlo_value *apart = two(l, CX_HLO_OP_SUBTRACT, beta, a);
  h->tau =
      cx_hlo_select(b, is_zero, none, two(l, CX_HLO_OP_DIVIDE, apart, beta));
  apart =
      cx_hlo_select(b, is_zero, unit, cx_hlo_unary(b, CX_HLO_OP_NEGATE, apart));
  x = two(l, CX_HLO_OP_DIVIDE, x, along(l, apart));
  h->v = cx_hlo_select(b, h->at, one, x);
  h->beta =
      cx_hlo_select(b, is_zero, alpha, two(l, CX_HLO_OP_MULTIPLY, beta, scale));
}

// matrix - tau v (v^T matrix)
static cx_hlo_value *applied(const panel_loop *l, const reflection *h,
                             cx_hlo_value *matrix)
{
  const int64_t batch = 0, rows = 1, dims[3] = { l->n, l->m, l->width };
  const int64_t of_v[2] = { 0, 1 }, of_row[2] = { 0, 2 };
  const cx_hlo_dot_dims dot = { .lhs_batch = &batch,
                                .rhs_batch = &batch,
                                .n_batch = 1,
                                .lhs_contract = &rows,
                                .rhs_contract = &rows,
                                .n_contract = 1 };
  cx_hlo_value *scaled = two(l, CX_HLO_OP_MULTIPLY, h->v, along(l, h->tau));
  cx_hlo_value *row = cx_hlo_dot_general(l->b, h->v, matrix, &dot, l->elem);
  cx_hlo_value *product =
      two(l, CX_HLO_OP_MULTIPLY,
          cx_hlo_broadcast_in_dim(l->b, scaled, dims, 3, of_v),
          cx_hlo_broadcast_in_dim(l->b, row, dims, 3, of_row));
  return two(l, CX_HLO_OP_SUBTRACT, matrix, product);
}

static void goes_on(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                    cx_hlo_value **out)
{
  const panel_loop *l = user;
  out[0] =
      cx_hlo_compare(b, CX_HLO_LT, args[COLUMN], cx_ops_index(l->b, l->width));
}

// Writes a column (N, m) of (N, m, b).
static cx_hlo_value *put_column(const panel_loop *l, cx_hlo_value *matrix,
                                cx_hlo_value *column, cx_hlo_value *k)
{
  const int64_t dims[3] = { l->n, l->m, 1 };
  cx_hlo_value *starts[3] = { cx_ops_index(l->b, 0), cx_ops_index(l->b, 0), k };
  return cx_hlo_dynamic_update_slice(
      l->b, matrix, cx_hlo_reshape(l->b, column, dims, 3), starts);
}

static void step(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                 cx_hlo_value **out)
{
  const panel_loop *l = user;
  const int64_t whole[3] = { l->n, l->m, 1 }, row[2] = { l->n, 1 };
  cx_hlo_value *k = args[COLUMN];
  cx_hlo_value *starts[3] = { cx_ops_index(l->b, 0), cx_ops_index(l->b, 0), k };
  cx_hlo_value *column = cx_hlo_reshape(
      b, cx_hlo_dynamic_slice(b, args[MATRIX], starts, whole), whole, 2);
  cx_hlo_value *rows = cx_hlo_iota(b, (cx_hlo_type){ CX_HLO_I32, 2, whole }, 1);
  cx_hlo_value *diagonal = cx_hlo_broadcast_in_dim(b, k, whole, 2, NULL);
  reflection h = {
    .at = cx_hlo_compare(b, CX_HLO_EQ, rows, diagonal),
    .below = cx_hlo_compare(b, CX_HLO_GT, rows, diagonal),
  };
  cx_hlo_value *zero = cx_ops_splat_as(l->b, l->elem, column, 0);
  reflect(l, column, &h);
  h.v =
      cx_hlo_select(b, cx_hlo_compare(b, CX_HLO_LT, rows, diagonal), zero, h.v);
  // The column's new elements are known exactly.
  column = cx_hlo_select(b, h.at, along(l, h.beta), column);
  column = cx_hlo_select(b, h.below, zero, column);
  out[COLUMN] = cx_hlo_binary(b, CX_HLO_OP_ADD, k, cx_ops_index(l->b, 1));
  out[MATRIX] = put_column(l, applied(l, &h, args[MATRIX]), column, k);
  out[VECTORS] = put_column(l, args[VECTORS], h.v, k);
  starts[1] = k;
  out[TAU] = cx_hlo_dynamic_update_slice(
      b, args[TAU], cx_hlo_reshape(b, h.tau, row, 2), starts);
}

static void emit_householder(cx_graph_emit *e)
{
  const cx_graph_shape *s = cx_in(e->node, 0);
  panel_loop l = { .b = e->b,
                   .elem = cx_ops_out_type(e, 0).elem,
                   .n = s->dims[0],
                   .m = s->dims[1],
                   .width = s->dims[2] };
  cx_hlo_value *vars[VARS] = {
    [COLUMN] = cx_ops_index(e->b, 0),
    [MATRIX] = e->in[0],
    [VECTORS] = cx_hlo_splat(e->b, cx_ops_out_type(e, 0), 0),
    [TAU] = cx_hlo_splat(e->b, cx_ops_out_type(e, 1), 0),
  };
  cx_hlo_value *out[VARS] = { NULL, vars[MATRIX], vars[VECTORS], vars[TAU] };
  if (l.width != 0) cx_hlo_while(e->b, VARS, vars, goes_on, step, &l, out);
  e->out[0] = out[VECTORS];
  e->out[1] = out[TAU];
  e->out[2] = out[MATRIX];
}

CX_OPS_DEFINE(householder, .infer = infer_householder, .emit = emit_householder)

void cx_ops_householder_panel(calx_tensor *x, calx_tensor **v,
                              calx_tensor **tau, calx_tensor **r)
{
  calx_tensor *out[3];
  cx_lazy_call call = {
    .op = &cx_ops_householder, .in = &x, .n_in = 1, .n_out = 3
  };
  cx_lazy_apply(&call, out);
  *v = out[0];
  *tau = out[1];
  *r = out[2];
}
