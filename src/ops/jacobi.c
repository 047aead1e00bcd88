// ops/jacobi: a loop of rotations that makes the columns of a matrix
// orthogonal, or a symmetric matrix diagonal. In each step n / 2 pairs of
// columns that have nothing in common are rotated, and after n - 1 steps, a
// sweep, each pair was once a pair (R. Brent, F. Luk, The solution of
// singular-value and symmetric eigenvalue problems on multiprocessor arrays,
// 1985).
#include <float.h>

#include "ops/factor.h"

// BOUND: a smaller WORST ends the loop.
enum { STEP, WORST, BOUND, MATRIX, VECTORS, VARS };
enum { MOST_SWEEPS = 40 };

typedef struct jacobi_attrs {
  uint32_t symmetric;
} jacobi_attrs;

// x (N, m, n) with n even, in 1 the unit matrices (N, n, n); the results: x
// times the rotations (of a symmetric matrix from both sides), the rotations.
static calx_status *infer_jacobi(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 0);
  node->out[1].shape = *cx_in(node, 1);
  return NULL;
}

typedef struct rotation_loop {
  cx_hlo_builder *b;
  cx_hlo_elem elem;
  bool symmetric;
  int64_t n, half;  // columns, and pairs of them
} rotation_loop;

static cx_hlo_value *two(const rotation_loop *l, cx_hlo_op_kind kind,
                         cx_hlo_value *x, cx_hlo_value *y)
{
  return cx_hlo_binary(l->b, kind, x, y);
}

static cx_hlo_value *times(const rotation_loop *l, cx_hlo_value *x,
                           cx_hlo_value *y)
{
  return two(l, CX_HLO_OP_MULTIPLY, x, y);
}

static cx_hlo_value *combined(const rotation_loop *l, cx_hlo_op_kind kind,
                              cx_hlo_value *x, const int64_t *dims, size_t n)
{
  cx_hlo_value *zero = cx_hlo_splat(l->b, (cx_hlo_type){ l->elem, 0, NULL }, 0);
  return cx_hlo_reduce_with(l->b, kind, x, zero, dims, n);
}

// Places [from, to) of a dimension of x.
static cx_hlo_value *part(const rotation_loop *l, cx_hlo_value *x, int dim,
                          int64_t from, int64_t to)
{
  const cx_hlo_type *t = cx_hlo_value_type(x);
  if (t->rank != 3) return NULL;  // the builder has failed
  const int64_t stride[3] = { 1, 1, 1 };
  int64_t start[3] = { 0 };
  int64_t limit[3] = { t->dims[0], t->dims[1], t->dims[2] };
  start[dim] = from;
  limit[dim] = to;
  return cx_hlo_slice(l->b, x, start, limit, stride);
}

// The pairs' partners change: with columns a0 a1 … in the first half and b0 b1
// … in the second, a0 stays and the others go round: a0 b0 a1 … | b1 … a_last.
static cx_hlo_value *shifted(const rotation_loop *l, cx_hlo_value *x, int dim)
{
  const int64_t h = l->half, n = l->n;
  const int64_t ranges[5][2] = {
    { 0, 1 }, { h, h + 1 }, { 1, h - 1 }, { h + 1, n }, { h - 1, h }
  };
  cx_hlo_value *parts[5];
  size_t count = 0;
  if (h == 1) return x;
  for (int i = 0; i < 5; i++) {
    if (ranges[i][0] == ranges[i][1]) continue;
    parts[count++] = part(l, x, dim, ranges[i][0], ranges[i][1]);
  }
  return cx_hlo_concatenate(l->b, parts, count, dim);
}

typedef struct rotation {
  cx_hlo_value *c, *s;  // (N, half)
} rotation;

// Columns (dim 2) or rows (dim 1) of x rotated, pair by pair.
static cx_hlo_value *rotated(const rotation_loop *l, cx_hlo_value *x, int dim,
                             const rotation *r)
{
  cx_hlo_value *a = part(l, x, dim, 0, l->half);
  cx_hlo_value *b = part(l, x, dim, l->half, l->n);
  const int64_t *dims = cx_hlo_value_type(a)->dims, at[2] = { 0, dim };
  if (a == NULL) return NULL;
  cx_hlo_value *c = cx_hlo_broadcast_in_dim(l->b, r->c, dims, 3, at);
  cx_hlo_value *s = cx_hlo_broadcast_in_dim(l->b, r->s, dims, 3, at);
  cx_hlo_value *both[2] = {
    two(l, CX_HLO_OP_SUBTRACT, times(l, c, a), times(l, s, b)),
    two(l, CX_HLO_OP_ADD, times(l, s, a), times(l, c, b)),
  };
  return cx_hlo_concatenate(l->b, both, 2, dim);
}

// Elements (i, i) of rows from `row` on and columns from `column` on, (N,
// half).
static cx_hlo_value *diagonal(const rotation_loop *l, cx_hlo_value *x,
                              int64_t row, int64_t column)
{
  const int64_t dim = 2;
  x = part(l, part(l, x, 1, row, row + l->half), 2, column, column + l->half);
  const cx_hlo_type *t = cx_hlo_value_type(x);
  const cx_hlo_type index = { CX_HLO_I32, 3, t->dims };
  cx_hlo_value *on =
      cx_hlo_compare(l->b, CX_HLO_EQ, cx_hlo_iota(l->b, index, 1),
                     cx_hlo_iota(l->b, index, 2));
  x = cx_hlo_select(l->b, on, x, cx_ops_splat_as(l->b, l->elem, x, 0));
  return combined(l, CX_HLO_OP_ADD, x, &dim, 1);
}

// The angle that makes r of [[p, r], [r, q]] 0 (G. Golub, C. Van Loan, Matrix
// Computations, 8.5.2). *share: |r|, of columns as their cosine.
static rotation angle(const rotation_loop *l, cx_hlo_value *x,
                      cx_hlo_value **share)
{
  cx_hlo_builder *b = l->b;
  cx_hlo_value *p, *q, *r;
  const int64_t rows = 1;
  if (l->symmetric) {
    p = diagonal(l, x, 0, 0);
    q = diagonal(l, x, l->half, l->half);
    r = diagonal(l, x, 0, l->half);
  } else {
    cx_hlo_value *u = part(l, x, 2, 0, l->half);
    cx_hlo_value *v = part(l, x, 2, l->half, l->n);
    p = combined(l, CX_HLO_OP_ADD, times(l, u, u), &rows, 1);
    q = combined(l, CX_HLO_OP_ADD, times(l, v, v), &rows, 1);
    r = combined(l, CX_HLO_OP_ADD, times(l, u, v), &rows, 1);
  }
  cx_hlo_value *one = cx_ops_splat_as(l->b, l->elem, r, 1),
               *zero = cx_ops_splat_as(l->b, l->elem, r, 0);
  cx_hlo_value *none = cx_hlo_compare(b, CX_HLO_EQ, r, zero);
  cx_hlo_value *size = cx_hlo_unary(b, CX_HLO_OP_ABS, r);
  *share = size;
  if (!l->symmetric) {
    cx_hlo_value *norms = times(l, cx_hlo_unary(b, CX_HLO_OP_SQRT, p),
                                cx_hlo_unary(b, CX_HLO_OP_SQRT, q));
    norms = cx_hlo_select(b, none, one, norms);
    *share = two(l, CX_HLO_OP_DIVIDE, size, norms);
  }
  cx_hlo_value *twice =
      cx_hlo_select(b, none, one, two(l, CX_HLO_OP_ADD, r, r));
  cx_hlo_value *tau =
      two(l, CX_HLO_OP_DIVIDE, two(l, CX_HLO_OP_SUBTRACT, q, p), twice);
  cx_hlo_value *root = cx_hlo_unary(
      b, CX_HLO_OP_SQRT, two(l, CX_HLO_OP_ADD, one, times(l, tau, tau)));
  cx_hlo_value *below = cx_hlo_compare(b, CX_HLO_LT, tau, zero);
  cx_hlo_value *t =
      two(l, CX_HLO_OP_DIVIDE, one,
          two(l, CX_HLO_OP_ADD, cx_hlo_unary(b, CX_HLO_OP_ABS, tau), root));
  t = cx_hlo_select(b, below, cx_hlo_unary(b, CX_HLO_OP_NEGATE, t), t);
  t = cx_hlo_select(b, none, zero, t);
  rotation out = { .c = cx_hlo_unary(
                       b, CX_HLO_OP_RSQRT,
                       two(l, CX_HLO_OP_ADD, one, times(l, t, t))) };
  out.s = times(l, t, out.c);
  return out;
}

// Within a sweep always; a sweep follows where a pair of the last one was not
// orthogonal.
static void goes_on(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                    cx_hlo_value **out)
{
  const rotation_loop *l = user;
  cx_hlo_value *step = args[STEP], *steps = cx_ops_index(l->b, l->n - 1);
  cx_hlo_value *in_sweep =
      cx_hlo_compare(b, CX_HLO_NE, two(l, CX_HLO_OP_REMAINDER, step, steps),
                     cx_ops_index(l->b, 0));
  cx_hlo_value *apart = cx_hlo_compare(b, CX_HLO_GT, args[WORST], args[BOUND]);
  cx_hlo_value *more = cx_hlo_compare(
      b, CX_HLO_LT, step, cx_ops_index(l->b, MOST_SWEEPS * (l->n - 1)));
  out[0] = two(l, CX_HLO_OP_AND, more, two(l, CX_HLO_OP_OR, in_sweep, apart));
}

static void take_step(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                      cx_hlo_value **out)
{
  const rotation_loop *l = user;
  const int64_t all[2] = { 0, 1 };
  cx_hlo_value *x = args[MATRIX], *share;
  const rotation r = angle(l, x, &share);
  x = shifted(l, rotated(l, x, 2, &r), 2);
  if (l->symmetric) x = shifted(l, rotated(l, x, 1, &r), 1);
  cx_hlo_value *first = cx_hlo_compare(
      b, CX_HLO_EQ,
      two(l, CX_HLO_OP_REMAINDER, args[STEP], cx_ops_index(l->b, l->n - 1)),
      cx_ops_index(l->b, 0));
  cx_hlo_value *before = cx_hlo_select(
      b, first, cx_ops_splat_as(l->b, l->elem, args[WORST], 0), args[WORST]);
  out[STEP] = two(l, CX_HLO_OP_ADD, args[STEP], cx_ops_index(l->b, 1));
  out[WORST] = two(l, CX_HLO_OP_MAXIMUM, before,
                   combined(l, CX_HLO_OP_MAXIMUM, share, all, 2));
  out[BOUND] = args[BOUND];
  out[MATRIX] = x;
  out[VECTORS] = shifted(l, rotated(l, args[VECTORS], 2, &r), 2);
}

static void emit_jacobi(cx_graph_emit *e)
{
  const jacobi_attrs *a = e->attrs;
  const cx_graph_shape *s = cx_in(e->node, 0);
  const bool narrow = s->dtype == CALX_F32;
  const double epsilon = narrow ? (double)FLT_EPSILON : DBL_EPSILON;
  rotation_loop l = { .b = e->b,
                      .elem = cx_ops_out_type(e, 0).elem,
                      .symmetric = a->symmetric,
                      .n = s->dims[2],
                      .half = s->dims[2] / 2 };
  const cx_hlo_type number = { l.elem, 0, NULL };
  const int64_t all[3] = { 0, 1, 2 };
  cx_hlo_value *bound = cx_hlo_splat(e->b, number, epsilon);
  if (l.symmetric) {  // relative to the greatest element
    cx_hlo_value *size = cx_hlo_unary(e->b, CX_HLO_OP_ABS, e->in[0]);
    bound = times(&l, bound, combined(&l, CX_HLO_OP_MAXIMUM, size, all, 3));
  }
  cx_hlo_value *vars[VARS] = {
    [STEP] = cx_ops_index(e->b, 0),
    [WORST] = cx_hlo_highest(e->b, l.elem),
    [BOUND] = bound,
    [MATRIX] = e->in[0],
    [VECTORS] = e->in[1],
  };
  cx_hlo_value *out[VARS];
  cx_hlo_while(e->b, VARS, vars, goes_on, take_step, &l, out);
  e->out[0] = out[MATRIX];
  e->out[1] = out[VECTORS];
}

CX_OPS_DEFINE(jacobi, .attr_size = sizeof(jacobi_attrs), .infer = infer_jacobi,
              .emit = emit_jacobi)

void cx_ops_jacobi_of(calx_tensor *x, bool symmetric, calx_tensor **out_x,
                      calx_tensor **out_v)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const int64_t n = s->dims[2], odd = n % 2;
  const int64_t pad[4] = { 0, odd, 0, symmetric ? odd : 0 };
  const int64_t dims[3] = { s->dims[0], n + odd, n + odd };
  calx_tensor *in[2] = { x, calx_expand(cx_ops_eye(x, n + odd, n + odd),
                                        calx_dims_of(dims, 3)) };
  if (n < 2) {
    *out_x = x;
    *out_v = in[1];
    if (odd) *out_v = calx_narrow(calx_narrow(in[1], 1, 0, n), 2, 0, n);
    return;
  }
  // A column of zeros is rotated with no other, and is at its place again
  // behind each sweep.
  in[0] = calx_pad_with(x, calx_dims_of(pad, 4), NULL);
  const jacobi_attrs a = { symmetric };
  calx_tensor *out[2];
  cx_lazy_call call = {
    .op = &cx_ops_jacobi, .in = in, .n_in = 2, .n_out = 2, .attrs = &a
  };
  cx_lazy_apply(&call, out);
  *out_x = calx_narrow(out[0], 2, 0, n);
  if (symmetric) *out_x = calx_narrow(*out_x, 1, 0, n);
  *out_v = calx_narrow(calx_narrow(out[1], 1, 0, n), 2, 0, n);
}
