// How far a result is from the right one, in units of its last place.
#ifndef TESTS_ENGINE_JIT_MATH_ULP_H
#define TESTS_ENGINE_JIT_MATH_ULP_H

#include <float.h>
#include <math.h>
#include <stdbool.h>

// Infinite where NaN, a sign or an infinity is wrong. What rounds to infinity
// may be that or the largest number's neighbours.
static inline double test_ulps(long double got, long double want, bool wide)
{
  int least = wide ? DBL_MIN_EXP - 1 : FLT_MIN_EXP - 1;
  int most = wide ? DBL_MAX_EXP : FLT_MAX_EXP;
  int bits = wide ? DBL_MANT_DIG : FLT_MANT_DIG;
  if (isnan(got) || isnan(want))
    return isnan(got) && isnan(want) ? 0 : (double)INFINITY;
  if (signbit(got) != signbit(want)) return (double)INFINITY;
  long double end = ldexpl(1, most);
  got = fabsl(got);
  want = fabsl(want);
  if (isinf(want) && !isinf(got)) return (double)INFINITY;
  if (want == 0 && got != 0) return (double)INFINITY;
  if (got > end) got = end;
  if (want > end) want = end;
  if (got == want) return 0;
  int exponent = want > 0 ? ilogbl(want) : least;
  if (exponent < least) exponent = least;
  if (exponent >= most) exponent = most - 1;
  return (double)ldexpl(fabsl(got - want), bits - 1 - exponent);
}

#endif
