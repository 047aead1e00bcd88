// jit/element_int: operations on integers and i1. Nothing traps: x / 0 is -1
// (all ones), INT_MIN / -1 is INT_MIN, x % 0 is x, and a shift by the width or
// more gives 0, or the sign.
#include "jit/element.h"

static LLVMValueRef divide(const cpu_jit_ctx *c, LLVMValueRef x, LLVMValueRef y,
                           bool rest)
{
  const cpu_jit_ir *m = &c->ir;
  LLVMValueRef none = whole(m, UINT64_MAX), one = whole(m, 1);
  LLVMValueRef zero = compare_bits(m, LLVMIntEQ, y, 0);
  LLVMValueRef safe = choose(m, zero, one, y);
  if (cx_hlo_elem_is_unsigned(c->elem)) {
    LLVMValueRef out = rest ? LLVMBuildURem(m->b, x, safe, "")
                            : LLVMBuildUDiv(m->b, x, safe, "");
    return choose(m, zero, rest ? x : none, out);
  }
  // A division by -1 is a negation, which cannot overflow into a trap.
  LLVMValueRef turned = compare_bits(m, LLVMIntEQ, y, UINT64_MAX);
  safe = choose(m, turned, one, safe);
  if (rest) return choose(m, zero, x, LLVMBuildSRem(m->b, x, safe, ""));
  LLVMValueRef out = LLVMBuildSDiv(m->b, x, safe, "");
  out = choose(m, turned, LLVMBuildNeg(m->b, x, ""), out);
  return choose(m, zero, none, out);
}

static LLVMValueRef shift(const cpu_jit_ctx *c, LLVMOpcode how, LLVMValueRef x,
                          LLVMValueRef n)
{
  const cpu_jit_ir *m = &c->ir;
  const unsigned bits = cx_hlo_elem_bits(c->elem);
  LLVMValueRef in = compare_bits(m, LLVMIntULT, n, bits);
  const bool keeps_sign = how == LLVMAShr;
  n = choose(m, in, n, whole(m, keeps_sign ? bits - 1 : 0));
  LLVMValueRef out = LLVMBuildBinOp(m->b, how, x, n, "");
  return keeps_sign ? out : choose(m, in, out, whole(m, 0));
}

// By squaring; a negative exponent leaves 0, but for the bases 1 and -1.
static LLVMValueRef power(const cpu_jit_ctx *c, LLVMValueRef x, LLVMValueRef n)
{
  const cpu_jit_ir *m = &c->ir;
  const unsigned bits = cx_hlo_elem_bits(c->elem);
  LLVMValueRef zero = whole(m, 0), one = whole(m, 1);
  LLVMValueRef out = one, square = x;
  for (unsigned i = 0; i < bits; i++) {
    LLVMValueRef is =
        compare_bits(m, LLVMIntNE, mask(m, n, (uint64_t)1 << i), 0);
    out = choose(m, is, LLVMBuildMul(m->b, out, square, ""), out);
    if (i + 1 < bits) square = LLVMBuildMul(m->b, square, square, "");
  }
  if (cx_hlo_elem_is_unsigned(c->elem)) return out;
  LLVMValueRef below = compare_bits(m, LLVMIntSLT, n, 0);
  LLVMValueRef is_one = compare_bits(m, LLVMIntEQ, x, 1);
  LLVMValueRef is_minus = compare_bits(m, LLVMIntEQ, x, UINT64_MAX);
  LLVMValueRef odd = compare_bits(m, LLVMIntNE, mask(m, n, 1), 0);
  LLVMValueRef sign = choose(m, odd, whole(m, UINT64_MAX), one);
  LLVMValueRef small = choose(m, is_minus, sign, zero);
  return choose(m, below, choose(m, is_one, one, small), out);
}

static LLVMValueRef sign(const cpu_jit_ctx *c, LLVMValueRef x)
{
  const cpu_jit_ir *m = &c->ir;
  LLVMValueRef other = compare_bits(m, LLVMIntNE, x, 0);
  LLVMValueRef up = LLVMBuildZExt(m->b, other, c->type, "");
  if (cx_hlo_elem_is_unsigned(c->elem)) return up;
  LLVMValueRef down = compare_bits(m, LLVMIntSLT, x, 0);
  return choose(m, down, whole(m, UINT64_MAX), up);
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
  LLVMBuilderRef b = c->ir.b;
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
  LLVMBuilderRef b = c->ir.b;
  if (c->elem == CX_HLO_I1) return bool_op(c, op, x, y);
  switch (op->kind) {
#include "ref/element.def"
    default: break;
  }
  cpu_jit_fail(c->env, "an operation on integers");
  return x;
}
