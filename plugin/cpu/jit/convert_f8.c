// jit/convert_f8: floats of 8 bits. Registers hold their codes.
#include "hlo/format.h"
#include "jit/element.h"

#define INFINITE 0x7F800000U  // the bits of an infinite float

static cpu_jit_ir floats(cpu_jit_env *env, LLVMBuilderRef b, bool wide)
{
  return cpu_jit_ir_of(env, b, false, wide ? (unsigned)env->lanes : 0);
}

// The bits of 2^e as a float.
static uint64_t power_bits(const cpu_jit_ir *m, int e)
{
  return (uint64_t)(e + (int)bias(m)) << fraction(m);
}

LLVMValueRef cpu_jit_from_f8(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x,
                             bool wide, cx_hlo_elem e)
{
  const cx_hlo_format *f = cx_hlo_format_of(e);
  const cpu_jit_ir ir = floats(env, b, wide), *m = &ir;
  LLVMValueRef code = LLVMBuildZExt(b, x, m->whole, "");
  LLVMValueRef sign = mask(m, code, 0x80), size = mask(m, code, 0x7F);
  LLVMValueRef normal =
      plus(m, left(m, size, fraction(m) - (unsigned)f->mantissa),
           whole(m, (uint64_t)((int)bias(m) - f->bias) << fraction(m)));
  // Subnormal numbers count the least one.
  LLVMValueRef least =
      as_real(m, whole(m, power_bits(m, 1 - f->bias - f->mantissa)));
  LLVMValueRef small = mul(m, LLVMBuildUIToFP(b, size, m->real, ""), least);
  LLVMValueRef tiny =
      compare_bits(m, LLVMIntULT, size, UINT64_C(1) << f->mantissa);
  LLVMValueRef out = choose(m, tiny, as_bits(m, small), normal);
  const uint64_t largest = cx_hlo_format_largest(f);
  LLVMValueRef is_nan = compare_bits(m, LLVMIntUGT, size, largest);
  if (f->specials == CX_HLO_FORMAT_IEEE) {
    LLVMValueRef is_inf = compare_bits(m, LLVMIntEQ, size, largest + 1);
    out = choose(m, is_inf, whole(m, INFINITE), out);
    is_nan = compare_bits(m, LLVMIntUGT, size, largest + 1);
  } else if (f->specials == CX_HLO_FORMAT_FNUZ) {
    is_nan = compare_bits(m, LLVMIntEQ, code, 0x80);
  }
  out = any_of(m, out, left(m, sign, 24));
  return choose(m, is_nan, not_a_number(m), as_real(m, out));
}

// The code of a float's magnitude, rounded to nearest even; what is too large
// has a code above the largest number's.
static LLVMValueRef magnitude_code(const cpu_jit_ir *m, const cx_hlo_format *f,
                                   LLVMValueRef size)
{
  const unsigned cut = fraction(m) - (unsigned)f->mantissa;
  const uint64_t less = (uint64_t)((int)bias(m) - f->bias) << f->mantissa;
  LLVMValueRef up = right(m, round_bits(m, size, cut), cut);
  LLVMValueRef normal = minus(m, up, whole(m, less));
  // The last bit of this power is the least number: the sum rounds to it.
  const uint64_t power =
      power_bits(m, (int)fraction(m) + 1 - f->bias - f->mantissa);
  LLVMValueRef sum = add(m, as_real(m, size), as_real(m, whole(m, power)));
  LLVMValueRef small = minus(m, as_bits(m, sum), whole(m, power));
  LLVMValueRef tiny =
      compare_bits(m, LLVMIntULT, size, power_bits(m, 1 - f->bias));
  return choose(m, tiny, small, normal);
}

LLVMValueRef cpu_jit_to_f8(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x,
                           bool wide, cx_hlo_elem e)
{
  const cx_hlo_format *f = cx_hlo_format_of(e);
  const cpu_jit_ir ir = floats(env, b, wide), *m = &ir;
  LLVMValueRef bits = as_bits(m, x);
  LLVMValueRef size = mask(m, bits, 0x7FFFFFFF);
  LLVMValueRef sign = mask(m, right(m, bits, 24), 0x80);
  LLVMValueRef out = magnitude_code(m, f, size);
  const uint64_t largest = cx_hlo_format_largest(f);
  LLVMValueRef over = compare_bits(m, LLVMIntUGT, out, largest);
  LLVMValueRef is_nan = compare_bits(m, LLVMIntUGT, size, INFINITE);
  if (f->specials == CX_HLO_FORMAT_FNUZ) {
    // It has no -0, and its NaN has no sign.
    LLVMValueRef zero = compare_bits(m, LLVMIntEQ, out, 0);
    out = choose(m, zero, out, any_of(m, out, sign));
    out = choose(m, any_of(m, over, is_nan), whole(m, 0x80), out);
  } else {
    const bool ieee = f->specials == CX_HLO_FORMAT_IEEE;
    const uint64_t inf = largest + 1;
    const uint64_t quiet = UINT64_C(1) << (f->mantissa - 1);
    out = choose(m, over, whole(m, ieee ? inf : 0x7F), out);
    out =
        choose(m, is_nan, whole(m, ieee ? inf | inf >> 1 | quiet : 0x7F), out);
    out = any_of(m, out, sign);
  }
  LLVMTypeRef codes = wide ? cpu_jit_wide_type(env, env->i8) : env->i8;
  return LLVMBuildTrunc(b, out, codes, "");
}
