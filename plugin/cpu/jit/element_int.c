// jit/element_int: operations on integers and i1. Nothing traps: x / 0 is -1
// (all ones), INT_MIN / -1 is INT_MIN, x % 0 is x, and a shift by the width or
// more gives 0, or the sign.
#include "jit/emit.h"

static LLVMValueRef choose(const cpu_jit_ctx *c, LLVMValueRef p, LLVMValueRef x,
                           LLVMValueRef y)
{
  return LLVMBuildSelect(c->b, p, x, y, "");
}

static LLVMValueRef number(const cpu_jit_ctx *c, uint64_t v)
{
  return cpu_jit_const_int(c->type, v);
}

static LLVMValueRef divide(const cpu_jit_ctx *c, LLVMValueRef x, LLVMValueRef y,
                           bool rest)
{
  const bool u = cx_hlo_elem_is_unsigned(c->elem);
  LLVMValueRef zero = LLVMBuildICmp(c->b, LLVMIntEQ, y, number(c, 0), "");
  LLVMValueRef safe = choose(c, zero, number(c, 1), y);
  if (u) {
    LLVMValueRef out = rest ? LLVMBuildURem(c->b, x, safe, "")
                            : LLVMBuildUDiv(c->b, x, safe, "");
    return choose(c, zero, rest ? x : number(c, UINT64_MAX), out);
  }
  // A division by -1 is a negation, which cannot overflow into a trap.
  LLVMValueRef minus =
      LLVMBuildICmp(c->b, LLVMIntEQ, y, number(c, UINT64_MAX), "");
  safe = choose(c, minus, number(c, 1), safe);
  if (rest) {
    LLVMValueRef out = LLVMBuildSRem(c->b, x, safe, "");
    return choose(c, zero, x, out);
  }
  LLVMValueRef out = LLVMBuildSDiv(c->b, x, safe, "");
  out = choose(c, minus, LLVMBuildNeg(c->b, x, ""), out);
  return choose(c, zero, number(c, UINT64_MAX), out);
}

static LLVMValueRef shift(const cpu_jit_ctx *c, LLVMOpcode how, LLVMValueRef x,
                          LLVMValueRef n)
{
  const unsigned bits = cx_hlo_elem_bits(c->elem);
  LLVMValueRef in = LLVMBuildICmp(c->b, LLVMIntULT, n, number(c, bits), "");
  if (how == LLVMAShr) {
    return LLVMBuildAShr(c->b, x, choose(c, in, n, number(c, bits - 1)), "");
  }
  LLVMValueRef safe = choose(c, in, n, number(c, 0));
  LLVMValueRef out = LLVMBuildBinOp(c->b, how, x, safe, "");
  return choose(c, in, out, number(c, 0));
}

// By squaring; a negative exponent leaves 0, but for the bases 1 and -1.
static LLVMValueRef power(const cpu_jit_ctx *c, LLVMValueRef x, LLVMValueRef n)
{
  const unsigned bits = cx_hlo_elem_bits(c->elem);
  LLVMValueRef out = number(c, 1);
  LLVMValueRef square = x;
  for (unsigned i = 0; i < bits; i++) {
    LLVMValueRef bit = LLVMBuildAnd(c->b, n, number(c, (uint64_t)1 << i), "");
    LLVMValueRef is = LLVMBuildICmp(c->b, LLVMIntNE, bit, number(c, 0), "");
    out = choose(c, is, LLVMBuildMul(c->b, out, square, ""), out);
    if (i + 1 < bits) square = LLVMBuildMul(c->b, square, square, "");
  }
  if (cx_hlo_elem_is_unsigned(c->elem)) return out;
  LLVMValueRef negative = LLVMBuildICmp(c->b, LLVMIntSLT, n, number(c, 0), "");
  LLVMValueRef one = LLVMBuildICmp(c->b, LLVMIntEQ, x, number(c, 1), "");
  LLVMValueRef minus =
      LLVMBuildICmp(c->b, LLVMIntEQ, x, number(c, UINT64_MAX), "");
  LLVMValueRef odd = LLVMBuildAnd(c->b, n, number(c, 1), "");
  LLVMValueRef sign =
      choose(c, LLVMBuildICmp(c->b, LLVMIntNE, odd, number(c, 0), ""),
             number(c, UINT64_MAX), number(c, 1));
  LLVMValueRef small =
      choose(c, one, number(c, 1), choose(c, minus, sign, number(c, 0)));
  return choose(c, negative, small, out);
}

static LLVMValueRef sign(const cpu_jit_ctx *c, LLVMValueRef x)
{
  LLVMValueRef zero = number(c, 0);
  LLVMValueRef up = LLVMBuildZExt(
      c->b, LLVMBuildICmp(c->b, LLVMIntNE, x, zero, ""), c->type, "");
  if (cx_hlo_elem_is_unsigned(c->elem)) return up;
  LLVMValueRef down = LLVMBuildICmp(c->b, LLVMIntSLT, x, zero, "");
  return choose(c, down, number(c, UINT64_MAX), up);
}

static LLVMValueRef bool_flag(const cpu_jit_ctx *c)
{
  return LLVMConstNull(LLVMInt1TypeInContext(c->env->context));
}

#define NONE break
#define BOOL(value, code) return code
#define CPU_ELEMENT(id, ns, real, integer, truth, complexes) \
  case CX_HLO_OP_##id: truth;

static LLVMValueRef bool_op(const cpu_jit_ctx *c, const cx_hlo_op *op,
                            LLVMValueRef x, LLVMValueRef y)
{
  LLVMBuilderRef b = c->b;
  switch (op->kind) {
#include "ref/element.def"
    default: break;
  }
  cpu_jit_fail(c->env, "an operation on booleans");
  return x;
}

#undef CPU_ELEMENT
#define INT(value, code) return code
#define CPU_ELEMENT(id, ns, real, integer, truth, complexes) \
  case CX_HLO_OP_##id: integer;

LLVMValueRef cpu_jit_int_op(const cpu_jit_ctx *c, const cx_hlo_op *op,
                            LLVMValueRef x, LLVMValueRef y)
{
  LLVMBuilderRef b = c->b;
  if (c->elem == CX_HLO_I1) return bool_op(c, op, x, y);
  switch (op->kind) {
#include "ref/element.def"
    default: break;
  }
  cpu_jit_fail(c->env, "an operation on integers");
  return x;
}
