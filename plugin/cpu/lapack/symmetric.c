// lapack/symmetric: symmetric and Hermitian eigenvalues, singular values.
#include <string.h>

#include "lapack/inner.h"

typedef void syevd_fn(const char *job, const char *uplo, const int *n, void *a,
                      const int *lda, void *w, void *work, const int *lwork,
                      int *iwork, const int *liwork, int *info, size_t, size_t);
typedef void heevd_fn(const char *job, const char *uplo, const int *n, void *a,
                      const int *lda, void *w, void *work, const int *lwork,
                      void *rwork, const int *lrwork, int *iwork,
                      const int *liwork, int *info, size_t, size_t);
typedef void sytrd_fn(const char *uplo, const int *n, void *a, const int *lda,
                      void *d, void *e, void *tau, void *work, const int *lwork,
                      int *info, size_t);
typedef void gesdd_fn(const char *job, const int *m, const int *n, void *a,
                      const int *lda, void *s, void *u, const int *ldu,
                      void *vt, const int *ldvt, void *work, const int *lwork,
                      int *iwork, int *info, size_t);
typedef void gesdd_complex_fn(const char *job, const int *m, const int *n,
                              void *a, const int *lda, void *s, void *u,
                              const int *ldu, void *vt, const int *ldvt,
                              void *work, const int *lwork, void *rwork,
                              int *iwork, int *info, size_t);
typedef void gesvd_fn(const char *jobu, const char *jobvt, const int *m,
                      const int *n, void *a, const int *lda, void *s, void *u,
                      const int *ldu, void *vt, const int *ldvt, void *work,
                      const int *lwork, int *info, size_t, size_t);
typedef void gesvd_complex_fn(const char *jobu, const char *jobvt, const int *m,
                              const int *n, void *a, const int *lda, void *s,
                              void *u, const int *ldu, void *vt,
                              const int *ldvt, void *work, const int *lwork,
                              void *rwork, int *info, size_t, size_t);

void cpu_lapack_syevd(cpu_lapack_call *c)
{
  double asked[2] = { 0 }, real[2] = { 0 };
  int ints = 0, info = 0;
  const char job = (char)c->d->flags[0], uplo = (char)c->d->flags[1];
  const int lda = cpu_lapack_ld(c->n), ask = -1;
  const int *lwork = c->query ? &ask : &c->lwork;
  const int *lrwork = c->query ? &ask : &c->lrwork;
  const int *liwork = c->query ? &ask : &c->liwork;
  void *work = c->query ? asked : c->work, *rwork = c->query ? real : c->rwork;
  int *iwork = c->query ? &ints : c->iwork;
  if (cpu_lapack_is_complex(c)) {
    ((heevd_fn *)c->function)(&job, &uplo, &c->n, c->t[1], &lda, c->t[2], work,
                              lwork, rwork, lrwork, iwork, liwork, &info, 1, 1);
  } else {
    ((syevd_fn *)c->function)(&job, &uplo, &c->n, c->t[1], &lda, c->t[2], work,
                              lwork, iwork, liwork, &info, 1, 1);
  }
  if (!c->query) {
    memcpy(c->t[3], &info, sizeof info);
    return;
  }
  c->lwork = cpu_lapack_asked(c, asked);
  c->lrwork = cpu_lapack_asked(c, real);
  c->liwork = ints;
}

void cpu_lapack_sytrd(cpu_lapack_call *c)
{
  double asked[2] = { 0 };
  const char uplo = (char)c->d->flags[0];
  const int lda = cpu_lapack_ld(c->n), lwork = c->query ? -1 : c->lwork;
  int info = 0;
  ((sytrd_fn *)c->function)(&uplo, &c->n, c->t[1], &lda, c->t[2], c->t[3],
                            c->t[4], c->query ? asked : c->work, &lwork, &info,
                            1);
  if (c->query) {
    c->lwork = cpu_lapack_asked(c, asked);
  } else {
    memcpy(c->t[5], &info, sizeof info);
  }
}

// Reals of complex gesdd's workspace, by its documentation.
static int gesdd_reals(const cpu_lapack_call *c)
{
  const double least = c->m < c->n ? c->m : c->n;
  const double most = c->m < c->n ? c->n : c->m;
  const double squares = 5 * least * least + 5 * least;
  const double mixed = 2 * most * least + 2 * least * least + least;
  const double n = squares > mixed ? squares : mixed;
  const double seven = 7 * least;
  const double wanted = n > seven ? n : seven;
  return wanted < 0x7fffffff ? (int)wanted : -1;
}

void cpu_lapack_gesdd(cpu_lapack_call *c)
{
  if (cpu_lapack_stops(c, c->t[1], c->m, c->n, c->t[5])) return;
  double asked[2] = { 0 };
  int info = 0;
  const char job = (char)c->d->flags[0];
  const int lda = cpu_lapack_ld(c->m), ldvt = cpu_lapack_ld(c->v);
  const int lwork = c->query ? -1 : c->lwork;
  void *work = c->query ? asked : c->work;
  if (cpu_lapack_is_complex(c)) {
    ((gesdd_complex_fn *)c->function)(
        &job, &c->m, &c->n, c->t[1], &lda, c->t[2], c->t[3], &lda, c->t[4],
        &ldvt, work, &lwork, c->rwork, c->iwork, &info, 1);
  } else {
    ((gesdd_fn *)c->function)(&job, &c->m, &c->n, c->t[1], &lda, c->t[2],
                              c->t[3], &lda, c->t[4], &ldvt, work, &lwork,
                              c->iwork, &info, 1);
  }
  if (!c->query) {
    memcpy(c->t[5], &info, sizeof info);
    return;
  }
  c->lwork = cpu_lapack_asked(c, asked);
  c->lrwork = gesdd_reals(c);
  const int least = c->m < c->n ? c->m : c->n;
  c->liwork = least < 0x7fffffff / 8 ? 8 * least : -1;
}

void cpu_lapack_gesvd(cpu_lapack_call *c)
{
  if (cpu_lapack_stops(c, c->t[1], c->m, c->n, c->t[5])) return;
  double asked[2] = { 0 };
  int info = 0;
  const char job = (char)c->d->flags[0];
  const int lda = cpu_lapack_ld(c->m), ldvt = cpu_lapack_ld(c->v);
  const int lwork = c->query ? -1 : c->lwork;
  void *work = c->query ? asked : c->work;
  if (cpu_lapack_is_complex(c)) {
    ((gesvd_complex_fn *)c->function)(&job, &job, &c->m, &c->n, c->t[1], &lda,
                                      c->t[2], c->t[3], &lda, c->t[4], &ldvt,
                                      work, &lwork, c->rwork, &info, 1, 1);
  } else {
    ((gesvd_fn *)c->function)(&job, &job, &c->m, &c->n, c->t[1], &lda, c->t[2],
                              c->t[3], &lda, c->t[4], &ldvt, work, &lwork,
                              &info, 1, 1);
  }
  if (!c->query) {
    memcpy(c->t[5], &info, sizeof info);
    return;
  }
  c->lwork = cpu_lapack_asked(c, asked);
  const int least = c->m < c->n ? c->m : c->n;
  c->lrwork = least < 0x7fffffff / 5 ? 5 * least : -1;
}
