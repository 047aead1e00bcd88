// jit/math_inverse: asin, acos, atan, and the inverse hyperbolic functions.
//
// The circular ones in f32: W. Cody and W. Waite, Software Manual for the
// Elementary Functions, 1980, chapters 10 and 11: beyond 1/2 asin(x) is
// pi/2 - 2 asin(sqrt((1-x) / 2)), beyond 1 atan(x) is pi/2 - atan(1/x). In f64
// they are atan2 of both legs of the triangle, whose steps do not cancel (W.
// Kahan, "Branch cuts for complex elementary functions", 1987). The hyperbolic
// ones are log1p of what fdlibm's s_asinh.c, e_acosh.c and e_atanh.c take it
// of.
#include "jit/math_parts.h"

// pi/2 and pi less the rounding of their floats and doubles.
#define HALF_PI either(m, 1.57079637050628662, 1.5707963267948966)
#define HALF_PI_REST either(m, -4.37113883e-8, 6.123233995736766e-17)

static LLVMValueRef twice(const cpu_jit_ir *m, LLVMValueRef x)
{
  return add(m, x, x);
}

// ---- circular ----

// sqrt((1-x) (1+x)); NaN beyond 1.
static LLVMValueRef other_leg(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef one = num(m, 1);
  return root(m, mul(m, sub(m, one, x), add(m, one, x)));
}

// Of a = |x|: whether it is beyond 1/2, and asin of a or else of sqrt((1-a) /
// 2), as that number and the rest.
static cpu_jit_pair asin_reduced(const cpu_jit_ir *m, LLVMValueRef a,
                                 LLVMValueRef *out_far)
{
  *out_far = less(m, num(m, 0.5), a);
  LLVMValueRef half = mul(m, sub(m, num(m, 1), a), num(m, 0.5));
  LLVMValueRef square = choose(m, *out_far, half, mul(m, a, a));
  LLVMValueRef s = choose(m, *out_far, root(m, half), a);
  LLVMValueRef p = polynomial(m, &cpu_jit_asin_f32, square);
  return (cpu_jit_pair){ s, mul(m, mul(m, p, square), s) };
}

LLVMValueRef cpu_jit_asin(const cpu_jit_ir *m, LLVMValueRef x)
{
  if (m->wide) return cpu_jit_atan2(m, x, other_leg(m, x));
  LLVMValueRef far, a = absolute(m, x);
  cpu_jit_pair r = asin_reduced(m, a, &far);
  LLVMValueRef near = add(m, r.hi, r.lo);
  LLVMValueRef rest = sub(m, HALF_PI_REST, twice(m, r.lo));
  LLVMValueRef from = add(m, sub(m, HALF_PI, twice(m, r.hi)), rest);
  return with_sign(m, choose(m, far, from, near), x);
}

LLVMValueRef cpu_jit_acos(const cpu_jit_ir *m, LLVMValueRef x)
{
  if (m->wide) return cpu_jit_atan2(m, other_leg(m, x), x);
  LLVMValueRef far;
  cpu_jit_pair r = asin_reduced(m, absolute(m, x), &far);
  LLVMValueRef below = less(m, x, num(m, 0));
  LLVMValueRef from = choose(m, below, twice(m, HALF_PI), num(m, 0));
  LLVMValueRef from_rest = choose(m, below, twice(m, HALF_PI_REST), num(m, 0));
  // pi/2 - asin(x), 2 r or pi - 2 r.
  from = choose(m, far, from, HALF_PI);
  from_rest = choose(m, far, from_rest, HALF_PI_REST);
  LLVMValueRef by = choose(m, far, choose(m, below, num(m, -2), num(m, 2)),
                           choose(m, below, num(m, 1), num(m, -1)));
  LLVMValueRef hi = mad(m, by, r.hi, from);
  return add(m, hi, mad(m, by, r.lo, from_rest));
}

LLVMValueRef cpu_jit_atan(const cpu_jit_ir *m, LLVMValueRef x)
{
  if (m->wide) return cpu_jit_atan2(m, x, num(m, 1));
  LLVMValueRef a = absolute(m, x);
  LLVMValueRef far = less(m, num(m, 1), a);
  LLVMValueRef q = choose(m, far, quotient(m, num(m, 1), a), a);
  LLVMValueRef z = mul(m, q, q);
  LLVMValueRef p = mul(m, polynomial(m, &cpu_jit_atan_f32, z), z);
  LLVMValueRef near = mad(m, p, q, q);
  LLVMValueRef from = add(m, sub(m, HALF_PI, near), HALF_PI_REST);
  return with_sign(m, choose(m, far, from, near), x);
}

// ---- hyperbolic ----

// log1p(t), and log(2x) where x is so large that t, made of squares, is not a
// number.
static LLVMValueRef log1p_or_large(const cpu_jit_ir *m, LLVMValueRef t,
                                   LLVMValueRef x)
{
  LLVMValueRef large = less(m, either(m, 1e18, 1e150), x);
  LLVMValueRef log = cpu_jit_log1p(m, choose(m, large, x, t));
  LLVMValueRef more = num(m, 0.693147180559945309417);
  return choose(m, large, add(m, log, more), log);
}

// log1p(a + a^2 / (1 + sqrt(1 + a^2)))
LLVMValueRef cpu_jit_asinh(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef a = absolute(m, x), one = num(m, 1);
  LLVMValueRef below = add(m, root(m, mad(m, a, a, one)), one);
  LLVMValueRef t = mad(m, a, quotient(m, a, below), a);
  return with_sign(m, log1p_or_large(m, t, a), x);
}

// log1p(t + sqrt(2t + t^2)), t = x - 1
LLVMValueRef cpu_jit_acosh(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef t = sub(m, x, num(m, 1));
  LLVMValueRef sum = add(m, t, root(m, mad(m, t, t, twice(m, t))));
  LLVMValueRef result = log1p_or_large(m, sum, x);
  return choose(m, less(m, x, num(m, 1)), not_a_number(m), result);
}

// log1p(2a + 2a a / (1 - a)) / 2
LLVMValueRef cpu_jit_atanh(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef a = absolute(m, x), one = num(m, 1), two = twice(m, a);
  LLVMValueRef t = mad(m, two, quotient(m, a, sub(m, one, a)), two);
  LLVMValueRef result = mul(m, cpu_jit_log1p(m, t), num(m, 0.5));
  result = choose(m, less(m, one, a), not_a_number(m), result);
  return with_sign(m, result, x);
}
