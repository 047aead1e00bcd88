// opt/chlo: elementary functions of CHLO on f64.
//
// All by identities whose steps neither cancel nor overflow, so that the error
// is that of a few roundings: atan2 for the inverse circular functions, log1p
// and expm1 for the hyperbolic ones (W. Kahan, "Branch cuts for complex
// elementary functions", 1987; FDLIBM's e_acosh.c, s_asinh.c, e_atanh.c).
#include <math.h>

#include "opt/emit.h"

cx_v cx_opt_polynomial(cx_hlo_builder *b, cx_v x, const double *c, size_t n)
{
  cx_v r = number(b, x, c[0]);
  for (size_t i = 1; i < n; i++) {
    r = plus_number(b, times(b, r, x), c[i]);
  }
  return r;
}

cx_v cx_opt_chebyshev(cx_hlo_builder *b, cx_v x, const double *c, size_t n)
{
  cx_v twice = plus(b, x, x);
  cx_v newer = number(b, x, c[n - 1]);
  cx_v older = number(b, x, 0);
  for (size_t i = n - 1; i-- > 1;) {
    cx_v next = minus(b, times(b, twice, newer), older);
    older = newer;
    newer = plus_number(b, next, c[i]);
  }
  return plus_number(b, minus(b, times(b, x, newer), older), c[0]);
}

cx_v cx_opt_copysign(cx_hlo_builder *b, cx_v x, cx_v y)
{
  if (x == NULL || y == NULL) return NULL;
  cx_hlo_type bits = x->type.tensor;
  const bool wide = bits.elem == CX_HLO_F64;
  bits.elem = wide ? CX_HLO_UI64 : CX_HLO_UI32;
  const int64_t top = wide ? INT64_MIN : (int64_t)1 << 31;
  cx_v sign = cx_hlo_splat_int(b, bits, top);
  cx_v rest = unary(b, CX_HLO_OP_NOT, sign);
  cx_v magnitude = both(b, cx_hlo_bitcast_convert(b, x, bits), rest);
  cx_v signs = both(b, cx_hlo_bitcast_convert(b, y, bits), sign);
  return cx_hlo_bitcast_convert(
      b, cx_hlo_binary(b, CX_HLO_OP_OR, magnitude, signs), x->type.tensor);
}

// sqrt((1 - x) (1 + x)): NaN beyond 1.
static cx_v other_leg(cx_hlo_builder *b, cx_v x)
{
  return root(b, times(b, number_minus(b, 1, x), plus_number(b, x, 1)));
}

cx_v cx_opt_asin(cx_hlo_builder *b, cx_v x)
{
  return cx_hlo_binary(b, CX_HLO_OP_ATAN2, x, other_leg(b, x));
}

cx_v cx_opt_acos(cx_hlo_builder *b, cx_v x)
{
  return cx_hlo_binary(b, CX_HLO_OP_ATAN2, other_leg(b, x), x);
}

cx_v cx_opt_atan(cx_hlo_builder *b, cx_v x)
{
  return cx_hlo_binary(b, CX_HLO_OP_ATAN2, x, number(b, x, 1));
}

// Squares of more would overflow.
#define LARGE 1e150

static cx_v log_twice(cx_hlo_builder *b, cx_v x)
{
  return plus_number(b, unary(b, CX_HLO_OP_LOG, x), 0.693147180559945309417);
}

// log1p(a + a^2 / (1 + sqrt(1 + a^2)))
cx_v cx_opt_asinh(cx_hlo_builder *b, cx_v x)
{
  cx_v a = absolute(b, x);
  cx_v square = times(b, a, a);
  cx_v below = plus_number(b, root(b, plus_number(b, square, 1)), 1);
  cx_v small =
      unary(b, CX_HLO_OP_LOG_PLUS_ONE, plus(b, a, over(b, square, below)));
  cx_v r = choose(b, is_over(b, a, LARGE), log_twice(b, a), small);
  return cx_opt_copysign(b, r, x);
}

// log1p(t + sqrt(t) sqrt(x + 1)), t = x - 1
cx_v cx_opt_acosh(cx_hlo_builder *b, cx_v x)
{
  cx_v t = plus_number(b, x, -1);
  cx_v leg = times(b, root(b, t), root(b, plus_number(b, x, 1)));
  cx_v small = unary(b, CX_HLO_OP_LOG_PLUS_ONE, plus(b, t, leg));
  return choose(b, is_over(b, x, LARGE), log_twice(b, x), small);
}

// log1p(2a / (1 - a)) / 2
cx_v cx_opt_atanh(cx_hlo_builder *b, cx_v x)
{
  cx_v a = absolute(b, x);
  cx_v ratio = over(b, plus(b, a, a), number_minus(b, 1, a));
  cx_v r = times_number(b, unary(b, CX_HLO_OP_LOG_PLUS_ONE, ratio), 0.5);
  return cx_opt_copysign(b, r, x);
}

// e^a / 2 as (e^(a/2) / 2) e^(a/2), which overflows where the result does.
static cx_v half_exp(cx_hlo_builder *b, cx_v a)
{
  cx_v e = unary(b, CX_HLO_OP_EXPONENTIAL, times_number(b, a, 0.5));
  return times(b, times_number(b, e, 0.5), e);
}

#define EXP_OVERFLOWS 709.0

// (e + e / (e + 1)) / 2, e = expm1(a)
cx_v cx_opt_sinh(cx_hlo_builder *b, cx_v x)
{
  cx_v a = absolute(b, x);
  cx_v e = unary(b, CX_HLO_OP_EXPONENTIAL_MINUS_ONE, a);
  cx_v sum = plus(b, e, over(b, e, plus_number(b, e, 1)));
  cx_v r = choose(b, is_over(b, a, EXP_OVERFLOWS), half_exp(b, a),
                  times_number(b, sum, 0.5));
  return cx_opt_copysign(b, r, x);
}

cx_v cx_opt_cosh(cx_hlo_builder *b, cx_v x)
{
  cx_v a = absolute(b, x);
  cx_v e = unary(b, CX_HLO_OP_EXPONENTIAL, a);
  cx_v sum = plus(b, times_number(b, e, 0.5), number_over(b, 0.5, e));
  return choose(b, is_over(b, a, EXP_OVERFLOWS), half_exp(b, a), sum);
}
