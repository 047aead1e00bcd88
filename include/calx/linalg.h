/**
 * calx/linalg.h: products of vectors, matrices and batches of them. Part of
 * calx/ops.h, whose conventions hold here.
 *
 * @errors  as calx/ops.h says for all ops
 */
#ifndef CALX_LINALG_H
#define CALX_LINALG_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Products of matrices. @shape (b, n, k) x (b, k, m) -> (b, n, m)
 *  @source torch.bmm */
CALX_API calx_tensor *calx_bmm(calx_tensor *x, calx_tensor *y);
/** A matrix times a vector. @shape (n, k) x (k) -> (n) @source torch.mv */
CALX_API calx_tensor *calx_mv(calx_tensor *x, calx_tensor *y);
/** The inner product of vectors. @shape (n) x (n) -> () @source torch.dot */
CALX_API calx_tensor *calx_dot(calx_tensor *x, calx_tensor *y);
/** The outer product of vectors. @shape (n) x (m) -> (n, m)
 *  @source torch.outer */
CALX_API calx_tensor *calx_outer(calx_tensor *x, calx_tensor *y);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_addmm_options {
  CALX_NAMED size_t size;
  CALX_NAMED double beta;  /* factor of input; 0 = 1, CALX_ZERO: unused */
  CALX_NAMED double alpha; /* factor of the product; 0 = 1, CALX_ZERO = 0 */
} calx_addmm_options;
/** beta input + alpha (x y). @shape x (n, k), y (k, m); input broadcasts
 *  @source torch.addmm */
CALX_API calx_tensor *calx_addmm_with(calx_tensor *input, calx_tensor *x,
                                      calx_tensor *y,
                                      const calx_addmm_options *options);
/** The same of a matrix and a vector. @shape x (n, k), y (k); input broadcasts
 *  @source torch.addmv */
CALX_API calx_tensor *calx_addmv_with(calx_tensor *input, calx_tensor *x,
                                      calx_tensor *y,
                                      const calx_addmm_options *options);
/** The same of batches of matrices. @shape x (b, n, k), y (b, k, m); input
 *  broadcasts @source torch.baddbmm */
CALX_API calx_tensor *calx_baddbmm_with(calx_tensor *input, calx_tensor *x,
                                        calx_tensor *y,
                                        const calx_addmm_options *options);
/**
 * Sums of products by Einstein's convention: "ij,jk->ik" is a matrix product,
 * "ii->" a trace, "...ij,jk" a product of batches. Without "->" the result has
 * the dimensions of "..." and then the labels that stand once, in alphabetical
 * order. Size 1 is repeated beside another size of its label.
 * @param equation  a letter for each dimension of each operand, "..." for any
 *                  number of them
 * @shape as the equation says  @source torch.einsum
 */
CALX_API calx_tensor *calx_einsum(const char *equation,
                                  calx_tensor *const *operands, size_t count);
/** beta input + alpha (the outer product of vectors). @shape x (n), y (m);
 * input broadcasts @source torch.addr */
CALX_API calx_tensor *calx_addr_with(calx_tensor *input, calx_tensor *x,
                                     calx_tensor *y,
                                     const calx_addmm_options *options);
/** calx_outer. @shape (n) x (m) -> (n, m) @source torch.ger */
CALX_API calx_tensor *calx_ger(calx_tensor *x, calx_tensor *y);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_tensordot_options {
  CALX_NAMED size_t size;
  /* the last dimensions of x with the first ones of y; 0 = 2, CALX_ZERO_INT: 0;
   * or lists of as many dimensions each */
  CALX_NAMED int64_t dims;
  CALX_NAMED calx_dims x_dims;
  CALX_NAMED calx_dims y_dims;
} calx_tensordot_options;
/** Sums of products over pairs of dimensions. @shape the dimensions left, of x,
 *  then of y @source torch.tensordot */
CALX_API calx_tensor *calx_tensordot_with(
    calx_tensor *x, calx_tensor *y, const calx_tensordot_options *options);
/** Each element of x times the whole y. @shape the sizes' products, rank <= 4
 *  @source torch.kron */
CALX_API calx_tensor *calx_kron(calx_tensor *x, calx_tensor *y);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_cdist_options {
  CALX_NAMED size_t size;
  CALX_NAMED double p; /* 0 = 2, CALX_ZERO = 0; INFINITY: the greatest */
} calx_cdist_options;
/** The distances of all pairs of rows; it holds each pair's difference.
 *  @shape (…, n, d) x (…, m, d) -> (…, n, m) @dtype floating
 *  @source torch.cdist */
CALX_API calx_tensor *calx_cdist_with(calx_tensor *x, calx_tensor *y,
                                      const calx_cdist_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_pairwise_distance_options {
  CALX_NAMED size_t size;
  CALX_NAMED double p;   /* 0 = 2, CALX_ZERO = 0; INFINITY: the greatest */
  CALX_NAMED double eps; /* added to differences; 0 = 1e-6, CALX_ZERO = 0 */
  CALX_NAMED bool keepdim;
} calx_pairwise_distance_options;
/** The norm of x - y + eps along the last dimension. @shape x, y broadcast
 *  together @source torch.nn.functional.pairwise_distance */
CALX_API calx_tensor *calx_pairwise_distance_with(
    calx_tensor *x, calx_tensor *y,
    const calx_pairwise_distance_options *options);
/** The sum of x y along a dimension. @shape x, y broadcast together
 *  @dtype floating
 *  @source torch.linalg.vecdot */
CALX_API calx_tensor *calx_vecdot(calx_tensor *x, calx_tensor *y, int dim);
/** The cross product along a dimension of size 3. @shape x, y broadcast
 *  together, of equal ranks @source torch.linalg.cross */
CALX_API calx_tensor *calx_cross(calx_tensor *x, calx_tensor *y, int dim);
/** A matrix times itself, n times; n = 0: the identity; n < 0: the power -n of
 *  calx_inverse(x). @shape (…, k, k) @source torch.linalg.matrix_power */
CALX_API calx_tensor *calx_matrix_power(calx_tensor *x, int64_t n);
/** The sum of x^k / k!. A matrix whose columns' sums of absolute values exceed
 *  1.3e7 gives NaN. @shape (…, k, k), f32 or f64 @source torch.matrix_exp */
CALX_API calx_tensor *calx_matrix_exp(calx_tensor *x);
/** The product of 2 to 64 matrices in the order that multiplies the least
 *  numbers; the first may be a row, the last a column. @shape (n, k) x (k, m) …
 *  @source torch.linalg.multi_dot */
CALX_API calx_tensor *calx_multi_dot(calx_tensor *const *tensors, size_t count);
/** calx_multi_dot; one matrix is itself. @shape (n, k) x (k, m) …
 *  @source torch.chain_matmul */
CALX_API calx_tensor *calx_chain_matmul(calx_tensor *const *tensors,
                                        size_t count);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_vander_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t n; /* columns; 0 = as many as rows, CALX_ZERO_INT = 0 */
  CALX_NAMED bool increasing;
} calx_vander_options;
/** Powers of a vector's elements: x^(n-1), … x, 1 in each row; integers give
 *  i64. @shape (k) -> (k, n) @source torch.vander */
CALX_API calx_tensor *calx_vander_with(calx_tensor *x,
                                       const calx_vander_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_dist_options {
  CALX_NAMED size_t size;
  CALX_NAMED double p; /* 0 = 2, CALX_ZERO = 0; INFINITY: the greatest */
} calx_dist_options;
/** The norm of x - y over all elements. @shape x, y broadcast together -> ()
 *  @source torch.dist */
CALX_API calx_tensor *calx_dist_with(calx_tensor *x, calx_tensor *y,
                                     const calx_dist_options *options);
/** The distances of all pairs of different rows: of 0 and 1, 0 and 2, …
 *  @shape (n, d) -> (n (n - 1) / 2) @dtype floating
 *  @source torch.nn.functional.pdist */
CALX_API calx_tensor *calx_pdist_with(calx_tensor *x,
                                      const calx_dist_options *options);
/** Sums of products over the last dimensions; a number multiplies.
 *  @shape (…, k) x (…, k), the dimensions left of x, then of y
 *  @source torch.inner */
CALX_API calx_tensor *calx_inner(calx_tensor *x, calx_tensor *y);
/** calx_dot with the conjugate of x. @shape (n) x (n) -> ()
 *  @source torch.vdot */
CALX_API calx_tensor *calx_vdot(calx_tensor *x, calx_tensor *y);
/** beta input + alpha (the sum over the batch of x y). @shape x (b, n, k),
 *  y (b, k, m); input broadcasts to (n, m) @source torch.addbmm */
CALX_API calx_tensor *calx_addbmm_with(calx_tensor *input, calx_tensor *x,
                                       calx_tensor *y,
                                       const calx_addmm_options *options);
/** x with each slice along a dimension scaled to a p-norm of `maxnorm` where it
 *  has a greater one. @shape x rank >= 2 @dtype floating
 *  @source torch.renorm */
CALX_API calx_tensor *calx_renorm(calx_tensor *x, double p, int dim,
                                  double maxnorm);
/**
 * Products of matrices in groups, as of experts: where one operand is a matrix,
 * its rows (of x) or columns (of y) are those of the groups, one after the
 * other, and each group has its own matrix of the other operand; of two
 * matrices, x's columns and y's rows are, and each group has a product. It
 * computes the products of all groups' matrices with all rows, and keeps its
 * own; PyTorch computes those alone.
 * @param offs  where each group ends, i32 and ascending; what is behind the
 *              last one is 0. NULL: both operands have three dimensions
 * @shape x (n, k), y (g, k, m) -> (n, m); x (g, n, k), y (k, m) -> (n, m);
 *        x (n, k), y (k, m) -> (g, n, m); x (g, n, k), y (g, k, m) -> (g, n, m)
 * @source torch.nn.functional.grouped_mm
 */
CALX_API calx_tensor *calx_grouped_mm(calx_tensor *x, calx_tensor *y,
                                      calx_tensor *offs);

// ---- factorisations and systems of equations --------------------------------
// Of batches of matrices of f32 or f64; the leading dimensions broadcast.
// @errors  INVALID_ARGUMENT other types, sizes that do not fit

/** Zero means default. */
typedef struct CALX_OPTIONS calx_cholesky_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool upper; /* the factor is the upper triangle */
} calx_cholesky_options;
/** L with L L^T = x, of a symmetric positive definite matrix, of which the
 *  lower triangle is read; NaN where it is none. @shape (…, n, n)
 *  @source torch.linalg.cholesky */
CALX_API calx_tensor *calx_cholesky_with(calx_tensor *x,
                                         const calx_cholesky_options *options);
/** The solution of L L^T x = b. @shape b (…, n, k), l (…, n, n)
 *  @source torch.cholesky_solve */
CALX_API calx_tensor *calx_cholesky_solve_with(
    calx_tensor *b, calx_tensor *l, const calx_cholesky_options *options);
/** The inverse of L L^T. @shape (…, n, n) @source torch.cholesky_inverse */
CALX_API calx_tensor *calx_cholesky_inverse_with(
    calx_tensor *l, const calx_cholesky_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_solve_triangular_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool upper;         /* the triangle of `a` that is read */
  CALX_NAMED bool right;         /* x a = b */
  CALX_NAMED bool unitriangular; /* a's diagonal counts as ones */
} calx_solve_triangular_options;
/** The solution of a x = b, of a triangle. @shape a (…, n, n), b (…, n, k)
 *  @source torch.linalg.solve_triangular */
CALX_API calx_tensor *calx_solve_triangular_with(
    calx_tensor *a, calx_tensor *b,
    const calx_solve_triangular_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_qr_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool complete; /* q is square; without gradient if m > n */
} calx_qr_options;
/** x = q r with orthogonal columns of q and a triangle r, as LAPACK's signs
 *  are. @param out_r  may be NULL @return q
 *  @shape (…, m, n) -> (…, m, k), (…, k, n), k the smaller one
 *  @source torch.linalg.qr */
CALX_API calx_tensor *calx_qr_with(calx_tensor *x, calx_tensor **out_r,
                                   const calx_qr_options *options);
/** x = p l u by elimination with partial pivoting: p permutes rows, l has ones
 *  on its diagonal and u is a triangle. PyTorch's .pivot = False is for GPUs
 *  alone and is left out.
 *  @param out_l, out_u  may be NULL @return p, without gradient
 *  @shape (…, m, n) -> (…, m, m), (…, m, k), (…, k, n), k the smaller one
 *  @source torch.linalg.lu */
CALX_API calx_tensor *calx_lu(calx_tensor *x, calx_tensor **out_l,
                              calx_tensor **out_u);
/** The same packed, as LAPACK does: u, and below its diagonal l.
 *  @param out_pivots  may be NULL; i32 (…, k): with which row, from 1, each row
 *                     changed places
 *  @shape (…, m, n) -> (…, m, n) @source torch.linalg.lu_factor */
CALX_API calx_tensor *calx_lu_factor(calx_tensor *x, calx_tensor **out_pivots);
/** The p, l and u of what calx_lu_factor gives; of other pivots than it gives
 *  p is not defined.
 *  @param out_l, out_u  may be NULL @return p
 *  @shape lu (…, m, n), pivots (…, k) @source torch.lu_unpack */
CALX_API calx_tensor *calx_lu_unpack(calx_tensor *lu, calx_tensor *pivots,
                                     calx_tensor **out_l, calx_tensor **out_u);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_lu_solve_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool right;   /* x a = b */
  CALX_NAMED bool adjoint; /* the transposed a */
} calx_lu_solve_options;
/** The solution of a x = b by the factors that calx_lu_factor gives. The
 *  operands are in the order of torch.linalg; torch.lu_solve takes b first.
 *  @shape lu (…, n, n), pivots (…, n), b (…, n, k)
 *  @source torch.linalg.lu_solve */
CALX_API calx_tensor *calx_lu_solve_with(calx_tensor *lu, calx_tensor *pivots,
                                         calx_tensor *b,
                                         const calx_lu_solve_options *options);
/** calx_qr packed, as LAPACK does: r, and below its diagonal the vectors of the
 *  reflections whose product is q; without gradient, as in PyTorch.
 *  @param out_tau  may be NULL; (…, k), the reflections' factors
 *  @shape (…, m, n) -> (…, m, n) @source torch.geqrf */
CALX_API calx_tensor *calx_geqrf(calx_tensor *x, calx_tensor **out_tau);
/** The first columns of the product of reflections that calx_geqrf gives.
 *  @shape x (…, m, n), tau (…, k), k <= n <= m -> (…, m, n)
 *  @source torch.linalg.householder_product */
CALX_API calx_tensor *calx_householder_product(calx_tensor *x,
                                               calx_tensor *tau);
/** calx_householder_product. @shape x (…, m, n), tau (…, k)
 *  @source torch.orgqr */
CALX_API calx_tensor *calx_orgqr(calx_tensor *x, calx_tensor *tau);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_ormqr_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool right;     /* other q */
  CALX_NAMED bool transpose; /* q^T */
} calx_ormqr_options;
/** The product q of the reflections, which is square, times another matrix.
 *  @shape x (…, m, n), tau (…, k), other (…, m, l) @source torch.ormqr */
CALX_API calx_tensor *calx_ormqr_with(calx_tensor *x, calx_tensor *tau,
                                      calx_tensor *other,
                                      const calx_ormqr_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_triangular_solve_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool lower;         /* the triangle of `a` that is read */
  CALX_NAMED bool transpose;     /* the system is that of a^T */
  CALX_NAMED bool unitriangular; /* a's diagonal counts as ones */
} calx_triangular_solve_options;
/** The solution of a x = b, of a triangle: calx_solve_triangular with PyTorch's
 *  old order and defaults. PyTorch's second result is `a`.
 *  @shape b (…, n, k), a (…, n, n) @source torch.triangular_solve */
CALX_API calx_tensor *calx_triangular_solve_with(
    calx_tensor *b, calx_tensor *a,
    const calx_triangular_solve_options *options);
/** The solution of a x = b, by QR. Of a singular matrix infinities and NaN: a
 *  step cannot fail by a value. @shape a (…, n, n), b (…, n, k) or (…, n)
 *  @source torch.linalg.solve */
CALX_API calx_tensor *calx_solve(calx_tensor *a, calx_tensor *b);
/** The x of least |a x - b|, and among those the shortest; `a` has full rank.
 *  @shape a (…, m, n), b (…, m, k) @source torch.linalg.lstsq */
CALX_API calx_tensor *calx_lstsq(calx_tensor *a, calx_tensor *b);
/** The inverse; as calx_solve. @shape (…, n, n) @source torch.inverse */
CALX_API calx_tensor *calx_inverse(calx_tensor *x);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_tensorinv_options {
  CALX_NAMED size_t size;
  CALX_NAMED int ind; /* dimensions that count as rows; 0 = 2 */
} calx_tensorinv_options;
/** The inverse by calx_tensordot. @shape (rows …, columns …), as many elements
 *  each -> (columns …, rows …) @source torch.linalg.tensorinv */
CALX_API calx_tensor *calx_tensorinv_with(
    calx_tensor *x, const calx_tensorinv_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_tensorsolve_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_dims dims; /* of `a`, moved behind the others first */
} calx_tensorsolve_options;
/** The x with calx_tensordot(a, x, .dims = x's rank) = b. @shape a (as b …, as
 *  x …), b any @source torch.linalg.tensorsolve */
CALX_API calx_tensor *calx_tensorsolve_with(
    calx_tensor *a, calx_tensor *b, const calx_tensorsolve_options *options);
/** The determinant; its gradient is that of an invertible matrix.
 *  @shape (…, n, n) -> (…) @source torch.det */
CALX_API calx_tensor *calx_det(calx_tensor *x);
/** The determinant's sign and the logarithm of its size.
 *  @param out_logabsdet  may be NULL @shape (…, n, n) -> (…)
 *  @source torch.slogdet */
CALX_API calx_tensor *calx_slogdet(calx_tensor *x, calx_tensor **out_logabsdet);
/** The logarithm of the determinant; NaN of a negative one.
 *  @shape (…, n, n) -> (…) @source torch.logdet */
CALX_API calx_tensor *calx_logdet(calx_tensor *x);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_eigh_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool upper; /* the triangle that is read */
} calx_eigh_options;
/** The eigenvalues of a symmetric matrix in ascending order, and its
 *  eigenvectors as columns. Their signs are open, and where eigenvalues are
 *  equal, their gradients are infinite.
 *  @param out_vectors  may be NULL @shape (…, n, n) -> (…, n), (…, n, n)
 *  @source torch.linalg.eigh */
CALX_API calx_tensor *calx_eigh_with(calx_tensor *x, calx_tensor **out_vectors,
                                     const calx_eigh_options *options);
/** The eigenvalues of a symmetric matrix in ascending order.
 *  @shape (…, n, n) -> (…, n) @source torch.linalg.eigvalsh */
CALX_API calx_tensor *calx_eigvalsh_with(calx_tensor *x,
                                         const calx_eigh_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_svd_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool full_matrices; /* u and vh are square; PyTorch's default */
} calx_svd_options;
/** x = u diag(s) vh with orthonormal columns of u and rows of vh, and s in
 *  descending order. Signs of the vectors are open, and where singular values
 *  are equal, or 0, the vectors' gradients are infinite.
 *  @param out_s, out_vh  may be NULL @return u
 *  @shape (…, m, n) -> (…, m, k), (…, k), (…, k, n), k the smaller one
 *  @source torch.linalg.svd */
CALX_API calx_tensor *calx_svd_with(calx_tensor *x, calx_tensor **out_s,
                                    calx_tensor **out_vh,
                                    const calx_svd_options *options);
/** The singular values, in descending order. @shape (…, m, n) -> (…, k)
 *  @source torch.linalg.svdvals */
CALX_API calx_tensor *calx_svdvals(calx_tensor *x);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_pinv_options {
  CALX_NAMED size_t size;
  /* singular values up to rtol times the greatest count as 0; 0: the type's
   * epsilon times the greater size, but 0 beside an atol; CALX_ZERO = 0 */
  CALX_NAMED double rtol;
  CALX_NAMED double atol; /* those up to it count as 0, too */
} calx_pinv_options;
/** The Moore-Penrose inverse; its gradient is that of matrices of the same
 * rank.
 *  @shape (…, m, n) -> (…, n, m)
 *  @source torch.linalg.pinv */
CALX_API calx_tensor *calx_pinv_with(calx_tensor *x,
                                     const calx_pinv_options *options);
/** The number of singular values that are not 0; i64. @shape (…, m, n) -> (…)
 *  @source torch.linalg.matrix_rank */
CALX_API calx_tensor *calx_matrix_rank_with(calx_tensor *x,
                                            const calx_pinv_options *options);
/** The greatest singular value over the least one; infinite where that is 0,
 *  and 0 where there is none. @shape (…, m, n) -> (…) @source torch.linalg.cond
 */
CALX_API calx_tensor *calx_cond(calx_tensor *x);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_lobpcg_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t k;      /* pairs; 0 = 1; at most n / 3 */
  CALX_NAMED calx_tensor *b; /* NULL: the identity; positive definite */
  CALX_NAMED bool smallest;  /* the least eigenvalues, in ascending order */
} calx_lobpcg_options;
/** The k greatest eigenvalues of x v = e b v, in descending order, of symmetric
 *  matrices. They are computed as calx_eigh does, all of them, so that there is
 *  nothing to begin or to stop with: PyTorch's other arguments are left out.
 *  @param out_vectors  may be NULL; their signs are open
 *  @shape (…, n, n) -> (…, k), (…, n, k) @source torch.lobpcg */
CALX_API calx_tensor *calx_lobpcg_with(calx_tensor *x,
                                       calx_tensor **out_vectors,
                                       const calx_lobpcg_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_addmm_options_ \
  .beta = CALX_UNWRITTEN_, .alpha = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_addmm_options, calx_written_(&o->beta);
              calx_written_(&o->alpha);)
#define CALX_UNWRITTEN_calx_tensordot_options_ .dims = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_tensordot_options, calx_written_int_(&o->dims);)
#define CALX_UNWRITTEN_calx_cdist_options_ .p = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_cdist_options, calx_written_(&o->p);)
#define CALX_UNWRITTEN_calx_pairwise_distance_options_ \
  .p = CALX_UNWRITTEN_, .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_pairwise_distance_options, calx_written_(&o->p);
              calx_written_(&o->eps);)
#define CALX_UNWRITTEN_calx_vander_options_ .n = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_vander_options, calx_written_int_(&o->n);)
#define CALX_UNWRITTEN_calx_dist_options_ .p = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_dist_options, calx_written_(&o->p);)
#define CALX_UNWRITTEN_calx_pinv_options_ .rtol = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_pinv_options, calx_written_(&o->rtol);)
#endif
#ifdef __cplusplus
}
#endif
#endif
