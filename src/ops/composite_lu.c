// ops/composite_lu: the functions about elimination with partial pivoting.
#include "calx/creation.h"
#include "ops/factor.h"

// ---- parts of the factors ---------------------------------------------------

// The permutation matrix (…, m, m) whose column i is 1 in row order[i].
static calx_tensor *permutation(calx_tensor *order, calx_tensor *like)
{
  if (cx_lazy_tensor_poisoned(order)) return order;
  calx_create_options whole = { .size = sizeof whole,
                                .dtype = CALX_I64,
                                .device = calx_tensor_device(like) };
  const int64_t m = calx_tensor_dim(order, -1);
  calx_tensor *rows =
      calx_unsqueeze(calx_arange_with(0, (double)m, 1, &whole), 1);
  return calx_to_dtype(calx_eq(rows, calx_unsqueeze(order, -2)),
                       cx_lazy_tensor_shape(like)->dtype);
}

static void triangles(calx_tensor *lu, calx_tensor **l, calx_tensor **u)
{
  const int64_t m = calx_tensor_dim(lu, -2), n = calx_tensor_dim(lu, -1);
  const int64_t k = m < n ? m : n;
  *l = cx_ops_plus(calx_tril(calx_narrow(lu, -1, 0, k), -1),
                   cx_ops_eye(lu, m, k));
  *u = calx_triu(calx_narrow(lu, -2, 0, k), 0);
}

static void give(calx_tensor **out, calx_tensor *t)
{
  if (out != NULL) *out = t;
}

calx_tensor *calx_lu_factor(calx_tensor *x, calx_tensor **out_pivots)
{
  CX_OPS_COMPOSITE("lu_factor");
  calx_tensor *bad, *pivots, *order;
  if (!cx_ops_is_matrix("lu_factor", x, false, &bad)) {
    give(out_pivots, bad);
    return bad;
  }
  calx_tensor *lu = cx_ops_lu_of(x, &pivots, &order);
  give(out_pivots, pivots);
  return lu;
}

calx_tensor *calx_lu(calx_tensor *x, calx_tensor **out_l, calx_tensor **out_u)
{
  CX_OPS_COMPOSITE("lu");
  calx_tensor *p, *l, *u, *pivots, *order;
  if (!cx_ops_is_matrix("lu", x, false, &p)) {
    l = u = p;
  } else {
    calx_tensor *lu = cx_ops_lu_of(x, &pivots, &order);
    p = cx_lazy_tensor_poisoned(lu) ? lu : permutation(order, x);
    l = u = lu;
    if (!cx_lazy_tensor_poisoned(lu)) triangles(lu, &l, &u);
  }
  give(out_l, l);
  give(out_u, u);
  return p;
}

// ---- what takes the packed factors ------------------------------------------

// The order of the rows of packed factors. False: *out is what the function
// returns.
static bool take_factors(const char *op, calx_tensor *lu, calx_tensor *pivots,
                         bool square, calx_tensor **order, calx_tensor **out)
{
  if (!cx_ops_is_matrix(op, lu, square, out)) return false;
  if (cx_ops_unfit(op, &pivots, 1, out)) return false;
  const cx_graph_shape *s = cx_lazy_tensor_shape(lu);
  const cx_graph_shape *p = cx_lazy_tensor_shape(pivots);
  const int64_t m = s->dims[s->rank - 2], n = s->dims[s->rank - 1];
  bool fits = p->rank + 1 == s->rank && p->dtype == CALX_I32 &&
              p->dims[p->rank - 1] == (m < n ? m : n);
  for (uint32_t i = 0; fits && i + 2 < s->rank; i++) {
    fits = p->dims[i] == s->dims[i];
  }
  if (!fits) {
    *out = cx_ops_invalid(
        "%s: the factors are %s, the pivots %s: those of calx_lu_factor are "
        "wanted, i32, one for each row or column",
        op, cx_graph_shape_str(s), cx_graph_shape_str(p));
    return false;
  }
  const cx_graph_shape of_lu = *s;
  // As a column for each matrix: (N, k, 1)
  calx_tensor *flat = cx_ops_flat_batch(calx_unsqueeze(pivots, -1));
  flat = cx_ops_pivot_order(calx_squeeze(flat, -1), m);
  *order = cx_ops_unflat_batch(flat, &of_lu);
  return true;
}

calx_tensor *calx_lu_unpack(calx_tensor *lu, calx_tensor *pivots,
                            calx_tensor **out_l, calx_tensor **out_u)
{
  CX_OPS_COMPOSITE("lu_unpack");
  calx_tensor *order, *p, *l, *u;
  if (take_factors("lu_unpack", lu, pivots, false, &order, &p)) {
    p = permutation(order, lu);
    triangles(lu, &l, &u);
  } else {
    l = u = p;
  }
  give(out_l, l);
  give(out_u, u);
  return p;
}

typedef struct lu_system {
  calx_tensor *lu, *order, *b;
} lu_system;

static calx_tensor *solved(const lu_system *s, bool transposed)
{
  cx_ops_triangle l = { .lower = true, .unit = true };
  cx_ops_triangle u = { .lower = false };
  if (!transposed) {
    calx_tensor *b = cx_ops_in_order(s->b, s->order);
    return cx_ops_solve_with(s->lu, cx_ops_solve_with(s->lu, b, &l), &u);
  }
  l.transpose = u.transpose = true;
  calx_tensor *y =
      cx_ops_solve_with(s->lu, cx_ops_solve_with(s->lu, s->b, &u), &l);
  const calx_sort_options o = { .size = sizeof o };
  return cx_ops_in_order(y, calx_argsort_with(s->order, &o));
}

calx_tensor *calx_lu_solve_with(calx_tensor *lu, calx_tensor *pivots,
                                calx_tensor *b, const calx_lu_solve_options *o)
{
  CX_OPS_COMPOSITE("lu_solve");
  calx_tensor *order, *bad, *in[2] = { lu, b };
  if (!take_factors("lu_solve", lu, pivots, true, &order, &bad) ||
      !cx_ops_is_matrix("lu_solve", b, false, &bad)) {
    return bad;
  }
  CX_OPS_TAKE_OPTIONS(lu_solve, o, bad);
  // x a = b is a^T x^T = b^T.
  if (o->right) in[1] = cx_ops_transposed(b);
  if (!cx_ops_same_batch("lu_solve", in, &bad)) return bad;
  cx_graph_shape rows = *cx_lazy_tensor_shape(in[0]);
  rows.rank--;
  const lu_system s = { .lu = in[0],
                        .order = calx_expand(order, cx_ops_dims_of(&rows)),
                        .b = in[1] };
  calx_tensor *x = solved(&s, o->adjoint != o->right);
  return o->right ? cx_ops_transposed(x) : x;
}

// ---- reflections ------------------------------------------------------------

// The reflections' vectors of x (…, m, n): its first k columns below the
// diagonal, with ones on it.
static calx_tensor *vectors_of(calx_tensor *x, int64_t k)
{
  const int64_t m = calx_tensor_dim(x, -2);
  return cx_ops_plus(calx_tril(calx_narrow(x, -1, 0, k), -1),
                     cx_ops_eye(x, m, k));
}

// Whether tau is a number for each of at most as many columns as x has, and as
// it has rows; `tall`: x has no more columns than rows. False: *out is what the
// function returns.
static bool reflections_fit(const char *op, calx_tensor *x, calx_tensor *tau,
                            bool tall, calx_tensor **out)
{
  if (!cx_ops_is_matrix(op, x, false, out)) return false;
  if (cx_ops_unfit(op, &tau, 1, out)) return false;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const cx_graph_shape *t = cx_lazy_tensor_shape(tau);
  const int64_t m = s->dims[s->rank - 2], n = s->dims[s->rank - 1];
  bool fits = t->rank + 1 == s->rank && t->dtype == s->dtype &&
              t->dims[t->rank - 1] <= (m < n ? m : n) && (!tall || n <= m);
  for (uint32_t i = 0; fits && i + 2 < s->rank; i++) {
    fits = t->dims[i] == s->dims[i];
  }
  if (fits) return true;
  *out = cx_ops_invalid(
      "%s: x is %s, tau %s: reflections (…, m, n)%s and (…, k) of the same "
      "type with k <= m and k <= n are wanted",
      op, cx_graph_shape_str(s), cx_graph_shape_str(t),
      tall ? " with n <= m" : "");
  return false;
}

// q y, or q^T y, of the reflections v and tau: q = I - v t v^T.
static calx_tensor *reflected(calx_tensor *v, calx_tensor *tau, bool transpose,
                              calx_tensor *y)
{
  calx_tensor *t = cx_ops_wy_triangle(v, tau);
  if (transpose) t = cx_ops_transposed(t);
  calx_tensor *row = calx_matmul(cx_ops_transposed(v), y);
  return cx_ops_minus(y, calx_matmul(v, calx_matmul(t, row)));
}

calx_tensor *calx_householder_product(calx_tensor *x, calx_tensor *tau)
{
  CX_OPS_COMPOSITE("householder_product");
  calx_tensor *bad;
  if (!reflections_fit("householder_product", x, tau, true, &bad)) return bad;
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  calx_tensor *eye = cx_ops_eye(x, s.dims[s.rank - 2], s.dims[s.rank - 1]);
  eye = calx_expand(eye, cx_ops_dims_of(&s));
  const int64_t k = calx_tensor_dim(tau, -1);
  return k == 0 ? eye : reflected(vectors_of(x, k), tau, false, eye);
}

calx_tensor *calx_orgqr(calx_tensor *x, calx_tensor *tau)
{
  return calx_householder_product(x, tau);
}

calx_tensor *calx_ormqr_with(calx_tensor *x, calx_tensor *tau,
                             calx_tensor *other, const calx_ormqr_options *o)
{
  CX_OPS_COMPOSITE("ormqr");
  calx_tensor *bad;
  if (!reflections_fit("ormqr", x, tau, false, &bad) ||
      !cx_ops_is_matrix("ormqr", other, false, &bad)) {
    return bad;
  }
  CX_OPS_TAKE_OPTIONS(ormqr, o, bad);
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const cx_graph_shape *t = cx_lazy_tensor_shape(other);
  bool fits = s->rank == t->rank && s->dtype == t->dtype &&
              t->dims[t->rank - (o->right ? 1 : 2)] == s->dims[s->rank - 2];
  for (uint32_t i = 0; fits && i + 2 < s->rank; i++) {
    fits = t->dims[i] == s->dims[i];
  }
  if (!fits) {
    return cx_ops_invalid(
        "ormqr: the reflections are %s, the other operand %s: matrices of one "
        "type with as many %s as the first has rows are wanted",
        cx_graph_shape_str(s), cx_graph_shape_str(t),
        o->right ? "columns" : "rows");
  }
  const int64_t k = calx_tensor_dim(tau, -1);
  if (k == 0) return other;
  // y q is (q^T y^T)^T.
  if (o->right) other = cx_ops_transposed(other);
  calx_tensor *y =
      reflected(vectors_of(x, k), tau, o->transpose != o->right, other);
  return o->right ? cx_ops_transposed(y) : y;
}

calx_tensor *calx_geqrf(calx_tensor *x, calx_tensor **out_tau)
{
  CX_OPS_COMPOSITE("geqrf");
  calx_tensor *bad, *v, *tau, *r;
  if (!cx_ops_is_matrix("geqrf", x, false, &bad)) {
    give(out_tau, bad);
    return bad;
  }
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  const int64_t m = s.dims[s.rank - 2], n = s.dims[s.rank - 1];
  const int64_t k = m < n ? m : n;
  cx_lazy_no_grad_begin();
  calx_tensor *flat = cx_ops_flat_batch(cx_lazy_tensor_detached(x));
  cx_ops_householder_panel(calx_narrow(flat, 2, 0, k), &v, &tau, &r);
  r = cx_ops_plus(calx_triu(r, 0), calx_tril(v, -1));
  if (n > k) {
    calx_tensor *further =
        reflected(v, tau, true, calx_narrow(flat, 2, k, n - k));
    calx_tensor *parts[2] = { r, further };
    r = calx_cat(parts, 2, 2);
  }
  give(out_tau, cx_ops_unflat_batch(tau, &s));
  r = cx_ops_unflat_batch(r, &s);
  cx_lazy_no_grad_end();
  return r;
}

// ---- triangles --------------------------------------------------------------

calx_tensor *calx_triangular_solve_with(calx_tensor *b, calx_tensor *a,
                                        const calx_triangular_solve_options *o)
{
  CX_OPS_COMPOSITE("triangular_solve");
  calx_tensor *bad, *in[2] = { a, b };
  if (!cx_ops_is_matrix("triangular_solve", a, true, &bad) ||
      !cx_ops_is_matrix("triangular_solve", b, false, &bad)) {
    return bad;
  }
  CX_OPS_TAKE_OPTIONS(triangular_solve, o, bad);
  if (!cx_ops_same_batch("triangular_solve", in, &bad)) return bad;
  const cx_ops_triangle how = { .lower = o->lower,
                                .unit = o->unitriangular,
                                .transpose = o->transpose };
  return cx_ops_solve_with(in[0], in[1], &how);
}
