// jit/math_exp: exp and what is made of it.
//
// All of them write x = n ln 2 + r with |r| <= ln(2)/2 and use
// exp(x) = 2^n (1 + r + r^2 P(r)). What loses bits by cancelling (expm1, tanh
// of small arguments) carries r's rounding error along. W. Cody and W. Waite,
// Software Manual for the Elementary Functions, 1980, chapter 6.
#include "jit/math_parts.h"

// r.hi + r.lo = x - n ln 2; the low bits of `n` are n.
typedef struct reduced {
  value n;
  pair r;
} reduced;

// The first part of ln 2 has so few bits that its products with n are exact.
static reduced reduce(const maths *m, value x, bool with_error)
{
  value n = mad(m, x, num(m, 1.4426950408889634), rounder(m));
  value multiple = negative(m, sub(m, n, rounder(m)));
  value a =
      mad(m, multiple, either(m, 0.693145751953125, 0.69314718036912382), x);
  value rest = either(m, 1.4286068203094173e-06, 1.9082149292705877e-10);
  value r = mad(m, multiple, rest, a);
  value lo = NULL;
  if (with_error) lo = mad(m, multiple, rest, sub(m, a, r));
  return (reduced){ as_bits(m, n), { r, lo } };
}

// exp(r) - 1 - r, the error of r included
static value tail_of(const maths *m, pair r)
{
  const cpu_jit_series *series = m->wide ? &cpu_jit_exp_f64 : &cpu_jit_exp_f32;
  value square = mul(m, r.hi, r.hi);
  value p = polynomial(m, series, r.hi);
  return r.lo ? mad(m, p, square, r.lo) : mul(m, p, square);
}

// x * 2^n in two steps, so that the ends of the range are reached.
static value scaled(const maths *m, value x, value n)
{
  unsigned bits = fraction(m);
  value whole_n = left(m, n, bits);
  value half =
      mask(m, left(m, n, bits - 1), m->wide ? ~0ull << 52 : 0xff800000u);
  value one = whole(m, one_bits(m));
  value first = as_real(m, plus(m, half, one));
  value second = as_real(m, plus(m, minus(m, whole_n, half), one));
  return mul(m, mul(m, x, first), second);
}

// exp(x) where 2^n is a normal number.
static value exp_within(const maths *m, value x)
{
  reduced e = reduce(m, x, false);
  value p = add(m, add(m, e.r.hi, tail_of(m, e.r)), num(m, 1));
  return mul(m, p, power_of_two(m, e.n));
}

// Beyond these all results are 0 or infinite.
static value clamped(const maths *m, value x)
{
  x = at_most(m, x, either(m, 89, 710));
  return at_least(m, x, either(m, -104, -746));
}

value cpu_jit_exp(const maths *m, value x)
{
  reduced e = reduce(m, clamped(m, x), false);
  value p = add(m, add(m, e.r.hi, tail_of(m, e.r)), num(m, 1));
  return scaled(m, p, e.n);
}

value cpu_jit_exp_pair(const maths *m, pair x)
{
  reduced e = reduce(m, clamped(m, x.hi), true);
  value lo = add(m, e.r.lo, x.lo);
  // x.lo may be much more than r's error: times exp(r) and not times 1.
  value p = add(m, e.r.hi, tail_of(m, (pair){ e.r.hi, NULL }));
  p = add(m, add(m, p, mad(m, lo, p, lo)), num(m, 1));
  return scaled(m, p, e.n);
}

// expm1 by 2^-halvings (0 or 1) as two numbers: 2^n r + (2^n - 1), and the rest
// with that sum's error.
static pair expm1_pair(const maths *m, value x, unsigned halvings)
{
  reduced e = reduce(m, x, true);
  value tail = tail_of(m, e.r);
  uint64_t one = (uint64_t)(bias(m) - halvings) << fraction(m);
  value s = as_real(m, plus(m, left(m, e.n, fraction(m)), whole(m, one)));
  value less_one = sub(m, s, num(m, halvings ? 0.5 : 1));
  pair sum = sum_of(m, less_one, mul(m, s, e.r.hi));
  sum.lo = mad(m, s, tail, sum.lo);
  return sum;
}

value cpu_jit_expm1(const maths *m, value x)
{
  // Half of the result, since 2^n may be more than the largest number.
  value within =
      at_least(m, at_most(m, x, either(m, 88.8, 709.9)), either(m, -30, -50));
  pair half = expm1_pair(m, within, 1);
  value result = add(m, half.hi, half.lo);
  result = add(m, result, result);
  value tiny = less(m, absolute(m, x), either(m, 0x1p-25, 0x1p-54));
  return choose(m, tiny, x, result);
}

value cpu_jit_logistic(const maths *m, value x)
{
  value e = cpu_jit_exp(m, negative(m, absolute(m, x)));
  value below = less(m, x, num(m, 0));
  pair top = { choose(m, below, e, num(m, 1)), num(m, 0) };
  pair q = ratio_of(m, top, quick_sum(m, num(m, 1), e));
  return add(m, q.hi, q.lo);
}

// x + x^3 P(x^2) near 0, 1 - 2 / (1 + exp(2x)) elsewhere.
static value tanh_narrow(const maths *m, value x)
{
  value a = at_most(m, absolute(m, x), num(m, 10));
  value e = exp_within(m, add(m, a, a));
  value far = quotient(m, num(m, 2), add(m, e, num(m, 1)));
  far = sub(m, num(m, 1), far);
  value square = mul(m, a, a);
  value p = mul(m, polynomial(m, &cpu_jit_tanh_f32, square), square);
  value near = mad(m, p, a, a);
  value result = choose(m, less(m, a, num(m, 0.6)), near, far);
  return with_sign(m, result, x);
}

// expm1(2x) / (expm1(2x) + 2), with the errors of both.
static value tanh_wide(const maths *m, value x)
{
  value a = at_most(m, absolute(m, x), num(m, 20));
  pair top = expm1_pair(m, add(m, a, a), 0);
  top = quick_sum(m, top.hi, top.lo);
  pair bottom = sum_of(m, top.hi, num(m, 2));
  bottom.lo = add(m, bottom.lo, top.lo);
  pair q = ratio_of(m, top, bottom);
  return with_sign(m, add(m, q.hi, q.lo), x);
}

value cpu_jit_tanh(const maths *m, value x)
{
  return m->wide ? tanh_wide(m, x) : tanh_narrow(m, x);
}

// x + x P(x^2) near 0. Elsewhere 1 - erfc(x): in f32 as exp(-P(x)) (the form
// is N. Juffa's), in f64 as exp(-x^2) P(1/(x+2)).
value cpu_jit_erf(const maths *m, value x)
{
  value a = at_most(m, absolute(m, x), either(m, 4, 6));
  value square = mul(m, a, a), rest;
  if (m->wide) {
    value u = quotient(m, num(m, 1), add(m, a, num(m, 2)));
    rest = mul(m, polynomial(m, &cpu_jit_erfc_f64, u),
               exp_within(m, negative(m, square)));
  } else {
    value p = polynomial(m, &cpu_jit_erfc_f32, a);
    rest = exp_within(m, negative(m, p));
  }
  value far = sub(m, num(m, 1), rest);
  value p =
      polynomial(m, m->wide ? &cpu_jit_erf_f64 : &cpu_jit_erf_f32, square);
  value near = mad(m, p, a, a);
  value is_near = less(m, a, either(m, 0.93, 1));
  return with_sign(m, choose(m, is_near, near, far), x);
}
