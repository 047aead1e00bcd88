// jit/convert: between element types.
//
// bf16 and f16 are floats in registers, rounded after each operation to what
// their type holds. That is exact for + - * / and sqrt, since a float has more
// than twice their bits; numbers that are wider than a float are first rounded
// to odd, so that the second rounding is the only one that counts.
#include <math.h>

#include "jit/emit.h"

static LLVMTypeRef like(cpu_jit_env *env, LLVMValueRef x, LLVMTypeRef scalar)
{
  return LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMVectorTypeKind
             ? cpu_jit_wide_type(env, scalar)
             : scalar;
}

static LLVMValueRef ints(LLVMTypeRef t, uint64_t v)
{
  return cpu_jit_const_int(t, v);
}

// ---- bf16 ----

static LLVMValueRef round_bf16(cpu_jit_env *env, LLVMBuilderRef b,
                               LLVMValueRef x)
{
  LLVMTypeRef i = like(env, x, env->i32);
  LLVMValueRef bits = LLVMBuildBitCast(b, x, i, "");
  LLVMValueRef last =
      LLVMBuildAnd(b, LLVMBuildLShr(b, bits, ints(i, 16), ""), ints(i, 1), "");
  LLVMValueRef up =
      LLVMBuildAdd(b, bits, LLVMBuildAdd(b, last, ints(i, 0x7FFF), ""), "");
  // NaN keeps its top bits and is made quiet.
  LLVMValueRef nan = LLVMBuildOr(b, bits, ints(i, 0x400000), "");
  LLVMValueRef is = LLVMBuildFCmp(b, LLVMRealUNO, x, x, "");
  LLVMValueRef out = LLVMBuildSelect(b, is, nan, up, "");
  out = LLVMBuildAnd(b, out, ints(i, 0xFFFF0000U), "");
  return LLVMBuildBitCast(b, out, LLVMTypeOf(x), "");
}

// ---- f16 ----

// Without instructions for it: rounded on the float's bits. What is below f16's
// normal numbers is rounded by an addition that aligns it with their last bit.
static LLVMValueRef round_f16_slow(cpu_jit_env *env, LLVMBuilderRef b,
                                   LLVMValueRef x)
{
  LLVMTypeRef i = like(env, x, env->i32);
  LLVMTypeRef f = LLVMTypeOf(x);
  LLVMValueRef bits = LLVMBuildBitCast(b, x, i, "");
  LLVMValueRef sign = LLVMBuildAnd(b, bits, ints(i, 0x80000000U), "");
  LLVMValueRef size = LLVMBuildXor(b, bits, sign, "");
  LLVMValueRef last =
      LLVMBuildAnd(b, LLVMBuildLShr(b, size, ints(i, 13), ""), ints(i, 1), "");
  LLVMValueRef up =
      LLVMBuildAdd(b, size, LLVMBuildAdd(b, last, ints(i, 0xFFF), ""), "");
  up = LLVMBuildAnd(b, up, ints(i, 0xFFFFE000U), "");
  LLVMValueRef over =
      LLVMBuildICmp(b, LLVMIntUGE, up, ints(i, 0x47800000U), "");
  up = LLVMBuildSelect(b, over, ints(i, 0x7F800000U), up, "");
  // 0.5's last bit is 2^-24, f16's least number.
  LLVMValueRef half = cpu_jit_const_real(f, 0.5);
  LLVMValueRef small = LLVMBuildFSub(
      b, LLVMBuildFAdd(b, LLVMBuildBitCast(b, size, f, ""), half, ""), half,
      "");
  LLVMValueRef tiny =
      LLVMBuildICmp(b, LLVMIntULT, size, ints(i, 0x38800000U), "");
  LLVMValueRef out =
      LLVMBuildSelect(b, tiny, LLVMBuildBitCast(b, small, i, ""), up, "");
  LLVMValueRef nan = LLVMBuildAnd(
      b, LLVMBuildOr(b, size, ints(i, 0x400000), ""), ints(i, 0xFFFFE000U), "");
  LLVMValueRef is =
      LLVMBuildICmp(b, LLVMIntUGT, size, ints(i, 0x7F800000U), "");
  out = LLVMBuildSelect(b, is, nan, out, "");
  return LLVMBuildBitCast(b, LLVMBuildOr(b, out, sign, ""), f, "");
}

LLVMValueRef cpu_jit_round(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x,
                           cx_hlo_elem e)
{
  if (LLVMTypeOf(x) != like(env, x, env->f32)) return x;
  if (e == CX_HLO_BF16) return round_bf16(env, b, x);
  if (e != CX_HLO_F16) return x;
  if (!env->target->has_f16c) return round_f16_slow(env, b, x);
  LLVMValueRef half = LLVMBuildFPTrunc(b, x, like(env, x, env->f16), "");
  return LLVMBuildFPExt(b, half, LLVMTypeOf(x), "");
}

static LLVMValueRef f16_bits_slow(cpu_jit_env *env, LLVMBuilderRef b,
                                  LLVMValueRef x)
{
  LLVMTypeRef i = like(env, x, env->i32);
  LLVMTypeRef f = LLVMTypeOf(x);
  LLVMValueRef bits = LLVMBuildBitCast(b, x, i, "");
  LLVMValueRef sign = LLVMBuildAnd(b, bits, ints(i, 0x80000000U), "");
  LLVMValueRef size = LLVMBuildXor(b, bits, sign, "");
  LLVMValueRef normal = LLVMBuildLShr(
      b, LLVMBuildSub(b, size, ints(i, 112U << 23), ""), ints(i, 13), "");
  // The sum with 0.5 has the small number in its last bits.
  LLVMValueRef sum = LLVMBuildFAdd(b, LLVMBuildBitCast(b, size, f, ""),
                                   cpu_jit_const_real(f, 0.5), "");
  LLVMValueRef small =
      LLVMBuildAnd(b, LLVMBuildBitCast(b, sum, i, ""), ints(i, 0x3FFFFF), "");
  LLVMValueRef tiny =
      LLVMBuildICmp(b, LLVMIntULT, size, ints(i, 0x38800000U), "");
  LLVMValueRef out = LLVMBuildSelect(b, tiny, small, normal, "");
  LLVMValueRef fraction = LLVMBuildAnd(
      b, LLVMBuildLShr(b, size, ints(i, 13), ""), ints(i, 0x3FF), "");
  LLVMValueRef big = LLVMBuildOr(b, fraction, ints(i, 0x7C00), "");
  LLVMValueRef is =
      LLVMBuildICmp(b, LLVMIntUGE, size, ints(i, 0x7F800000U), "");
  out = LLVMBuildSelect(b, is, big, out, "");
  out = LLVMBuildOr(b, out, LLVMBuildLShr(b, sign, ints(i, 16), ""), "");
  return LLVMBuildTrunc(b, out, like(env, x, env->i16), "");
}

LLVMValueRef cpu_jit_to_bits16(cpu_jit_env *env, LLVMBuilderRef b,
                               LLVMValueRef x, cx_hlo_elem e)
{
  if (e == CX_HLO_F16) {
    if (!env->target->has_f16c) return f16_bits_slow(env, b, x);
    LLVMValueRef half = LLVMBuildFPTrunc(b, x, like(env, x, env->f16), "");
    return LLVMBuildBitCast(b, half, like(env, x, env->i16), "");
  }
  LLVMTypeRef i = like(env, x, env->i32);
  LLVMValueRef bits = LLVMBuildBitCast(b, x, i, "");
  bits = LLVMBuildLShr(b, bits, ints(i, 16), "");
  return LLVMBuildTrunc(b, bits, like(env, x, env->i16), "");
}

static LLVMValueRef f16_value_slow(cpu_jit_env *env, LLVMBuilderRef b,
                                   LLVMValueRef x)
{
  LLVMTypeRef i = like(env, x, env->i32);
  LLVMTypeRef f = like(env, x, env->f32);
  LLVMValueRef bits = LLVMBuildZExt(b, x, i, "");
  LLVMValueRef sign = LLVMBuildAnd(b, bits, ints(i, 0x8000), "");
  LLVMValueRef size = LLVMBuildXor(b, bits, sign, "");
  LLVMValueRef shifted = LLVMBuildShl(b, size, ints(i, 13), "");
  LLVMValueRef normal = LLVMBuildAdd(b, shifted, ints(i, 112U << 23), "");
  LLVMValueRef small = LLVMBuildFMul(b, LLVMBuildUIToFP(b, size, f, ""),
                                     cpu_jit_const_real(f, 0x1p-24), "");
  LLVMValueRef big = LLVMBuildOr(b, shifted, ints(i, 0x7F800000U), "");
  LLVMValueRef tiny = LLVMBuildICmp(b, LLVMIntULT, size, ints(i, 0x400), "");
  LLVMValueRef huge = LLVMBuildICmp(b, LLVMIntUGE, size, ints(i, 0x7C00), "");
  LLVMValueRef out =
      LLVMBuildSelect(b, tiny, LLVMBuildBitCast(b, small, i, ""), normal, "");
  out = LLVMBuildSelect(b, huge, big, out, "");
  out = LLVMBuildOr(b, out, LLVMBuildShl(b, sign, ints(i, 16), ""), "");
  return LLVMBuildBitCast(b, out, f, "");
}

LLVMValueRef cpu_jit_from_bits16(cpu_jit_env *env, LLVMBuilderRef b,
                                 LLVMValueRef x, cx_hlo_elem e)
{
  LLVMTypeRef f = like(env, x, env->f32);
  if (e == CX_HLO_F16) {
    if (!env->target->has_f16c) return f16_value_slow(env, b, x);
    LLVMValueRef half = LLVMBuildBitCast(b, x, like(env, x, env->f16), "");
    return LLVMBuildFPExt(b, half, f, "");
  }
  LLVMTypeRef i = like(env, x, env->i32);
  LLVMValueRef bits = LLVMBuildZExt(b, x, i, "");
  return LLVMBuildBitCast(b, LLVMBuildShl(b, bits, ints(i, 16), ""), f, "");
}

// ---- numbers ----

// A double as a float, toward zero, with the last bit set where it is inexact.
static LLVMValueRef to_odd(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x)
{
  LLVMTypeRef f = like(env, x, env->f32);
  LLVMTypeRef i = like(env, x, env->i32);
  LLVMValueRef near = LLVMBuildFPTrunc(b, x, f, "");
  LLVMValueRef back = LLVMBuildFPExt(b, near, LLVMTypeOf(x), "");
  LLVMTypeRef d = LLVMTypeOf(x);
  LLVMValueRef a = cpu_jit_intrinsic(env, b, "llvm.fabs", &d, 1, &x, 1);
  LLVMValueRef z = cpu_jit_intrinsic(env, b, "llvm.fabs", &d, 1, &back, 1);
  LLVMValueRef bits = LLVMBuildBitCast(b, near, i, "");
  LLVMValueRef above = LLVMBuildFCmp(b, LLVMRealOGT, z, a, "");
  LLVMValueRef down = LLVMBuildSub(b, bits, ints(i, 1), "");
  LLVMValueRef cut = LLVMBuildSelect(b, above, down, bits, "");
  LLVMValueRef inexact = LLVMBuildFCmp(b, LLVMRealONE, z, a, "");
  LLVMValueRef odd = LLVMBuildOr(b, cut, ints(i, 1), "");
  return LLVMBuildBitCast(b, LLVMBuildSelect(b, inexact, odd, cut, ""), f, "");
}

static bool is_small_float(cx_hlo_elem e)
{
  return e == CX_HLO_BF16 || e == CX_HLO_F16;
}

static LLVMValueRef to_float(cpu_jit_env *env, LLVMBuilderRef b, cpu_jit_val v,
                             cx_hlo_elem to)
{
  LLVMTypeRef t = cpu_jit_register_type(env, to, v.wide);
  LLVMTypeRef d = cpu_jit_register_type(env, CX_HLO_F64, v.wide);
  LLVMValueRef x = v.re;
  if (cx_hlo_elem_is_float(v.elem)) {
    if (LLVMTypeOf(x) == t) return cpu_jit_round(env, b, x, to);
    if (v.elem != CX_HLO_F64) return LLVMBuildFPExt(b, x, t, "");
    if (!is_small_float(to)) return LLVMBuildFPTrunc(b, x, t, "");
    return cpu_jit_round(env, b, to_odd(env, b, x), to);
  }
  const bool u = v.elem == CX_HLO_I1 || cx_hlo_elem_is_unsigned(v.elem);
  const bool twice = is_small_float(to) && cx_hlo_elem_bits(v.elem) > 16;
  LLVMTypeRef first = twice ? d : t;
  x = u ? LLVMBuildUIToFP(b, x, first, "") : LLVMBuildSIToFP(b, x, first, "");
  return cpu_jit_round(env, b, twice ? to_odd(env, b, x) : x, to);
}

static LLVMValueRef to_int(cpu_jit_env *env, LLVMBuilderRef b, cpu_jit_val v,
                           cx_hlo_elem to)
{
  LLVMTypeRef t = cpu_jit_register_type(env, to, v.wide);
  if (cx_hlo_elem_is_float(v.elem)) {
    LLVMTypeRef types[] = { t, LLVMTypeOf(v.re) };
    return cpu_jit_intrinsic(
        env, b,
        cx_hlo_elem_is_unsigned(to) ? "llvm.fptoui.sat" : "llvm.fptosi.sat",
        types, 2, &v.re, 1);
  }
  const unsigned from_bits = cx_hlo_elem_bits(v.elem);
  const unsigned to_bits = cx_hlo_elem_bits(to);
  if (from_bits == to_bits) return v.re;
  if (from_bits > to_bits) return LLVMBuildTrunc(b, v.re, t, "");
  const bool u = v.elem == CX_HLO_I1 || cx_hlo_elem_is_unsigned(v.elem);
  return u ? LLVMBuildZExt(b, v.re, t, "") : LLVMBuildSExt(b, v.re, t, "");
}

static LLVMValueRef to_truth(LLVMBuilderRef b, cpu_jit_val v)
{
  LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(v.re));
  if (v.elem == CX_HLO_I1) return v.re;
  if (!cx_hlo_elem_is_float(v.elem)) {
    return LLVMBuildICmp(b, LLVMIntNE, v.re, zero, "");
  }
  LLVMValueRef is = LLVMBuildFCmp(b, LLVMRealUNE, v.re, zero, "");
  if (v.im == NULL) return is;
  return LLVMBuildOr(b, is, LLVMBuildFCmp(b, LLVMRealUNE, v.im, zero, ""), "");
}

cpu_jit_val cpu_jit_convert(cpu_jit_env *env, cpu_jit_val v, cx_hlo_elem to)
{
  LLVMBuilderRef b = cpu_jit_at(env, v.level);
  cpu_jit_val out = v;
  out.elem = to;
  out.im = NULL;
  cpu_jit_val re = v;
  re.elem = cx_hlo_elem_part(v.elem);
  const cx_hlo_elem part = cx_hlo_elem_part(to);
  if (to == CX_HLO_I1) {
    re.im = v.im;
    out.re = to_truth(b, re);
    return out;
  }
  if (!cx_hlo_elem_is_float(part)) {
    out.re = to_int(env, b, re, to);
    return out;
  }
  out.re = to_float(env, b, re, part);
  if (!cx_hlo_elem_is_complex(to)) return out;
  cpu_jit_val im = re;
  im.re = v.im;
  out.im = v.im != NULL ? to_float(env, b, im, part)
                        : LLVMConstNull(LLVMTypeOf(out.re));
  return out;
}

cpu_jit_val cpu_jit_bitcast(cpu_jit_env *env, cpu_jit_val v, cx_hlo_elem to)
{
  if (v.elem == to) return v;
  LLVMBuilderRef b = cpu_jit_at(env, v.level);
  LLVMValueRef x = v.re;
  if (is_small_float(v.elem)) x = cpu_jit_to_bits16(env, b, x, v.elem);
  if (is_small_float(to)) {
    x = LLVMBuildBitCast(b, x, like(env, x, env->i16), "");
    v.re = cpu_jit_from_bits16(env, b, x, to);
  } else {
    v.re = LLVMBuildBitCast(b, x, cpu_jit_register_type(env, to, v.wide), "");
  }
  v.elem = to;
  return v;
}
