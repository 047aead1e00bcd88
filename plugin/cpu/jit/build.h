// jit/build: short names for LLVM's instructions on numbers of one type.
//
// A `cpu_jit_ir` is the type of numbers at hand and where code goes; each
// helper leaves one instruction or two. Only what every x86-64 has in hardware
// is used: no instruction here ends in a call. So integers are rounded to by
// adding 1.5 * 2^(precision-1) and not by llvm.rint, and converted by the bits
// of such sums.
#ifndef CPU_JIT_BUILD_H
#define CPU_JIT_BUILD_H

#include <stdint.h>
#include <string.h>

#include "jit/math.h"
#include "jit/math_series.h"

typedef struct cpu_jit_ir {
  cpu_jit_math_env env;
  LLVMBuilderRef b;
  LLVMTypeRef real;   // float or double, scalar or vector
  LLVMTypeRef whole;  // the integers of the same size and number
  unsigned lanes;     // 0: scalar
  bool wide;          // double
} cpu_jit_ir;

// A number as two, the second at most half an ulp of the first.
typedef struct cpu_jit_pair {
  LLVMValueRef hi, lo;
} cpu_jit_pair;

static inline LLVMTypeRef lanes_of(LLVMTypeRef element, unsigned lanes)
{
  return lanes ? LLVMVectorType(element, lanes) : element;
}

static inline cpu_jit_ir maths_of(const cpu_jit_math_env *env, bool wide,
                                  unsigned lanes)
{
  LLVMContextRef c = env->context;
  LLVMTypeRef real =
      wide ? LLVMDoubleTypeInContext(c) : LLVMFloatTypeInContext(c);
  LLVMTypeRef whole = LLVMIntTypeInContext(c, wide ? 64 : 32);
  return (cpu_jit_ir){
    *env,  env->builder, lanes_of(real, lanes), lanes_of(whole, lanes),
    lanes, wide
  };
}

static inline cpu_jit_ir maths_for(const cpu_jit_math_env *env, LLVMValueRef x)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
  LLVMTypeRef element = vector ? LLVMGetElementType(type) : type;
  return maths_of(env, LLVMGetTypeKind(element) == LLVMDoubleTypeKind,
                  vector ? LLVMGetVectorSize(type) : 0);
}

// Constants, in every lane.
static inline LLVMValueRef num(const cpu_jit_ir *m, double x)
{
  return cpu_jit_const_real(m->real, x);
}

static inline LLVMValueRef whole(const cpu_jit_ir *m, uint64_t x)
{
  return cpu_jit_const_int(m->whole, x);
}

// The constant that suits the type.
static inline LLVMValueRef either(const cpu_jit_ir *m, double narrow,
                                  double wide)
{
  return num(m, m->wide ? wide : narrow);
}

#define UNARY(name, build)                                             \
  static inline LLVMValueRef name(const cpu_jit_ir *m, LLVMValueRef a) \
  {                                                                    \
    return build;                                                      \
  }
#define BINARY(name, build)                                            \
  static inline LLVMValueRef name(const cpu_jit_ir *m, LLVMValueRef a, \
                                  LLVMValueRef b)                      \
  {                                                                    \
    return build;                                                      \
  }
// Of real numbers. Comparisons are false where an operand is NaN.
BINARY(add, LLVMBuildFAdd(m->b, a, b, ""))
BINARY(sub, LLVMBuildFSub(m->b, a, b, ""))
BINARY(mul, LLVMBuildFMul(m->b, a, b, ""))
BINARY(quotient, LLVMBuildFDiv(m->b, a, b, ""))
UNARY(negative, LLVMBuildFNeg(m->b, a, ""))
BINARY(less, LLVMBuildFCmp(m->b, LLVMRealOLT, a, b, ""))
BINARY(same, LLVMBuildFCmp(m->b, LLVMRealOEQ, a, b, ""))
BINARY(unordered, LLVMBuildFCmp(m->b, LLVMRealUNO, a, b, ""))
// Of integers and bits.
UNARY(as_bits, LLVMBuildBitCast(m->b, a, m->whole, ""))
UNARY(as_real, LLVMBuildBitCast(m->b, a, m->real, ""))
BINARY(plus, LLVMBuildAdd(m->b, a, b, ""))
BINARY(minus, LLVMBuildSub(m->b, a, b, ""))
// Of conditions and bits.
BINARY(both, LLVMBuildAnd(m->b, a, b, ""))
BINARY(any_of, LLVMBuildOr(m->b, a, b, ""))
UNARY(not_of, LLVMBuildNot(m->b, a, ""))
#undef UNARY
#undef BINARY

static inline LLVMValueRef intrinsic(const cpu_jit_ir *m, const char *name,
                                     LLVMTypeRef type, LLVMValueRef *arguments,
                                     unsigned count)
{
  return cpu_jit_intrinsic(m->env.module, m->b, name, &type, 1, arguments,
                           count);
}

// a*b + c, rounded once where the target can and twice where it cannot.
static inline LLVMValueRef mad(const cpu_jit_ir *m, LLVMValueRef a,
                               LLVMValueRef b, LLVMValueRef c)
{
  LLVMValueRef all[] = { a, b, c };
  if (m->env.has_fma) return intrinsic(m, "llvm.fma", m->real, all, 3);
  return add(m, mul(m, a, b), c);
}

static inline LLVMValueRef absolute(const cpu_jit_ir *m, LLVMValueRef x)
{
  return intrinsic(m, "llvm.fabs", m->real, &x, 1);
}

static inline LLVMValueRef root(const cpu_jit_ir *m, LLVMValueRef x)
{
  return intrinsic(m, "llvm.sqrt", m->real, &x, 1);
}

static inline LLVMValueRef with_sign(const cpu_jit_ir *m,
                                     LLVMValueRef magnitude, LLVMValueRef sign)
{
  LLVMValueRef all[] = { magnitude, sign };
  return intrinsic(m, "llvm.copysign", m->real, all, 2);
}

static inline LLVMValueRef compare_bits(const cpu_jit_ir *m,
                                        LLVMIntPredicate is, LLVMValueRef a,
                                        uint64_t bits)
{
  return LLVMBuildICmp(m->b, is, a, whole(m, bits), "");
}

static inline LLVMValueRef choose(const cpu_jit_ir *m, LLVMValueRef condition,
                                  LLVMValueRef yes, LLVMValueRef no)
{
  return LLVMBuildSelect(m->b, condition, yes, no, "");
}

// At most and at least; NaN stays.
static inline LLVMValueRef at_most(const cpu_jit_ir *m, LLVMValueRef x,
                                   LLVMValueRef most)
{
  return choose(m, less(m, most, x), most, x);
}

static inline LLVMValueRef at_least(const cpu_jit_ir *m, LLVMValueRef x,
                                    LLVMValueRef least)
{
  return choose(m, less(m, x, least), least, x);
}

static inline LLVMValueRef mask(const cpu_jit_ir *m, LLVMValueRef a,
                                uint64_t bits)
{
  return LLVMBuildAnd(m->b, a, whole(m, bits), "");
}

static inline LLVMValueRef with_bits(const cpu_jit_ir *m, LLVMValueRef a,
                                     uint64_t bits)
{
  return any_of(m, a, whole(m, bits));
}

static inline LLVMValueRef left(const cpu_jit_ir *m, LLVMValueRef a,
                                unsigned by)
{
  return LLVMBuildShl(m->b, a, whole(m, by), "");
}

static inline LLVMValueRef right(const cpu_jit_ir *m, LLVMValueRef a,
                                 unsigned by)
{
  return LLVMBuildLShr(m->b, a, whole(m, by), "");
}

// The bits of floats rounded to nearest even at bit `cut`. Those below are not
// cleared.
static inline LLVMValueRef round_bits(const cpu_jit_ir *m, LLVMValueRef bits,
                                      unsigned cut)
{
  LLVMValueRef last = mask(m, right(m, bits, cut), 1);
  LLVMValueRef half = whole(m, ((uint64_t)1 << (cut - 1)) - 1);
  return plus(m, bits, plus(m, last, half));
}

// Of the format: bits of the fraction, bias of the exponent, the bits of 1.0,
// the smallest normal number, and 1.5 * 2^fraction, whose sum with a number of
// less than 2^(fraction-2) is that number rounded to an integer.
static inline unsigned fraction(const cpu_jit_ir *m)
{
  return m->wide ? 52 : 23;
}
static inline unsigned bias(const cpu_jit_ir *m)
{
  return m->wide ? 1023 : 127;
}
static inline uint64_t one_bits(const cpu_jit_ir *m)
{
  return (uint64_t)bias(m) << fraction(m);
}
static inline LLVMValueRef smallest(const cpu_jit_ir *m)
{
  return either(m, 0x1p-126, 0x1p-1022);
}
static inline LLVMValueRef infinity(const cpu_jit_ir *m)
{
  return num(m, (double)__builtin_inff());
}
static inline LLVMValueRef not_a_number(const cpu_jit_ir *m)
{
  return num(m, (double)__builtin_nanf(""));
}
static inline LLVMValueRef rounder(const cpu_jit_ir *m)
{
  return either(m, 0x1.8p23, 0x1.8p52);
}

// x as a double where `m` is of floats, and back.
static inline LLVMValueRef widened(const cpu_jit_ir *m, const cpu_jit_ir *wide,
                                   LLVMValueRef x)
{
  return m->wide ? x : LLVMBuildFPExt(m->b, x, wide->real, "");
}

static inline LLVMValueRef narrowed(const cpu_jit_ir *m, LLVMValueRef x)
{
  return m->wide ? x : LLVMBuildFPTrunc(m->b, x, m->real, "");
}

// 2^i of the integer in the low bits of `i`, which may be a rounder's sum.
static inline LLVMValueRef power_of_two(const cpu_jit_ir *m, LLVMValueRef i)
{
  return as_real(m, plus(m, left(m, i, fraction(m)), whole(m, one_bits(m))));
}

// The polynomial from its term `from` on.
static inline LLVMValueRef polynomial_from(const cpu_jit_ir *m,
                                           const cpu_jit_series *series,
                                           int from, LLVMValueRef x)
{
  LLVMValueRef sum = num(m, series->terms[series->count - 1]);
  for (int i = series->count - 2; i >= from; i--)
    sum = mad(m, sum, x, num(m, series->terms[i]));
  return sum;
}

static inline LLVMValueRef polynomial(const cpu_jit_ir *m,
                                      const cpu_jit_series *series,
                                      LLVMValueRef x)
{
  return polynomial_from(m, series, 0, x);
}

// a + b as its rounded value and the error of that (Knuth).
static inline cpu_jit_pair sum_of(const cpu_jit_ir *m, LLVMValueRef a,
                                  LLVMValueRef b)
{
  LLVMValueRef s = add(m, a, b), bb = sub(m, s, a);
  LLVMValueRef lo = add(m, sub(m, a, sub(m, s, bb)), sub(m, b, bb));
  return (cpu_jit_pair){ s, lo };
}

// The same where |a| >= |b| (Dekker).
static inline cpu_jit_pair quick_sum(const cpu_jit_ir *m, LLVMValueRef a,
                                     LLVMValueRef b)
{
  LLVMValueRef s = add(m, a, b);
  return (cpu_jit_pair){ s, sub(m, b, sub(m, s, a)) };
}

// a as two halves of its bits (Veltkamp).
static inline cpu_jit_pair halves_of(const cpu_jit_ir *m, LLVMValueRef a)
{
  LLVMValueRef t = mul(m, a, either(m, 0x1p12 + 1, 0x1p27 + 1));
  LLVMValueRef hi = sub(m, t, sub(m, t, a));
  return (cpu_jit_pair){ hi, sub(m, a, hi) };
}

// a*b as its rounded value and the error of that.
static inline cpu_jit_pair product_of(const cpu_jit_ir *m, LLVMValueRef a,
                                      LLVMValueRef b)
{
  LLVMValueRef p = mul(m, a, b);
  if (m->env.has_fma) return (cpu_jit_pair){ p, mad(m, a, b, negative(m, p)) };
  cpu_jit_pair x = halves_of(m, a), y = halves_of(m, b);
  LLVMValueRef e = sub(m, mul(m, x.hi, y.hi), p);
  e = add(m, e, mul(m, x.hi, y.lo));
  e = add(m, e, mul(m, x.lo, y.hi));
  return (cpu_jit_pair){ p, add(m, e, mul(m, x.lo, y.lo)) };
}

// c - a*b, where that is small against c.
static inline LLVMValueRef residue(const cpu_jit_ir *m, LLVMValueRef c,
                                   LLVMValueRef a, LLVMValueRef b)
{
  if (m->env.has_fma) return mad(m, negative(m, a), b, c);
  cpu_jit_pair p = product_of(m, a, b);
  return sub(m, sub(m, c, p.hi), p.lo);
}

// a / b as two numbers: the rounded quotient and what it lacks.
static inline cpu_jit_pair ratio_of(const cpu_jit_ir *m, cpu_jit_pair a,
                                    cpu_jit_pair b)
{
  LLVMValueRef inverse = quotient(m, num(m, 1), b.hi);
  LLVMValueRef q = mul(m, a.hi, inverse);
  LLVMValueRef rest = residue(m, a.hi, q, b.hi);
  rest = add(m, rest, sub(m, a.lo, mul(m, q, b.lo)));
  return (cpu_jit_pair){ q, mul(m, rest, inverse) };
}

#endif
