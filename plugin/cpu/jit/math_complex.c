// jit/math_complex: functions of complex numbers, out of those of real ones.
//
// Always in f64: complex<f32> then needs no care about overflow between the
// steps and has about half an ulp in each part. What f64 needs for itself is
// here: hypot and division scale by powers of two, exp and its kin take two
// steps where e^x alone would overflow. Formulas: W. Kahan, Branch cuts for
// complex elementary functions, 1987; ISO C, Annex G.
#include <stdio.h>

#include "jit/math_parts.h"

// A complex number.
typedef struct point {
  LLVMValueRef re, im;
} point;

static LLVMValueRef call(const cpu_jit_ir *m, cpu_jit_function fn,
                         LLVMValueRef x)
{
  return cpu_jit_math(&m->env, fn, x, NULL);
}

static LLVMValueRef angle_of(const cpu_jit_ir *m, point z)
{
  return cpu_jit_math(&m->env, CPU_JIT_ATAN2, z.im, z.re);
}

static LLVMValueRef is_infinite(const cpu_jit_ir *m, LLVMValueRef x)
{
  return same(m, absolute(m, x), infinity(m));
}

static LLVMValueRef largest_of(const cpu_jit_ir *m, point z)
{
  LLVMValueRef a = absolute(m, z.re), b = absolute(m, z.im);
  return choose(m, less(m, a, b), b, a);
}

static point choose_point(const cpu_jit_ir *m, LLVMValueRef condition,
                          point yes, point no)
{
  return (point){ choose(m, condition, yes.re, no.re),
                  choose(m, condition, yes.im, no.im) };
}

static point times(const cpu_jit_ir *m, point z, LLVMValueRef by)
{
  return (point){ mul(m, z.re, by), mul(m, z.im, by) };
}

// A power of two that brings numbers of this size to where their squares and
// products neither overflow nor underflow, and its inverse.
static LLVMValueRef scale_for(const cpu_jit_ir *m, LLVMValueRef size,
                              LLVMValueRef *out_inverse)
{
  LLVMValueRef big = less(m, num(m, 0x1p500), size);
  LLVMValueRef small = less(m, size, num(m, 0x1p-500));
  LLVMValueRef down = num(m, 0x1p-600), up = num(m, 0x1p600), one = num(m, 1);
  *out_inverse = choose(m, big, up, choose(m, small, down, one));
  return choose(m, big, down, choose(m, small, up, one));
}

static LLVMValueRef hypot_of(const cpu_jit_ir *m, point z)
{
  LLVMValueRef inverse, scale = scale_for(m, largest_of(m, z), &inverse);
  point s = times(m, z, scale);
  LLVMValueRef sum = mad(m, s.re, s.re, mul(m, s.im, s.im));
  LLVMValueRef size = mul(m, root(m, sum), inverse);
  LLVMValueRef endless = any_of(m, is_infinite(m, z.re), is_infinite(m, z.im));
  return choose(m, endless, infinity(m), size);
}

// The top of a quotient: a times the conjugate of b.
static point top_of(const cpu_jit_ir *m, point a, point b)
{
  return (point){ mad(m, a.re, b.re, mul(m, a.im, b.im)),
                  mad(m, a.im, b.re, negative(m, mul(m, a.re, b.im))) };
}

// Infinite parts as 1, others as 0, with their signs.
static point boxed(const cpu_jit_ir *m, point z)
{
  LLVMValueRef one = num(m, 1), zero = num(m, 0);
  LLVMValueRef re = choose(m, is_infinite(m, z.re), one, zero);
  LLVMValueRef im = choose(m, is_infinite(m, z.im), one, zero);
  return (point){ with_sign(m, re, z.re), with_sign(m, im, z.im) };
}

// Annex G.5.1's results where both parts of a / b came out as NaN: something by
// zero, infinite by finite, finite by infinite.
static point repaired(const cpu_jit_ir *m, point a, point b, point result)
{
  LLVMValueRef endless = infinity(m), zero = num(m, 0);
  LLVMValueRef lost = both(m, unordered(m, result.re, result.re),
                           unordered(m, result.im, result.im));
  LLVMValueRef b_size = largest_of(m, b);
  LLVMValueRef a_finite = both(m, less(m, absolute(m, a.re), endless),
                               less(m, absolute(m, a.im), endless));
  LLVMValueRef b_finite = both(m, less(m, absolute(m, b.re), endless),
                               less(m, absolute(m, b.im), endless));
  LLVMValueRef by_zero = both(m, lost, same(m, b_size, zero));
  LLVMValueRef a_endless =
      any_of(m, is_infinite(m, a.re), is_infinite(m, a.im));
  LLVMValueRef b_endless =
      any_of(m, is_infinite(m, b.re), is_infinite(m, b.im));
  LLVMValueRef up = both(m, lost, both(m, a_endless, b_finite));
  LLVMValueRef down = both(m, lost, both(m, b_endless, a_finite));
  result =
      choose_point(m, up, times(m, top_of(m, boxed(m, a), b), endless), result);
  result =
      choose_point(m, down, times(m, top_of(m, a, boxed(m, b)), zero), result);
  return choose_point(m, by_zero, times(m, a, with_sign(m, endless, b.re)),
                      result);
}

static point divide(const cpu_jit_ir *m, point a, point b)
{
  LLVMValueRef a_inverse, b_inverse;
  LLVMValueRef a_scale = scale_for(m, largest_of(m, a), &a_inverse);
  LLVMValueRef b_scale = scale_for(m, largest_of(m, b), &b_inverse);
  point s = times(m, a, a_scale), t = times(m, b, b_scale);
  LLVMValueRef bottom = mad(m, t.re, t.re, mul(m, t.im, t.im));
  point top = top_of(m, s, t);
  point q = { quotient(m, top.re, bottom), quotient(m, top.im, bottom) };
  // Opposite scales are undone as one, so that no step overflows alone.
  LLVMValueRef opposite = same(m, mul(m, b_scale, a_inverse), num(m, 1));
  point unscaled = times(m, times(m, q, b_scale), a_inverse);
  q = choose_point(m, opposite, q, unscaled);
  return repaired(m, a, b, q);
}

// e^x (re + i im), where e^x alone may overflow. 0 times anything is 0 for
// x = -inf, and an imaginary part that is exactly 0 stays.
static point grown(const cpu_jit_ir *m, LLVMValueRef x, point z)
{
  LLVMValueRef big = less(m, num(m, 700), x);
  LLVMValueRef e =
      call(m, CPU_JIT_EXP, choose(m, big, mul(m, x, num(m, 0.5)), x));
  point once = times(m, z, e);
  point out = choose_point(m, big, times(m, once, e), once);
  LLVMValueRef zero = num(m, 0), nothing = same(m, e, zero);
  out = choose_point(m, nothing, (point){ zero, zero }, out);
  out.im = choose(m, same(m, z.im, zero), z.im, out.im);
  return out;
}

static point exp_of(const cpu_jit_ir *m, point z)
{
  return grown(
      m, z.re,
      (point){ call(m, CPU_JIT_COS, z.im), call(m, CPU_JIT_SIN, z.im) });
}

// re: e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y/2), the latter where e^x is
// not small
static point expm1_of(const cpu_jit_ir *m, point z)
{
  LLVMValueRef half = call(m, CPU_JIT_SIN, mul(m, z.im, num(m, 0.5)));
  LLVMValueRef cosine = call(m, CPU_JIT_COS, z.im);
  LLVMValueRef grow = call(m, CPU_JIT_EXPM1, z.re);
  LLVMValueRef near = mul(m, mul(m, half, half), num(m, -2));
  near = mad(m, grow, cosine, near);
  point e = exp_of(m, z);
  LLVMValueRef is_small = less(m, z.re, num(m, -1));
  LLVMValueRef re = choose(m, is_small, sub(m, e.re, num(m, 1)), near);
  return (point){ choose(m, same(m, z.im, num(m, 0)), grow, re), e.im };
}

// log|1 + x + iy|: half of log1p of |1+x+iy|^2 - 1 = x^2 + 2x + y^2, which is
// summed in pairs as it may cancel.
static LLVMValueRef half_log1p(const cpu_jit_ir *m, LLVMValueRef x,
                               LLVMValueRef y)
{
  cpu_jit_pair p = product_of(m, x, x), q = product_of(m, y, y);
  cpu_jit_pair sum = sum_of(m, add(m, x, x), p.hi);
  cpu_jit_pair more = sum_of(m, sum.hi, q.hi);
  LLVMValueRef lo = add(m, add(m, sum.lo, more.lo), add(m, p.lo, q.lo));
  LLVMValueRef u = at_least(m, add(m, more.hi, lo), num(m, -1));
  return mul(m, call(m, CPU_JIT_LOG1P, u), num(m, 0.5));
}

static LLVMValueRef is_middling(const cpu_jit_ir *m, LLVMValueRef size)
{
  return both(m, less(m, size, num(m, 2)), less(m, num(m, 0.5), size));
}

static point log_of(const cpu_jit_ir *m, point z)
{
  LLVMValueRef a = absolute(m, z.re), b = absolute(m, z.im);
  LLVMValueRef turn = less(m, a, b), large = choose(m, turn, b, a);
  LLVMValueRef near =
      half_log1p(m, sub(m, large, num(m, 1)), choose(m, turn, a, b));
  LLVMValueRef far = call(m, CPU_JIT_LOG, hypot_of(m, z));
  LLVMValueRef re = choose(m, is_middling(m, large), near, far);
  return (point){ re, angle_of(m, z) };
}

static point log1p_of(const cpu_jit_ir *m, point z)
{
  point shifted = { add(m, z.re, num(m, 1)), z.im };
  LLVMValueRef near = half_log1p(m, z.re, z.im);
  LLVMValueRef far = call(m, CPU_JIT_LOG, hypot_of(m, shifted));
  LLVMValueRef is_near = less(m, largest_of(m, z), num(m, 0x1p20));
  return (point){ choose(m, is_near, near, far), angle_of(m, shifted) };
}

static point sqrt_of(const cpu_jit_ir *m, point z)
{
  LLVMValueRef size = largest_of(m, z), one = num(m, 1), zero = num(m, 0);
  LLVMValueRef big = less(m, num(m, 0x1p1000), size);
  LLVMValueRef small = less(m, size, num(m, 0x1p-900));
  LLVMValueRef scale =
      choose(m, big, num(m, 0x1p-120), choose(m, small, num(m, 0x1p120), one));
  LLVMValueRef undo =
      choose(m, big, num(m, 0x1p60), choose(m, small, num(m, 0x1p-60), one));
  point s = times(m, z, scale);
  LLVMValueRef half =
      mul(m, add(m, absolute(m, s.re), hypot_of(m, s)), num(m, 0.5));
  LLVMValueRef t = root(m, half);
  LLVMValueRef other = quotient(m, absolute(m, s.im), add(m, t, t));
  LLVMValueRef right_half = less(m, num(m, -1), with_sign(m, one, z.re));
  LLVMValueRef re = mul(m, choose(m, right_half, t, other), undo);
  LLVMValueRef im = mul(m, choose(m, right_half, other, t), undo);
  LLVMValueRef nothing = same(m, size, zero), tall = is_infinite(m, z.im);
  re = choose(m, nothing, zero, choose(m, tall, infinity(m), re));
  im = choose(m, nothing, zero, choose(m, tall, infinity(m), im));
  return (point){ re, with_sign(m, im, z.im) };
}

// The conjugate of the root by |z|; 1 / 0 is infinite.
static point rsqrt_of(const cpu_jit_ir *m, point z)
{
  point r = sqrt_of(m, z);
  LLVMValueRef size = hypot_of(m, r), zero = num(m, 0);
  point out = { quotient(m, quotient(m, r.re, size), size),
                negative(m, quotient(m, quotient(m, r.im, size), size)) };
  LLVMValueRef nothing = same(m, size, zero), endless = is_infinite(m, size);
  LLVMValueRef re = choose(m, nothing, infinity(m), zero);
  LLVMValueRef im = negative(m, with_sign(m, zero, z.im));
  return choose_point(m, any_of(m, nothing, endless), (point){ re, im }, out);
}

static point cbrt_of(const cpu_jit_ir *m, point z)
{
  LLVMValueRef third = quotient(m, angle_of(m, z), num(m, 3));
  point unit = { call(m, CPU_JIT_COS, third), call(m, CPU_JIT_SIN, third) };
  return times(m, unit, call(m, CPU_JIT_CBRT, hypot_of(m, z)));
}

// (a cosh y, b sinh y), in two steps where those overflow.
static point by_hyperbolic(const cpu_jit_ir *m, LLVMValueRef y, point z)
{
  LLVMValueRef size = absolute(m, y), one = num(m, 1), half = num(m, 0.5);
  LLVMValueRef grow = call(m, CPU_JIT_EXPM1, size);
  LLVMValueRef part = quotient(m, grow, add(m, grow, one));
  LLVMValueRef sinh = mul(m, add(m, grow, part), half);
  LLVMValueRef cosh = mad(m, mul(m, grow, part), half, one);
  point near = { mul(m, z.re, cosh), mul(m, z.im, with_sign(m, sinh, y)) };
  point sides = { mul(m, z.re, half), mul(m, z.im, with_sign(m, half, y)) };
  LLVMValueRef e = call(m, CPU_JIT_EXP, mul(m, size, half));
  point far = times(m, times(m, sides, e), e);
  point out = choose_point(m, less(m, num(m, 22), size), far, near);
  LLVMValueRef zero = num(m, 0);
  out.re = choose(m, same(m, z.re, zero), z.re, out.re);
  out.im = choose(m, same(m, z.im, zero), with_sign(m, zero, out.im), out.im);
  return out;
}

static point sin_of(const cpu_jit_ir *m, point z)
{
  point parts = { call(m, CPU_JIT_SIN, z.re), call(m, CPU_JIT_COS, z.re) };
  return by_hyperbolic(m, z.im, parts);
}

static point cos_of(const cpu_jit_ir *m, point z)
{
  point parts = { call(m, CPU_JIT_COS, z.re),
                  negative(m, call(m, CPU_JIT_SIN, z.re)) };
  return by_hyperbolic(m, z.im, parts);
}

// Kahan's: with t = tan y, b = 1 + t^2 and s = sinh x,
// (b s sqrt(1 + s^2) + i t) / (1 + b s^2); far out it is 1 in the real part.
static point tanh_of(const cpu_jit_ir *m, point z)
{
  LLVMValueRef one = num(m, 1), zero = num(m, 0), size = absolute(m, z.re);
  LLVMValueRef t = call(m, CPU_JIT_TAN, z.im), b = mad(m, t, t, one);
  LLVMValueRef grow = call(m, CPU_JIT_EXPM1, at_most(m, size, num(m, 30)));
  LLVMValueRef s = add(m, grow, quotient(m, grow, add(m, grow, one)));
  s = with_sign(m, mul(m, s, num(m, 0.5)), z.re);
  LLVMValueRef square = mul(m, s, s), bottom = mad(m, b, square, one);
  LLVMValueRef rho = root(m, add(m, square, one));
  point near = { quotient(m, mul(m, mul(m, b, rho), s), bottom),
                 quotient(m, t, bottom) };
  LLVMValueRef e = call(m, CPU_JIT_EXP, mul(m, size, num(m, -2)));
  LLVMValueRef fall = mul(m, mul(m, quotient(m, t, b), num(m, 4)), e);
  LLVMValueRef endless = same(m, size, infinity(m));
  fall = choose(m, endless, with_sign(m, zero, z.im), fall);
  point far = { with_sign(m, one, z.re), fall };
  return choose_point(m, less(m, num(m, 22), size), far, near);
}

// tan(z) = -i tanh(iz)
static point tan_of(const cpu_jit_ir *m, point z)
{
  point t = tanh_of(m, (point){ negative(m, z.im), z.re });
  return (point){ t.im, negative(m, t.re) };
}

// 1 / (1 + e^-z), whose real part below is expm1(x) cos y + 2 cos^2(y/2): it
// cancels only at the poles.
static point logistic_of(const cpu_jit_ir *m, point z)
{
  point w = { negative(m, z.re), negative(m, z.im) };
  LLVMValueRef half = call(m, CPU_JIT_COS, mul(m, w.im, num(m, 0.5)));
  LLVMValueRef cosine = call(m, CPU_JIT_COS, w.im);
  LLVMValueRef re = mul(m, mul(m, half, half), num(m, 2));
  re = mad(m, call(m, CPU_JIT_EXPM1, w.re), cosine, re);
  return divide(m, (point){ num(m, 1), num(m, 0) },
                (point){ re, exp_of(m, w).im });
}

// exp(y log x); 0 to the power of what has a positive real part is 0.
static point pow_of(const cpu_jit_ir *m, point x, point y)
{
  LLVMValueRef zero = num(m, 0), one = num(m, 1);
  point l = log_of(m, x);
  point p = { sub(m, mul(m, y.re, l.re), mul(m, y.im, l.im)),
              mad(m, y.re, l.im, mul(m, y.im, l.re)) };
  point out = exp_of(m, p), nothing = { zero, zero };
  LLVMValueRef from_zero =
      both(m, same(m, largest_of(m, x), zero), less(m, zero, y.re));
  out = choose_point(m, from_zero, nothing, out);
  LLVMValueRef to_zero = same(m, largest_of(m, y), zero);
  return choose_point(m, to_zero, (point){ one, zero }, out);
}

static point build(const cpu_jit_ir *m, cpu_jit_function fn, point x, point y)
{
  switch (fn) {
#define CPU_JIT_MATH(id, name, is_long, real, complex) \
  case CPU_JIT_##id:                                   \
    return complex;
#include "jit/math.def"
#undef CPU_JIT_MATH
    case CPU_JIT_FUNCTIONS: break;
  }
  return x;
}

static point widened_point(const cpu_jit_ir *m, const cpu_jit_ir *wide,
                           const LLVMValueRef x[2])
{
  return (point){ widened(m, wide, x[0]), widened(m, wide, x[1]) };
}

void cpu_jit_math_complex(const cpu_jit_math_env *env, cpu_jit_function fn,
                          const LLVMValueRef x[2], const LLVMValueRef y[2],
                          LLVMValueRef out[2])
{
  cpu_jit_ir m = maths_for(env, x[0]), wide = maths_of(env, true, m.lanes);
  point a = widened_point(&m, &wide, x), b = a;
  if (fn == CPU_JIT_POW) b = widened_point(&m, &wide, y);
  LLVMTypeRef parts[] = { wide.real, wide.real };
  LLVMTypeRef parameters[] = { wide.real, wide.real, wide.real, wide.real };
  LLVMTypeRef result = LLVMStructTypeInContext(env->context, parts, 2, false);
  LLVMTypeRef type = LLVMFunctionType(result, parameters, 4, false);
  char name[48];
  snprintf(name, sizeof name, "calx.complex%d.%u", (int)fn, m.lanes);
  LLVMValueRef function, arguments[] = { a.re, a.im, b.re, b.im };
  cpu_jit_math_env inner;
  if (cpu_jit_begin(env, name, type, &function, &inner)) {
    cpu_jit_ir within = maths_of(&inner, true, m.lanes);
    point p = { LLVMGetParam(function, 0), LLVMGetParam(function, 1) };
    point q = { LLVMGetParam(function, 2), LLVMGetParam(function, 3) };
    point r = build(&within, fn, p, q);
    LLVMValueRef both_parts = LLVMGetUndef(result);
    both_parts = LLVMBuildInsertValue(inner.builder, both_parts, r.re, 0, "");
    both_parts = LLVMBuildInsertValue(inner.builder, both_parts, r.im, 1, "");
    cpu_jit_end(&inner, both_parts);
  }
  LLVMValueRef r =
      LLVMBuildCall2(env->builder, type, function, arguments, 4, "");
  for (unsigned i = 0; i < 2; i++)
    out[i] = narrowed(&m, LLVMBuildExtractValue(env->builder, r, i, ""));
}

void cpu_jit_complex_multiply(const cpu_jit_math_env *env,
                              const LLVMValueRef x[2], const LLVMValueRef y[2],
                              LLVMValueRef out[2])
{
  cpu_jit_ir m = maths_for(env, x[0]);
  LLVMValueRef re = sub(&m, mul(&m, x[0], y[0]), mul(&m, x[1], y[1]));
  LLVMValueRef im = add(&m, mul(&m, x[0], y[1]), mul(&m, x[1], y[0]));
  out[0] = re;
  out[1] = im;
}

void cpu_jit_complex_divide(const cpu_jit_math_env *env,
                            const LLVMValueRef x[2], const LLVMValueRef y[2],
                            LLVMValueRef out[2])
{
  cpu_jit_ir m = maths_for(env, x[0]), wide = maths_of(env, true, m.lanes);
  point q =
      divide(&wide, widened_point(&m, &wide, x), widened_point(&m, &wide, y));
  out[0] = narrowed(&m, q.re);
  out[1] = narrowed(&m, q.im);
}

LLVMValueRef cpu_jit_complex_abs(const cpu_jit_math_env *env,
                                 const LLVMValueRef x[2])
{
  cpu_jit_ir m = maths_for(env, x[0]), wide = maths_of(env, true, m.lanes);
  return narrowed(&m, hypot_of(&wide, widened_point(&m, &wide, x)));
}
