// ops/spectral: eigenvalues of symmetric matrices and singular values, by
// rotations (ops/jacobi.c), with their gradients.
#include <float.h>

#include "base/dtype.h"
#include "ops/factor.h"

// x times a diagonal matrix, given as a vector.
static calx_tensor *scaled(calx_tensor *x, calx_tensor *diagonal)
{
  return calx_mul(x, calx_unsqueeze(diagonal, -2));
}

static calx_tensor *diagonal_of(calx_tensor *x)
{
  const calx_diagonal_options o = { .size = sizeof o, .dim1 = -2, .dim2 = -1 };
  return calx_diagonal_with(x, &o);
}

static calx_tensor *diagonal_matrix(calx_tensor *x)
{
  return calx_diag_embed_with(x, NULL);
}

// 1 / (x_j - x_i) at (i, j), and 0 on the diagonal.
static calx_tensor *inverse_gaps(calx_tensor *x)
{
  calx_tensor *gaps =
      cx_ops_minus(calx_unsqueeze(x, -2), calx_unsqueeze(x, -1));
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const int64_t n = s->dims[s->rank - 1];
  calx_tensor *eye = cx_ops_eye(x, n, n);
  gaps = calx_reciprocal(cx_ops_plus(gaps, eye));
  return calx_mul(gaps, cx_ops_minus(cx_ops_number(1), eye));
}

// The results were computed without gradient; they are operands 1, 2, ….
static calx_status *infer_named(cx_graph_node *node)
{
  for (uint32_t k = 0; k < node->n_out; k++) {
    node->out[k].shape = *cx_in(node, k + 1);
  }
  return NULL;
}

static void emit_named(cx_graph_emit *e)
{
  for (uint32_t k = 0; k < e->node->n_out; k++) e->out[k] = e->in[k + 1];
}

static void name(const cx_graph_op *op, calx_tensor *const *operands,
                 uint32_t n_out, calx_tensor **out)
{
  cx_lazy_call call = {
    .op = op, .in = operands, .n_in = n_out + 1, .n_out = n_out
  };
  cx_lazy_apply(&call, out);
}

// Columns of x (N, m, n) in the order `at` (N, n).
static calx_tensor *columns(calx_tensor *x, calx_tensor *at)
{
  if (cx_lazy_tensor_poisoned(x) || cx_lazy_tensor_poisoned(at)) return x;
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  at = calx_expand(calx_unsqueeze(at, 1), cx_ops_dims_of(&s));
  return calx_gather(x, 2, at);
}

// ---- symmetric matrices -----------------------------------------------------

// V (diag(dw) + V^T dV / gaps) V^T (M. Giles, An extended collection of matrix
// derivative results, 2008, 3.1).
static void grad_eigh(cx_lazy_tape *t)
{
  calx_tensor *w = cx_lazy_tape_out(t, 0), *v = cx_lazy_tape_out(t, 1);
  calx_tensor *dw = t->out_grads[0], *dv = t->out_grads[1], *inner = NULL;
  if (dw != NULL) inner = diagonal_matrix(dw);
  if (dv != NULL) {
    dv = calx_mul(calx_matmul(cx_ops_transposed(v), dv), inverse_gaps(w));
    inner = inner == NULL ? dv : cx_ops_plus(inner, dv);
  }
  calx_tensor *g = calx_matmul(calx_matmul(v, inner), cx_ops_transposed(v));
  // The matrix counts as symmetric.
  t->in_grads[0] =
      calx_mul(cx_ops_plus(g, cx_ops_transposed(g)), cx_ops_number(0.5));
}

CX_OPS_DEFINE(eigh, .infer = infer_named, .grad = grad_eigh, .emit = emit_named)

calx_tensor *calx_eigh_with(calx_tensor *x, calx_tensor **out_vectors,
                            const calx_eigh_options *o)
{
  CX_OPS_COMPOSITE("eigh");
  calx_tensor *bad, *w, *v, *at, *out[2];
  if (out_vectors != NULL) *out_vectors = NULL;
  if (!cx_ops_is_matrix("eigh", x, true, &bad)) {
    if (out_vectors != NULL) *out_vectors = bad;
    return bad;
  }
  CX_OPS_TAKE_OPTIONS(eigh, o, bad);
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  cx_lazy_no_grad_begin();
  calx_tensor *half = cx_ops_flat_batch(cx_lazy_tensor_detached(x));
  if (o->upper) half = cx_ops_transposed(half);
  half =
      cx_ops_plus(calx_tril(half, 0), cx_ops_transposed(calx_tril(half, -1)));
  cx_ops_jacobi_of(half, true, &w, &v);
  calx_sort_options order = { .size = sizeof order, .out_indices = &at };
  w = calx_sort_with(diagonal_of(w), &order);
  calx_tensor *operands[3] = { x, cx_ops_unflat_batch(w, &s),
                               cx_ops_unflat_batch(columns(v, at), &s) };
  cx_lazy_no_grad_end();
  name(&cx_ops_eigh, operands, 2, out);
  if (out_vectors != NULL) *out_vectors = out[1];
  return out[0];
}

// ---- singular values --------------------------------------------------------

// J. Townsend, Differentiating the singular value decomposition (2016), eq.
// 20 to 22, of U (m, k), s (k), V^T (k, n).
static void grad_svd(cx_lazy_tape *t)
{
  calx_tensor *u = cx_lazy_tape_out(t, 0), *s = cx_lazy_tape_out(t, 1);
  calx_tensor *vt = cx_lazy_tape_out(t, 2);
  calx_tensor *du = t->out_grads[0], *ds = t->out_grads[1];
  calx_tensor *dvt = t->out_grads[2], *v = cx_ops_transposed(vt);
  if (du != NULL && calx_tensor_dim(u, -1) != calx_tensor_dim(s, -1)) {
    t->in_grads[0] =
        cx_ops_invalid("svd: the vectors of .full_matrices have no gradient");
    return;
  }
  calx_tensor *inner =
      ds != NULL ? diagonal_matrix(ds) : diagonal_matrix(cx_ops_zeros_like(s));
  calx_tensor *gaps = inverse_gaps(calx_square(s)), *g = NULL;
  if (du != NULL) {
    calx_tensor *a = calx_matmul(cx_ops_transposed(u), du);
    a = calx_mul(cx_ops_minus(a, cx_ops_transposed(a)), gaps);
    inner = cx_ops_plus(inner, scaled(a, s));
    // What leaves the space of the columns.
    du = calx_div(du, calx_unsqueeze(s, -2));
    du =
        cx_ops_minus(du, calx_matmul(u, calx_matmul(cx_ops_transposed(u), du)));
    g = calx_matmul(du, vt);
  }
  if (dvt != NULL) {
    calx_tensor *dv = cx_ops_transposed(dvt), *a = calx_matmul(vt, dv);
    a = calx_mul(cx_ops_minus(a, cx_ops_transposed(a)), gaps);
    inner = cx_ops_plus(inner, calx_mul(calx_unsqueeze(s, -1), a));
    dv = calx_div(dv, calx_unsqueeze(s, -2));
    dv = cx_ops_minus(dv, calx_matmul(v, calx_matmul(vt, dv)));
    dv = calx_matmul(u, cx_ops_transposed(dv));
    g = g == NULL ? dv : cx_ops_plus(g, dv);
  }
  inner = calx_matmul(calx_matmul(u, inner), vt);
  t->in_grads[0] = g == NULL ? inner : cx_ops_plus(inner, g);
}

CX_OPS_DEFINE(svd, .infer = infer_named, .grad = grad_svd, .emit = emit_named)

// The factor of x = y r with orthonormal columns y where r is diagonal with
// elements of 1 or 0: x itself, with columns of 0 replaced. `whole`: as many
// columns as rows.
static calx_tensor *completed(calx_tensor *x, bool whole)
{
  cx_ops_qr_parts f;
  cx_ops_qr_of(x, whole, &f);
  const int64_t n = calx_tensor_dim(f.q, -1);
  calx_tensor *sign = calx_where(calx_lt(diagonal_of(f.r), cx_ops_number(0)),
                                 cx_ops_number(-1), cx_ops_number(1));
  const int64_t behind[2] = { 0, n - calx_tensor_dim(sign, -1) };
  const calx_pad_options one = { .size = sizeof one, .value = 1 };
  return scaled(f.q, calx_pad_with(sign, calx_dims_of(behind, 2), &one));
}

// Of (N, m, n) with m >= n: u (N, m, n or m), s (N, n), v (N, n, n). What is
// rotated is the triangle, which is smaller.
static void decompose(calx_tensor *x, bool full, calx_tensor **u,
                      calx_tensor **s, calx_tensor **v)
{
  cx_ops_qr_parts f;
  calx_tensor *rotated, *at;
  cx_ops_qr_of(x, full, &f);
  const int64_t n = calx_tensor_dim(x, 2);
  cx_ops_jacobi_of(calx_narrow(f.r, 1, 0, n), false, &rotated, v);
  const int64_t rows = 1;
  calx_norm_options o = { .size = sizeof o, .dims = calx_dims_of(&rows, 1) };
  calx_sort_options order = { .size = sizeof order,
                              .descending = true,
                              .out_indices = &at };
  *s = calx_sort_with(calx_norm_with(rotated, &o), &order);
  *v = columns(*v, at);
  rotated = columns(rotated, at);
  calx_tensor *none = calx_eq(*s, cx_ops_number(0));
  calx_tensor *divisor = calx_where(none, cx_ops_number(1), *s);
  rotated = completed(calx_div(rotated, calx_unsqueeze(divisor, 1)), false);
  calx_tensor *first = calx_matmul(calx_narrow(f.q, 2, 0, n), rotated);
  const int64_t m = calx_tensor_dim(f.q, 2);
  calx_tensor *parts[2] = { first, calx_narrow(f.q, 2, n, m - n) };
  *u = m == n ? first : calx_cat(parts, 2, 2);
}

calx_tensor *calx_svd_with(calx_tensor *x, calx_tensor **out_s,
                           calx_tensor **out_vh, const calx_svd_options *o)
{
  CX_OPS_COMPOSITE("svd");
  calx_tensor *bad, *u, *s, *v, *out[3];
  bool is_matrix = cx_ops_is_matrix("svd", x, false, &bad);
  if (out_s != NULL) *out_s = is_matrix ? NULL : bad;
  if (out_vh != NULL) *out_vh = is_matrix ? NULL : bad;
  if (!is_matrix) return bad;
  CX_OPS_TAKE_OPTIONS(svd, o, bad);
  const cx_graph_shape shape = *cx_lazy_tensor_shape(x);
  const bool wide = shape.dims[shape.rank - 2] < shape.dims[shape.rank - 1];
  cx_lazy_no_grad_begin();
  calx_tensor *flat = cx_ops_flat_batch(cx_lazy_tensor_detached(x));
  if (wide) {
    decompose(cx_ops_transposed(flat), o->full_matrices, &v, &s, &u);
  } else {
    decompose(flat, o->full_matrices, &u, &s, &v);
  }
  calx_tensor *operands[4] = {
    x, cx_ops_unflat_batch(u, &shape), cx_ops_unflat_batch(s, &shape),
    cx_ops_unflat_batch(cx_ops_transposed(v), &shape)
  };
  cx_lazy_no_grad_end();
  name(&cx_ops_svd, operands, 3, out);
  if (out_s != NULL) *out_s = out[1];
  if (out_vh != NULL) *out_vh = out[2];
  return out[0];
}

calx_tensor *calx_svdvals(calx_tensor *x)
{
  calx_tensor *s, *u = calx_svd_with(x, &s, NULL, NULL);
  return s != NULL ? s : u;
}

// ---- what follows from them -------------------------------------------------

// The greatest singular value that does not count, for each matrix.
static calx_tensor *greatest_none(calx_tensor *s, const cx_graph_shape *x,
                                  const calx_pinv_options *given)
{
  double rtol = given->rtol;
  const int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1];
  const bool narrow = x->dtype == CALX_F32;
  const double epsilon = narrow ? (double)FLT_EPSILON : DBL_EPSILON;
  if (cx_is_default(rtol)) {
    rtol = given->atol > 0 ? 0 : epsilon * (double)(m > n ? m : n);
  }
  const int64_t last = -1;
  const calx_reduce_options o = { .size = sizeof o,
                                  .dims = calx_dims_of(&last, 1),
                                  .keepdim = true };
  calx_tensor *most = calx_mul(calx_amax_with(s, &o), cx_ops_number(rtol));
  if (given->atol == 0) return most;
  return calx_maximum(most, cx_ops_number(given->atol));
}

// G. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear
// least squares problems whose variables separate, 1973: of matrices of the
// same rank, -P^T dP P^T + (I - X P) dP^T P P^T + P^T P dP^T (I - P X). Equal
// singular values do no harm, as they would in the rule of svd.
static void grad_pinv(cx_lazy_tape *t)
{
  calx_tensor *x = cx_lazy_tape_in(t, 0), *p = cx_lazy_tape_out(t, 0);
  calx_tensor *g = cx_ops_transposed(t->out_grads[0]),
              *q = cx_ops_transposed(p);
  calx_tensor *first = calx_matmul(calx_matmul(q, cx_ops_transposed(g)), q);
  calx_tensor *a = calx_matmul(calx_matmul(g, p), q);
  calx_tensor *b = calx_matmul(q, calx_matmul(p, g));
  a = cx_ops_minus(a, calx_matmul(x, calx_matmul(p, a)));
  b = cx_ops_minus(b, calx_matmul(calx_matmul(b, p), x));
  t->in_grads[0] = cx_ops_minus(cx_ops_plus(a, b), first);
}

CX_OPS_DEFINE(pinv, .infer = infer_named, .grad = grad_pinv, .emit = emit_named)

calx_tensor *calx_pinv_with(calx_tensor *x, const calx_pinv_options *o)
{
  CX_OPS_COMPOSITE("pinv");
  calx_tensor *s, *vh, *bad;
  if (!cx_ops_is_matrix("pinv", x, false, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(pinv, o, bad);
  const cx_graph_shape shape = *cx_lazy_tensor_shape(x);
  if (calx_tensor_numel(x) == 0) return cx_ops_transposed(x);
  cx_lazy_no_grad_begin();
  calx_tensor *u = calx_svd_with(cx_lazy_tensor_detached(x), &s, &vh, NULL);
  calx_tensor *counts = calx_gt(s, greatest_none(s, &shape, o));
  calx_tensor *safe = calx_where(counts, s, cx_ops_number(1));
  s = calx_where(counts, calx_reciprocal(safe), cx_ops_number(0));
  calx_tensor *in[2] = { x, calx_matmul(scaled(cx_ops_transposed(vh), s),
                                        cx_ops_transposed(u)) };
  cx_lazy_no_grad_end();
  if (cx_lazy_tensor_poisoned(in[1])) return in[1];
  return cx_ops_record(&cx_ops_pinv, in, 2, NULL);
}

calx_tensor *calx_matrix_rank_with(calx_tensor *x, const calx_pinv_options *o)
{
  CX_OPS_COMPOSITE("matrix_rank");
  calx_tensor *bad;
  if (!cx_ops_is_matrix("matrix_rank", x, false, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(pinv, o, bad);
  const cx_graph_shape shape = *cx_lazy_tensor_shape(x);
  calx_tensor *s = calx_detach(calx_svdvals(x));
  const int64_t last = -1;
  const calx_reduce_options r = { .size = sizeof r,
                                  .dims = calx_dims_of(&last, 1) };
  return calx_sum_with(calx_gt(s, greatest_none(s, &shape, o)), &r);
}
