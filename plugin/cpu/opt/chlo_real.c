// opt/chlo: elementary functions of CHLO on f64.
//
// All use identities whose steps neither cancel nor overflow, so the error is
// that of a few roundings: atan2 for the inverse circular functions, log1p
// and expm1 for the hyperbolic ones (W. Kahan, "Branch cuts for complex
// elementary functions", 1987; FDLIBM's e_acosh.c, s_asinh.c, e_atanh.c).
#include <math.h>

#include "opt/emit.h"

cpu_opt_value cpu_opt_polynomial(cx_hlo_builder *b, cpu_opt_value x,
                                 const double *c, size_t n)
{
  cpu_opt_value r = number(b, x, c[0]);
  for (size_t i = 1; i < n; i++) {
    r = plus_number(b, times(b, r, x), c[i]);
  }
  return r;
}

cpu_opt_value cpu_opt_chebyshev(cx_hlo_builder *b, cpu_opt_value x,
                                const double *c, size_t n)
{
  cpu_opt_value twice = plus(b, x, x);
  cpu_opt_value newer = number(b, x, c[n - 1]);
  cpu_opt_value older = number(b, x, 0);
  for (size_t i = n - 1; i-- > 1;) {
    cpu_opt_value next = minus(b, times(b, twice, newer), older);
    older = newer;
    newer = plus_number(b, next, c[i]);
  }
  return plus_number(b, minus(b, times(b, x, newer), older), c[0]);
}

cpu_opt_value cpu_opt_copysign(cx_hlo_builder *b, cpu_opt_value x,
                               cpu_opt_value y)
{
  if (x == NULL || y == NULL) return NULL;
  cx_hlo_type bits = x->type.tensor;
  const bool wide = bits.elem == CX_HLO_F64;
  bits.elem = wide ? CX_HLO_UI64 : CX_HLO_UI32;
  const int64_t top = wide ? INT64_MIN : (int64_t)1 << 31;
  cpu_opt_value sign = cx_hlo_splat_int(b, bits, top);
  cpu_opt_value rest = complement(b, sign);
  cpu_opt_value magnitude = both(b, cx_hlo_bitcast_convert(b, x, bits), rest);
  cpu_opt_value signs = both(b, cx_hlo_bitcast_convert(b, y, bits), sign);
  return cx_hlo_bitcast_convert(b, either(b, magnitude, signs), x->type.tensor);
}

// sqrt((1 - x) (1 + x)); NaN above 1.
static cpu_opt_value other_leg(cx_hlo_builder *b, cpu_opt_value x)
{
  return root(b, times(b, number_minus(b, 1, x), plus_number(b, x, 1)));
}

cpu_opt_value cpu_opt_asin(cx_hlo_builder *b, cpu_opt_value x)
{
  return atan2_of(b, x, other_leg(b, x));
}

cpu_opt_value cpu_opt_acos(cx_hlo_builder *b, cpu_opt_value x)
{
  return atan2_of(b, other_leg(b, x), x);
}

cpu_opt_value cpu_opt_atan(cx_hlo_builder *b, cpu_opt_value x)
{
  return atan2_of(b, x, number(b, x, 1));
}

// Squares of larger numbers overflow.
#define LARGE 1e150

static cpu_opt_value log_twice(cx_hlo_builder *b, cpu_opt_value x)
{
  return plus_number(b, log_of(b, x), 0.693147180559945309417);
}

// log1p(a + a^2 / (1 + sqrt(1 + a^2)))
cpu_opt_value cpu_opt_asinh(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value a = absolute(b, x);
  cpu_opt_value square = times(b, a, a);
  cpu_opt_value below = plus_number(b, root(b, plus_number(b, square, 1)), 1);
  cpu_opt_value small = log1p_of(b, plus(b, a, over(b, square, below)));
  cpu_opt_value r = choose(b, is_over(b, a, LARGE), log_twice(b, a), small);
  return cpu_opt_copysign(b, r, x);
}

// log1p(t + sqrt(t) sqrt(x + 1)), t = x - 1
cpu_opt_value cpu_opt_acosh(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value t = plus_number(b, x, -1);
  cpu_opt_value leg = times(b, root(b, t), root(b, plus_number(b, x, 1)));
  cpu_opt_value small = log1p_of(b, plus(b, t, leg));
  return choose(b, is_over(b, x, LARGE), log_twice(b, x), small);
}

// log1p(2a / (1 - a)) / 2
cpu_opt_value cpu_opt_atanh(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value a = absolute(b, x);
  cpu_opt_value ratio = over(b, plus(b, a, a), number_minus(b, 1, a));
  cpu_opt_value r = times_number(b, log1p_of(b, ratio), 0.5);
  return cpu_opt_copysign(b, r, x);
}

// e^a / 2 as (e^(a/2) / 2) e^(a/2), which overflows only where the result does.
static cpu_opt_value half_exp(cx_hlo_builder *b, cpu_opt_value a)
{
  cpu_opt_value e = exp_of(b, times_number(b, a, 0.5));
  return times(b, times_number(b, e, 0.5), e);
}

#define EXP_OVERFLOWS 709.0

// (e + e / (e + 1)) / 2, e = expm1(a)
cpu_opt_value cpu_opt_sinh(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value a = absolute(b, x);
  cpu_opt_value e = cx_hlo_unary(b, CX_HLO_OP_EXPONENTIAL_MINUS_ONE, a);
  cpu_opt_value sum = plus(b, e, over(b, e, plus_number(b, e, 1)));
  cpu_opt_value r = choose(b, is_over(b, a, EXP_OVERFLOWS), half_exp(b, a),
                           times_number(b, sum, 0.5));
  return cpu_opt_copysign(b, r, x);
}

cpu_opt_value cpu_opt_cosh(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value a = absolute(b, x);
  cpu_opt_value e = exp_of(b, a);
  cpu_opt_value sum = plus(b, times_number(b, e, 0.5), number_over(b, 0.5, e));
  return choose(b, is_over(b, a, EXP_OVERFLOWS), half_exp(b, a), sum);
}
