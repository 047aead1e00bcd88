// jit/math_build: how the mathematical functions write their instructions.
//
// A `maths` is the type of numbers at hand and where code goes; each helper
// leaves one instruction or two. Only what every x86-64 has in hardware is
// used: no instruction here ends in a call. So integers are rounded to by
// adding 1.5 * 2^(precision-1) and not by llvm.rint, and converted by the bits
// of such sums.
#ifndef CPU_JIT_MATH_BUILD_H
#define CPU_JIT_MATH_BUILD_H

#include <stdint.h>
#include <string.h>

#include "jit/math.h"
#include "jit/math_series.h"

typedef LLVMValueRef value;

typedef struct maths {
  cpu_jit_math_env *env;
  LLVMBuilderRef b;
  LLVMTypeRef real;   // float or double, scalar or vector
  LLVMTypeRef whole;  // the integers of the same size and number
  unsigned lanes;     // 0: scalar
  bool wide;          // double
} maths;

// A number as two, the second at most half an ulp of the first.
typedef struct pair {
  value hi, lo;
} pair;

static inline LLVMTypeRef lanes_of(LLVMTypeRef element, unsigned lanes)
{
  return lanes ? LLVMVectorType(element, lanes) : element;
}

static inline maths maths_of(cpu_jit_math_env *env, bool wide, unsigned lanes)
{
  LLVMContextRef c = env->context;
  LLVMTypeRef real =
      wide ? LLVMDoubleTypeInContext(c) : LLVMFloatTypeInContext(c);
  LLVMTypeRef whole = LLVMIntTypeInContext(c, wide ? 64 : 32);
  return (maths){
    env,   env->builder, lanes_of(real, lanes), lanes_of(whole, lanes),
    lanes, wide
  };
}

static inline maths maths_for(cpu_jit_math_env *env, value x)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
  LLVMTypeRef element = vector ? LLVMGetElementType(type) : type;
  return maths_of(env, LLVMGetTypeKind(element) == LLVMDoubleTypeKind,
                  vector ? LLVMGetVectorSize(type) : 0);
}

// A constant in every lane.
static inline value splat(const maths *m, value element)
{
  enum { MOST = 64 };
  value all[MOST];
  if (!m->lanes) return element;
  for (unsigned i = 0; i < m->lanes && i < MOST; i++) all[i] = element;
  return LLVMConstVector(all, m->lanes);
}

static inline LLVMTypeRef element_of(const maths *m, LLVMTypeRef type)
{
  return m->lanes ? LLVMGetElementType(type) : type;
}

static inline value num(const maths *m, double x)
{
  return splat(m, LLVMConstReal(element_of(m, m->real), x));
}

static inline value whole(const maths *m, uint64_t x)
{
  return splat(m, LLVMConstInt(element_of(m, m->whole), x, false));
}

// The constant that suits the type.
static inline value either(const maths *m, double narrow, double wide)
{
  return num(m, m->wide ? wide : narrow);
}

static inline value add(const maths *m, value a, value b)
{
  return LLVMBuildFAdd(m->b, a, b, "");
}

static inline value sub(const maths *m, value a, value b)
{
  return LLVMBuildFSub(m->b, a, b, "");
}

static inline value mul(const maths *m, value a, value b)
{
  return LLVMBuildFMul(m->b, a, b, "");
}

static inline value quotient(const maths *m, value a, value b)
{
  return LLVMBuildFDiv(m->b, a, b, "");
}

static inline value negative(const maths *m, value a)
{
  return LLVMBuildFNeg(m->b, a, "");
}

static inline value intrinsic(const maths *m, const char *name,
                              LLVMTypeRef type, value *arguments,
                              unsigned count)
{
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  value function = LLVMGetIntrinsicDeclaration(m->env->module, id, &type, 1);
  LLVMTypeRef signature = LLVMIntrinsicGetType(m->env->context, id, &type, 1);
  return LLVMBuildCall2(m->b, signature, function, arguments, count, "");
}

// a*b + c, rounded once where the target can and twice where it cannot.
static inline value mad(const maths *m, value a, value b, value c)
{
  value all[] = { a, b, c };
  if (m->env->has_fma) return intrinsic(m, "llvm.fma", m->real, all, 3);
  return add(m, mul(m, a, b), c);
}

static inline value absolute(const maths *m, value x)
{
  return intrinsic(m, "llvm.fabs", m->real, &x, 1);
}

static inline value root(const maths *m, value x)
{
  return intrinsic(m, "llvm.sqrt", m->real, &x, 1);
}

static inline value with_sign(const maths *m, value magnitude, value sign)
{
  value all[] = { magnitude, sign };
  return intrinsic(m, "llvm.copysign", m->real, all, 2);
}

// Comparisons are false where an operand is NaN.
static inline value less(const maths *m, value a, value b)
{
  return LLVMBuildFCmp(m->b, LLVMRealOLT, a, b, "");
}

static inline value same(const maths *m, value a, value b)
{
  return LLVMBuildFCmp(m->b, LLVMRealOEQ, a, b, "");
}

static inline value unordered(const maths *m, value a, value b)
{
  return LLVMBuildFCmp(m->b, LLVMRealUNO, a, b, "");
}

static inline value both(const maths *m, value a, value b)
{
  return LLVMBuildAnd(m->b, a, b, "");
}

static inline value choose(const maths *m, value condition, value yes, value no)
{
  return LLVMBuildSelect(m->b, condition, yes, no, "");
}

// At most and at least; NaN stays.
static inline value at_most(const maths *m, value x, value most)
{
  return choose(m, less(m, most, x), most, x);
}

static inline value at_least(const maths *m, value x, value least)
{
  return choose(m, less(m, x, least), least, x);
}

static inline value as_bits(const maths *m, value x)
{
  return LLVMBuildBitCast(m->b, x, m->whole, "");
}

static inline value as_real(const maths *m, value x)
{
  return LLVMBuildBitCast(m->b, x, m->real, "");
}

static inline value plus(const maths *m, value a, value b)
{
  return LLVMBuildAdd(m->b, a, b, "");
}

static inline value minus(const maths *m, value a, value b)
{
  return LLVMBuildSub(m->b, a, b, "");
}

static inline value mask(const maths *m, value a, uint64_t bits)
{
  return LLVMBuildAnd(m->b, a, whole(m, bits), "");
}

static inline value left(const maths *m, value a, unsigned by)
{
  return LLVMBuildShl(m->b, a, whole(m, by), "");
}

static inline value right(const maths *m, value a, unsigned by)
{
  return LLVMBuildLShr(m->b, a, whole(m, by), "");
}

// Of the format: bits of the fraction, bias of the exponent, the bits of 1.0,
// the smallest normal number, and 1.5 * 2^fraction, whose sum with a number of
// less than 2^(fraction-2) is that number rounded to an integer.
static inline unsigned fraction(const maths *m)
{
  return m->wide ? 52 : 23;
}
static inline unsigned bias(const maths *m)
{
  return m->wide ? 1023 : 127;
}
static inline uint64_t one_bits(const maths *m)
{
  return (uint64_t)bias(m) << fraction(m);
}
static inline value smallest(const maths *m)
{
  return either(m, 0x1p-126, 0x1p-1022);
}
static inline value infinity(const maths *m)
{
  return num(m, (double)__builtin_inff());
}
static inline value not_a_number(const maths *m)
{
  return num(m, (double)__builtin_nanf(""));
}
static inline value rounder(const maths *m)
{
  return either(m, 0x1.8p23, 0x1.8p52);
}

// 2^i of the integer in the low bits of `i`, which may be a rounder's sum.
static inline value power_of_two(const maths *m, value i)
{
  return as_real(m, plus(m, left(m, i, fraction(m)), whole(m, one_bits(m))));
}

// The polynomial from its term `from` on.
static inline value polynomial_from(const maths *m,
                                    const cpu_jit_series *series, int from,
                                    value x)
{
  value sum = num(m, series->terms[series->count - 1]);
  for (int i = series->count - 2; i >= from; i--)
    sum = mad(m, sum, x, num(m, series->terms[i]));
  return sum;
}

static inline value polynomial(const maths *m, const cpu_jit_series *series,
                               value x)
{
  return polynomial_from(m, series, 0, x);
}

// a + b as its rounded value and the error of that (Knuth).
static inline pair sum_of(const maths *m, value a, value b)
{
  value s = add(m, a, b), bb = sub(m, s, a);
  value lo = add(m, sub(m, a, sub(m, s, bb)), sub(m, b, bb));
  return (pair){ s, lo };
}

// The same where |a| >= |b| (Dekker).
static inline pair quick_sum(const maths *m, value a, value b)
{
  value s = add(m, a, b);
  return (pair){ s, sub(m, b, sub(m, s, a)) };
}

// a as two halves of its bits (Veltkamp).
static inline pair halves_of(const maths *m, value a)
{
  value t = mul(m, a, either(m, 0x1p12 + 1, 0x1p27 + 1));
  value hi = sub(m, t, sub(m, t, a));
  return (pair){ hi, sub(m, a, hi) };
}

// a*b as its rounded value and the error of that.
static inline pair product_of(const maths *m, value a, value b)
{
  value p = mul(m, a, b);
  if (m->env->has_fma) return (pair){ p, mad(m, a, b, negative(m, p)) };
  pair x = halves_of(m, a), y = halves_of(m, b);
  value e = sub(m, mul(m, x.hi, y.hi), p);
  e = add(m, e, mul(m, x.hi, y.lo));
  e = add(m, e, mul(m, x.lo, y.hi));
  return (pair){ p, add(m, e, mul(m, x.lo, y.lo)) };
}

// c - a*b, where that is small against c.
static inline value residue(const maths *m, value c, value a, value b)
{
  if (m->env->has_fma) return mad(m, negative(m, a), b, c);
  pair p = product_of(m, a, b);
  return sub(m, sub(m, c, p.hi), p.lo);
}

// a / b as two numbers: the rounded quotient and what it lacks.
static inline pair ratio_of(const maths *m, pair a, pair b)
{
  value inverse = quotient(m, num(m, 1), b.hi);
  value q = mul(m, a.hi, inverse);
  value rest = residue(m, a.hi, q, b.hi);
  rest = add(m, rest, sub(m, a.lo, mul(m, q, b.lo)));
  return (pair){ q, mul(m, rest, inverse) };
}

#endif
