// jit/convert: between element types.
//
// bf16 and f16 are floats in registers, rounded after each operation to what
// their type holds. That is exact for + - * / and sqrt, since a float has more
// than twice their bits; numbers that are wider than a float are first rounded
// to odd, so that the second rounding is the only one that counts.
#include "jit/element.h"

// The emitter of code on floats that has as many lanes as x.
static cpu_jit_ir floats_like(cpu_jit_env *env, LLVMBuilderRef b,
                              LLVMValueRef x)
{
  LLVMTypeRef t = LLVMTypeOf(x);
  const bool vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
  return cpu_jit_ir_of(env, b, false, vector ? LLVMGetVectorSize(t) : 0);
}

// ---- bf16 ----

static LLVMValueRef cut_bf16(const cpu_jit_ir *m, LLVMValueRef bits)
{
  return as_real(m, mask(m, bits, 0xFFFF0000U));
}

static LLVMValueRef round_bf16(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef bits = as_bits(m, x);
  LLVMValueRef up = round_bits(m, bits, 16);
  // NaN keeps its top bits and is made quiet.
  LLVMValueRef nan = with_bits(m, bits, 0x400000);
  return cut_bf16(m, choose(m, unordered(m, x, x), nan, up));
}

// ---- f16 ----

// A float's sign and magnitude; tiny: f16 has it as a subnormal number or zero.
typedef struct float_parts {
  LLVMValueRef sign, size, tiny;
} float_parts;

static float_parts parts_of(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef bits = as_bits(m, x);
  LLVMValueRef sign = mask(m, bits, 0x80000000U);
  LLVMValueRef size = LLVMBuildXor(m->b, bits, sign, "");
  return (float_parts){ sign, size,
                        compare_bits(m, LLVMIntULT, size, 0x38800000U) };
}

// 0.5's last bit is 2^-24, f16's least number, so this sum rounds a tiny number
// to a multiple of it.
static LLVMValueRef plus_half(const cpu_jit_ir *m, LLVMValueRef size)
{
  return add(m, as_real(m, size), num(m, 0.5));
}

// On processors without instructions for f16: rounds the float's bits.
static LLVMValueRef round_f16_slow(const cpu_jit_ir *m, LLVMValueRef x)
{
  const float_parts s = parts_of(m, x);
  LLVMValueRef up = mask(m, round_bits(m, s.size, 13), 0xFFFFE000U);
  LLVMValueRef over = compare_bits(m, LLVMIntUGE, up, 0x47800000U);
  up = choose(m, over, whole(m, 0x7F800000U), up);
  LLVMValueRef small = sub(m, plus_half(m, s.size), num(m, 0.5));
  LLVMValueRef out = choose(m, s.tiny, as_bits(m, small), up);
  LLVMValueRef nan = mask(m, with_bits(m, s.size, 0x400000), 0xFFFFE000U);
  LLVMValueRef is_nan = compare_bits(m, LLVMIntUGT, s.size, 0x7F800000U);
  return as_real(m, any_of(m, choose(m, is_nan, nan, out), s.sign));
}

LLVMValueRef cpu_jit_round_arithmetic(cpu_jit_env *env, LLVMBuilderRef b,
                                      LLVMValueRef x, cx_hlo_elem e)
{
  if (e != CX_HLO_BF16) return cpu_jit_round(env, b, x, e);
  const cpu_jit_ir m = floats_like(env, b, x);
  return cut_bf16(&m, round_bits(&m, as_bits(&m, x), 16));
}

LLVMValueRef cpu_jit_round(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x,
                           cx_hlo_elem e)
{
  const cpu_jit_ir m = floats_like(env, b, x);
  if (LLVMTypeOf(x) != m.real) return x;
  if (e == CX_HLO_BF16) return round_bf16(&m, x);
  if (e != CX_HLO_F16) return x;
  if (!env->target->has_f16c) return round_f16_slow(&m, x);
  LLVMTypeRef half = lanes_of(env->f16, m.lanes);
  return LLVMBuildFPExt(b, LLVMBuildFPTrunc(b, x, half, ""), m.real, "");
}

static LLVMValueRef f16_bits_slow(const cpu_jit_ir *m, LLVMValueRef x)
{
  const float_parts s = parts_of(m, x);
  LLVMValueRef normal = right(m, minus(m, s.size, whole(m, 112U << 23)), 13);
  // The sum has the small number in its last bits.
  LLVMValueRef small = mask(m, as_bits(m, plus_half(m, s.size)), 0x3FFFFF);
  LLVMValueRef out = choose(m, s.tiny, small, normal);
  LLVMValueRef fraction_bits = mask(m, right(m, s.size, 13), 0x3FF);
  LLVMValueRef is_big = compare_bits(m, LLVMIntUGE, s.size, 0x7F800000U);
  out = choose(m, is_big, with_bits(m, fraction_bits, 0x7C00), out);
  return any_of(m, out, right(m, s.sign, 16));
}

LLVMValueRef cpu_jit_to_bits16(cpu_jit_env *env, LLVMBuilderRef b,
                               LLVMValueRef x, cx_hlo_elem e)
{
  const cpu_jit_ir m = floats_like(env, b, x);
  LLVMTypeRef bits16 = lanes_of(env->i16, m.lanes);
  if (e == CX_HLO_F16 && env->target->has_f16c) {
    LLVMTypeRef half = lanes_of(env->f16, m.lanes);
    return LLVMBuildBitCast(b, LLVMBuildFPTrunc(b, x, half, ""), bits16, "");
  }
  LLVMValueRef bits =
      e == CX_HLO_F16 ? f16_bits_slow(&m, x) : right(&m, as_bits(&m, x), 16);
  return LLVMBuildTrunc(b, bits, bits16, "");
}

static LLVMValueRef f16_value_slow(const cpu_jit_ir *m, LLVMValueRef bits)
{
  LLVMValueRef sign = mask(m, bits, 0x8000);
  LLVMValueRef size = LLVMBuildXor(m->b, bits, sign, "");
  LLVMValueRef shifted = left(m, size, 13);
  LLVMValueRef normal = plus(m, shifted, whole(m, 112U << 23));
  LLVMValueRef small = LLVMBuildUIToFP(m->b, size, m->real, "");
  small = mul(m, small, num(m, 0x1p-24));
  LLVMValueRef big = with_bits(m, shifted, 0x7F800000U);
  LLVMValueRef is_tiny = compare_bits(m, LLVMIntULT, size, 0x400);
  LLVMValueRef is_big = compare_bits(m, LLVMIntUGE, size, 0x7C00);
  LLVMValueRef out = choose(m, is_tiny, as_bits(m, small), normal);
  out = choose(m, is_big, big, out);
  return as_real(m, any_of(m, out, left(m, sign, 16)));
}

LLVMValueRef cpu_jit_from_bits16(cpu_jit_env *env, LLVMBuilderRef b,
                                 LLVMValueRef x, cx_hlo_elem e)
{
  const cpu_jit_ir m = floats_like(env, b, x);
  if (e == CX_HLO_F16 && env->target->has_f16c) {
    LLVMTypeRef half = lanes_of(env->f16, m.lanes);
    return LLVMBuildFPExt(b, LLVMBuildBitCast(b, x, half, ""), m.real, "");
  }
  LLVMValueRef bits = LLVMBuildZExt(b, x, m.whole, "");
  return e == CX_HLO_F16 ? f16_value_slow(&m, bits)
                         : as_real(&m, left(&m, bits, 16));
}

// ---- numbers ----

// A double as a float, toward zero, with the last bit set where it is inexact.
static LLVMValueRef to_odd(cpu_jit_env *env, LLVMBuilderRef b, LLVMValueRef x)
{
  const cpu_jit_ir floats = floats_like(env, b, x), *m = &floats;
  const cpu_jit_ir wide = maths_of(&m->env, true, m->lanes);
  LLVMValueRef near = narrowed(m, x);
  LLVMValueRef back = widened(m, &wide, near);
  LLVMValueRef a = absolute(&wide, x);
  LLVMValueRef z = absolute(&wide, back);
  LLVMValueRef bits = as_bits(m, near);
  LLVMValueRef above = less(m, a, z);
  LLVMValueRef down = minus(m, bits, whole(m, 1));
  LLVMValueRef cut = choose(m, above, down, bits);
  LLVMValueRef inexact = LLVMBuildFCmp(b, LLVMRealONE, z, a, "");
  LLVMValueRef odd = with_bits(m, cut, 1);
  return as_real(m, choose(m, inexact, odd, cut));
}

static bool is_small_float(cx_hlo_elem e)
{
  return e == CX_HLO_BF16 || e == CX_HLO_F16;
}

// To f8: a float that rounds to the same f8 as the number.
static LLVMValueRef to_float(cpu_jit_env *env, LLVMBuilderRef b, cpu_jit_val v,
                             cx_hlo_elem to)
{
  const bool small = is_small_float(to) || cpu_jit_is_f8(to);
  LLVMTypeRef t = cpu_jit_register_type(env, small ? CX_HLO_F32 : to, v.wide);
  LLVMTypeRef d = cpu_jit_register_type(env, CX_HLO_F64, v.wide);
  LLVMValueRef x = v.re;
  if (cx_hlo_elem_is_float(v.elem)) {
    if (LLVMTypeOf(x) == t) return cpu_jit_round(env, b, x, to);
    if (v.elem != CX_HLO_F64) return LLVMBuildFPExt(b, x, t, "");
    if (!small) return LLVMBuildFPTrunc(b, x, t, "");
    return cpu_jit_round(env, b, to_odd(env, b, x), to);
  }
  const bool u = v.elem == CX_HLO_I1 || cx_hlo_elem_is_unsigned(v.elem);
  const bool twice = small && cx_hlo_elem_bits(v.elem) > 16;
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
        env->module, b,
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
  if (v.elem == to) return v;
  if (cpu_jit_is_f8(v.elem)) {
    v.re = cpu_jit_from_f8(env, b, v.re, v.wide, v.elem);
    v.elem = CX_HLO_F32;
  }
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
  if (cpu_jit_is_f8(to)) {
    out.re = cpu_jit_to_f8(env, b, out.re, v.wide, to);
  }
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
    LLVMTypeRef bits16 = v.wide ? cpu_jit_wide_type(env, env->i16) : env->i16;
    x = LLVMBuildBitCast(b, x, bits16, "");
    v.re = cpu_jit_from_bits16(env, b, x, to);
  } else {
    v.re = LLVMBuildBitCast(b, x, cpu_jit_register_type(env, to, v.wide), "");
  }
  v.elem = to;
  return v;
}
