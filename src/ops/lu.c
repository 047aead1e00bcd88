// ops/lu: elimination with partial pivoting in loops: over the columns of a
// panel, and over the pivots, from which the order of the rows follows.
#include "ops/factor.h"

typedef struct lu_loop {
  cx_hlo_builder *b;
  cx_hlo_elem elem;
  int64_t n, m, width;
} lu_loop;

static cx_hlo_value *two(const lu_loop *l, cx_hlo_op_kind kind, cx_hlo_value *x,
                         cx_hlo_value *y)
{
  return cx_hlo_binary(l->b, kind, x, y);
}

// (N) along the last dimension of (N, m).
static cx_hlo_value *along(const lu_loop *l, cx_hlo_value *x)
{
  const int64_t dims[2] = { l->n, l->m }, at[1] = { 0 };
  return cx_hlo_broadcast_in_dim(l->b, x, dims, 2, at);
}

// (N, m), or (N, b) with dim 2, as (N, m, b).
static cx_hlo_value *wide(const lu_loop *l, cx_hlo_value *x, int64_t dim)
{
  const int64_t dims[3] = { l->n, l->m, l->width }, at[2] = { 0, dim };
  return cx_hlo_broadcast_in_dim(l->b, x, dims, 3, at);
}

// A combination of each row of (N, m), or of each column of (N, m, b).
static cx_hlo_value *combined(const lu_loop *l, cx_hlo_op_kind kind,
                              cx_hlo_elem elem, cx_hlo_value *x, double first)
{
  const int64_t dim = 1;
  cx_hlo_value *init =
      cx_hlo_splat(l->b, (cx_hlo_type){ elem, 0, NULL }, first);
  return cx_hlo_reduce_with(l->b, kind, x, init, &dim, 1);
}

// The row numbers (N, m), and a number of the loop in their shape.
static cx_hlo_value *row_numbers(const lu_loop *l)
{
  const int64_t dims[2] = { l->n, l->m };
  return cx_hlo_iota(l->b, (cx_hlo_type){ CX_HLO_I32, 2, dims }, 1);
}

static cx_hlo_value *for_all(const lu_loop *l, cx_hlo_value *k)
{
  const int64_t dims[2] = { l->n, l->m };
  return cx_hlo_broadcast_in_dim(l->b, k, dims, 2, NULL);
}

static void goes_on(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                    cx_hlo_value **out)
{
  const lu_loop *l = user;
  out[0] = cx_hlo_compare(b, CX_HLO_LT, args[0], cx_ops_index(b, l->width));
}

// ---- the panel --------------------------------------------------------------

enum { COLUMN, MATRIX, PIVOTS, VARS };

// x (N, m, b) with m >= b becomes its factors, packed, and the pivots (N, b).
static calx_status *infer_lu_panel(cx_graph_node *node)
{
  const cx_graph_shape *x = cx_in(node, 0);
  node->out[0].shape = *x;
  node->out[1].shape = (cx_graph_shape){ .dtype = CALX_I32,
                                         .rank = 2,
                                         .dims = { x->dims[0], x->dims[2] } };
  return NULL;
}

// The first row from k on whose element is the greatest; k of NaN. (N) i32
static cx_hlo_value *pivot_of(const lu_loop *l, cx_hlo_value *column,
                              cx_hlo_value *rows, cx_hlo_value *k)
{
  cx_hlo_builder *b = l->b;
  cx_hlo_value *open = cx_hlo_compare(b, CX_HLO_GE, rows, for_all(l, k));
  cx_hlo_value *size =
      cx_hlo_select(b, open, cx_hlo_unary(b, CX_HLO_OP_ABS, column),
                    cx_ops_splat_as(b, l->elem, column, -1));
  cx_hlo_value *most =
      along(l, combined(l, CX_HLO_OP_MAXIMUM, l->elem, size, -1));
  cx_hlo_value *none = cx_ops_splat_as(b, CX_HLO_I32, rows, (double)INT32_MAX);
  cx_hlo_value *first = combined(
      l, CX_HLO_OP_MINIMUM, CX_HLO_I32,
      cx_hlo_select(b, cx_hlo_compare(b, CX_HLO_EQ, size, most), rows, none),
      (double)INT32_MAX);
  cx_hlo_value *here = cx_hlo_broadcast_in_dim(b, k, &l->n, 1, NULL);
  cx_hlo_value *last =
      cx_ops_splat_as(b, CX_HLO_I32, first, (double)(l->m - 1));
  return cx_hlo_select(b, cx_hlo_compare(b, CX_HLO_LE, first, last), first,
                       here);
}

// The rows k and `pivot` (N) of (N, m, b) change places; *top is the new row k,
// (N, b).
static cx_hlo_value *swapped(const lu_loop *l, cx_hlo_value *x,
                             cx_hlo_value *rows, cx_hlo_value *k,
                             cx_hlo_value *pivot, cx_hlo_value **top)
{
  cx_hlo_builder *b = l->b;
  cx_hlo_value *zero = cx_ops_splat_as(b, l->elem, x, 0);
  cx_hlo_value *here =
      wide(l, cx_hlo_compare(b, CX_HLO_EQ, rows, for_all(l, k)), 1);
  cx_hlo_value *there =
      wide(l, cx_hlo_compare(b, CX_HLO_EQ, rows, along(l, pivot)), 1);
  cx_hlo_value *old =
      combined(l, CX_HLO_OP_ADD, l->elem, cx_hlo_select(b, here, x, zero), 0);
  *top =
      combined(l, CX_HLO_OP_ADD, l->elem, cx_hlo_select(b, there, x, zero), 0);
  x = cx_hlo_select(b, there, wide(l, old, 2), x);
  return cx_hlo_select(b, here, wide(l, *top, 2), x);
}

// x, whose row k is `top`, less the multiples of it that clear column k, which
// holds them from then on.
static cx_hlo_value *eliminated(const lu_loop *l, cx_hlo_value *x,
                                cx_hlo_value *top, cx_hlo_value *rows,
                                cx_hlo_value *k)
{
  cx_hlo_builder *b = l->b;
  const int64_t one[3] = { l->n, l->m, 1 }, dims[2] = { l->n, l->width };
  cx_hlo_value *starts[3] = { cx_ops_index(b, 0), cx_ops_index(b, 0), k };
  cx_hlo_value *column =
      cx_hlo_reshape(b, cx_hlo_dynamic_slice(b, x, starts, one), one, 2);
  cx_hlo_value *at = cx_hlo_iota(b, (cx_hlo_type){ CX_HLO_I32, 2, dims }, 1);
  cx_hlo_value *num = cx_hlo_broadcast_in_dim(b, k, dims, 2, NULL);
  cx_hlo_value *none = cx_ops_splat_as(b, l->elem, top, 0);
  cx_hlo_value *own =
      cx_hlo_select(b, cx_hlo_compare(b, CX_HLO_EQ, at, num), top, none);
  cx_hlo_value *pivot = combined(l, CX_HLO_OP_ADD, l->elem, own, 0);
  cx_hlo_value *zero = cx_ops_splat_as(b, l->elem, pivot, 0);
  cx_hlo_value *divisor =
      cx_hlo_select(b, cx_hlo_compare(b, CX_HLO_EQ, pivot, zero),
                    cx_ops_splat_as(b, l->elem, pivot, 1), pivot);
  cx_hlo_value *below = cx_hlo_compare(b, CX_HLO_GT, rows, for_all(l, k));
  cx_hlo_value *l_k = two(l, CX_HLO_OP_DIVIDE, column, along(l, divisor));
  column = cx_hlo_select(b, below, l_k, column);
  cx_hlo_value *right =
      cx_hlo_select(b, cx_hlo_compare(b, CX_HLO_GT, at, num), top, none);
  cx_hlo_value *product =
      two(l, CX_HLO_OP_MULTIPLY, wide(l, l_k, 1), wide(l, right, 2));
  product = cx_hlo_select(b, wide(l, below, 1), product,
                          cx_ops_splat_as(b, l->elem, product, 0));
  x = two(l, CX_HLO_OP_SUBTRACT, x, product);
  return cx_hlo_dynamic_update_slice(b, x, cx_hlo_reshape(b, column, one, 3),
                                     starts);
}

static void step(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                 cx_hlo_value **out)
{
  const lu_loop *l = user;
  const int64_t one[3] = { l->n, l->m, 1 }, row[2] = { l->n, 1 };
  cx_hlo_value *k = args[COLUMN], *rows = row_numbers(l), *top;
  cx_hlo_value *starts[3] = { cx_ops_index(b, 0), cx_ops_index(b, 0), k };
  cx_hlo_value *column = cx_hlo_reshape(
      b, cx_hlo_dynamic_slice(b, args[MATRIX], starts, one), one, 2);
  cx_hlo_value *pivot = pivot_of(l, column, rows, k);
  cx_hlo_value *x = swapped(l, args[MATRIX], rows, k, pivot, &top);
  // Pivots count from 1, as LAPACK's.
  cx_hlo_value *number =
      two(l, CX_HLO_OP_ADD, pivot, cx_ops_splat_as(b, CX_HLO_I32, pivot, 1));
  starts[1] = k;
  out[COLUMN] = two(l, CX_HLO_OP_ADD, k, cx_ops_index(b, 1));
  out[MATRIX] = eliminated(l, x, top, rows, k);
  out[PIVOTS] = cx_hlo_dynamic_update_slice(
      b, args[PIVOTS], cx_hlo_reshape(b, number, row, 2), starts);
}

static void emit_lu_panel(cx_graph_emit *e)
{
  const cx_graph_shape *s = cx_in(e->node, 0);
  lu_loop l = { .b = e->b,
                .elem = cx_ops_out_type(e, 0).elem,
                .n = s->dims[0],
                .m = s->dims[1],
                .width = s->dims[2] };
  cx_hlo_value *vars[VARS] = {
    [COLUMN] = cx_ops_index(e->b, 0),
    [MATRIX] = e->in[0],
    [PIVOTS] = cx_hlo_splat(e->b, cx_ops_out_type(e, 1), 0),
  };
  cx_hlo_value *out[VARS];
  cx_hlo_while(e->b, VARS, vars, goes_on, step, &l, out);
  e->out[0] = out[MATRIX];
  e->out[1] = out[PIVOTS];
}

CX_OPS_DEFINE(lu_panel, .infer = infer_lu_panel, .emit = emit_lu_panel)

// ---- the order of the rows --------------------------------------------------

// Of pivots (N, b) the order (N, m) of the rows that they make.
static calx_status *infer_lu_order(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 0);
  node->out[0].shape.dims[1] = *(const int64_t *)node->attrs;
  return NULL;
}

static void swap_step(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                      cx_hlo_value **out)
{
  const lu_loop *l = user;
  const int64_t one[2] = { l->n, 1 };
  cx_hlo_value *k = args[0], *order = args[1], *rows = row_numbers(l);
  cx_hlo_value *starts[2] = { cx_ops_index(b, 0), k };
  cx_hlo_value *pivot =
      cx_hlo_reshape(b, cx_hlo_dynamic_slice(b, args[2], starts, one), one, 1);
  pivot = two(l, CX_HLO_OP_SUBTRACT, pivot,
              cx_ops_splat_as(b, CX_HLO_I32, pivot, 1));
  cx_hlo_value *zero = cx_ops_splat_as(b, CX_HLO_I32, rows, 0);
  cx_hlo_value *here = cx_hlo_compare(b, CX_HLO_EQ, rows, for_all(l, k));
  cx_hlo_value *there = cx_hlo_compare(b, CX_HLO_EQ, rows, along(l, pivot));
  cx_hlo_value *mine = combined(l, CX_HLO_OP_ADD, CX_HLO_I32,
                                cx_hlo_select(b, here, order, zero), 0);
  cx_hlo_value *other = combined(l, CX_HLO_OP_ADD, CX_HLO_I32,
                                 cx_hlo_select(b, there, order, zero), 0);
  order = cx_hlo_select(b, there, along(l, mine), order);
  out[0] = two(l, CX_HLO_OP_ADD, k, cx_ops_index(b, 1));
  out[1] = cx_hlo_select(b, here, along(l, other), order);
  out[2] = args[2];
}

static void emit_lu_order(cx_graph_emit *e)
{
  const cx_graph_shape *s = cx_in(e->node, 0);
  lu_loop l = { .b = e->b,
                .n = s->dims[0],
                .m = *(const int64_t *)e->attrs,
                .width = s->dims[1] };
  cx_hlo_value *out[3],
      *vars[3] = { cx_ops_index(e->b, 0), row_numbers(&l), e->in[0] };
  e->out[0] = vars[1];
  if (l.width == 0) return;
  cx_hlo_while(e->b, 3, vars, goes_on, swap_step, &l, out);
  e->out[0] = out[1];
}

CX_OPS_DEFINE(lu_order, .attr_size = sizeof(int64_t), .infer = infer_lu_order,
              .emit = emit_lu_order)

calx_tensor *cx_ops_pivot_order(calx_tensor *pivots, int64_t rows)
{
  if (cx_lazy_tensor_poisoned(pivots)) return pivots;
  calx_tensor *order = cx_ops_record(&cx_ops_lu_order, &pivots, 1, &rows);
  return calx_to_dtype(order, CALX_I64);
}

calx_tensor *cx_ops_in_order(calx_tensor *x, calx_tensor *order)
{
  if (cx_lazy_tensor_poisoned(x)) return x;
  if (cx_lazy_tensor_poisoned(order)) return order;
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  return calx_gather(
      x, (int)s.rank - 2,
      calx_expand(calx_unsqueeze(order, -1), cx_ops_dims_of(&s)));
}
