// jit/math_log: log and log1p.
//
// x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and
// log(x) = k ln 2 + log(1 + f). f32 takes a polynomial in f (as Cephes does),
// f64 one in s = f / (2 + f) with the sums ordered as in fdlibm's e_log.c.
#include "jit/math_parts.h"

// The bits of 1.0 less those of sqrt(1/2): what carries the exponent of a
// number over at sqrt(2) and not at 2.
static uint64_t offset(const cpu_jit_ir *m)
{
  return m->wide ? 0x3ff0000000000000u - 0x3fe6a09e667f3bcdu
                 : 0x3f800000u - 0x3f3504f3u;
}

LLVMValueRef cpu_jit_split(const cpu_jit_ir *m, LLVMValueRef x,
                           LLVMValueRef *out_k)
{
  unsigned bits = fraction(m);
  LLVMValueRef denormal = less(m, x, smallest(m));
  LLVMValueRef normal =
      choose(m, denormal, mul(m, x, either(m, 0x1p25, 0x1p54)), x);
  LLVMValueRef i = plus(m, as_bits(m, normal), whole(m, offset(m)));
  // The exponent as the low bits of a number whose unit is in its last place.
  LLVMValueRef exponent =
      with_bits(m, right(m, i, bits), (uint64_t)(bias(m) + bits) << bits);
  double unit = m->wide ? 0x1p52 : 0x1p23;
  LLVMValueRef normal_bias = num(m, unit + bias(m));
  LLVMValueRef more_bias = num(m, unit + bias(m) + (m->wide ? 54 : 25));
  *out_k =
      sub(m, as_real(m, exponent), choose(m, denormal, more_bias, normal_bias));
  i = mask(m, i, ((uint64_t)1 << bits) - 1);
  return as_real(m, plus(m, i, whole(m, one_bits(m) - offset(m))));
}

// k ln 2 + log(1 + f + error)
static LLVMValueRef log_of(const cpu_jit_ir *m, LLVMValueRef k, LLVMValueRef f,
                           LLVMValueRef error)
{
  LLVMValueRef hi = either(m, 0.693359375, 0.69314718036912382);
  LLVMValueRef lo = either(m, -0.00021219444005469057, 1.9082149292705877e-10);
  LLVMValueRef square = mul(m, f, f);
  if (!m->wide) {
    LLVMValueRef p =
        mul(m, mul(m, polynomial(m, &cpu_jit_log_f32, f), f), square);
    if (error) p = add(m, p, error);
    p = mad(m, k, lo, p);
    p = mad(m, square, num(m, -0.5), p);
    return mad(m, k, hi, add(m, f, p));
  }
  LLVMValueRef s = quotient(m, f, add(m, f, num(m, 2)));
  LLVMValueRef z = mul(m, s, s), half = mul(m, square, num(m, 0.5));
  LLVMValueRef p = mul(m, polynomial(m, &cpu_jit_log_f64, z), z);
  LLVMValueRef rest = error ? mad(m, k, lo, error) : mul(m, k, lo);
  rest = mad(m, s, add(m, half, p), rest);
  return mad(m, k, hi, sub(m, f, sub(m, half, rest)));
}

// The results at and beyond the pole, and for infinity and NaN.
static LLVMValueRef with_ends(const cpu_jit_ir *m, LLVMValueRef x, double pole,
                              LLVMValueRef result)
{
  result = choose(m, less(m, x, infinity(m)), result, x);
  result = choose(m, less(m, x, num(m, pole)), not_a_number(m), result);
  LLVMValueRef at_pole = same(m, x, num(m, pole));
  return choose(m, at_pole, negative(m, infinity(m)), result);
}

LLVMValueRef cpu_jit_log(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef k;
  LLVMValueRef f = sub(m, cpu_jit_split(m, x, &k), num(m, 1));
  return with_ends(m, x, 0, log_of(m, k, f, NULL));
}

// f = (1+x) 2^-k - 1 = x 2^-k + (2^-k - 1), where k is the exponent of 1+x and
// only the sum rounds (N. Juffa's form). x 2^-k is a subtraction from x's
// exponent, which is exact: where x is 0 or denormal, k is 0.
LLVMValueRef cpu_jit_log1p(const cpu_jit_ir *m, LLVMValueRef x)
{
  unsigned bits = fraction(m);
  LLVMValueRef i =
      plus(m, as_bits(m, add(m, x, num(m, 1))), whole(m, offset(m)));
  LLVMValueRef exponent = right(m, i, bits);
  LLVMValueRef k_bits = minus(m, exponent, whole(m, bias(m)));
  LLVMValueRef shift = left(m, k_bits, bits);
  LLVMValueRef part = as_real(m, minus(m, as_bits(m, x), shift));
  // 4 * 2^-k: 2^-k itself may be less than the smallest normal number.
  LLVMValueRef four = whole(m, (uint64_t)(bias(m) + 2) << bits);
  LLVMValueRef s = as_real(m, minus(m, four, shift));
  LLVMValueRef less_one = mad(m, s, num(m, 0.25), num(m, -1));
  LLVMValueRef f = add(m, part, less_one);
  LLVMValueRef error = sub(m, part, sub(m, f, less_one));
  LLVMValueRef k = plus(m, k_bits, as_bits(m, rounder(m)));
  k = sub(m, as_real(m, k), rounder(m));
  LLVMValueRef result = with_sign(m, log_of(m, k, f, error), x);
  return with_ends(m, x, -1, result);
}
