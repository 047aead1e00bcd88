// ref/linalg: cholesky and triangular_solve, in double parts.
#include <math.h>
#include <string.h>

#include "ref/contract.h"

// Matrices of a tensor's last two dimensions.
static size_t matrices(const cx_hlo_type *t)
{
  size_t n = 1;
  for (size_t i = 0; i + 2 < t->rank; i++) n *= (size_t)t->dims[i];
  return n;
}

static void store_matrix(cx_hlo_elem e, void *p, size_t n,
                         const double complex *v)
{
  if (cx_hlo_elem_is_complex(e)) {
    cpu_ref_store_complex(e, p, n, v);
    return;
  }
  double x[CPU_REF_CHUNK];
  const size_t bytes = cx_hlo_elem_bytes(e);
  for (size_t at = 0; at < n; at += CPU_REF_CHUNK) {
    const size_t k = n - at < CPU_REF_CHUNK ? n - at : CPU_REF_CHUNK;
    for (size_t i = 0; i < k; i++) x[i] = creal(v[at + i]);
    cpu_ref_store_reals(e, (char *)p + at * bytes, k, x);
  }
}

// ---- cholesky ----

// L of A = L L^H in place, from the lower triangle; what is no positive
// definite matrix gives NaN.
static void factor(double complex *a, size_t n)
{
  for (size_t j = 0; j < n; j++) {
    double d = creal(a[j * n + j]);
    for (size_t k = 0; k < j; k++) {
      const double complex l = a[j * n + k];
      d -= creal(l) * creal(l) + cimag(l) * cimag(l);
    }
    const double root = d > 0 ? sqrt(d) : (double)NAN;
    a[j * n + j] = cpu_ref_pair(root, 0);
    for (size_t i = j + 1; i < n; i++) {
      double complex s = a[i * n + j];
      for (size_t k = 0; k < j; k++) s -= a[i * n + k] * conj(a[j * n + k]);
      a[i * n + j] = cpu_ref_pair(creal(s) / root, cimag(s) / root);
    }
    for (size_t i = 0; i < j; i++) a[i * n + j] = 0;
  }
}

static void transpose_conjugate(double complex *a, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    a[i * n + i] = conj(a[i * n + i]);
    for (size_t j = 0; j < i; j++) {
      const double complex x = conj(a[i * n + j]);
      a[i * n + j] = conj(a[j * n + i]);
      a[j * n + i] = x;
    }
  }
}

calx_status *cpu_ref_cholesky(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const cx_hlo_elem e = in->type.elem;
  const bool lower = cx_hlo_op_flag(c->op, CX_HLO_A_LOWER);
  const size_t n = (size_t)in->type.dims[in->type.rank - 1];
  const size_t bytes = n * n * cx_hlo_elem_bytes(e);
  cpu_ref_buffer *work = NULL;
  if (cpu_ref_count(in) == 0) return NULL;
  CALX_TRY(cpu_ref_scratch(c, n * n, sizeof(double complex), &work));
  double complex *a = (double complex *)(void *)work->data;
  calx_status *status = NULL;
  const size_t count = matrices(&in->type);
  for (size_t i = 0; i < count && status == NULL; i++) {
    status = cpu_ref_interrupted(c->machine);
    cpu_ref_load_complex(e, (char *)in->data + i * bytes, n * n, a);
    // U^H U = A: U is L^H of the lower triangle that mirrors the upper one.
    if (!lower) transpose_conjugate(a, n);
    factor(a, n);
    if (!lower) transpose_conjugate(a, n);
    store_matrix(e, (char *)out->data + i * bytes, n * n, a);
  }
  cpu_ref_buffer_release(c->machine, work);
  return status;
}

// ---- triangular_solve ----

typedef struct triangle {
  const double complex *a;
  size_t n;
  bool lower, unit, transpose, conjugate;
} triangle;

// Element (i, j) of op(A).
static double complex element(const triangle *t, size_t i, size_t j)
{
  const double complex x =
      t->transpose ? t->a[j * t->n + i] : t->a[i * t->n + j];
  return t->conjugate ? conj(x) : x;
}

// op(A) x = b in place, where b's elements are `step` apart; `right`: x op(A)
// = b, which is op(A)^T x^T = b^T.
static void solve(const triangle *t, double complex *b, size_t step, bool right)
{
  // Whether op(A), or its transpose, is lower: then x begins at the top.
  const bool forward = (t->lower != t->transpose) != right;
  for (size_t k = 0; k < t->n; k++) {
    const size_t i = forward ? k : t->n - 1 - k;
    double complex s = b[i * step];
    for (size_t l = 0; l < k; l++) {
      const size_t j = forward ? l : t->n - 1 - l;
      const double complex a = right ? element(t, j, i) : element(t, i, j);
      s -= a * b[j * step];
    }
    b[i * step] = t->unit ? s : s / element(t, i, i);
  }
}

static calx_status *solve_all(const cpu_ref_call *c, triangle *t)
{
  const cpu_ref_tensor *in = c->in;
  const cx_hlo_elem e = in[0].type.elem;
  const bool left = cx_hlo_op_flag(c->op, CX_HLO_A_LEFT_SIDE);
  const size_t rank = in[1].type.rank;
  const size_t rows = (size_t)in[1].type.dims[rank - 2];
  const size_t columns = (size_t)in[1].type.dims[rank - 1];
  const size_t size = cx_hlo_elem_bytes(e);
  cpu_ref_buffer *work = NULL;
  const size_t n = t->n * t->n;
  CALX_TRY(
      cpu_ref_scratch(c, n + rows * columns, sizeof(double complex), &work));
  double complex *a = (double complex *)(void *)work->data;
  double complex *b = a + n;
  t->a = a;
  calx_status *status = NULL;
  const size_t count = matrices(&in[1].type);
  for (size_t i = 0; i < count && status == NULL; i++) {
    const size_t at = i * rows * columns * size;
    status = cpu_ref_interrupted(c->machine);
    cpu_ref_load_complex(e, (char *)in[0].data + i * n * size, n, a);
    cpu_ref_load_complex(e, (char *)in[1].data + at, rows * columns, b);
    for (size_t k = 0; left && k < columns; k++)
      solve(t, b + k, columns, false);
    for (size_t k = 0; !left && k < rows; k++) {
      solve(t, b + k * columns, 1, true);
    }
    store_matrix(e, (char *)c->out->data + at, rows * columns, b);
  }
  cpu_ref_buffer_release(c->machine, work);
  return status;
}

calx_status *cpu_ref_triangular_solve(const cpu_ref_call *c)
{
  enum { TRANSPOSE = 2, ADJOINT = 3 };
  const int64_t how = cx_hlo_op_int(c->op, CX_HLO_A_TRANSPOSE_A);
  triangle t = { .n = (size_t)c->in[0].type.dims[c->in[0].type.rank - 1],
                 .lower = cx_hlo_op_flag(c->op, CX_HLO_A_LOWER),
                 .unit = cx_hlo_op_flag(c->op, CX_HLO_A_UNIT_DIAGONAL),
                 .transpose = how == TRANSPOSE || how == ADJOINT,
                 .conjugate = how == ADJOINT };
  if (cpu_ref_count(c->out) == 0) return NULL;
  return solve_all(c, &t);
}
