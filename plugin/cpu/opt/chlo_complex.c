// opt/chlo: inverse and hyperbolic functions of complex numbers, on f64 parts.
//
// T. E. Hull, T. F. Fairgrieve, P. T. P. Tang, "Implementing the complex
// arcsine and arccosine functions using exception handling", 1997, without
// branches: every case is computed, and a select takes the right one. Squares
// are written as y (y / d), which overflows and underflows only where the
// result does. Magnitudes above LARGE have formulas of their own.
#include <math.h>

#include "opt/emit.h"

#define LARGE 1e150
#define TINY 1e-150
#define HALF_PI 1.57079632679489661923
#define LN2 0.693147180559945309417

// The smaller of two magnitudes by the larger; 1 if both are 0 or infinite.
static cpu_opt_value ratio_of(cx_hlo_builder *b, cpu_opt_value low,
                              cpu_opt_value high)
{
  return choose(b, equal(b, low, high), number(b, low, 1), over(b, low, high));
}

static cpu_opt_value hypotenuse(cx_hlo_builder *b, cpu_opt_value x,
                                cpu_opt_value y)
{
  cpu_opt_value high = larger(b, x, y);
  cpu_opt_value r = ratio_of(b, smaller(b, x, y), high);
  return times(b, high, root(b, plus_number(b, times(b, r, r), 1)));
}

// What arcsine and arccosine of x + iy have in common, for x, y >= 0: `leg`,
// with which the real parts are atan2(x, leg) and atan2(leg, x), and the
// magnitude of the imaginary part.
typedef struct kernel {
  cpu_opt_value leg, magnitude;
} kernel;

static kernel arc_kernel(cx_hlo_builder *b, cpu_opt_value x, cpu_opt_value y)
{
  cpu_opt_value xp1 = plus_number(b, x, 1);
  cpu_opt_value xm1 = plus_number(b, x, -1);
  cpu_opt_value r = hypotenuse(b, xp1, y);
  cpu_opt_value s = hypotenuse(b, absolute(b, xm1), y);
  cpu_opt_value a = times_number(b, plus(b, r, s), 0.5);
  cpu_opt_value beyond = cx_hlo_compare(b, CX_HLO_GE, x, number(b, x, 1));
  cpu_opt_value first = plus(b, r, xp1);   // r + (x + 1)
  cpu_opt_value inner = minus(b, s, xm1);  // s + (1 - x)
  cpu_opt_value outer = plus(b, s, xm1);   // s + (x - 1)
  cpu_opt_value yy_first = times(b, y, over(b, y, first));
  // a - 1
  cpu_opt_value am1 = choose(b, beyond, plus(b, yy_first, outer),
                             plus(b, yy_first, times(b, y, over(b, y, inner))));
  am1 = times_number(b, am1, 0.5);
  cpu_opt_value magnitude =
      log1p_of(b, plus(b, am1, root(b, times(b, am1, plus_number(b, a, 1)))));
  // Here a - 1 underflows, but its root is not 0.
  cpu_opt_value flat = both(b, is_under(b, x, 1), is_under(b, y, TINY));
  cpu_opt_value near =
      over(b, y, root(b, times(b, number_minus(b, 1, x), xp1)));
  magnitude = choose(b, flat, near, magnitude);
  // sqrt(a^2 - x^2)
  cpu_opt_value apx = plus(b, a, x);
  cpu_opt_value inside =
      root(b, times_number(b, times(b, apx, plus(b, yy_first, inner)), 0.5));
  cpu_opt_value sum = plus(b, over(b, apx, first), over(b, apx, outer));
  cpu_opt_value outside = times(b, y, root(b, times_number(b, sum, 0.5)));
  cpu_opt_value leg = choose(b, is_over(b, x, 1), outside, inside);
  // log(2 |z|)
  cpu_opt_value high = larger(b, x, y);
  cpu_opt_value ratio = ratio_of(b, smaller(b, x, y), high);
  cpu_opt_value rest =
      times_number(b, log1p_of(b, times(b, ratio, ratio)), 0.5);
  cpu_opt_value far = plus(b, plus_number(b, log_of(b, high), LN2), rest);
  cpu_opt_value large = is_over(b, high, LARGE);
  return (kernel){ choose(b, large, y, leg), choose(b, large, far, magnitude) };
}

cpu_opt_parts cpu_opt_casin(cx_hlo_builder *b, cpu_opt_parts z)
{
  const kernel k = arc_kernel(b, absolute(b, z.re), absolute(b, z.im));
  return (cpu_opt_parts){ atan2_of(b, z.re, k.leg),
                          cpu_opt_copysign(b, k.magnitude, z.im) };
}

cpu_opt_parts cpu_opt_cacos(cx_hlo_builder *b, cpu_opt_parts z)
{
  const kernel k = arc_kernel(b, absolute(b, z.re), absolute(b, z.im));
  cpu_opt_value im = cpu_opt_copysign(b, k.magnitude, z.im);
  return (cpu_opt_parts){ atan2_of(b, k.leg, z.re), negated(b, im) };
}

// acosh z is i acos z or -i acos z, whichever has a real part >= 0.
cpu_opt_parts cpu_opt_cacosh(cx_hlo_builder *b, cpu_opt_parts z)
{
  const kernel k = arc_kernel(b, absolute(b, z.re), absolute(b, z.im));
  return (cpu_opt_parts){ k.magnitude,
                          cpu_opt_copysign(b, atan2_of(b, k.leg, z.re), z.im) };
}

// asinh(x + iy) is asin(y + ix) with exchanged parts; likewise atan and atanh.
cpu_opt_parts cpu_opt_casinh(cx_hlo_builder *b, cpu_opt_parts z)
{
  const cpu_opt_parts r = cpu_opt_casin(b, (cpu_opt_parts){ z.im, z.re });
  return (cpu_opt_parts){ r.im, r.re };
}

cpu_opt_parts cpu_opt_catan(cx_hlo_builder *b, cpu_opt_parts z)
{
  const cpu_opt_parts r = cpu_opt_catanh(b, (cpu_opt_parts){ z.im, z.re });
  return (cpu_opt_parts){ r.im, r.re };
}

// log1p(4x / ((1-x)^2 + y^2)) / 4 and atan2(2y, (1-x)(1+x) - y^2) / 2, for
// x >= 0.
cpu_opt_parts cpu_opt_catanh(cx_hlo_builder *b, cpu_opt_parts z)
{
  cpu_opt_value x = absolute(b, z.re);
  cpu_opt_value y = absolute(b, z.im);
  cpu_opt_value m = number_minus(b, 1, x);
  cpu_opt_value p = plus_number(b, x, 1);
  cpu_opt_value yy = times(b, y, y);
  cpu_opt_value below = plus(b, times(b, m, m), yy);
  cpu_opt_value re =
      times_number(b, log1p_of(b, over(b, times_number(b, x, 4), below)), 0.25);
  // Near the pole y^2 underflows: log(2 / y) / 2.
  cpu_opt_value pole = both(b, is_at(b, x, 1), is_under(b, y, TINY));
  cpu_opt_value near = times_number(b, log_of(b, y), -0.5);
  re = choose(b, pole, plus_number(b, near, LN2 / 2), re);
  cpu_opt_value im = times_number(
      b, atan2_of(b, plus(b, y, y), minus(b, times(b, m, p), yy)), 0.5);
  // For large magnitudes: x / |z|^2 and pi / 2.
  cpu_opt_value high = larger(b, x, y);
  cpu_opt_value u = over(b, x, high);
  cpu_opt_value v = over(b, y, high);
  cpu_opt_value square = plus(b, times(b, u, u), times(b, v, v));
  cpu_opt_value far = over(b, over(b, u, square), high);
  far = choose(b, is_at(b, high, HUGE_VAL), number(b, x, 0), far);
  cpu_opt_value large = is_over(b, high, LARGE);
  re = choose(b, large, far, re);
  im = choose(b, large, number(b, y, HALF_PI), im);
  return (cpu_opt_parts){ cpu_opt_copysign(b, re, z.re),
                          cpu_opt_copysign(b, im, z.im) };
}

// 0 on the real axis, where the product would be 0 times infinity.
static cpu_opt_value unless_zero(cx_hlo_builder *b, cpu_opt_value y,
                                 cpu_opt_value r)
{
  return choose(b, is_at(b, y, 0), y, r);
}

cpu_opt_parts cpu_opt_csinh(cx_hlo_builder *b, cpu_opt_parts z)
{
  cpu_opt_value re =
      times(b, cx_hlo_unary(b, CX_HLO_OP_CHLO_SINH, z.re), cos_of(b, z.im));
  cpu_opt_value im =
      times(b, cx_hlo_unary(b, CX_HLO_OP_CHLO_COSH, z.re), sin_of(b, z.im));
  return (cpu_opt_parts){ re, unless_zero(b, z.im, im) };
}

cpu_opt_parts cpu_opt_ccosh(cx_hlo_builder *b, cpu_opt_parts z)
{
  cpu_opt_value re =
      times(b, cx_hlo_unary(b, CX_HLO_OP_CHLO_COSH, z.re), cos_of(b, z.im));
  cpu_opt_value im =
      times(b, cx_hlo_unary(b, CX_HLO_OP_CHLO_SINH, z.re), sin_of(b, z.im));
  cpu_opt_value axis = times(b, z.im, cx_hlo_unary(b, CX_HLO_OP_SIGN, z.re));
  return (cpu_opt_parts){ re, choose(b, is_at(b, z.im, 0), axis, im) };
}
