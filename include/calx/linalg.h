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
 * "ii->" a trace. Without "->" the result has the labels that stand once, in
 * alphabetical order.
 * @param equation  a letter for each dimension of each operand
 * @shape as the equation says  @source torch.einsum
 */
CALX_API calx_tensor *calx_einsum(const char *equation,
                                  calx_tensor *const *operands, size_t count);

#ifdef __cplusplus
}
#endif
#endif
