// kernel/triangle: triangular systems and Cholesky's factors, by halves, so
// that most of the work is products of matrices (gemm.h); LU of small matrices.
#ifndef CPU_KERNEL_TRIANGLE_H
#define CPU_KERNEL_TRIANGLE_H

#include "kernel/gemm.h"

// Rows of the triangles at which the halving ends.
#define CPU_KERNEL_TRIANGLE_BLOCK 32
// Rows and columns of a matrix that cpu_kernel_lu takes.
#define CPU_KERNEL_LU_MOST 64

// A triangular matrix op(A): its element (i, j) is a[i * row + j * column].
// `lower`: of op(A). `unit`: its diagonal counts as ones and is not read.
typedef struct cpu_kernel_triangle {
  cpu_kernel_math math;
  const unsigned char *a;
  int64_t n, row, column;
  bool lower, unit, right;
} cpu_kernel_triangle;

// op(A) X = B or, if `right`, X op(A) = B. X takes the place of B at x, whose
// rows are ldx elements apart. `scratch` has cpu_kernel_triangle_scratch().
void cpu_kernel_triangle_solve(const cpu_kernel_triangle *t, void *x,
                               int64_t ldx, int64_t rows, int64_t columns,
                               unsigned char *scratch);

// L of A = L L^T in the place of A's lower triangle, on the pool. What is above
// the diagonal is neither read nor meaningful afterwards. A matrix that is not
// positive definite gives NaN from the first such column on. `scratch` has
// `each` = cpu_kernel_triangle_scratch() bytes for each thread.
void cpu_kernel_triangle_factor(cpu_kernel_math math, void *a, int64_t n,
                                cpu_threads *pool, unsigned char *scratch,
                                size_t each);

// For triangles of n rows and right-hand sides of `others` columns or rows.
size_t cpu_kernel_triangle_scratch(cpu_kernel_math math, int64_t n,
                                   int64_t others);

// P L U of a row-major matrix of m x n, both at most CPU_KERNEL_LU_MOST, as
// LAPACK's getrf has it: L without its diagonal and U in one matrix, the rows
// that were swapped counted from 1, and in *info the number of the first column
// whose pivot is 0, else 0.
void cpu_kernel_lu(cpu_kernel_math math, const void *a, int64_t m, int64_t n,
                   void *factors, int32_t *pivots, int32_t *info);

// ---- one vector width; see triangle_width.h ----

// t x = b in place of b, of n <= CPU_KERNEL_TRIANGLE_BLOCK rows, ldx elements
// apart (which may be negative). t is a lower triangle, its rows
// CPU_KERNEL_TRIANGLE_BLOCK apart.
typedef void cpu_kernel_triangle_solve_fn(const void *t, int64_t n, bool unit,
                                          void *x, int64_t ldx,
                                          int64_t columns);
// L in place of the lower triangle of a, of n <= CPU_KERNEL_TRIANGLE_BLOCK
// rows.
typedef void cpu_kernel_triangle_factor_fn(void *a, int64_t n, int64_t lda);
typedef void cpu_kernel_lu_fn(const void *a, int64_t m, int64_t n,
                              void *factors, int32_t *pivots, int32_t *info);
typedef struct cpu_kernel_triangle_fns {
  cpu_kernel_triangle_solve_fn *solve;
  cpu_kernel_triangle_factor_fn *factor;
  cpu_kernel_lu_fn *lu;
} cpu_kernel_triangle_fns;
// Of F32 and F64.
extern const cpu_kernel_triangle_fns cpu_kernel_triangle_16[2];
extern const cpu_kernel_triangle_fns cpu_kernel_triangle_32[2];
extern const cpu_kernel_triangle_fns cpu_kernel_triangle_64[2];

#endif
