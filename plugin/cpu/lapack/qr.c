// lapack/qr: factors by reflections.
#include "lapack/inner.h"

typedef void geqrf_fn(const int *m, const int *n, void *a, const int *lda,
                      void *tau, void *work, const int *lwork, int *info);
typedef void geqp3_fn(const int *m, const int *n, void *a, const int *lda,
                      int *pivots, void *tau, void *work, const int *lwork,
                      int *info);
typedef void geqp3_complex_fn(const int *m, const int *n, void *a,
                              const int *lda, int *pivots, void *tau,
                              void *work, const int *lwork, void *rwork,
                              int *info);
typedef void orgqr_fn(const int *m, const int *n, const int *k, void *a,
                      const int *lda, const void *tau, void *work,
                      const int *lwork, int *info);
typedef void ormqr_fn(const char *side, const char *trans, const int *m,
                      const int *n, const int *k, const void *a, const int *lda,
                      const void *tau, void *c, const int *ldc, void *work,
                      const int *lwork, int *info, size_t, size_t);

void cpu_lapack_geqrf(cpu_lapack_call *c)
{
  double asked[2] = { 0 };
  const int lda = cpu_lapack_ld(c->m), lwork = c->query ? -1 : c->lwork;
  int info = 0;
  ((geqrf_fn *)c->function)(&c->m, &c->n, c->t[1], &lda, c->t[2],
                            c->query ? asked : c->work, &lwork, &info);
  if (c->query) c->lwork = cpu_lapack_asked(c, asked);
}

// Columns whose pivot is not 0 are moved to the front first.
void cpu_lapack_geqp3(cpu_lapack_call *c)
{
  double asked[2] = { 0 };
  const int lda = cpu_lapack_ld(c->m), lwork = c->query ? -1 : c->lwork;
  void *work = c->query ? asked : c->work;
  int info = 0;
  if (cpu_lapack_is_complex(c)) {
    ((geqp3_complex_fn *)c->function)(&c->m, &c->n, c->t[2], &lda, c->t[3],
                                      c->t[4], work, &lwork, c->rwork, &info);
  } else {
    ((geqp3_fn *)c->function)(&c->m, &c->n, c->t[2], &lda, c->t[3], c->t[4],
                              work, &lwork, &info);
  }
  if (!c->query) return;
  c->lwork = cpu_lapack_asked(c, asked);
  c->lrwork = c->n < 0x7fffffff / 2 ? 2 * c->n : -1;
}

void cpu_lapack_orgqr(cpu_lapack_call *c)
{
  double asked[2] = { 0 };
  const int lda = cpu_lapack_ld(c->m), lwork = c->query ? -1 : c->lwork;
  int info = 0;
  ((orgqr_fn *)c->function)(&c->m, &c->n, &c->k, c->t[2], &lda, c->t[1],
                            c->query ? asked : c->work, &lwork, &info);
  if (c->query) c->lwork = cpu_lapack_asked(c, asked);
}

void cpu_lapack_ormqr(cpu_lapack_call *c)
{
  double asked[2] = { 0 };
  const char side = c->d->flags[0] != 0 ? 'L' : 'R';
  const char adjoint = cpu_lapack_is_complex(c) ? 'C' : 'T';
  const char trans = c->d->flags[1] != 0 ? adjoint : 'N';
  const int lda = cpu_lapack_ld(c->a), ldc = cpu_lapack_ld(c->m);
  const int lwork = c->query ? -1 : c->lwork;
  int info = 0;
  ((ormqr_fn *)c->function)(&side, &trans, &c->m, &c->n, &c->k, c->t[0], &lda,
                            c->t[1], c->t[3], &ldc, c->query ? asked : c->work,
                            &lwork, &info, 1, 1);
  if (c->query) c->lwork = cpu_lapack_asked(c, asked);
}
