// ops/lu_factor: elimination by blocks of columns (ops/lu.c), and its gradient.
#include "calx/creation.h"
#include "ops/factor.h"

enum { BLOCK = 32, MOST_BLOCKS = 512 };

// ---- the gradient -----------------------------------------------------------

// Of y = (L - I) + U with x = L U, from a rule for the first k rows and columns
// x1 = L1 U1: with X = L1^-1 dx1 U1^-1, dL1 is L1 tril(X, -1) and dU1
// triu(X) U1. Further columns have dU2 = L1^-1 dx2 - tril(X, -1) U2, further
// rows dL2 = dx2 U1^-1 - L2 triu(X); what is here are their transposes.
typedef struct lu_grad {
  calx_tensor *y, *g, *y1;  // the factors, their gradient; y's first rows and
                            // columns
  int64_t m, n, k;
} lu_grad;

// L1^-T x, or U1^-1 x.
static calx_tensor *solved(const lu_grad *l, bool unit, calx_tensor *x)
{
  const cx_ops_triangle how = { .lower = unit,
                                .unit = unit,
                                .transpose = unit };
  const cx_ops_triangle up = { .lower = false };
  return cx_ops_solve_with(l->y1, x, unit ? &how : &up);
}

// x U1^-T, which is (U1^-1 x^T)^T.
static calx_tensor *solved_right(const lu_grad *l, calx_tensor *x)
{
  return cx_ops_transposed(solved(l, false, cx_ops_transposed(x)));
}

static calx_tensor *part(const lu_grad *l, calx_tensor *x, int64_t row,
                         int64_t column)
{
  x = calx_narrow(x, -2, row, (row == 0 ? l->k : l->m) - row);
  return calx_narrow(x, -1, column, (column == 0 ? l->k : l->n) - column);
}

static calx_tensor *product(calx_tensor *x, bool x_transposed, calx_tensor *y,
                            bool y_transposed)
{
  return calx_matmul(x_transposed ? cx_ops_transposed(x) : x,
                     y_transposed ? cx_ops_transposed(y) : y);
}

static calx_tensor *grad_of(const lu_grad *l)
{
  calx_tensor *unit =
      cx_ops_plus(calx_tril(l->y1, -1), cx_ops_eye(l->y1, l->k, l->k));
  calx_tensor *g1 = part(l, l->g, 0, 0), *further = NULL;
  calx_tensor *low = product(unit, true, calx_tril(g1, -1), false);
  calx_tensor *up = product(calx_triu(g1, 0), false, calx_triu(l->y1, 0), true);
  if (l->n > l->k) {
    calx_tensor *g2 = part(l, l->g, 0, l->k);
    low = cx_ops_minus(low, product(g2, false, part(l, l->y, 0, l->k), true));
    further = solved(l, true, g2);
  } else if (l->m > l->k) {
    calx_tensor *g2 = part(l, l->g, l->k, 0);
    up = cx_ops_minus(up, product(part(l, l->y, l->k, 0), true, g2, false));
    further = solved_right(l, g2);
  }
  calx_tensor *x = cx_ops_plus(calx_tril(low, -1), calx_triu(up, 0));
  calx_tensor *parts[2] = { solved_right(l, solved(l, true, x)), further };
  return further == NULL ? parts[0] : calx_cat(parts, 2, l->n > l->k ? -1 : -2);
}

static void grad_lu(cx_lazy_tape *t)
{
  calx_tensor *y = cx_lazy_tape_out(t, 0);
  lu_grad l = { .y = y,
                .g = t->out_grads[0],
                .m = calx_tensor_dim(y, -2),
                .n = calx_tensor_dim(y, -1) };
  l.k = l.m < l.n ? l.m : l.n;
  l.y1 = part(&l, y, 0, 0);
  t->in_grads[0] = l.k == 0 ? cx_ops_zeros_like(y) : grad_of(&l);
}

// Operands: the matrix in the order of its pivots, and the factors, which were
// computed without gradient.
static calx_status *infer_lu(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 1);
  return NULL;
}

static void emit_lu(cx_graph_emit *e)
{
  e->out[0] = e->in[1];
}

CX_OPS_DEFINE(lu, .infer = infer_lu, .grad = grad_lu, .emit = emit_lu)

// ---- the factorisation ------------------------------------------------------

// What is not factored yet of (N, m, n): its rows, the factors to the left of
// them, and which rows of the matrix they are.
typedef struct rest {
  calx_tensor *x, *left, *order;
} rest;

// Factors a panel of `width` columns. Appends the rows that are ready.
static void eliminate(rest *r, int64_t width, calx_tensor **rows,
                      calx_tensor **order, calx_tensor **pivots)
{
  const cx_graph_shape s = *cx_lazy_tensor_shape(r->x);
  const int64_t m = s.dims[1] - width, n = s.dims[2] - width;
  calx_tensor *panel = calx_narrow(r->x, 2, 0, width), *out[2];
  cx_lazy_call call = {
    .op = &cx_ops_lu_panel, .in = &panel, .n_in = 1, .n_out = 2
  };
  cx_lazy_apply(&call, out);
  *pivots = out[1];
  calx_tensor *at = cx_ops_pivot_order(out[1], s.dims[1]);
  calx_tensor *others = cx_ops_in_order(calx_narrow(r->x, 2, width, n), at);
  calx_tensor *left = cx_ops_in_order(r->left, at);
  calx_tensor *whole = calx_gather(r->order, 1, at);
  calx_tensor *top = calx_narrow(out[0], 1, 0, width);
  calx_tensor *below = calx_narrow(out[0], 1, width, m);
  const cx_ops_triangle unit = { .lower = true, .unit = true };
  calx_tensor *u =
      cx_ops_solve_with(top, calx_narrow(others, 1, 0, width), &unit);
  calx_tensor *ready[3] = { calx_narrow(left, 1, 0, width), top, u };
  calx_tensor *done[2] = { calx_narrow(left, 1, width, m), below };
  *rows = calx_cat(ready, 3, 2);
  *order = calx_narrow(whole, 1, 0, width);
  r->x = cx_ops_minus(calx_narrow(others, 1, width, m), calx_matmul(below, u));
  r->left = calx_cat(done, 2, 2);
  r->order = calx_narrow(whole, 1, width, m);
}

// Of (N, m, n): factors, pivots (N, k) and the order (N, m).
static void factor(calx_tensor *x, calx_tensor **out)
{
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  const int64_t m = s.dims[1], n = s.dims[2], k = m < n ? m : n;
  calx_tensor *rows[MOST_BLOCKS + 1], *order[MOST_BLOCKS + 1],
      *pivots[MOST_BLOCKS];
  calx_create_options whole = { .size = sizeof whole,
                                .dtype = CALX_I64,
                                .device = calx_tensor_device(x) };
  calx_tensor *first = calx_arange_with(0, (double)m, 1, &whole);
  rest r = { .x = x,
             .left = calx_narrow(x, 2, 0, 0),
             .order = calx_expand(first, CALX_SHAPE(s.dims[0], m)) };
  size_t count = 0;
  for (int64_t at = 0; at < k; at += BLOCK, count++) {
    const int64_t width = k - at < BLOCK ? k - at : BLOCK;
    eliminate(&r, width, &rows[count], &order[count], &pivots[count]);
    calx_tensor *before = cx_ops_weak_as(cx_ops_number((double)at), CALX_I32,
                                         calx_tensor_device(x));
    pivots[count] = cx_ops_plus(pivots[count], before);
  }
  rows[count] = m > k ? r.left : calx_narrow(x, 1, 0, 0);
  order[count] = r.order;
  whole.dtype = CALX_I32;
  out[0] = calx_cat(rows, count + 1, 1);
  out[1] = count == 0 ? calx_zeros_with(CALX_SHAPE(s.dims[0], 0), &whole)
                      : calx_cat(pivots, count, 1);
  out[2] = calx_cat(order, count + 1, 1);
}

calx_tensor *cx_ops_lu_of(calx_tensor *x, calx_tensor **out_pivots,
                          calx_tensor **out_order)
{
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  const int64_t most = BLOCK * MOST_BLOCKS;
  if (s.dims[s.rank - 2] > most && s.dims[s.rank - 1] > most) {
    return *out_pivots = *out_order =
               cx_ops_invalid("lu: %s, at most %d rows or columns are possible",
                              cx_graph_shape_str(&s), BLOCK * MOST_BLOCKS);
  }
  calx_tensor *out[3];
  cx_lazy_no_grad_begin();
  factor(cx_ops_flat_batch(cx_lazy_tensor_detached(x)), out);
  for (int i = 0; i < 3; i++) out[i] = cx_ops_unflat_batch(out[i], &s);
  cx_lazy_no_grad_end();
  *out_pivots = out[1];
  *out_order = out[2];
  calx_tensor *in[2] = { cx_ops_in_order(x, out[2]), out[0] };
  for (int i = 0; i < 2; i++) {
    if (cx_lazy_tensor_poisoned(in[i])) return in[i];
  }
  return cx_ops_record(&cx_ops_lu, in, 2, NULL);
}
