// jit/math_reduce: arguments of sin, cos and tan within pi/4 of 0.
//
// Up to 2^20 the multiple of pi/2 is taken off in parts of 33 bits, whose
// products with it are exact (Cody and Waite; the parts are fdlibm's). Beyond,
// and where doubles cancel so far that even those parts are too few, one scalar
// function does it with the bits of 2/pi that matter for the exponent (M. Payne
// and R. Hanek, Radian reduction for trigonometric functions, 1983). Such
// lanes are rare, so the vector only asks whether it has one.
#include "jit/math_parts.h"

// Three consecutive words of 2/pi from bit `from` on, and one as the end.
static void load_window(const maths *m, value from, value window[3])
{
  LLVMTypeRef i64 = m->whole;
  LLVMTypeRef array = LLVMArrayType2(i64, CPU_JIT_TWO_OVER_PI_WORDS);
  value table = LLVMGetNamedGlobal(m->env->module, "calx.two_over_pi");
  if (!table) {
    value words[CPU_JIT_TWO_OVER_PI_WORDS];
    for (int i = 0; i < CPU_JIT_TWO_OVER_PI_WORDS; i++)
      words[i] = LLVMConstInt(i64, cpu_jit_two_over_pi[i], false);
    table = LLVMAddGlobal(m->env->module, array, "calx.two_over_pi");
    LLVMSetInitializer(table,
                       LLVMConstArray2(i64, words, CPU_JIT_TWO_OVER_PI_WORDS));
    LLVMSetLinkage(table, LLVMInternalLinkage);
    LLVMSetGlobalConstant(table, true);
  }
  value first = right(m, from, 6), shift = mask(m, from, 63), words[4];
  for (unsigned i = 0; i < 4; i++) {
    value index[] = { LLVMConstInt(i64, 0, false),
                      plus(m, first, whole(m, i)) };
    value at = LLVMBuildInBoundsGEP2(m->b, array, table, index, 2, "");
    words[i] = LLVMBuildLoad2(m->b, i64, at, "");
  }
  for (unsigned i = 0; i < 3; i++) {
    value all[] = { words[i], words[i + 1], shift };
    window[i] = intrinsic(m, "llvm.fshl", i64, all, 3);
  }
}

// The low and high words of a*b + c.
static void multiply(const maths *m, value a, value b, value c, value *low,
                     value *high)
{
  LLVMTypeRef i128 = LLVMIntTypeInContext(m->env->context, 128);
  value wide[] = { LLVMBuildZExt(m->b, a, i128, ""),
                   LLVMBuildZExt(m->b, b, i128, "") };
  value p = LLVMBuildMul(m->b, wide[0], wide[1], "");
  if (c) p = LLVMBuildAdd(m->b, p, LLVMBuildZExt(m->b, c, i128, ""), "");
  *low = LLVMBuildTrunc(m->b, p, m->whole, "");
  p = LLVMBuildLShr(m->b, p, LLVMConstInt(i128, 64, false), "");
  *high = LLVMBuildTrunc(m->b, p, m->whole, "");
}

static value join(const maths *m, value high, value low, value shift)
{
  value all[] = { high, low, shift };
  return intrinsic(m, "llvm.fshl", m->whole, all, 3);
}

// |x| * 2/pi modulo 4 as a fixed-point number of 192 bits, two of them before
// the point.
static void quarter_turns(const maths *m, value x, value turns[3])
{
  value bits = as_bits(m, x), window[3], carry;
  value exponent = mask(m, right(m, bits, 52), 0x7ff);
  value mantissa = mask(m, bits, ((uint64_t)1 << 52) - 1);
  mantissa = LLVMBuildOr(m->b, mantissa, whole(m, (uint64_t)1 << 52), "");
  // x = mantissa * 2^e with e = exponent - 1075. The bits of 2/pi of weights
  // from 2^(1-e) down count; the table begins with 64 zeros at weight 2^63.
  load_window(m, minus(m, exponent, whole(m, 1075 + 2 - 64)), window);
  multiply(m, mantissa, window[2], NULL, &turns[2], &carry);
  multiply(m, mantissa, window[1], carry, &turns[1], &carry);
  turns[0] = plus(m, LLVMBuildMul(m->b, mantissa, window[0], ""), carry);
}

// The fraction high.low, a signed number of 128 bits after the point, as a
// pair. It is never less than 2^-63 for a double's argument.
static pair fraction_of(const maths *m, value high, value low)
{
  value zero = whole(m, 0);
  value below = LLVMBuildICmp(m->b, LLVMIntSLT, high, zero, "");
  value none = LLVMBuildICmp(m->b, LLVMIntEQ, low, zero, "");
  value borrow = LLVMBuildZExt(m->b, none, m->whole, "");
  value turned = plus(m, LLVMBuildNot(m->b, high, ""), borrow);
  high = choose(m, below, turned, high);
  low = choose(m, below, minus(m, zero, low), low);

  value zeros[] = { high, LLVMConstInt(LLVMInt1TypeInContext(m->env->context),
                                       0, false) };
  value shift = mask(m, intrinsic(m, "llvm.ctlz", m->whole, zeros, 2), 63);
  high = join(m, high, low, shift);
  low = LLVMBuildShl(m->b, low, shift, "");
  value top = LLVMBuildSIToFP(m->b, right(m, high, 11), m->real, "");
  value rest = LLVMBuildOr(m->b, left(m, mask(m, high, 0x7ff), 42),
                           right(m, low, 22), "");
  rest = LLVMBuildSIToFP(m->b, rest, m->real, "");

  value scale = power_of_two(m, minus(m, zero, shift));
  scale = choose(m, below, negative(m, scale), scale);
  return (pair){ mul(m, mul(m, top, num(m, 0x1p-53)), scale),
                 mul(m, mul(m, rest, num(m, 0x1p-106)), scale) };
}

// { double, double, i64 } calx.reduce(double x) for 1/2 <= |x| < infinity.
static value exact_reduction(cpu_jit_math_env *env, LLVMTypeRef *out_type)
{
  maths outer = maths_of(env, true, 0);
  LLVMTypeRef parts[] = { outer.real, outer.real, outer.whole };
  LLVMTypeRef result_type =
      LLVMStructTypeInContext(env->context, parts, 3, false);
  *out_type = LLVMFunctionType(result_type, &outer.real, 1, false);
  cpu_jit_math_env inner;
  value function;
  if (!cpu_jit_begin(env, "calx.reduce", *out_type, &function, &inner))
    return function;

  maths scalar = maths_of(&inner, true, 0), *m = &scalar;
  value x = LLVMGetParam(function, 0), turns[3];
  quarter_turns(m, x, turns);
  value n = right(m, plus(m, turns[0], whole(m, (uint64_t)1 << 61)), 62);
  pair f = fraction_of(m, join(m, turns[0], turns[1], whole(m, 2)),
                       join(m, turns[1], turns[2], whole(m, 2)));
  pair r = product_of(m, f.hi, num(m, 1.5707963267948966));
  r.lo = add(m, r.lo, mul(m, f.hi, num(m, 6.123233995736766e-17)));
  r.lo = add(m, r.lo, mul(m, f.lo, num(m, 1.5707963267948966)));
  r = quick_sum(m, r.hi, r.lo);

  value below = less(m, x, num(m, 0));
  value result = LLVMGetUndef(result_type);
  value fields[] = { choose(m, below, negative(m, r.hi), r.hi),
                     choose(m, below, negative(m, r.lo), r.lo),
                     choose(m, below, minus(m, whole(m, 0), n), n) };
  for (unsigned i = 0; i < 3; i++)
    result = LLVMBuildInsertValue(m->b, result, fields[i], i, "");
  cpu_jit_end(&inner, result);
  return function;
}

// What a reduction gives, as it lies in memory or in registers.
typedef struct reduction {
  value part[3];  // hi, lo, n
} reduction;

static value element_at(const maths *m, LLVMTypeRef type, value base, value i)
{
  return LLVMBuildInBoundsGEP2(m->b, type, base, &i, 1, "");
}

// Does the lanes that `wanted` names again, one by one.
static reduction reduce_lanes(const maths *m, value x, value wanted,
                              const reduction *fast)
{
  maths one = maths_of(m->env, true, 0);
  LLVMTypeRef elements[] = { one.real, one.real, one.whole }, function_type;
  value function = exact_reduction(m->env, &function_type);
  value marks = LLVMBuildZExt(m->b, wanted, m->whole, "");
  value memory[3], x_memory = LLVMBuildAlloca(m->b, m->real, "");
  value marks_memory = LLVMBuildAlloca(m->b, m->whole, "");
  LLVMBuildStore(m->b, x, x_memory);
  LLVMBuildStore(m->b, marks, marks_memory);
  for (int i = 0; i < 3; i++) {
    memory[i] = LLVMBuildAlloca(m->b, LLVMTypeOf(fast->part[i]), "");
    LLVMBuildStore(m->b, fast->part[i], memory[i]);
  }

  LLVMBasicBlockRef before = LLVMGetInsertBlock(m->b), blocks[4];
  for (int i = 0; i < 4; i++)
    blocks[i] = LLVMAppendBasicBlockInContext(
        m->env->context, LLVMGetBasicBlockParent(before), "");
  LLVMBasicBlockRef head = blocks[0], work = blocks[1], next = blocks[2];
  LLVMBuildBr(m->b, head);
  LLVMPositionBuilderAtEnd(m->b, head);
  value lane = LLVMBuildPhi(m->b, one.whole, "");
  value mark = LLVMBuildLoad2(m->b, one.whole,
                              element_at(m, one.whole, marks_memory, lane), "");
  value marked = LLVMBuildICmp(m->b, LLVMIntNE, mark, whole(&one, 0), "");
  LLVMBuildCondBr(m->b, marked, work, next);

  LLVMPositionBuilderAtEnd(m->b, work);
  value argument = LLVMBuildLoad2(m->b, one.real,
                                  element_at(m, one.real, x_memory, lane), "");
  value r = LLVMBuildCall2(m->b, function_type, function, &argument, 1, "");
  for (unsigned i = 0; i < 3; i++)
    LLVMBuildStore(m->b, LLVMBuildExtractValue(m->b, r, i, ""),
                   element_at(m, elements[i], memory[i], lane));
  LLVMBuildBr(m->b, next);

  LLVMPositionBuilderAtEnd(m->b, next);
  value following = plus(&one, lane, whole(&one, 1));
  value more = LLVMBuildICmp(m->b, LLVMIntULT, following,
                             whole(&one, m->lanes ? m->lanes : 1), "");
  LLVMBuildCondBr(m->b, more, head, blocks[3]);
  value from[] = { whole(&one, 0), following };
  LLVMBasicBlockRef from_blocks[] = { before, next };
  LLVMAddIncoming(lane, from, from_blocks, 2);

  LLVMPositionBuilderAtEnd(m->b, blocks[3]);
  reduction result;
  for (int i = 0; i < 3; i++)
    result.part[i] =
        LLVMBuildLoad2(m->b, LLVMTypeOf(fast->part[i]), memory[i], "");
  return result;
}

static reduction reduce_in_parts(const maths *m, value x, bool was_float)
{
  value sum = mad(m, x, num(m, 0.63661977236758138), rounder(m));
  value multiple = sub(m, sum, rounder(m));
  value a = sub(m, x, mul(m, multiple, num(m, 1.5707963267341256)));
  if (was_float) {
    value r = sub(m, a, mul(m, multiple, num(m, 6.077100506506192e-11)));
    return (reduction){ { r, num(m, 0), as_bits(m, sum) } };
  }
  value second = mul(m, multiple, num(m, 6.077100506303966e-11));
  pair r = sum_of(m, a, negative(m, second));
  value third = mul(m, multiple, num(m, 2.0222662487959506e-21));
  r = quick_sum(m, r.hi, sub(m, r.lo, third));
  return (reduction){ { r.hi, r.lo, as_bits(m, sum) } };
}

pair cpu_jit_reduce(const maths *m, value x, bool was_float, value *out_n)
{
  reduction fast = reduce_in_parts(m, x, was_float);
  value size = absolute(m, x);
  value many = LLVMBuildFCmp(m->b, LLVMRealOGE, size, num(m, 0x1p20), "");
  if (!was_float) {
    value near = less(m, absolute(m, fast.part[0]), num(m, 0x1p-40));
    near = both(m, near, less(m, num(m, 0.5), size));
    many = LLVMBuildOr(m->b, many, near, "");
  }
  many = both(m, many, less(m, size, infinity(m)));
  value any = many;
  if (m->lanes) {
    LLVMTypeRef bits = LLVMIntTypeInContext(m->env->context, m->lanes);
    any = LLVMBuildBitCast(m->b, many, bits, "");
    any = LLVMBuildICmp(m->b, LLVMIntNE, any, LLVMConstInt(bits, 0, false), "");
  }

  LLVMBasicBlockRef before = LLVMGetInsertBlock(m->b);
  value function = LLVMGetBasicBlockParent(before);
  LLVMContextRef c = m->env->context;
  LLVMBasicBlockRef slow = LLVMAppendBasicBlockInContext(c, function, "");
  LLVMBasicBlockRef join_block = LLVMAppendBasicBlockInContext(c, function, "");
  LLVMBuildCondBr(m->b, any, slow, join_block);
  LLVMPositionBuilderAtEnd(m->b, slow);
  reduction exact = reduce_lanes(m, x, many, &fast);
  LLVMBasicBlockRef after = LLVMGetInsertBlock(m->b);
  LLVMBuildBr(m->b, join_block);
  LLVMPositionBuilderAtEnd(m->b, join_block);
  value result[3];
  for (int i = 0; i < 3; i++) {
    result[i] = LLVMBuildPhi(m->b, LLVMTypeOf(fast.part[i]), "");
    value values[] = { fast.part[i], exact.part[i] };
    LLVMBasicBlockRef blocks[] = { before, after };
    LLVMAddIncoming(result[i], values, blocks, 2);
  }
  *out_n = result[2];
  return (pair){ result[0], result[1] };
}
