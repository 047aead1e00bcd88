// lapack/solve: triangular and tridiagonal systems, LU and Cholesky's factors.
//
// Fortran's functions take addresses, and behind the arguments the lengths of
// the letters. Prototypes: LAPACK Users' Guide, 3rd edition; netlib.org/lapack.
#include "lapack/inner.h"

typedef void trsm_fn(const char *side, const char *uplo, const char *trans,
                     const char *diag, const int *m, const int *n,
                     const void *alpha, const void *a, const int *lda, void *b,
                     const int *ldb, size_t, size_t, size_t, size_t);
typedef void getrf_fn(const int *m, const int *n, void *a, const int *lda,
                      int *pivots, int *info);
typedef void potrf_fn(const char *uplo, const int *n, void *a, const int *lda,
                      int *info, size_t);
typedef void gtsv_fn(const int *n, const int *n_rhs, void *dl, void *d,
                     void *du, void *b, const int *ldb, int *info);

void cpu_lapack_trsm(cpu_lapack_call *c)
{
  if (c->query) return;
  static const double one_wide[2] = { 1, 0 };
  static const float one[2] = { 1, 0 };
  const char f[4] = { (char)c->d->flags[0], (char)c->d->flags[1],
                      (char)c->d->flags[2], (char)c->d->flags[3] };
  const int lda = cpu_lapack_ld(c->a), ldb = cpu_lapack_ld(c->m);
  const void *alpha =
      cpu_lapack_is_wide(c) ? (const void *)one_wide : (const void *)one;
  ((trsm_fn *)c->function)(&f[0], &f[1], &f[2], &f[3], &c->m, &c->n, alpha,
                           c->t[0], &lda, c->t[2], &ldb, 1, 1, 1, 1);
}

void cpu_lapack_getrf(cpu_lapack_call *c)
{
  if (c->query) return;
  const int lda = cpu_lapack_ld(c->m);
  ((getrf_fn *)c->function)(&c->m, &c->n, c->t[1], &lda, c->t[2], c->t[3]);
}

void cpu_lapack_potrf(cpu_lapack_call *c)
{
  if (c->query) return;
  const char uplo = (char)c->d->flags[0];
  const int lda = cpu_lapack_ld(c->n);
  ((potrf_fn *)c->function)(&uplo, &c->n, c->t[1], &lda, c->t[2], 1);
}

// The lower diagonal's first number is not read; LAPACK's begins at the second.
void cpu_lapack_gtsv(cpu_lapack_call *c)
{
  if (c->query) return;
  const int ldb = cpu_lapack_ld(c->n);
  const size_t size = cx_hlo_elem_bytes((cx_hlo_elem)c->d->type);
  unsigned char *dl = c->t[4];
  if (c->n > 0) dl += size;
  ((gtsv_fn *)c->function)(&c->n, &c->k, dl, c->t[5], c->t[6], c->t[7], &ldb,
                           c->t[8]);
}
