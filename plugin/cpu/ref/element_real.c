// ref/element_real: operations on floats, in double.
#include <math.h>

#include "ref/inner.h"

#define EACH(expression)                              \
  for (size_t i = 0; i < n; i++) out[i] = expression; \
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

static void binary(cx_hlo_op_kind kind, const double *a, const double *b,
                   double *out, size_t n)
{
  switch (kind) {
    case CX_HLO_OP_ADD: EACH(a[i] + b[i]);
    case CX_HLO_OP_SUBTRACT: EACH(a[i] - b[i]);
    case CX_HLO_OP_MULTIPLY: EACH(a[i] * b[i]);
    case CX_HLO_OP_DIVIDE: EACH(a[i] / b[i]);
    case CX_HLO_OP_REMAINDER: EACH(fmod(a[i], b[i]));
    case CX_HLO_OP_POWER: EACH(pow(a[i], b[i]));
    case CX_HLO_OP_ATAN2: EACH(atan2(a[i], b[i]));
    case CX_HLO_OP_MAXIMUM: EACH(largest(a[i], b[i]));
    case CX_HLO_OP_MINIMUM: EACH(smallest(a[i], b[i]));
    default: EACH(a[i]);
  }
}

void cpu_ref_reals(cx_hlo_op_kind kind, const double *a, const double *b,
                   double *out, size_t n)
{
  switch (kind) {
    case CX_HLO_OP_NEGATE: EACH(-a[i]);
    case CX_HLO_OP_ABS: EACH(fabs(a[i]));
    case CX_HLO_OP_SIGN: EACH(sign_of(a[i]));
    case CX_HLO_OP_EXPONENTIAL: EACH(exp(a[i]));
    case CX_HLO_OP_EXPONENTIAL_MINUS_ONE: EACH(expm1(a[i]));
    case CX_HLO_OP_LOG: EACH(log(a[i]));
    case CX_HLO_OP_LOG_PLUS_ONE: EACH(log1p(a[i]));
    case CX_HLO_OP_LOGISTIC: EACH(logistic(a[i]));
    case CX_HLO_OP_TANH: EACH(tanh(a[i]));
    case CX_HLO_OP_TAN: EACH(tan(a[i]));
    case CX_HLO_OP_SQRT: EACH(sqrt(a[i]));
    case CX_HLO_OP_RSQRT: EACH(1 / sqrt(a[i]));
    case CX_HLO_OP_CBRT: EACH(cbrt(a[i]));
    case CX_HLO_OP_COSINE: EACH(cos(a[i]));
    case CX_HLO_OP_SINE: EACH(sin(a[i]));
    case CX_HLO_OP_FLOOR: EACH(floor(a[i]));
    case CX_HLO_OP_CEIL: EACH(ceil(a[i]));
    case CX_HLO_OP_ROUND_NEAREST_EVEN: EACH(nearbyint(a[i]));
    case CX_HLO_OP_ROUND_NEAREST_AFZ: EACH(round(a[i]));
    case CX_HLO_OP_REAL: EACH(a[i]);
    case CX_HLO_OP_IMAG: EACH(0);
    default: binary(kind, a, b, out, n); return;
  }
}
