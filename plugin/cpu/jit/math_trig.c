// jit/math_trig: sin, cos, tan and atan2.
//
// Within pi/4 of 0, sin(r) = r + r^3 P(r^2) and cos(r) = 1 - r^2/2 + r^4
// P(r^2). f32 takes its argument to there in f64, which is cheaper than f32 in
// parts.
#include "jit/math_parts.h"

// sin(r.hi + r.lo) as two numbers; the order is that of fdlibm's k_sin.c.
static cpu_jit_pair sin_near(const cpu_jit_ir *m, cpu_jit_pair r)
{
  const cpu_jit_series *series = m->wide ? &cpu_jit_sin_f64 : &cpu_jit_sin_f32;
  LLVMValueRef z = mul(m, r.hi, r.hi), v = mul(m, z, r.hi);
  LLVMValueRef p = polynomial_from(m, series, 1, z);
  LLVMValueRef half = mul(m, r.lo, num(m, 0.5));
  LLVMValueRef rest = mul(m, z, sub(m, mul(m, v, p), half));
  rest = mad(m, v, num(m, series->terms[0]), add(m, r.lo, rest));
  return quick_sum(m, r.hi, rest);
}

// cos(r.hi + r.lo) likewise.
static cpu_jit_pair cos_near(const cpu_jit_ir *m, cpu_jit_pair r)
{
  const cpu_jit_series *series = m->wide ? &cpu_jit_cos_f64 : &cpu_jit_cos_f32;
  LLVMValueRef z = mul(m, r.hi, r.hi);
  LLVMValueRef p = mul(m, mul(m, z, z), polynomial(m, series, z));
  p = sub(m, p, mul(m, r.hi, r.lo));
  cpu_jit_pair w = quick_sum(m, num(m, 1), mul(m, z, num(m, -0.5)));
  return quick_sum(m, w.hi, add(m, w.lo, p));
}

// The sign of `x` turned where bit 1 of n is set.
static LLVMValueRef turned(const cpu_jit_ir *m, LLVMValueRef x, LLVMValueRef n)
{
  LLVMValueRef sign = left(m, mask(m, n, 2), m->wide ? 62 : 30);
  return as_real(m, LLVMBuildXor(m->b, as_bits(m, x), sign, ""));
}

static LLVMValueRef is_odd(const cpu_jit_ir *m, LLVMValueRef n)
{
  return compare_bits(m, LLVMIntNE, mask(m, n, 1), 0);
}

static LLVMValueRef choose_tan(const cpu_jit_ir *m, cpu_jit_pair sine,
                               cpu_jit_pair cosine, LLVMValueRef n)
{
  LLVMValueRef odd = is_odd(m, n);
  cpu_jit_pair top = { choose(m, odd, cosine.hi, sine.hi),
                       choose(m, odd, cosine.lo, sine.lo) };
  cpu_jit_pair bottom = { choose(m, odd, negative(m, sine.hi), cosine.hi),
                          choose(m, odd, negative(m, sine.lo), cosine.lo) };
  cpu_jit_pair q = ratio_of(m, top, bottom);
  return add(m, q.hi, q.lo);
}

static cpu_jit_pair as_floats(const cpu_jit_ir *m, const cpu_jit_ir *wide,
                              LLVMValueRef x)
{
  LLVMValueRef hi = narrowed(m, x);
  LLVMValueRef rest = sub(wide, x, widened(m, wide, hi));
  return (cpu_jit_pair){ hi, narrowed(m, rest) };
}

LLVMValueRef cpu_jit_trigonometric(const cpu_jit_ir *m, cpu_jit_function fn,
                                   LLVMValueRef x)
{
  cpu_jit_ir wide = maths_of(&m->env, true, m->lanes);
  LLVMValueRef doubles = widened(m, &wide, x);
  LLVMValueRef n, result;
  cpu_jit_pair r = cpu_jit_reduce(&wide, doubles, !m->wide, &n);
  if (fn == CPU_JIT_TAN) {
    result = choose_tan(&wide, sin_near(&wide, r), cos_near(&wide, r), n);
    result = narrowed(m, result);
  } else {
    if (!m->wide) {
      r = as_floats(m, &wide, r.hi);
      n = LLVMBuildTrunc(m->b, n, m->whole, "");
    }
    if (fn == CPU_JIT_COS) n = plus(m, n, whole(m, 1));
    result = choose(m, is_odd(m, n), cos_near(m, r).hi, sin_near(m, r).hi);
    result = turned(m, result, n);
  }
  if (fn == CPU_JIT_COS) return result;
  LLVMValueRef tiny = less(m, absolute(m, x), either(m, 0x1p-13, 0x1p-27));
  return choose(m, tiny, x, result);
}

// The quotient of the smaller by the larger, in [0, 1], as a pair, and the
// angle it is counted from: f32 takes all of it, f64 turns what is beyond
// tan(pi/8) back by pi/4: atan(a/b) = pi/4 + atan((a-b) / (a+b)).
static cpu_jit_pair slope_of(const cpu_jit_ir *m, LLVMValueRef small,
                             LLVMValueRef large, LLVMValueRef *out_turn)
{
  if (!m->wide) {
    *out_turn = NULL;
    return (cpu_jit_pair){ quotient(m, small, large), NULL };
  }
  // The quotient's error comes from products of halves, which must neither
  // overflow nor, where the quotient is a normal number, underflow.
  LLVMValueRef scale =
      choose(m, less(m, num(m, 0x1p900), large), num(m, 0x1p-120), num(m, 1));
  scale = choose(m, less(m, large, num(m, 1)), num(m, 0x1p300), scale);
  small = mul(m, small, scale);
  large = mul(m, large, scale);
  LLVMValueRef far = less(m, mul(m, large, num(m, 0.41421356237309503)), small);
  cpu_jit_pair difference = sum_of(m, small, negative(m, large));
  cpu_jit_pair sum = sum_of(m, small, large);
  LLVMValueRef zero = num(m, 0);
  cpu_jit_pair top = { choose(m, far, difference.hi, small),
                       choose(m, far, difference.lo, zero) };
  cpu_jit_pair bottom = { choose(m, far, sum.hi, large),
                          choose(m, far, sum.lo, zero) };
  *out_turn = far;
  LLVMValueRef q = quotient(m, top.hi, bottom.hi);
  LLVMValueRef rest = residue(m, top.hi, q, bottom.hi);
  rest = add(m, rest, sub(m, top.lo, mul(m, q, bottom.lo)));
  rest = choose(m, less(m, small, num(m, 0x1p-900)), zero, rest);
  return (cpu_jit_pair){ q, quotient(m, rest, bottom.hi) };
}

LLVMValueRef cpu_jit_atan2(const cpu_jit_ir *m, LLVMValueRef y, LLVMValueRef x)
{
  LLVMValueRef zero = num(m, 0), one = num(m, 1);
  LLVMValueRef a = absolute(m, y), b = absolute(m, x);
  LLVMValueRef steep = less(m, b, a);
  LLVMValueRef large = choose(m, steep, a, b), small = choose(m, steep, b, a);
  // Infinities are as 1 against 0, or 1 against 1; zeros as 0 against 1.
  LLVMValueRef endless = same(m, large, infinity(m));
  LLVMValueRef other = choose(m, same(m, small, infinity(m)), one, zero);
  small = choose(m, endless, other, small);
  LLVMValueRef nothing = same(m, large, zero);
  large = choose(m, any_of(m, endless, nothing), one, large);

  LLVMValueRef far, base = zero, base_lo = zero;
  cpu_jit_pair q = slope_of(m, small, large, &far);
  LLVMValueRef z = mul(m, q.hi, q.hi);
  LLVMValueRef p =
      polynomial(m, m->wide ? &cpu_jit_atan_f64 : &cpu_jit_atan_f32, z);
  LLVMValueRef rest = mul(m, mul(m, p, z), q.hi);
  cpu_jit_pair angle = { q.hi, q.lo ? add(m, rest, q.lo) : rest };
  if (far) {
    base = choose(m, far, num(m, 0.78539816339744828), zero);
    base_lo = choose(m, far, num(m, 3.061616997868383e-17), zero);
    cpu_jit_pair sum = quick_sum(m, base, angle.hi);
    angle = (cpu_jit_pair){ sum.hi, add(m, add(m, sum.lo, base_lo), angle.lo) };
  }

  // The angle is from 0, pi/2 or pi, there or back.
  LLVMValueRef back = compare_bits(m, LLVMIntSLT, as_bits(m, x), 0);
  LLVMValueRef half = either(m, 1.57079637050628662, 1.5707963267948966);
  LLVMValueRef half_lo = either(m, -4.37113883e-8, 6.123233995736766e-17);
  base = choose(m, steep, half, choose(m, back, add(m, half, half), zero));
  base_lo = choose(m, steep, half_lo,
                   choose(m, back, add(m, half_lo, half_lo), zero));
  LLVMValueRef minus_it = LLVMBuildXor(m->b, steep, back, "");
  LLVMValueRef hi = choose(m, minus_it, negative(m, angle.hi), angle.hi);
  LLVMValueRef lo = choose(m, minus_it, negative(m, angle.lo), angle.lo);
  cpu_jit_pair sum = sum_of(m, base, hi);
  LLVMValueRef result = add(m, sum.hi, add(m, sum.lo, add(m, lo, base_lo)));
  result = with_sign(m, result, y);
  return choose(m, unordered(m, x, y), add(m, x, y), result);
}
