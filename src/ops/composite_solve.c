// ops/composite_solve: systems of equations, inverses and determinants,
// composed of the factorisations.
#include <math.h>

#include "ops/factor.h"

// Ones on the diagonals of square matrices, as x.
static calx_tensor *eye_like(calx_tensor *x)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const int64_t n = s->dims[s->rank - 1];
  return calx_expand(cx_ops_eye(x, n, n), cx_ops_dims_of(s));
}

bool cx_ops_same_batch(const char *op, calx_tensor *in[2], calx_tensor **out)
{
  cx_graph_shape s[2] = { *cx_lazy_tensor_shape(in[0]),
                          *cx_lazy_tensor_shape(in[1]) };
  uint32_t rank = s[0].rank > s[1].rank ? s[0].rank : s[1].rank;
  cx_graph_shape whole = { .rank = rank };
  bool fits = s[0].dtype == s[1].dtype && s[0].rank >= 2 && s[1].rank >= 2 &&
              s[0].dims[s[0].rank - 2] == s[1].dims[s[1].rank - 2];
  for (uint32_t i = 3; fits && i <= rank; i++) {
    int64_t a = i <= s[0].rank ? s[0].dims[s[0].rank - i] : 1;
    int64_t b = i <= s[1].rank ? s[1].dims[s[1].rank - i] : 1;
    fits = a == b || a == 1 || b == 1;
    whole.dims[rank - i] = a == 1 ? b : a;
  }
  if (!fits) {
    *out = cx_ops_invalid(
        "%s: %s and %s do not fit: as many rows, the same element type and "
        "leading dimensions that broadcast are wanted",
        op, cx_graph_shape_str(&s[0]), cx_graph_shape_str(&s[1]));
    return false;
  }
  for (int k = 0; k < 2; k++) {
    for (uint32_t i = 1; i <= 2; i++) {
      whole.dims[rank - i] = s[k].dims[s[k].rank - i];
    }
    in[k] = calx_expand(in[k], cx_ops_dims_of(&whole));
  }
  return true;
}

// ---- triangles --------------------------------------------------------------

calx_tensor *calx_cholesky_with(calx_tensor *x, const calx_cholesky_options *o)
{
  CX_OPS_COMPOSITE("cholesky");
  calx_tensor *bad;
  if (!cx_ops_is_matrix("cholesky", x, true, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(cholesky, o, bad);
  if (o->upper) x = cx_ops_transposed(x);
  x = cx_ops_record(&cx_ops_cholesky, &x, 1, NULL);
  return o->upper ? cx_ops_transposed(x) : x;
}

calx_tensor *calx_solve_triangular_with(calx_tensor *a, calx_tensor *b,
                                        const calx_solve_triangular_options *o)
{
  CX_OPS_COMPOSITE("solve_triangular");
  calx_tensor *in[2] = { a, b }, *bad;
  if (!cx_ops_is_matrix("solve_triangular", a, true, &bad) ||
      !cx_ops_is_matrix("solve_triangular", b, false, &bad)) {
    return bad;
  }
  CX_OPS_TAKE_OPTIONS(solve_triangular, o, bad);
  // x a = b is a^T x^T = b^T.
  if (o->right) in[1] = cx_ops_transposed(b);
  if (!cx_ops_same_batch("solve_triangular", in, &bad)) return bad;
  const cx_ops_triangle how = { .lower = !o->upper,
                                .unit = o->unitriangular,
                                .transpose = o->right };
  calx_tensor *x = cx_ops_solve_with(in[0], in[1], &how);
  return o->right ? cx_ops_transposed(x) : x;
}

calx_tensor *calx_cholesky_solve_with(calx_tensor *b, calx_tensor *l,
                                      const calx_cholesky_options *o)
{
  CX_OPS_COMPOSITE("cholesky_solve");
  calx_tensor *in[2] = { l, b }, *bad;
  if (!cx_ops_is_matrix("cholesky_solve", l, true, &bad) ||
      !cx_ops_is_matrix("cholesky_solve", b, false, &bad)) {
    return bad;
  }
  CX_OPS_TAKE_OPTIONS(cholesky, o, bad);
  if (!cx_ops_same_batch("cholesky_solve", in, &bad)) return bad;
  const cx_ops_triangle first = { .lower = !o->upper, .transpose = o->upper };
  const cx_ops_triangle then = { .lower = !o->upper, .transpose = !o->upper };
  return cx_ops_solve_with(in[0], cx_ops_solve_with(in[0], in[1], &first),
                           &then);
}

calx_tensor *calx_cholesky_inverse_with(calx_tensor *l,
                                        const calx_cholesky_options *o)
{
  calx_tensor *bad;
  if (!cx_ops_is_matrix("cholesky_inverse", l, true, &bad)) return bad;
  return calx_cholesky_solve_with(eye_like(l), l, o);
}

// ---- QR ---------------------------------------------------------------------

calx_tensor *calx_qr_with(calx_tensor *x, calx_tensor **out_r,
                          const calx_qr_options *o)
{
  CX_OPS_COMPOSITE("qr");
  calx_tensor *bad;
  cx_ops_qr_parts parts;
  if (!cx_ops_is_matrix("qr", x, false, &bad)) {
    if (out_r != NULL) *out_r = bad;
    return bad;
  }
  if (out_r != NULL) *out_r = x;
  CX_OPS_TAKE_OPTIONS(qr, o, bad);
  cx_ops_qr_of(x, o->complete, &parts);
  if (out_r != NULL) *out_r = parts.r;
  return parts.q;
}

// Whether b is a vector for each matrix of `a`.
static bool is_vector(calx_tensor *a, calx_tensor *b)
{
  const cx_graph_shape *m = cx_lazy_tensor_shape(a);
  cx_graph_shape rows = *m;
  rows.rank--;
  const cx_graph_shape *s = cx_lazy_tensor_shape(b);
  return s->rank == 1 || cx_graph_shape_equal(s, &rows);
}

calx_tensor *calx_solve(calx_tensor *a, calx_tensor *b)
{
  CX_OPS_COMPOSITE("solve");
  calx_tensor *in[2] = { a, b }, *bad;
  if (!cx_ops_is_matrix("solve", a, true, &bad) ||
      cx_ops_unfit("solve", in, 2, &bad)) {
    return bad;
  }
  const bool vector = is_vector(a, b);
  if (vector) in[1] = calx_unsqueeze(b, -1);
  if (!cx_ops_same_batch("solve", in, &bad)) return bad;
  cx_ops_qr_parts f;
  cx_ops_qr_of(in[0], false, &f);
  calx_tensor *x = cx_ops_solve_with(
      f.r, calx_matmul(cx_ops_transposed(f.q), in[1]), &(cx_ops_triangle){ 0 });
  return vector ? calx_squeeze(x, -1) : x;
}

calx_tensor *calx_lstsq(calx_tensor *a, calx_tensor *b)
{
  CX_OPS_COMPOSITE("lstsq");
  calx_tensor *in[2] = { a, b }, *bad;
  if (!cx_ops_is_matrix("lstsq", a, false, &bad) ||
      !cx_ops_is_matrix("lstsq", b, false, &bad) ||
      !cx_ops_same_batch("lstsq", in, &bad)) {
    return bad;
  }
  cx_ops_qr_parts f;
  const cx_graph_shape *s = cx_lazy_tensor_shape(in[0]);
  if (s->dims[s->rank - 2] >= s->dims[s->rank - 1]) {
    cx_ops_qr_of(in[0], false, &f);
    return cx_ops_solve_with(f.r, calx_matmul(cx_ops_transposed(f.q), in[1]),
                             &(cx_ops_triangle){ 0 });
  }
  // The shortest solution lies in the rows: a = r^T q^T.
  cx_ops_qr_of(cx_ops_transposed(in[0]), false, &f);
  const cx_ops_triangle how = { .transpose = true };
  return calx_matmul(f.q, cx_ops_solve_with(f.r, in[1], &how));
}

calx_tensor *calx_inverse(calx_tensor *x)
{
  calx_tensor *bad;
  if (!cx_ops_is_matrix("inverse", x, true, &bad)) return bad;
  CX_OPS_COMPOSITE("inverse");
  return calx_solve(x, eye_like(x));
}

// ---- determinants -----------------------------------------------------------

// The triangle's diagonal, and the sign of the other factor's determinant.
static bool diagonal_of(const char *op, calx_tensor *x, calx_tensor **diagonal,
                        calx_tensor **sign, calx_tensor **out)
{
  if (!cx_ops_is_matrix(op, x, true, out)) return false;
  cx_ops_qr_parts f;
  cx_ops_qr_of(x, false, &f);
  const calx_diagonal_options o = { .size = sizeof o, .dim1 = -2, .dim2 = -1 };
  *diagonal = calx_diagonal_with(f.r, &o);
  *sign = f.sign;
  return true;
}

static calx_reduce_options last_dim(void)
{
  return (calx_reduce_options){ .size = sizeof(calx_reduce_options),
                                .dims = CALX_DIMS(-1) };
}

calx_tensor *calx_det(calx_tensor *x)
{
  CX_OPS_COMPOSITE("det");
  calx_tensor *diagonal, *sign, *bad;
  if (!diagonal_of("det", x, &diagonal, &sign, &bad)) return bad;
  const calx_reduce_options o = last_dim();
  return calx_mul(calx_prod_with(diagonal, &o), sign);
}

calx_tensor *calx_slogdet(calx_tensor *x, calx_tensor **out_logabsdet)
{
  CX_OPS_COMPOSITE("slogdet");
  calx_tensor *diagonal, *sign, *bad;
  if (!diagonal_of("slogdet", x, &diagonal, &sign, &bad)) {
    if (out_logabsdet != NULL) *out_logabsdet = bad;
    return bad;
  }
  const calx_reduce_options o = last_dim();
  if (out_logabsdet != NULL) {
    *out_logabsdet = calx_sum_with(calx_log(calx_abs(diagonal)), &o);
  }
  return calx_mul(calx_prod_with(calx_sign(calx_detach(diagonal)), &o), sign);
}

calx_tensor *calx_logdet(calx_tensor *x)
{
  CX_OPS_COMPOSITE("logdet");
  calx_tensor *log = NULL;
  calx_tensor *sign = calx_slogdet(x, &log);
  if (cx_lazy_tensor_poisoned(sign)) return sign;
  return calx_where(calx_lt(sign, cx_ops_number(0)), cx_ops_number((double)NAN),
                    log);
}

// ---- tensors as matrices ----------------------------------------------------

// The product of the sizes of the dimensions [from, to).
static int64_t elements(const cx_graph_shape *s, uint32_t from, uint32_t to)
{
  int64_t n = 1;
  for (uint32_t i = from; i < to; i++) n *= s->dims[i];
  return n;
}

calx_tensor *calx_tensorinv_with(calx_tensor *x,
                                 const calx_tensorinv_options *o)
{
  CX_OPS_COMPOSITE("tensorinv");
  calx_tensor *bad;
  if (cx_ops_unfit("tensorinv", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(tensorinv, o, bad);
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  const int ind = o->ind == 0 ? 2 : o->ind;
  const bool inside = ind > 0 && (uint32_t)ind <= s.rank;
  const uint32_t rows = inside ? (uint32_t)ind : 0;
  const int64_t n = elements(&s, 0, rows);
  if (!inside || n != elements(&s, rows, s.rank)) {
    return cx_ops_invalid(
        "tensorinv: .ind is %d of %s: as many elements in the dimensions before "
        "it as in the others are wanted",
        ind, cx_graph_shape_str(&s));
  }
  cx_graph_shape to = { .rank = s.rank };
  for (uint32_t i = 0; i < s.rank; i++)
    to.dims[i] = s.dims[(rows + i) % s.rank];
  return calx_reshape(calx_inverse(calx_reshape(x, CALX_SHAPE(n, n))),
                      cx_ops_dims_of(&to));
}

// `a` with the dimensions of the list behind the others.
static calx_tensor *moved_last(calx_tensor *a, const calx_dims *dims)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(a);
  int64_t order[CALX_MAX_RANK];
  uint32_t n = 0, d;
  bool moved[CALX_MAX_RANK] = { false };
  for (size_t i = 0; i < dims->count; i++) {
    if (i >= s->rank || !cx_ops_dim(dims->values[i], s->rank, &d) || moved[d]) {
      return cx_ops_invalid(
          "tensorsolve: .dims[%zu] is no dimension of %s, or is there twice", i,
          cx_graph_shape_str(s));
    }
    moved[d] = true;
  }
  for (uint32_t i = 0; i < s->rank; i++) {
    if (!moved[i]) order[n++] = i;
  }
  for (size_t i = 0; i < dims->count; i++) {
    if (cx_ops_dim(dims->values[i], s->rank, &d)) order[n++] = d;
  }
  return calx_permute(a, calx_dims_of(order, s->rank));
}

calx_tensor *calx_tensorsolve_with(calx_tensor *a, calx_tensor *b,
                                   const calx_tensorsolve_options *o)
{
  CX_OPS_COMPOSITE("tensorsolve");
  calx_tensor *in[2] = { a, b }, *bad;
  if (cx_ops_unfit("tensorsolve", in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(tensorsolve, o, bad);
  if (o->dims.count != 0) a = moved_last(a, &o->dims);
  if (cx_lazy_tensor_poisoned(a)) return a;
  const cx_graph_shape s = *cx_lazy_tensor_shape(a);
  const cx_graph_shape of_b = *cx_lazy_tensor_shape(b);
  const uint32_t rows = of_b.rank < s.rank ? of_b.rank : s.rank;
  const int64_t n = elements(&s, 0, rows);
  if (of_b.rank > s.rank || n != elements(&s, rows, s.rank) ||
      n != elements(&of_b, 0, of_b.rank)) {
    return cx_ops_invalid(
        "tensorsolve: %s and %s do not fit: the first dimensions of `a` are "
        "those of b, and the others have as many elements",
        cx_graph_shape_str(&s), cx_graph_shape_str(&of_b));
  }
  cx_graph_shape to = { .rank = s.rank - rows };
  for (uint32_t i = 0; i < to.rank; i++) to.dims[i] = s.dims[rows + i];
  calx_tensor *x = calx_solve(calx_reshape(a, CALX_SHAPE(n, n)),
                              calx_reshape(b, CALX_SHAPE(n)));
  return calx_reshape(x, cx_ops_dims_of(&to));
}
