// jit/element: operations from elements at the same index.
//
// An operation on values that are the same in all lanes stays a scalar one.
#include <stdio.h>

#include "hlo/ops.h"
#include "jit/element.h"

static cpu_jit_ctx ctx_of(cpu_jit_env *env, LLVMBuilderRef b, cx_hlo_elem e,
                          bool wide)
{
  const cx_hlo_elem part = cx_hlo_elem_part(e);
  const unsigned lanes = wide ? (unsigned)env->lanes : 0;
  cpu_jit_ctx c = { .env = env,
                    .elem = e,
                    .type = cpu_jit_register_type(env, part, wide),
                    .ir = cpu_jit_ir_of(env, b, part == CX_HLO_F64, lanes) };
  if (!cx_hlo_elem_is_float(part)) c.ir.whole = c.type;
  return c;
}

LLVMValueRef cpu_jit_call(const cpu_jit_ctx *c, const char *name,
                          LLVMValueRef x, LLVMValueRef y)
{
  LLVMTypeRef t = LLVMTypeOf(x);
  LLVMValueRef args[] = { x, y };
  return intrinsic(&c->ir, name, t, args, y == NULL ? 1 : 2);
}

// The operation of that name on numbers, such as "max" and "maximum".
static LLVMValueRef extreme(const cpu_jit_ctx *c, const char *name,
                            LLVMValueRef x, LLVMValueRef y)
{
  char full[24];
  const char *kind = cx_hlo_elem_is_unsigned(c->elem) ? "u" : "s";
  const bool real = cx_hlo_elem_is_float(c->elem);
  snprintf(full, sizeof full, "llvm.%s%s%s", real ? "" : kind, name,
           real ? "imum" : "");
  return cpu_jit_call(c, full, x, y);
}

LLVMValueRef cpu_jit_max(const cpu_jit_ctx *c, LLVMValueRef x, LLVMValueRef y)
{
  return c->elem == CX_HLO_I1 ? any_of(&c->ir, x, y) : extreme(c, "max", x, y);
}

LLVMValueRef cpu_jit_min(const cpu_jit_ctx *c, LLVMValueRef x, LLVMValueRef y)
{
  return c->elem == CX_HLO_I1 ? both(&c->ir, x, y) : extreme(c, "min", x, y);
}

// ---- compare ----

// Numbers whose signed order is the total order of the floats.
static LLVMValueRef order_key(const cpu_jit_ctx *c, LLVMValueRef x)
{
  const cpu_jit_ir *m = &c->ir;
  LLVMValueRef i = as_bits(m, x);
  LLVMValueRef sign = LLVMBuildAShr(m->b, i, whole(m, m->wide ? 63 : 31), "");
  return LLVMBuildXor(m->b, i, right(m, sign, 1), "");
}

static const LLVMIntPredicate signed_predicate[] = { LLVMIntEQ,  LLVMIntNE,
                                                     LLVMIntSGE, LLVMIntSGT,
                                                     LLVMIntSLE, LLVMIntSLT };
static const LLVMIntPredicate unsigned_predicate[] = { LLVMIntEQ,  LLVMIntNE,
                                                       LLVMIntUGE, LLVMIntUGT,
                                                       LLVMIntULE, LLVMIntULT };
static const LLVMRealPredicate real_predicate[] = { LLVMRealOEQ, LLVMRealUNE,
                                                    LLVMRealOGE, LLVMRealOGT,
                                                    LLVMRealOLE, LLVMRealOLT };

static LLVMValueRef compare(const cpu_jit_ctx *c, const cx_hlo_op *op,
                            const cpu_jit_val *x, const cpu_jit_val *y)
{
  const int64_t d = cx_hlo_op_int(op, CX_HLO_A_COMPARISON_DIRECTION);
  const cx_hlo_attr *type = cx_hlo_op_attr(op, CX_HLO_A_COMPARE_TYPE);
  if (x->im != NULL) {
    LLVMValueRef re =
        LLVMBuildFCmp(c->ir.b, real_predicate[d], x->re, y->re, "");
    LLVMValueRef im =
        LLVMBuildFCmp(c->ir.b, real_predicate[d], x->im, y->im, "");
    return d == 0 ? both(&c->ir, re, im) : any_of(&c->ir, re, im);
  }
  if (cx_hlo_elem_is_float(c->elem)) {
    if (type == NULL || type->as.integer != CX_HLO_TOTALORDER) {
      return LLVMBuildFCmp(c->ir.b, real_predicate[d], x->re, y->re, "");
    }
    return LLVMBuildICmp(c->ir.b, signed_predicate[d], order_key(c, x->re),
                         order_key(c, y->re), "");
  }
  const bool s =
      cx_hlo_elem_is_int(c->elem) && !cx_hlo_elem_is_unsigned(c->elem);
  return LLVMBuildICmp(c->ir.b, s ? signed_predicate[d] : unsigned_predicate[d],
                       x->re, y->re, "");
}

// ---- complex ----

#define NONE break
#define COMPLEX_VALUE(value) break
#define COMPLEX(value, code) \
  code;                      \
  break
#define FUNCTION(name) cpu_jit_math_complex(&m, CPU_JIT_##name, p, q, r)
#define PARTS                                \
  r[0] = cpu_jit_real_op(c, op, p[0], q[0]); \
  r[1] = cpu_jit_real_op(c, op, p[1], q[1])
#define CPU_ELEMENT(id, ns, real, integer, truth, complexes) \
  case CX_HLO_OP_##id: complexes;

static void complex_op(const cpu_jit_ctx *c, const cx_hlo_op *op,
                       const cpu_jit_val *x, const cpu_jit_val *y,
                       cpu_jit_val *out)
{
  const cpu_jit_math_env m = c->ir.env;
  const LLVMValueRef p[2] = { x->re, x->im };
  const LLVMValueRef q[2] = { y->re, y->im };
  LLVMValueRef r[2] = { NULL, NULL };
  switch (op->kind) {
#include "ref/element.def"
    default: break;
  }
  if (r[0] == NULL) {
    cpu_jit_fail(c->env, "an operation on complex numbers");
    r[0] = p[0];
    r[1] = p[1];
  }
  out->re = r[0];
  out->im = r[1];
}

// ---- quotients by one number ----

// On AVX-512 a division of 16 floats takes 10 cycles or more. The product of
// doubles below takes 8, and is computed beside divisions that are left. Loops
// over more bytes wait for memory, and the additional instructions made them
// 10 % slower: they divide.
#define MOST_BYTES (8 << 20)

static bool has_one_divisor(const cpu_jit_env *env, const cx_hlo_op *op,
                            const cpu_jit_val *args)
{
  return op->kind == CX_HLO_OP_DIVIDE && args[0].elem == CX_HLO_F32 &&
         args[0].wide && !args[1].wide && env->target->has_masks &&
         env->lanes > env->target->lanes && env->bytes <= MOST_BYTES;
}

// x / y is x (1/y) in double precision, and has the same bits. Where the
// quotient of two floats does not lie halfway between two neighbouring floats,
// it is at least 2^-49 of itself away from there. The product is within 2^-52
// of the quotient. So rounded to 50 bits it is on the same side, and it is the
// quotient where that does lie halfway, which happens below the least normal
// number. Zeros, infinities and NaN come out as they do from a division.
static cpu_jit_val divide_by_one(cpu_jit_env *env, const cpu_jit_val *x,
                                 const cpu_jit_val *y)
{
  LLVMBuilderRef before = cpu_jit_at(env, y->level);
  const cpu_jit_ir one = cpu_jit_ir_of(env, before, true, 0);
  cpu_jit_val inverse = { .elem = CX_HLO_F64, .level = y->level };
  inverse.re = LLVMBuildFPExt(before, y->re, env->f64, "");
  inverse.re = quotient(&one, num(&one, 1), inverse.re);
  inverse = cpu_jit_widen(env, inverse);
  cpu_jit_val out = { .elem = CX_HLO_F32,
                      .level = cpu_jit_deeper(x->level, y->level),
                      .wide = true };
  LLVMBuilderRef b = cpu_jit_at(env, out.level);
  const unsigned lanes = (unsigned)env->lanes;
  const cpu_jit_ir narrow = cpu_jit_ir_of(env, b, false, lanes);
  const cpu_jit_ir wide = cpu_jit_ir_of(env, b, true, lanes);
  LLVMValueRef q = mul(&wide, widened(&narrow, &wide, x->re), inverse.re);
  q = plus(&wide, as_bits(&wide, q), whole(&wide, 4));
  q = as_real(&wide, mask(&wide, q, ~UINT64_C(7)));
  out.re = narrowed(&narrow, q);
  return out;
}

// ---- all ----

static LLVMValueRef select_part(const cpu_jit_ctx *c, LLVMValueRef p,
                                LLVMValueRef x, LLVMValueRef y)
{
  return x == y ? x : choose(&c->ir, p, x, y);
}

// The result of an operation on floats.
static LLVMValueRef rounded(const cpu_jit_ctx *c, const cx_hlo_op *op,
                            LLVMValueRef x)
{
  switch (op->kind) {
    case CX_HLO_OP_NEGATE:
    case CX_HLO_OP_ABS:
    case CX_HLO_OP_MAXIMUM:
    case CX_HLO_OP_MINIMUM: return x;  // one of the operands, or its opposite
    case CX_HLO_OP_ADD:
    case CX_HLO_OP_SUBTRACT:
    case CX_HLO_OP_MULTIPLY:
    case CX_HLO_OP_DIVIDE:
    case CX_HLO_OP_SQRT:
      return cpu_jit_round_arithmetic(c->env, c->ir.b, x, c->elem);
    default: return cpu_jit_round(c->env, c->ir.b, x, c->elem);
  }
}

static void emit(const cpu_jit_ctx *c, const cx_hlo_op *op,
                 const cpu_jit_val *a, cpu_jit_val *out)
{
  switch (op->kind) {
    case CX_HLO_OP_SELECT:
      out->re = select_part(c, a[0].re, a[1].re, a[2].re);
      if (a[1].im != NULL) out->im = select_part(c, a[0].re, a[1].im, a[2].im);
      return;
    case CX_HLO_OP_CLAMP:
      out->re = cpu_jit_min(c, cpu_jit_max(c, a[1].re, a[0].re), a[2].re);
      return;
    case CX_HLO_OP_COMPARE: out->re = compare(c, op, &a[0], &a[1]); return;
    case CX_HLO_OP_REAL: out->re = a[0].re; return;
    case CX_HLO_OP_IMAG:
      out->re = a[0].im != NULL ? a[0].im : num(&c->ir, 0);
      return;
    case CX_HLO_OP_COMPLEX:
      out->re = a[0].re;
      out->im = a[1].re;
      return;
    case CX_HLO_OP_ABS:
      if (a[0].im != NULL) {
        const cpu_jit_math_env m = c->ir.env;
        out->re =
            cpu_jit_complex_abs(&m, (LLVMValueRef[2]){ a[0].re, a[0].im });
        return;
      }
      break;
    default: break;
  }
  const cpu_jit_val *y = op->n_operands > 1 ? &a[1] : &a[0];
  if (a[0].im != NULL) {
    complex_op(c, op, &a[0], y, out);
  } else if (cx_hlo_elem_is_float(c->elem)) {
    out->re = rounded(c, op, cpu_jit_real_op(c, op, a[0].re, y->re));
  } else {
    out->re = cpu_jit_int_op(c, op, a[0].re, y->re);
  }
}

cpu_jit_val cpu_jit_element(cpu_jit_env *env, const cx_hlo_op *op,
                            const cpu_jit_val *args)
{
  if (has_one_divisor(env, op, args)) {
    return divide_by_one(env, &args[0], &args[1]);
  }
  cpu_jit_val in[8];
  const size_t n = op->n_operands < 8 ? op->n_operands : 8;
  const cx_hlo_elem to = cpu_jit_type(&op->results[0])->elem;
  cpu_jit_val out = { .elem = to };
  for (size_t i = 0; i < n; i++) {
    if (args[i].level > out.level) out.level = args[i].level;
    out.wide |= args[i].wide;
  }
  for (size_t i = 0; i < n; i++) {
    in[i] = out.wide ? cpu_jit_widen(env, args[i]) : args[i];
  }
  if (op->kind == CX_HLO_OP_MAP) {
    cpu_jit_region(env, &op->regions[0], in, n, &out, 1);
    return out;
  }
  if (op->kind == CX_HLO_OP_CONVERT) return cpu_jit_convert(env, in[0], to);
  if (op->kind == CX_HLO_OP_BITCAST_CONVERT) {
    return cpu_jit_bitcast(env, in[0], to);
  }
  const size_t main = op->kind == CX_HLO_OP_SELECT ? 1 : 0;
  const cpu_jit_ctx c =
      ctx_of(env, cpu_jit_at(env, out.level), in[main].elem, out.wide);
  emit(&c, op, in, &out);
  return out;
}
