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
static void load_window(const cpu_jit_ir *m, LLVMValueRef from,
                        LLVMValueRef window[3])
{
  LLVMTypeRef i64 = m->whole;
  LLVMTypeRef array = LLVMArrayType2(i64, CPU_JIT_TWO_OVER_PI_WORDS);
  LLVMValueRef table = LLVMGetNamedGlobal(m->env.module, "calx.two_over_pi");
  if (!table) {
    LLVMValueRef words[CPU_JIT_TWO_OVER_PI_WORDS];
    for (int i = 0; i < CPU_JIT_TWO_OVER_PI_WORDS; i++)
      words[i] = LLVMConstInt(i64, cpu_jit_two_over_pi[i], false);
    table = LLVMAddGlobal(m->env.module, array, "calx.two_over_pi");
    LLVMSetInitializer(table,
                       LLVMConstArray2(i64, words, CPU_JIT_TWO_OVER_PI_WORDS));
    LLVMSetLinkage(table, LLVMInternalLinkage);
    LLVMSetGlobalConstant(table, true);
  }
  LLVMValueRef first = right(m, from, 6), shift = mask(m, from, 63), words[4];
  for (unsigned i = 0; i < 4; i++) {
    LLVMValueRef index[] = { LLVMConstInt(i64, 0, false),
                             plus(m, first, whole(m, i)) };
    LLVMValueRef at = LLVMBuildInBoundsGEP2(m->b, array, table, index, 2, "");
    words[i] = LLVMBuildLoad2(m->b, i64, at, "");
  }
  for (unsigned i = 0; i < 3; i++) {
    LLVMValueRef all[] = { words[i], words[i + 1], shift };
    window[i] = intrinsic(m, "llvm.fshl", i64, all, 3);
  }
}

// The low and high words of a*b + c.
static void multiply(const cpu_jit_ir *m, LLVMValueRef a, LLVMValueRef b,
                     LLVMValueRef c, LLVMValueRef *low, LLVMValueRef *high)
{
  LLVMTypeRef i128 = LLVMIntTypeInContext(m->env.context, 128);
  LLVMValueRef wide[] = { LLVMBuildZExt(m->b, a, i128, ""),
                          LLVMBuildZExt(m->b, b, i128, "") };
  LLVMValueRef p = LLVMBuildMul(m->b, wide[0], wide[1], "");
  if (c) p = LLVMBuildAdd(m->b, p, LLVMBuildZExt(m->b, c, i128, ""), "");
  *low = LLVMBuildTrunc(m->b, p, m->whole, "");
  p = LLVMBuildLShr(m->b, p, LLVMConstInt(i128, 64, false), "");
  *high = LLVMBuildTrunc(m->b, p, m->whole, "");
}

static LLVMValueRef join(const cpu_jit_ir *m, LLVMValueRef high,
                         LLVMValueRef low, LLVMValueRef shift)
{
  LLVMValueRef all[] = { high, low, shift };
  return intrinsic(m, "llvm.fshl", m->whole, all, 3);
}

// |x| * 2/pi modulo 4 as a fixed-point number of 192 bits, two of them before
// the point.
static void quarter_turns(const cpu_jit_ir *m, LLVMValueRef x,
                          LLVMValueRef turns[3])
{
  LLVMValueRef bits = as_bits(m, x), window[3], carry;
  LLVMValueRef exponent = mask(m, right(m, bits, 52), 0x7ff);
  LLVMValueRef mantissa = mask(m, bits, ((uint64_t)1 << 52) - 1);
  mantissa = with_bits(m, mantissa, (uint64_t)1 << 52);
  // x = mantissa * 2^e with e = exponent - 1075. The bits of 2/pi of weights
  // from 2^(1-e) down count; the table begins with 64 zeros at weight 2^63.
  load_window(m, minus(m, exponent, whole(m, 1075 + 2 - 64)), window);
  multiply(m, mantissa, window[2], NULL, &turns[2], &carry);
  multiply(m, mantissa, window[1], carry, &turns[1], &carry);
  turns[0] = plus(m, LLVMBuildMul(m->b, mantissa, window[0], ""), carry);
}

// The fraction high.low, a signed number of 128 bits after the point, as a
// pair. It is never less than 2^-63 for a double's argument.
static cpu_jit_pair fraction_of(const cpu_jit_ir *m, LLVMValueRef high,
                                LLVMValueRef low)
{
  LLVMValueRef zero = whole(m, 0);
  LLVMValueRef below = compare_bits(m, LLVMIntSLT, high, 0);
  LLVMValueRef none = compare_bits(m, LLVMIntEQ, low, 0);
  LLVMValueRef borrow = LLVMBuildZExt(m->b, none, m->whole, "");
  LLVMValueRef turned = plus(m, not_of(m, high), borrow);
  high = choose(m, below, turned, high);
  low = choose(m, below, minus(m, zero, low), low);

  LLVMValueRef zeros[] = {
    high, LLVMConstInt(LLVMInt1TypeInContext(m->env.context), 0, false)
  };
  LLVMValueRef shift =
      mask(m, intrinsic(m, "llvm.ctlz", m->whole, zeros, 2), 63);
  high = join(m, high, low, shift);
  low = LLVMBuildShl(m->b, low, shift, "");
  LLVMValueRef top = LLVMBuildSIToFP(m->b, right(m, high, 11), m->real, "");
  LLVMValueRef rest =
      any_of(m, left(m, mask(m, high, 0x7ff), 42), right(m, low, 22));
  rest = LLVMBuildSIToFP(m->b, rest, m->real, "");

  LLVMValueRef scale = power_of_two(m, minus(m, zero, shift));
  scale = choose(m, below, negative(m, scale), scale);
  return (cpu_jit_pair){ mul(m, mul(m, top, num(m, 0x1p-53)), scale),
                         mul(m, mul(m, rest, num(m, 0x1p-106)), scale) };
}

// { double, double, i64 } calx.reduce(double x) for 1/2 <= |x| < infinity.
static LLVMValueRef exact_reduction(const cpu_jit_math_env *env,
                                    LLVMTypeRef *out_type)
{
  cpu_jit_ir outer = maths_of(env, true, 0);
  LLVMTypeRef parts[] = { outer.real, outer.real, outer.whole };
  LLVMTypeRef result_type =
      LLVMStructTypeInContext(env->context, parts, 3, false);
  *out_type = LLVMFunctionType(result_type, &outer.real, 1, false);
  cpu_jit_math_env inner;
  LLVMValueRef function;
  if (!cpu_jit_begin(env, "calx.reduce", *out_type, &function, &inner))
    return function;

  cpu_jit_ir scalar = maths_of(&inner, true, 0), *m = &scalar;
  LLVMValueRef x = LLVMGetParam(function, 0), turns[3];
  quarter_turns(m, x, turns);
  LLVMValueRef n = right(m, plus(m, turns[0], whole(m, (uint64_t)1 << 61)), 62);
  cpu_jit_pair f = fraction_of(m, join(m, turns[0], turns[1], whole(m, 2)),
                               join(m, turns[1], turns[2], whole(m, 2)));
  cpu_jit_pair r = product_of(m, f.hi, num(m, 1.5707963267948966));
  r.lo = add(m, r.lo, mul(m, f.hi, num(m, 6.123233995736766e-17)));
  r.lo = add(m, r.lo, mul(m, f.lo, num(m, 1.5707963267948966)));
  r = quick_sum(m, r.hi, r.lo);

  LLVMValueRef below = less(m, x, num(m, 0));
  LLVMValueRef result = LLVMGetUndef(result_type);
  LLVMValueRef fields[] = { choose(m, below, negative(m, r.hi), r.hi),
                            choose(m, below, negative(m, r.lo), r.lo),
                            choose(m, below, minus(m, whole(m, 0), n), n) };
  for (unsigned i = 0; i < 3; i++)
    result = LLVMBuildInsertValue(m->b, result, fields[i], i, "");
  cpu_jit_end(&inner, result);
  return function;
}

// What a reduction gives, as it lies in memory or in registers.
typedef struct reduction {
  LLVMValueRef part[3];  // hi, lo, n
} reduction;

static LLVMValueRef element_at(const cpu_jit_ir *m, LLVMTypeRef type,
                               LLVMValueRef base, LLVMValueRef i)
{
  return LLVMBuildInBoundsGEP2(m->b, type, base, &i, 1, "");
}

static LLVMValueRef load_element(const cpu_jit_ir *m, LLVMTypeRef type,
                                 LLVMValueRef base, LLVMValueRef i)
{
  return LLVMBuildLoad2(m->b, type, element_at(m, type, base, i), "");
}

// Memory on the stack that holds v.
static LLVMValueRef spilled(const cpu_jit_ir *m, LLVMValueRef v)
{
  LLVMValueRef memory = LLVMBuildAlloca(m->b, LLVMTypeOf(v), "");
  LLVMBuildStore(m->b, v, memory);
  return memory;
}

// Does the lanes that `wanted` names again, one by one.
static reduction reduce_lanes(const cpu_jit_ir *m, LLVMValueRef x,
                              LLVMValueRef wanted, const reduction *fast)
{
  cpu_jit_ir one = maths_of(&m->env, true, 0);
  LLVMTypeRef elements[] = { one.real, one.real, one.whole }, function_type;
  LLVMValueRef function = exact_reduction(&m->env, &function_type);
  LLVMValueRef marks = LLVMBuildZExt(m->b, wanted, m->whole, "");
  LLVMValueRef memory[3], x_memory = spilled(m, x);
  LLVMValueRef marks_memory = spilled(m, marks);
  for (int i = 0; i < 3; i++) memory[i] = spilled(m, fast->part[i]);

  LLVMBasicBlockRef before = LLVMGetInsertBlock(m->b), blocks[4];
  for (int i = 0; i < 4; i++)
    blocks[i] = LLVMAppendBasicBlockInContext(
        m->env.context, LLVMGetBasicBlockParent(before), "");
  LLVMBasicBlockRef head = blocks[0], work = blocks[1], next = blocks[2];
  LLVMBuildBr(m->b, head);
  LLVMPositionBuilderAtEnd(m->b, head);
  LLVMValueRef lane = LLVMBuildPhi(m->b, one.whole, "");
  LLVMValueRef mark = load_element(m, one.whole, marks_memory, lane);
  LLVMValueRef marked = compare_bits(&one, LLVMIntNE, mark, 0);
  LLVMBuildCondBr(m->b, marked, work, next);

  LLVMPositionBuilderAtEnd(m->b, work);
  LLVMValueRef argument = load_element(m, one.real, x_memory, lane);
  LLVMValueRef r =
      LLVMBuildCall2(m->b, function_type, function, &argument, 1, "");
  for (unsigned i = 0; i < 3; i++)
    LLVMBuildStore(m->b, LLVMBuildExtractValue(m->b, r, i, ""),
                   element_at(m, elements[i], memory[i], lane));
  LLVMBuildBr(m->b, next);

  LLVMPositionBuilderAtEnd(m->b, next);
  LLVMValueRef following = plus(&one, lane, whole(&one, 1));
  LLVMValueRef more =
      compare_bits(&one, LLVMIntULT, following, m->lanes ? m->lanes : 1);
  LLVMBuildCondBr(m->b, more, head, blocks[3]);
  LLVMValueRef from[] = { whole(&one, 0), following };
  LLVMBasicBlockRef from_blocks[] = { before, next };
  LLVMAddIncoming(lane, from, from_blocks, 2);

  LLVMPositionBuilderAtEnd(m->b, blocks[3]);
  reduction result;
  for (int i = 0; i < 3; i++)
    result.part[i] =
        LLVMBuildLoad2(m->b, LLVMTypeOf(fast->part[i]), memory[i], "");
  return result;
}

static reduction reduce_in_parts(const cpu_jit_ir *m, LLVMValueRef x,
                                 bool was_float)
{
  LLVMValueRef sum = mad(m, x, num(m, 0.63661977236758138), rounder(m));
  LLVMValueRef multiple = sub(m, sum, rounder(m));
  LLVMValueRef a = sub(m, x, mul(m, multiple, num(m, 1.5707963267341256)));
  if (was_float) {
    LLVMValueRef r = sub(m, a, mul(m, multiple, num(m, 6.077100506506192e-11)));
    return (reduction){ { r, num(m, 0), as_bits(m, sum) } };
  }
  LLVMValueRef second = mul(m, multiple, num(m, 6.077100506303966e-11));
  cpu_jit_pair r = sum_of(m, a, negative(m, second));
  LLVMValueRef third = mul(m, multiple, num(m, 2.0222662487959506e-21));
  r = quick_sum(m, r.hi, sub(m, r.lo, third));
  return (reduction){ { r.hi, r.lo, as_bits(m, sum) } };
}

cpu_jit_pair cpu_jit_reduce(const cpu_jit_ir *m, LLVMValueRef x, bool was_float,
                            LLVMValueRef *out_n)
{
  reduction fast = reduce_in_parts(m, x, was_float);
  LLVMValueRef size = absolute(m, x);
  LLVMValueRef many =
      LLVMBuildFCmp(m->b, LLVMRealOGE, size, num(m, 0x1p20), "");
  if (!was_float) {
    LLVMValueRef near = less(m, absolute(m, fast.part[0]), num(m, 0x1p-40));
    near = both(m, near, less(m, num(m, 0.5), size));
    many = any_of(m, many, near);
  }
  many = both(m, many, less(m, size, infinity(m)));
  LLVMValueRef any = many;
  if (m->lanes) {
    LLVMTypeRef bits = LLVMIntTypeInContext(m->env.context, m->lanes);
    any = LLVMBuildBitCast(m->b, many, bits, "");
    any = LLVMBuildICmp(m->b, LLVMIntNE, any, LLVMConstInt(bits, 0, false), "");
  }

  LLVMBasicBlockRef before = LLVMGetInsertBlock(m->b);
  LLVMValueRef function = LLVMGetBasicBlockParent(before);
  LLVMContextRef c = m->env.context;
  LLVMBasicBlockRef slow = LLVMAppendBasicBlockInContext(c, function, "");
  LLVMBasicBlockRef join_block = LLVMAppendBasicBlockInContext(c, function, "");
  LLVMBuildCondBr(m->b, any, slow, join_block);
  LLVMPositionBuilderAtEnd(m->b, slow);
  reduction exact = reduce_lanes(m, x, many, &fast);
  LLVMBasicBlockRef after = LLVMGetInsertBlock(m->b);
  LLVMBuildBr(m->b, join_block);
  LLVMPositionBuilderAtEnd(m->b, join_block);
  LLVMValueRef result[3];
  for (int i = 0; i < 3; i++) {
    result[i] = LLVMBuildPhi(m->b, LLVMTypeOf(fast.part[i]), "");
    LLVMValueRef values[] = { fast.part[i], exact.part[i] };
    LLVMBasicBlockRef blocks[] = { before, after };
    LLVMAddIncoming(result[i], values, blocks, 2);
  }
  *out_n = result[2];
  return (cpu_jit_pair){ result[0], result[1] };
}
