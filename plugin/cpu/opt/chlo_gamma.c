// opt/chlo: the gamma function's logarithm, its derivatives, and zeta.
//
// Lanczos' approximation with g = 7 and nine terms (C. Lanczos, "A precision
// approximation of the gamma function", 1964; the coefficients are P.
// Godfrey's), with the reflection formula below 1/2; digamma is its derivative.
// zeta is Hurwitz's: ten terms and the Euler-Maclaurin formula.
#include <math.h>

#include "opt/emit.h"

#define PI 3.14159265358979323846
#define G 7.0
#define TERMS 8

static const double lanczos[TERMS] = {
  676.520368121885098567009190444019, -1259.13921672240287047156078755283,
  771.3234287776530788486528258894,   -176.61502916214059906584551354,
  12.507343278686904814458936853,     -0.13857109526572011689554707,
  9.984369578019570859563e-6,         1.50563273514931155834e-7
};
static const double lanczos_first = 0.99999999999980993227684700473478;

// The formula's argument: x - 1, or -x below 1/2.
static cpu_opt_value reflected(cx_hlo_builder *b, cpu_opt_value x,
                               cpu_opt_value below)
{
  return choose(b, below, negated(b, x), plus_number(b, x, -1));
}

// A(z), and -A'(z) if it is wanted.
static cpu_opt_value series(cx_hlo_builder *b, cpu_opt_value z,
                            cpu_opt_value *out_slope)
{
  cpu_opt_value sum = number(b, z, lanczos_first);
  cpu_opt_value slope = number(b, z, 0);
  for (int i = 0; i < TERMS; i++) {
    cpu_opt_value below = plus_number(b, z, i + 1);
    cpu_opt_value term = number_over(b, lanczos[i], below);
    sum = plus(b, sum, term);
    if (out_slope != NULL) slope = plus(b, slope, over(b, term, below));
  }
  if (out_slope != NULL) *out_slope = slope;
  return sum;
}

// log(z + g + 1/2), exact for small z.
static cpu_opt_value log_shifted(cx_hlo_builder *b, cpu_opt_value z)
{
  cpu_opt_value r = log1p_of(b, times_number(b, z, 1 / (G + 0.5)));
  return plus_number(b, r, log(G + 0.5));
}

// (z + 1/2 - t / log t) log t: a difference of infinities would be NaN.
cpu_opt_value cpu_opt_lgamma(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value below = is_under(b, x, 0.5);
  cpu_opt_value z = reflected(b, x, below);
  cpu_opt_value t = plus_number(b, z, G + 0.5);
  cpu_opt_value log_t = log_shifted(b, z);
  cpu_opt_value factor = minus(b, plus_number(b, z, 0.5), over(b, t, log_t));
  cpu_opt_value sum =
      plus_number(b, times(b, factor, log_t), 0.91893853320467274178);
  cpu_opt_value gamma = plus(b, sum, log_of(b, series(b, z, NULL)));
  // log(pi / |sin(pi x)|): the sine of x's distance to the next integer.
  cpu_opt_value a = absolute(b, x);
  cpu_opt_value part = minus(b, a, floor_of(b, a));
  part = choose(b, is_over(b, part, 0.5), number_minus(b, 1, part), part);
  cpu_opt_value sine = sin_of(b, times_number(b, part, PI));
  cpu_opt_value flip = number_minus(b, log(PI), log_of(b, sine));
  cpu_opt_value r = choose(b, below, minus(b, flip, gamma), gamma);
  return choose(b, is_at(b, a, HUGE_VAL), number(b, x, HUGE_VAL), r);
}

// log t - A'/A … - g / t; below 1/2 less pi cot(pi x).
cpu_opt_value cpu_opt_digamma(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value below = is_under(b, x, 0.5);
  cpu_opt_value z = reflected(b, x, below);
  cpu_opt_value slope = NULL;
  cpu_opt_value sum = series(b, z, &slope);
  cpu_opt_value t = plus_number(b, z, G + 0.5);
  cpu_opt_value r = minus(b, log_shifted(b, z), over(b, slope, sum));
  r = minus(b, r, number_over(b, G, t));
  cpu_opt_value whole = cx_hlo_unary(b, CX_HLO_OP_ROUND_NEAREST_EVEN, x);
  cpu_opt_value angle = times_number(b, minus(b, x, whole), PI);
  cpu_opt_value cotangent = over(b, cos_of(b, angle), sin_of(b, angle));
  cpu_opt_value flipped = minus(b, r, times_number(b, cotangent, PI));
  cpu_opt_value pole = both(b, is_under(b, x, 0.5), equal(b, x, whole));
  return choose(b, pole, number(b, x, (double)NAN),
                choose(b, below, flipped, r));
}

// Bernoulli numbers by factorials: B(2j) / (2j)!, j = 1 … 12.
static const double bernoulli[] = {
  0.083333333333333333,    -0.0013888888888888889,  3.3068783068783069e-5,
  -8.2671957671957672e-7,  2.0876756987868099e-8,   -5.2841901386874932e-10,
  1.3382536530684679e-11,  -3.3896802963225829e-13, 8.5860620562778446e-15,
  -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812523e-19
};

// The corrections: x/a (B2/2! + (x+1)(x+2)/a^2 (B4/4! + …)).
static cpu_opt_value corrections(cx_hlo_builder *b, cpu_opt_value x,
                                 cpu_opt_value a)
{
  cpu_opt_value square = times(b, a, a);
  cpu_opt_value r = number(b, x, 0);
  for (int j = 11; j >= 0; j--) {
    r = plus_number(b, r, bernoulli[j]);
    if (j == 0) break;
    cpu_opt_value factor =
        times(b, plus_number(b, x, 2 * j - 1), plus_number(b, x, 2 * j));
    r = times(b, r, over(b, factor, square));
  }
  return times(b, r, over(b, x, a));
}

cpu_opt_value cpu_opt_zeta(cx_hlo_builder *b, cpu_opt_value x, cpu_opt_value q)
{
  cpu_opt_value power = negated(b, x);
  cpu_opt_value a = q;
  cpu_opt_value sum = power_of(b, q, power);
  for (int k = 0; k < 9; k++) {
    a = plus_number(b, a, 1);
    sum = plus(b, sum, power_of(b, a, power));
  }
  a = plus_number(b, a, 1);
  cpu_opt_value last = power_of(b, a, power);
  cpu_opt_value integral = over(b, times(b, last, a), plus_number(b, x, -1));
  cpu_opt_value rest =
      times(b, last, plus_number(b, corrections(b, x, a), 0.5));
  // Where the terms are 0, the remainder is too, but computes 0 times infinity.
  rest = choose(b, is_at(b, last, 0), number(b, x, 0), plus(b, integral, rest));
  cpu_opt_value r = plus(b, sum, rest);
  cpu_opt_value odd = both(b, is_under(b, q, 0),
                           cx_hlo_compare(b, CX_HLO_NE, x, floor_of(b, x)));
  r = choose(b, odd, number(b, x, (double)NAN), r);
  cpu_opt_value at_pole =
      both(b, cx_hlo_compare(b, CX_HLO_LE, q, number(b, q, 0)),
           equal(b, q, floor_of(b, q)));
  r = choose(b, at_pole, number(b, x, HUGE_VAL), r);
  r = choose(b, is_at(b, x, 1), number(b, x, HUGE_VAL), r);
  return choose(b, is_under(b, x, 1), number(b, x, (double)NAN), r);
}

// (-1)^(n+1) n! zeta(n + 1, x)
cpu_opt_value cpu_opt_polygamma(cx_hlo_builder *b, cpu_opt_value n,
                                cpu_opt_value x)
{
  cpu_opt_value next = plus_number(b, n, 1);
  cpu_opt_value factorial = exp_of(b, cpu_opt_lgamma(b, next));
  cpu_opt_value r = times(b, factorial, cpu_opt_zeta(b, next, x));
  cpu_opt_value half = times_number(b, n, 0.5);
  cpu_opt_value even = equal(b, half, floor_of(b, half));
  r = choose(b, even, negated(b, r), r);
  r = choose(b, is_at(b, n, 0), cpu_opt_digamma(b, x), r);
  cpu_opt_value whole = equal(b, n, floor_of(b, n));
  cpu_opt_value fine =
      both(b, whole, cx_hlo_compare(b, CX_HLO_GE, n, number(b, n, 0)));
  return choose(b, fine, r, number(b, x, (double)NAN));
}
