// One cholesky or triangular_solve with its data; kernels of descriptions that
// may be damaged, Fourier transforms too.
#ifndef CX_TEST_KERNELS_LINALG_CASE_H
#define CX_TEST_KERNELS_LINALG_CASE_H

#include "hlo/types.h"
#include "kernel/kernel.h"

typedef long double extended;

typedef struct problem {
  const char *type;
  cx_hlo_elem elem;
  double unit;  // rounding error
  int64_t batch, n, others;
  bool solves, lower, left, unit_diagonal;
  int transpose;    // 0: none, 1: TRANSPOSE, 2: ADJOINT
  extended *a, *b;  // as the kernel sees them; b: also the wanted result
  unsigned char *lhs, *rhs, *out;
} problem;

// The kernel of the operation, which is written as text.
void problem_describe(const problem *p, cpu_kernel_desc *out);
void problem_allocate(problem *p);
void problem_release(problem *p);
void problem_run(problem *p, cpu_threads *pool);
void problem_store(const problem *p, unsigned char *to, int64_t i, double v);
double problem_load(const problem *p, const unsigned char *from, int64_t i);

#endif
