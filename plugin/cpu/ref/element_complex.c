// ref/element_complex: operations on complex numbers, in parts of double.
#include <math.h>
#include <string.h>

#include "ref/inner.h"

#define EACH(value)                          \
  for (size_t i = 0; i < n; i++) {           \
    const double complex x = a[i], y = b[i]; \
    (void)x, (void)y;                        \
    out[i] = value;                          \
  }                                          \
  return

bool cpu_ref_complex_less(double complex a, double complex b)
{
  if (creal(a) != creal(b)) return creal(a) < creal(b);
  return cimag(a) < cimag(b);
}

// Without the rules of C for infinite factors: as the specification writes it.
static double complex product(double complex a, double complex b)
{
  return cpu_ref_pair(creal(a) * creal(b) - cimag(a) * cimag(b),
                      creal(a) * cimag(b) + cimag(a) * creal(b));
}

static double complex sign_of(double complex z)
{
  if (creal(z) == 0 && cimag(z) == 0) return cpu_ref_pair(0, 0);
  const double r = cabs(z);
  return cpu_ref_pair(creal(z) / r, cimag(z) / r);
}

// log|1+z| without cancellation where |1+z| is about 1:
// |1+z|^2 - 1 = x (2 + x) + y^2.
static double complex log_plus_one(double complex z)
{
  const double x = creal(z);
  const double y = cimag(z);
  const double rest = x * (2 + x) + y * y;
  const double re = fabs(rest) < 0.5 ? 0.5 * log1p(rest) : log(hypot(1 + x, y));
  return cpu_ref_pair(re, atan2(y, 1 + x));
}

// e^x (cos y + i sin y): an infinite y has no direction, whatever x is.
static double complex exponential(double complex z)
{
  if (isinf(cimag(z))) return cpu_ref_pair((double)NAN, (double)NAN);
  return cexp(z);
}

// e^x cos y - 1 = (e^x - 1) cos y - 2 sin(y/2)^2
static double complex exp_minus_one(double complex z)
{
  const double x = creal(z);
  const double y = cimag(z);
  const double s = sin(y / 2);
  if (y == 0) return cpu_ref_pair(expm1(x), y);
  return cpu_ref_pair(expm1(x) * cos(y) - 2 * s * s, exp(x) * sin(y));
}

static double complex cube_root(double complex z)
{
  if (creal(z) == 0 && cimag(z) == 0) return z;
  const double r = cbrt(cabs(z));
  const double angle = carg(z) / 3;
  return cpu_ref_pair(r * cos(angle), r * sin(angle));
}

static double complex power(double complex a, double complex b)
{
  if (creal(b) == 0 && cimag(b) == 0) return cpu_ref_pair(1, 0);
  if (creal(a) == 0 && cimag(a) == 0 && creal(b) > 0) return cpu_ref_pair(0, 0);
  return cpow(a, b);
}

// -i log((b + i a) / sqrt(a^2 + b^2))
static double complex angle_of(double complex a, double complex b)
{
  const double complex ia = cpu_ref_pair(-cimag(a), creal(a));
  const double complex l = clog((b + ia) / csqrt(a * a + b * b));
  return cpu_ref_pair(cimag(l), -creal(l));
}

static double complex remainder_of(double complex a, double complex b)
{
  const double complex q = a / b;
  return a - product(b, cpu_ref_pair(trunc(creal(q)), trunc(cimag(q))));
}

static bool has_nan(double complex z)
{
  return isnan(creal(z)) || isnan(cimag(z));
}

static double complex extreme(double complex a, double complex b, bool max)
{
  if (has_nan(a)) return a;
  if (has_nan(b)) return b;
  return cpu_ref_complex_less(a, b) == max ? b : a;
}

#define NONE break
#define COMPLEX_VALUE(value) EACH(value)
#define COMPLEX(value, code) EACH(value)
#define CPU_ELEMENT(id, ns, real, integer, truth, complexes) \
  case CX_HLO_OP_##id: complexes;

void cpu_ref_complexes(cx_hlo_op_kind kind, const double complex *a,
                       const double complex *b, double complex *out, size_t n)
{
  switch (kind) {
#include "ref/element.def"
    default: break;
  }
  memmove(out, a, n * sizeof *a);
}
