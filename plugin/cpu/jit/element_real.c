// jit/element_real: operations on floats. NaN propagates in maximum and
// minimum; no operation is fused with another.
#include <math.h>

#include "jit/element.h"

static LLVMValueRef sign(const cpu_jit_ctx *c, LLVMValueRef x)
{
  const cpu_jit_ir *m = &c->ir;
  // Neither a zero nor NaN.
  LLVMValueRef plain = LLVMBuildFCmp(m->b, LLVMRealONE, x, num(m, 0), "");
  return choose(m, plain, with_sign(m, num(m, 1), x), x);
}

// Half away from zero: the greatest number below a half, added with x's sign,
// cannot carry x to the next integer unless its fraction is a half.
static LLVMValueRef round_away(const cpu_jit_ctx *c, LLVMValueRef x)
{
  const cpu_jit_ir *m = &c->ir;
  LLVMValueRef half = either(m, (double)nextafterf(0.5F, 0), nextafter(0.5, 0));
  LLVMValueRef sum = add(m, x, with_sign(m, half, x));
  return cpu_jit_call(c, "llvm.trunc", sum, NULL);
}

static LLVMValueRef is_finite(const cpu_jit_ir *m, LLVMValueRef x)
{
  return less(m, absolute(m, x), infinity(m));
}

static LLVMValueRef reduce_precision(const cpu_jit_ctx *c, LLVMValueRef x,
                                     int64_t exponent, int64_t mantissa)
{
  const cpu_jit_ir *m = &c->ir;
  const int f = (int)fraction(m);
  const int e = m->wide ? 11 : 8;
  const int own = c->elem == CX_HLO_F16 ? 5 : e;
  const uint64_t top = (uint64_t)1 << (f + e);
  LLVMValueRef bits = as_bits(m, x);
  LLVMValueRef out = bits;
  if (mantissa < f) {
    const unsigned cut = (unsigned)(f - mantissa);
    out = mask(m, round_bits(m, bits, cut), ~(((uint64_t)1 << cut) - 1));
  }
  const uint64_t endless = (((uint64_t)1 << e) - 1) << f;
  LLVMValueRef sign_bit = mask(m, bits, top);
  if (exponent < own) {
    const int64_t range = ((int64_t)1 << (exponent - 1)) - 1;
    const int64_t middle = (int64_t)bias(m);
    const uint64_t most = ((uint64_t)(middle + range + 1) << f) - 1;
    const uint64_t least = (uint64_t)(middle - range + 1) << f;
    LLVMValueRef size = mask(m, out, top - 1);
    LLVMValueRef over = compare_bits(m, LLVMIntUGT, size, most);
    LLVMValueRef under = compare_bits(m, LLVMIntULT, size, least);
    out = choose(m, over, with_bits(m, sign_bit, endless), out);
    out = choose(m, under, sign_bit, out);
  }
  LLVMValueRef is_nan = unordered(m, x, x);
  LLVMValueRef nan = mantissa > 0 ? bits : with_bits(m, sign_bit, endless);
  return as_real(m, choose(m, is_nan, nan, out));
}

// fmod of floats, exactly, in doubles: with b times powers of two that fall by
// 27 bits, the quotient is always below 2^28, so its product with b's 24 bits
// is exact, and so is the difference. Ratios of floats stay below 2^277.
static LLVMValueRef remainder_of(const cpu_jit_ctx *c, LLVMValueRef x,
                                 LLVMValueRef y)
{
  const cpu_jit_ir *m = &c->ir;
  const cpu_jit_ir wide = maths_of(&m->env, true, m->lanes), *w = &wide;
  LLVMValueRef a = widened(m, w, x);
  LLVMValueRef b = widened(m, w, y);
  a = absolute(w, a);
  b = absolute(w, b);
  for (int k = 270; k >= 0; k -= 27) {
    LLVMValueRef by = mul(w, b, num(w, ldexp(1, k)));
    LLVMValueRef q = cpu_jit_call(c, "llvm.trunc", quotient(w, a, by), NULL);
    a = sub(w, a, mul(w, q, by));
    // The quotient was rounded up.
    LLVMValueRef under = less(w, a, num(w, 0));
    a = choose(w, under, add(w, a, by), a);
  }
  LLVMValueRef out = with_sign(m, narrowed(m, a), x);
  LLVMValueRef endless = same(m, absolute(m, y), infinity(m));
  return choose(m, both(m, endless, is_finite(m, x)), x, out);
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
  LLVMBuilderRef b = c->ir.b;
  const cpu_jit_math_env m = c->ir.env;
  switch (op->kind) {
#include "ref/element.def"
    case CX_HLO_OP_IS_FINITE: return is_finite(&c->ir, x);
    case CX_HLO_OP_REDUCE_PRECISION:
      return reduce_precision(c, x, cx_hlo_op_int(op, CX_HLO_A_EXPONENT_BITS),
                              cx_hlo_op_int(op, CX_HLO_A_MANTISSA_BITS));
    default: break;
  }
  cpu_jit_fail(c->env, "an operation on floats");
  return x;
}
