// jit/math_exp: exp and what is made of it.
//
// All of them write x = n ln 2 + r with |r| <= ln(2)/2 and use
// exp(x) = 2^n (1 + r + r^2 P(r)). What loses bits by cancelling (expm1, tanh
// of small arguments) carries r's rounding error along. W. Cody and W. Waite,
// Software Manual for the Elementary Functions, 1980, chapter 6.
#include "jit/math_parts.h"

// r.hi + r.lo = x - n ln 2; the low bits of `n` are n, `real` is n as a number.
typedef struct reduced {
  LLVMValueRef n, real;
  cpu_jit_pair r;
} reduced;

// The first part of ln 2 has so few bits that its products with n are exact.
static reduced reduce(const cpu_jit_ir *m, LLVMValueRef x, bool with_error)
{
  LLVMValueRef n = mad(m, x, num(m, 1.4426950408889634), rounder(m));
  LLVMValueRef real = sub(m, n, rounder(m)), multiple = negative(m, real);
  LLVMValueRef a =
      mad(m, multiple, either(m, 0.693145751953125, 0.69314718036912382), x);
  LLVMValueRef rest = either(m, 1.4286068203094173e-06, 1.9082149292705877e-10);
  LLVMValueRef r = mad(m, multiple, rest, a);
  LLVMValueRef lo = NULL;
  if (with_error) lo = mad(m, multiple, rest, sub(m, a, r));
  return (reduced){ as_bits(m, n), real, { r, lo } };
}

// exp(r) - 1 - r, the error of r included
static LLVMValueRef tail_of(const cpu_jit_ir *m, cpu_jit_pair r)
{
  const cpu_jit_series *series = m->wide ? &cpu_jit_exp_f64 : &cpu_jit_exp_f32;
  LLVMValueRef square = mul(m, r.hi, r.hi);
  LLVMValueRef p = polynomial(m, series, r.hi);
  return r.lo ? mad(m, p, square, r.lo) : mul(m, p, square);
}

// x * 2^n; without an instruction for it in two steps, so that the ends of the
// range are reached.
static LLVMValueRef scaled(const cpu_jit_ir *m, LLVMValueRef x,
                           const reduced *e)
{
  if (cpu_jit_has_avx512(m)) return cpu_jit_scale(m, x, e->real);
  LLVMValueRef n = e->n;
  unsigned bits = fraction(m);
  LLVMValueRef whole_n = left(m, n, bits);
  LLVMValueRef half =
      mask(m, left(m, n, bits - 1), m->wide ? ~0ull << 52 : 0xff800000u);
  LLVMValueRef one = whole(m, one_bits(m));
  LLVMValueRef first = as_real(m, plus(m, half, one));
  LLVMValueRef second = as_real(m, plus(m, minus(m, whole_n, half), one));
  return mul(m, mul(m, x, first), second);
}

// exp(x) where 2^n is a normal number.
static LLVMValueRef exp_within(const cpu_jit_ir *m, LLVMValueRef x)
{
  reduced e = reduce(m, x, false);
  LLVMValueRef p = add(m, add(m, e.r.hi, tail_of(m, e.r)), num(m, 1));
  return mul(m, p, power_of_two(m, e.n));
}

// Beyond these all results are 0 or infinite. A result that is subnormal, or a
// little too small for that, takes Intel's processors over a hundred cycles;
// one that is far smaller becomes 0 at once. So the lower bounds are far below
// where results become 0.
static LLVMValueRef clamped_below(const cpu_jit_ir *m, LLVMValueRef x)
{
  const double least = cpu_jit_has_avx512(m) ? -400 : -119;
  return at_least(m, x, either(m, least, -790));
}

static LLVMValueRef clamped(const cpu_jit_ir *m, LLVMValueRef x)
{
  return clamped_below(m, at_most(m, x, either(m, 89, 710)));
}

static LLVMValueRef exp_of_clamped(const cpu_jit_ir *m, LLVMValueRef x)
{
  reduced e = reduce(m, x, false);
  LLVMValueRef p = add(m, add(m, e.r.hi, tail_of(m, e.r)), num(m, 1));
  return scaled(m, p, &e);
}

LLVMValueRef cpu_jit_exp(const cpu_jit_ir *m, LLVMValueRef x)
{
  return exp_of_clamped(m, clamped(m, x));
}

LLVMValueRef cpu_jit_exp_pair(const cpu_jit_ir *m, cpu_jit_pair x)
{
  reduced e = reduce(m, clamped(m, x.hi), true);
  LLVMValueRef lo = add(m, e.r.lo, x.lo);
  // x.lo may be much more than r's error: times exp(r) and not times 1.
  LLVMValueRef p = add(m, e.r.hi, tail_of(m, (cpu_jit_pair){ e.r.hi, NULL }));
  p = add(m, add(m, p, mad(m, lo, p, lo)), num(m, 1));
  return scaled(m, p, &e);
}

LLVMValueRef cpu_jit_exp_times(const cpu_jit_ir *m, cpu_jit_pair x,
                               cpu_jit_pair by)
{
  reduced e = reduce(m, clamped(m, x.hi), true);
  LLVMValueRef lo = add(m, e.r.lo, x.lo);
  LLVMValueRef tail = tail_of(m, (cpu_jit_pair){ e.r.hi, NULL });
  LLVMValueRef rest = add(m, tail, mad(m, lo, add(m, e.r.hi, tail), lo));
  cpu_jit_pair p = quick_sum(m, num(m, 1), add(m, e.r.hi, rest));
  lo = mad(m, p.lo, by.hi, mul(m, p.hi, by.lo));
  cpu_jit_pair product = product_of(m, p.hi, by.hi);
  return scaled(m, add(m, product.hi, add(m, product.lo, lo)), &e);
}

// expm1 by 2^-halvings (0 or 1) as two numbers: 2^n r + (2^n - 1), and the rest
// with that sum's error.
static cpu_jit_pair expm1_pair(const cpu_jit_ir *m, LLVMValueRef x,
                               unsigned halvings)
{
  reduced e = reduce(m, x, true);
  LLVMValueRef tail = tail_of(m, e.r);
  uint64_t one = (uint64_t)(bias(m) - halvings) << fraction(m);
  LLVMValueRef s =
      as_real(m, plus(m, left(m, e.n, fraction(m)), whole(m, one)));
  LLVMValueRef less_one = sub(m, s, num(m, halvings ? 0.5 : 1));
  cpu_jit_pair sum = sum_of(m, less_one, mul(m, s, e.r.hi));
  sum.lo = mad(m, s, tail, sum.lo);
  return sum;
}

LLVMValueRef cpu_jit_expm1(const cpu_jit_ir *m, LLVMValueRef x)
{
  // Half of the result, since 2^n may be more than the largest number.
  LLVMValueRef within =
      at_least(m, at_most(m, x, either(m, 88.8, 709.9)), either(m, -30, -50));
  cpu_jit_pair half = expm1_pair(m, within, 1);
  LLVMValueRef result = add(m, half.hi, half.lo);
  result = add(m, result, result);
  LLVMValueRef tiny = less(m, absolute(m, x), either(m, 0x1p-25, 0x1p-54));
  return choose(m, tiny, x, result);
}

// 1 / (1 + exp(-|x|)), for x < 0 times exp(-|x|). The quotient is corrected by
// its remainder, which counts the rounding of the sum too: without that the
// error is up to 2.4 units in the last place.
LLVMValueRef cpu_jit_logistic(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef one = num(m, 1), a = negative(m, absolute(m, x));
  LLVMValueRef e = exp_of_clamped(m, clamped_below(m, a));
  LLVMValueRef top = choose(m, less(m, x, num(m, 0)), e, one);
  cpu_jit_pair sum = quick_sum(m, one, e);
  LLVMValueRef inverse = quotient(m, one, sum.hi), q = mul(m, top, inverse);
  LLVMValueRef rest = residue(m, top, q, sum.hi);
  rest = mad(m, negative(m, q), sum.lo, rest);
  return mad(m, rest, inverse, q);
}

// exp(a) / 4 for a >= 0, where it is twice that which may overflow.
static LLVMValueRef quarter_exp(const cpu_jit_ir *m, LLVMValueRef a)
{
  reduced e = reduce(m, at_most(m, a, either(m, 89.5, 710.6)), false);
  LLVMValueRef p = add(m, add(m, e.r.hi, tail_of(m, e.r)), num(m, 1));
  return mul(m, p, power_of_two(m, minus(m, e.n, whole(m, 2))));
}

// x + x^3 P(x^2) up to 1, (exp(x) - exp(-x)) / 2 beyond.
LLVMValueRef cpu_jit_sinh(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef a = absolute(m, x), square = mul(m, a, a);
  const cpu_jit_series *series =
      m->wide ? &cpu_jit_sinh_f64 : &cpu_jit_sinh_f32;
  LLVMValueRef p = mul(m, polynomial(m, series, square), square);
  LLVMValueRef near = mad(m, p, a, a);
  LLVMValueRef q = quarter_exp(m, a);
  LLVMValueRef far = sub(m, add(m, q, q), quotient(m, num(m, 0.125), q));
  return with_sign(m, choose(m, less(m, num(m, 1), a), far, near), x);
}

// (exp(x) + exp(-x)) / 2
LLVMValueRef cpu_jit_cosh(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef q = quarter_exp(m, absolute(m, x));
  return add(m, add(m, q, q), quotient(m, num(m, 0.125), q));
}

// x + x^3 P(x^2) near 0, 1 - 2 / (1 + 2^n 2^u) elsewhere, where n + u is
// 2 |x| / ln 2: u's and the power's errors count for less than half.
static LLVMValueRef tanh_narrow(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef a = at_most(m, absolute(m, x), num(m, 10));
  LLVMValueRef by = num(m, 2.8853900817779268), one = num(m, 1);
  LLVMValueRef n = mad(m, a, by, rounder(m));
  LLVMValueRef u = mad(m, a, by, sub(m, rounder(m), n));
  LLVMValueRef p = mad(m, polynomial(m, &cpu_jit_exp2_f32, u), u, one);
  LLVMValueRef far = mad(m, p, power_of_two(m, as_bits(m, n)), one);
  far = sub(m, one, quotient(m, num(m, 2), far));
  LLVMValueRef square = mul(m, a, a);
  p = mul(m, polynomial(m, &cpu_jit_tanh_f32, square), square);
  LLVMValueRef near = mad(m, p, a, a);
  LLVMValueRef result = choose(m, less(m, a, num(m, 0.6)), near, far);
  return with_sign(m, result, x);
}

// expm1(2x) / (expm1(2x) + 2), with the errors of both.
static LLVMValueRef tanh_wide(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef a = at_most(m, absolute(m, x), num(m, 20));
  cpu_jit_pair top = expm1_pair(m, add(m, a, a), 0);
  top = quick_sum(m, top.hi, top.lo);
  cpu_jit_pair bottom = sum_of(m, top.hi, num(m, 2));
  bottom.lo = add(m, bottom.lo, top.lo);
  cpu_jit_pair q = ratio_of(m, top, bottom);
  return with_sign(m, add(m, q.hi, q.lo), x);
}

LLVMValueRef cpu_jit_tanh(const cpu_jit_ir *m, LLVMValueRef x)
{
  if (cpu_jit_has_avx512(m))
    return cpu_jit_in_pieces(m, &cpu_jit_tanh_pieces, x);
  return m->wide ? tanh_wide(m, x) : tanh_narrow(m, x);
}

// x + x P(x^2) near 0. Elsewhere 1 - erfc(x): in f32 as exp(-P(x)) (the form
// is N. Juffa's), in f64 as exp(-x^2) P(1/(x+2)).
LLVMValueRef cpu_jit_erf(const cpu_jit_ir *m, LLVMValueRef x)
{
  if (cpu_jit_has_avx512(m))
    return cpu_jit_in_pieces(m, &cpu_jit_erf_pieces, x);
  LLVMValueRef a = at_most(m, absolute(m, x), either(m, 4, 6));
  LLVMValueRef square = mul(m, a, a), rest;
  if (m->wide) {
    LLVMValueRef u = quotient(m, num(m, 1), add(m, a, num(m, 2)));
    rest = mul(m, polynomial(m, &cpu_jit_erfc_f64, u),
               exp_within(m, negative(m, square)));
  } else {
    LLVMValueRef p = polynomial(m, &cpu_jit_erfc_f32, a);
    rest = exp_within(m, negative(m, p));
  }
  LLVMValueRef far = sub(m, num(m, 1), rest);
  LLVMValueRef p =
      polynomial(m, m->wide ? &cpu_jit_erf_f64 : &cpu_jit_erf_f32, square);
  LLVMValueRef near = mad(m, p, a, a);
  LLVMValueRef is_near = less(m, a, either(m, 0.93, 1));
  return with_sign(m, choose(m, is_near, near, far), x);
}
