// lapack/general: eigenvalues and Schur's form of square matrices, and the
// reduction to Hessenberg's form.
#include <string.h>

#include "lapack/inner.h"

typedef void geev_fn(const char *left, const char *right, const int *n, void *a,
                     const int *lda, void *wr, void *wi, void *vl,
                     const int *ldvl, void *vr, const int *ldvr, void *work,
                     const int *lwork, int *info, size_t, size_t);
typedef void geev_complex_fn(const char *left, const char *right, const int *n,
                             void *a, const int *lda, void *w, void *vl,
                             const int *ldvl, void *vr, const int *ldvr,
                             void *work, const int *lwork, void *rwork,
                             int *info, size_t, size_t);
typedef void gees_fn(const char *job, const char *sort, void *select,
                     const int *n, void *a, const int *lda, int *selected,
                     void *wr, void *wi, void *vs, const int *ldvs, void *work,
                     const int *lwork, int *bwork, int *info, size_t, size_t);
typedef void gees_complex_fn(const char *job, const char *sort, void *select,
                             const int *n, void *a, const int *lda,
                             int *selected, void *w, void *vs, const int *ldvs,
                             void *work, const int *lwork, void *rwork,
                             int *bwork, int *info, size_t, size_t);
typedef void gehrd_fn(const int *n, const int *low, const int *high, void *a,
                      const int *lda, void *tau, void *work, const int *lwork,
                      int *info);

// A real matrix's vectors come as the real and the imaginary part of the first
// of a pair in two neighbouring columns; the second one is its conjugate.
#define UNPACK(real)                                                          \
  static void unpack_##real(int n, const real *imaginary, const real *packed, \
                            real *out)                                        \
  {                                                                           \
    const size_t rows = (size_t)n;                                            \
    for (size_t j = 0; j < rows; j++) {                                       \
      const bool pair = imaginary[j] != 0 && j + 1 < rows;                    \
      for (size_t i = 0; i < rows; i++) {                                     \
        const real re = packed[j * rows + i];                                 \
        const real im = pair ? packed[(j + 1) * rows + i] : 0;                \
        real *first = out + 2 * (j * rows + i);                               \
        first[0] = re;                                                        \
        first[1] = im;                                                        \
        if (!pair) continue;                                                  \
        first[2 * rows] = re;                                                 \
        first[2 * rows + 1] = -im;                                            \
      }                                                                       \
      if (pair) j++;                                                          \
    }                                                                         \
  }
UNPACK(float)
UNPACK(double)

static void unpack(const cpu_lapack_call *c, int64_t job, const void *packed,
                   void *out)
{
  if (job != 'V') return;
  if (cpu_lapack_is_wide(c)) {
    unpack_double(c->n, c->t[2], packed, out);
  } else {
    unpack_float(c->n, c->t[2], packed, out);
  }
}

// Two matrices, of packed vectors.
static int two_matrices(const cpu_lapack_call *c)
{
  const double n = 2.0 * c->n * c->n;
  return n < 0x7fffffff ? (int)n : -1;
}

static void geev_real(cpu_lapack_call *c)
{
  double asked[2] = { 0 };
  const char job[2] = { (char)c->d->flags[0], (char)c->d->flags[1] };
  const int ld = cpu_lapack_ld(c->n), lwork = c->query ? -1 : c->lwork;
  const size_t bytes =
      (size_t)c->n * (size_t)c->n * cx_hlo_elem_bytes((cx_hlo_elem)c->d->type);
  unsigned char *vl = c->rwork;
  unsigned char *vr = c->query ? NULL : vl + bytes;
  int info = 0;
  ((geev_fn *)c->function)(&job[0], &job[1], &c->n, c->t[0], &ld, c->t[1],
                           c->t[2], vl, &ld, vr, &ld,
                           c->query ? asked : c->work, &lwork, &info, 1, 1);
  if (c->query) {
    c->lwork = cpu_lapack_asked(c, asked);
    c->lrwork = two_matrices(c);
    return;
  }
  memcpy(c->t[5], &info, sizeof info);
  unpack(c, job[0], vl, c->t[3]);
  unpack(c, job[1], vr, c->t[4]);
}

static void geev_complex(cpu_lapack_call *c)
{
  double asked[2] = { 0 };
  const char job[2] = { (char)c->d->flags[0], (char)c->d->flags[1] };
  const int ld = cpu_lapack_ld(c->n), lwork = c->query ? -1 : c->lwork;
  int info = 0;
  ((geev_complex_fn *)c->function)(
      &job[0], &job[1], &c->n, c->t[0], &ld, c->t[1], c->t[2], &ld, c->t[3],
      &ld, c->query ? asked : c->work, &lwork, c->rwork, &info, 1, 1);
  if (c->query) {
    c->lwork = cpu_lapack_asked(c, asked);
    c->lrwork = 2 * c->n;
    return;
  }
  memcpy(c->t[4], &info, sizeof info);
}

void cpu_lapack_geev(cpu_lapack_call *c)
{
  const bool complex = cpu_lapack_is_complex(c);
  if (cpu_lapack_stops(c, c->t[0], c->n, c->n, c->t[complex ? 4 : 5])) return;
  if (complex) {
    geev_complex(c);
  } else {
    geev_real(c);
  }
}

void cpu_lapack_gees(cpu_lapack_call *c)
{
  const bool complex = cpu_lapack_is_complex(c);
  void **t = c->t;
  if (cpu_lapack_stops(c, t[1], c->n, c->n, t[complex ? 5 : 6])) return;
  double asked[2] = { 0 };
  const char job = (char)c->d->flags[0], sort = (char)c->d->flags[1];
  const int ld = cpu_lapack_ld(c->n), lwork = c->query ? -1 : c->lwork;
  void *work = c->query ? asked : c->work;
  int info = 0, selected = 0;
  if (complex) {
    ((gees_complex_fn *)c->function)(&job, &sort, NULL, &c->n, t[1], &ld,
                                     &selected, t[3], t[2], &ld, work, &lwork,
                                     c->rwork, NULL, &info, 1, 1);
  } else {
    ((gees_fn *)c->function)(&job, &sort, NULL, &c->n, t[1], &ld, &selected,
                             t[3], t[4], t[2], &ld, work, &lwork, NULL, &info,
                             1, 1);
  }
  if (c->query) {
    c->lwork = cpu_lapack_asked(c, asked);
    c->lrwork = c->n;
    return;
  }
  memcpy(t[complex ? 4 : 5], &selected, sizeof selected);
  memcpy(t[complex ? 5 : 6], &info, sizeof info);
}

void cpu_lapack_gehrd(cpu_lapack_call *c)
{
  double asked[2] = { 0 };
  const int low = (int)c->d->flags[0], high = (int)c->d->flags[1];
  const int lda = cpu_lapack_ld(c->n), lwork = c->query ? -1 : c->lwork;
  int info = 0;
  ((gehrd_fn *)c->function)(&c->n, &low, &high, c->t[1], &lda, c->t[2],
                            c->query ? asked : c->work, &lwork, &info);
  if (c->query) {
    c->lwork = cpu_lapack_asked(c, asked);
  } else {
    memcpy(c->t[3], &info, sizeof info);
  }
}
