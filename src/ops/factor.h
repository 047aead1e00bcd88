// ops/factor: what the factorisations of matrices share. Matrices are the last
// two dimensions, floating, f32 or f64.
#ifndef CX_OPS_FACTOR_H
#define CX_OPS_FACTOR_H

#include "ops/composite.h"

// The transposed matrices.
static inline calx_tensor *cx_ops_transposed(calx_tensor *x)
{
  return calx_transpose(x, -2, -1);
}

// In a program: numbers of an element type in the shape of another value, and a
// number of a loop.
static inline cx_hlo_value *cx_ops_splat_as(cx_hlo_builder *b, cx_hlo_elem elem,
                                            const cx_hlo_value *shape, double v)
{
  const cx_hlo_type *t = cx_hlo_value_type(shape);
  return cx_hlo_splat(b, (cx_hlo_type){ elem, t->rank, t->dims }, v);
}

static inline cx_hlo_value *cx_ops_index(cx_hlo_builder *b, int64_t i)
{
  return cx_hlo_splat_int(b, (cx_hlo_type){ CX_HLO_I32, 0, NULL }, i);
}

typedef struct cx_ops_triangle {
  uint32_t lower;      // the triangle of the matrix that is read
  uint32_t unit;       // its diagonal counts as ones
  uint32_t transpose;  // the system is that of the transposed triangle
} cx_ops_triangle;

// x with a x = b; the leading dimensions are equal.
calx_tensor *cx_ops_solve_with(calx_tensor *a, calx_tensor *b,
                               const cx_ops_triangle *how);

// Reflections that make a panel x, (N, m, b) with m >= b, upper triangular:
// H_b … H_1 x = r, with H_k = I - tau_k v_k v_k^T (N. Higham, Accuracy and
// Stability of Numerical Algorithms, 2nd ed., 19.1). v is (N, m, b), with ones
// on the diagonal and zeros above, tau is (N, b), and r (N, m, b). Without
// gradient.
void cx_ops_householder_panel(calx_tensor *x, calx_tensor **v,
                              calx_tensor **tau, calx_tensor **r);

typedef struct cx_ops_qr_parts {
  calx_tensor *q, *r;
  calx_tensor *sign;  // the determinant of q where it is square: 1 or -1, (N)
} cx_ops_qr_parts;

// x = q r of matrices (…, m, n): q (…, m, k), r (…, k, n), k = min(m, n), or m
// where it is to be complete.
void cx_ops_qr_of(calx_tensor *x, bool complete, cx_ops_qr_parts *out);

// The triangle t of reflections v (…, m, b) and tau (…, b) as of
// cx_ops_householder_panel: their product H_1 … H_b is I - v t v^T.
calx_tensor *cx_ops_wy_triangle(calx_tensor *v, calx_tensor *tau);

// The factors of matrices (…, m, n) by elimination, packed: above the diagonal
// and on it U, below L, whose diagonal is ones. Pivots (…, k) are LAPACK's; row
// i of the product of the factors is row order[i] of x.
calx_tensor *cx_ops_lu_of(calx_tensor *x, calx_tensor **out_pivots,
                          calx_tensor **out_order);
// The order (…, rows), i64, of such pivots, (N, k).
calx_tensor *cx_ops_pivot_order(calx_tensor *pivots, int64_t rows);
// The rows of x (…, m, n) in an order (…, m) of i64.
calx_tensor *cx_ops_in_order(calx_tensor *x, calx_tensor *order);

// Rotations v, (N, n, n), that make the columns of x, (N, m, n), orthogonal:
// *out_x is x v; or that make a symmetric x diagonal: *out_x is v^T x v.
// Without gradient.
void cx_ops_jacobi_of(calx_tensor *x, bool symmetric, calx_tensor **out_x,
                      calx_tensor **out_v);

// x with its leading dimensions as one, (N, m, n).
calx_tensor *cx_ops_flat_batch(calx_tensor *x);
// y, (N, …), with the leading dimensions of x.
calx_tensor *cx_ops_unflat_batch(calx_tensor *y, const cx_graph_shape *x);

// Ones on the diagonal of (n, m), on the device and of the element type of x.
calx_tensor *cx_ops_eye(calx_tensor *x, int64_t n, int64_t m);

// Whether x is a batch of matrices, square ones on request, of f32 or f64.
// False: *out is what the function returns.
bool cx_ops_is_matrix(const char *op, calx_tensor *x, bool square,
                      calx_tensor **out);

// Expands the leading dimensions of both to those to which they broadcast, and
// asks for as many rows. False: *out is what the function returns.
bool cx_ops_same_batch(const char *op, calx_tensor *in[2], calx_tensor **out);

#endif
