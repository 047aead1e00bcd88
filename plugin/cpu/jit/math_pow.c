// jit/math_pow: powers and cube roots.
//
// x^y = exp(y log|x|), where the logarithm must be right to eleven bits more
// than the result: f32 takes it in f64, f64 as a pair. IEEE 754's cases come
// out of infinite logarithms where they can and of a few choices at the end.
#include "jit/math_parts.h"

// Of s = (x-1)/(x+1): log(x) = 2s + s^3 (...), for float results
static LLVMValueRef log_short(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef k, part = cpu_jit_split(m, x, &k), one = num(m, 1);
  LLVMValueRef s = quotient(m, sub(m, part, one), add(m, part, one));
  LLVMValueRef z = mul(m, s, s);
  LLVMValueRef p = mul(m, mul(m, polynomial(m, &cpu_jit_log_short, z), z), s);
  p = add(m, p, add(m, s, s));
  return mad(m, k, num(m, 0.69314718055994529), p);
}

// exp(x) for float results; x is clamped to their range, or NaN
static LLVMValueRef exp_short(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef n = mad(m, x, num(m, 1.4426950408889634), rounder(m));
  LLVMValueRef multiple = sub(m, n, rounder(m));
  LLVMValueRef r = mad(m, multiple, num(m, -0.69314718055994529), x);
  LLVMValueRef p = polynomial(m, &cpu_jit_exp_short, r);
  p = add(m, mad(m, p, mul(m, r, r), r), num(m, 1));
  return mul(m, p, power_of_two(m, as_bits(m, n)));
}

static cpu_jit_pair pair_product(const cpu_jit_ir *m, cpu_jit_pair a,
                                 cpu_jit_pair b)
{
  cpu_jit_pair p = product_of(m, a.hi, b.hi);
  p.lo = add(m, p.lo, add(m, mul(m, a.hi, b.lo), mul(m, a.lo, b.hi)));
  return p;
}

// a + b for |a| >= |b|
static cpu_jit_pair pair_sum(const cpu_jit_ir *m, cpu_jit_pair a,
                             cpu_jit_pair b)
{
  cpu_jit_pair s = quick_sum(m, a.hi, b.hi);
  return quick_sum(m, s.hi, add(m, s.lo, add(m, a.lo, b.lo)));
}

// log(x) to about 2^-65: 2s + s^3 (2/3 + z (2/5 + z P(z))), z = s^2
static cpu_jit_pair log_long(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef k, part = cpu_jit_split(m, x, &k), zero = num(m, 0);
  cpu_jit_pair top = { sub(m, part, num(m, 1)), zero };
  cpu_jit_pair s = ratio_of(m, top, sum_of(m, part, num(m, 1)));
  s = quick_sum(m, s.hi, s.lo);
  cpu_jit_pair z = pair_product(m, s, s);
  LLVMValueRef p = mul(m, polynomial(m, &cpu_jit_log_long, z.hi), z.hi);
  cpu_jit_pair a = pair_sum(
      m, (cpu_jit_pair){ num(m, 0.4), num(m, -2.2204460492503132e-17) },
      (cpu_jit_pair){ p, zero });
  cpu_jit_pair third = { num(m, 0.66666666666666663),
                         num(m, 3.700743415417188e-17) };
  cpu_jit_pair b = pair_sum(m, third, pair_product(m, z, a));
  cpu_jit_pair c = pair_product(m, s, pair_product(m, z, b));
  cpu_jit_pair twice = { add(m, s.hi, s.hi), add(m, s.lo, s.lo) };
  cpu_jit_pair log_part = pair_sum(m, twice, c);

  // The first part of ln 2 has 33 bits, so its product is exact.
  cpu_jit_pair log_two = product_of(m, k, num(m, 1.9082149292705877e-10));
  LLVMValueRef exact = mul(m, k, num(m, 0.69314718036912382));
  cpu_jit_pair sum = sum_of(m, exact, log_part.hi);
  cpu_jit_pair rest = sum_of(m, log_two.hi, log_part.lo);
  rest.lo = add(m, rest.lo, log_two.lo);
  return pair_sum(m, sum, rest);
}

static LLVMValueRef is_whole(const cpu_jit_ir *m, LLVMValueRef size)
{
  LLVMValueRef unit = either(m, 0x1p23, 0x1p52);
  LLVMValueRef rounded = sub(m, add(m, size, unit), unit);
  return any_of(m, same(m, rounded, size), not_of(m, less(m, size, unit)));
}

// |x|^y from a finite or infinite logarithm `l` of |x|; y * 0 is 0 even where
// y is infinite, as 1^y is 1
static LLVMValueRef power_narrow(const cpu_jit_ir *m, LLVMValueRef size,
                                 LLVMValueRef y)
{
  cpu_jit_ir wide = maths_of(&m->env, true, m->lanes), *w = &wide;
  LLVMValueRef x = widened(m, w, size);
  LLVMValueRef l = log_short(w, x);
  l = choose(w, less(w, x, infinity(w)), l, infinity(w));
  l = choose(w, same(w, x, num(w, 0)), negative(w, infinity(w)), l);
  LLVMValueRef product = mul(w, l, widened(m, w, y));
  product = choose(w, same(w, l, num(w, 0)), num(w, 0), product);
  product = at_least(w, at_most(w, product, num(w, 95)), num(w, -110));
  return narrowed(m, exp_short(w, product));
}

static LLVMValueRef power_wide(const cpu_jit_ir *m, LLVMValueRef size,
                               LLVMValueRef y)
{
  LLVMValueRef zero = num(m, 0), endless = infinity(m);
  cpu_jit_pair l = log_long(m, size);
  cpu_jit_pair p = product_of(m, l.hi, y);
  p.lo = add(m, p.lo, mul(m, l.lo, y));
  LLVMValueRef hi = choose(m, less(m, size, endless), l.hi, endless);
  hi = choose(m, same(m, size, zero), negative(m, endless), hi);
  LLVMValueRef product = choose(m, same(m, hi, zero), zero, mul(m, hi, y));
  // Beyond the range of results the second part may be anything.
  LLVMValueRef within = less(m, absolute(m, product), num(m, 800));
  within = both(m, within, less(m, zero, absolute(m, product)));
  p = (cpu_jit_pair){ product, choose(m, within, p.lo, zero) };
  return cpu_jit_exp_pair(m, p);
}

LLVMValueRef cpu_jit_pow(const cpu_jit_ir *m, LLVMValueRef x, LLVMValueRef y)
{
  LLVMValueRef zero = num(m, 0), one = num(m, 1), endless = infinity(m);
  LLVMValueRef size = absolute(m, x), y_size = absolute(m, y);
  LLVMValueRef result =
      m->wide ? power_wide(m, size, y) : power_narrow(m, size, y);

  LLVMValueRef whole_y = is_whole(m, y_size);
  LLVMValueRef even = is_whole(m, mul(m, y_size, num(m, 0.5)));
  LLVMValueRef odd = both(m, whole_y, not_of(m, even));
  result = choose(m, odd, with_sign(m, result, x), result);
  LLVMValueRef no_root = both(m, less(m, x, zero), not_of(m, whole_y));
  no_root = both(m, no_root, less(m, size, endless));
  result = choose(m, no_root, not_a_number(m), result);
  result = choose(m, unordered(m, x, y), add(m, x, y), result);
  LLVMValueRef trivial = any_of(m, same(m, x, one), same(m, y, zero));
  return choose(m, trivial, one, result);
}

// A first guess by a third of the exponent and fraction as they lie in the high
// half of the bits (W. Kahan's; the constant is FreeBSD's), made exact by steps
// of Halley's, y (y^3 + 2a) / (2 y^3 + a), each of which triples the bits.
LLVMValueRef cpu_jit_cbrt(const cpu_jit_ir *m, LLVMValueRef x)
{
  // Away from the denormals, and from where 3a is infinite.
  LLVMValueRef size = absolute(m, x), small = less(m, size, num(m, 1));
  LLVMValueRef a = mul(
      m, size,
      choose(m, small, either(m, 0x1p24, 0x1p54), either(m, 0x1p-24, 0x1p-54)));
  unsigned low = m->wide ? 32 : 8;
  uint64_t unit_bits = (uint64_t)(bias(m) + fraction(m)) << fraction(m);
  LLVMValueRef unit = either(m, 0x1p23, 0x1p52);
  LLVMValueRef high = with_bits(m, right(m, as_bits(m, a), low), unit_bits);
  high = sub(m, as_real(m, high), unit);
  LLVMValueRef guess =
      mad(m, high, num(m, 1.0 / 3), either(m, 2773273, 715094163));
  LLVMValueRef y = as_real(m, left(m, as_bits(m, add(m, guess, unit)), low));

  for (int i = 0; i < (m->wide ? 3 : 2); i++) {
    bool last = i == (m->wide ? 2 : 1);
    LLVMValueRef square = mul(m, y, y), cube = mul(m, square, y);
    // a - y^3; in the last step its error is what remains in the result
    cpu_jit_pair p =
        last ? product_of(m, y, y) : (cpu_jit_pair){ square, NULL };
    LLVMValueRef rest = last ? residue(m, a, p.hi, y) : sub(m, a, cube);
    if (last) rest = sub(m, rest, mul(m, p.lo, y));
    LLVMValueRef slope = add(m, add(m, cube, cube), a);
    y = mad(m, y, quotient(m, rest, slope), y);
  }
  y = mul(
      m, y,
      choose(m, small, either(m, 0x1p-8, 0x1p-18), either(m, 0x1p8, 0x1p18)));
  y = choose(m, less(m, size, infinity(m)), y, size);
  y = choose(m, same(m, size, num(m, 0)), size, y);
  return with_sign(m, y, x);
}
