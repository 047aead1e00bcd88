// jit/element_real: operations on floats. NaN
// propagates in maximum and minimum; no operation is fused with another.
#include "jit/emit.h"

#include <math.h>

static LLVMValueRef bits_of(const cpu_jit_ctx *c, LLVMValueRef x)
{
  return LLVMBuildBitCast(c->b, x, c->ints, "");
}

static LLVMValueRef from_bits(const cpu_jit_ctx *c, LLVMValueRef x)
{
  return LLVMBuildBitCast(c->b, x, c->type, "");
}

static bool is_double(const cpu_jit_ctx *c)
{
  return c->elem == CX_HLO_F64 || c->elem == CX_HLO_C128;
}

static LLVMValueRef sign(const cpu_jit_ctx *c, LLVMValueRef x)
{
  // Neither a zero nor NaN.
  LLVMValueRef plain =
      LLVMBuildFCmp(c->b, LLVMRealONE, x, cpu_jit_real_const(c, 0), "");
  LLVMValueRef one =
      cpu_jit_call(c, "llvm.copysign", cpu_jit_real_const(c, 1), x);
  return LLVMBuildSelect(c->b, plain, one, x, "");
}

// Half away from zero: the greatest number below a half, added with x's sign,
// cannot carry x to the next integer unless its fraction is a half.
static LLVMValueRef round_away(const cpu_jit_ctx *c, LLVMValueRef x)
{
  const double half =
      is_double(c) ? nextafter(0.5, 0) : (double)nextafterf(0.5F, 0);
  LLVMValueRef h =
      cpu_jit_call(c, "llvm.copysign", cpu_jit_real_const(c, half), x);
  LLVMValueRef sum = LLVMBuildFAdd(c->b, x, h, "");
  return cpu_jit_call(c, "llvm.trunc", sum, NULL);
}

static LLVMValueRef is_finite(const cpu_jit_ctx *c, LLVMValueRef x)
{
  LLVMValueRef size = cpu_jit_call(c, "llvm.fabs", x, NULL);
  return LLVMBuildFCmp(c->b, LLVMRealOLT, size,
                       cpu_jit_real_const(c, (double)INFINITY), "");
}

LLVMValueRef cpu_jit_reduce_precision(const cpu_jit_ctx *c, LLVMValueRef x,
                                      int64_t exponent, int64_t mantissa)
{
  const int m = is_double(c) ? 52 : 23;
  const int e = is_double(c) ? 11 : 8;
  const int own = c->elem == CX_HLO_F16 ? 5 : e;
  const uint64_t top = (uint64_t)1 << (m + e);
  LLVMValueRef b = bits_of(c, x);
  LLVMValueRef out = b;
  if (mantissa < m) {
    const int shift = m - (int)mantissa;
    LLVMValueRef last = LLVMBuildAnd(
        c->b, LLVMBuildLShr(c->b, b, cpu_jit_int_const(c, (unsigned)shift), ""),
        cpu_jit_int_const(c, 1), "");
    LLVMValueRef bias = LLVMBuildAdd(
        c->b, last, cpu_jit_int_const(c, ((uint64_t)1 << (shift - 1)) - 1), "");
    out = LLVMBuildAnd(c->b, LLVMBuildAdd(c->b, b, bias, ""),
                       cpu_jit_int_const(c, ~(((uint64_t)1 << shift) - 1)), "");
  }
  LLVMValueRef infinity = cpu_jit_int_const(c, (((uint64_t)1 << e) - 1) << m);
  LLVMValueRef sign_bit = LLVMBuildAnd(c->b, b, cpu_jit_int_const(c, top), "");
  if (exponent < own) {
    const int64_t middle = ((int64_t)1 << (e - 1)) - 1;
    const int64_t range = ((int64_t)1 << (exponent - 1)) - 1;
    LLVMValueRef size =
        LLVMBuildAnd(c->b, out, cpu_jit_int_const(c, top - 1), "");
    const uint64_t most = ((uint64_t)(middle + range + 1) << m) - 1;
    const uint64_t least = (uint64_t)(middle - range + 1) << m;
    LLVMValueRef over =
        LLVMBuildICmp(c->b, LLVMIntUGT, size, cpu_jit_int_const(c, most), "");
    LLVMValueRef under =
        LLVMBuildICmp(c->b, LLVMIntULT, size, cpu_jit_int_const(c, least), "");
    LLVMValueRef big = LLVMBuildOr(c->b, sign_bit, infinity, "");
    out = LLVMBuildSelect(c->b, over, big, out, "");
    out = LLVMBuildSelect(c->b, under, sign_bit, out, "");
  }
  LLVMValueRef is_nan = LLVMBuildFCmp(c->b, LLVMRealUNO, x, x, "");
  LLVMValueRef nan =
      mantissa > 0 ? b : LLVMBuildOr(c->b, sign_bit, infinity, "");
  return from_bits(c, LLVMBuildSelect(c->b, is_nan, nan, out, ""));
}

// fmod of floats, exactly, in doubles: with b times powers of two that fall by
// 27 bits, the quotient is always below 2^28, so its product with b's 24 bits
// is exact, and so is the difference. Ratios of floats stay below 2^277.
static LLVMValueRef remainder_of(const cpu_jit_ctx *c, LLVMValueRef x,
                                 LLVMValueRef y)
{
  cpu_jit_env *env = c->env;
  LLVMTypeRef d = c->wide ? cpu_jit_wide_type(env, env->f64) : env->f64;
  LLVMValueRef a = LLVMBuildFPExt(c->b, x, d, "");
  LLVMValueRef b = LLVMBuildFPExt(c->b, y, d, "");
  LLVMValueRef zero = cpu_jit_const_real(d, 0);
  a = cpu_jit_call(c, "llvm.fabs", a, NULL);
  b = cpu_jit_call(c, "llvm.fabs", b, NULL);
  for (int k = 270; k >= 0; k -= 27) {
    LLVMValueRef by =
        LLVMBuildFMul(c->b, b, cpu_jit_const_real(d, ldexp(1, k)), "");
    LLVMValueRef q =
        cpu_jit_call(c, "llvm.trunc", LLVMBuildFDiv(c->b, a, by, ""), NULL);
    a = LLVMBuildFSub(c->b, a, LLVMBuildFMul(c->b, q, by, ""), "");
    // The quotient was rounded up.
    LLVMValueRef under = LLVMBuildFCmp(c->b, LLVMRealOLT, a, zero, "");
    a = LLVMBuildSelect(c->b, under, LLVMBuildFAdd(c->b, a, by, ""), a, "");
  }
  LLVMValueRef out = LLVMBuildFPTrunc(c->b, a, c->type, "");
  out = cpu_jit_call(c, "llvm.copysign", out, x);
  LLVMValueRef big = LLVMBuildAnd(
      c->b,
      LLVMBuildFCmp(c->b, LLVMRealOEQ, cpu_jit_call(c, "llvm.fabs", y, NULL),
                    cpu_jit_real_const(c, (double)INFINITY), ""),
      is_finite(c, x), "");
  return LLVMBuildSelect(c->b, big, x, out, "");
}

#define NONE break
#define REAL(value, code) return code
#define FUNCTION(name) \
  cpu_jit_math(&m, CPU_JIT_##name, x, op->n_operands > 1 ? y : NULL)
#define CPU_ELEMENT(id, ns, real, integer, truth, complexes) \
  case CX_HLO_OP_##id: real;

LLVMValueRef cpu_jit_real_op(const cpu_jit_ctx *c, const cx_hlo_op *op,
                             LLVMValueRef x, LLVMValueRef y)
{
  LLVMBuilderRef b = c->b;
  cpu_jit_math_env m = cpu_jit_math_env_of(c);
  switch (op->kind) {
#include "ref/element.def"
    case CX_HLO_OP_IS_FINITE: return is_finite(c, x);
    case CX_HLO_OP_REDUCE_PRECISION:
      return cpu_jit_reduce_precision(
          c, x, cx_hlo_op_int(op, CX_HLO_A_EXPONENT_BITS),
          cx_hlo_op_int(op, CX_HLO_A_MANTISSA_BITS));
    default: break;
  }
  cpu_jit_fail(c->env, "an operation on floats");
  return x;
}
