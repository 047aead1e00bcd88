// ref/element_real: operations on floats, in double.
#include <math.h>
#include <string.h>

#include "ref/inner.h"

#define EACH(value)                  \
  for (size_t i = 0; i < n; i++) {   \
    const double x = a[i], y = b[i]; \
    (void)x, (void)y;                \
    out[i] = value;                  \
  }                                  \
  return

// NaN propagates, and -0 is below +0.
static double largest(double x, double y)
{
  if (isnan(x) || isnan(y)) return x + y;
  if (x == y) return signbit(x) ? y : x;
  return x > y ? x : y;
}

static double smallest(double x, double y)
{
  if (isnan(x) || isnan(y)) return x + y;
  if (x == y) return signbit(x) ? x : y;
  return x < y ? x : y;
}

static double sign_of(double x)
{
  if (isnan(x) || x == 0) return x;
  return x < 0 ? -1 : 1;
}

static double logistic(double x)
{
  // exp() of the negative side cannot overflow.
  const double e = exp(-fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

// The y of erf(y) = x: from an estimate (S. Winitzki, "A handy approximation
// for the error function and its inverse", 2008), by Halley's method.
static double erf_inv(double x)
{
  const double a = fabs(x), rest = 1 - a;
  if (a >= 1) return a == 1 ? copysign(HUGE_VAL, x) : (double)NAN;
  const double log = log1p(-a * a), b = 2 / (M_PI * 0.147) + log / 2;
  double y = sqrt(sqrt(b * b - log / 0.147) - b);
  for (int i = 0; i < 3 && a > 0; i++) {
    const double off = a < 0.5 ? erf(y) - a : rest - erfc(y);
    const double step = off / (M_2_SQRTPI * exp(-y * y));
    y -= step / (1 + y * step);
  }
  return copysign(y, x);
}

#define NONE break
#define REAL(value, code) EACH(value)
#define CPU_ELEMENT(id, ns, real, integer, truth, complexes) \
  case CX_HLO_OP_##id: real;

void cpu_ref_reals(cx_hlo_op_kind kind, const double *a, const double *b,
                   double *out, size_t n)
{
  switch (kind) {
#include "ref/element.def"
    case CX_HLO_OP_IMAG: EACH(0);
    default: break;
  }
  memmove(out, a, n * sizeof *a);  // REAL
}
